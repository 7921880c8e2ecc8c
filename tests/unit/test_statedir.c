/* SPDX-License-Identifier: Apache-2.0 */
/* Where the state directory is: outside of /run, whatever the environment is.
 */
#include <errno.h>
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

#include "base/statedir.h"

static void clear(void)
{
	static const char *const names[] = {"AQUIFER_STATEDIR",
					    "AQUIFER_RUNDIR", "XDG_STATE_HOME",
					    "AQUIFER_RACK_STATE_DIR"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	setenv("AQUIFER_CONFIG", "/dev/null", 1);
	setenv("HOME", "/home/me", 1);
}

static void expect(const char *want)
{
	char path[STATEDIR_PATH_MAX];

	assert_int_equal(statedir_path("r", path), 0);
	assert_string_equal(path, want);
}

static void is_where_it_survives_a_reboot(void **state)
{
	bool is_root = geteuid() == 0;

	clear();
	expect(is_root ? "/var/lib/aquifer/r"
		       : "/home/me/.local/state/aquifer/r");
	setenv("XDG_STATE_HOME", "/x", 1);
	expect(is_root ? "/var/lib/aquifer/r" : "/x/aquifer/r");
	setenv("AQUIFER_RUNDIR", "/run/aquifer", 1);
	expect(is_root ? "/var/lib/aquifer/r" : "/x/aquifer/r");
	setenv("AQUIFER_RUNDIR", "/run", 1);
	expect(is_root ? "/var/lib/aquifer/r" : "/x/aquifer/r");
	setenv("AQUIFER_RUNDIR", "/srv/apart", 1);
	expect("/srv/apart/state/r");
	setenv("AQUIFER_RACK_STATE_DIR", "/srv/kept", 1);
	expect("/srv/kept/r");
	setenv("AQUIFER_STATEDIR", "/srv/own", 1);
	expect("/srv/own/r");
}

static void is_made_for_its_owner_alone(void **state)
{
	char base[] = "/tmp/aquifer-state.XXXXXX", path[STATEDIR_PATH_MAX];
	struct stat st;

	clear();
	assert_non_null(mkdtemp(base));
	setenv("AQUIFER_STATEDIR", base, 1);
	assert_int_equal(statedir_make("r", path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(statedir_make("r", path), -EPERM);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(statedir_make("r", path), -EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(base), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_where_it_survives_a_reboot),
		cmocka_unit_test(is_made_for_its_owner_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
