/* SPDX-License-Identifier: Apache-2.0 */
/* Images: what is written is read again, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/error.h"
#include "base/layout.h"
#include "walk/image.h"
#include "walk/op.h"

static const struct walk_insn insns[] = {
	{.op = WALK_OP_LDN8, .d = 1, .imm = 16},
	{.op = WALK_OP_GO, .a = 1},
};

static const struct walk_image sample = {
	.name = "list",
	.load_lo = -8,
	.load_bytes = 24,
	.pad_bytes = 16,
	.flags = 0,
	.count = 2,
	.insns = insns,
};

enum {
	BYTES = WALK_HEADER_BYTES + sizeof(insns),
};

union file {
	uint8_t bytes[BYTES + 8];
	uint64_t aligned;
};

static const struct layout_kind kind = {
	.name = "walk image",
	.magic = "AQWALK01",
	.major = 1,
	.header_size = WALK_HEADER_BYTES,
};

static void what_is_written_is_read_again(void **state)
{
	struct walk_image got;
	union file f;

	assert_int_equal(walk_image_bytes(&sample), BYTES);
	walk_image_write(&sample, f.bytes);
	assert_int_equal(walk_image_parse(f.bytes, BYTES, &got), 0);
	assert_string_equal(got.name, "list");
	assert_int_equal(got.load_lo, -8);
	assert_int_equal(got.load_bytes, 24);
	assert_int_equal(got.pad_bytes, 16);
	assert_int_equal(got.count, 2);
	assert_ptr_equal(got.insns, f.bytes + WALK_HEADER_BYTES);
	assert_true(got.hash == walk_image_hash(&sample));
	/* The name on the wire: it must not change from build to build. */
	assert_int_equal(got.hash, 0x6fe112e580a27ecb);
}

static void every_byte_counts(void **state)
{
	struct walk_image got;
	union file f;

	for (size_t i = 0; i < BYTES; i++) {
		walk_image_write(&sample, f.bytes);
		f.bytes[i] ^= 1;
		if (walk_image_parse(f.bytes, BYTES, &got) == 0)
			assert_true(got.hash != walk_image_hash(&sample));
		else
			assert_true(i < WALK_HEADER_BYTES);
	}
	for (size_t len = 0; len < sizeof(f.bytes); len++) {
		walk_image_write(&sample, f.bytes);
		if (len != BYTES)
			assert_true(walk_image_parse(f.bytes, len, &got) < 0);
	}
}

/* One field is wrong, the header's own checksum is right. */
static void fields_without_a_good_value_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint16_t value;
		const char *words;
	} bad[] = {
		{66, 7, "loads 7 bytes"},
		{66, 4097, "loads 4097 bytes"},
		{68, 4033, "a pad of 4033 bytes"},
		{70, 2, "unknown flags"},
		{72, 0, "has 0 instructions"},
		{72, 4097, "has 4097 instructions"},
		{72, 1, "make 136 bytes"},
		{76, 0, "no or more than"},
		{76, 0x2f6c, "only letters"},
		{81, 0x6161, "only letters"},
		{100, 1, "foreign bytes"},
	};
	struct walk_image got;
	union file f;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		walk_image_write(&sample, f.bytes);
		memcpy(f.bytes + bad[i].at, &bad[i].value, 2);
		assert_int_equal(walk_image_parse(f.bytes, BYTES, &got),
				 -EINVAL);
		if (!strstr(error_last(), bad[i].words))
			fail_msg("%zu: '%s' lacks '%s'", i, error_last(),
				 bad[i].words);
	}
	walk_image_write(&sample, f.bytes);
	layout_header_init((void *)f.bytes, &kind, BYTES, "somebody");
	assert_int_equal(walk_image_parse(f.bytes, BYTES, &got), -EINVAL);
	walk_image_write(&sample, f.bytes + 1);
	assert_int_equal(walk_image_parse(f.bytes + 1, BYTES, &got), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(fields_without_a_good_value_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
