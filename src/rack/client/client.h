/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to a rack, for other rooms: the nodes, and requests to them. This room
 * also defines the functions of <aquifer/aquifer.h>.
 */
#ifndef AQ_CLIENT_H
#define AQ_CLIENT_H

#include <aquifer/aquifer.h>
#include <jansson.h>

#include "base/base.h"
#include "base/rack_token.h"
#include "client_limits.h"
#include "http.h"
#include "map.h"

struct config;

struct client_node {
	char name[CLIENT_NODE_NAME_MAX];
	char address[CLIENT_ADDRESS_MAX]; /* as in http.h */
	char ca_path[CLIENT_ADDRESS_MAX]; /* "": the system's certificates */
	/* What is shown where it asks for a certificate; "": nothing. */
	char cert_path[CLIENT_ADDRESS_MAX];
	char key_path[CLIENT_ADDRESS_MAX];
};

/* 1 to 32 of a-z, 0-9 and '-'. */
bool client_node_name_is_valid(const char *name);

/*
 * The nodes of a rack: every socket in its runtime directory, and the [node
 * NAME] sections of the configuration, which win when the name is the same.
 * Returns how many, in the order of their names.
 */
unsigned client_nodes_find(const struct config *config, const char *rundir,
			   struct client_node nodes[CLIENT_NODE_MAX]);

/* What rack.ca, rack.cert and rack.key say, for a controller or a node that it
 * names. */
void client_node_trust(const struct config *config, struct client_node *n);
/*
 * The controllers that rack.control names: one of this machine, whose socket is
 * NAME.control.sock, or addresses. 0: none.
 */
unsigned client_controllers_find(const struct config *config,
				 const char *rundir,
				 struct client_node out[CLIENT_CONTROL_MAX]);

/* Adds the nodes of a kind that the controller knows, where they are not known
 * yet and can be reached. -EHOSTDOWN: no controller answers; -ENOENT: there is
 * none. */
int client_control_nodes(const struct config *config, const char *rundir,
			 const char *token, const char *kind,
			 struct client_node nodes[CLIENT_NODE_MAX],
			 unsigned *count) MUST_CHECK;

/* A request to the controller of a rack, as client_call has it; -ENOENT also
 * where there is none. */
int client_control_call(struct aq_rack *rack, const char *method,
			const char *path, json_t *body, uint64_t deadline_ns,
			json_t **reply) MUST_CHECK;
/* The index of the node with that name; looks for new ones, too. */
int client_control_node(struct aq_rack *rack, const char *name,
			uint32_t *out) MUST_CHECK;

/* The same for engines: NAME.engine.sock, and the [engine NAME] sections. */
unsigned client_engines_find(const struct config *config, const char *rundir,
			     struct client_node engines[CLIENT_NODE_MAX]);
/* Whether a [switch NAME] section lists that program. */
bool client_has_program(const struct config *config, const char *program);
/* Says why there is no node: -EACCES, this user may not look into the runtime
 * directory; -ENOENT, none is there. */
int client_nodes_none(const char *rack, const char *rundir);

/* The token for engines, "" when there is none; see client_token_read. */
void client_engine_token(const struct config *config, const char *rundir,
			 char token[CLIENT_TOKEN_MAX]);

/* A token of this user in that rack, as rack_token_find says. `config` is what
 * describes this rack, or NULL. */
int client_token_read(const struct config *config, const char *rundir,
		      enum rack_token_kind kind,
		      char token[CLIENT_TOKEN_MAX]) MUST_CHECK;
bool client_token_is_valid(const char *token);

typedef int (*client_http_fn)(void *ctx, struct client_http *h,
			      const struct client_http_request *req,
			      struct client_http_reply *reply);

/* What a request is sent with. One thread at a time. */
struct client_caller {
	struct client_http *http;
	client_http_fn send; /* NULL: client_http_do */
	void *send_ctx;
	const char *token; /* NULL: none */
};

/*
 * One request with JSON in and out. `body` is taken over, also on failure; NULL
 * sends none. *reply may be NULL when the node sent none; free it with
 * json_decref. An answer with a member "error" is returned as that error's
 * code, with the node's words; see also client_http_do. Where a controller
 * names another one that leads, that one is asked.
 */
int client_call(const struct client_caller *c, const struct client_node *node,
		const char *method, const char *path, json_t *body,
		uint32_t timeout_ms, size_t max_bytes,
		json_t **reply) MUST_CHECK;

/* What client_call would return for an answer that was got in another way:
 * `err` is what client_http_do returned, and the answer counts if that is 0. */
int client_reply_take(const struct client_node *node, int err,
		      const struct client_http_reply *http,
		      json_t **reply) MUST_CHECK;

enum {
	CLIENT_STATUS_OTHER = 421, /* another controller leads */
};

/* Whether a controller's words name the one that leads, which may be asked
 * instead: then `out` is its address. */
bool client_leader_of(const struct client_node *from, const json_t *tree,
		      char out[CLIENT_ADDRESS_MAX]);
/* The same of an answer that refuses; client_call asks there by itself. */
bool client_reply_leader(const struct client_node *from,
			 const struct client_http_reply *http,
			 char out[CLIENT_ADDRESS_MAX]);

/* An unsigned member of an answer; -EPROTO when it is missing or not in
 * [0, max]. */
int client_json_u64(const json_t *object, const char *key, uint64_t max,
		    uint64_t *out) MUST_CHECK;
/* A text of 1 to size_bytes - 1 letters, digits, '-', '_' and '.'. */
/* 16 hexadecimal digits. */
int client_json_hex(const json_t *object, const char *key,
		    uint64_t *out) MUST_CHECK;
int client_json_word(const json_t *object, const char *key, char *out,
		     size_t size_bytes) MUST_CHECK;

/* The code that an HTTP status stands for when the node says nothing else. */
int client_status_errno(long status);

#endif
