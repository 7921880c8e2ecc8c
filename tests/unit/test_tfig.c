/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of memory tiers: memories have their published values, the rate
 * is where time and latency agree, and the shipped policies put pages where
 * they say.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "figures/tfig.h"
#include "figures/tfig_costs.h"

static void assert_near(double value, double wanted, double off)
{
	if (!(fabs(value - wanted) <= off))
		fail_msg("%g, not %g", value, wanted);
}

static struct tfig_users users(double units, double threads, double write_share)
{
	return (struct tfig_users){units, threads, write_share};
}

static void has_the_published_peaks_and_latencies(void **state)
{
	static const double writes[TFIG_MIXES] = {0, 1.0 / 3, 0.5, 1};

	for (unsigned m = 0; m < TFIG_MEMORIES; m++) {
		const struct tfig_published *p = &tfig_published[m];

		struct tfig_users two = users(2, 1, 0), one = users(1, 1, 0.2);

		for (unsigned i = 0; i < TFIG_MIXES; i++) {
			struct tfig_users u = users(3, 3 * 16, writes[i]);

			assert_near(tfig_memory_peak((enum tfig_memory)m, &u),
				    3 * p->peak_gbs[i], 1e-9);
		}
		if (p->curve[TFIG_READ].count)
			assert_near(
				tfig_memory_ns((enum tfig_memory)m, &two, 0),
				p->curve[TFIG_READ].point[0].ns, 1e-9);
		else
			assert_near(
				tfig_memory_ns((enum tfig_memory)m, &one, 5),
				p->idle_ns, 1e-9);
	}
}

/* Main memory moves less of reads and writes for many threads than for few, and
 * CXL memory loses next to nothing: what the raw logs of MLC have. */
static void crowds_get_less_where_some_write(void **state)
{
	struct tfig_users u = users(1, 64, 1.0 / 3);
	double before = 61.1;

	for (double threads = 16; threads <= 64; threads += 4) {
		struct tfig_users some = users(1, threads, 1.0 / 3);
		double peak = tfig_memory_peak(TFIG_DDR, &some);

		assert_true(peak < before);
		before = peak;
	}
	assert_near(tfig_memory_peak(TFIG_DDR, &u), 49.2, 0.01);
	u.threads = 32;
	assert_near(tfig_memory_peak(TFIG_DDR, &u), 54.1, 1.2);
	u = users(1, 1000, 0.2); /* 4:1, which the model has no point of */
	assert_near(tfig_memory_peak(TFIG_DDR, &u), 54.3, 2.5);
	assert_near(tfig_memory_peak(TFIG_CXL, &u), 51.7, 3);
	u = users(1, 64, 0);
	assert_near(tfig_memory_peak(TFIG_DDR, &u), 67, 0.01);
	u.threads = 46;
	assert_near(tfig_memory_peak(TFIG_CXL, &u), 46.7, 0.01);
	/* Nothing is known of crowds at other sockets. */
	assert_near(tfig_memory_peak(TFIG_CXL_REMOTE, &u), 20.3, 0.01);
}

static void gets_slower_with_load_and_never_quicker(void **state)
{
	static const enum tfig_memory memories[] = {TFIG_DDR, TFIG_CXL};

	for (unsigned k = 0; k < ARRAY_LEN(memories); k++)
		for (double w = 0; w <= 1; w += 0.1) {
			struct tfig_users u = users(1, 30, w);
			double before = 0;

			for (double gbs = 0; gbs < 70; gbs++) {
				double ns =
					tfig_memory_ns(memories[k], &u, gbs);

				assert_true(ns >= before - 1e-9);
				before = ns;
			}
		}
}

/* ---- the rate ----------------------------------------------------------- */

static struct tfig_load load_of(double threads, double compute_ns)
{
	return (struct tfig_load){
		.threads = threads,
		.compute_ns = compute_ns,
		.lines = 1,
		.under_way = (double)tfig_costs.prefetched,
		.place = {{.memory = TFIG_DDR, .units = 1, .share = 1}}};
}

