/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of overlaps: it may see one too many, and misses none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "wire/offload.h"
#include "wire/offload_filter.h"

enum {
	READS,
	WRITES,
	LINE = 1 << FILTER_REGISTER_SHIFT,
};

static bool clash(const struct offload_filter *f, unsigned kind,
		  uint64_t offset, uint64_t len_bytes)
{
	return offload_filter_conflicts(f, kind, 3, offset, len_bytes);
}

static void overlaps(void **state)
{
	static struct offload_filter f;
	const uint64_t wide = (FILTER_SPAN_MAX + 1) * LINE;

	offload_filter_init(&f, FILTER_REGISTER_SHIFT);
	assert_false(clash(&f, WRITES, 0, wide));
	offload_filter_add(&f, READS, 3, 100, 200);
	assert_false(clash(&f, READS, 100, 200));
	assert_true(clash(&f, WRITES, 299, 1));
	assert_true(clash(&f, WRITES, 0, wide));
	offload_filter_remove(&f, READS, 3, 100, 200);
	assert_false(clash(&f, WRITES, 299, 1));
	offload_filter_add(&f, WRITES, 3, 0, wide);
	assert_true(clash(&f, READS, 1 << 30, 1));
	offload_filter_remove(&f, WRITES, 3, 0, wide);
	assert_false(clash(&f, READS, 1 << 30, 1));
}

/* As many as rings hold, each as wide as lines are counted, whatever lines of
 * it share a place. */
static void many_of_one_range(void **state)
{
	static struct offload_filter f;
	const uint64_t bytes = FILTER_SPAN_MAX * LINE;

	offload_filter_init(&f, FILTER_REGISTER_SHIFT);
	for (unsigned n = 0; n < OFFLOAD_ENTRIES_MAX; n++) {
		offload_filter_add(&f, READS, 3, 0, bytes);
		if ((n + 1) % (OFFLOAD_ENTRIES_MAX / 64))
			continue;
		for (uint64_t at = 0; at < bytes; at += LINE)
			assert_true(clash(&f, WRITES, at, 8));
	}
	for (unsigned n = 0; n < OFFLOAD_ENTRIES_MAX; n++)
		offload_filter_remove(&f, READS, 3, 0, bytes);
	assert_false(clash(&f, WRITES, 0, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlaps),
		cmocka_unit_test(many_of_one_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
