/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Appends to version lists through a switch that runs steer: a WRITE of the
 * version and a compare-and-swap on the one that its client appended last. With
 * a list for each connection that is the list's end, and nothing has to be
 * steered; with one list for all it is not, and nothing gets there otherwise.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "switch_ends.h"
#include "wire/vlist_layout.h"

enum {
	NODES_AT = 4096,
	NODE_BYTES = 128,
	POOL = 512, /* versions of a connection, used in turn */
	NODES = SWITCH_CONNS * POOL,
	WRITE_BYTES = VLIST_NODE_HEAD + VLIST_NODE_TAIL,
	/* Before the switch has seen an answer to a connection it does not
	 * know what is new on it, and sends nothing elsewhere. */
	FAILURES_MAX = 4 * SWITCH_CONNS,
};

#define STORE_VA 0x100000ull

struct state {
	struct switch_ends ends;
	/* The client's: what each connection has appended, ever. */
	uint64_t count[SWITCH_CONNS];
	unsigned failures;
	/* The server's: the word `next` of each version. */
	uint64_t next[NODES];
};

/* The version that the connection appended as number `count`; 0: what is there
 * at first. */
static uint64_t version(unsigned i, uint64_t count)
{
	uint64_t index = i * POOL + count % POOL;

	return vlist_pointer(NODES_AT + index * NODE_BYTES,
			     1 + (uint32_t)(count / POOL));
}

/* Whose list it appends to. */
static unsigned list_of(const struct switch_param *p, unsigned i)
{
	return p->is_one_list ? 0 : i;
}

static void begin(struct switch_ends *e)
{
	struct state *st = container_of(e, struct state, ends);

	for (unsigned i = 0; i < SWITCH_CONNS; i++)
		st->next[i * POOL] = vlist_end_of(version(i, 0));
}

static int declare(struct side *s)
{
	const struct switch_param *p = s->param;
	char line[SWITCH_SAY_BYTES];
	int err;

	snprintf(line, sizeof(line),
		 "tell steer store server=::ffff:127.0.7.%u rkey=%u va=%llu "
		 "nodes_at=%u nodes=%u node_bytes=%u",
		 switch_ends_ip(p, SWITCH_IP_SERVER), SWITCH_RKEY, STORE_VA,
		 NODES_AT, NODES, NODE_BYTES);
	err = switch_ends_say(s, line);
	for (unsigned i = 0; i < SWITCH_CONNS && !err; i++) {
		snprintf(line, sizeof(line),
			 "tell steer conn server=::ffff:127.0.7.%u "
			 "server_qpn=%u client=::ffff:127.0.7.%u "
			 "client_qpn=%u fresh=1",
			 switch_ends_ip(p, SWITCH_IP_SERVER),
			 switch_ends_qpn(p, SWITCH_SLOT_SERVER,
					 SWITCH_FIRST_QPN + i),
			 switch_ends_ip(p, SWITCH_IP_CLIENT),
			 switch_ends_qpn(p, SWITCH_SLOT_CLIENT,
					 SWITCH_FIRST_QPN + i));
		err = switch_ends_say(s, line);
	}
	return err;
}

/* ---- the server -----------------------------------------------------------
 */

static uint64_t *word_at(struct state *st, uint64_t va)
{
	uint64_t at = va - STORE_VA - NODES_AT;

	return at % NODE_BYTES == 0 && at / NODE_BYTES < NODES
		       ? &st->next[at / NODE_BYTES]
		       : NULL;
}

