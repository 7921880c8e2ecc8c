/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pager's objects. Two threads work on them, under one lock: the first
 * serves faults on the core where they happen, the reclaim thread takes pages
 * out on another, if one is free; else the first does that too. What is shared
 * with a process is its channel and the bytes of its own buffers (share.h).
 * Only the first makes and destroys spaces, so it may drop the lock and still
 * have them.
 *
 * page_table.h has a page's way out and back. A page that cannot leave, because
 * a device may write to it or the program locked it, is held: it stays
 * RESIDENT, is not counted against the limit, and is tried again now and then.
 *
 * Pages that the kernel does not move (it moves none that are read-only, and
 * none at all before Linux 6.8) are write-protected while they leave, copied
 * and dropped. The kernel's asynchronous protection with a scan for written
 * pages is not used, because a write between scan and drop would be lost. A
 * thread that writes to a protected page waits until the page is gone, and then
 * gets it back. Whether a page is dirty is told by its hash, so loading maps it
 * writable and no first write costs a fault.
 */
#ifndef AQ_RUN_PAGER_PRIV_H
#define AQ_RUN_PAGER_PRIV_H

#include <pthread.h>
#include <sched.h>

#include "attach_priv.h"
#include "base/lock.h"
#include "far.h"
#include "fault_priv.h"
#include "overflow.h"
#include "pager_threads.h"
#include "place.h"
#include "policy.h"
#include "reclaim_priv.h"
#include "run.h"
#include "run_limits.h"
#include "space_priv.h"
#include "tiers_priv.h"
#include "writeback_priv.h"

/* The thread that makes lost copies anew. It has far.lock only. */
struct mender {
	pthread_t thread;
	bool is_started;
	_Atomic uint32_t ends; /* a futex */
};

enum {
	RUN_SCRATCH_BYTES = (RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES,
};

struct pager {
	struct lock lock;
	struct reclaim_thread reclaim;
	struct mender mender;
	struct run_options options;
	struct run_shared *shared;
	struct run_stats *stats;
	struct far far;
	struct writeback writeback;
	uint8_t *scratch; /* what a fault loads */
	struct space *spaces;
	struct fault waiting[RUN_WAITING_MAX]; /* not served yet */
	unsigned waiting_count;
	struct attachment attachment[RUN_PENDING_HELLOS];
	bool is_attach_full; /* no room until an attachment has ended */
	const struct run_start *start;
	int epoll;
	int listen;
	int broker; /* our end of its socket */
	struct policy policy;
	struct tiers tiers;
	/* Pages that may be kept: half of those that may be here; the other
	 * half is for all other pages. */
	uint64_t keep_pages;
	uint64_t resident; /* pages, all spaces */
	uint64_t unplaced; /* resident pages without a slot */
	uint64_t held;	   /* resident pages that could not leave */
	uint64_t kept;	   /* pages that may not leave, resident or not */
	unsigned events;   /* not handled yet, all spaces */
	uint64_t touched;  /* pages, all spaces, wherever they are */
	uint64_t progress_ns;
	uint64_t sweep_ns;
	uint32_t follow_count;
	int cpu;	/* we are bound to; -1: none */
	cpu_set_t cpus; /* that we may use */
	struct pager_threads threads;
	uint64_t left_ns; /* when a process last left its space */
	unsigned sweeps;
	struct overflow overflow;
	bool has_complained; /* about lost pages */
	bool has_told_locked;
	bool has_failed_some; /* for want of room */
	bool has_said_full;
	uint64_t said_ns; /* when room was last logged */
	pid_t self;
	uint64_t near_ns; /* the next look at what is not far */
	bool is_stuck;	  /* waited for room in vain; no page left since */
};

static inline void count(_Atomic uint64_t *c, uint64_t n)
{
	/* One writer: the pager. */
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void show(_Atomic uint64_t *c, uint64_t value)
{
	atomic_store_explicit(c, value, memory_order_relaxed);
}

static inline void show_peak(_Atomic uint64_t *c, uint64_t value)
{
	if (atomic_load_explicit(c, memory_order_relaxed) < value)
		show(c, value);
}

/* What the supervisor gives the pager. */
struct run_start {
	const struct run_options *options;
	struct run_shared *shared;
	struct run_place place;
	uint8_t token[RUN_TOKEN_BYTES];
	pid_t supervisor;
	int uffd_dev;  /* -1: none */
	bool can_move; /* the kernel moves pages, and may */
};

/* mend.c */
int run_mender_start(struct pager *p) MUST_CHECK;
void run_mender_stop(struct pager *p);
/* pager.c */
int run_pager_run(const struct run_start *start) MUST_CHECK;
int run_pager_watch(struct pager *p, int fd, void *who) MUST_CHECK;
void run_pager_complain(struct pager *p, const struct space *s);

#endif
