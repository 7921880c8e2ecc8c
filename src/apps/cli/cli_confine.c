/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a daemon needs, and directories that belong to its user. */
#include "cli_confine.h"

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
#include "cli.h"

bool cli_confine_take(struct cli_confine *c, int opt, const char *value)
{
	if (opt == CLI_CONFINE_USER)
		c->user = value;
	else if (opt == CLI_CONFINE_OFF)
		c->is_off = true;
	return opt == CLI_CONFINE_USER || opt == CLI_CONFINE_OFF;
}

static int say(int err)
{
	if (err)
		cli_error("%s", error_last_code() == err ? error_last()
							 : error_text(err));
	return err;
}

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

static int become(struct cli_confine *c, const struct config *config)
{
	char rundir[RUNDIR_PATH_MAX];
	uint32_t uid, gid;
	int err = confine_user_find(c->user, &uid, &gid);

	if (!err && geteuid() == 0 && uid != 0) {
		/* Root hands the rack's directory over to who serves it. */
		if (rack_text(config, "user"))
			err = rundir_make(config_string(config, "rack", "name"),
					  rundir);
		if (!err)
			err = settle("AQUIFER_RUNDIR", "/run/aquifer", uid,
				     gid);
		if (!err)
			err = settle("AQUIFER_STATEDIR", "/var/lib/aquifer",
				     uid, gid);
	}
	return err ? err : confine_become(&c->what);
}

/* ---- files -------------------------------------------------------------- */

/* The directory that `path` is in. */
static int add_dir_of(struct cli_confine *c, enum confine_use use,
		      const char *path)
{
	char *dir = c->dirs[c->dir_count];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	if (n >= PATH_MAX || c->dir_count == CLI_CONFINE_DIRS)
		return error_set(-ENOSPC, "%.200s: too long, or too many",
				 path);
	memcpy(dir, path, n);
	dir[n] = '\0';
	if (n == 0)
		(void)strcpy(dir, slash ? "/" : ".");
	c->dir_count++;
	return confine_add(&c->what, use, dir);
}

int cli_confine_add_parent(struct cli_confine *c, enum confine_use use,
			   const char *path)
{
	return path && path[0] ? say(add_dir_of(c, use, path)) : 0;
}

/* Certificates of nodes and engines that are elsewhere. */
static int add_authorities(struct cli_confine *c, const struct config *config)
{
	static const char *const kinds[] = {"node", "engine"};
	int err = 0;

	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		unsigned count = config_named_count(config, kinds[k]);

		for (unsigned i = 0; !err && i < count; i++)
			err = confine_add(
				&c->what, CONFINE_READ,
				config_named_text(config, kinds[k], i, "ca"));
	}
	return err;
}

/* Who finds a place looks at the directories above it, too. */
static int add_rundir(struct cli_confine *c, const struct config *config)
{
	int err = rundir_make(config_string(config, "rack", "name"), c->rundir);

	if (!err)
		err = confine_add(&c->what, CONFINE_WRITE, c->rundir);
	if (!err)
		err = add_dir_of(c, CONFINE_LIST, c->rundir);
	return err ? err
		   : add_dir_of(c, CONFINE_LIST, c->dirs[c->dir_count - 1]);
}

int cli_confine_begin(struct cli_confine *c, const struct config *config)
{
	const char *pcap = secure_getenv("AQUIFER_PCAP");
	int err = 0;

	if (strncmp(config_string(config, "nic", "port"), "raw:", 4) == 0)
		c->what.packets = true;
	/* As root, without a word to the contrary: who serves the rack. */
	if (!c->user && geteuid() == 0)
		c->user = rack_text(config, "user");
	c->what.user = c->user;
	c->what.group = rack_text(config, "group");
	if (c->user)
		err = become(c, config);
	if (!err)
		err = add_rundir(c, config);
	if (!err && config_find_file(c->config_path) == 0)
		err = confine_add(&c->what, CONFINE_READ, c->config_path);
	if (!err)
		err = add_authorities(c, config);
	if (!err && pcap && pcap[0])
		err = add_dir_of(c, CONFINE_WRITE, pcap);
	return say(err);
}

void cli_confine_listen(struct cli_confine *c, const char *address)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;

	c->what.low_port |= port > 0 && port < 1024;
}

int cli_confine_start(struct cli_confine *c)
{
	return c->is_off ? 0 : say(confine_start(&c->what));
}
