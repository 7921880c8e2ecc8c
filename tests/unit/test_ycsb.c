/* SPDX-License-Identifier: Apache-2.0 */
/* The workload generator: mixes, distributions, permutation, bad arguments. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/ycsb.h"

/* Chi-square of counts against expected counts. Bins that expect fewer than 5
 * are joined with the next. */
static double chi_square(const uint64_t *got, const double *want, size_t n,
			 unsigned *degrees)
{
	double sum = 0, g = 0, w = 0;
	unsigned bins = 0;

	for (size_t i = 0; i < n; i++) {
		g += (double)got[i];
		w += want[i];
		if (w < 5 && i + 1 < n)
			continue;
		sum += (g - w) * (g - w) / w;
		bins++;
		g = w = 0;
	}
	*degrees = bins - 1;
	return sum;
}

/* Five standard deviations above the mean of the statistic: one wrong alarm in
 * millions, and the seed is fixed anyway. */
static double chi_limit(unsigned degrees)
{
	return degrees + 5 * sqrt(2.0 * degrees);
}

static void test_uniform(void **state)
{
	enum {
		N = 1000,
		DRAWS = 500000
	};
	static uint64_t got[N];
	static double want[N];
	struct ycsb_keys keys;
	struct ycsb y;
	unsigned df;

	assert_int_equal(ycsb_keys_init(&keys, YCSB_UNIFORM, N, 0), 0);
	ycsb_init(&y, YCSB_C, &keys, 1, 0);
	for (unsigned i = 0; i < DRAWS; i++) {
		struct ycsb_op op = ycsb_next(&y);

		assert_int_equal(op.kind, YCSB_READ);
		assert_true(op.record < N);
		got[op.record]++;
	}
	for (unsigned i = 0; i < N; i++)
		want[i] = (double)DRAWS / N;
	assert_true(chi_square(got, want, N, &df) < chi_limit(df));
	assert_true(fabs(ycsb_keys_mass(&keys, N / 4) - 0.25) < 1e-9);
}

static void test_zipf_head(void **state)
{
	enum {
		N = 1000000,
		DRAWS = 1000000
	};
	struct ycsb_keys keys;
	uint64_t first = 0, second = 0, hundred = 0, tenth = 0;
	struct rng r;

	assert_int_equal(ycsb_keys_init(&keys, YCSB_ZIPFIAN, N, YCSB_THETA), 0);
	rng_init(&r, 7);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t rank = ycsb_keys_rank(&keys, &r);

		assert_true(rank < N);
		first += rank == 0;
		second += rank == 1;
		hundred += rank < 100;
		tenth += rank < N / 10;
	}
	assert_true(fabs((double)first / DRAWS - ycsb_keys_mass(&keys, 1)) <
		    0.001);
	assert_true(fabs((double)second / DRAWS - (ycsb_keys_mass(&keys, 2) -
						   ycsb_keys_mass(&keys, 1))) <
		    0.001);
	assert_true(fabs((double)hundred / DRAWS - ycsb_keys_mass(&keys, 100)) <
		    0.01);
	assert_true(fabs((double)tenth / DRAWS -
			 ycsb_keys_mass(&keys, N / 10)) < 0.01);
	/* What every user of theta 0.99 quotes for a million records: the first
	 * has 6.5 % and the first tenth five sixths of all accesses. */
	assert_true(fabs(ycsb_keys_mass(&keys, 1) - 0.0650) < 0.001);
	assert_true(fabs(ycsb_keys_mass(&keys, N / 10) - 0.834) < 0.01);
}

/* The quick sum agrees with the plain one. */
static void test_zeta(void **state)
{
	enum {
		N = 300000,
		TOP = 77777
	};
	struct ycsb_keys keys;
	double all = 0, top = 0;

	for (unsigned i = 1; i <= N; i++) {
		all += pow(i, -0.9);
		if (i == TOP)
			top = all;
	}
	assert_int_equal(ycsb_keys_init(&keys, YCSB_ZIPFIAN, N, 0.9), 0);
	assert_true(fabs(keys.zetan / all - 1) < 1e-10);
	assert_true(fabs(ycsb_keys_mass(&keys, TOP) - top / all) < 1e-10);
}

/* Every rank comes as often as the law says. */
static void test_zipf_shape(void **state)
{
	static const struct {
		unsigned count;
		double theta;
	} cases[] = {{1, 0.99}, {2, 0.99}, {3, 0.5}, {2000, 0.99}, {2000, 0.2}};
	enum {
		DRAWS = 300000
	};

	for (unsigned c = 0; c < ARRAY_LEN(cases); c++) {
		unsigned n = cases[c].count, df;
		uint64_t *got = calloc(n, sizeof(*got));
		double *want = calloc(n, sizeof(*want));
		struct ycsb_keys keys;
		struct rng r;

		assert_non_null(got);
		assert_non_null(want);
		assert_int_equal(
			ycsb_keys_init(&keys, YCSB_ZIPFIAN, n, cases[c].theta),
			0);
		rng_init(&r, 99);
		for (unsigned i = 0; i < DRAWS; i++) {
			uint64_t rank = ycsb_keys_rank(&keys, &r);

			assert_true(rank < n);
			got[rank]++;
		}
		for (unsigned i = 0; i < n; i++)
			want[i] = DRAWS * pow(i + 1, -cases[c].theta) /
				  keys.zetan;
		assert_true(n == 1 ||
			    chi_square(got, want, n, &df) < chi_limit(df));
		free(got);
		free(want);
	}
}

