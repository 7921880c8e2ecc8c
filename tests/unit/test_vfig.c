/* SPDX-License-Identifier: Apache-2.0 */
/* Small points of SwordBox's figures: every system works, the rival has what
 * Clover has, a switch that is a core is slower than one that costs nothing,
 * and a seed changes what is random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/figures.h"
#include "sim/model.h"
#include "sim/sim.h"

static struct vfig_result run(struct vfig_config cfg)
{
	struct vfig_result r;

	cfg.threads = cfg.threads ? cfg.threads : 14;
	cfg.theta_milli = 990;
	cfg.warm_ps = 100 * SIM_US;
	cfg.span_ps = 200 * SIM_US;
	cfg.seed = cfg.seed ? cfg.seed : 3;
	assert_int_equal(vfig_run(&cfg, &r), 0);
	assert_int_equal(r.errors, 0);
	assert_true(r.done > 50);
	return r;
}

static void every_system_works(void **state)
{
	for (unsigned s = 0; s < VFIG_SYSTEMS; s++) {
		struct vfig_result r = run((struct vfig_config){
			.system = (enum vfig_system)s, .write_percent = 50});

		assert_true(r.mops > 0.3 && r.mops < 30);
	}
}

/* A thread that remembers by itself follows what others wrote. */
static void threads_of_a_machine_know_what_one_of_them_saw(void **state)
{
	struct vfig_config cfg = {
		.system = VFIG_PLAIN, .write_percent = 5, .threads = 28};
	struct vfig_result together = run(cfg), alone;

	cfg.private_places = true;
	alone = run(cfg);
	assert_true(alone.work.chases > together.work.chases);
	/* And every read takes the shortcut along. */
	assert_true(together.work.sent_reads > 2 * together.reads);
}

/* One packet after the other: two of each operation go to the switch. */
static void a_core_is_a_limit(void **state)
{
	struct vfig_config cfg = {
		.system = VFIG_CAS_MOVED, .write_percent = 100, .threads = 24};
	double most = 1e6 / (2.0 * (double)model_connectx5.switch_core_ps);
	struct vfig_result free_of_cost = run(cfg), core;

	cfg.on_core = true;
	core = run(cfg);
	assert_true(free_of_cost.mops > 1.5 * core.mops);
	assert_true(core.mops > 0.8 * most && core.mops < 1.1 * most);
}

static void a_seed_changes_what_is_random(void **state)
{
	struct vfig_config cfg = {.system = VFIG_FULL, .write_percent = 50};
	struct vfig_result a = run(cfg), b;

	cfg.seed = 4;
	b = run(cfg);
	assert_true(a.reads != b.reads || a.writes != b.writes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_system_works),
		cmocka_unit_test(
			threads_of_a_machine_know_what_one_of_them_saw),
		cmocka_unit_test(a_core_is_a_limit),
		cmocka_unit_test(a_seed_changes_what_is_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
