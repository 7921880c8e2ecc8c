/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the private verbs library next to the running binary. */
#include "cli_place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cli_place_bindir(char out[PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	memcpy(out, path, strlen(path) + 1);
	return 0;
}

static bool holds_library(const char *dir)
{
	char file[PATH_MAX];
	int n = snprintf(file, sizeof(file), "%s/" CLI_PLACE_VERBS_SONAME, dir);

	return n > 0 && (size_t)n < sizeof(file) && access(file, R_OK) == 0;
}

int cli_place_verbs_libdir_at(const char *bindir, char out[PATH_MAX])
{
	/* The build tree, then the prefix that contains bin/aquifer. */
	static const char *const places[] = {"src/nic/verbs",
					     "../lib/aquifer/verbs"};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		char joined[PATH_MAX], real[PATH_MAX];
		int n = snprintf(joined, sizeof(joined), "%s/%s", bindir,
				 places[i]);

		if (n < 0 || (size_t)n >= sizeof(joined))
			return -ENAMETOOLONG;
		if (!holds_library(joined)) {
			memcpy(out, joined, (size_t)n + 1);
			continue;
		}
		if (!realpath(joined, real))
			return -errno;
		memcpy(out, real, strlen(real) + 1);
		return 0;
	}
	return -ENOENT;
}

int cli_place_verbs_libdir(char out[PATH_MAX])
{
	char bindir[PATH_MAX];
	int err = cli_place_bindir(bindir);

	if (err) {
		out[0] = '\0';
		return err;
	}
	return cli_place_verbs_libdir_at(bindir, out);
}

/* The first of `places`, relative to the running program, with that file. */
static int find_file(const char *const places[], size_t count, const char *file,
		     char out[PATH_MAX])
{
	char bindir[PATH_MAX];
	int err = cli_place_bindir(bindir);

	out[0] = '\0';
	for (size_t i = 0; !err && i < count; i++) {
		int n = snprintf(out, PATH_MAX, "%s/%s/%s", bindir, places[i],
				 file);

		if (n < 0 || n >= PATH_MAX)
			return -ENAMETOOLONG;
		if (access(out, R_OK) == 0)
			return 0;
	}
	return err ? err : -ENOENT;
}

int cli_place_run_library(char out[PATH_MAX])
{
	static const char *const places[] = {"src/apps/preload",
					     "../lib/aquifer"};

	return find_file(places, ARRAY_LEN(places), "libaquifer-run.so", out);
}

int cli_place_shm_library(char out[PATH_MAX])
{
	static const char *const places[] = {"src/apps/shm", "../lib/aquifer"};

	return find_file(places, ARRAY_LEN(places), "libaquifer-shm.so", out);
}

int cli_place_nbd_plugin(char out[PATH_MAX])
{
	static const char *const places[] = {"src/apps/nbd",
					     "../" AQ_LIBDIR "/nbdkit/plugins"};

	return find_file(places, ARRAY_LEN(places), "nbdkit-aquifer-plugin.so",
			 out);
}

int cli_place_lab(const char *program, char out[PATH_MAX])
{
	static const char *const places[] = {".", "../libexec/aquifer"};

	return find_file(places, ARRAY_LEN(places), program, out);
}
