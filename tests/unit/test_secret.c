/* SPDX-License-Identifier: Apache-2.0 */
/* Files with a secret: only those that are their owner's alone are believed. */
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

#include "base/error.h"
#include "base/secret.h"

static const char good[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
			   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static char dir[64], path[128];

static int make_dir(void **state)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/aquifer-secret.XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/token", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)unlink(path);
	return rmdir(dir); /* nothing else was left there */
}

static void write_file(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void is_for_its_owner_alone(void **state)
{
	char a[SECRET_TEXT], b[SECRET_TEXT];
	struct stat st;

	assert_int_equal(secret_make(a), 0);
	assert_true(secret_is_valid(a));
	assert_int_equal(secret_read(path, b), -ENOENT);
	assert_int_equal(secret_create(path, a), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(secret_read(path, b), 0);
	assert_string_equal(a, b);
	assert_int_equal(secret_create(path, good), -EEXIST);
	assert_int_equal(secret_read(path, b), 0);
	assert_string_equal(a, b);
	assert_int_equal(secret_replace(path, good), 0);
	assert_int_equal(secret_read(path, b), 0);
	assert_string_equal(b, good);
}

static void open_to_others_is_refused(void **state)
{
	static const mode_t modes[] = {0644, 0640, 0604, 0620, 0602};
	char b[SECRET_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		write_file(good, modes[i]);
		assert_int_equal(secret_read(path, b), -EPERM);
		assert_non_null(strstr(error_last(), "chmod 600"));
		assert_null(strstr(error_last(), good));
		assert_int_equal(secret_read_runtime(path, b), -EPERM);
	}
	write_file(good, 0400); /* no newline is fine, nor the right to write */
	assert_int_equal(secret_read(path, b), 0);
}

static void what_is_no_token_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "short\n",
		"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"
		"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\n",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"};
	char b[SECRET_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_file(bad[i], 0600);
		assert_int_equal(secret_read(path, b), -EBADMSG);
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(secret_read(path, b), -EPERM);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(secret_read(path, b), -EPERM); /* and does not wait */
}

static void another_users_is_refused(void **state)
{
	char b[SECRET_TEXT];

	if (geteuid() != 0)
		skip();
	write_file(good, 0600);
	assert_int_equal(chown(path, 12, 12), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	/* Root may look at racks of other users. A file keeps its owner. */
	assert_int_equal(secret_read(path, b), 0);
	assert_int_equal(secret_give(path, good), 0);
	assert_int_equal(seteuid(12), 0);
	assert_int_equal(secret_read(path, b), 0);
	assert_int_equal(seteuid(0), 0);
	/* But not where somebody else could have put it. */
	assert_int_equal(chmod(dir, 01777), 0);
	assert_int_equal(secret_give(path, good), 0);
	assert_int_equal(seteuid(12), 0);
	assert_int_equal(secret_read(path, b), -EACCES);
	assert_int_equal(seteuid(0), 0);
	/* Another one could not read it, but may be made to believe it. */
	assert_int_equal(chown(path, 13, 13), 0);
	assert_int_equal(seteuid(12), 0);
	assert_int_equal(secret_read(path, b), -EACCES);
	assert_int_equal(seteuid(0), 0);
	/* What root replaces for itself becomes root's. */
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(secret_replace(path, good), 0);
	assert_int_equal(seteuid(13), 0);
	assert_int_equal(secret_read(path, b), -EACCES);
	assert_int_equal(seteuid(0), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		TEST(is_for_its_owner_alone),
		TEST(open_to_others_is_refused),
		TEST(what_is_no_token_is_refused),
		TEST(another_users_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
