/* SPDX-License-Identifier: Apache-2.0 */
/* Small points of the figures: every store works, the table's operations cost
 * what they should, the same seed gives the same numbers, and the claims are
 * judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "figures/figures.h"
#include "sim/sim.h"

static struct kv_fig_result run(struct kv_fig_config cfg)
{
	struct kv_fig_result r;

	cfg.clients = 6;
	cfg.capacity = 4000;
	cfg.seed = cfg.seed ? cfg.seed : 3;
	if (!cfg.span_ps)
		cfg.span_ps = 40 * SIM_US;
	assert_int_equal(kv_fig_run(&cfg, &r), 0);
	assert_true(r.ops > 20);
	return r;
}

static void test_stores(void **state)
{
	for (unsigned s = 0; s < KV_FIG_STORES; s++) {
		struct kv_fig_result r = run(
			(struct kv_fig_config){.store = s, .read_ppm = 500000});

		assert_int_equal(r.failed, 0);
		assert_true(r.reads > 0 && r.changes > 0);
		/* Round trips of two to three microseconds. */
		assert_true(r.read_p50_us > 1.5 && r.read_p50_us < 6);
		assert_true(r.change_p50_us > 1.5 && r.change_p50_us < 12);
	}
}

static void test_table(void **state)
{
	struct kv_fig_config updates = {.read_ppm = 0, .uniform = true};
	struct kv_fig_result r = run(updates), again = run(updates);

	assert_memory_equal(&r, &again, sizeof(r));
	updates.seed = 4;
	again = run(updates);
	assert_memory_not_equal(&r, &again, sizeof(r));
	assert_true(r.trips_p50 > 1.9 && r.trips_p50 < 2.1);
	assert_true(r.locks_p50 > 0.9 && r.locks_p50 < 1.1);
	r = run((struct kv_fig_config){.read_ppm = 1000000});
	assert_true(r.messages >= 1 && r.messages <= 2);
	r = run((struct kv_fig_config){
		.entry_bytes = 32, .value_bytes = 200, .read_ppm = 1000000});
	assert_true(r.messages > 2); /* and the extent */
	assert_int_equal(r.failed, 0);
}

static void test_inserts(void **state)
{
	struct kv_fig_result r =
		run((struct kv_fig_config){.inserts = true,
					   .fill_ppm = 500000,
					   .fill_to_ppm = 850000,
					   .whole_locks = true,
					   .forgets = true});

	assert_int_equal(r.failed, 0);
	assert_true(r.changes > 4000 * 30 / 100);
	assert_true(r.second_share > 0.8);
}

static void test_failures(void **state)
{
	struct kv_fig_result r =
		run((struct kv_fig_config){.failures = 2000,
					   .failure_ms = 2,
					   .read_ppm = 500000,
					   .span_ps = 6 * SIM_MS});

	assert_true(r.deaths >= 5);
	assert_true(r.failed <= r.deaths);
	assert_true(r.ops > 1000);
}

static void test_claims(void **state)
{
	struct figure_options *o = calloc(1, FIGURE_OPTIONS_BYTES_MAX);
	struct figure_run r;

	assert_non_null(o);
	memcpy(o, kv_figures.defaults, kv_figures.options_bytes);
	assert_null(figure_by_name(&kv_figures, "3.8"));
	assert_non_null(figure_by_name(&kv_figures, "3.14"));
	figure_init(&r, &kv_figures, figure_by_name(&kv_figures, "3.10"), o);
	assert_int_equal(r.figure->plan(&r), 0);
	assert_int_equal(r.count, 17);
	for (size_t i = 0; i < r.count; i++)
		((struct kv_row *)figure_row(&r, i))->res.mops = i < 4 ? 10 : 5;
	figure_judge(&r);
	assert_int_equal(r.verdicts, 5);
	assert_string_equal(r.verdict[0].what, "b_vs_best_rival");
	assert_true(r.verdict[0].ours > 1.9 && r.verdict[0].ours < 2.1);
	assert_int_equal(r.verdict[0].holds, 1);
	assert_string_equal(r.verdict[1].what, "b_vs_slowest_rival");
	assert_int_equal(r.verdict[1].holds, 1);
	/* Rates have two sides: 10 is too little for 38.6, 5 for 14.2. */
	assert_string_equal(r.verdict[2].what, "b_table");
	assert_int_equal(r.verdict[2].holds, 0);
	assert_int_equal(r.verdict[3].holds, 0);
	figure_release(&r);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stores),	cmocka_unit_test(test_table),
		cmocka_unit_test(test_inserts), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
