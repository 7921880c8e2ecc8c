/* SPDX-License-Identifier: Apache-2.0 */
/* What a user writes about tiers, right and wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "tier/promote.h"
#include "tier/spec.h"

#define G (1ull << 30)

static void nodes_are_read(void **state)
{
	static const struct {
		const char *text;
		uint64_t top, slow;
		uint32_t top_node, slow_node;
	} row[] = {
		{"top=2G@0,slow=6G@1", 2 * G, 6 * G, 0, 1},
		{"slow=6G@1,top=2G@0", 2 * G, 6 * G, 0, 1},
		{"top=4096@1023", 4096, 0, 1023, 0},
		{"top=64M@3,slow=4K@0", 64 << 20, 4096, 3, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct tier_spec s;

		assert_int_equal(tier_spec_parse(row[i].text, &s), 0);
		assert_int_equal(s.at[TIER_TOP].bytes, row[i].top);
		assert_int_equal(s.at[TIER_SLOW].bytes, row[i].slow);
		assert_int_equal(s.at[TIER_TOP].node, row[i].top_node);
		assert_int_equal(s.at[TIER_SLOW].node, row[i].slow_node);
	}
}

static void wrong_nodes_are_refused_in_words(void **state)
{
	static const struct {
		const char *text, *why;
	} row[] = {
		{"", "a word is missing"},
		{",", "a word is missing"},
		{"top=2G@0,", "a word is missing"},
		{"top=2G@0,,slow=1G@1", "a word is missing"},
		{"slow=2G@0", "top is missing"},
		{"top=2G", "not TIER=SIZE@NODE"},
		{"top@0=2G", "not TIER=SIZE@NODE"},
		{"top", "not TIER=SIZE@NODE"},
		{"mid=2G@0", "neither top nor slow"},
		{"far=2G@0", "neither top nor slow"},
		{"=2G@0", "neither top nor slow"},
		{"top=2G@0,top=1G@1", "twice"},
		{"top=2G@0,slow=1G@0", "the same NUMA node"},
		{"top=0@0", "less than a page"},
		{"top=4095@0", "less than a page"},
		{"top=2X@0", "top: "},
		{"top=-1@0", "top: "},
		{"top=@0", "top: "},
		{"top=2G@", "top: "},
		{"top=2G@1024", "top: "},
		{"top=2G@x", "top: "},
		{"top=2G@0@1", "top: "},
		{"top=99999999999999999999G@0", "top: "},
		{"top=2G@0,slow=11111111111111111111111111111111111111111111111"
		 "1111111111111111@1",
		 "too long"},
	};
	struct tier_spec s = {.at = {{7, 7}, {7, 7}}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		assert_int_equal(tier_spec_parse(row[i].text, &s), -EINVAL);
		if (!strstr(error_last(), row[i].why))
			fail_msg("'%s': %s", row[i].text, error_last());
	}
	assert_int_equal(s.at[TIER_TOP].bytes, 7);
}

static void ratios_are_read(void **state)
{
	static const struct {
		const char *text;
		int err;
		struct tier_ratio ratio;
	} row[] = {
		{"3:1", 0, {3, 1}},	{"0:1", 0, {0, 1}},
		{"1:0", 0, {1, 0}},	{"255:255", 0, {255, 255}},
		{"0:0", -EINVAL, {0}},	{"256:1", -EINVAL, {0}},
		{"3", -EINVAL, {0}},	{"", -EINVAL, {0}},
		{":", -EINVAL, {0}},	{"3:", -EINVAL, {0}},
		{":1", -EINVAL, {0}},	{"3:1:1", -EINVAL, {0}},
		{"-1:1", -EINVAL, {0}}, {"a:b", -EINVAL, {0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct tier_ratio r = {9, 9};
		int err = tier_ratio_parse(row[i].text, &r);

		assert_int_equal(err, row[i].err);
		assert_int_equal(r.top, err ? 9 : row[i].ratio.top);
		assert_int_equal(r.slow, err ? 9 : row[i].ratio.slow);
	}
}

static void limits_are_read(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t limit_mb;
	} row[] = {
		{"on", 0, TIER_PROMOTE_AUTO},
		{"off", 0, 0},
		{"0", 0, 0},
		{"64", 0, 64},
		{"1048576", 0, 1048576},
		{"1048577", -EINVAL, 99},
		{"", -EINVAL, 99},
		{"yes", -EINVAL, 99},
		{"-1", -EINVAL, 99},
		{"64M", -EINVAL, 99},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		uint64_t mb = 99;

		assert_int_equal(tier_promote_parse(row[i].text, &mb),
				 row[i].err);
		assert_int_equal(mb, row[i].limit_mb);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_are_read),
		cmocka_unit_test(wrong_nodes_are_refused_in_words),
		cmocka_unit_test(ratios_are_read),
		cmocka_unit_test(limits_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
