/* SPDX-License-Identifier: Apache-2.0 */
/* Steering as a program of the switch: its life, its resources. */
#include "steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define NAME(name) #name,
	STEER_COUNTERS(NAME)
#undef NAME
};

static void steer_release(void *state)
{
	struct steer *s = state;

	timer_cancel(tor_timers(s->tor), &s->timer);
	timer_cancel(tor_timers(s->tor), &s->held_timer);
	tor_conns_release(&s->table);
	free(s->held);
	free(s->ops);
	free(s->entries);
	free(s->past);
}

static int make_tables(struct steer *s)
{
	int err = tor_conns_init(&s->table, s->opt.conns, sizeof(*s->conns));

	s->conns = (struct steer_conn *)s->table.first;
	s->ways = u32_min(s->opt.keys, STEER_WAYS);
	s->buckets = s->opt.keys / s->ways;
	s->past_mask = u32_pow2_ceil(s->opt.history) - 1;
	s->ops = calloc((size_t)s->opt.conns * STEER_DEPTH, sizeof(*s->ops));
	s->entries = calloc((size_t)s->buckets * s->ways, sizeof(*s->entries));
	s->held = calloc(STEER_HELD, sizeof(*s->held));
	s->past = calloc((size_t)s->past_mask + 1, sizeof(*s->past));
	return !err && s->held && s->ops && s->entries && s->past ? 0 : -ENOMEM;
}

static bool steer_wants(const void *state, const uint8_t src_ip[16],
			const uint8_t dst_ip[16])
{
	const struct steer *s = state;

	for (unsigned i = 0; i < STEER_STORES; i++)
		if (s->stores[i].used &&
		    (memcmp(s->stores[i].server_ip, src_ip, 16) == 0 ||
		     memcmp(s->stores[i].server_ip, dst_ip, 16) == 0))
			return true;
	return false;
}

static int steer_init(void *state, struct tor_instance *self,
		      const char *options)
{
	struct steer *s = state;
	int err;

	s->self = self;
	s->tor = tor_instance_tor(self);
	s->c = tor_instance_counters(self);
	timer_init(&s->timer, steer_timer_fired);
	timer_init(&s->held_timer, steer_held_timer_fired);
	err = steer_parse(options, &s->opt);
	return err ? err : make_tables(s);
}

static unsigned steer_tables(const void *state,
			     struct tor_table table[TOR_TABLE_MAX])
{
	const struct steer *s = state;
	/* Addresses of both ends, and a queue pair number. */
	const uint32_t key = 32 + 32 + 24;
	unsigned n = 0;

	table[n++] = (struct tor_table){"stores", STEER_STORES, 32 + 32 + 64,
					64 + 48 + 13, 1};
	table[n++] = (struct tor_table){"connections by request", s->opt.conns,
					key, 16 + 64 + 64, 1};
	table[n++] = (struct tor_table){"connections by reply", s->opt.conns,
					key, 16, 1};
	/* State, PSN, MSN, three pointers, references before and behind. */
	table[n++] = (struct tor_table){"appends",
					(uint64_t)s->opt.conns * STEER_DEPTH, 0,
					3 + 24 + 24 + 3 * 64 + 3 * 32, 4};
	table[n++] = (struct tor_table){"reads",
					(uint64_t)s->opt.conns * STEER_READS, 0,
					24 + 64 + 32, 2};
	/* In a circle, at an MTU each. */
	table[n++] = (struct tor_table){"answers that wait", STEER_HELD, 0,
					WIRE_MTU_MAX * 8, 1};
	table[n++] = (struct tor_table){"keys", (uint64_t)s->buckets * s->ways,
					64 + 4, 64 + 64 + 32, 2};
	table[n++] = (struct tor_table){"keys of versions",
					(uint64_t)s->past_mask + 1, 0,
					34 + 64 + 4, 2};
	table[n++] = (struct tor_table){"sketch", STEER_SKETCH, 0, 8, 2};
	return n;
}

const struct tor_program tor_steer = {
	.name = "steer",
	.help = "sends appends and reads of version lists to their end",
	.counter_names = names,
	.counter_count = STEER_COUNTER_COUNT,
	.state_bytes = sizeof(struct steer),
	.init = steer_init,
	.release = steer_release,
	.packet = steer_packet,
	.wants = steer_wants,
	.control = steer_control,
	.tables = steer_tables,
};
