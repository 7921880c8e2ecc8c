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
	const char *role;
	const char *path; /* that a token is for */
	bool read_only;
	uint32_t seconds;
	json_t *limits; /* or NULL */
};

int cli_tenant_ls(void *args);
int cli_tenant_rm(void *args);
int cli_tenant_token(void *args);
int cli_tenant_tokens(void *args);
int cli_tenant_revoke(void *args);

/* The token in the file that was named; a new one, which goes there, where
 * there is none (*is_new); or a new one. -errno with words. */
int cli_tenant_find_token(const struct cli_tenant *a, char token[SECRET_TEXT],
			  bool *is_new) MUST_CHECK;

/* Waits until all nodes that are not down have the controller's list of
 * tenants; which have is in the tree, who has not is named on stderr: then
 * CLI_FAILED. `done` is what has happened at the controller, whatever becomes
 * of this. */
int cli_tenant_await(struct cli_admin *m, const char *done, json_t *tree);

#endif
