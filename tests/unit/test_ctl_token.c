/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and hashes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "control/ctl_token.h"

static const char token[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/* printf TOKEN | sha256sum */
static const char token_sha256[] = "ffe054fe7ae0cb6dc65c3af9b61d5209"
				   "f439851db43d0ba5997337df154668eb";

static void test_hash(void **state)
{
	struct ctl_token_hash a, b;
	char text[CTL_TOKEN_TEXT];

	assert_int_equal(ctl_token_hash(token, &a), 0);
	ctl_token_hash_format(&a, text);
	assert_string_equal(text, token_sha256);
	assert_int_equal(ctl_token_hash_parse(text, &b), 0);
	assert_true(ctl_token_hash_equal(&a, &b));
	for (unsigned i = 0; i < sizeof(b.bytes); i++) {
		b = a;
		b.bytes[i] ^= 1;
		assert_false(ctl_token_hash_equal(&a, &b));
	}
}

static void test_bad_tokens(void **state)
{
	static const char *const bad[] = {
		"",
		"aa",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ",
	};
	struct ctl_token_hash h;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(ctl_token_is_valid(bad[i]));
		assert_int_equal(ctl_token_hash(bad[i], &h), -EINVAL);
		assert_int_equal(ctl_token_hash_parse(bad[i], &h), -EINVAL);
	}
	assert_true(ctl_token_is_valid(token));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_bad_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
