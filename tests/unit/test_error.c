/* SPDX-License-Identifier: Apache-2.0 */
/* Error words: every code of the contract, and a last error per thread. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void test_contract_codes(void **state)
{
	static const int codes[] = {EREMOTEIO, EHOSTDOWN, ESTALE,   EDQUOT,
				    ENOSPC,    EAGAIN,	  ETIMEDOUT};
	size_t i;

	for (i = 0; i < ARRAY_LEN(codes); i++) {
		const char *text = error_text(-codes[i]);
		const char *name = error_name(-codes[i]);

		assert_int_equal(text[0], '-');
		assert_memory_equal(text + 1, name, strlen(name));
		assert_ptr_equal(text, error_text(codes[i]));
		assert_true(strlen(error_advice(-codes[i])) > 0);
	}
}

/* Every text of the table begins with the name of its own code. */
static void test_all_codes(void **state)
{
	int code;

	for (code = 1; code < 200; code++) {
		const char *text = error_text(-code);

		assert_true(strlen(text) > 0);
		if (text[0] == '-') {
			const char *name = error_name(code);

			assert_memory_equal(text + 1, name, strlen(name));
			assert_memory_equal(text + 1 + strlen(name), ": ", 2);
		}
	}
	assert_string_equal(error_text(0), "success");
	assert_string_equal(error_text(-123456), "unknown error");
	assert_string_equal(error_advice(-123456), "");
	assert_null(error_name(-123456));
}

static void test_set(void **state)
{
	char big[2 * ERROR_TEXT_MAX];

	error_clear();
	assert_string_equal(error_last(), "");
	assert_int_equal(error_set(-EINVAL, "mtu %d", 5), -EINVAL);
	assert_string_equal(error_last(), "mtu 5");
	assert_int_equal(error_last_code(), -EINVAL);
	assert_int_equal(error_set(-EIO, "again: %s", error_last()), -EIO);
	assert_string_equal(error_last(), "again: mtu 5");
	assert_int_equal(error_prefix(-EPROTO, "peer %d: ", 3), -EPROTO);
	assert_string_equal(error_last(), "peer 3: again: mtu 5");
	assert_int_equal(error_last_code(), -EPROTO);

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	assert_int_equal(error_set(-EIO, "%s", big), -EIO);
	assert_int_equal(strlen(error_last()), ERROR_TEXT_MAX - 1);
	assert_int_equal(error_prefix(-EIO, "%s", big), -EIO);
	assert_int_equal(strlen(error_last()), ERROR_TEXT_MAX - 1);
}

static void *other_thread(void *arg)
{
	bool *clean = arg;

	*clean = error_last()[0] == 0 && error_last_code() == 0;
	(void)error_set(-EBUSY, "other"); /* its value is -EBUSY by contract */
	return NULL;
}

static void test_threads(void **state)
{
	bool clean = false;
	pthread_t t;

	assert_int_equal(error_set(-EIO, "mine"), -EIO);
	assert_int_equal(pthread_create(&t, NULL, other_thread, &clean), 0);
	pthread_join(t, NULL);
	assert_true(clean);
	assert_string_equal(error_last(), "mine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contract_codes),
		cmocka_unit_test(test_all_codes),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
