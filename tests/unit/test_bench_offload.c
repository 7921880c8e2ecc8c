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

#include "bench/offload_plan.h"
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

static struct offload_plan *make_plan(void)
{
	struct offload_plan *plan = calloc(1, sizeof(*plan));

	assert_non_null(plan);
	offload_plan_init(plan);
	return plan;
}

static struct conduct_track *track(struct offload_plan *plan, const char *group,
				   const char *name)
{
	for (unsigned i = 0; i < plan->group_count; i++) {
		struct offload_group *g = &plan->group[i];

		if (strcmp(g->name, group) != 0)
			continue;
		g->is_run = true;
		for (unsigned k = 0; k < g->subject_count; k++) {
			g->track[k].desc = &g->subject[k].desc;
			if (strcmp(g->subject[k].desc.name, name) == 0)
				return &g->track[k];
		}
	}
	fail_msg("no %s in %s", name, group);
	return NULL;
}

static void add_round(struct conduct_track *t, unsigned round, uint64_t ops)
{
	t->round[round].ops = ops;
	t->round[round].elapsed_ns = 1000000000;
	t->is_clean[round] = true;
	t->kept++;
}

static const struct offload_ratio *ratio(const char *name)
{
	for (unsigned i = 0; i < offload_ratio_count; i++)
		if (strcmp(offload_ratios[i].name, name) == 0)
			return &offload_ratios[i];
	fail_msg("no ratio %s", name);
	return NULL;
}

static void test_judge(void **state)
{
	struct offload_plan *plan = make_plan();
	struct conduct_track *cow = track(plan, "probe64", "cow");
	struct conduct_track *sync = track(plan, "probe64", "sync");
	const struct offload_ratio *r = ratio("cow64_vs_sync_verbs");
	struct plan_verdict v;

	/* Nothing measured. */
	offload_judge(plan, r, 3, &v);
	assert_true(v.is_void);
	/* 4, 2 and 6 times: 4. A round that only one has does not count. */
	add_round(cow, 0, 400);
	add_round(cow, 1, 200);
	add_round(cow, 2, 600);
	add_round(sync, 0, 100);
	add_round(sync, 1, 100);
	offload_judge(plan, r, 3, &v);
	assert_false(v.is_void);
	assert_true(v.ratio == 3 && v.is_kept);
	add_round(sync, 2, 100);
	offload_judge(plan, r, 3, &v);
	assert_true(v.ratio == 4 && v.is_kept);
	for (unsigned i = 0; i < 3; i++)
		sync->round[i].ops = 200;
	offload_judge(plan, r, 3, &v);
	assert_true(v.ratio == 2 && !v.is_kept && !v.is_void);
	snprintf(sync->why, sizeof(sync->why), "it died");
	offload_judge(plan, r, 3, &v);
	assert_true(v.is_void);
	assert_string_equal(v.why, "it died");
	free(plan);
}

/* A share that stands alone. */
static void test_share(void **state)
{
	struct offload_plan *plan = make_plan();
	struct conduct_track *t = track(plan, "hlog64", "cow_timed");
	struct plan_verdict v;

	add_round(t, 0, 1);
	t->round[0].more[OFFLOAD_MORE_COMM] = 0.6;
	t->round[0].more[OFFLOAD_MORE_EMPTY] = 0.5;
	offload_judge(plan, ratio("hlog_comm_ratio"), 1, &v);
	assert_true(v.ratio == 0.6 && !v.is_kept);
	offload_judge(plan, ratio("hlog_comm_busy_ratio"), 1, &v);
	assert_true(v.ratio > 0.199 && v.ratio < 0.201 && v.is_kept);
	free(plan);
}

/* Every ratio names subjects that exist, and can be asked for alone. */
static void test_plan(void **state)
{
	struct offload_plan *plan = make_plan();
	unsigned barred = 0;

	for (unsigned i = 0; i < offload_ratio_count; i++) {
		const struct offload_ratio *r = &offload_ratios[i];

		assert_non_null(track(plan, r->group, r->ours));
		if (r->peer)
			assert_non_null(track(plan, r->group, r->peer));
		assert_true(offload_ratio_wanted(r->name, r));
		barred += r->is_barred;
	}
	assert_int_equal(barred, 6);
	assert_true(offload_plan_wants("hlog_comm_ratio", &plan->group[6]));
	assert_false(offload_plan_wants("hlog_comm_ratio", &plan->group[0]));
	free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
