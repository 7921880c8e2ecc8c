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
#include "base/error.h"
#include "daemon_priv.h"

/* ---- directories for another user --------------------------------------- */

/* What exists stays as it is: who uses it checks whose it is. */
static int make_for(const char *path, uint32_t uid, uint32_t gid)
{
	struct stat st;
	int fd, err = 0;

	if (mkdir(path, 0700) != 0)
		return errno == EEXIST ? 0
				       : error_set(-errno, "cannot make %s: %s",
						   path, strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		err = error_set(-errno, "cannot open %s: %s", path,
				strerror(errno));
	else if (st.st_uid != geteuid()) /* no longer what was made */
		err = error_set(-EPERM, "%s changed hands", path);
	else if (fchown(fd, uid, gid) != 0)
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

static int become(struct daemon *d)
{
	const char *state = config_string(d->config, "rack", "state_dir");
	uint32_t uid, gid;
	int err = confine_user_find(d->confine.user, &uid, &gid);

	if (!err && geteuid() == 0 && uid != 0) {
		/* Root hands the rack's directory over to who serves it. */
		if (config_string(d->config, "rack", "user")[0])
			err = rundir_make(d->rack, d->rundir);
		if (!err)
			err = settle("AQUIFER_RUNDIR", "/run/aquifer", uid,
				     gid);
		if (!err)
			err = settle("AQUIFER_STATEDIR",
				     state[0] ? state : "/var/lib/aquifer", uid,
				     gid);
	}
	return err ? err : confine_become(&d->confine);
}

/* ---- files -------------------------------------------------------------- */

/* The files that its options name. Folders of certificates, because one that is
 * renewed is another file. */
static int add_options(struct daemon *d)
{
	const struct daemon_options *o = &d->options;
	int err = confine_add_parent(&d->confine, CONFINE_READ, o->tls_cert);

	if (!err)
		err = confine_add_parent(&d->confine, CONFINE_READ, o->tls_key);
	if (!err)
		err = confine_add_parent(&d->confine, CONFINE_READ, o->tls_ca);
	if (!err && o->audit && strcmp(o->audit, "-") != 0)
		err = confine_add_parent(&d->confine, CONFINE_WRITE, o->audit);
	return err;
}

static int add_files(struct daemon *d)
{
	int err = confine_add_rack(&d->confine, d->config, d->rack, d->rundir);

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
	d->confine.user = d->options.user;
	confine_set_rack(&d->confine, d->config);
	/* The first, so that all directories are made for the user. */
	if (d->confine.user)
		err = become(d);
	if (!err)
		err = add_files(d);
	return err || d->options.is_unconfined ? err
					       : confine_start(&d->confine);
}
