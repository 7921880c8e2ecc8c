/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums against published check values, and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crc.h"
#include "rng.h"

/* CRC-32/ISO-HDLC of the nine digits is cbf43926; of 32 zero bytes 190a55ad. */
static void test_crc32_known(void **state)
{
	static const uint8_t zeros[32];

	assert_int_equal(~crc32_raw(~0u, "123456789", 9), 0xcbf43926);
	assert_int_equal(~crc32_raw(~0u, zeros, sizeof(zeros)), 0x190a55ad);
	assert_int_equal(crc32_raw(0x1234, "", 0), 0x1234);
	assert_int_equal(crc32_raw(0, zeros, sizeof(zeros)), 0);
}

/* CRC-64/XZ of the nine digits is 995dc9bbdf1939fa. */
static void test_crc64_known(void **state)
{
	assert_true(crc64(0, "123456789", 9) == 0x995dc9bbdf1939fa);
	assert_true(crc64(77, "", 0) == 77);
}

static uint32_t slow_crc32(uint32_t state, const uint8_t *p, size_t n)
{
	unsigned bit;

	while (n--) {
		state ^= *p++;
		for (bit = 0; bit < 8; bit++)
			state = state >> 1 ^ (state & 1 ? 0xedb88320 : 0);
	}
	return state;
}

static void test_pieces(void **state)
{
	uint8_t buf[2000];
	struct rng r;
	unsigned i;

	rng_init(&r, 4);
	rng_fill(&r, buf, sizeof(buf));
	for (i = 0; i < 500; i++) {
		size_t n = rng_below(&r, sizeof(buf) + 1);
		size_t cut = rng_between(&r, 0, n);
		uint32_t seed = (uint32_t)rng_u64(&r);
		uint32_t whole = crc32_raw(seed, buf, n);

		assert_int_equal(whole, slow_crc32(seed, buf, n));
		assert_int_equal(crc32_raw(crc32_raw(seed, buf, cut), buf + cut,
					   n - cut),
				 whole);
		assert_true(crc64(crc64(0, buf, cut), buf + cut, n - cut) ==
			    crc64(0, buf, n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32_known),
		cmocka_unit_test(test_crc64_known),
		cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
