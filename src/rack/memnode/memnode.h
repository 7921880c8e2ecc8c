/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node: a pool with a limit, tenants with tokens and quotas, named
 * regions, and queue pairs for clients that read and write them.
 *
 * The node itself is a request handler (mem_node_handle) and a clock tick. The
 * process around it, with sockets and signals, is mem_serve; the simulator and
 * the tests do without.
 */
#ifndef AQ_MEMNODE_H
#define AQ_MEMNODE_H

#include "base/base.h"

struct ctl_audit;
struct ctl_reply;
struct ctl_request;
struct env;
struct mem_node;

struct mem_node_config {
	const char *name;
	uint64_t pool_bytes;
	const char *default_token; /* of the tenant "default" */
	const char *admin_token;
	const char *state_path; /* tenants are kept here; NULL: nowhere */
	struct env *env;	/* clock, randomness, relax */
	/* Control socket of the switch that the NIC is plugged into, or NULL.
	 */
	const char *switch_path;
	struct ctl_audit *audit; /* the caller's; or NULL */
	bool has_auth; /* nic.auth = psk: every connection has a key */
};

/* Opens the NIC. error_last() has the words. */
int mem_node_create(const struct mem_node_config *config,
		    struct mem_node **out) MUST_CHECK;
/* No request may be on its way any more. */
void mem_node_destroy(struct mem_node *node);

/* A ctl_handle_fn; ctx is the node. Any thread. */
void mem_node_handle(void *ctx, const struct ctl_request *request,
		     struct ctl_reply *reply);

/* Ends the connections of clients that are gone; every MEM_TICK_MS. */
void mem_node_tick(struct mem_node *node);

/* 1 to 32 of a-z, 0-9 and '-'. */
bool mem_node_name_is_valid(const char *name);

/* ---- the process -------------------------------------------------------- */

struct mem_serve_options {
	const char *name;
	const char *rack;
	uint64_t pool_bytes;
	const char *listen;
	const char *tls_cert;
	const char *tls_key;
	const char *audit; /* file, "-", or NULL: the log */
	bool audit_json;
	const char *switch_name; /* that the NIC is plugged into, or NULL */
	bool has_auth;		 /* nic.auth = psk */
};

/* What mem_serve tells when it is ready. */
struct mem_serve_ready {
	const char *name;
	const char *rack;
	const char *socket;
	uint64_t pool_bytes;
	uint16_t port; /* 0: no TCP */
};

enum {
	MEM_STATE_PATH_MAX = 400, /* with the NUL */
};

/* The directory where nodes of this rack keep their tenants, which is made;
 * place_priv.h says where. */
int mem_state_dir(const char *rack, char path[MEM_STATE_PATH_MAX]) MUST_CHECK;
/* Where it is or would be; touches nothing. */
int mem_state_path(const char *rack, char path[MEM_STATE_PATH_MAX]) MUST_CHECK;

/*
 * Runs a node until SIGTERM or SIGINT, which it takes for the whole process; no
 * thread may have been started before. -EBUSY: a node of that name runs
 * already. error_last() has the words.
 */
int mem_serve(const struct mem_serve_options *options,
	      void (*ready)(void *ctx, const struct mem_serve_ready *what),
	      void *ctx) MUST_CHECK;

#endif
