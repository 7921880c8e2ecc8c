/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pager's threads: one thread, or two. The second, the reclaim thread,
 * helps only on a core that is really free: on a core that others use it waits
 * for them, and faults wait for it. Idle time alone does not tell (the far end
 * may be a process on that core that is idle until we work), so the reclaim
 * thread is tried. If fewer pages leave than before, faults wait too long, or
 * the core is busy, the first thread does all the work again, and the pause
 * before the next try grows.
 */
#ifndef AQ_RUN_PAGER_THREADS_H
#define AQ_RUN_PAGER_THREADS_H

#include "cores.h"

struct pager_threads {
	struct cores cores;
	bool has_reclaim;
	bool is_fixed;	      /* the user has decided */
	uint64_t evicted;     /* pages, ever, at the last look */
	uint64_t alone_pages; /* between two looks, before it was tried */
	uint64_t trial_pages; /* left since the trial began */
	unsigned trial_looks; /* of the trial, that are left */
	uint64_t waited_ns;   /* for room, since the last look */
	uint64_t retry_ns;    /* not before */
	uint64_t penalty_ns;
};

/* 1 or 2 threads for good; 0: one, until two are seen to help. */
void run_threads_init(struct pager_threads *c, unsigned threads);

/* A fault has waited for room; true: too long, so there is one thread again. */
bool run_threads_waited(struct pager_threads *c, uint64_t now_ns,
			uint64_t waited_ns);

/* Ten times a second; true: it has changed. `evicted`: pages, ever. `ours`: the
 * core of the first thread. */
bool run_threads_look(struct pager_threads *c, uint64_t now_ns,
		      uint64_t evicted, const cpu_set_t *set, int ours);
/* The part for tests. */
bool run_threads_judge(struct pager_threads *c, uint64_t now_ns,
		       uint64_t evicted, bool is_busy);

#endif
