/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox as a program of the switch: its life, and where packets go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sword.h"

static const char *const names[] = {
#define NAME(name) #name,
	SWORD_COUNTERS(NAME)
#undef NAME
};

static enum tor_verdict on_response(struct sword *s, struct tor_pkt *pkt)
{
	struct sword_server *v = sword_server_find(s, pkt->wire.src_ip);
	struct sword_conn *c;

	if (!v)
		return TOR_PASS;
	c = tor_conns_find(&s->table, TOR_REPLY, &pkt->wire);
	if (c)
		return sword_reply(s, c, pkt);
	/* The acknowledgement of a place, to a client of a former switch, would
	 * be taken for that of its operation. */
	sword_count(s, SWORD_C_undeclared);
	return TOR_DROP;
}

static enum tor_verdict sword_packet(void *state, struct tor_pkt *pkt)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->wire.opcode];
	struct sword *s = state;
	struct sword_server *v;

	if (op->transport != WIRE_RC)
		return TOR_PASS;
	if (UNLIKELY(!s->ready)) {
		sword_count(s, SWORD_C_refused_closed);
		return TOR_DROP;
	}
	if (op->flags & WIRE_OP_RESPONSE)
		return on_response(s, pkt);
	v = sword_server_find(s, pkt->wire.dst_ip);
	return v ? sword_request(s, v, pkt) : TOR_PASS;
}

static bool sword_wants(const void *state, const uint8_t src_ip[16],
			const uint8_t dst_ip[16])
{
	const struct sword *s = state;

	return !s->ready || sword_server_find(s, src_ip) ||
	       sword_server_find(s, dst_ip);
}

static void sword_release(void *state)
{
	struct sword *s = state;

	for (unsigned i = 0; i < SWORD_SERVERS; i++)
		if (s->servers[i].used)
			sword_shared_stop(&s->servers[i]);
	tor_conns_release(&s->table);
	free(s->ops);
	free(s->words);
	free(s->buffers);
	free(s->free_buffers);
}

static int sword_init(void *state, struct tor_instance *self,
		      const char *options)
{
	struct sword *s = state;
	int err = sword_parse(options, &s->opt);

	if (!err)
		err = tor_conns_init(&s->table, s->opt.conns,
				     sizeof(*s->conns));
	if (err)
		return err;
	s->self = self;
	s->tor = tor_instance_tor(self);
	s->c = tor_instance_counters(self);
	s->ready = s->opt.open;
	s->conns = (struct sword_conn *)s->table.first;
	s->word_buckets =
		u32_pow2_ceil((s->opt.words + SWORD_WAYS - 1) / SWORD_WAYS);
	s->ops = calloc((size_t)s->opt.conns * SWORD_DEPTH, sizeof(*s->ops));
	s->words =
		calloc((size_t)s->word_buckets * SWORD_WAYS, sizeof(*s->words));
	s->buffers = calloc(SWORD_BUFFERS, sizeof(*s->buffers));
	s->free_buffers = calloc(SWORD_BUFFERS, sizeof(*s->free_buffers));
	if (!s->ops || !s->words || !s->buffers || !s->free_buffers)
		return -ENOMEM;
	for (uint16_t i = 0; i < SWORD_BUFFERS; i++)
		s->free_buffers[s->free_count++] = i;
	return 0;
}

static unsigned sword_tables(const void *state,
			     struct tor_table table[TOR_TABLE_MAX])
{
	const struct sword *s = state;
	/* Addresses of both ends, and a queue pair number. */
	const uint32_t key = 32 + 32 + 24;
	unsigned n = 0;

	table[n++] = (struct tor_table){"servers", SWORD_SERVERS, 32,
					24 * 4 + 48 + 32, 1};
	table[n++] = (struct tor_table){"regions", SWORD_REGIONS, 32 + 64,
					64 + 16, 1};
	table[n++] = (struct tor_table){"connections by request", s->opt.conns,
					key, 16 + 24 * 3, 1};
	table[n++] = (struct tor_table){"connections by reply", s->opt.conns,
					key, 16, 1};
	/* State, PSN, MSN, word, two operands with masks, value before. */
	table[n++] = (struct tor_table){"operations",
					(uint64_t)s->opt.conns * SWORD_DEPTH, 0,
					3 + 24 + 24 + 64 + 4 * 64 + 64, 4};
	table[n++] = (struct tor_table){"shared packets",
					(uint64_t)SWORD_SERVERS * END_TX_WINDOW,
					0, 32 + 16 + 64, 2};
	table[n++] = (struct tor_table){"moved WRITEs", SWORD_BUFFERS, 0,
					WIRE_MTU_MAX * 8, 1};
	table[n++] = (struct tor_table){"words",
					(uint64_t)s->word_buckets * SWORD_WAYS,
					64 + 4, 64 + 8, 2};
	return n;
}

const struct tor_program tor_swordbox = {
	.name = "swordbox",
	.help = "puts atomics in order and replaces them by WRITEs",
	.counter_names = names,
	.counter_count = SWORD_COUNTER_COUNT,
	.state_bytes = sizeof(struct sword),
	.init = sword_init,
	.release = sword_release,
	.packet = sword_packet,
	.wants = sword_wants,
	.control = sword_control,
	.tables = sword_tables,
};
