/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue against a plain list as its model, and its randomness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sim.h"

enum {
	EVENTS = 200,
	STEPS = 20000,
};

struct model_event {
	struct sim_event ev;
	uint64_t time_ps; /* 0: not scheduled */
	uint64_t order;
	bool ran;
};

static void mark(struct sim *sim, struct sim_event *ev)
{
	struct model_event *m = container_of(ev, struct model_event, ev);

	assert_int_equal(sim_now_ps(sim), m->time_ps);
	m->ran = true;
}

static struct model_event *earliest(struct model_event *m)
{
	struct model_event *best = NULL;

	for (unsigned i = 0; i < EVENTS; i++) {
		if (!m[i].time_ps)
			continue;
		if (!best || m[i].time_ps < best->time_ps ||
		    (m[i].time_ps == best->time_ps && m[i].order < best->order))
			best = &m[i];
	}
	return best;
}

static void test_random_model(void **state)
{
	static struct model_event m[EVENTS];
	struct rng r;
	struct sim *sim;
	uint64_t order = 0;

	memset(m, 0, sizeof(m));
	sim_rand_init(&r, 7, 0);
	assert_int_equal(sim_create(7, &sim), 0);
	for (unsigned i = 0; i < EVENTS; i++)
		sim_event_init(&m[i].ev, mark);
	for (unsigned step = 0; step < STEPS; step++) {
		struct model_event *e = &m[sim_rand_below(&r, EVENTS)];
		uint32_t what = sim_rand_below(&r, 10);

		if (what < 5) {
			/* Few different times, so that many are equal. */
			e->time_ps = sim_now_ps(sim) + sim_rand_below(&r, 20);
			e->order = order++;
			sim_schedule_at(sim, &e->ev, e->time_ps);
		} else if (what < 6) {
			e->time_ps = 0;
			sim_cancel(sim, &e->ev);
		} else {
			e = earliest(m);
			assert_int_equal(sim_run_next(sim), e != NULL);
			if (e) {
				assert_true(e->ran);
				e->ran = false;
				e->time_ps = 0;
			}
		}
		if (e)
			assert_int_equal(sim_event_is_set(&e->ev),
					 e->time_ps != 0);
	}
	sim_destroy(sim);
}

struct ticker {
	struct sim_event ev;
	uint64_t period_ps;
	unsigned count;
};

static void tick(struct sim *sim, struct sim_event *ev)
{
	struct ticker *t = container_of(ev, struct ticker, ev);

	t->count++;
	sim_schedule_in(sim, ev, t->period_ps);
}

static void test_run_until(void **state)
{
	struct ticker t = {.period_ps = 10};
	struct sim *sim;
	uint64_t start;

	assert_int_equal(sim_create(1, &sim), 0);
	start = sim_now_ps(sim);
	assert_true(start > 0);
	assert_int_equal(sim_run_until(sim, start + 5), SIM_END_EMPTY);
	sim_event_init(&t.ev, tick);
	sim_schedule_in(sim, &t.ev, 10);
	assert_int_equal(sim_run_until(sim, start + 105), SIM_END_TIME);
	assert_int_equal(t.count, 10);
	assert_int_equal(sim_now_ps(sim), start + 105);
	/* A time that has passed means now. */
	sim_schedule_at(sim, &t.ev, 1);
	assert_true(sim_run_next(sim));
	assert_int_equal(sim_now_ps(sim), start + 105);
	sim_destroy(sim);
}

static void test_two_simulations(void **state)
{
	struct ticker a = {.period_ps = 7}, b = {.period_ps = 11};
	struct sim *sa, *sb;

	assert_int_equal(sim_create(1, &sa), 0);
	assert_int_equal(sim_create(2, &sb), 0);
	sim_event_init(&a.ev, tick);
	sim_event_init(&b.ev, tick);
	sim_schedule_in(sa, &a.ev, 7);
	sim_schedule_in(sb, &b.ev, 11);
	for (unsigned i = 0; i < 70; i++) {
		sim_run_next(sa);
		if (i % 2)
			sim_run_next(sb);
	}
	assert_int_equal(a.count, 70);
	assert_int_equal(b.count, 35);
	sim_destroy(sa);
	sim_destroy(sb);
}

static void test_random(void **state)
{
	struct rng a, b, c;
	unsigned hits = 0;
	uint8_t buf[19] = {0};

	sim_rand_init(&a, 5, 1);
	sim_rand_init(&b, 5, 1);
	sim_rand_init(&c, 5, 2);
	assert_int_equal(rng_u64(&a), rng_u64(&b));
	assert_int_not_equal(rng_u64(&a), rng_u64(&c));
	for (unsigned i = 0; i < 100000; i++) {
		uint32_t v = sim_rand_range(&a, 3, 9);

		assert_true(v >= 3 && v <= 9);
		hits += sim_rand_chance(&a, 100000);
	}
	assert_true(hits > 9000 && hits < 11000);
	rng_fill(&a, buf, 17);
	assert_int_equal(buf[17], 0);
	assert_int_equal(buf[18], 0);
}

static void test_hash(void **state)
{
	uint64_t hash[3];

	for (unsigned i = 0; i < 3; i++) {
		struct sim *sim;

		assert_int_equal(sim_create(1, &sim), 0);
		sim_note(sim, SIM_NOTE_FRAME, i < 2 ? "abcdefghi" : "abcdefghj",
			 9);
		hash[i] = sim_trace_hash(sim);
		sim_destroy(sim);
	}
	assert_int_equal(hash[0], hash[1]);
	assert_int_not_equal(hash[0], hash[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_model),
		cmocka_unit_test(test_run_until),
		cmocka_unit_test(test_two_simulations),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
