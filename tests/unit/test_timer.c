/* SPDX-License-Identifier: Apache-2.0 */
/* The timer wheel against a model that looks at every timer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/timer.h"

#define TICK_NS (1ull << TIMER_TICK_SHIFT)

struct probe {
	struct timer t;
	unsigned fired;
	uint64_t fired_at;
};

static void on_probe(struct timer *t, uint64_t now_ns)
{
	struct probe *p = container_of(t, struct probe, t);

	assert_true(now_ns > t->deadline_ns); /* never early */
	assert_false(timer_is_set(t));
	p->fired++;
	p->fired_at = now_ns;
}

static void test_never_early(void **state)
{
	static const uint64_t delays[] = {
		0,	   1,	    TICK_NS - 1,  TICK_NS,
		10000,	   1000000, 65536 * 1024, 1ull << 32,
		1ull << 40};
	static const uint64_t starts[] = {
		1, 1023, 1024, 1ull << 36, (1ull << 46) - 1, 1ull << 46};
	struct timer_wheel w;
	unsigned i, k;

	for (k = 0; k < ARRAY_LEN(starts); k++) {
		for (i = 0; i < ARRAY_LEN(delays); i++) {
			uint64_t deadline = starts[k] + delays[i];
			struct probe p = {.fired = 0};

			timer_wheel_init(&w, starts[k]);
			timer_init(&p.t, on_probe);
			timer_set(&w, &p.t, deadline);
			assert_true(timer_is_set(&p.t));
			timer_wheel_advance(&w, deadline);
			assert_int_equal(p.fired, 0);
			/* One tick late at most. */
			timer_wheel_advance(&w, deadline + TICK_NS);
			assert_int_equal(p.fired, 1);
			assert_int_equal(w.count, 0);
			assert_true(timer_wheel_next_ns(&w) == UINT64_MAX);
		}
	}
}

/* A sleeper that always goes to timer_wheel_next_ns arrives, in few steps. */
static void test_next_ns(void **state)
{
	struct timer_wheel w;
	struct probe p = {.fired = 0};
	uint64_t deadline = (1ull << 45) + 123456, now = 5;
	unsigned steps;

	timer_wheel_init(&w, now);
	timer_init(&p.t, on_probe);
	timer_set(&w, &p.t, deadline);
	for (steps = 0; p.fired == 0 && steps < 100; steps++) {
		uint64_t next = timer_wheel_next_ns(&w);

		assert_true(next > now);
		assert_true(next <= deadline + TICK_NS);
		now = next;
		timer_wheel_advance(&w, now);
	}
	assert_int_equal(p.fired, 1);
	assert_true(steps <= TIMER_LEVELS);
}

/* Past the horizon of 2^36 ticks, a deadline waits in the last level. */
static void test_far(void **state)
{
	static const uint64_t deadlines[] = {(1ull << 46) + 5, 5ull << 46,
					     (1ull << 60) + 77, UINT64_MAX};
	struct timer_wheel w;
	unsigned i, steps;

	for (i = 0; i < 2; i++) {
		struct probe p = {.fired = 0};
		uint64_t now = 99999;

		timer_wheel_init(&w, now);
		timer_init(&p.t, on_probe);
		timer_set(&w, &p.t, deadlines[i]);
		for (steps = 0; now < deadlines[i] && steps < 2000; steps++) {
			now = u64_min(now + (1ull << 41) + 1, deadlines[i]);
			timer_wheel_advance(&w, now);
			assert_int_equal(p.fired, 0);
		}
		timer_wheel_advance(&w, deadlines[i] + TICK_NS);
		assert_int_equal(p.fired, 1);
	}
	/* Those that never come do no harm and can be taken back. */
	for (; i < ARRAY_LEN(deadlines); i++) {
		struct probe p = {.fired = 0};

		timer_wheel_init(&w, 1ull << 50);
		timer_init(&p.t, on_probe);
		timer_set(&w, &p.t, deadlines[i]);
		timer_wheel_advance(&w, (1ull << 50) + (1ull << 47));
		assert_int_equal(p.fired, 0);
		assert_true(timer_wheel_next_ns(&w) != UINT64_MAX);
		timer_cancel(&w, &p.t);
		assert_int_equal(w.count, 0);
	}
}

