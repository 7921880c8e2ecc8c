/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of a table of several replicas is killed before each of its
 * requests in turn: over a resize, over a change of two copies, over taking
 * over from a node that died. Another one finds everything that was
 * acknowledged, goes on, and in the end the table is whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plays/kv_cluster.h"

enum {
	KEYS = 12,
	POINTS_MAX = 3000,
	LIMIT_MS = 20000,
};

enum deed {
	RESIZE,
	CHANGE,	   /* of a pair; then its first node dies */
	TAKE_OVER, /* the first node dies, then the client comes */
};

struct scene {
	const char *name;
	enum deed deed;
	uint32_t shards, copies;
	/* This try. */
	unsigned left; /* requests until the end */
	bool is_armed, has_died, is_over;
	enum kv_point last;
	struct rig_stage *stage;
	struct kv_cluster *cluster;
	struct kv_cluster_client victim, other;
	char problem[200];
};

#define MUST(s, condition)                                                \
	do {                                                              \
		if (!(condition) && !(s)->problem[0])                     \
			snprintf((s)->problem, sizeof((s)->problem),      \
				 "line %d: %s; %s", __LINE__, #condition, \
				 aq_last_error());                        \
	} while (0)

static bool crash(void *ctx, int point)
{
	struct scene *s = ctx;

	if (!s->is_armed)
		return false;
	s->last = point;
	if (s->left-- > 0)
		return false;
	s->has_died = true;
	return true;
}

static struct aq_kv_client *open_client(struct scene *s,
					struct kv_cluster_client *v)
{
	struct kv_client_config cfg = {
		.options = {.deadline_ms = 3000, .depth = 4}, .rng_seed = 3};
	struct kv_world world = kv_cluster_world(v);
	struct aq_kv_client *c = NULL;

	if (v == &s->victim) {
		cfg.crash = crash;
		cfg.ctx = s;
	}
	MUST(s, kv_client_open(&world, &cfg, &c) == 0);
	return c;
}

static void put_keys(struct scene *s, struct aq_kv_client *c, uint32_t value)
{
	for (uint32_t i = 0; i < KEYS; i++)
		MUST(s, aq_kv_put(c, &i, sizeof(i), &value, sizeof(value),
				  NULL) == 0);
}

static void see_keys(struct scene *s, struct aq_kv_client *c, uint32_t want)
{
	uint32_t i, value;
	size_t len;

	for (i = 0; i < KEYS && !s->problem[0]; i++) {
		value = 0;
		MUST(s, aq_kv_get(c, &i, sizeof(i), &value, sizeof(value),
				  &len) == 0);
		MUST(s, value == want);
	}
}

static void act(struct scene *s, struct aq_kv_client *c)
{
	struct aq_kv_options o = {.capacity = 200};
	uint32_t key = 3, value = 2;
	size_t len;
	int err = 0;

	switch (s->deed) {
	case RESIZE:
		err = aq_kv_resize(c, &o);
		break;
	case CHANGE:
		err = aq_kv_put(c, &key, sizeof(key), &value, sizeof(value),
				NULL);
		break;
	case TAKE_OVER:
		err = aq_kv_get(c, &key, sizeof(key), &value, sizeof(value),
				&len);
		MUST(s, err || value == 1);
		if (!err)
			err = aq_kv_put(c, &key, sizeof(key), "2\0\0", 4, NULL);
		break;
	}
	MUST(s, err == (s->has_died ? -ESHUTDOWN : 0));
}

/* What the victim was at may have happened or not; nothing else has changed. */
static void go_on(struct scene *s, struct aq_kv_client *c)
{
	uint32_t key = 3, value = 0, gone = KEYS + 5;
	struct aq_kv_options o = {.capacity = 200};
	size_t len;

	if (s->deed == CHANGE)
		kv_cluster_kill(s->cluster, s->cluster->replica[0].node);
	MUST(s,
	     aq_kv_get(c, &key, sizeof(key), &value, sizeof(value), &len) == 0);
	MUST(s, value == 1 || s->deed != RESIZE);
	MUST(s, aq_kv_put(c, &key, sizeof(key), &(uint32_t){1}, 4, NULL) == 0);
	see_keys(s, c, 1);
	MUST(s, aq_kv_put(c, &gone, sizeof(gone), "x", 1, NULL) == 0);
	MUST(s, aq_kv_del(c, &gone, sizeof(gone)) == 0);
	put_keys(s, c, 7);
	MUST(s, aq_kv_resize(c, &o) == 0);
	see_keys(s, c, 7);
	MUST(s, aq_kv_get(c, &gone, sizeof(gone), &value, sizeof(value),
			  &len) == -ENOENT);
}

