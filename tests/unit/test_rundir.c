/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime directory: where it is, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rundir.h"

struct fixture {
	char top[64]; /* a fresh directory */
};

static int setup(void **state)
{
	static struct fixture fx;

	strcpy(fx.top, "/tmp/test_rundir_XXXXXX");
	*state = &fx;
	unsetenv("AQUIFER_RUNDIR");
	unsetenv("XDG_RUNTIME_DIR");
	return mkdtemp(fx.top) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", fx->top);
	return system(command);
}

static void test_rack_names(void **state)
{
	static const char *const good[] = {
		"a", "local", "lab-7",
		"0", "-",     "abcdefghijklmnopqrstuvwxyz012345"};
	static const char *const bad[] = {
		"",    "Lab",	   "a/b",
		"..",  ".",	   "a b",
		"a_b", "\xc3\xa4", "abcdefghijklmnopqrstuvwxyz0123456"};
	char path[RUNDIR_PATH_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(good); i++)
		assert_true(rundir_rack_is_valid(good[i]));
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(rundir_rack_is_valid(bad[i]));
		assert_int_equal(rundir_path(bad[i], path), -EINVAL);
		assert_int_equal(rundir_make(bad[i], path), -EINVAL);
	}
}

static void test_path(void **state)
{
	char path[RUNDIR_PATH_MAX], want[RUNDIR_PATH_MAX];
	struct fixture *fx = *state;
	char big[2 * RUNDIR_PATH_MAX];

	setenv("AQUIFER_RUNDIR", "/x/y//", 1);
	assert_int_equal(rundir_path("r", path), 0);
	assert_string_equal(path, "/x/y/r");
	setenv("AQUIFER_RUNDIR", "/x", 1);
	assert_int_equal(rundir_path("r", path), 0);
	assert_string_equal(path, "/x/r");
	setenv("AQUIFER_RUNDIR", "x", 1);
	assert_int_equal(rundir_path("r", path), -EINVAL);
	setenv("AQUIFER_RUNDIR", "/", 1);
	assert_int_equal(rundir_path("r", path), -EINVAL);
	memset(big, 'x', sizeof(big));
	big[0] = '/';
	big[sizeof(big) - 1] = 0;
	setenv("AQUIFER_RUNDIR", big, 1);
	assert_int_equal(rundir_path("r", path), -ENAMETOOLONG);
	big[RUNDIR_PATH_MAX - 2] = 0;
	setenv("AQUIFER_RUNDIR", big, 1);
	assert_int_equal(rundir_path("rack", path), -ENAMETOOLONG);

	unsetenv("AQUIFER_RUNDIR");
	setenv("XDG_RUNTIME_DIR", fx->top, 1);
	assert_int_equal(rundir_path("r", path), 0);
	if (geteuid() == 0)
		snprintf(want, sizeof(want), "/run/aquifer/r");
	else
		snprintf(want, sizeof(want), "%s/aquifer/r", fx->top);
	assert_string_equal(path, want);
}

/* What a user without root and without a session gets; run in a child that
 * gives up root if it has it. */
static void test_unprivileged(void **state)
{
	char path[RUNDIR_PATH_MAX], want[RUNDIR_PATH_MAX];
	struct fixture *fx = *state;
	int status;
	pid_t pid;

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* The directory of somebody else does not count. */
		if (geteuid() == 0 && setuid(54321))
			_exit(2);
		setenv("XDG_RUNTIME_DIR", geteuid() == 54321 ? fx->top : "/",
		       1);
		if (rundir_path("r", path))
			_exit(3);
		snprintf(want, sizeof(want), "/tmp/aquifer-%u/r",
			 (unsigned)geteuid());
		_exit(strcmp(path, want) ? 4 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Somebody else was first in /tmp. Run with another user's rights: 0 and the
 * path is `want`, or without one it was refused with words. */
static int run_squatted(const char *home, const char *want)
{
	char path[RUNDIR_PATH_MAX];
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (setuid(54321))
			_exit(2);
		setenv("HOME", home, 1);
		if (want) {
			if (rundir_make("r", path))
				_exit(3);
			_exit(strcmp(path, want) ? 4 : 0);
		}
		if (rundir_make("r", path) != -EPERM)
			_exit(5);
		_exit(strstr(error_last(), "AQUIFER_RUNDIR") ? 0 : 6);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void a_taken_name_in_tmp_is_not_the_end(void **state)
{
	static const char squatted[] = "/tmp/aquifer-54321";
	struct fixture *fx = *state;
	char want[128];

	if (geteuid() != 0 || mkdir(squatted, 0777) != 0)
		skip();
	snprintf(want, sizeof(want), "%s/.local/state/aquifer/run/r", fx->top);
	assert_int_equal(run_squatted(fx->top, NULL), 0); /* not its home */
	assert_int_equal(chown(fx->top, 54321, 54321), 0);
	assert_int_equal(run_squatted(fx->top, want), 0);
	assert_int_equal(rmdir(squatted), 0);
}

static void test_make(void **state)
{
	struct fixture *fx = *state;
	char path[RUNDIR_PATH_MAX], dir[96];
	struct stat st;
	int fd;

	snprintf(dir, sizeof(dir), "%s/aq", fx->top);
	setenv("AQUIFER_RUNDIR", dir, 1);
	assert_int_equal(rundir_make("r", path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(rundir_make("r", path), 0); /* again */

	fd = rundir_subdir_open(path, "counters");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(rundir_subdir_open("/nonexistent", "x"), -ENOENT);
}

static void test_refused(void **state)
{
	struct fixture *fx = *state;
	char path[RUNDIR_PATH_MAX], dir[96], rack[128];

	snprintf(dir, sizeof(dir), "%s/aq", fx->top);
	setenv("AQUIFER_RUNDIR", dir, 1);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(rundir_make("r", path), -EPERM);
	assert_non_null(strstr(error_last(), "mode 0777"));
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(rundir_make("r", path), 0);

	snprintf(rack, sizeof(rack), "%s/link", dir);
	assert_int_equal(symlink("/tmp", rack), 0);
	assert_int_equal(rundir_make("link", path), -ENOTDIR);
	snprintf(rack, sizeof(rack), "%s/file", dir);
	close(open(rack, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(rundir_make("file", path), -ENOTDIR);
	if (geteuid() == 0) {
		snprintf(rack, sizeof(rack), "%s/other", dir);
		assert_int_equal(mkdir(rack, 0700), 0);
		assert_int_equal(chown(rack, 54321, 54321), 0);
		assert_int_equal(rundir_make("other", path), -EPERM);
		assert_non_null(strstr(error_last(), "owner 54321"));
	}
	setenv("AQUIFER_RUNDIR", "/nonexistent/aq", 1);
	assert_int_equal(rundir_make("r", path), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rack_names, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_path, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unprivileged, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_taken_name_in_tmp_is_not_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_make, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
