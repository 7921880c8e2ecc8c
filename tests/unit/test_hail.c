/* SPDX-License-Identifier: Apache-2.0 */
/* Hails: what is one, and what only looks like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hail.h"

static void test_question(void **state)
{
	struct hail h, back;

	hail_init(&h, 7, 0x1122334455667788ull);
	assert_true(hail_parse(&h, sizeof(h), HAIL_ASK, &back));
	assert_int_equal(back.index, 7);
	assert_int_equal(be64_get(back.nonce), 0x1122334455667788ull);
	assert_false(hail_parse(&h, sizeof(h), HAIL_ANSWER, &back));
	h.kind = HAIL_ANSWER;
	assert_true(hail_parse(&h, sizeof(h), HAIL_ANSWER, &back));
}

/* Every byte of what says that it is one, and one byte less. */
static void test_not_a_hail(void **state)
{
	struct hail h, back;
	uint8_t bytes[sizeof(h)];

	hail_init(&h, 0, 1);
	assert_false(hail_parse(&h, sizeof(h) - 1, HAIL_ASK, &back));
	for (unsigned i = 0; i < HAIL_INDEX_AT; i++) {
		memcpy(bytes, &h, sizeof(h));
		bytes[i] ^= 1;
		assert_false(hail_parse(bytes, sizeof(h), HAIL_ASK, &back));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question),
		cmocka_unit_test(test_not_a_hail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
