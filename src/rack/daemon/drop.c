/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming another user with directories of its own, and naming the files that
 * a daemon keeps. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_key.h"
#include "base/config_named.h"
#include "base/error.h"
#include "daemon_priv.h"

/* ---- directories for another user --------------------------------------- */

/* What exists stays as it is: who uses it checks whose it is. */
static int make_for(const char *path, uint32_t uid, uint32_t gid)
{
	int fd, err = 0;

	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? 0
				       : error_set(-errno, "cannot make %s: %s",
						   path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, uid, gid) != 0)
		err = error_set(-errno, "cannot give %s away: %s", path,
				strerror(errno));
	if (fd >= 0)
		(void)close(fd); /* only its owner changed */
	return err;
}

/* Where root's would be, in words that also hold for the user. */
static int settle(const char *variable, const char *fallback, uint32_t uid,
		  uint32_t gid)
{
	const char *path = secure_getenv(variable);

	if (!path || !path[0]) {
		path = fallback;
		if (setenv(variable, path, 1) != 0)
			return error_set(-ENOMEM, "no memory for %s", variable);
	}
	return make_for(path, uid, gid);
}

/* What rack.ini says about users, or NULL. */
static const char *rack_text(const struct config *config, const char *key)
{
	const char *text = config_key_find("rack", key) < 0
				   ? ""
				   : config_string(config, "rack", key);

	return text[0] ? text : NULL;
}

static int become(struct daemon *d)
{
	uint32_t uid, gid;
	int err = confine_user_find(d->options.user, &uid, &gid);

	if (!err && geteuid() == 0 && uid != 0) {
		/* Root hands the rack's directory over to who serves it. */
		if (rack_text(d->config, "user"))
			err = rundir_make(d->rack, d->rundir);
		if (!err)
			err = settle("AQUIFER_RUNDIR", "/run/aquifer", uid,
				     gid);
		if (!err)
			err = settle("AQUIFER_STATEDIR", "/var/lib/aquifer",
				     uid, gid);
	}
	return err ? err : confine_become(&d->confine);
}

/* ---- files -------------------------------------------------------------- */

/* The directory that `path` is in. */
static int add_dir_of(struct daemon *d, enum confine_use use, const char *path)
{
	char *dir = d->dirs[d->dir_count];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (n >= PATH_MAX || d->dir_count == DAEMON_DIRS)
		return error_set(-ENOSPC, "%.200s: too long, or too many",
				 path);
	memcpy(dir, path, n);
	dir[n] = '\0';
	if (n == 0)
		(void)strcpy(dir, slash ? "/" : ".");
	d->dir_count++;
	return confine_add(&d->confine, use, dir);
}

int daemon_allow_parent(struct daemon *d, enum confine_use use,
			const char *path)
{
	return path && path[0] ? add_dir_of(d, use, path) : 0;
}

/* Certificates of nodes and engines that are elsewhere. */
static int add_authorities(struct daemon *d)
{
	static const char *const kinds[] = {"node", "engine"};
	int err = 0;

	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		unsigned count = config_named_count(d->config, kinds[k]);

		for (unsigned i = 0; !err && i < count; i++)
			err = confine_add(&d->confine, CONFINE_READ,
					  config_named_text(d->config, kinds[k],
							    i, "ca"));
	}
	return err;
}

/* Who finds a place looks at the directories above it, too. */
static int add_rundir(struct daemon *d)
{
	int err = rundir_make(d->rack, d->rundir);

	if (!err)
		err = confine_add(&d->confine, CONFINE_WRITE, d->rundir);
	if (!err)
		err = add_dir_of(d, CONFINE_LIST, d->rundir);
	return err ? err
		   : add_dir_of(d, CONFINE_LIST, d->dirs[d->dir_count - 1]);
}

/* The files that its options name. */
static int add_options(struct daemon *d)
{
	const struct daemon_options *o = &d->options;
	int err = confine_add(&d->confine, CONFINE_READ, o->tls_cert);

	if (!err)
		err = confine_add(&d->confine, CONFINE_READ, o->tls_key);
	if (!err && o->audit && strcmp(o->audit, "-") != 0)
		err = daemon_allow_parent(d, CONFINE_WRITE, o->audit);
	return err;
}

static int add_files(struct daemon *d)
{
	int err = add_rundir(d);

	if (!err && config_find_file(d->config_path) == 0)
		err = confine_add(&d->confine, CONFINE_READ, d->config_path);
	if (!err)
		err = add_authorities(d);
	if (!err)
		err = daemon_allow_parent(d, CONFINE_WRITE,
					  secure_getenv("AQUIFER_PCAP"));
	if (!err)
		err = add_options(d);
	return !err && d->kind->allow ? d->kind->allow(d) : err;
}

/* ---- all of it ---------------------------------------------------------- */

static bool is_low_port(const char *address)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;

	return port > 0 && port < 1024;
}

int drop_rights(struct daemon *d)
{
	int err = 0;

	d->confine.low_port |= is_low_port(d->options.listen);
	d->confine.packets |= strncmp(config_string(d->config, "nic", "port"),
				      "raw:", 4) == 0;
	/* As root, without a word to the contrary: who serves the rack. */
	if (!d->options.user && geteuid() == 0)
		d->options.user = rack_text(d->config, "user");
	d->confine.user = d->options.user;
	d->confine.group = rack_text(d->config, "group");
	/* The first, so that all directories are made for the user. */
	if (d->options.user)
		err = become(d);
	if (!err)
		err = add_files(d);
	return err || d->options.is_unconfined ? err
					       : confine_start(&d->confine);
}
