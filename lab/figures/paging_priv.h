/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `paging` share. */
#ifndef AQ_RIG_PAGING_PRIV_H
#define AQ_RIG_PAGING_PRIV_H

#include "base/hist.h"
#include "page/page_wiring.h"
#include "pageframe/pframe.h"
#include "pageframe/pframe_chain.h"
#include "pageframe/pframe_server.h"
#include "paging.h"
#include "paging_costs.h"
#include "rig/stage.h"
#include "sim/fiber.h"
#include "sim/sim.h"

struct paging;
struct paging_worker;

/* A core of the memory node that answers requests. */
struct paging_core {
	struct paging *p;
	struct pframe_server *server;
	uint32_t guests;
	uint64_t busy_ps;
	uint64_t debt_ps; /* of keys, to be paid after the answers */
};

/* One worker's connection to the node: the wiring of its store. */
struct paging_backend {
	struct paging_worker *w;
	struct client_link link[GRANT_LINKS_MAX];
	struct rig_pair pair[GRANT_LINKS_MAX];
	uint32_t depth;
	struct ibv_cq *cq[2];	   /* of the first link, and of all others */
	struct rig_region *region; /* static */
	struct ibv_pd *chain_pd;
	struct pframe_space *space;
	struct pframe_guest *guest;
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
};

struct paging_worker {
	struct paging *p;
	struct rig_host *host;
	uint32_t index;
	uint32_t depth;
	struct page_store *store;
	struct paging_backend backend;
	uint8_t *buf; /* depth pages, registered */
	struct rng rand;
	struct paging_memory *memory; /* programs */
	uint64_t begun_ps, ended_ps;
	bool floods;
	struct ibv_mr *flood_mr;
	uint64_t renew_ps; /* not before */
};

struct paging {
	struct paging_config cfg;
	struct paging_result *res;
	struct rig_stage *stage;
	struct sim *sim;
	struct rig_host *node;
	struct pframe_pool *pool; /* modes with page frames */
	uint64_t pages;		  /* of each store */
	uint64_t swap_pages;	  /* that static gives each worker */
	struct paging_core core[PAGING_CORES_MAX];
	uint32_t worker_count;
	struct paging_worker *worker;
	struct rig_host *client[PAGING_CLIENTS_MAX + PAGING_FLOODERS_MAX];
	uint32_t preparing; /* workers */
	uint32_t running;
	bool is_measuring;
	bool is_stopping;
	int err;
	struct hist latency_ns;
	uint64_t latency_sum_ns;
	uint64_t used_pages, allocated_pages; /* summed over samples */
};

/* ---- paging_rig.c: the way to the node ----------------------------------- */

int paging_store_open(struct paging_worker *w) MUST_CHECK;
void paging_store_close(struct paging_worker *w);
/* A chain that has ended is made anew, with its link. */
int paging_backend_renew(struct paging_backend *l, unsigned kind) MUST_CHECK;

/* ---- paging_core.c: the node's processor --------------------------------- */

int paging_cores_open(struct paging *p) MUST_CHECK;
/* Call it after the workers' stores were opened. */
int paging_cores_start(struct paging *p) MUST_CHECK;
void paging_cores_close(struct paging *p);
/* The core that serves the worker. */
struct paging_core *paging_core_of(struct paging_worker *w);
/* Its completion queue is that of a guest's queue pair. */
void paging_core_take(struct paging_core *core, struct ibv_qp *qp);

/* ---- paging_micro.c ------------------------------------------------------ */

uint64_t paging_micro_pages(const struct paging_config *cfg);
void paging_micro_main(void *arg);

/* ---- paging_flood.c ------------------------------------------------------ */

void paging_flood_main(void *arg);
/* Counts what is wrong as failed. Call it when no chain runs any more. */
void paging_flood_check(struct paging *p);

/* ---- paging_memory.c, paging_program.c: programs ------------------------- */

struct paging_memory;

/* A worker's memory of `pages`, `local` of which may be here. NULL store: far
 * memory takes no time, to find out how often a program goes there. */
int paging_memory_open(struct paging_worker *w, uint32_t pages, uint32_t local,
		       struct paging_memory **out) MUST_CHECK;
void paging_memory_close(struct paging_memory *m);
void paging_memory_dry(struct paging_memory *m, bool is_dry);
void paging_memory_touch(struct paging_memory *m, uint32_t page, bool writes);
/* Computing time of each touch. */
void paging_memory_set_touch_ps(struct paging_memory *m, uint64_t touch_ps);
/* Waits until all computing and storing so far is over. */
void paging_memory_settle(struct paging_memory *m);
/* Counts from 0 again. */
void paging_memory_restart(struct paging_memory *m);
uint64_t paging_memory_faults(const struct paging_memory *m);
uint64_t paging_memory_touches(const struct paging_memory *m);

int paging_program_open(struct paging_worker *w) MUST_CHECK;
void paging_program_main(void *arg);

#endif
