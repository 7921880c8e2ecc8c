/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse sets of pages against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "run/page_table.h"
#include "run/run_channel.h"

enum {
	PAGES = 20000, /* no multiple of anything */
};

static uint64_t next_in(const uint8_t *model, uint64_t from)
{
	while (from < PAGES && !model[from])
		from++;
	return from;
}

static void test_model(void **state)
{
	static uint8_t model[PAGES];
	struct run_set s;
	struct rng r;

	assert_int_equal(run_set_init(&s, PAGES), 0);
	rng_init(&r, 11);
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t page = rng_u64(&r) % PAGES;
		uint64_t from = rng_u64(&r) % (PAGES + 100);

		/* Dense at first, then sparse. */
		if (rng_u64(&r) % 100 < (i < 15000 ? 80u : 10u)) {
			run_set_add(&s, page);
			model[page] = 1;
		} else {
			run_set_del(&s, page);
			model[page] = 0;
		}
		assert_int_equal(run_set_has(&s, page), model[page]);
		if (from < PAGES)
			assert_int_equal(run_set_next(&s, from),
					 next_in(model, from));
		else
			assert_int_equal(run_set_next(&s, from), PAGES);
	}
	run_set_release(&s);
}

static void same(const struct run_set *s, const uint8_t *model, uint64_t from,
		 uint64_t end)
{
	uint64_t at = run_set_next_in(s, from, end);

	assert_int_equal(at, next_in(model, from) < end ? next_in(model, from)
							: end);
	for (uint64_t i = from; i < end; i++)
		assert_int_equal(run_set_has(s, i), model[i]);
}

static void test_ranges(void **state)
{
	static uint8_t model[PAGES];
	struct run_set s;
	struct rng r;

	assert_int_equal(run_set_init(&s, PAGES), 0);
	rng_init(&r, 12);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t count = 1 + rng_u64(&r) % (i % 2 ? 300 : 5);
		uint64_t page = rng_u64(&r) % (PAGES / 2 - 300);
		uint64_t to = PAGES / 2 + rng_u64(&r) % (PAGES / 2 - 300);

		if (i % 3 == 0) {
			run_set_add_range(&s, page, count);
			memset(model + page, 1, count);
		} else if (i % 3 == 1) {
			run_set_del_range(&s, page, count);
			memset(model + page, 0, count);
		} else {
			run_set_copy_range(&s, to, page, count);
			memcpy(model + to, model + page, count);
			same(&s, model, to, to + count);
		}
		same(&s, model, page, page + count);
		assert_int_equal(run_set_next(&s, page), next_in(model, page));
	}
	run_set_release(&s);
}

/* A whole range costs almost nothing until it is used. */
static void test_range(void **state)
{
	struct run_pages p;
	uint64_t last = RUN_RANGE_PAGES - 1;

	assert_int_equal(run_pages_init(&p, RUN_RANGE_PAGES), 0);
	assert_int_equal(run_set_next(&p.touched, 0), RUN_RANGE_PAGES);
	run_set_add(&p.touched, last);
	assert_int_equal(run_set_next(&p.touched, 0), last);
	assert_int_equal(p.page[last].state, RUN_UNTOUCHED);
	run_set_del(&p.touched, last);
	assert_int_equal(run_set_next(&p.touched, 0), RUN_RANGE_PAGES);
	run_pages_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
