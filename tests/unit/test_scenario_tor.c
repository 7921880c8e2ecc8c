/* SPDX-License-Identifier: Apache-2.0 */
/* The shipped switch inside the simulator: the verbs scenario through it, with
 * and without programs, holds all its checks, and its hash repeats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plays/scenario_verbs.h"
#include "rig/tor_net.h"

enum {
	SEEDS = 6,
};

struct seen {
	struct scenario_tor_config cfg;
	uint64_t forwarded;
	uint64_t rewritten;
};

static int start(void *ctx, struct sim_net *net, uint64_t seed, void **state)
{
	struct seen *seen = ctx;

	return scenario_tor_create(net, &seen->cfg,
				   (struct scenario_tor **)state);
}

static void done(void *ctx, void *state)
{
	struct seen *seen = ctx;

	seen->forwarded +=
		tor_counter(scenario_tor_get(state), TOR_C_forwarded);
	scenario_tor_destroy(state);
}

static uint64_t run(struct seen *seen, uint64_t seed)
{
	static struct sim_verbs_result res;
	struct sim_verbs_hook hook = {
		.start = start, .done = done, .ctx = seen};
	struct sim_verbs_options opt = {
		.seed = seed, .scale = 40, .hook = &hook};

	assert_int_equal(sim_verbs_run(&opt, &res), 0);
	if (res.violations)
		fail_msg("seed %d: %s", (int)seed, res.first);
	return res.hash;
}

static void plain(void **state)
{
	struct seen seen = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		(void)run(&seen, seed);
	assert_true(seen.forwarded > 1000);
	assert_int_equal(run(&seen, 3), run(&seen, 3));
}

static void with_faults(void **state)
{
	struct seen seen = {.cfg = {{"fault:loss=2%,reorder=3%,corrupt=1%,"
				     "when=0s..300ms;dup=2%,only=write+read+"
				     "atomic+reply"},
				    1}};

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		(void)run(&seen, seed);
	assert_true(seen.forwarded > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(with_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
