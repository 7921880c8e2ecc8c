/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench offload` rests on: the hash probe finds every record where it was
 * put, and ratios are medians over rounds, void where they must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/offload_bench.h"
#include "bench/probe.h"

static void test_probe(void **state)
{
	static const uint32_t sizes[] = {8, 64, 512};
	enum {
		RECORDS = 1003,
		DRAWS = 20000
	};

	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t far_bytes = probe_far_bytes(RECORDS, sizes[i]);
		uint8_t *far = malloc(far_bytes);
		unsigned near = 0;
		struct probe p;

		assert_non_null(far);
		/* In two pieces: a region is filled piece by piece. */
		probe_far_fill(far, 0, 500, sizes[i]);
		probe_far_fill(far + 500 * sizes[i], 500,
			       far_bytes / sizes[i] - 500, sizes[i]);
		assert_int_equal(probe_init(&p, RECORDS, sizes[i], 1), 0);
		for (unsigned k = 0; k < DRAWS; k++) {
			uint64_t key;
			uint64_t place = probe_draw(&p, &key);
			uint64_t at = place & ~PROBE_NEAR;

			if (place & PROBE_NEAR) {
				near++;
				assert_true(probe_check(p.near + at, sizes[i],
							key));
			} else {
				assert_true(at + sizes[i] <= far_bytes);
				assert_true(
					probe_check(far + at, sizes[i], key));
				assert_false(probe_check(far + at, sizes[i],
							 key + 1));
			}
		}
		/* Five of a hundred. */
		assert_true(near > DRAWS / 25 && near < DRAWS / 16);
		probe_release(&p);
		free(far);
	}
}

/* ---- what a bench makes of it -------------------------------------------- */

struct rig {
	struct bench b;
	struct offload_plan *plan;
};

static void begin(struct rig *r, const char *only)
{
	*r = (struct rig){.b = {.def = &bench_offload, .rounds = 3}};
	r->b.only = only;
	r->plan = calloc(1, sizeof(*r->plan));
	assert_non_null(r->plan);
	offload_plan_init(r->plan);
	bench_open(&r->b);
}

static void end(struct rig *r)
{
	for (unsigned i = 0; i < r->plan->group_count; i++)
		free(r->plan->group[i].track);
	free(r->plan);
	bench_close(&r->b);
}

/* A subject of a group that has run; NULL: there is none. */
static struct conduct_track *track(struct rig *r, const char *group,
				   const char *name)
{
	for (unsigned i = 0; i < r->plan->group_count; i++) {
		struct conduct_group *g = &r->plan->group[i];

		if (strcmp(g->name, group) != 0)
			continue;
		if (!g->track)
			g->track = calloc(g->subject_count, sizeof(*g->track));
		assert_non_null(g->track);
		for (unsigned k = 0; k < g->subject_count; k++)
			g->track[k].desc = g->subject[k];
		for (unsigned k = 0; k < g->subject_count; k++)
			if (strcmp(g->subject[k]->name, name) == 0)
				return &g->track[k];
	}
	return NULL;
}

static void judge(struct rig *r)
{
	(void)json_object_clear(r->b.ratios);
	(void)json_object_clear(r->b.bounds);
	(void)json_object_clear(r->b.voids);
	bench_judge(&r->b, r->plan->group, r->plan->group_count);
}

static double value(struct rig *r, const char *name)
{
	return json_number_value(json_object_get(r->b.ratios, name));
}

static bool is_kept(struct rig *r, const char *name)
{
	return json_is_true(
		json_object_get(json_object_get(r->b.bounds, name), "kept"));
}

static const char *why_void(struct rig *r, const char *name)
{
	return json_string_value(json_object_get(r->b.voids, name));
}

/* The median of the ratios of the rounds, and not the ratio of the medians;
 * however fast the peer is, and whatever it was on another machine. */
static void a_ratio_is_judged_by_its_own_run(void **state)
{
	const char *name = "cow64_vs_sync_verbs";
	struct conduct_track *cow, *sync;
	struct rig r;

	begin(&r, name);
	cow = track(&r, "probe64", "cow");
	sync = track(&r, "probe64", "sync");
	/* 4, 2 and 6 times. A round that only one has does not count. */
	conduct_record(cow, 0, 400, 1000000000);
	conduct_record(cow, 1, 200, 1000000000);
	conduct_record(cow, 2, 600, 1000000000);
	conduct_record(sync, 0, 100, 1000000000);
	conduct_record(sync, 1, 100, 1000000000);
	judge(&r);
	assert_true(value(&r, name) == 3 && is_kept(&r, name));
	conduct_record(sync, 2, 100, 1000000000);
	judge(&r);
	assert_true(value(&r, name) == 4 && is_kept(&r, name));
	for (unsigned i = 0; i < 3; i++) {
		cow->round[i].ops *= 1000;
		sync->round[i].ops *= 1000;
	}
	judge(&r);
	assert_true(value(&r, name) == 4 && !why_void(&r, name));
	for (unsigned i = 0; i < 3; i++)
		sync->round[i].ops *= 2;
	judge(&r);
	assert_true(value(&r, name) == 2 && !is_kept(&r, name));
	assert_int_equal(bench_exit_code(&r.b), BENCH_RAN);
	r.b.check = true;
	assert_int_equal(bench_exit_code(&r.b), BENCH_MISSED);
	end(&r);
}

static void what_cannot_be_judged_says_why(void **state)
{
	const char *name = "cow64_vs_sync_verbs";
	struct conduct_track *cow, *sync;
	struct rig r;
	json_t *o;

	begin(&r, name);
	cow = track(&r, "probe64", "cow");
	sync = track(&r, "probe64", "sync");
	conduct_record(cow, 0, 400, 1000000000);
	conduct_record(cow, 1, 400, 1000000000);
	conduct_record(sync, 0, 100, 1000000000);
	judge(&r);
	assert_string_equal(why_void(&r, name), "sync: foreign load in all but "
						"1 of 3 rounds");
	snprintf(sync->why, sizeof(sync->why), "it died");
	judge(&r);
	assert_string_equal(why_void(&r, name), "it died");
	assert_null(json_object_get(r.b.ratios, name));
	/* A run that could not go on is the reason of all that is missing. */
	(void)json_object_clear(r.b.voids);
	(void)bench_fail(&r.b, -1, "no rack");
	o = bench_object(&r.b);
	assert_string_equal(why_void(&r, name), "no rack");
	assert_int_equal(json_object_size(r.b.voids), 1); /* --only */
	assert_int_equal(bench_exit_code(&r.b), BENCH_FAILED);
	json_decref(o);
	end(&r);
}

/* A share that stands alone. */
static void a_share_needs_no_peer(void **state)
{
	struct conduct_track *t;
	struct rig r;

	begin(&r, NULL);
	r.b.rounds = 1;
	t = track(&r, "hlog64", "cow_timed");
	conduct_record(t, 0, 1, 1000000000);
	t->round[0].more[SIDE_MORE_COMM] = 0.6;
	t->round[0].more[SIDE_MORE_EMPTY] = 0.5;
	judge(&r);
	assert_true(value(&r, "hlog_comm_ratio") == 0.6);
	assert_false(is_kept(&r, "hlog_comm_ratio"));
	assert_true(value(&r, "hlog_comm_busy_ratio") > 0.199 &&
		    value(&r, "hlog_comm_busy_ratio") < 0.201);
	assert_null(json_object_get(r.b.bounds, "hlog_comm_busy_ratio"));
	end(&r);
}

/* Every ratio names subjects that exist, and can be asked for alone. */
static void every_ratio_has_its_subjects(void **state)
{
	unsigned bounds = 0;
	struct rig r;

	begin(&r, NULL);
	for (const struct bench_ratio *q = offload_ratios; q->name; q++) {
		assert_non_null(track(&r, q->group, q->ours));
		if (q->peer)
			assert_non_null(track(&r, q->group, q->peer));
		r.b.only = q->name;
		assert_true(bench_wants_ratio(&r.b, q));
		assert_true(bench_wants(&r.b, q->group));
		bounds += q->must != NULL;
	}
	assert_int_equal(bounds, 13);
	r.b.only = "hlog_comm_ratio";
	assert_true(bench_wants(&r.b, "hlog64"));
	assert_false(bench_wants(&r.b, "caller64"));
	r.b.only = "nothing";
	assert_false(bench_wants_any(&r.b));
	end(&r);
}

static int parse(struct bench *b, const char *a, const char *v)
{
	char *argv[] = {"offload", (char *)(uintptr_t)a, (char *)(uintptr_t)v,
			NULL};

	*b = (struct bench){.def = &bench_offload};
	return bench_parse(b, v ? 3 : a ? 2 : 1, argv);
}

static void options_are_one_table(void **state)
{
	struct bench b;

	assert_int_equal(parse(&b, NULL, NULL), -1);
	assert_int_equal(bench_number(&b, "store"), 72);
	assert_null(bench_word(&b, "dir"));
	assert_int_equal(parse(&b, "--quick", NULL), -1);
	assert_int_equal(bench_number(&b, "store"), 16);
	assert_int_equal(parse(&b, "--store", "8"), -1);
	assert_int_equal(bench_number(&b, "store"), 8);
	assert_int_equal(parse(&b, "--rounds", "101"), -1);
	assert_int_equal(b.rounds, 101);
	assert_int_equal(parse(&b, "--store", "7"), BENCH_USAGE);
	assert_int_equal(parse(&b, "--rounds", "0"), BENCH_USAGE);
	assert_int_equal(parse(&b, "--rounds", "-1"), BENCH_USAGE);
	assert_int_equal(parse(&b, "--rounds", "1x"), BENCH_USAGE);
	assert_int_equal(parse(&b, "--only", "nothing"), BENCH_USAGE);
	assert_int_equal(parse(&b, "--port", "shm"), BENCH_USAGE);
	assert_int_equal(parse(&b, "surplus", NULL), BENCH_USAGE);
	b.def = &bench_paging;
	b.word[0] = NULL;
	assert_null(bench_word(&b, "port"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(a_ratio_is_judged_by_its_own_run),
		cmocka_unit_test(what_cannot_be_judged_says_why),
		cmocka_unit_test(a_share_needs_no_peer),
		cmocka_unit_test(every_ratio_has_its_subjects),
		cmocka_unit_test(options_are_one_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
