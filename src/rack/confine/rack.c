/* SPDX-License-Identifier: Apache-2.0 */
/* The files and rights that a process with a NIC in a rack needs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config_named.h"
#include "base/error.h"
#include "base/rack_token.h"
#include "confine.h"

int confine_add_parent(struct confine *c, enum confine_use use,
		       const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t n = slash ? (size_t)(slash - path) : 0;
	char *dir;

	if (!path || !path[0])
		return 0;
	if (n >= PATH_MAX || c->dir_count == CONFINE_DIRS)
		return error_set(-ENOSPC, "%.200s: too long, or too many",
				 path);
	dir = c->dirs[c->dir_count++];
	memcpy(dir, path, n);
	dir[n] = '\0';
	if (n == 0)
		(void)strcpy(dir, slash ? "/" : ".");
	return confine_add(c, use, dir);
}

/* What rack.ini says about users, or NULL. */
static const char *rack_text(const struct config *config, const char *key)
{
	const char *text = config_string(config, "rack", key);

	return text[0] ? text : NULL;
}

void confine_set_rack(struct confine *c, const struct config *config)
{
	c->packets |=
		strncmp(config_string(config, "nic", "port"), "raw:", 4) == 0;
	if (!c->user && geteuid() == 0)
		c->user = rack_text(config, "user");
	c->group = rack_text(config, "group");
}

/* Certificates of nodes and engines that are elsewhere. */
static int add_authorities(struct confine *c, const struct config *config)
{
	static const char *const kinds[] = {"node", "engine"};
	static const char *const keys[] = {"ca", "cert", "key"};
	int err = 0;

	/* And of the controller. */
	for (unsigned i = 0; !err && i < ARRAY_LEN(keys); i++)
		err = confine_add(c, CONFINE_READ,
				  config_string(config, "rack", keys[i]));
	for (unsigned k = 0; k < ARRAY_LEN(kinds); k++) {
		unsigned count = config_named_count(config, kinds[k]);

		for (unsigned i = 0; !err && i < count * ARRAY_LEN(keys); i++)
			err = confine_add(
				c, CONFINE_READ,
				config_named_text(config, kinds[k],
						  i / ARRAY_LEN(keys),
						  keys[i % ARRAY_LEN(keys)]));
	}
	return err;
}

/* Files of tokens that rack.ini gives. Their folders, because a token that is
 * replaced is another file. */
static int add_tokens(struct confine *c, const struct config *config)
{
	int err = 0;

	for (int k = 0; !err && k < RACK_TOKEN_KINDS; k++)
		err = confine_add_parent(
			c, CONFINE_READ,
			config_string(
				config, "rack",
				rack_token_setting((enum rack_token_kind)k)));
	return err;
}

/* Who finds a place looks at the directories above it, too. */
static int add_rundir(struct confine *c, const char *rack,
		      char rundir[RUNDIR_PATH_MAX])
{
	int err = rundir_make(rack, rundir);

	if (!err)
		err = confine_add(c, CONFINE_WRITE, rundir);
	if (!err)
		err = confine_add_parent(c, CONFINE_LIST, rundir);
	return err ? err
		   : confine_add_parent(c, CONFINE_LIST,
					c->dirs[c->dir_count - 1]);
}

int confine_add_rack(struct confine *c, const struct config *config,
		     const char *rack, char rundir[RUNDIR_PATH_MAX])
{
	int err = add_rundir(c, rack, rundir);

	if (!err && config_find_file(c->config_path) == 0)
		err = confine_add(c, CONFINE_READ, c->config_path);
	if (!err)
		err = add_authorities(c, config);
	if (!err)
		err = add_tokens(c, config);
	return err ? err
		   : confine_add_parent(c, CONFINE_WRITE,
					secure_getenv("AQUIFER_PCAP"));
}
