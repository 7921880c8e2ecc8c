/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table grows, and whoever copied its keys is dead. Others put new keys into
 * the next generation for as long as they may. It must not get so full that the
 * keys of the old one find no place there: the copying could never end.
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
	WRITERS = 6,
	UNIT_KEYS = 2,
	CAPACITY = 300,
	OLD_KEYS = 270,
	SEEDS = 12,
	DEADLINE_MS = 40,
	LIMIT_MS = 60000,
};

struct scene {
	uint32_t seed, writers;
	bool units;    /* put new keys */
	uint32_t keys; /* that were put */
	unsigned wishes;
	bool is_over;
	atomic_bool stop; /* the copying */
	struct rig_stage *stage;
	struct kv_cluster *cluster;
	struct kv_cluster_client side;
	char problem[200];
};

#define MUST(s, condition)                                               \
	do {                                                             \
		if (!(condition) && !(s)->problem[0])                    \
			snprintf((s)->problem, sizeof((s)->problem),     \
				 "seed %u, line %d: %s; %s", (s)->seed,  \
				 __LINE__, #condition, aq_last_error()); \
	} while (0)

/* Nobody does anything about it. */
static int note_wish(void *ctx, const struct kv_wish *w)
{
	struct scene *s = ctx;

	s->wishes += w->kind == KV_WISH_END;
	return 0;
}

static struct aq_kv_client *open_client(struct scene *s, bool wishes)
{
	struct kv_client_config cfg = {
		.options = {.deadline_ms = DEADLINE_MS, .depth = 4},
		.rng_seed = s->seed,
		.wish = wishes ? note_wish : NULL,
		.wish_ctx = s};
	struct kv_world world = kv_cluster_world(&s->side);
	struct aq_kv_client *c = NULL;

	cfg.stop = &s->stop;
	MUST(s, kv_client_open(&world, &cfg, &c) == 0);
	return c;
}

static int store_fn(struct aq_kv_change *ch, void *user)
{
	uint32_t *key = user;

	for (unsigned i = 0; i < UNIT_KEYS; i++) {
		ch[i].verdict = AQ_KV_STORE;
		ch[i].new_value = &key[i];
		ch[i].new_value_len = sizeof(key[i]);
	}
	return 0;
}

/* Two keys as one. */
static int put_unit(struct scene *s, struct aq_kv_client *c)
{
	uint32_t key[UNIT_KEYS] = {s->keys, s->keys + 1};
	struct aq_kv_key keys[UNIT_KEYS] = {{&key[0], sizeof(key[0])},
					    {&key[1], sizeof(key[1])}};
	int err = aq_kv_unit(c, keys, UNIT_KEYS, store_fn, key);

	s->keys += err ? 0 : UNIT_KEYS;
	return err;
}

static int put_next(struct scene *s, struct aq_kv_client *c)
{
	int err = aq_kv_put(c, &s->keys, sizeof(s->keys), &s->keys,
			    sizeof(s->keys), NULL);

	s->keys += !err;
	return err;
}

/* In turn, until nobody may any more. */
static void fill(struct scene *s)
{
	struct aq_kv_client *c[WRITERS];
	unsigned i, full = 0;

	for (i = 0; i < s->writers; i++)
		c[i] = open_client(s, true);
	for (i = 0; full < s->writers && !s->problem[0]; i++) {
		int err = s->units ? put_unit(s, c[i % s->writers])
				   : put_next(s, c[i % s->writers]);

		MUST(s, err == 0 || err == -ENOSPC);
		full = err ? full + 1 : 0;
	}
	for (i = 0; i < s->writers; i++)
		kv_client_destroy(c[i]);
	MUST(s, s->wishes > 0);
}

static void see_keys(struct scene *s, struct aq_kv_client *c)
{
	for (uint32_t i = 0, value = 0; i < s->keys && !s->problem[0]; i++) {
		size_t len;

		MUST(s, aq_kv_get(c, &i, sizeof(i), &value, sizeof(value),
				  &len) == 0);
		MUST(s, value == i);
	}
}

static void play(void *arg)
{
	struct scene *s = arg;
	struct aq_kv_options o = {.capacity = CAPACITY,
				  .entry_bytes = 32,
				  .clients = WRITERS + 2,
				  .extent_bytes = 65536,
				  .chunk_bytes = 65536,
				  .failure_ms = 20,
				  .seed = s->seed};
	struct aq_kv_options more = {.capacity = 2 * CAPACITY}, same = {0};
	struct kv_world world = kv_cluster_world(&s->side);
	struct aq_kv_client *copier;
	struct kv_geometry g;

	MUST(s, kv_geometry_make(&o, &g) == 0);
	MUST(s, kv_replicas_make(&world, &g, KV_PHASE_STABLE, NULL) == 0);
	copier = open_client(s, false);
	while (s->keys < OLD_KEYS && !s->problem[0])
		MUST(s, put_next(s, copier) == 0);
	s->stop = true;
	MUST(s, aq_kv_resize(copier, &more) == -ECANCELED);
	s->stop = false;
	if (!s->problem[0])
		fill(s);
	/* There was some room for others, and all of it can be copied. */
	MUST(s, s->keys > OLD_KEYS + s->writers);
	MUST(s, aq_kv_resize(copier, &same) == 0);
	see_keys(s, copier);
	kv_client_destroy(copier);
	s->is_over = true;
	sim_stop(rig_stage_sim(s->stage));
}

/* Generations have names of 16 bits, of which each try takes one. */
static void come_round(void *arg)
{
	struct scene *s = arg;
	struct aq_kv_options o = {.capacity = CAPACITY,
				  .entry_bytes = 32,
				  .clients = 4,
				  .failure_ms = 20,
				  .seed = s->seed};
	struct kv_world world = kv_cluster_world(&s->side);
	struct aq_kv_client *c;
	struct kv_geometry g;

	MUST(s, kv_geometry_make(&o, &g) == 0);
	g.name = 0xffff;
	MUST(s, kv_replicas_make(&world, &g, KV_PHASE_STABLE, NULL) == 0);
	c = open_client(s, false);
	for (unsigned i = 0; i < 3 && !s->problem[0]; i++) {
		o = (struct aq_kv_options){.capacity = (2 + i) * CAPACITY};
		MUST(s, put_next(s, c) == 0);
		MUST(s, aq_kv_resize(c, &o) == 0);
	}
	see_keys(s, c);
	kv_client_destroy(c);
	s->is_over = true;
	sim_stop(rig_stage_sim(s->stage));
}

static void run(struct scene *s, void (*what)(void *))
{
	struct rig_stage_config cfg = {.seed = s->seed,
				       .link = {.latency_ps = 1000 * SIM_NS,
						.bits_per_s = 25000000000ull}};

	s->cluster = calloc(1, sizeof(*s->cluster));
	assert_non_null(s->cluster);
	assert_int_equal(rig_stage_create(&cfg, &s->stage), 0);
	s->cluster->node_count = 1;
	assert_int_equal(rig_host_add(s->stage, "node", &s->cluster->node[0]),
			 0);
	s->side = (struct kv_cluster_client){.cluster = s->cluster};
	assert_int_equal(rig_host_add(s->stage, "side", &s->side.host), 0);
	assert_int_equal(rig_host_spawn(s->side.host, "play", what, s), 0);
	(void)sim_run_until(rig_stage_sim(s->stage), LIMIT_MS * SIM_MS);
	if (!s->is_over && !s->problem[0])
		snprintf(s->problem, sizeof(s->problem), "it does not end");
	rig_stage_destroy(s->stage);
	free(s->cluster);
	if (s->problem[0])
		fail_msg("%s", s->problem);
}

static void what_is_copied_finds_room(void **state)
{
	for (uint32_t seed = 1; seed <= SEEDS; seed++) {
		struct scene s = {.seed = seed, .writers = 1 + seed % WRITERS};

		run(&s, play);
	}
}

static void names_come_round(void **state)
{
	struct scene s = {.seed = 1};

	run(&s, come_round);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_copied_finds_room),
		cmocka_unit_test(names_come_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
