/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client of a table of several replicas is killed before each of its
 * requests in turn: over a resize, over a change of two copies, over taking
 * over from a node that died, over units of keys that are not copied to the
 * next generation yet. Another one finds everything that was acknowledged, goes
 * on, and in the end the table is whole.
 */
#include <errno.h>
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
	OVERTAKEN = 6, /* times in one read */
	LOOK = 14,     /* requests of a look around and a read */
	PAIRS = KEYS / 2,
	POINTS_MAX = 3000,
	LIMIT_MS = 20000,
};

enum deed {
	RESIZE,
	CHANGE,	   /* of a pair; then its first node dies */
	TAKE_OVER, /* the first node dies, then the client comes */
	UNITS,	   /* of two keys each; then the first of two copies dies */
	READ,	   /* while others resize again and again */
};

struct scene {
	const char *name;
	enum deed deed;
	uint32_t shards, copies;
	bool kills; /* the first node dies after the client */
	bool ends;  /* the resize is ended before the node dies */
	/* This try. */
	unsigned left; /* requests until the end */
	bool is_armed, has_died, is_over;
	enum kv_point last;
	uint32_t units; /* that were done */
	unsigned retries;
	struct aq_kv_client *resizer; /* before requests of a READ */
	unsigned resizes;
	atomic_bool stop; /* resizes of the other */
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

/* What the victim is about to ask is not there any more then. */
static void overtake(struct scene *s)
{
	struct aq_kv_options same = {0};

	if (s->resizes == OVERTAKEN || s->left++ % LOOK != 1)
		return;
	s->resizes++;
	s->is_armed = false;
	MUST(s, aq_kv_resize(s->resizer, &same) == 0);
	s->is_armed = true;
}

static bool crash(void *ctx, int point)
{
	struct scene *s = ctx;

	if (!s->is_armed)
		return false;
	if (s->deed == READ) {
		overtake(s);
		return false;
	}
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

	cfg.stop = &s->stop;
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

/* From 1 to 2. */
static int pair_fn(struct aq_kv_change *ch, void *user)
{
	static const uint32_t one = 1, two = 2;
	struct scene *s = user;

	s->retries++;
	for (unsigned i = 0; i < 2; i++) {
		MUST(s, ch[i].value && ch[i].value_len == sizeof(one) &&
				memcmp(ch[i].value, &one, sizeof(one)) == 0);
		ch[i].verdict = AQ_KV_STORE;
		ch[i].new_value = &two;
		ch[i].new_value_len = sizeof(two);
	}
	return 0;
}

static int change_pairs(struct scene *s, struct aq_kv_client *c)
{
	int err = 0;

	s->retries = 0;
	for (s->units = 0; s->units < PAIRS; s->units++) {
		uint32_t key[2] = {s->units, s->units + PAIRS};
		struct aq_kv_key keys[2] = {{&key[0], sizeof(key[0])},
					    {&key[1], sizeof(key[1])}};

		err = aq_kv_unit(c, keys, 2, pair_fn, s);
		if (err)
			break;
	}
	/* Some keys must have had no room, or nothing was shown. */
	MUST(s, err || s->retries > PAIRS);
	return err;
}

/* Both keys of each have the same, which is 2 if the unit was done. Where its
 * client died between two copies and one of the keys was changed since, by the
 * copying, and then the first copy dies, the same need not be. */
static void see_pairs(struct scene *s, struct aq_kv_client *c)
{
	uint32_t value[2];
	size_t len;

	MUST(s, aq_kv_repair(c) == 0);
	for (uint32_t i = 0; i < PAIRS && !s->problem[0]; i++) {
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t key = i + k * PAIRS;

			MUST(s, aq_kv_get(c, &key, sizeof(key), &value[k],
					  sizeof(value[k]), &len) == 0);
		}
		MUST(s, value[0] == value[1] || (s->ends && i == s->units));
		MUST(s, i >= s->units || value[0] == 2);
		MUST(s, i <= s->units || value[0] == 1);
	}
}

/* The next generation's, of which the keys are to be. */
static void kill_next(struct scene *s)
{
	const struct kv_cluster_replica *at = s->cluster->replica;

	for (unsigned i = 0; i < s->cluster->replica_count; i++)
		if (at[i].id.name != at[0].id.name && at[i].id.copy == 0) {
			kv_cluster_kill(s->cluster, at[i].node);
			return;
		}
	MUST(s, !"there is a next generation");
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
	case UNITS:
		err = change_pairs(s, c);
		break;
	case READ:
		err = aq_kv_get(c, &key, sizeof(key), &value, sizeof(value),
				&len);
		MUST(s, err || value == 1);
		MUST(s, err || s->resizes == OVERTAKEN);
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

	if (s->deed == CHANGE || s->kills)
		kv_cluster_kill(s->cluster, s->cluster->replica[0].node);
	if (s->ends)
		MUST(s, aq_kv_resize(c, &(struct aq_kv_options){0}) == 0);
	if (s->deed == UNITS && s->copies > 1)
		kill_next(s);
	if (s->deed == UNITS) {
		see_pairs(s, c);
		put_keys(s, c, 1);
	}
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

/* A next generation with none of the keys. */
static void freeze(struct scene *s, struct aq_kv_client *c)
{
	struct aq_kv_options same = {0};

	s->stop = true;
	MUST(s, aq_kv_resize(c, &same) == -ECANCELED);
	s->stop = false;
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

	if (s->deed == UNITS) { /* for some keys others have to move */
		o.capacity = KEYS + 8;
		o.entries_per_row = 1;
	}
	MUST(s, kv_geometry_make(&o, &g) == 0);
	MUST(s, kv_replicas_make(&world, &g, KV_PHASE_STABLE, NULL) == 0);
	other = open_client(s, &s->other);
	victim = open_client(s, &s->victim);
	if (!s->problem[0]) {
		put_keys(s, other, 1);
		if (s->deed == TAKE_OVER)
			kv_cluster_kill(s->cluster,
					s->cluster->replica[0].node);
		if (s->deed == UNITS)
			freeze(s, other);
		s->resizer = other;
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
	      60);
	sweep((struct scene){.name = "resize, two shards in two copies",
			     .deed = RESIZE,
			     .shards = 2,
			     .copies = 2},
	      200);
	sweep((struct scene){.name = "resize, and the first copy is lost",
			     .deed = RESIZE,
			     .shards = 1,
			     .copies = 2,
			     .kills = true},
	      100);
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

/* What an older generation has stays visible when a unit needs room. */
static void units(void **state)
{
	sweep((struct scene){.name = "units in a resize",
			     .deed = UNITS,
			     .shards = 1,
			     .copies = 1},
	      20);
	sweep((struct scene){.name = "units in a resize, two copies",
			     .deed = UNITS,
			     .shards = 1,
			     .copies = 2},
	      40);
	sweep((struct scene){.name = "units in a resize that ends, two copies",
			     .deed = UNITS,
			     .shards = 1,
			     .copies = 2,
			     .ends = true},
	      40);
}

/* No node is lost when what a client looks for was dropped by a resize. */
static void reads_go_on(void **state)
{
	struct scene s = {.name = "read that resizes overtake",
			  .deed = READ,
			  .shards = 3,
			  .copies = 1};

	run_at(&s, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resizes),     cmocka_unit_test(changes),
		cmocka_unit_test(takes_over),  cmocka_unit_test(units),
		cmocka_unit_test(reads_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