static void finds_the_rate_where_time_and_latency_agree(void **state)
{
	for (double threads = 1; threads < 200; threads *= 1.7) {
		struct tfig_load l = load_of(threads, 60);
		struct tfig_rate r;
		double op_ns;

		tfig_load_solve(&l, &r);
		op_ns = 60 + r.ns[0] / (double)tfig_costs.prefetched;
		assert_near(r.gbs[0], r.ops_s * 64 / 1e9, 1e-6);
		assert_true(r.gbs[0] <= 67 + 1e-9);
		/* Threads are busy, or the memory is. */
		if (r.gbs[0] < 66.9)
			assert_near(r.ops_s * op_ns / 1e9, threads,
				    threads * 1e-6);
	}
}

static void shares_a_memory_with_pages_on_the_move(void **state)
{
	struct tfig_load l = load_of(200, 1);
	struct tfig_rate alone, shared, lost;

	tfig_load_solve(&l, &alone);
	l.place[0].more_gbs = 20;
	tfig_load_solve(&l, &shared);
	assert_near(alone.gbs[0], 67, 1e-6);
	assert_near(shared.gbs[0], 67, 1e-6); /* both together */
	assert_near(shared.ops_s / alone.ops_s, 47.0 / 67, 1e-6);
	l = load_of(4, 600);
	tfig_load_solve(&l, &alone);
	l.overhead = 0.5;
	tfig_load_solve(&l, &lost);
	assert_near(lost.ops_s / alone.ops_s, 0.5, 0.01);
}

/* Lines of pages at 1:3, by the rate of all on top. */
static double slow_interleaving(double threads, double write_share)
{
	struct tfig_load l = load_of(threads, 34);
	struct tfig_rate alone, both;

	l.write_share = write_share;
	tfig_load_solve(&l, &alone);
	l.place[0].share = 0.25;
	l.place[1] = (struct tfig_place){
		.memory = TFIG_CXL, .units = 1, .share = 0.75};
	tfig_load_solve(&l, &both);
	return both.ops_s / alone.ops_s;
}

/* By the published peaks: that a quarter on top is better than all of it with
 * so many threads does not rest on one share of writes. It takes some. */
static void crowds_that_write_gain_by_more_pages_on_cxl_than_on_top(
	void **state)
{
	for (double threads = 72; threads <= 84; threads += 12) {
		for (double w = 0.08; w <= 1; w += 0.02)
			assert_true(slow_interleaving(threads, w) > 1);
		assert_true(slow_interleaving(threads, 0.05) < 1);
		assert_true(slow_interleaving(threads, 0) > 0.9);
	}
	assert_true(slow_interleaving(12, 0.18) < 1);
}

/* ---- pages -------------------------------------------------------------- */

static struct tfig_pages_result run(struct tfig_pages_config c,
				    struct tfig_load l)
{
	struct tfig_pages_result r;

	c.bytes = c.bytes ? c.bytes : 8000000000ull;
	c.processes = 1;
	c.visits = c.visits > 0 ? c.visits : 1;
	c.seed = 5;
	l.place[1] =
		(struct tfig_place){.memory = TFIG_CXL, .units = 1, .share = 1};
	assert_int_equal(tfig_pages_run(&c, &l, &r), 0);
	return r;
}

static void interleaves_as_the_ratio_says(void **state)
{
	static const struct tier_ratio ratios[] = {
		{3, 1}, {1, 1}, {1, 3}, {0, 1}, {1, 0}};

	for (unsigned i = 0; i < ARRAY_LEN(ratios); i++) {
		struct tfig_pages_result r =
			run((struct tfig_pages_config){.stream = TFIG_EVEN,
						       .ratio = ratios[i]},
			    load_of(4, 600));

		assert_near(r.top_share,
			    (double)ratios[i].top /
				    (ratios[i].top + ratios[i].slow),
			    0.001);
		assert_true(r.promoted_mbs == 0);
	}
}

