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

#include <jansson.h>

#include "base/base.h"
#include "base/env.h"
#include "daemon/daemon.h"

struct ctl_audit;
struct ctl_reply;
struct ctl_request;
struct mem_node;

enum {
	MEM_WALK_LOADS = 4, /* sizes whose loads are measured */
};

/* What walks cost here. */
struct mem_walk_gauge {
	uint32_t step_ps; /* of one instruction */
	/* Of loading 64, 256, 1024 and 4096 bytes that are in no cache. */
	uint32_t load_ns[MEM_WALK_LOADS];
};

/* How a node executes walks; a limit that is 0 has its default. */
struct mem_walk_config {
	bool has_jit;	     /* programs may become machine code */
	uint32_t iterations; /* of one request */
	uint32_t longest;    /* cost of a program's longest path */
	uint32_t programs;   /* of all tenants */
	struct mem_walk_gauge gauge;
};

struct mem_node_config {
	const char *name;
	uint64_t pool_bytes;
	uint64_t shared_bytes; /* of coherent shared memory; 0: none */
	/* The node that leads it; NULL: this one. */
	const char *shared_lead;
	const char *default_token; /* of the tenant "default" */
	const char *admin_token;
	const char *state_path; /* tenants are kept here; NULL: nowhere */
	struct env *env;	/* clock, randomness, relax */
	/* Control socket of the switch that the NIC is plugged into, or NULL.
	 */
	const char *switch_path;
	/* How calls get there; NULL: by that socket. See ctl_switch.h. */
	int (*switch_carry)(void *ctx, const char *line, char *reply,
			    size_t reply_bytes);
	void *switch_ctx;
	struct ctl_audit *audit; /* the caller's; or NULL */
	/* Where clients of this machine publish what they did; or NULL. */
	const char *rundir;
	bool has_auth; /* nic.auth = psk: every connection has a key */
	/* Makes another token last, for the tenant "default" or for the
	 * administrator: 0, or -errno with words, and nothing has changed.
	 * NULL: they stay as they are. */
	int (*keep_token)(void *ctx, bool is_admin, const char *token);
	void *keep_ctx;
	struct mem_walk_config walk;
	/* All memory that clients get lies on this NUMA node. */
	bool has_numa;
	uint32_t numa;
	/* Where blocks lie that find no room in the pool: a folder, and how
	 * much of it. NULL: nowhere. */
	const char *spill_dir;
	uint64_t spill_bytes;
	/* Memory that is made before blocks need it, at most; 0: none. */
	uint64_t ready_bytes;
	/* The vault that orders of the controller may name; NULL: none. */
	const char *vault;
	/* Where S3 is, and its region; NULL or "": the default ones. */
	const char *vault_endpoint, *vault_region;
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

/* ---- a rack with a controller ------------------------------------------- */

/* How a node reaches whoever talks to the controller for it. */
struct mem_control {
	void *ctx;
	void (*wake)(void *ctx); /* there is news */
	bool (*is_fresh)(void *ctx);
};

void mem_node_control(struct mem_node *node, const struct mem_control *control);
/* As uplink/ calls them; ctx is the node. */
void mem_node_joined(void *ctx);
void mem_node_say(void *ctx, json_t *beat);
void mem_node_hear(void *ctx, const json_t *answer);
/* Of this run. */
const char *mem_node_incarnation(const struct mem_node *node);

/* Measures what walks cost on this machine, in some milliseconds. -ENOMEM, with
 * words. */
int mem_walk_gauge(bool has_jit, struct mem_walk_gauge *out) MUST_CHECK;

/* ---- the process -------------------------------------------------------- */

/* What d->self of a struct daemon points to. */
struct mem_serve {
	uint64_t pool_bytes;
	uint64_t shared_bytes; /* see mem_node_config */
	const char *lead;      /* NULL: as rack.ini says */
	char spill_dir[256];   /* "": there is no spill tier */
	uint64_t spill_bytes;
	uint64_t ready_bytes; /* see mem_node_config */
	bool has_numa;	      /* see mem_node_config */
	uint32_t numa;
	struct env env;	       /* its own */
	struct uplink *uplink; /* to the controller; or NULL */
};

/* A node until a signal; see daemon/daemon.h. */
extern const struct daemon_kind mem_daemon;

#endif
