/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the daemons of `aquifer` confine themselves: the options --user and
 * --no-confine, and the files that each of them needs.
 *
 *	struct cli_confine c = {0};		its fields come from options
 *	cli_confine_begin(&c, config)		what all of them need
 *	cli_confine_add(&c, ...), c.what	what this one needs
 *	cli_confine_start(&c)			before the first thread
 */
#ifndef AQ_CLI_CONFINE_H
#define AQ_CLI_CONFINE_H

#include <limits.h>

#include "base/base.h"
#include "base/config.h"
#include "base/rundir.h"
#include "confine/confine.h"

enum {
	/* Of getopt_long, beside every command's letters. */
	CLI_CONFINE_USER = 0x100,
	CLI_CONFINE_OFF,
	CLI_CONFINE_DIRS = 6,
};

#define CLI_CONFINE_LONGOPTS                                     \
	{"user", required_argument, NULL, CLI_CONFINE_USER},     \
	{                                                        \
		"no-confine", no_argument, NULL, CLI_CONFINE_OFF \
	}

struct cli_confine {
	const char *user;
	bool is_off;
	struct confine what;
	char rundir[RUNDIR_PATH_MAX];
	char config_path[CONFIG_PATH_MAX];
	unsigned dir_count;
	char dirs[CLI_CONFINE_DIRS][PATH_MAX];
};

/* False: that option is another's. */
bool cli_confine_take(struct cli_confine *c, int opt, const char *value);

/* The first, so that all directories are made for the user: as root with
 * --user, they are /run/aquifer and /var/lib/aquifer unless the environment
 * says otherwise. Like the others it says on stderr what is wrong. */
int cli_confine_begin(struct cli_confine *c,
		      const struct config *config) MUST_CHECK;
/* For a file that will be made or replaced: the directory that it is in. */
int cli_confine_add_parent(struct cli_confine *c, enum confine_use use,
			   const char *path) MUST_CHECK;
/* "ADDRESS:PORT", or NULL. */
void cli_confine_listen(struct cli_confine *c, const char *address);
int cli_confine_start(struct cli_confine *c) MUST_CHECK;

#endif
