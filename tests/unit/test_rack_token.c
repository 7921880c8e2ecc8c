/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a rack: kept over a reboot, taken over, given, replaced. */
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

#include "base/config.h"
#include "base/error.h"
#include "base/rack_token.h"

static const char one[] = "11111111111111111111111111111111"
			  "11111111111111111111111111111111";
static const char two[] = "22222222222222222222222222222222"
			  "22222222222222222222222222222222";

static char base[64], rundir[96], given[96];
static struct config *config;
static struct rack_token_place place;

static int set_up(void **state)
{
	char kept[96];

	(void)snprintf(base, sizeof(base), "/tmp/aquifer-tokens.XXXXXX");
	assert_non_null(mkdtemp(base));
	(void)snprintf(rundir, sizeof(rundir), "%s/run", base);
	(void)snprintf(given, sizeof(given), "%s/given", base);
	(void)snprintf(kept, sizeof(kept), "%s/kept", base);
	assert_int_equal(mkdir(rundir, 0700), 0);
	unsetenv("AQUIFER_TOKEN");
	unsetenv("AQUIFER_RACK_TOKEN_FILE");
	setenv("AQUIFER_CONFIG", "/dev/null", 1);
	setenv("AQUIFER_STATEDIR", kept, 1);
	assert_int_equal(config_open(NULL, &config), 0);
	place = (struct rack_token_place){config, "r", rundir};
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	config_destroy(config);
	(void)snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

/* rack.ini gives a file. */
static void give(void)
{
	assert_int_equal(
		config_set(config, "--test", "rack", "token_file", given), 0);
}

/* What the machine forgets when it is switched off. */
static void reboot(void)
{
	char path[128];

	for (int k = 0; k < RACK_TOKEN_KINDS; k++) {
		(void)snprintf(path, sizeof(path), "%s/%s", rundir,
			       rack_token_name((enum rack_token_kind)k));
		(void)unlink(path);
	}
}

static void survives_a_reboot(void **state)
{
	char before[SECRET_TEXT], after[SECRET_TEXT], other[SECRET_TEXT];

	for (int k = 0; k < RACK_TOKEN_KINDS; k++) {
		enum rack_token_kind kind = (enum rack_token_kind)k;

		assert_int_equal(rack_token_find(&place, kind, other, NULL),
				 -ENOENT);
		assert_int_equal(rack_token_obtain(&place, kind, before), 0);
		assert_int_equal(rack_token_find(&place, kind, other, NULL), 0);
		assert_string_equal(before, other);
		reboot();
		assert_int_equal(rack_token_obtain(&place, kind, after), 0);
		assert_string_equal(before, after);
		assert_int_equal(rack_token_find(&place, kind, other, NULL), 0);
		assert_string_equal(before, other);
	}
}

/* From a release that had tokens in the runtime directory only. */
static void takes_over_what_a_running_rack_has(void **state)
{
	char path[128], text[SECRET_TEXT];

	(void)snprintf(path, sizeof(path), "%s/token", rundir);
	assert_int_equal(secret_create(path, one), 0);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, one);
	reboot();
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, one);
}

static void a_given_file_counts(void **state)
{
	char text[SECRET_TEXT], from[RACK_TOKEN_PATH_MAX];

	give();
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 -ENOENT);
	assert_non_null(strstr(error_last(), "aquifer token new"));
	/* Who is told of a file wants that file. */
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, NULL),
		-EINVAL);
	assert_int_equal(secret_create(given, one), 0);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, one);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, from), 0);
	assert_string_equal(from, given);
	/* Programs of this machine that have no rack.ini find the copy. */
	place.config = NULL;
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, NULL), 0);
	assert_string_equal(text, one);
	place.config = config;
	assert_int_equal(chmod(given, 0644), 0);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, NULL),
		-EPERM);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 -EPERM);
}

static void the_environment_beats_files(void **state)
{
	char text[SECRET_TEXT], from[RACK_TOKEN_PATH_MAX];

	give();
	setenv("AQUIFER_TOKEN", two, 1);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, from), 0);
	assert_string_equal(text, two);
	assert_string_equal(from, "AQUIFER_TOKEN");
	/* It is not the administrator's. */
	assert_int_equal(rack_token_find(&place, RACK_TOKEN_ADMIN, text, NULL),
			 -ENOENT);
	setenv("AQUIFER_TOKEN", "nonsense", 1);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, from),
		-EINVAL);
	assert_null(strstr(error_last(), "nonsense"));
}

static void is_replaced_in_all_places(void **state)
{
	char text[SECRET_TEXT];

	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_int_equal(rack_token_keep(&place, RACK_TOKEN_DEFAULT, two), 0);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, NULL), 0);
	assert_string_equal(text, two);
	reboot();
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, two);
	/* A file that is given is its giver's to change. */
	give();
	assert_int_equal(secret_create(given, two), 0);
	assert_int_equal(rack_token_keep(&place, RACK_TOKEN_DEFAULT, one),
			 -EACCES);
	assert_int_equal(secret_replace(given, one), 0);
	assert_int_equal(rack_token_keep(&place, RACK_TOKEN_DEFAULT, one), 0);
}

/* Daemons that cannot keep anything still work. */
static void without_a_state_directory_the_copy_is_used(void **state)
{
	char text[SECRET_TEXT], again[SECRET_TEXT];

	setenv("AQUIFER_STATEDIR", "/dev/null/nowhere", 1);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_ENGINE, text), 0);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_ENGINE, again),
			 0);
	assert_string_equal(text, again);
}

static void is_replaced_while_nothing_runs(void **state)
{
	char text[SECRET_TEXT];

	/* Whose state it will be is not known before a daemon ran. */
	assert_int_equal(rack_token_store(&place, RACK_TOKEN_DEFAULT, one),
			 -ENOENT);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_int_equal(rack_token_store(&place, RACK_TOKEN_DEFAULT, one), 0);
	assert_int_equal(
		rack_token_find(&place, RACK_TOKEN_DEFAULT, text, NULL),
		-ENOENT);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, one);
	give();
	assert_int_equal(rack_token_store(&place, RACK_TOKEN_DEFAULT, two), 0);
	assert_int_equal(rack_token_obtain(&place, RACK_TOKEN_DEFAULT, text),
			 0);
	assert_string_equal(text, two);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(survives_a_reboot),
		TEST(takes_over_what_a_running_rack_has),
		TEST(a_given_file_counts),
		TEST(the_environment_beats_files),
		TEST(is_replaced_in_all_places),
		TEST(without_a_state_directory_the_copy_is_used),
		TEST(is_replaced_while_nothing_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
