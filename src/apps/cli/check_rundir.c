/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the settings can be read and the runtime directory made. */
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/rundir.h"
#include "cli_check.h"

void cli_check_rundir(struct cli_check_result *out)
{
	char path[RUNDIR_PATH_MAX] = "";
	struct config *config;

	if (config_open(NULL, &config) != 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "settings: %.200s",
				error_last());
		cli_check_fix(out, "correct the file or variable named");
		return;
	}
	if (rundir_make(config_string(config, "rack", "name"), path) != 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "%.280s", error_last());
		cli_check_fix(out, "export AQUIFER_RUNDIR=$HOME/.aquifer && "
				   "mkdir -m 700 $AQUIFER_RUNDIR");
	} else if (access(path, W_OK) != 0) {
		cli_check_found(out, CLI_CHECK_MISSING, "%s is not writable",
				path);
		cli_check_fix(out, "chmod u+w %s", path);
	} else {
		cli_check_found(out, CLI_CHECK_OK, "%s", path);
	}
	config_destroy(config);
}
