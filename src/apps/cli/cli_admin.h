/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the administrator asks of all memory nodes of a rack, so that tenants
 * and tokens are the same everywhere. A node that fails is named on stderr and
 * in the report, and does not keep the others from being asked.
 */
#ifndef AQ_CLI_ADMIN_H
#define AQ_CLI_ADMIN_H

#include "cli_rack.h"

struct cli_admin {
	struct cli_rack rack;
	struct client_http *http;
	char token[CLIENT_TOKEN_MAX];
	json_t *done;	/* names of nodes */
	json_t *failed; /* {"node", "error"} */
	/* Of rack.node, the last ones: 0, all of them, or one behind the nodes.
	 */
	unsigned controllers;
};

enum {
	CLI_TENANT_NAME_MAX = 32,
};

/* Says on stderr what is wrong when it fails. */
int cli_admin_open(struct cli_admin *a) MUST_CHECK;
/* The same with the token that programs use. */
int cli_admin_open_tenant(struct cli_admin *a) MUST_CHECK;
/* Where rack.control names a controller, it is asked in place of the nodes, and
 * is m->rack.node[0]: tenants are its own. */
int cli_admin_open_rack(struct cli_admin *a) MUST_CHECK;
/* Only the controller, with that token; without one in the rack -ENOENT. */
int cli_admin_open_control(struct cli_admin *a,
			   enum rack_token_kind kind) MUST_CHECK;
/* Or it is one more node: what the administrator says to each process. */
int cli_admin_open_all(struct cli_admin *a) MUST_CHECK;
/* The controller with the token that programs use; -ENOENT: the rack has none.
 */
int cli_admin_open_names(struct cli_admin *a) MUST_CHECK;
/* Looks again which controller leads. */
int cli_admin_find_leader(struct cli_admin *a) MUST_CHECK;
void cli_admin_close(struct cli_admin *a);

/* One request to one node, with the token that was found. `body` is taken
 * over; *reply may be NULL. */
int cli_admin_ask(struct cli_admin *a, unsigned node, const char *method,
		  const char *path, json_t *body, json_t **reply) MUST_CHECK;
/* Keeps what became of a node: `err` with the words of the last error. */
void cli_admin_note(struct cli_admin *a, unsigned node, int err);
/* The same request to all nodes; how many did it. */
unsigned cli_admin_ask_all(struct cli_admin *a, const char *method,
			   const char *path, const json_t *body);

/* Says so on stderr and returns CLI_FAILED where the rack has no node; else 0.
 */
int cli_admin_has_nodes(const struct cli_admin *a);

/* Prints the tree, with the nodes that did it and those that failed, and is the
 * exit code: 1 where one failed. Takes the tree over. */
int cli_admin_report(struct cli_admin *a, json_t *tree, bool as_json);

/* "/v1/tenants/NAME" and what follows; says on stderr when the name is none. */
int cli_admin_path(char path[CLIENT_ADDRESS_MAX], const char *name,
		   const char *rest) MUST_CHECK;

#endif
