/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: sleeping, waiting, ending, getting stuck; also for the sanitizers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fiber.h"

struct world {
	struct sim *sim;
	struct sim_wait wait;
	unsigned woken;
	unsigned ended;
	uint64_t sum;
	char order[64];
};

struct sleeper {
	struct world *w;
	char letter;
	uint64_t delay_ns;
	unsigned rounds;
};

/* A deep and large frame, so that the stack is really used. */
static uint64_t deep(struct world *w, unsigned depth)
{
	uint8_t block[512];
	uint64_t sum = depth;

	memset(block, (int)depth, sizeof(block));
	if (depth) {
		if (depth % 16 == 0)
			sim_fiber_yield(w->sim);
		sum += deep(w, depth - 1);
	}
	return sum + block[depth % sizeof(block)] - (uint8_t)depth;
}

static void sleep_rounds(void *arg)
{
	struct sleeper *s = arg;
	size_t at;

	for (unsigned i = 0; i < s->rounds; i++) {
		uint64_t before = sim_now_ns(s->w->sim);

		sim_fiber_sleep_ns(s->w->sim, s->delay_ns);
		assert_int_equal(sim_now_ns(s->w->sim), before + s->delay_ns);
		at = strlen(s->w->order);
		s->w->order[at] = s->letter;
	}
	s->w->sum += deep(s->w, 100);
	s->w->ended++;
}

static void test_sleep(void **state)
{
	struct world w = {0};
	struct sleeper a = {&w, 'a', 10, 3}, b = {&w, 'b', 15, 2};

	assert_int_equal(sim_create(1, &w.sim), 0);
	assert_false(sim_fiber_inside(w.sim));
	assert_int_equal(sim_fiber_spawn(w.sim, "a", sleep_rounds, &a), 0);
	assert_int_equal(sim_fiber_spawn(w.sim, "b", sleep_rounds, &b), 0);
	assert_int_equal(sim_fiber_count(w.sim), 2);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_EMPTY);
	/* For 30 ns b asked at 15 and a at 20: first come, first run. */
	assert_string_equal(w.order, "ababa");
	assert_int_equal(w.ended, 2);
	assert_int_equal(w.sum, 2 * 5050);
	sim_destroy(w.sim);
}

static void wait_once(void *arg)
{
	struct world *w = arg;

	w->woken += sim_wait_for(w->sim, &w->wait, UINT64_MAX, false, "a word");
	w->ended++;
}

static void wait_short(void *arg)
{
	struct world *w = arg;

	w->woken += sim_wait_for(w->sim, &w->wait, 5 * SIM_NS, false, "a word");
	w->ended++;
}

static void test_wait(void **state)
{
	struct world w = {0};
	char report[256];

	assert_int_equal(sim_create(1, &w.sim), 0);
	assert_int_equal(sim_fiber_spawn(w.sim, "one", wait_once, &w), 0);
	assert_int_equal(sim_fiber_spawn(w.sim, "two", wait_once, &w), 0);
	assert_int_equal(sim_fiber_spawn(w.sim, "short", wait_short, &w), 0);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_STUCK);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.woken, 0);
	sim_fiber_report(w.sim, report, sizeof(report));
	assert_non_null(strstr(report, "one waits for a word"));
	assert_non_null(strstr(report, "two waits for a word"));
	assert_null(strstr(report, "short"));
	sim_wait_notify(w.sim, &w.wait, 0);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(w.woken, 2);
	sim_destroy(w.sim);
}

static void poll_for_ever(void *arg)
{
	struct world *w = arg;

	for (;;)
		(void)sim_wait_for(w->sim, &w->wait, SIM_MS, true, "memory");
}

static void test_stuck_pollers(void **state)
{
	struct world w = {0};

	assert_int_equal(sim_create(1, &w.sim), 0);
	sim_set_stuck_ps(w.sim, SIM_S);
	assert_int_equal(sim_fiber_spawn(w.sim, "p", poll_for_ever, &w), 0);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_STUCK);
	assert_true(sim_event_count(w.sim) < 1100);
	sim_destroy(w.sim); /* with a fiber that never ended */
}

static void test_many(void **state)
{
	struct world w = {0};
	struct sleeper s[300];

	assert_int_equal(sim_create(1, &w.sim), 0);
	for (unsigned i = 0; i < ARRAY_LEN(s); i++) {
		s[i] = (struct sleeper){&w, 'x', i, 0};
		assert_int_equal(
			sim_fiber_spawn(w.sim, "s", sleep_rounds, &s[i]), 0);
	}
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(w.ended, ARRAY_LEN(s));
	sim_destroy(w.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sleep),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_stuck_pollers),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
