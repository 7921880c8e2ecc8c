/* SPDX-License-Identifier: Apache-2.0 */
/* The rack of a command: settings, directories, nodes, and their status. */
#ifndef AQ_CLI_RACK_H
#define AQ_CLI_RACK_H

#include <jansson.h>
#include <sys/types.h>

#include "base/rundir.h"
#include "client/client.h"

struct cli_command;
struct config;

struct cli_rack {
	struct config *config;
	const char *name;
	char rundir[RUNDIR_PATH_MAX];
	struct client_node node[CLIENT_NODE_MAX];
	unsigned node_count;
	struct client_node engine[CLIENT_NODE_MAX];
	unsigned engine_count;
	struct client_node control[CLIENT_CONTROL_MAX];
	unsigned control_count;
};

/*
 * `file` is a rack.ini or NULL; a given one also holds for programs started
 * from here. With `make` the runtime directory is made. Says on stderr what is
 * wrong when it fails.
 */
int cli_rack_open(struct cli_rack *rack, const char *file,
		  bool make) MUST_CHECK;
/* The same for a command whose words are [RACK.INI] and whose option is --json.
 * CLI_GO, or the exit code. */
int cli_rack_parse(const struct cli_command *self, int argc, char **argv,
		   bool make, bool *as_json, struct cli_rack *rack) MUST_CHECK;
void cli_rack_close(struct cli_rack *rack);
/* Looks for nodes and engines again. */
void cli_rack_scan(struct cli_rack *rack);

/* What /v1/status of a node answers; over TCP a node says more to a caller with
 * a token; the token is not sent to engines. Free it with json_decref. */
int cli_rack_ask(const struct cli_rack *rack, const struct client_node *node,
		 uint32_t timeout_ms, json_t **status) MUST_CHECK;

/* What a controller answers: the one that leads, which rack.control names or
 * one of those, or else one that answers; and which. -ENOENT: none is named. */
int cli_rack_control(const struct cli_rack *rack, uint32_t timeout_ms,
		     struct client_node *control, json_t **status) MUST_CHECK;

/* What a node answers to the tenant of our token. Free it with json_decref. */
int cli_rack_list(const struct cli_rack *rack, const struct client_node *node,
		  const char *path, uint32_t timeout_ms,
		  json_t **out) MUST_CHECK;

/* A size as people write it: 1.5G. */
const char *cli_rack_size(uint64_t bytes, char out[16]);

#endif
