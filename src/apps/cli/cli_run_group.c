/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer run --shared` does before it is the program. */
#include "cli_run_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli.h"
#include "cli_place.h"
#include "sharedd/sharedd.h"

int cli_run_group_join(const char *group, unsigned copies,
		       char libraries[CLI_RUN_GROUP_LIBRARIES_MAX])
{
	char own[PATH_MAX], list[CLI_RUN_GROUP_LIBRARIES_MAX];
	int n, err;

	if (cli_place_shm_library(own) != 0) {
		cli_error("no %s; run 'make' or 'make install'", own);
		return CLI_CANNOT_RUN;
	}
	n = snprintf(list, sizeof(list), libraries[0] ? "%s:%s" : "%s", own,
		     libraries);
	if (n < 0 || (size_t)n >= sizeof(list)) {
		cli_error("run: the path of the libraries is too long");
		return CLI_CANNOT_RUN;
	}
	err = shd_launch_join(&(struct shd_group){group, copies});
	if (err) {
		cli_error("run: %s", error_last());
		return err == -EINVAL ? CLI_USAGE : CLI_CANNOT_RUN;
	}
	memcpy(libraries, list, (size_t)n + 1);
	return CLI_GO;
}

/* Without far memory nobody has to watch the program. */
int cli_run_group_become(const char *libraries, char **argv)
{
	const char *old = getenv("LD_PRELOAD");
	char *list = NULL;
	int err;

	if (asprintf(&list, old && *old ? "%s:%s" : "%s", libraries, old) < 0 ||
	    setenv("LD_PRELOAD", list, 1) != 0) {
		cli_error("run: no memory");
		return CLI_CANNOT_RUN;
	}
	(void)execvp(argv[0], argv);
	err = errno;
	cli_error("run: '%s' was not started: %s", argv[0], strerror(err));
	free(list);
	return err == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}
