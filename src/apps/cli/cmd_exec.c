/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer exec`: somebody else's verbs program on the NIC of our choice. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"
#include "cli.h"
#include "cli_facade.h"
#include "cli_nic.h"
#include "cli_place.h"
#include "cli_report.h"
#include "cli_settings.h"

/* LD_LIBRARY_PATH with `dir` in front; freed by the caller. */
static char *library_path(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *joined;

	if (asprintf(&joined, old && *old ? "%s:%s" : "%s", dir, old) < 0)
		return NULL;
	return joined;
}

static int set_soft(json_t *env)
{
	char dir[PATH_MAX];
	char *path;
	int err = cli_place_verbs_libdir(dir);

	if (err) {
		cli_error("no private %s in %s; run 'make' or 'make install', "
			  "or use --nic hw",
			  CLI_PLACE_VERBS_SONAME, dir);
		return err;
	}
	path = library_path(dir);
	if (!path)
		return -ENOMEM;
	(void)json_object_set_new(env, "LD_LIBRARY_PATH", json_string(path));
	free(path);
	(void)json_object_set_new(env, "AQUIFER_NIC_MODE", json_string("soft"));
	return 0;
}

static int apply(json_t *env)
{
	const char *key;
	json_t *value;

	json_object_foreach(env, key,
			    value) if (setenv(key, json_string_value(value),
					      1) != 0) return -errno;
	return 0;
}

/* Programs that only use the library do without; so failing is no reason not
 * to run the program. Its namespace is only left behind by exec. */
static void make_facade(void)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];
	char why[256] = "";
	int err = cli_place_verbs_libdir(dir);

	if (err)
		return;
	(void)snprintf(path, sizeof(path), "%s/" CLI_PLACE_VERBS_SONAME, dir);
	err = cli_facade_enter(path, why);
	if (err)
		log_info("cli", "no facade of sysfs and device nodes: %s", why);
}

static int print_plan(json_t *env, const struct cli_nic *nic,
		      const struct cli_args *args,
		      const struct cli_words *words)
{
	json_t *tree = json_object();
	json_t *argv = json_array();

	cli_report_set(tree, "nic", "%s", nic->soft ? "soft" : "hw");
	cli_report_set(tree, "why", "%s", nic->why);
	cli_report_set(tree, "facade", "%s",
		       nic->soft && !args->facade_off ? "auto" : "off");
	(void)json_object_set(tree, "environment", env);
	for (int i = 0; i < words->count; i++)
		(void)json_array_append_new(argv, json_string(words->word[i]));
	(void)json_object_set_new(tree, "argv", argv);
	return cli_report_print(tree, true) ? CLI_FAILED : CLI_OK;
}

/* Returns only when the program could not be started. */
static int start(char **argv)
{
	int err;

	(void)execvp(argv[0], argv);
	err = errno;
	if (err == ENOENT) {
		cli_error("no program '%s'; is its package installed, is its "
			  "folder in PATH?",
			  argv[0]);
		return CLI_NOT_FOUND;
	}
	cli_error("cannot start '%s': %s", argv[0], strerror(err));
	return CLI_CANNOT_RUN;
}

int cmd_exec(const struct cli_command *self, int argc, char **argv)
{
	struct config *config;
	struct cli_args args = {0};
	struct cli_words words;
	struct cli_nic nic;
	json_t *env;
	int code =
		cli_parse(self, argc, argv, OPT_WORDS_PROGRAM, &args, &words);

	/* 1 would be the program's own. */
	if (code != CLI_GO)
		return code == CLI_FAILED ? CLI_CANNOT_RUN : code;
	if (words.count == 0 && !args.json) {
		cli_error("exec needs a program: aquifer exec -- PROGRAM "
			  "[ARGUMENT...]");
		return CLI_USAGE;
	}
	if (cli_settings_load(&args, &config) != 0)
		return CLI_CANNOT_RUN;
	cli_nic_make(cli_settings_nic(config), CLI_NIC_SYSFS, &nic);
	env = json_object();
	code = CLI_CANNOT_RUN;
	if (nic.soft && set_soft(env) != 0)
		goto out;
	if (args.json) {
		code = print_plan(env, &nic, &args, &words);
		goto out;
	}
	if (nic.soft && !args.facade_off)
		make_facade();
	if (apply(env) != 0) {
		cli_error("cannot set the environment: %s", strerror(errno));
		goto out;
	}
	code = start(words.word);
out:
	json_decref(env);
	config_destroy(config);
	return code;
}
