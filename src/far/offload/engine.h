/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offload engine: finds requests in applications' rings with RDMA READs,
 * executes them against memory nodes, and writes data and progress back.
 *
 * This is the engine itself: no thread, no sleep, no HTTP. Its caller makes the
 * queue pairs (RC, in RTS, all on the engine's completion queue), adds
 * sessions, and calls offload_engine_step() in a loop. One thread at a time.
 *
 * A session is one application thread: its rings, and for each memory node that
 * its regions are on one queue pair for reads and one for writes. The latter
 * carries nothing but this session's writes, in order; see struct
 * offload_progress for why.
 *
 * Taking over from an engine that is gone, slow or unreachable:
 *  1. end the application's end of the old ring queue pair;
 *  2. for each memory node, end its end of the old write queue pair, and keep
 *     the packet number that it expected next (rq_psn of ibv_query_qp) together
 *     with the old session's epoch;
 *  3. add a session with a higher epoch, and give these numbers to it.
 * Only step 2's order matters: no packet of the old engine may take effect
 * after the number was read.
 */
#ifndef AQ_OFFLOAD_ENGINE_H
#define AQ_OFFLOAD_ENGINE_H

#include <aquifer/aqdv.h>
#include <infiniband/verbs.h>

#include "client/link.h"
#include "offload_limits.h"
#include "wire/offload_region.h"
#include "wire/offload_resume.h"

struct client_verbs;
struct offload_engine;
struct offload_session;

enum offload_counter {
	OFFLOAD_C_PROBES,
	OFFLOAD_C_PROBES_EMPTY,
	OFFLOAD_C_FETCHES,
	OFFLOAD_C_READS,
	OFFLOAD_C_WRITES,
	OFFLOAD_C_READ_BYTES,
	OFFLOAD_C_WRITE_BYTES,
	OFFLOAD_C_ERRORS,	/* requests that were refused or failed */
	OFFLOAD_C_PUBLICATIONS, /* progress told to an application */
	OFFLOAD_C_CONFLICTS,	/* waits for an overlapping request */
	OFFLOAD_C_SKIPPED,	/* writes that a predecessor had done */
	OFFLOAD_C_GATHERS,	/* requests to nodes that fetch many reads */
	OFFLOAD_C_BROKEN,	/* sessions that ended by a fault */
	OFFLOAD_C_COUNT,
};

struct offload_engine_config {
	const struct client_clock *clock;
	const struct client_verbs *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* at least cq_depth */
	uint32_t cq_depth;
	uint32_t sessions_max; /* 0: OFFLOAD_SESSIONS_MAX */
	uint64_t memory_bytes; /* for mirrors of rings; 0: no limit */
	uint32_t batch;	       /* 0: OFFLOAD_BATCH */
	uint64_t flush_ns;     /* 0: OFFLOAD_FLUSH_NS */
	uint64_t probe_min_ns; /* 0: OFFLOAD_PROBE_MIN_NS, and so on */
	uint64_t probe_max_ns;
	/* aqdv_post_walk, or NULL: this NIC knows no walks. */
	int (*post_walk)(struct ibv_qp *qp, struct aqdv_walk_wr *wr,
			 struct aqdv_walk_wr **bad_wr);
	/* OFFLOAD_C_COUNT of them, where others can see them; NULL: nowhere. */
	uint64_t *counters;
};

int offload_engine_create(const struct offload_engine_config *config,
			  struct offload_engine **out) MUST_CHECK;
/* All sessions must have been removed. */
void offload_engine_destroy(struct offload_engine *e);

struct offload_node_config {
	int err; /* why it cannot be used, -EHOSTDOWN; then the rest is
		  * unused */
	struct ibv_qp *read_qp;
	struct ibv_qp *write_qp; /* both take OFFLOAD_NODE_DEPTH requests */
	uint32_t write_psn;	 /* sq_psn that write_qp started with */
	uint32_t mtu_bytes;	 /* path_mtu of write_qp */
	/* The pad of walks on read_qp, of which OFFLOAD_GATHERS may be under
	 * way; 0: this node gathers nothing. */
	uint32_t gather_bytes;
	struct offload_final final;
};

struct offload_session_config {
	struct ibv_qp *ring_qp; /* takes OFFLOAD_RING_DEPTH requests */
	uint64_t ring_addr;	/* of the rings in the application's memory */
	uint64_t ring_bytes;
	uint32_t ring_rkey;
	uint32_t epoch; /* higher than any predecessor's, from 1 on */
	uint32_t batch; /* 0: the engine's; 1: every completion at once */
	uint64_t flush_ns;
	uint32_t node_count;
	uint32_t region_count;
	struct offload_node_config node[OFFLOAD_NODES_MAX];
	struct offload_region_config region[OFFLOAD_REGIONS_MAX];
};

/* -EINVAL: impossible; -ENOSPC: too many sessions or too much memory; words are
 * set. The queue pairs stay the caller's. */
int offload_session_add(struct offload_engine *e,
			const struct offload_session_config *config,
			struct offload_session **out) MUST_CHECK;
/* Call it after all its queue pairs were destroyed. */
void offload_session_remove(struct offload_session *s);

/* 0: the session is served. Else the reason why it never will be again, which
 * the application was told if possible: -ECONNRESET the rings cannot be
 * reached, -EBADMSG they hold nonsense, -EHOSTDOWN a memory node failed. */
int offload_session_err(const struct offload_session *s);
/* For how long a memory node has not answered what it was sent; 0: no node owes
 * an answer. */
uint64_t offload_session_stalled_ns(const struct offload_session *s);
/* Gives up, as if a memory node had failed. */
void offload_session_give_up(struct offload_session *s);
/* Requests that the engine knows of and has not completed. */
uint32_t offload_session_pending(const struct offload_session *s);

/* Does what can be done now and returns how much; 0: nothing. */
unsigned offload_engine_step(struct offload_engine *e);
/* After a step that did nothing: when there may be something to do; 0: at any
 * time, because requests are on the wire. */
uint64_t offload_engine_next_ns(const struct offload_engine *e);

#endif
