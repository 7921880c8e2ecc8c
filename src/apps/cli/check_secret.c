/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that nobody else can read secrets or change what daemons believe. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_key.h"
#include "base/config_named.h"
#include "base/error.h"
#include "base/rack_token.h"
#include "base/rundir.h"
#include "base/statedir.h"
#include "cli_check.h"

struct lax {
	unsigned count;
	char first[256];
	char words[96];
	unsigned mode; /* that it should have */
};

static void note(struct lax *lax, const char *path, const char *words,
		 unsigned mode)
{
	if (lax->count++)
		return;
	(void)snprintf(lax->first, sizeof(lax->first), "%.255s", path);
	(void)snprintf(lax->words, sizeof(lax->words), "%s", words);
	lax->mode = mode;
}

/* A file with a secret; none is there: nothing is wrong. */
static void look_at_secret(struct lax *lax, const char *path)
{
	struct stat st;

	if (path[0] && stat(path, &st) == 0 && (st.st_mode & 077))
		note(lax, path, "others can read or write it", 0600);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

/* All files in a directory whose name ends so. */
static void look_into(struct lax *lax, const char *dir, const char *end)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	char path[700];

	while (d && (e = readdir(d)) != NULL)
		if (ends_with(e->d_name, end)) {
			(void)snprintf(path, sizeof(path), "%.400s/%.255s", dir,
				       e->d_name);
			look_at_secret(lax, path);
		}
	if (d)
		(void)closedir(d); /* only read */
}

/* Whether the file itself holds a secret. */
static bool has_secret(const struct config *c)
{
	static const char *const words[] = {"psk", "token", "password",
					    "secret"};

	for (unsigned i = 0; i < config_key_count(); i++) {
		const struct config_key *k = config_key_at(i);

		for (unsigned w = 0; w < ARRAY_LEN(words); w++)
			if (strstr(k->key, words[w]) &&
			    k->kind == CONFIG_STRING &&
			    !strstr(k->key, "_file") &&
			    config_string(c, k->section, k->key)[0])
				return true;
	}
	return false;
}

static void look_at_rack_ini(struct lax *lax, const struct config *c)
{
	char path[CONFIG_PATH_MAX];
	struct stat st;

	if (config_find_file(path) || stat(path, &st) != 0)
		return;
	if (st.st_mode & 022)
		note(lax, path, "others can write it", 0644);
	else if (st.st_uid != 0 && st.st_uid != geteuid())
		note(lax, path, "it is another user's", 0644);
	else if ((st.st_mode & 077) && has_secret(c))
		note(lax, path, "others can read the secret in it", 0600);
}

static void look_at_keys(struct lax *lax, const struct config *c)
{
	static const struct {
		const char *kind, *key;
	} keys[] = {{"memory", "tls_key"},
		    {"engine", "tls_key"},
		    {"engine", "key"},
		    {"node", "key"}};

	for (unsigned k = 0; k < ARRAY_LEN(keys); k++)
		for (unsigned i = 0; i < config_named_count(c, keys[k].kind);
		     i++)
			look_at_secret(lax, config_named_text(c, keys[k].kind,
							      i, keys[k].key));
}

void cli_check_secrets(struct cli_check_result *out)
{
	char rundir[RUNDIR_PATH_MAX], state[STATEDIR_PATH_MAX];
	struct lax lax = {0};
	const char *rack;
	struct config *c;

	if (config_open(NULL, &c)) {
		cli_check_found(out, CLI_CHECK_WARN, "settings: %.200s",
				error_last());
		cli_check_fix(out, "correct the file or variable named");
		return;
	}
	rack = config_string(c, "rack", "name");
	look_at_rack_ini(&lax, c);
	look_at_keys(&lax, c);
	if (rundir_path(rack, rundir) == 0)
		look_into(&lax, rundir, "token");
	if (statedir_path(rack, state) == 0) {
		look_into(&lax, state, ".json");
		look_into(&lax, state, "token");
	}
	for (int k = 0; k < RACK_TOKEN_KINDS; k++)
		look_at_secret(&lax,
			       config_string(c, "rack",
					     rack_token_setting(
						     (enum rack_token_kind)k)));
	config_destroy(c);
	if (!lax.count) {
		cli_check_found(out, CLI_CHECK_OK,
				"tokens, keys and rack.ini are nobody else's");
		return;
	}
	cli_check_found(out, CLI_CHECK_WARN, "%u lax, the first is %.180s: %s",
			lax.count, lax.first, lax.words);
	cli_check_fix(out,
		      "chmod %04o %.240s; who could read a token or key "
		      "may have it: make a new one",
		      lax.mode, lax.first);
}

/* What crosses users by rack.ini is open to that group. */
static unsigned forbidden(const struct config *c)
{
	return config_key_find("rack", "group") >= 0 &&
			       config_string(c, "rack", "group")[0]
		       ? 07
		       : 077;
}

void cli_check_rundir_mode(struct cli_check_result *out)
{
	char path[RUNDIR_PATH_MAX] = "";
	struct config *c;
	struct stat st;
	unsigned bits;

	if (config_open(NULL, &c) != 0) {
		cli_check_found(out, CLI_CHECK_WARN, "settings: %.200s",
				error_last());
		cli_check_fix(out, "correct the file or variable named");
		return;
	}
	bits = forbidden(c);
	if (rundir_path(config_string(c, "rack", "name"), path) != 0 ||
	    stat(path, &st) != 0) {
		cli_check_found(out, CLI_CHECK_OK, "none is there");
	} else if (st.st_mode & bits) {
		cli_check_found(out, CLI_CHECK_WARN, "%s has mode %04o", path,
				(unsigned)st.st_mode & 07777);
		cli_check_fix(out, "chmod %04o %s", bits == 07 ? 03770u : 0700u,
			      path);
	} else {
		cli_check_found(out, CLI_CHECK_OK, "%s: %04o", path,
				(unsigned)st.st_mode & 07777);
	}
	config_destroy(c);
}
