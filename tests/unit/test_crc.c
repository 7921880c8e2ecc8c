/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums against published check values, and in pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/crc_short.h"
#include "base/rng.h"

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

/* Every length that the short way takes, at every alignment. */
static void test_short(void **state)
{
	uint8_t buf[CRC_SHORT_MAX + 16];
	struct rng r;
	size_t n, at;

	rng_init(&r, 5);
	for (n = CRC_SHORT_MIN; n <= CRC_SHORT_MAX; n += 4) {
		uint32_t seed = (uint32_t)rng_u64(&r);

		rng_fill(&r, buf, sizeof(buf));
		for (at = 0; at < 16; at++) {
			uint32_t want = slow_crc32(seed, buf + at, n);

			assert_int_equal(crc32_short(seed, buf + at, n), want);
			assert_int_equal(crc32_long(seed, buf + at, n), want);
		}
	}
}

/* A lead in registers, of 8, 12 or 24 bytes, with and without a copy. */
static void test_lead(void **state)
{
	static const size_t lead_bytes[] = {8, 12, 24};
	uint8_t msg[24 + CRC_LEAD_MAX], dst[CRC_LEAD_MAX + 1];
	struct rng r;
	size_t n, k;

	rng_init(&r, 6);
	for (n = 0; n <= CRC_LEAD_MAX; n += 16) {
		for (k = 0; k < 3; k++) {
			uint32_t seed = (uint32_t)rng_u64(&r);
			size_t skip = 24 - lead_bytes[k], i;
			uint64_t w[3] = {0};
			uint32_t want;

			rng_fill(&r, msg, sizeof(msg));
			want = slow_crc32(seed, msg + skip, lead_bytes[k] + n);
			memcpy((uint8_t *)w + skip, msg + skip, lead_bytes[k]);
			for (i = 0; i < 4; i++)
				((uint8_t *)w)[skip + i] ^=
					(uint8_t)(seed >> 8 * i);
			memset(dst, 0xaa, sizeof(dst));
			assert_int_equal(
				crc32_lead(w[0], w[1], w[2], NULL, msg + 24, n),
				want);
			assert_int_equal(
				crc32_lead(w[0], w[1], w[2], dst, msg + 24, n),
				want);
			assert_memory_equal(dst, msg + 24, n);
			assert_int_equal(dst[n], 0xaa);
			assert_int_equal(crc32_lead_plain(w[0], w[1], w[2], dst,
							  msg + 24, n),
					 want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc32_known),
		cmocka_unit_test(test_crc64_known),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_lead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
