/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of `aquifer tenant`, and the actions that cmd_tenant.c has not. */
#ifndef AQ_CLI_TENANT_H
#define AQ_CLI_TENANT_H

#include "cli_action.h"
#include "cli_admin.h"

struct cli_tenant {
	struct cli_action_args common; /* NAME, SIZE */
	const char *quota;
	const char *token_file;
	bool force;
	json_t *limits; /* or NULL */
};

int cli_tenant_ls(void *args);
int cli_tenant_rm(void *args);

#endif
