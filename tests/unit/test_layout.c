/* SPDX-License-Identifier: Apache-2.0 */
/* Layout headers: what is accepted, and the words for what is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc.h"
#include "base/error.h"
#include "base/layout.h"

static const struct layout_kind kind = {.name = "test table",
					.magic = "AQTEST\r\n",
					.major = 2,
					.minor = 3,
					.header_size = 128};

static void reseal(struct layout_header *h)
{
	h->checksum = le64_put(crc64(0, h, 56));
}

static void test_round_trip(void **state)
{
	struct layout_header h;
	struct layout_info info;

	layout_header_init(&h, &kind, 4096, "a name longer than it may be");
	assert_int_equal(layout_header_check(&h, 4096, &kind, &info), 0);
	assert_int_equal(info.minor, 3);
	assert_int_equal(info.header_size, 128);
	assert_int_equal(info.total_size, 4096);
	assert_string_equal(info.creator, "a name longer th");
	assert_int_equal(layout_header_check(&h, UINT64_MAX, &kind, NULL), 0);
	/* The bytes are the format; they must never change. */
	assert_memory_equal(&h, "AQTEST\r\n\2\0\0\0\3\0\0\0\x80\0\0\0", 20);
}

static void test_newer_minor(void **state)
{
	struct layout_header h;
	struct layout_info info;

	layout_header_init(&h, &kind, 4096, "new");
	h.minor = le32_put(9);
	h.header_size = le32_put(192);
	reseal(&h);
	assert_int_equal(layout_header_check(&h, 4096, &kind, &info), 0);
	assert_int_equal(info.minor, 9);
	assert_int_equal(info.header_size, 192);
}

static void test_every_bit(void **state)
{
	struct layout_info info = {.minor = 77};
	struct layout_header h;
	unsigned bit;

	layout_header_init(&h, &kind, 4096, "bits");
	for (bit = 0; bit < 8 * sizeof(h); bit++) {
		uint8_t *byte = (uint8_t *)&h + bit / 8;

		*byte ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(layout_header_check(&h, 4096, &kind, &info),
				 -EBADMSG);
		*byte ^= (uint8_t)(1u << bit % 8);
	}
	assert_int_equal(info.minor, 77); /* written only on success */
}

static void refuse(struct layout_header *h, uint64_t avail, int err,
		   const char *words)
{
	assert_int_equal(layout_header_check(h, avail, &kind, NULL), err);
	if (!strstr(error_last(), words))
		fail_msg("says: %s", error_last());
}

static void test_bad(void **state)
{
	struct layout_header h;

	layout_header_init(&h, &kind, 4096, "bad");
	refuse(&h, 63, -EBADMSG, "test table: 63 bytes are too short");
	refuse(&h, 4095, -EBADMSG, "4095 of 4096 bytes are there");
	h.creator[0] = 'x';
	refuse(&h, 4096, -EBADMSG, "header checksum is");

	layout_header_init(&h, &kind, 4096, "tool 7");
	h.major = le32_put(5);
	reseal(&h);
	refuse(&h, 4096, -EPROTONOSUPPORT,
	       "made by 'tool 7' in version 5.3; this program knows version "
	       "2.3");

	layout_header_init(&h, &kind, 4096, "bad");
	h.header_size = le32_put(32);
	reseal(&h);
	refuse(&h, 4096, -EBADMSG, "is impossible");
	h.header_size = le32_put(100);
	reseal(&h);
	refuse(&h, 4096, -EBADMSG, "is impossible");
	h.header_size = le32_put(4096 + 64);
	reseal(&h);
	refuse(&h, 4096, -EBADMSG, "is impossible");

	memcpy(h.magic, "\x01\xff\0OOOOO", 8);
	refuse(&h, 4096, -EBADMSG, "starts with '?\?' instead of");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_newer_minor),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
