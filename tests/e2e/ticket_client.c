/* SPDX-License-Identifier: Apache-2.0 */
/* Shows tickets to a real memory node that it must not believe.
 *
 *   ticket_client show PATH        prints the ticket of a file, and its block
 *   ticket_client try PATH OTHER KEY_ID SEED FOREIGN INDEX GENERATION
 *
 * PATH and OTHER are files of this tenant, FOREIGN is the ticket of another
 * one's and INDEX the block; the seed is that of the controller's key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/hex.h"
#include "control/ctl_ticket.h"
#include "elastic/el_priv.h"
#include "wire/block_watch.h"

static int fail(const char *what, int got)
{
	(void)fprintf(stderr, "%s: %d, %s\n", what, got, aq_last_error());
	exit(1);
}

/* What the node says to a ticket. */
static enum block_status show(struct el_object *o, struct el_port *p,
			      const uint8_t *ticket, uint32_t len,
			      uint32_t *handle)
{
	struct block_op op = {
		.opcode = BLOCK_OPEN, .length = len, .value = ticket};
	struct block_result r = {.status = BLOCK_BAD};
	int err = el_port_exchange(o, p, &op, 1, &r, 0, el_deadline_ns(o));

	if (err)
		fail("no answer to a ticket", err);
	*handle = (uint32_t)r.value;
	return r.status;
}

static uint64_t object_of(const uint8_t *ticket)
{
	le64 id;

	memcpy(&id, ticket + 8, sizeof(id));
	return le64_get(id);
}

static void expect(const char *what, enum block_status got,
		   enum block_status want)
{
	if (got != want)
		fail(what, (int)got);
	printf("ok: %s\n", what);
}

/* Appends nothing to the first block by that handle. */
static enum block_status append_by(struct el_object *o, struct el_port *p,
				   uint32_t handle)
{
	const struct el_block *b = &o->block[0];
	struct block_op op = {.opcode = BLOCK_APPEND,
			      .handle = handle,
			      .index = b->head.index,
			      .generation = b->head.generation,
			      .sequence = ++o->sequence,
			      .length = 1,
			      .value = (const uint8_t *)"x"};
	struct block_result r = {.status = BLOCK_BAD};
	int err = el_port_exchange(o, p, &op, 1, &r, o->sequence - 1,
				   el_deadline_ns(o));

	if (err)
		fail("no answer to an append", err);
	return r.status;
}

/* Whether the node says how much was done to a block. */
static bool is_counted(struct el_object *o, struct el_port *p, uint32_t handle,
		       const char *index, const char *generation)
{
	const struct block_watch_ask_wire ask = {.events =
							 be32_put(UINT32_MAX)};
	struct block_op op = {.opcode = BLOCK_WATCH,
			      .handle = handle,
			      .index = (uint32_t)strtoul(index, NULL, 10),
			      .generation = strtoull(generation, NULL, 10),
			      .length = sizeof(ask),
			      .value = (const uint8_t *)&ask};
	struct block_result r = {.status = BLOCK_BAD};
	int err = el_port_exchange(o, p, &op, 1, &r, 0, el_deadline_ns(o));

	if (err)
		fail("no answer to a watch", err);
	return r.status == BLOCK_OK || r.length || r.value;
}

/* A node hangs up when it has been shown too many. */
static void connect_anew(struct el_object *o, struct el_port *p)
{
	int err;

	el_port_hang_up(p);
	err = el_port_ready(o, p, false, el_deadline_ns(o));
	if (err)
		fail("cannot connect", err);
}

static void try_forged(struct el_object *o, struct el_port *p)
{
	/* The object, its end, the rights, the tenant, the signature. */
	static const unsigned at[] = {8, 16, 24, 32, 64};
	uint8_t ticket[EL_TICKET_BYTES];
	uint32_t handle;

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		memcpy(ticket, o->ticket, sizeof(ticket));
		ticket[at[i]] ^= 2;
		expect("forged", show(o, p, ticket, sizeof(ticket), &handle),
		       BLOCK_DENIED);
	}
	expect("cut off", show(o, p, o->ticket, 127, &handle), BLOCK_DENIED);
	expect("good", show(o, p, o->ticket, sizeof(ticket), &handle),
	       BLOCK_OK);
	expect("good, used", append_by(o, p, handle), BLOCK_OK);
}

