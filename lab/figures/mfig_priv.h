/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of mfig.h tell each other. */
#ifndef AQ_FIGURES_MFIG_PRIV_H
#define AQ_FIGURES_MFIG_PRIV_H

#include "mfig_costs.h"
#include "mfig_work.h"
#include "rig/coh_machine.h"
#include "sim/fiber.h"

enum {
	MFIG_STORES_MAX = 16, /* of PSO, of a thread */
	MFIG_NODES = 4,
	MFIG_PIECE_PAGES = 256, /* that lie on one node */
};

struct mfig;
struct mfig_machine;
struct mfig_gam;

/* A step that waits for its page. */
struct mfig_fault {
	struct mfig_fault *next;
	uint32_t page;
	uint8_t right; /* enum coh_right */
	bool is_open;
};

struct mfig_thread {
	struct mfig *f;
	struct mfig_machine *m;
	struct mfig_walker walker;
	uint64_t left;	  /* units */
	uint64_t owed_ps; /* time that it has worked and not yet slept */
	struct mfig_fault fault, store[MFIG_STORES_MAX];
	struct sim_wait wait;
	struct rig_pair pair[MFIG_NODES]; /* of MFIG_SWAP */
	struct ibv_cq *cq;
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* Pages that a machine has, in the order in which they came; those that were
 * taken away since stay in it, and keep their place if they come again. */
struct mfig_fifo {
	uint32_t *pages;
	bool *has;
	uint32_t size, first, count;
};

struct mfig_machine {
	struct mfig *f;
	uint32_t number;
	struct rig_host *host;
	struct rng rand;
	struct rig_coh coh;
	uint8_t *mmu;	/* what threads may do with each page */
	uint64_t *word; /* the first one of each page */
	struct mfig_fault *waiting;
	struct mfig_fifo fifo;
	uint32_t cached;     /* pages that are here */
	uint64_t busy_ps;    /* of MFIG_GAM: its lock is free from then on */
	uint64_t handler_ps; /* the same of its handler */
};

struct mfig {
	const struct mfig_config *cfg;
	struct mfig_result *res;
	struct mfig_program program;
	struct rig_stage *stage;
	struct sim *sim;
	struct rig_tor *tor;
	struct rig_coh_node node[MFIG_NODES];
	struct mfig_machine machine[MFIG_MACHINES_MAX];
	struct mfig_thread thread[MFIG_MACHINES_MAX * MFIG_THREADS_MAX];
	uint64_t *last; /* the last store to each page */
	struct mfig_gam *gam;
	uint32_t running; /* threads */
	uint64_t steps, misses;
	bool is_measuring, is_over, is_broken;
};

static inline uint64_t mfig_now_ps(const struct mfig *f)
{
	return sim_now_ps(f->sim);
}

static inline struct rig_coh_node *mfig_node_of(struct mfig *f, uint32_t page)
{
	return &f->node[page / MFIG_PIECE_PAGES % MFIG_NODES];
}

/* Where the page is in its node's arena. */
static inline uint64_t mfig_node_at(uint32_t page)
{
	uint32_t piece = page / MFIG_PIECE_PAGES / MFIG_NODES;

	return ((uint64_t)piece * MFIG_PIECE_PAGES + page % MFIG_PIECE_PAGES) *
	       COHERENCE_PAGE_BYTES;
}

/* Sleeps for what the thread owes. */
void mfig_thread_pay(struct mfig_thread *t);
/* The page has the right: the access is made, and checked. */
void mfig_execute(struct mfig_machine *m, uint32_t page, bool writes);

int mfig_fifo_init(struct mfig_fifo *q, uint32_t pages) MUST_CHECK;
void mfig_fifo_release(struct mfig_fifo *q);
void mfig_fifo_push(struct mfig_fifo *q, uint32_t page);
/* False: it is empty. */
bool mfig_fifo_pop(struct mfig_fifo *q, uint32_t *page);

/* ---- mfig_machine.c: MIND, PSO, and the directory at a node ----------------
 */

int mfig_machine_start(struct mfig_machine *m) MUST_CHECK;
void mfig_machine_stop(struct mfig_machine *m);
/* One step of a thread, with its fault if there is one. */
void mfig_machine_step(struct mfig_thread *t, const struct mfig_step *s);

/* ---- mfig_gam.c ------------------------------------------------------------
 */

int mfig_gam_start(struct mfig *f) MUST_CHECK;
void mfig_gam_stop(struct mfig *f);
void mfig_gam_step(struct mfig_thread *t, const struct mfig_step *s);

/* ---- mfig_swap.c -----------------------------------------------------------
 */

int mfig_swap_start(struct mfig *f) MUST_CHECK;
void mfig_swap_stop(struct mfig *f);
void mfig_swap_step(struct mfig_thread *t, const struct mfig_step *s);

/* ---- mfig_transition.c -----------------------------------------------------
 */

/* A fiber: sets *f->res's latency_us. */
void mfig_transition_main(void *f);

#endif
