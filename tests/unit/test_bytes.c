/* SPDX-License-Identifier: Apache-2.0 */
/* Wire integers, small helpers of base.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/bytes.h"
#include "base/rng.h"

static void test_layout(void **state)
{
	be16 b16 = be16_put(0x0102);
	be24 b24 = be24_put(0xff010203); /* the top byte is cut off */
	be32 b32 = be32_put(0x01020304);
	be64 b64 = be64_put(0x0102030405060708);
	le32 l32 = le32_put(0x04030201);
	le64 l64 = le64_put(0x0807060504030201);

	assert_memory_equal(&b16, "\1\2", 2);
	assert_memory_equal(&b24, "\1\2\3", 3);
	assert_memory_equal(&b32, "\1\2\3\4", 4);
	assert_memory_equal(&b64, "\1\2\3\4\5\6\7\10", 8);
	assert_memory_equal(&l32, "\1\2\3\4", 4);
	assert_memory_equal(&l64, "\1\2\3\4\5\6\7\10", 8);
	STATIC_ASSERT(sizeof(be24) == 3 && _Alignof(be64) == 1 &&
			      _Alignof(le64) == 1,
		      "wire integers have no padding and no alignment");
}

static void test_round_trips(void **state)
{
	struct rng r;
	unsigned i;

	rng_init(&r, 2);
	for (i = 0; i < 10000; i++) {
		uint64_t v = rng_u64(&r);

		assert_int_equal(be16_get(be16_put((uint16_t)v)), (uint16_t)v);
		assert_int_equal(be24_get(be24_put((uint32_t)v)), v & 0xffffff);
		assert_int_equal(be32_get(be32_put((uint32_t)v)), (uint32_t)v);
		assert_int_equal(le32_get(le32_put((uint32_t)v)), (uint32_t)v);
		assert_true(be64_get(be64_put(v)) == v);
		assert_true(le64_get(le64_put(v)) == v);
	}
}

static void test_helpers(void **state)
{
	assert_int_equal(align_up(0, 64), 0);
	assert_int_equal(align_up(1, 64), 64);
	assert_int_equal(align_up(64, 64), 64);
	assert_int_equal(u32_pow2_ceil(0), 1);
	assert_int_equal(u32_pow2_ceil(1), 1);
	assert_int_equal(u32_pow2_ceil(2), 2);
	assert_int_equal(u32_pow2_ceil(3), 4);
	assert_int_equal(u32_pow2_ceil(1u << 31), 1u << 31);
	assert_int_equal(u32_min(1, 2), 1);
	assert_int_equal(u32_max(1, 2), 2);
	assert_true(u64_min(UINT64_MAX, 3) == 3);
	assert_true(u64_max(UINT64_MAX, 3) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
