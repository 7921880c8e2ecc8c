/* SPDX-License-Identifier: Apache-2.0 */
/* What sorts and merges inside the tasks of `bench elastic`'s sort. */
#include "bench/elastic_sort.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"

enum {
	COUNT = 5000,
};

static void items_come_out_in_the_order_of_their_keys(void **state)
{
	struct sort_item *a = malloc(COUNT * sizeof(*a));
	struct sort_item *spare = malloc(COUNT * sizeof(*spare));
	uint64_t sum = 0;
	struct rng rng;

	rng_init(&rng, 1);
	for (unsigned i = 0; i < COUNT; i++) {
		a[i] = (struct sort_item){rng_u64(&rng) >> i % 60, i};
		sum += a[i].key * i;
	}
	sort_items(a, spare, COUNT);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_true(!i || a[i - 1].key <= a[i].key);
		sum -= a[i].key * a[i].at;
	}
	assert_true(sum == 0);
	free(a);
	free(spare);
}

/* A chunk of `count` records of a task, with keys from `first` on. */
static size_t put_chunk(uint8_t *at, uint32_t task, unsigned count,
			uint64_t first, uint64_t step)
{
	size_t bytes = (count + 1) * SORT_RECORD;

	memset(at, 0, bytes);
	*(struct sort_head *)(void *)at =
		(struct sort_head){.task = task, .bytes = (uint32_t)bytes};
	for (unsigned i = 0; i < count; i++) {
		uint64_t key = first + i * step;

		memcpy(at + (i + 1) * SORT_RECORD, &key, sizeof(key));
	}
	return bytes;
}

static void chunks_of_several_tasks_are_merged(void **state)
{
	static uint8_t in[64 * SORT_RECORD], out[64 * SORT_RECORD];
	uint64_t sum, count;
	size_t n = 0;

	n += put_chunk(in + n, 1, 5, 10, 10);
	n += put_chunk(in + n, 0, 4, 1, 20);
	n += put_chunk(in + n, 1, 3, 60, 1);
	assert_int_equal(sort_merge(in, n, out, sizeof(out), &sum, &count), 0);
	assert_int_equal(count, 12);
	assert_int_equal(sum, 10 + 20 + 30 + 40 + 50 + 1 + 21 + 41 + 61 + 60 +
				      61 + 62);
	for (unsigned i = 1; i < count; i++)
		assert_true(sort_key(out + (i - 1) * SORT_RECORD) <=
			    sort_key(out + i * SORT_RECORD));
}

static void what_is_no_run_is_refused(void **state)
{
	static uint8_t in[64 * SORT_RECORD], out[64 * SORT_RECORD];
	uint64_t sum, count;
	size_t n = put_chunk(in, 0, 3, 30, (uint64_t)-10);

	assert_int_equal(sort_merge(in, n, out, sizeof(out), &sum, &count),
			 -EBADMSG);
	n = put_chunk(in, SORT_RUNS, 3, 30, 1);
	assert_int_equal(sort_merge(in, n, out, sizeof(out), &sum, &count),
			 -EBADMSG);
	n = put_chunk(in, 0, 3, 30, 1);
	assert_int_equal(sort_merge(in, n - 1, out, sizeof(out), &sum, &count),
			 -EBADMSG);
	assert_int_equal(sort_merge(in, n, out, 2 * SORT_RECORD, &sum, &count),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_out_in_the_order_of_their_keys),
		cmocka_unit_test(chunks_of_several_tasks_are_merged),
		cmocka_unit_test(what_is_no_run_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