static void test_move_and_cancel(void **state)
{
	struct probe p = {.fired = 0};
	struct timer_wheel w;

	timer_wheel_init(&w, 1);
	timer_init(&p.t, on_probe);
	timer_cancel(&w, &p.t); /* not set: nothing */
	timer_set(&w, &p.t, 100000);
	timer_set(&w, &p.t, 9000000);
	assert_int_equal(w.count, 1);
	timer_wheel_advance(&w, 8000000);
	assert_int_equal(p.fired, 0);
	timer_set(&w, &p.t, 5); /* in the past: at the next tick */
	timer_wheel_advance(&w, 8000000 + 2 * TICK_NS);
	assert_int_equal(p.fired, 1);
	timer_set(&w, &p.t, 9000000);
	timer_cancel(&w, &p.t);
	timer_cancel(&w, &p.t);
	timer_wheel_advance(&w, 1ull << 40);
	assert_int_equal(p.fired, 1);
	assert_int_equal(w.count, 0);
}

/* Callbacks that set and cancel, in the slot that is being fired. */
struct busy {
	struct probe self, friend, victim;
	struct timer_wheel *w;
};

static void on_busy(struct timer *t, uint64_t now_ns)
{
	struct busy *b = container_of(t, struct busy, self.t);

	timer_cancel(b->w, &b->victim.t);
	if (b->self.fired++ == 0) {
		timer_set(b->w, t, now_ns); /* itself, again */
		timer_set(b->w, &b->friend.t, t->deadline_ns + 1);
	}
}

static void test_callbacks(void **state)
{
	struct timer_wheel w;
	struct busy b = {.w = &w};

	timer_wheel_init(&w, 1);
	timer_init(&b.self.t, on_busy);
	timer_init(&b.friend.t, on_probe);
	timer_init(&b.victim.t, on_probe);
	/* The last one set is the first of its slot: self cancels a victim that
	 * was taken out of the wheel together with it. */
	timer_set(&w, &b.victim.t, 50000);
	timer_set(&w, &b.self.t, 50000);
	timer_wheel_advance(&w, 100000);
	assert_int_equal(b.victim.fired, 0);
	assert_false(timer_is_set(&b.victim.t));
	assert_int_equal(b.self.fired, 1);
	timer_wheel_advance(&w, 200000);
	assert_int_equal(b.self.fired, 2);
	assert_int_equal(b.friend.fired, 1);
	assert_int_equal(w.count, 0);
}

enum {
	MODEL_TIMERS = 200,
};

static void check_model(struct probe *p, const bool *is_set, uint64_t now)
{
	unsigned i;

	for (i = 0; i < MODEL_TIMERS; i++) {
		bool due = is_set[i] && p[i].t.deadline_ns < now &&
			   (now >> TIMER_TICK_SHIFT) >
				   (p[i].t.deadline_ns >> TIMER_TICK_SHIFT);

		assert_int_equal(p[i].fired, due);
		assert_int_equal(timer_is_set(&p[i].t), is_set[i] && !due);
		if (due)
			assert_true(p[i].fired_at == now);
	}
}

/* Random sets, moves, cancels and steps of every size. A timer must fire in
 * exactly the advance that first passes the tick of its deadline. */
static void model_run(uint64_t seed)
{
	struct probe *p = calloc(MODEL_TIMERS, sizeof(*p));
	bool is_set[MODEL_TIMERS] = {false};
	struct timer_wheel w;
	struct rng r;
	uint64_t now;
	unsigned i, step;

	assert_non_null(p);
	rng_init(&r, seed);
	now = 1 + (rng_u64(&r) >> rng_between(&r, 4, 63));
	timer_wheel_init(&w, now);
	for (i = 0; i < MODEL_TIMERS; i++)
		timer_init(&p[i].t, on_probe);
	for (step = 0; step < 400; step++) {
		for (i = 0; i < 10; i++) {
			unsigned k = (unsigned)rng_below(&r, MODEL_TIMERS);

			is_set[k] = !rng_chance_ppm(&r, 300000);
			if (is_set[k])
				timer_set(&w, &p[k].t,
					  now + (rng_u64(&r) >>
						 rng_between(&r, 18, 63)));
			else
				timer_cancel(&w, &p[k].t);
		}
		/* Deadlines of the tick we are in wait for the next one. */
		now += TICK_NS + (rng_u64(&r) >> rng_between(&r, 20, 63));
		assert_true(w.count == 0 ||
			    timer_wheel_next_ns(&w) != UINT64_MAX);
		timer_wheel_advance(&w, now);
		check_model(p, is_set, now);
		for (i = 0; i < MODEL_TIMERS; i++) {
			is_set[i] = is_set[i] && !p[i].fired;
			p[i].fired = 0;
		}
	}
	free(p);
}

static void test_model(void **state)
{
	uint64_t seed;

	for (seed = 0; seed < 60; seed++)
		model_run(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_never_early),
		cmocka_unit_test(test_next_ns),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_move_and_cancel),
		cmocka_unit_test(test_callbacks),
		cmocka_unit_test(test_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
