/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node: a pool with a limit, tenants with tokens and quotas, named
 * regions, and queue pairs for clients that read and write them.
 *
 * The node itself is a request handler (mem_node_handle) and a clock tick. The
 * process around it, with sockets and signals, is mem_daemon; the simulator and
 * the tests do without.
 */
#ifndef AQ_MEMNODE_H
#define AQ_MEMNODE_H

#include "base/base.h"
#include "base/env.h"
#include "daemon/daemon.h"

struct ctl_audit;
struct ctl_reply;
struct ctl_request;
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
/* No request may be under way any more. */
void mem_node_destroy(struct mem_node *node);

/* A ctl_handle_fn; ctx is the node. Any thread. */
void mem_node_handle(void *ctx, const struct ctl_request *request,
		     struct ctl_reply *reply);

/* Ends the connections of clients that are gone; every MEM_TICK_MS. */
void mem_node_tick(struct mem_node *node);

/* ---- the process -------------------------------------------------------- */

/* What d->self of a struct daemon points to. */
struct mem_serve {
	uint64_t pool_bytes;
	struct env env; /* its own */
};

/* A node until a signal; see daemon/daemon.h. */
extern const struct daemon_kind mem_daemon;

enum {
	MEM_STATE_PATH_MAX = 400, /* with the NUL */
};

/*
 * The directory where nodes of this rack keep their tenants, which is made:
 * <state>/<rack>, where <state> is $AQUIFER_STATEDIR, $AQUIFER_RUNDIR/state
 * unless that is in /run, /var/lib/aquifer as root, or $XDG_STATE_HOME/aquifer
 * (~/.local/state/aquifer).
 */
int mem_state_dir(const char *rack, char path[MEM_STATE_PATH_MAX]) MUST_CHECK;
/* Where it is or would be; touches nothing. */
int mem_state_path(const char *rack, char path[MEM_STATE_PATH_MAX]) MUST_CHECK;

#endif
