/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a group, which share memory: `aquifer run --shared`. */
#ifndef AQ_CLI_RUN_GROUP_H
#define AQ_CLI_RUN_GROUP_H

#include <limits.h>

#include "base/base.h"

enum {
	CLI_RUN_GROUP_LIBRARIES_MAX = 2 * PATH_MAX,
};

/* This process becomes one of the group, and so does all that it starts; what
 * they make is in so many memory nodes. The
 * group's library is put before the one in `libraries`, if there is one; what
 * it does not want it hands on. CLI_GO, or an exit code after a message. */
int cli_run_group_join(const char *group, unsigned copies,
		       char libraries[CLI_RUN_GROUP_LIBRARIES_MAX]) MUST_CHECK;
/* Executes the program with these libraries in place of this process; returns
 * an exit code after a message. */
int cli_run_group_become(const char *libraries, char **argv) MUST_CHECK;

#endif
