/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram: bucket bounds, and percentiles against sorted samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hist.h"
#include "base/rng.h"

static void test_buckets(void **state)
{
	uint64_t next = 0;
	unsigned i;

	/* They cover everything without gap or overlap. */
	for (i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_bucket_low(i);
		uint64_t width = hist_bucket_width(i);

		assert_true(low == next);
		assert_int_equal(hist_index(low), i);
		assert_int_equal(hist_index(low + width - 1), i);
		assert_true(width == 1 || width * HIST_SUB <= low);
		next = low + width;
	}
	assert_true(next == 1ull << HIST_TOP_BITS);
	assert_int_equal(hist_index(next), HIST_BUCKETS - 1);
	assert_int_equal(hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_percentiles(void **state)
{
	static const uint32_t ppm[] = {0,      1,      10000,  250000, 500000,
				       750000, 990000, 999000, 1000000};
	enum {
		N = 20000,
	};
	uint64_t *sample = malloc(N * sizeof(*sample));
	struct hist h;
	struct rng rng;
	size_t i;

	assert_non_null(sample);
	rng_init(&rng, 7);
	hist_init(&h);
	for (i = 0; i < N; i++) {
		/* Some of every size, like latencies with a long tail. */
		sample[i] = rng_u64(&rng) >> (20 + rng_below(&rng, 44));
		hist_record(&h, sample[i]);
	}
	qsort(sample, N, sizeof(*sample), by_value);
	assert_int_equal(hist_count(&h), N);
	assert_true(h.min == sample[0] && h.max == sample[N - 1]);
	for (i = 0; i < ARRAY_LEN(ppm); i++) {
		uint64_t rank = ((uint64_t)N * ppm[i] + 999999) / 1000000;
		uint64_t want = sample[rank ? rank - 1 : 0];
		uint64_t got = hist_percentile(&h, ppm[i]);
		uint64_t off = got > want ? got - want : want - got;

		if (off > want / HIST_SUB + 1)
			fail_msg("at %u ppm: %llu instead of %llu", ppm[i],
				 (unsigned long long)got,
				 (unsigned long long)want);
	}
	assert_true(hist_percentile(&h, 1000000) <= h.max);
	free(sample);
}

static void test_small(void **state)
{
	struct hist h;

	hist_init(&h);
	assert_int_equal(hist_count(&h), 0);
	assert_int_equal(hist_percentile(&h, HIST_MEDIAN), 0);
	assert_true(hist_mean(&h) == 0);
	hist_record_many(&h, 5, 0);
	assert_int_equal(hist_count(&h), 0);
	hist_record(&h, 12345);
	assert_int_equal(hist_percentile(&h, HIST_MEDIAN), 12345);
	assert_int_equal(hist_percentile(&h, HIST_P99), 12345);
	assert_true(hist_mean(&h) == 12345);
	hist_record(&h, 0);
	assert_int_equal(h.min, 0);
	hist_record(&h, 7);
	assert_int_equal(h.min, 0);
	hist_init(&h);
	hist_record(&h, 0);
	hist_record(&h, 3);
	assert_int_equal(h.min, 0);
	assert_int_equal(h.max, 3);
	hist_init(&h);
	hist_record(&h, UINT64_MAX);
	assert_true(hist_percentile(&h, HIST_MEDIAN) == UINT64_MAX);
}

static void test_merge(void **state)
{
	struct hist a, b, both, empty;
	struct rng rng;
	unsigned i;

	rng_init(&rng, 3);
	hist_init(&a);
	hist_init(&b);
	hist_init(&both);
	hist_init(&empty);
	for (i = 0; i < 1000; i++) {
		uint64_t v = rng_below(&rng, 1000000);

		hist_record(i % 3 ? &a : &b, v);
		hist_record(&both, v);
	}
	hist_merge(&a, &b);
	assert_memory_equal(&a, &both, sizeof(a));
	hist_merge(&a, &empty);
	assert_memory_equal(&a, &both, sizeof(a));
	hist_merge(&empty, &a);
	assert_memory_equal(&empty, &both, sizeof(a));
}

/* Damaged contents give nonsense, but an end. */
static void test_damaged(void **state)
{
	struct hist h;
	unsigned i;

	for (i = 0; i < sizeof(h) / 8; i++)
		((uint64_t *)&h)[i] = UINT64_MAX;
	assert_true(hist_count(&h) == UINT64_MAX);
	(void)hist_percentile(&h, HIST_P999);
	(void)hist_percentile(&h, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