static void promotes_popular_pages_of_a_full_node(void **state)
{
	struct tfig_pages_config c = {.stream = TFIG_ZIPFIAN,
				      .bytes = 64000000000ull,
				      .ratio = {1, 1},
				      .top_bytes = 32000000000ull,
				      .seconds = 300};
	struct tfig_load l = load_of(7, 10000);
	struct tfig_pages_result before = run(c, l), after;

	c.is_promoted = true;
	after = run(c, l);
	assert_true(after.top_share > before.top_share + 0.1);
	assert_true(after.rate.ops_s > before.rate.ops_s * 0.99);
	assert_true(after.threshold_ms > 0);
}

/* What is new is on top although old pages have filled it. */
static void has_new_pages_on_top_while_it_promotes(void **state)
{
	struct tfig_pages_config c = {.stream = TFIG_LATEST,
				      .bytes = 64000000000ull,
				      .top_bytes = 32000000000ull,
				      .made = 0.0125,
				      .visits = 1,
				      .seconds = 300};
	struct tfig_load l = load_of(7, 10000);
	struct tfig_pages_result before = run(c, l), after;

	c.is_promoted = true;
	after = run(c, l);
	assert_true(before.top_share < 0.7);
	assert_true(after.top_share > 0.9);
}

static void stops_promoting_into_a_busy_node(void **state)
{
	/* Alone on top they would want more than it moves. */
	struct tfig_load l = load_of(84, 61);
	struct tfig_pages_config c = {.stream = TFIG_EVEN,
				      .ratio = {1, 1},
				      .is_promoted = true,
				      .top_peak_gbs = 67,
				      .visits = 1.0 / 64,
				      .seconds = 60};
	struct tfig_pages_result free_of_it = run(c, l), guarded;

	c.is_guarded = true;
	guarded = run(c, l);
	assert_near(free_of_it.top_share, 1, 1e-6);
	assert_near(free_of_it.rate.gbs[0], 67, 0.1);
	assert_true(guarded.rate.gbs[0] < 67 * 0.80);
	assert_true(guarded.rate.gbs[0] > 67 * 0.70);
	assert_true(guarded.guarded > 0.5);
	assert_true(guarded.rate.ops_s > free_of_it.rate.ops_s);
}

static void gives_the_same_for_the_same_seed(void **state)
{
	struct tfig_pages_config c = {.stream = TFIG_LATEST,
				      .ratio = {1, 1},
				      .top_bytes = 4000000000ull,
				      .is_promoted = true,
				      .made = 0.01,
				      .seconds = 20};
	struct tfig_pages_result a = run(c, load_of(7, 10000)),
				 b = run(c, load_of(7, 10000));

	assert_memory_equal(&a.rate.ops_s, &b.rate.ops_s, sizeof(double));
	assert_true(a.top_share == b.top_share &&
		    a.promoted_mbs == b.promoted_mbs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_the_published_peaks_and_latencies),
		cmocka_unit_test(crowds_get_less_where_some_write),
		cmocka_unit_test(gets_slower_with_load_and_never_quicker),
		cmocka_unit_test(finds_the_rate_where_time_and_latency_agree),
		cmocka_unit_test(shares_a_memory_with_pages_on_the_move),
		cmocka_unit_test(
			crowds_that_write_gain_by_more_pages_on_cxl_than_on_top),
		cmocka_unit_test(interleaves_as_the_ratio_says),
		cmocka_unit_test(promotes_popular_pages_of_a_full_node),
		cmocka_unit_test(has_new_pages_on_top_while_it_promotes),
		cmocka_unit_test(stops_promoting_into_a_busy_node),
		cmocka_unit_test(gives_the_same_for_the_same_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
