/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and makes the state directory. */
#include "statedir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "error.h"

static int join(char out[STATEDIR_PATH_MAX], const char *a, const char *b,
		const char *c)
{
	int len = snprintf(out, STATEDIR_PATH_MAX, "%s%s%s", a, b, c);

	if (len < 0 || len >= STATEDIR_PATH_MAX)
		return error_set(-ENAMETOOLONG, "%s%s%s is too long", a, b, c);
	return 0;
}

/* What rack.ini says, "": nothing. */
static int configured(char out[STATEDIR_PATH_MAX])
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	err = join(out, config_string(config, "rack", "state_dir"), "", "");
	config_destroy(config);
	return err;
}

/* Where state directories of racks are. */
static int state_base(char out[STATEDIR_PATH_MAX])
{
	const char *own = secure_getenv("AQUIFER_STATEDIR");
	const char *run = secure_getenv("AQUIFER_RUNDIR");
	const char *xdg = secure_getenv("XDG_STATE_HOME");
	const char *home = secure_getenv("HOME");
	int err;

	if (own && *own)
		return join(out, own, "", "");
	err = configured(out);
	if (err || out[0])
		return err;
	/* A rack that is apart in all respects; but tenants outlive a reboot,
	 * and what is in /run does not. */
	if (run && *run && strcmp(run, "/run") != 0 &&
	    strncmp(run, "/run/", 5) != 0)
		return join(out, run, "/state", "");
	if (geteuid() == 0)
		return join(out, "/var/lib/aquifer", "", "");
	if (xdg && *xdg == '/')
		return join(out, xdg, "/aquifer", "");
	if (home && *home == '/')
		return join(out, home, "/.local/state/aquifer", "");
	return error_set(-ENOENT, "no place for tokens and tenants: set "
				  "rack.state_dir, AQUIFER_STATEDIR or HOME");
}

/* mkdir -p, what is missing with mode 0700. */
static int make_dirs(const char *path)
{
	char part[STATEDIR_PATH_MAX];
	int err = join(part, path, "", "");

	if (err)
		return err;
	for (char *p = part + 1;; p++) {
		char was = *p;

		if (was != '/' && was != 0)
			continue;
		*p = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return error_set(-errno, "cannot make %s: %s", part,
					 strerror(errno));
		*p = was;
		if (was == 0)
			return 0;
	}
}

static int check_dir(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return error_set(-errno, "cannot look at %s: %s", path,
				 strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022))
		return error_set(-EPERM,
				 "%s must be a directory of ours that nobody "
				 "else can write",
				 path);
	return 0;
}

int statedir_path(const char *rack, char path[STATEDIR_PATH_MAX])
{
	char base[STATEDIR_PATH_MAX];
	int err = state_base(base);

	return err ? err : join(path, base, "/", rack);
}

int statedir_make(const char *rack, char path[STATEDIR_PATH_MAX])
{
	int err = statedir_path(rack, path);

	if (!err)
		err = make_dirs(path);
	return err ? err : check_dir(path);
}
