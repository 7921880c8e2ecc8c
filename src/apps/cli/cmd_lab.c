/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer bench` and `aquifer sim`: programs of the laboratory, which becomes
 * this process. So the product has no simulator, no figures and no planted
 * bugs in it, and may be installed without them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_place.h"

int cmd_lab(const struct cli_command *self, int argc, char **argv)
{
	char name[32], path[PATH_MAX];
	int err;

	(void)snprintf(name, sizeof(name), "aquifer-%s", self->name);
	err = cli_place_lab(name, path);
	if (err) {
		cli_error("'%s' is a program of the laboratory, which is not "
			  "installed: there is no %s; install aquifer-lab",
			  self->name, path);
		return CLI_NOT_FOUND;
	}
	(void)execv(path, argv);
	cli_error("%s cannot be started: %s", path, strerror(errno));
	return CLI_CANNOT_RUN;
}
