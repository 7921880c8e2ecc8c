/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer cert`: a rack's own authority, and certificates for its machines. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "cert/cert.h"
#include "cli_action.h"
#include "cli_cert.h"
#include "cli_report.h"

enum {
	DAYS_AUTHORITY = 3650,
	DAYS_ISSUE = 825, /* what most programs accept at most */
	DAY_S = 24 * 3600,
};

struct cert_args {
	struct cli_action_args common; /* NAME */
	const char *dir;
	uint32_t days; /* 0: not given */
	const char *address[CERT_ADDRESSES_MAX];
	unsigned address_count;
};

static int take_address(void *args, const char *word)
{
	struct cert_args *a = args;

	if (a->address_count == CERT_ADDRESSES_MAX)
		return error_set(-EINVAL,
				 "a certificate has up to %d addresses",
				 CERT_ADDRESSES_MAX);
	if (!cert_address_is_valid(word))
		return error_set(-EINVAL,
				 "--address takes an IP address or a host "
				 "name, not '%.80s'",
				 word);
	a->address[a->address_count++] = word;
	return 0;
}

const struct opt cmd_cert_options[] = {
	OPT_TEXT(struct cert_args, dir, "dir", "DIR",
		 "where the files are (default: beside rack.ini)"),
	OPT_CALL(take_address, "address", "ADDRESS",
		 "issue: an IP address or host name by which others reach it; "
		 "may be repeated"),
	OPT_U32(struct cert_args, days, "days", "N", 1, CERT_DAYS_MAX,
		"init, issue: how long it is valid (default 3650, 825)"),
	OPT_FLAG(struct cert_args, common.json, "json", "print JSON"),
	OPT_END,
};

static int fail(void)
{
	cli_error("%s", error_last());
	return CLI_FAILED;
}

static int dir_of(const struct cert_args *a, char dir[PATH_MAX])
{
	if (!a->dir)
		return cli_cert_dir(dir);
	(void)snprintf(dir, PATH_MAX, "%s", a->dir);
	return 0;
}

/* DIR/NAMEending */
static int path_in(const char *dir, const char *name, const char *ending,
		   char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s%s", dir, name, ending);

	return n < 0 || n >= PATH_MAX
		       ? error_set(-ENAMETOOLONG, "%.80s... is too long", dir)
		       : 0;
}

/* ---- making -------------------------------------------------------------- */

/* The key first: a certificate without one helps nobody. */
static int write_pair(const char *dir, const char *name,
		      const struct cert_pair *p, bool replace, json_t *tree)
{
	char cert[PATH_MAX], key[PATH_MAX];
	int err = path_in(dir, name, ".pem", cert);

	if (!err)
		err = path_in(dir, name, "-key.pem", key);
	if (!err)
		err = cli_cert_write(key, p->key, 0600, replace);
	if (!err)
		err = cli_cert_write(cert, p->cert, 0644, replace);
	if (!err) {
		cli_report_set(tree, "certificate", "%s", cert);
		cli_report_set(tree, "key", "%s", key);
	}
	return err;
}

static int report(const struct cert_args *a, const char *dir, const char *name,
		  const struct cert_pair *p, bool replace)
{
	json_t *tree = json_object();
	int err = write_pair(dir, name, p, replace, tree);

	if (err == -EEXIST)
		cli_error("there is an authority in %s already; another one "
			  "would be trusted by nobody: remove %s.pem and "
			  "%s-key.pem if you mean it",
			  dir, name, name);
	else if (err)
		cli_error("%s", error_last());
	if (!err)
		err = cli_report_print(json_incref(tree), a->common.json);
	json_decref(tree);
	return err ? CLI_FAILED : CLI_OK;
}

static int cert_init(void *args)
{
	const struct cert_args *a = args;
	struct cert_wish wish = {.name = "aquifer-authority",
				 .days = a->days ? a->days : DAYS_AUTHORITY,
				 .now = time(NULL)};
	struct cert_pair p = {0};
	char dir[PATH_MAX];
	int code;

	if (dir_of(a, dir))
		return fail();
	if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
		cli_error("cannot make %s: %s", dir, strerror(errno));
		return CLI_FAILED;
	}
	if (cert_authority_make(&wish, &p))
		return fail();
	code = report(a, dir, "ca", &p, false);
	cert_pair_release(&p);
	return code;
}

static int read_authority(const char *dir, struct cert_pair *out)
{
	char cert[PATH_MAX], key[PATH_MAX];
	int err = path_in(dir, "ca", ".pem", cert);

	if (!err)
		err = path_in(dir, "ca", "-key.pem", key);
	if (!err)
		err = cli_cert_read(cert, &out->cert);
	if (!err)
		err = cli_cert_read(key, &out->key);
	return err == -ENOENT ? error_set(err,
					  "%s has no authority with its key: "
					  "'aquifer cert init' makes one, once "
					  "for a rack",
					  dir)
			      : err;
}

static int cert_issue_action(void *args)
{
	const struct cert_args *a = args;
	const char *name = a->common.word[0];
	struct cert_wish wish = {.name = name,
				 .address = a->address,
				 .address_count = a->address_count,
				 .days = a->days ? a->days : DAYS_ISSUE,
				 .now = time(NULL)};
	struct cert_pair authority = {0}, p = {0};
	char dir[PATH_MAX];
	int code, err = dir_of(a, dir);

	if (strcmp(name, "ca") == 0 || !cert_name_is_valid(name)) {
		cli_error("a certificate's name has 1 to %d letters, digits, "
			  "'-', '_' and '.', and is not ca: '%.80s'",
			  CERT_NAME_MAX, name);
		return CLI_USAGE;
	}
	if (!err)
		err = read_authority(dir, &authority);
	if (!err)
		err = cert_issue(&authority, &wish, &p);
	code = err ? fail() : report(a, dir, name, &p, true);
	cert_pair_release(&authority);
	cert_pair_release(&p);
	return code;
}

/* ---- showing ------------------------------------------------------------- */

static void set_time(json_t *row, const char *key, time_t t)
{
	struct tm tm;
	char text[32] = "?";

	if (gmtime_r(&t, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)json_object_set_new(row, key, json_string(text));
}

static json_t *describe(const char *path, const char *pem,
			const struct cert_facts *f, const char *authority)
{
	json_t *names = json_array(), *row;
	time_t now = time(NULL);

	for (unsigned i = 0; i < f->name_count; i++)
		(void)json_array_append_new(names, json_string(f->names[i]));
	row = json_pack("{s:s, s:s, s:s, s:b, s:o}", "file", path, "subject",
			f->subject, "issuer", f->issuer, "authority",
			f->is_authority, "names", names);
	set_time(row, "not_before", f->not_before);
	set_time(row, "not_after", f->not_after);
	(void)json_object_set_new(
		row, "days_left",
		json_integer((json_int_t)((f->not_after - now) / DAY_S)));
	(void)json_object_set_new(
		row, "valid",
		json_boolean(now >= f->not_before && now <= f->not_after));
	if (authority)
		(void)json_object_set_new(
			row, "of_this_authority",
			json_boolean(cert_check(pem, authority, now) == 0));
	cli_report_set(row, "sha256", "%s", f->print);
	return row;
}

/* -EINVAL: it is no certificate. */
static int show_one(const char *path, const char *authority, json_t *rows)
{
	struct cert_facts f;
	char *pem;
	int err = cli_cert_read(path, &pem);

	if (err)
		return err;
	err = cert_describe(pem, &f);
	if (!err)
		(void)json_array_append_new(rows,
					    describe(path, pem, &f, authority));
	free(pem);
	return err ? error_prefix(err, "%s: ", path) : 0;
}

static int is_pem(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return len > 4 && strcmp(e->d_name + len - 4, ".pem") == 0 &&
	       !(len > 8 && strcmp(e->d_name + len - 8, "-key.pem") == 0);
}

static int show_all(const char *dir, const char *authority, json_t *rows)
{
	struct dirent **list;
	int n = scandir(dir, &list, is_pem, alphasort), err = 0;
	char path[PATH_MAX];

	if (n < 0)
		return error_set(-errno, "cannot read %s: %s", dir,
				 strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!err)
			err = path_in(dir, list[i]->d_name, "", path);
		/* Others may keep other things there. */
		if (!err && show_one(path, authority, rows) == -ENOMEM)
			err = -ENOMEM;
		free(list[i]);
	}
	free(list);
	return err;
}

static int cert_show(void *args)
{
	const struct cert_args *a = args;
	const char *name = a->common.word[0];
	json_t *rows = json_array(), *row;
	char dir[PATH_MAX], path[PATH_MAX];
	char *authority = NULL;
	bool all_valid = true;
	size_t i;
	int err = dir_of(a, dir);

	if (!err && path_in(dir, "ca", ".pem", path) == 0 &&
	    cli_cert_read(path, &authority))
		authority = NULL; /* somebody else's, or none */
	if (!err && name && !strchr(name, '/'))
		err = path_in(dir, name, strstr(name, ".pem") ? "" : ".pem",
			      path);
	else if (!err && name)
		(void)snprintf(path, sizeof(path), "%s", name);
	if (!err)
		err = name ? show_one(path, authority, rows)
			   : show_all(dir, authority, rows);
	free(authority);
	if (!err && json_array_size(rows) == 0)
		err = error_set(-ENOENT,
				"there is no certificate in %s; "
				"'aquifer cert init' makes an "
				"authority",
				dir);
	if (err) {
		json_decref(rows);
		return fail();
	}
	json_array_foreach(rows, i, row) all_valid &=
		json_is_true(json_object_get(row, "valid"));
	err = cli_report_print(json_pack("{s:o}", "certificates", rows),
			       a->common.json);
	return err || !all_valid ? CLI_FAILED : CLI_OK;
}

int cmd_cert(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"init", 0, 0, NULL, CLI_NEEDS_NOTHING, cert_init,
		 "make an authority, once for a rack"},
		{"issue", 1, 1, NULL, CLI_NEEDS_NOTHING, cert_issue_action,
		 "make or renew a certificate: NAME"},
		{"show", 0, 1, NULL, CLI_NEEDS_NOTHING, cert_show,
		 "what certificates say, and for how long: [NAME]"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct cert_args a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