static void test_scatter(void **state)
{
	static const uint64_t counts[] = {1, 2, 3, 5, 64, 1000, 4097};

	for (unsigned c = 0; c < ARRAY_LEN(counts); c++) {
		struct ycsb_keys keys;
		uint8_t *seen = calloc(counts[c], 1);

		assert_non_null(seen);
		assert_int_equal(ycsb_keys_init(&keys, YCSB_ZIPFIAN, counts[c],
						YCSB_THETA),
				 0);
		for (uint64_t i = 0; i < counts[c]; i++) {
			uint64_t at = ycsb_keys_scatter(&keys, i);

			assert_true(at < counts[c]);
			assert_false(seen[at]);
			seen[at] = 1;
		}
		free(seen);
	}
}

/* The popular ones are not neighbours. */
static void test_scattered_wide(void **state)
{
	enum {
		N = 1 << 20,
		HEAD = 1024,
		BINS = 16
	};
	struct ycsb_keys keys;
	uint64_t got[BINS] = {0};
	double want[BINS];
	unsigned df;

	assert_int_equal(ycsb_keys_init(&keys, YCSB_ZIPFIAN, N, YCSB_THETA), 0);
	for (uint64_t i = 0; i < HEAD; i++)
		got[ycsb_keys_scatter(&keys, i) / (N / BINS)]++;
	for (unsigned b = 0; b < BINS; b++)
		want[b] = (double)HEAD / BINS;
	assert_true(chi_square(got, want, BINS, &df) < chi_limit(df));
}

static void test_mixes(void **state)
{
	static const struct {
		enum ycsb_mix mix;
		double reads;
		enum ycsb_op_kind other;
	} cases[] = {{YCSB_A, 0.5, YCSB_UPDATE},
		     {YCSB_B, 0.95, YCSB_UPDATE},
		     {YCSB_C, 1, YCSB_UPDATE},
		     {YCSB_F, 0.5, YCSB_RMW}};
	enum {
		DRAWS = 100000
	};
	struct ycsb_keys keys;

	assert_int_equal(ycsb_keys_init(&keys, YCSB_ZIPFIAN, 1000, YCSB_THETA),
			 0);
	for (unsigned c = 0; c < ARRAY_LEN(cases); c++) {
		unsigned reads = 0;
		struct ycsb y;

		ycsb_init(&y, cases[c].mix, &keys, 3, c);
		for (unsigned i = 0; i < DRAWS; i++) {
			struct ycsb_op op = ycsb_next(&y);

			if (op.kind == YCSB_READ)
				reads++;
			else
				assert_int_equal(op.kind, cases[c].other);
		}
		assert_true(fabs((double)reads / DRAWS - cases[c].reads) <
			    0.01);
	}
}

static void test_repeats(void **state)
{
	struct ycsb_keys keys;
	struct ycsb a, b, c;
	unsigned same = 0;

	assert_int_equal(
		ycsb_keys_init(&keys, YCSB_ZIPFIAN, 100000, YCSB_THETA), 0);
	ycsb_init(&a, YCSB_A, &keys, 5, 0);
	ycsb_init(&b, YCSB_A, &keys, 5, 0);
	ycsb_init(&c, YCSB_A, &keys, 5, 1);
	for (unsigned i = 0; i < 1000; i++) {
		struct ycsb_op x = ycsb_next(&a), y = ycsb_next(&b);

		assert_int_equal(x.kind, y.kind);
		assert_true(x.record == y.record);
		same += x.record == ycsb_next(&c).record;
	}
	assert_true(same < 200);
	assert_true(ycsb_key(0) != ycsb_key(1));
}

static void test_bad(void **state)
{
	struct ycsb_keys k;

	assert_int_equal(ycsb_keys_init(&k, YCSB_UNIFORM, 0, 0), -EINVAL);
	assert_int_equal(ycsb_keys_init(&k, YCSB_ZIPFIAN, 5, 1), -EINVAL);
	assert_int_equal(ycsb_keys_init(&k, YCSB_ZIPFIAN, 5, 0), -EINVAL);
	assert_int_equal(ycsb_keys_init(&k, YCSB_ZIPFIAN, 5, NAN), -EINVAL);
	assert_int_equal(ycsb_keys_init(&k, (enum ycsb_dist)9, 5, 0.5),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_zipf_head),
		cmocka_unit_test(test_zeta),
		cmocka_unit_test(test_zipf_shape),
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_scattered_wide),
		cmocka_unit_test(test_mixes),
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
