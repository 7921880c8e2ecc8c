/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer control`: its arguments, for the files that share them. */
#ifndef AQ_CLI_CONTROL_H
#define AQ_CLI_CONTROL_H

#include "cli_daemon.h"
#include "controld/controld.h"

struct cli_control {
	struct cli_daemon base;
	struct cd_serve_options serve;
};

/* `aquifer control dump FILE` and `load FILE`; returns the exit code. */
int cli_control_copy(struct cli_control *a, const struct cli_words *words);

#endif
