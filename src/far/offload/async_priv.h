/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context of asynchronous operations: the rings, and what attaches them to an
 * engine. The application's thread has the rings; everything else is under the
 * lock, which that thread takes only to open, add regions and close.
 */
#ifndef AQ_OFFLOAD_ASYNC_PRIV_H
#define AQ_OFFLOAD_ASYNC_PRIV_H

#include <aquifer/aquifer.h>
#include <pthread.h>

#include "client/keepalive.h"
#include "offload_limits.h"
#include "ring.h"

enum {
	ASYNC_SESSION_CHARS = 32,
	ASYNC_HEARTBEAT_MS = 1000,
	ASYNC_NODE_BYE_MS = 800, /* to tell a node that a connection ends */
	ASYNC_BYE_MS = 100, /* to tell an engine that we leave it for another */
	/* Time for one attempt to attach by the rack's thread. */
	ASYNC_ATTACH_MS = 2000,
	ASYNC_RETRY_MS = 1000, /* to find a lost node again */
	/* For an engine to say how much it has to do, at most; and so is a
	 * quarter of an attempt for all of them. */
	ASYNC_ASK_MS = 250,
	ASYNC_ASK_SHARE = 4,
	/* A silent node becomes an error within the rack's deadline: after 1/3
	 * of it the engine gives the node up, then 1/6 is for attaching without
	 * the node; the rest is for loops that look at intervals. */
	ASYNC_ENGINE_SHARE = 3,
	ASYNC_ATTACH_SHARE = 6,
	/* Callers get an error after half of the deadline without an engine: an
	 * engine that is slow to answer on a busy machine is not gone. */
	ASYNC_PATIENCE_SHARE = 2,
	ASYNC_IDLE_YIELDS = 2000,
	ASYNC_NAP_NS = 50000,
};

/* A memory node of this context; its number never changes. */
struct async_node {
	uint32_t rack_node;
	int err;	 /* 0: connected */
	bool can_gather; /* many reads in one walk */
	/* Since when attempts to attach have had no answer; 0: it answers. */
	uint64_t silent_ns;
	/* When the engine's queue pairs were made, as an epoch; 0: never. */
	uint32_t conn_epoch;
	char conn_id[CLIENT_ID_MAX]; /* of the one for writes */
	bool has_final;
	uint32_t final_epoch;
	uint32_t final_psn;
	struct client_bond bond[OFFLOAD_KINDS]; /* of the engine's */
};

struct async_piece {
	uint32_t node; /* of this context */
	uint32_t rkey[OFFLOAD_KINDS];
	uint64_t addr;
};

struct async_region {
	struct client_shape shape;
	int err; /* it is gone for good */
	struct async_piece piece[OFFLOAD_NODES_MAX];
};

/* Our end of a queue pair that the engine uses. */
struct async_qp {
	struct ibv_qp *qp;
	uint32_t psn;
};

/* The session at an engine that serves the rings; no id: there is none. */
struct async_session {
	struct client_node engine;
	char id[CLIENT_ID_MAX];
	bool can_auth;	/* its packets can carry a MAC */
	bool in_switch; /* another process moves the data */
};

struct aq_async {
	struct offload_ring ring;
	/* A byte that is 0 in a child of the process that made the rings. */
	const uint8_t *is_own;
	/* 0, or why there is no engine. E0 stores, E1 loads; no other data
	 * depends on it. */
	_Atomic int lost;
	struct aq_rack *rack;
	struct client_device device;
	void *memory;
	size_t memory_bytes;
	bool is_direct; /* the engine may map the regions to read them */
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	char engine_name[CLIENT_NODE_NAME_MAX]; /* "": any */
	char engine_token[CLIENT_TOKEN_MAX];
	uint32_t batch;
	uint32_t flush_us;

	struct client_keepalive keepalive;
	pthread_mutex_t lock;
	bool is_attached;
	struct async_qp end; /* of the rings */
	uint32_t epoch;
	char session[ASYNC_SESSION_CHARS + 1]; /* towards memory nodes */
	struct async_session now;
	struct client_bond bond;   /* of `now` */
	struct async_session left; /* abandoned; its engine was not told */
	char served_by[CLIENT_NODE_NAME_MAX]; /* the engine; "": none yet */
	uint64_t lost_ns; /* since when there is no engine */
	uint64_t retry_ns;
	/* While the engine is silent: what it had done when that was looked at
	 * last, and since when that has not changed; 0: not yet. */
	uint64_t seen_done;
	uint64_t stuck_ns;
	uint32_t node_count;
	uint32_t region_count;
	struct async_node node[OFFLOAD_NODES_MAX];
	struct async_region *region[OFFLOAD_REGIONS_MAX];
};

/* False in a child of the process that made the rings. */
static inline bool async_is_own(const struct aq_async *a)
{
	return atomic_load_explicit((const _Atomic uint8_t *)a->is_own,
				    memory_order_relaxed) != 0;
}

/* The deadline's nth part. */
static inline uint32_t async_share_ms(const struct aq_async *a, uint32_t n)
{
	return u32_max(aq_rack_deadline(a->rack) / n, 1);
}

/* ---- attach.c: the lock is held ----------------------------------------- */

/* Ends the current session and attaches anew, with all regions. A node that
 * does not answer or a region that is gone is no error. */
int offload_async_attach(struct aq_async *a, const struct client_caller *caller,
			 uint64_t deadline_ns) MUST_CHECK;
/* Ends the session for good and tells the engine and the nodes. */
void offload_async_detach(struct aq_async *a,
			  const struct client_caller *caller);
/* No engine can reach the rings any more. */
void offload_async_fence(struct aq_async *a);

/* ---- attach_choice.c ---------------------------------------------------- */

/* Which of the engines to try, in this order; how many. If there is a choice,
 * each is asked how much it has to do. */
unsigned offload_async_choose(const struct aq_async *a,
			      const struct client_caller *caller,
			      const struct client_node *engines, unsigned count,
			      uint32_t ask_ms, unsigned order[CLIENT_NODE_MAX]);

/* ---- attach_node.c ------------------------------------------------------ */

/* One end of a connection as it stands in JSON. */
struct async_end {
	char gid[33];
	uint64_t qpn;
	uint64_t psn;
	uint64_t mtu;
	uint64_t rd_atomic;
};

int offload_async_end_parse(const json_t *tree,
			    struct async_end *out) MUST_CHECK;

/* Connects the engine's two queue pairs to node `i` and asks for the keys of
 * all pieces there; `row` gets what the engine has to know. A node that fails
 * is noted. -EAGAIN: it has not answered, but may only be slow: attach
 * again. */
int offload_async_node_connect(struct aq_async *a, uint32_t i,
			       const struct client_caller *caller,
			       const char *gid, const json_t *ends,
			       uint64_t deadline_ns, json_t *row) MUST_CHECK;

/* The node's connections get no heartbeat any more. */
void offload_async_node_forget(struct aq_async *a, uint32_t i);

/* ---- keepalive.c -------------------------------------------------------- */

void offload_async_tick(struct client_keepalive *k,
			const struct client_caller *caller);

#endif