static void try_own(struct el_object *o, struct el_port *p, uint32_t key_id,
		    const uint8_t *seed, uint64_t object)
{
	struct ctl_ticket t = {.key_id = key_id,
			       .object = object,
			       .end_s = (uint64_t)time(NULL) + 100,
			       .rights = CTL_TICKET_READ | CTL_TICKET_CHANGE,
			       .kind = CTL_TICKET_FILE,
			       .tenant = "default"};
	uint8_t ticket[CTL_TICKET_BYTES];
	uint32_t handle;

	ctl_ticket_sign(&t, seed, ticket);
	expect("signed by the right key",
	       show(o, p, ticket, sizeof(ticket), &handle), BLOCK_OK);
	expect("the same, used", append_by(o, p, handle), BLOCK_OK);
	t.rights = CTL_TICKET_READ;
	ctl_ticket_sign(&t, seed, ticket);
	expect("for reading", show(o, p, ticket, sizeof(ticket), &handle),
	       BLOCK_OK);
	expect("for reading, used", append_by(o, p, handle), BLOCK_DENIED);
	t.end_s = (uint64_t)time(NULL) - CTL_TICKET_SLACK_S - 5;
	ctl_ticket_sign(&t, seed, ticket);
	expect("expired", show(o, p, ticket, sizeof(ticket), &handle),
	       BLOCK_DENIED);
	t.end_s += 1000;
	t.key_id += 1000;
	ctl_ticket_sign(&t, seed, ticket);
	expect("of a key that nobody knows",
	       show(o, p, ticket, sizeof(ticket), &handle), BLOCK_BUSY);
}

int main(int argc, char **argv)
{
	const struct aq_elastic_options create = {.flags = AQ_ELASTIC_CREATE};
	uint8_t seed[CTL_TICKET_SEED_BYTES], foreign[EL_TICKET_BYTES];
	char text[2 * EL_TICKET_BYTES + 1];
	struct el_object file, other;
	struct el_port *p;
	struct aq_rack *rack;
	uint32_t handle;
	int err = aq_rack_open(NULL, &rack);

	if (!err)
		err = el_open(&file, rack, argv[2], BLOCK_FILE, &create);
	if (err)
		fail("cannot open", err);
	if (argc == 3) {
		hex_write(text, file.ticket, sizeof(file.ticket));
		printf("%s %u %llu\n", text, file.block[0].head.index,
		       (unsigned long long)file.block[0].generation);
		return 0;
	}
	err = el_open(&other, rack, argv[3], BLOCK_FILE, &create);
	if (!err)
		err = el_port_find(&file, file.block[0].head.node, &p);
	if (!err)
		err = el_port_ready(&file, p, false, el_deadline_ns(&file));
	if (err || !hex_read(argv[5], seed, sizeof(seed)) ||
	    !hex_read(argv[6], foreign, sizeof(foreign)))
		fail("cannot begin", err);
	try_forged(&file, p);
	connect_anew(&file, p);
	expect("good, for a watch",
	       show(&file, p, file.ticket, sizeof(file.ticket), &handle),
	       BLOCK_OK);
	if (is_counted(&file, p, handle, argv[7], argv[8]))
		fail("events of another tenant's block are counted", 0);
	puts("ok: nothing of another tenant's block");
	expect("of another tenant",
	       show(&file, p, foreign, sizeof(foreign), &handle), BLOCK_DENIED);
	expect("of another file",
	       show(&file, p, other.ticket, sizeof(other.ticket), &handle),
	       BLOCK_OK);
	expect("of another file, used", append_by(&file, p, handle),
	       BLOCK_DENIED);
	connect_anew(&file, p);
	try_own(&file, p, (uint32_t)strtoul(argv[4], NULL, 10), seed,
		object_of(file.ticket));
	return 0;
}
