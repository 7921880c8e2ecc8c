/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine of coherent shared memory (docs/mind.md) in the simulator: the
 * shipped cache between somebody's MMU and a shipped NIC, with connections to
 * the shipped switch. Memory, threads, time and what goes wrong are the
 * caller's: it calls rig_coh_poll whenever it likes and is called back for what
 * happens to pages, which it numbers from 0 on.
 *
 * Callbacks may not call this machine, except that `step` may let other fibers
 * run before RIG_COH_INVAL: nothing of it is half done then.
 */
#ifndef AQ_RIG_COH_MACHINE_H
#define AQ_RIG_COH_MACHINE_H

#include "base/rng.h"
#include "coherence/cache.h"
#include "coherence/record.h"
#include "stage.h"
#include "tor_net.h"
#include "wire/coherence_wire.h"

enum {
	RIG_COH_SAYS = 128,  /* records on their way */
	RIG_COH_RECVS = 128, /* receives of a talk */
	RIG_COH_LEAVES = 2,
	RIG_COH_OWN_HOST = 250, /* the last byte of the switch's address */
};

/* What a machine is about to do. */
enum rig_coh_step {
	RIG_COH_GET,
	RIG_COH_MAP,
	RIG_COH_MAPPED,
	RIG_COH_INVAL,
	RIG_COH_PROTECT,
	RIG_COH_GIVE,
	RIG_COH_GIVEN,
	RIG_COH_UNMAP,
	RIG_COH_FIN,
	RIG_COH_EVICT,
	RIG_COH_CLEAN,
	RIG_COH_STEPS
};

struct rig_coh_ops {
	/* False: the machine is dead, and nothing more happens. NULL: it lives.
	 */
	bool (*step)(void *ctx, enum rig_coh_step step);
	/* The page has come, with this right. */
	void (*map)(void *ctx, uint32_t page, enum coh_right right,
		    const uint8_t *bytes);
	/* Threads may do no more than `right` with these pages. */
	void (*limit)(void *ctx, uint32_t page, uint32_t count,
		      enum coh_right right);
	/* The bytes of a page that is given back. */
	void (*give)(void *ctx, uint32_t page, uint8_t *bytes);
	/* The pages are lost for those who wait for them. */
	void (*fail)(void *ctx, uint32_t page, uint32_t count);
	/* What an honest rack does not do. */
	void (*wrong)(void *ctx, const char *what);
};

struct rig_coh_config {
	struct rig_host *host;
	const struct rig_coh_ops *ops;
	void *ctx;
	struct rng *rand; /* of packet numbers */
	uint8_t number, lanes;
	uint32_t page_count;
	enum ibv_mtu mtu;
	/* Of gets, if they have a queue of their own; else all is in one. */
	bool has_lane_cq;
};

struct rig_coh {
	struct rig_coh_config cfg;
	struct coh_cache cache;
	struct coh_cache_lane lanes[COH_LANES_MAX];
	struct coh_cache_job jobs[COH_CACHE_JOBS_MAX];
	struct coh_cache_leave leaves[RIG_COH_LEAVES];
	struct coh_cache_out out;
	struct ibv_cq *cq, *lane_cq; /* may be the same */
	struct ibv_qp *talk, *lane[COH_LANES_MAX];
	struct rig_region *buffer;
	uint32_t turn; /* of connections */
	bool is_connected;
	bool lane_lost[COH_LANES_MAX];
	int64_t give_page[COH_CACHE_GIVES_MAX]; /* -1: the slot is free */
};

int rig_coh_init(struct rig_coh *m,
		 const struct rig_coh_config *cfg) MUST_CHECK;
/* Also after a failure. */
void rig_coh_release(struct rig_coh *m);
/* New connections to a switch that has begun this term. */
int rig_coh_connect(struct rig_coh *m, struct rig_tor *tor, uint32_t term,
		    bool was_member) MUST_CHECK;
/* The switch is gone. */
void rig_coh_cut(struct rig_coh *m);
/* Takes completions of one of the queues; how many. */
int rig_coh_poll(struct rig_coh *m, struct ibv_cq *cq);

enum coh_touch rig_coh_touch(struct rig_coh *m, uint32_t page,
			     enum coh_right right);
/* False: not now. */
bool rig_coh_evict(struct rig_coh *m, uint32_t page);
bool rig_coh_leave(struct rig_coh *m, uint32_t page, uint32_t count);
/* Whether nothing of it is under way. */
bool rig_coh_is_idle(const struct rig_coh *m);

/* ---- coh_node.c: memory nodes -------------------------------------------- */

struct rig_coh_node {
	struct rig_host *host;
	struct rig_region *arena;
	struct ibv_qp *qp;
	bool is_dead;
};

/* A host with an arena. */
int rig_coh_node_init(struct rig_coh_node *n, struct rig_stage *stage,
		      uint64_t size_bytes) MUST_CHECK;
void rig_coh_node_release(struct rig_coh_node *n);
/* Tells the switch, which has begun a term, of node `number`. A connection of a
 * former switch ends first. `turn`: of connections to nodes. */
int rig_coh_node_connect(struct rig_coh_node *n, struct rig_tor *tor,
			 unsigned number, uint32_t turn, uint32_t psn,
			 enum ibv_mtu mtu) MUST_CHECK;

/* The number of a page on the wire. */
static inline uint64_t rig_coh_page(uint32_t page)
{
	return (COHERENCE_BASE >> COHERENCE_PAGE_SHIFT) + page;
}

#endif
