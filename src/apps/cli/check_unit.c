/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that installed units of systemd run daemons as a user of their own. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_check.h"

#define UNIT_PATH                                  \
	"/etc/systemd/system:/run/systemd/system:" \
	"/usr/local/lib/systemd/system:/usr/lib/systemd/system"

/* What a unit's file and those that add to it say; the last word counts. */
struct unit {
	bool is_root;
	bool has_no_new;
};

struct units {
	unsigned count;
	unsigned open;
	char first[200];
};

static const char *value_at(const char *line, const char *key)
{
	size_t n = strlen(key);

	return strncmp(line, key, n) == 0 && line[n] == '=' ? line + n + 1
							    : NULL;
}

static bool is_yes(const char *text)
{
	return strcmp(text, "yes") == 0 || strcmp(text, "true") == 0 ||
	       strcmp(text, "on") == 0 || strcmp(text, "1") == 0;
}

static void read_file(const char *path, struct unit *u)
{
	FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		const char *v;

		line[strcspn(line, "\r\n")] = '\0';
		v = value_at(line, "User");
		if (v)
			u->is_root = strcmp(v, "root") == 0 || v[0] == '\0' ||
				     strcmp(v, "0") == 0;
		v = value_at(line, "DynamicUser");
		if (v && is_yes(v))
			u->is_root = false;
		v = value_at(line, "NoNewPrivileges");
		if (v)
			u->has_no_new = is_yes(v);
	}
	if (f)
		(void)fclose(f); /* only read */
}

/* The drop-ins of a unit, in any order: each may open it. */
static void read_additions(const char *path, struct unit *u)
{
	char dir[PATH_MAX], file[PATH_MAX + 300];
	const struct dirent *e;
	DIR *d;

	(void)snprintf(dir, sizeof(dir), "%.3000s.d", path);
	d = opendir(dir);
	while (d && (e = readdir(d)) != NULL) {
		if (!strstr(e->d_name, ".conf"))
			continue;
		(void)snprintf(file, sizeof(file), "%s/%.255s", dir, e->d_name);
		read_file(file, u);
	}
	if (d)
		(void)closedir(d); /* only read */
}

static void look_into(const char *dir, struct units *all)
{
	DIR *d = opendir(dir);
	const struct dirent *e;
	char path[PATH_MAX];

	while (d && (e = readdir(d)) != NULL) {
		struct unit u = {.is_root = true};
		const char *dot = strrchr(e->d_name, '.');

		if (strncmp(e->d_name, "aquifer-", 8) != 0 || !dot ||
		    strcmp(dot, ".service") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%.3000s/%.255s", dir,
			       e->d_name);
		read_file(path, &u);
		read_additions(path, &u);
		all->count++;
		if ((u.is_root || !u.has_no_new) && !all->open++)
			(void)snprintf(all->first, sizeof(all->first),
				       "%.150s %s", path,
				       u.is_root ? "runs as root"
						 : "may gain privileges");
	}
	if (d)
		(void)closedir(d); /* only read */
}

void cli_check_units(struct cli_check_result *out)
{
	const char *set = secure_getenv("SYSTEMD_UNIT_PATH");
	char path[PATH_MAX], *rest, *dir;
	struct units all = {0};

	(void)snprintf(path, sizeof(path), "%s",
		       set && set[0] ? set : UNIT_PATH);
	for (dir = strtok_r(path, ":", &rest); dir;
	     dir = strtok_r(NULL, ":", &rest))
		look_into(dir, &all);
	if (all.open) {
		cli_check_found(out, CLI_CHECK_WARN, "%u of %u: %s", all.open,
				all.count, all.first);
		cli_check_fix(out, "install the units that come with this "
				   "version (make install), then systemctl "
				   "daemon-reload");
	} else if (all.count) {
		cli_check_found(out, CLI_CHECK_OK,
				"%u, with a user of their own and no way to "
				"more",
				all.count);
	} else {
		cli_check_found(out, CLI_CHECK_OK, "none is installed");
	}
}