static void execute(struct switch_ends *e, const struct wire_pkt *w)
{
	struct state *st = container_of(e, struct state, ends);
	uint64_t *word = word_at(st, w->va);
	struct vlist_node n;
	struct wire_pkt a;

	if (word && w->opcode == WIRE_RC_WRITE_ONLY &&
	    w->payload_len == WRITE_BYTES) {
		memcpy(&n, w->payload, sizeof(n));
		*word = le64_get(n.next);
	}
	if (!word || w->opcode != WIRE_RC_CAS)
		return;
	a = switch_ends_packet(e->param, SWITCH_IP_SERVER, SWITCH_IP_CLIENT,
			       WIRE_RC_ATOMIC_ACK);
	a.dest_qpn =
		switch_ends_qpn(e->param, SWITCH_SLOT_CLIENT,
				w->dest_qpn & ((1u << SWITCH_SLOT_SHIFT) - 1));
	a.psn = w->psn;
	a.msn = (w->psn + 1) & WIRE_PSN_MASK;
	a.original = *word;
	*word = atomic_op_result(&w->atomic, *word);
	(void)!switch_ends_send(e, &a);
}

/* ---- the client -----------------------------------------------------------
 */

static bool ask(struct switch_ends *e, unsigned i)
{
	struct state *st = container_of(e, struct state, ends);
	struct switch_conn *c = &e->conn[i];
	const unsigned list = list_of(e->param, i);
	uint64_t self = version(i, st->count[i] + 1);
	uint64_t place =
		st->count[i] ? version(i, st->count[i]) : version(list, 0);
	struct vlist_node n = {.next = le64_put(vlist_end_of(self)),
			       .self = le64_put(self),
			       .key = le64_put(list)};
	uint8_t bytes[WRITE_BYTES] = {0};
	struct wire_pkt w =
		switch_ends_packet(e->param, SWITCH_IP_CLIENT, SWITCH_IP_SERVER,
				   WIRE_RC_WRITE_ONLY);

	memcpy(bytes, &n, sizeof(n));
	w.dest_qpn = switch_ends_qpn(e->param, SWITCH_SLOT_SERVER,
				     SWITCH_FIRST_QPN + i);
	w.psn = c->next_psn;
	w.rkey = SWITCH_RKEY;
	w.va = STORE_VA + vlist_offset(self);
	w.dma_len = w.payload_len = WRITE_BYTES;
	w.payload = bytes;
	if (!switch_ends_send(e, &w))
		return false;
	w.opcode = WIRE_RC_CAS;
	w.psn = c->answer_psn = wire_psn_add(c->next_psn, 1);
	w.ack_req = true;
	w.va = STORE_VA + vlist_offset(place);
	w.payload = NULL;
	w.payload_len = 0;
	w.atomic = (struct atomic_op){.compare = vlist_end_of(place),
				      .swap_add = self,
				      .compare_mask = UINT64_MAX,
				      .swap_mask = UINT64_MAX};
	/* One operation at a time leaves room for two frames. */
	if (!switch_ends_send(e, &w))
		return false;
	c->next_psn = wire_psn_add(c->next_psn, 2);
	return true;
}

/* It says behind which version the new one is, and the switch, if it knows,
 * that this is committed. Else it is behind its client's own, or nowhere. */
static int take(struct switch_ends *e, unsigned i, const struct wire_pkt *w)
{
	struct state *st = container_of(e, struct state, ends);
	uint64_t behind = w->original & ~VLIST_COMMITTED;
	uint64_t own =
		vlist_end_of(st->count[i] ? version(i, st->count[i])
					  : version(list_of(e->param, i), 0));

	if (w->opcode != WIRE_RC_ATOMIC_ACK ||
	    (!e->param->is_one_list && behind != own))
		return -EPROTO;
	if (w->original & VLIST_COMMITTED || behind == own)
		st->count[i]++;
	else if (++st->failures > FAILURES_MAX)
		return -EPROTO;
	return 0;
}

static const struct switch_ends_ops ends = {
	.bytes = sizeof(struct state),
	.depth = 1,
	.declare = declare,
	.begin = begin,
	.execute = execute,
	.ask = ask,
	.take = take,
};

static int setup(struct side *s)
{
	return switch_ends_setup(s, &ends);
}

const struct side_ops switch_steer_ops = {
	.setup = setup,
	.serve = switch_ends_serve,
	.measure = switch_ends_measure,
	.teardown = switch_ends_teardown,
};
