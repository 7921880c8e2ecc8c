/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket queue against a plain list as its model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/rng.h"
#include "edm/edm_queue.h"

enum {
	WAITING_MAX = 300,
	STEPS = 60000,
};

struct model {
	uint64_t at_ps[WAITING_MAX];
	uint64_t order[WAITING_MAX];
	uint32_t id[WAITING_MAX];
	unsigned count;
};

static unsigned earliest(const struct model *m)
{
	unsigned best = 0;

	for (unsigned i = 1; i < m->count; i++)
		if (m->at_ps[i] < m->at_ps[best] ||
		    (m->at_ps[i] == m->at_ps[best] &&
		     m->order[i] < m->order[best]))
			best = i;
	return best;
}

/* Short delays, ties, and delays far behind the ring's horizon. */
static uint64_t delay(struct rng *r)
{
	switch (rng_below(r, 4)) {
	case 0:
		return rng_below(r, 8);
	case 1:
		return rng_below(r, 100000);
	case 2:
		return 640 * rng_below(r, 20);
	default:
		return rng_below(r, UINT64_C(1) << rng_between(r, 1, 40));
	}
}

static void check(uint64_t spacing_ps, uint64_t seed)
{
	struct edm_queue *q;
	struct model m = {.count = 0};
	struct rng r;
	uint64_t order = 0;

	rng_init(&r, seed);
	assert_int_equal(edm_queue_create(spacing_ps, &q), 0);
	for (unsigned step = 0; step < STEPS; step++) {
		struct edm_event e;

		if (m.count < WAITING_MAX &&
		    (m.count == 0 || rng_below(&r, 100) < 52)) {
			uint64_t at = edm_queue_now(q) + delay(&r);

			m.at_ps[m.count] = at;
			m.order[m.count] = order++;
			m.id[m.count++] = step;
			edm_queue_push(q, at, 3, 7, step, ~step);
		} else {
			unsigned i = earliest(&m);

			assert_int_equal(edm_queue_next_ps(q), m.at_ps[i]);
			assert_true(edm_queue_pop(q, &e));
			assert_int_equal(e.a, m.id[i]);
			assert_int_equal(e.b, ~m.id[i]);
			assert_int_equal(e.at_ps, m.at_ps[i]);
			assert_int_equal(edm_queue_now(q), e.at_ps);
			m.count--;
			m.at_ps[i] = m.at_ps[m.count];
			m.order[i] = m.order[m.count];
			m.id[i] = m.id[m.count];
		}
		assert_int_equal(edm_queue_count(q), m.count);
	}
	edm_queue_destroy(q);
}

static void test_order(void **state)
{
	check(1, 1);
	check(100, 2);
	check(50000, 3);
	check(UINT64_C(1) << 40, 4);
}

static void test_empty(void **state)
{
	struct edm_queue *q;
	struct edm_event e;

	assert_int_equal(edm_queue_create(10, &q), 0);
	assert_false(edm_queue_pop(q, &e));
	assert_int_equal(edm_queue_next_ps(q), EDM_NEVER);
	edm_queue_push(q, 1000000, 1, 0, 0, 0);
	assert_true(edm_queue_pop(q, &e));
	/* A time in the past means now. */
	edm_queue_push(q, 5, 2, 0, 0, 0);
	assert_true(edm_queue_pop(q, &e));
	assert_int_equal(e.at_ps, 1000000);
	edm_queue_destroy(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
