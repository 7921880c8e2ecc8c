/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the arena of shared memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arena.h"
#include "base/rng.h"

#define M (1ull << 20)
#define G (1ull << 30)

static void sizes_are_powers_of_two(void **state)
{
	static const struct {
		uint64_t size, taken;
	} row[] = {
		{1, 2 * M},
		{4096, 2 * M},
		{2 * M, 2 * M},
		{2 * M + 1, 4 * M},
		{5 * M, 8 * M},
		{G, G},
		{3 * G, 4 * G},
		{4 * G, 4 * G},
		{4 * G + 1, 8 * G},
		{9 * G, 12 * G},
		{1ull << 40, 1ull << 40},
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++)
		assert_int_equal(arena_round(row[i].size), row[i].taken);
}

static uint64_t take(struct arena *a, uint64_t size)
{
	struct arena_part p;

	assert_int_equal(arena_take(a, size, &p), 0);
	assert_int_equal(p.bytes, arena_round(size));
	return p.at;
}

static void the_first_place_is_taken(void **state)
{
	struct arena a;
	struct arena_part p;

	assert_int_equal(arena_init(&a, 32 * M, 16), 0);
	assert_int_equal(take(&a, 1), 0);
	assert_int_equal(take(&a, 8 * M), 8 * M); /* at its own multiple */
	assert_int_equal(take(&a, 2 * M), 2 * M);
	assert_int_equal(take(&a, 4 * M), 4 * M);
	assert_int_equal(take(&a, 16 * M), 16 * M);
	assert_int_equal(a.taken_bytes, 32 * M);
	assert_int_equal(arena_take(&a, 1, &p), -ENOSPC);
	arena_give(&a, 4 * M);
	arena_give(&a, 0);
	assert_int_equal(arena_take(&a, 8 * M, &p), -ENOSPC);
	assert_int_equal(take(&a, 3 * M), 4 * M);
	assert_int_equal(take(&a, 3), 0);
	assert_int_equal(a.count, 5);
	arena_release(&a);
}

static void what_does_not_fit_changes_nothing(void **state)
{
	struct arena a;
	struct arena_part p;

	assert_int_equal(arena_init(&a, 6 * M, 2), 0);
	assert_int_equal(arena_take(&a, 8 * M, &p), -ENOSPC);
	assert_int_equal(arena_take(&a, 1ull << 62, &p), -ENOSPC);
	assert_int_equal(take(&a, 4 * M), 0);
	assert_int_equal(take(&a, M), 4 * M);
	arena_give(&a, 0);
	assert_int_equal(take(&a, M), 0);
	assert_int_equal(arena_take(&a, M, &p), -ENOSPC); /* two at most */
	arena_release(&a);
}

/* Parts lie apart, at multiples of their sizes, and all come back. */
static void parts_never_meet(void **state)
{
	enum {
		PARTS = 64
	};
	struct arena_part have[PARTS];
	unsigned count = 0;
	struct rng rng;
	struct arena a;

	rng_init(&rng, 7);
	assert_int_equal(arena_init(&a, 512 * M, PARTS), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t size = 1 + rng_u64(&rng) % (64 * M);

		if (count && rng_u64(&rng) % 2) {
			unsigned k = (unsigned)(rng_u64(&rng) % count);

			arena_give(&a, have[k].at);
			have[k] = have[--count];
		} else if (arena_take(&a, size, &have[count]) == 0) {
			assert_true(have[count].bytes >= size);
			assert_int_equal(have[count].at % have[count].bytes, 0);
			assert_true(have[count].at + have[count].bytes <=
				    512 * M);
			for (unsigned k = 0; k < count; k++)
				assert_true(have[k].at >=
						    have[count].at +
							    have[count].bytes ||
					    have[count].at >=
						    have[k].at + have[k].bytes);
			count++;
		}
	}
	while (count)
		arena_give(&a, have[--count].at);
	assert_int_equal(a.taken_bytes, 0);
	assert_int_equal(take(&a, 512 * M), 0);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_powers_of_two),
		cmocka_unit_test(the_first_place_is_taken),
		cmocka_unit_test(what_does_not_fit_changes_nothing),
		cmocka_unit_test(parts_never_meet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