static void check_all(struct scene *s, struct aq_kv_client *c)
{
	struct aq_kv_health h = {0};
	struct aq_kv_report r = {0};

	MUST(s, aq_kv_repair(c) == 0);
	MUST(s, aq_kv_check(c, &r) == 0);
	MUST(s, !r.bad_rows && !r.bad_entries && !r.duplicates);
	MUST(s, !r.locks_held && !r.bad_extents && !r.leaked_extents);
	MUST(s, r.used == KEYS);
	MUST(s, r.clients == 1);
	MUST(s, aq_kv_get_health(c, &h) == 0);
	MUST(s, !h.shards_lost && !h.shards_single && !h.is_growing);
	MUST(s, h.capacity == 200 || h.capacity == 204);
}

static void play(void *arg)
{
	struct scene *s = arg;
	struct aq_kv_options o = {.capacity = 120,
				  .entry_bytes = 32,
				  .entries_per_row = 4,
				  .clients = 6,
				  .extent_bytes = 65536,
				  .chunk_bytes = 65536,
				  .rows_per_lock = 4,
				  .failure_ms = 20,
				  .seed = 9,
				  .shards = s->shards,
				  .copies = s->copies};
	struct kv_world world = kv_cluster_world(&s->other);
	struct aq_kv_client *victim, *other;
	struct kv_geometry g;

	MUST(s, kv_geometry_make(&o, &g) == 0);
	MUST(s, kv_replicas_make(&world, &g, KV_PHASE_STABLE) == 0);
	other = open_client(s, &s->other);
	victim = open_client(s, &s->victim);
	if (!s->problem[0]) {
		put_keys(s, other, 1);
		if (s->deed == TAKE_OVER)
			kv_cluster_kill(s->cluster,
					s->cluster->replica[0].node);
		s->is_armed = true;
		act(s, victim);
		s->is_armed = false;
		s->victim.is_dead = s->has_died;
	}
	kv_client_destroy(victim);
	if (!s->problem[0])
		go_on(s, other);
	if (!s->problem[0])
		check_all(s, other);
	kv_client_destroy(other);
	s->is_over = true;
	sim_stop(rig_stage_sim(s->stage));
}

static void run_at(struct scene *s, unsigned n)
{
	struct rig_stage_config cfg = {.seed = 1,
				       .link = {.latency_ps = 1000 * SIM_NS,
						.bits_per_s = 25000000000ull}};
	unsigned i;

	s->left = n;
	s->is_armed = s->has_died = s->is_over = false;
	s->problem[0] = '\0';
	s->cluster = calloc(1, sizeof(*s->cluster));
	assert_non_null(s->cluster);
	assert_int_equal(rig_stage_create(&cfg, &s->stage), 0);
	s->cluster->node_count = KV_CLUSTER_NODES;
	for (i = 0; i < KV_CLUSTER_NODES; i++)
		assert_int_equal(
			rig_host_add(s->stage, "node", &s->cluster->node[i]),
			0);
	s->victim = (struct kv_cluster_client){.cluster = s->cluster};
	s->other = s->victim;
	assert_int_equal(rig_host_add(s->stage, "victim", &s->victim.host), 0);
	assert_int_equal(rig_host_add(s->stage, "other", &s->other.host), 0);
	/* A host of its own: the victim is a program, not a machine. */
	assert_int_equal(rig_host_spawn(s->other.host, "play", play, s), 0);
	(void)sim_run_until(rig_stage_sim(s->stage), LIMIT_MS * SIM_MS);
	if (!s->is_over && !s->problem[0])
		snprintf(s->problem, sizeof(s->problem), "it does not end");
	rig_stage_destroy(s->stage);
	free(s->cluster);
	if (s->problem[0])
		fail_msg("%s, %u (before: %s): %s", s->name, n,
			 kv_point_name(s->last), s->problem);
}

static void sweep(struct scene s, unsigned least)
{
	unsigned n = 0, step = getenv("AQUIFER_TEST_FULL") ? 1
			       : s.deed == RESIZE	   ? 5
							   : 1;

	do
		run_at(&s, n);
	while (s.has_died && (n += step) < POINTS_MAX);
	print_message("%s: %u places to die\n", s.name, n);
	assert_true(n > least && n < POINTS_MAX);
}

static void resizes(void **state)
{
	sweep((struct scene){.name = "resize",
			     .deed = RESIZE,
			     .shards = 1,
			     .copies = 1},
	      100);
	sweep((struct scene){.name = "resize, two shards in two copies",
			     .deed = RESIZE,
			     .shards = 2,
			     .copies = 2},
	      200);
}

static void changes(void **state)
{
	sweep((struct scene){.name = "change of two copies",
			     .deed = CHANGE,
			     .shards = 1,
			     .copies = 2},
	      10);
}

static void takes_over(void **state)
{
	sweep((struct scene){.name = "taking over",
			     .deed = TAKE_OVER,
			     .shards = 1,
			     .copies = 2},
	      8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resizes),
		cmocka_unit_test(changes),
		cmocka_unit_test(takes_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
