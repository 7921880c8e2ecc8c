/* SPDX-License-Identifier: Apache-2.0 */
/* Which rack a command is about: --rack NAME|FILE, or the file after up, down
 * and status. It is told through the environment, so that programs which are
 * started from here use the same one. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/config.h"
#include "base/error.h"
#include "base/rundir.h"
#include "cli.h"

#define NAME	  "AQUIFER_RACK_NAME"
#define FILE_NAME "AQUIFER_CONFIG"

bool cli_rack_is_file(const char *word)
{
	const char *dot = strrchr(word, '.');

	return strchr(word, '/') || (dot && strcmp(dot, ".ini") == 0);
}

static int set(const char *variable, const char *value)
{
	int bad = value ? setenv(variable, value, 1) : unsetenv(variable);

	return bad ? error_set(-errno, "cannot set the environment") : 0;
}

/* Says what is wrong with a rack that was asked for. */
static int fail(int err)
{
	cli_error_last(err);
	return CLI_FAILED;
}

/* Whether the file that is now configured names a rack itself. */
static bool is_named(const struct config *config)
{
	int index = config_key_find("rack", "name");

	ASSERT(index >= 0);
	return strcmp(config_where_at(config, (unsigned)index), "default") != 0;
}

int cli_rack_choose_file(const char *path)
{
	const char *name = getenv(NAME);
	char full[PATH_MAX], old[64] = "";
	struct config *config;
	struct stat st;
	int err;

	/* Absolute: programs started from here may have another folder. */
	if (!realpath(path, full) || stat(full, &st)) {
		cli_error("%s: %s%s%s", path, strerror(errno),
			  cli_rack_is_file(path)
				  ? ""
				  : "; a rack is named with --rack ",
			  cli_rack_is_file(path) ? "" : path);
		return CLI_FAILED;
	}
	if (name)
		(void)snprintf(old, sizeof(old), "%s", name);
	err = set(NAME, NULL);
	if (!err)
		err = set(CONFIG_RACK_VARIABLE, NULL);
	if (!err)
		err = set(FILE_NAME, full);
	if (!err)
		err = config_open(NULL, &config);
	if (err)
		return fail(err);
	/* A file that names no rack is about the one of the environment. */
	if (name && !is_named(config))
		err = set(NAME, old);
	config_destroy(config);
	return err ? fail(err) : CLI_GO;
}

static int choose_name(const char *name)
{
	const char *of = getenv(CONFIG_RACK_VARIABLE);
	struct config *config;
	int err;

	if (!rundir_rack_is_valid(name)) {
		cli_error("a rack's name is 1 to %d of a-z, 0-9 and '-', not "
			  "'%.40s'; a file has a slash in it or ends with .ini",
			  RUNDIR_RACK_MAX, name);
		return CLI_USAGE;
	}
	err = config_open(NULL, &config);
	if (err)
		return fail(err);
	/* The sections of rack.ini are about the rack that it is for. */
	if (!of || !of[0])
		err = set(CONFIG_RACK_VARIABLE,
			  config_string(config, "rack", "name"));
	config_destroy(config);
	if (!err)
		err = set(NAME, name);
	return err ? fail(err) : CLI_GO;
}

int cli_rack_choose(const char *word)
{
	return cli_rack_is_file(word) ? cli_rack_choose_file(word)
				      : choose_name(word);
}
