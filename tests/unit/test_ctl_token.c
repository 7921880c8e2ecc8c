/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, hashes and token files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
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

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_file(void **state)
{
	char dir[] = "/tmp/aquifer-token.XXXXXX", path[64];
	char a[CTL_TOKEN_TEXT], b[CTL_TOKEN_TEXT];
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/token", dir);
	assert_int_equal(ctl_token_file(dir, "token", a), 0);
	assert_true(ctl_token_is_valid(a));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(ctl_token_file(dir, "token", b), 0);
	assert_string_equal(a, b);
	assert_int_equal(ctl_token_file(dir, "other", b), 0);
	assert_string_not_equal(a, b);

	write_file(path, token, 0644); /* anybody could have read it */
	assert_int_equal(ctl_token_file(dir, "token", b), -EPERM);
	write_file(path, token, 0600); /* no newline is fine */
	assert_int_equal(ctl_token_file(dir, "token", b), 0);
	assert_string_equal(b, token);
	write_file(path,
		   "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
		   "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\n",
		   0600);
	assert_int_equal(ctl_token_file(dir, "token", b), -EBADMSG);
	write_file(path, "short\n", 0600); /* waits for more, then gives up */
	assert_int_equal(ctl_token_file(dir, "token", b), -EAGAIN);

	unlink(path);
	assert_int_equal(symlink("other", path), 0);
	assert_int_equal(ctl_token_file(dir, "token", b), -ELOOP);
	unlink(path);
	snprintf(path, sizeof(path), "%s/other", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0); /* nothing else was left there */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_bad_tokens),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
