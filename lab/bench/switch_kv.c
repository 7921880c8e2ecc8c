/* SPDX-License-Identifier: Apache-2.0 */
/* A table in a memory node of its own, worked on by one client: through the
 * switch, or over a cable between the two. */
#include <aquifer/kv.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "kv_bench.h"
#include "place.h"
#include "switch_bench.h"
#include "ticks.h"

enum {
	RECORDS = 4096,
	DRAWS = 1 << 14,
	DEPTH_MAX = 16,
	PUT_EVERY = 16, /* about YCSB-B */
	DIR_MAX = 64,
};

struct state {
	pid_t node;
	char dir[DIR_MAX];
	struct aq_rack *rack;
	struct aq_kv *kv;
	struct aq_kv_client *c;
	uint32_t *keys;
	uint64_t at;
};

/* Each subject has a directory of its own. For one with cables it is the
 * runtime directory, so that its client finds its node. Those at the switch are
 * in the switch's, where any node serves any client: they take turns. */
static void enter(struct side *s, struct state *st)
{
	const struct switch_param *p = s->param;

	snprintf(st->dir, sizeof(st->dir), "/tmp/aquifer-%s-kv-%d-%u", p->rack,
		 p->is_at_switch, p->depth);
	(void)!mkdir(st->dir, 0700); /* the other process may have made it */
	if (!p->is_at_switch)
		(void)setenv("AQUIFER_RUNDIR", st->dir, 1);
	(void)setenv("AQUIFER_STATEDIR", st->dir, 1);
	(void)setenv("AQUIFER_CONFIG", "/dev/null", 1); /* nobody's settings */
}

/* ---- the node ------------------------------------------------------------ */

static int setup_server(struct side *s, struct state *st)
{
	const struct switch_param *p = s->param;
	char name[16];

	snprintf(name, sizeof(name), "m%u", p->depth);
	/* It says that the switch's socket is elsewhere. */
	st->node = place_start_aquifer(PLACE_QUIET, "memory", "--size", "32M",
				       "--name", name, (char *)NULL);
	return st->node < 0 ? side_fail(s, (int)st->node, "the node") : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	if (s->role == SIDE_SERVER) {
		place_end(st->node);
		place_remove(st->dir);
	}
}

/* ---- the client ---------------------------------------------------------- */

static int load(struct state *s)
{
	char key[KV_BENCH_KEY_BYTES + 1];
	int err = 0;

	for (uint32_t i = 0; i < RECORDS && !err; i++) {
		kv_bench_key(i, key);
		err = aq_kv_put(s->c, key, KV_BENCH_KEY_BYTES, key,
				KV_BENCH_VALUE_BYTES, NULL);
	}
	return err;
}

static int setup_client(struct side *s, struct state *st)
{
	const struct aq_kv_options o = {.capacity = 2 * RECORDS,
					.entry_bytes = 32,
					.extent_bytes = 1 << 20,
					.flags = AQ_KV_FIXED,
					.seed = 1};
	const struct switch_param *p = s->param;
	char table[16];
	int err = place_rack(&st->rack);

	snprintf(table, sizeof(table), "bench%u", p->depth);
	if (!err)
		err = aq_kv_create(st->rack, table, &o, &st->kv);
	if (!err)
		err = aq_kv_client_open(st->kv, NULL, &st->c);
	if (!err)
		err = load(st);
	if (err)
		return side_fail(s, err, aq_last_error());
	st->keys = kv_bench_zipf(RECORDS, DRAWS, 1);
	return st->keys ? 0 : side_fail(s, -ENOMEM, "keys");
}

static int setup(struct side *s)
{
	struct state *st = calloc(1, sizeof(*st));

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	enter(s, st);
	return s->role == SIDE_CLIENT ? setup_client(s, st)
				      : setup_server(s, st);
}

/* ---- one at a time ------------------------------------------------------- */

static int step(struct state *s)
{
	char key[KV_BENCH_KEY_BYTES + 1], value[KV_BENCH_VALUE_BYTES];
	size_t len;

	kv_bench_key(s->keys[s->at % DRAWS], key);
	if (s->at++ % PUT_EVERY == PUT_EVERY - 1)
		return aq_kv_put(s->c, key, KV_BENCH_KEY_BYTES, key,
				 KV_BENCH_VALUE_BYTES, NULL);
	return aq_kv_get(s->c, key, KV_BENCH_KEY_BYTES, value, sizeof(value),
			 &len);
}

static int run_single(struct side *s, uint64_t end_ns, uint64_t *ops)
{
	struct state *st = s->state;
	int err = 0;

	for (*ops = 0; !err && bench_now_ns() < end_ns; (*ops)++) {
		uint64_t t0 = bench_ticks();

		err = step(st);
		side_sample(s, 0, bench_ticks() - t0);
	}
	return err;
}

/* ---- always so many reads under way -------------------------------------- */

struct slot {
	struct aq_kv_op op;
	char key[KV_BENCH_KEY_BYTES + 1];
	char value[KV_BENCH_VALUE_BYTES];
};

static int submit(struct state *s, struct slot *slot)
{
	kv_bench_key(s->keys[s->at++ % DRAWS], slot->key);
	slot->op = (struct aq_kv_op){.kind = AQ_KV_OP_GET,
				     .key = slot->key,
				     .key_len = KV_BENCH_KEY_BYTES,
				     .value = slot->value,
				     .value_len = KV_BENCH_VALUE_BYTES,
				     .user = slot};
	return aq_kv_submit(s->c, &slot->op);
}

static int run_pipeline(struct state *s, uint32_t depth, uint64_t end_ns,
			uint64_t *ops)
{
	struct slot slots[DEPTH_MAX];
	struct aq_kv_op *done[DEPTH_MAX];
	unsigned under_way = 0;
	int err = 0, n = 0;

	*ops = 0;
	for (; !err && under_way < depth; under_way++)
		err = submit(s, &slots[under_way]);
	while (!err && under_way) {
		bool over = bench_now_ns() >= end_ns;

		n = aq_kv_poll(s->c, done, DEPTH_MAX, true);
		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++) {
			err = done[i]->err;
			(*ops)++;
			if (over)
				under_way--;
			else if (!err)
				err = submit(s, done[i]->user);
		}
	}
	return err;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	const struct switch_param *p = s->param;
	uint64_t end_ns = bench_now_ns() + window_ns;
	int err = p->depth == 1
			  ? run_single(s, end_ns, &out->ops)
			  : run_pipeline(s->state, p->depth, end_ns, &out->ops);

	return err ? side_fail(s, err, "an operation") : 0;
}

const struct side_ops switch_kv_ops = {
	.setup = setup,
	.measure = measure,
	.teardown = teardown,
};
