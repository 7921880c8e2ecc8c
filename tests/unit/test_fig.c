/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of figures: every way to read gets the right bytes, the same seed
 * gives the same numbers, and the order of the ways is what it must be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/figures.h"
#include "figures/offload_costs.h"
#include "sim/sim.h"

static struct fig_result run(enum fig_device device, uint32_t threads,
			     uint32_t bytes, bool burst)
{
	struct fig_config c = {.device = device,
			       .threads = threads,
			       .bytes = bytes,
			       .depth = burst ? 20 : 0,
			       .burst = burst,
			       .flush_ns = 2000,
			       .probe_ns = 500,
			       .far_ppm = 950000,
			       .app_ps = offload_costs.probe_ps,
			       .warm_ps = 60 * SIM_US,
			       .span_ps = 120 * SIM_US,
			       .seed = 7};
	struct fig_result r;

	assert_int_equal(fig_run(&c, &r), 0);
	assert_int_equal(r.wrong, 0);
	assert_in_range(r.requests, 40, UINT64_MAX);
	return r;
}

static void test_ways(void **state)
{
	double mops[FIG_DEVICES];

	(void)state;
	for (unsigned d = 0; d < FIG_DEVICES; d++)
		mops[d] = run((enum fig_device)d, 2, 64, false).mops;
	assert_true(mops[FIG_LOCAL] > mops[FIG_COW]);
	assert_true(mops[FIG_COW] > mops[FIG_ASYNC]);
	assert_true(mops[FIG_ASYNC] > 5 * mops[FIG_SYNC]);
	assert_true(mops[FIG_ASYNC] > 5 * mops[FIG_TWO_SIDED]);
	assert_true(mops[FIG_P4] > mops[FIG_ASYNC]);
	assert_true(mops[FIG_TWO_SIDED] > mops[FIG_BLOCKING]);
}

static void test_same_numbers(void **state)
{
	struct fig_result a = run(FIG_COW, 3, 256, false);
	struct fig_result b = run(FIG_COW, 3, 256, false);

	(void)state;
	assert_int_equal(a.requests, b.requests);
	assert_true(a.p99_us == b.p99_us && a.wire_bytes == b.wire_bytes);
}

static void test_latency(void **state)
{
	struct fig_result r = run(FIG_COW, 1, 64, true);

	(void)state;
	assert_true(r.p50_us > 2 && r.p50_us <= r.p99_us && r.p99_us < 60);
}

static void test_bad_config(void **state)
{
	struct fig_config c = {.threads = FIG_THREADS_MAX + 1, .bytes = 8};
	struct fig_result r;

	(void)state;
	assert_int_equal(fig_run(&c, &r), -22);
	c.threads = 1;
	c.bytes = 0;
	assert_int_equal(fig_run(&c, &r), -22);
	c.bytes = 8;
	c.depth = FIG_DEPTH_MAX + 1;
	assert_int_equal(fig_run(&c, &r), -22);
	assert_null(figure_by_name(&offload_figures, "7"));
}

/* A whole small figure, with TCP beside it. */
static void test_figure(void **state)
{
	const struct offload_row *row;
	struct figure_run r;

	(void)state;
	figure_init(&r, &offload_figures,
		    figure_by_name(&offload_figures, "14"),
		    offload_figures.defaults);
	assert_int_equal(r.figure->plan(&r), 0);
	assert_int_equal(figure_points_run(&r), 0);
	figure_judge(&r);
	assert_int_equal(r.verdicts, 2);
	assert_int_equal(r.verdict[0].holds, 1);
	row = figure_find(&r, NULL, "alone", 1);
	assert_true(row->res.tcp_gbps > 20 && row->res.tcp_gbps < 25);
	row = figure_find(&r, NULL, "cow-8", 1);
	assert_true(row->res.mops > 1);
	figure_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_bad_config),
		cmocka_unit_test(test_figure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
