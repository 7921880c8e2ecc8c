/* SPDX-License-Identifier: Apache-2.0 */
/* Cowbird as a program of the switch: its life, and where packets go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cow.h"

static const char *const names[] = {
#define NAME(name) #name,
	COW_COUNTERS(NAME)
#undef NAME
};

/* ---- packets --------------------------------------------------------------
 */

void cow_end_packet(struct tor_end *at, const struct wire_pkt *w)
{
	struct cow_end *e = container_of(at, struct cow_end, at);
	struct cow *c = e->session->cow;

	if (c->batch_packets++ == 0)
		c->batch_made = tor_counter(c->tor, TOR_C_program_frames);
	end_tx_reply(&e->tx, w);
}

static void cow_batch_end(void *state)
{
	struct cow *c = state;
	uint64_t made;

	for (uint32_t i = 0; i < c->due_count; i++) {
		struct cow_session *s = &c->sessions[c->due[i]];

		if (i + 2 < c->due_count)
			cow_session_prefetch(&c->sessions[c->due[i + 2]]);
		/* One that has ended meanwhile is not due any more. */
		if (!s->is_due)
			continue;
		s->is_due = false;
		cow_session_run(s);
	}
	c->due_count = 0;
	if (!c->batch_packets)
		return;
	/* A pipeline makes one packet of one; each further one goes round. */
	made = tor_counter(c->tor, TOR_C_program_frames) - c->batch_made;
	if (made > c->batch_packets)
		cow_count(c, COW_C_recirculated, made - c->batch_packets);
	c->batch_packets = 0;
}

/* ---- life -----------------------------------------------------------------
 */

static void cow_release(void *state)
{
	struct cow *c = state;

	for (uint32_t i = 0; c->sessions && i < c->opt.sessions; i++)
		if (c->sessions[i].used)
			cow_session_release(&c->sessions[i]);
	if (timer_is_set(&c->idle_timer))
		timer_cancel(tor_timers(c->tor), &c->idle_timer);
	free(c->sessions);
	free(c->due);
	free(c->idle);
}

static int cow_init(void *state, struct tor_instance *self, const char *options)
{
	struct cow *c = state;
	int err = cow_parse(options, &c->opt);

	if (err)
		return err;
	c->self = self;
	c->tor = tor_instance_tor(self);
	c->c = tor_instance_counters(self);
	c->sessions = calloc(c->opt.sessions, sizeof(*c->sessions));
	c->due = calloc(c->opt.sessions, sizeof(*c->due));
	c->idle = calloc(c->opt.sessions, sizeof(*c->idle));
	timer_init(&c->idle_timer, cow_idle_run);
	c->changes = 1;
	return c->sessions && c->due && c->idle ? 0 : -ENOMEM;
}

/*
 * What a pipeline would have to hold for all that runs per packet. Positions
 * and sequences are counted as 32 bits: they are compared within a window.
 */
static unsigned cow_tables(const void *state,
			   struct tor_table table[TOR_TABLE_MAX])
{
	const struct cow *c = state;
	uint64_t sessions = c->opt.sessions;
	uint64_t ends = sessions * (COW_ENDS - 1);
	uint64_t requests = sessions * u32_pow2_ceil(c->opt.requests);
	uint64_t nodes = sessions * OFFLOAD_NODES_MAX;
	uint32_t most = u32_pow2_ceil(c->opt.requests) * FILTER_SPAN_MAX;
	unsigned n = 0;

	table[n++] = (struct tor_table){"sessions by number", sessions,
					24 - COW_END_BITS, 16, 1};
	/* Address, key and five sizes of the rings; 14 positions, sequences and
	 * counts; four times and periods; state, flags, epoch, batch, MTU. */
	table[n++] = (struct tor_table){"sessions", sessions, 0,
					64 + 32 + 5 * 32 + 17 * 32 + 4 * 48 +
						3 + 5 + 8 + 32 + 10 + 13,
					4};
	/* Size, stripe, count, error; of each piece node, keys, address, size.
	 */
	table[n++] = (struct tor_table){
		"regions", sessions * COW_REGIONS, 0,
		48 + 6 + 4 + 8 + OFFLOAD_NODES_MAX * (4 + 64 + 64 + 48), 2};
	/* What it said at first (four words), what is known of a predecessor
	 * (three), executed up to, packets ahead, error. */
	table[n++] = (struct tor_table){"nodes", nodes, 0,
					4 * 32 + 3 * 32 + 32 + 32 + 8, 2};
	/* Address, queue pair, oldest, next and sent number; READs and promises
	 * on the way and their limit; tries, two times, flags; the port. */
	table[n++] = (struct tor_table){
		"ends", ends, 0, 128 + 24 * 4 + 3 * 8 + 6 + 2 * 48 + 3 + 10, 2};
	/* Kind, flags, which red block, length, position, where it goes, number
	 * of the WRITE, place in the request, key, address. */
	table[n++] = (struct tor_table){
		"packets on the way", ends * END_TX_WINDOW, 0,
		4 + 2 + 3 + 13 + 32 + COW_END_BITS + 24 + 32 + 32 + 64, 2};
	/* Position, sequence, far and near place, length, parts, region, kind,
	 * state, error, flags. */
	table[n++] = (struct tor_table){
		"requests", requests, 0,
		32 + 32 + 48 + 32 + 32 + 16 + 4 + 1 + 2 + 8 + 3, 2};
	table[n++] = (struct tor_table){"requests by sequence",
					OFFLOAD_KINDS * requests, 0, 16, 2};
	table[n++] = (struct tor_table){"publications", sessions * COW_REDS, 0,
					4 * 32, 1};
	if (c->opt.filter)
		table[n++] = (struct tor_table){
			"filter", sessions * FILTER_KINDS * FILTER_LINES, 0,
			most < 1u << 16 ? 16 : 32, 2};
	return n;
}

const struct tor_program tor_cowbird = {
	.name = "cowbird",
	.help = "executes requests that applications put into rings",
	.counter_names = names,
	.counter_count = COW_COUNTER_COUNT,
	.state_bytes = sizeof(struct cow),
	.init = cow_init,
	.release = cow_release,
	.batch_end = cow_batch_end,
	.control = cow_control,
	.tables = cow_tables,
};
