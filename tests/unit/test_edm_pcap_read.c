/* SPDX-License-Identifier: Apache-2.0 */
/* The pcap reader: both byte orders, and words for whatever is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "edm/pcap_read.h"

enum {
	HEADER = 24,
	FRAME_A = 60,
	FRAME_B = 100,
	FILE_BYTES = HEADER + 16 + FRAME_A + 16 + FRAME_B,
	AT_B = HEADER + 16 + FRAME_A,
};

static void put(uint8_t *p, uint32_t v, bool big)
{
	be32 b = be32_put(v);
	le32 l = le32_put(v);

	memcpy(p, big ? b.b : l.b, 4);
}

static void put_frame(uint8_t *p, uint32_t n, uint32_t fraction, bool big)
{
	put(p, 1000, big);
	put(p + 4, fraction, big);
	put(p + 8, n, big);
	put(p + 12, n, big);
	for (uint32_t i = 0; i < n; i++)
		p[16 + i] = (uint8_t)(n + i);
}

static void make(uint8_t file[FILE_BYTES], bool big, bool nano)
{
	memset(file, 0, FILE_BYTES);
	put(file, nano ? 0xa1b23c4d : 0xa1b2c3d4, big);
	put(file + 4, big ? 0x00020004 : 0x00040002, big);
	put(file + 16, 65535, big);
	put(file + 20, 1, big);
	put_frame(file + HEADER, FRAME_A, 5, big);
	put_frame(file + AT_B, FRAME_B, 999999, big);
}

static void good_files(void **state)
{
	uint8_t file[FILE_BYTES];

	for (int k = 0; k < 4; k++) {
		struct edm_pcap p;
		uint64_t unit = k & 2 ? 1 : 1000;

		make(file, k & 1, k & 2);
		assert_int_equal(edm_pcap_parse("x", file, sizeof(file), &p),
				 0);
		assert_int_equal(p.frames, 2);
		assert_int_equal(p.frame[0].offset, HEADER + 16);
		assert_int_equal(p.frame[0].len_bytes, FRAME_A);
		assert_true(p.frame[0].time_ns == 1000000000000 + 5 * unit);
		assert_int_equal(p.frame[1].offset, AT_B + 16);
		assert_int_equal(p.frame[1].len_bytes, FRAME_B);
		edm_pcap_release(&p);
		/* No frame at all is a file too. */
		assert_int_equal(edm_pcap_parse("x", file, HEADER, &p), 0);
		assert_int_equal(p.frames, 0);
		edm_pcap_release(&p);
	}
}

/* Cut anywhere but between frames, it is refused with the offset. */
static void truncated(void **state)
{
	uint8_t file[FILE_BYTES];

	make(file, false, false);
	for (size_t n = 0; n < FILE_BYTES; n++) {
		uint8_t *copy = malloc(n ? n : 1); /* for the sanitizer */
		struct edm_pcap p;
		char offset[32];

		assert_non_null(copy);
		memcpy(copy, file, n);
		if (n == HEADER || n == AT_B) {
			assert_int_equal(edm_pcap_parse("x", copy, n, &p), 0);
			edm_pcap_release(&p);
		} else {
			assert_true(edm_pcap_parse("x.pcap", copy, n, &p) < 0);
			snprintf(offset, sizeof(offset), "offset %zu,", n);
			assert_non_null(strstr(error_last(), offset));
			assert_non_null(strstr(error_last(), "x.pcap"));
		}
		free(copy);
	}
}

static void malformed(void **state)
{
	static const struct {
		uint32_t at, value;
		const char *words;
	} bad[] = {
		{0, 0x0a0d0d0a, "offset 0:"},
		{4, 0x00040001, "offset 4:"},
		{20, 101, "offset 20:"},
		{HEADER + 4, 1000000, "offset 28:"},
		{HEADER + 8, 13, "offset 32:"},
		{HEADER + 8, 9015, "offset 32:"},
		{HEADER + 8, 0xffffffff, "offset 32:"},
		{HEADER + 12, 61, "offset 32:"},
		{AT_B + 8, 5, "offset 108:"},
	};
	uint8_t file[FILE_BYTES];
	struct edm_pcap p;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		make(file, false, false);
		put(file + bad[i].at, bad[i].value, false);
		assert_true(edm_pcap_parse("y", file, sizeof(file), &p) < 0);
		assert_non_null(strstr(error_last(), bad[i].words));
	}
	assert_true(edm_pcap_read("/does/not/exist.pcap", &p) < 0);
	assert_non_null(strstr(error_last(), "/does/not/exist.pcap"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_files),
		cmocka_unit_test(truncated),
		cmocka_unit_test(malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
