/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces: the memory of one process each. */
#ifndef AQ_RUN_SPACE_PRIV_H
#define AQ_RUN_SPACE_PRIV_H

#include <sys/types.h>

#include "batch_priv.h"
#include "event_priv.h"
#include "page_table.h"
#include "policy.h"
#include "share.h"
#include "trend.h"

/* One process's memory. */
struct space {
	struct space *next;
	int uffd;
	pid_t pid; /* 0: a child that did not say hello */
	uint64_t start;
	struct share *share;
	struct run_channel *channel; /* of it; NULL: nothing can leave */
	struct run_pages pages;
	struct events events;
	uint64_t resident_count; /* without held ones */
	uint64_t held_count;
	uint64_t kept_count;
	struct policy_space policy;
	uint64_t zero_next;
	unsigned zero_window;
	uint32_t posted, collected; /* batches */
	struct leaving leaving[RUN_BATCHES];
	struct trends trends;
	unsigned pid_place; /* in run_shared.pid; RUN_PIDS_MAX: none */
	int pidfd;	    /* -1: none, or it has ended */
	uint64_t stack;	    /* of its process's first thread */
	bool is_slow;	    /* its agent took too long for its last move */
	bool is_killed;	    /* by us, because its agent is gone */
	bool is_left;	    /* by its process: the agent is to end */
	bool is_dead;
	bool has_misrung; /* a false identity: it gets no channel */
	bool keeps_all;	  /* what is touched from now on is kept */
	bool is_rooted;	  /* its agent cannot move pages to other nodes */
};

static inline uint64_t run_space_addr(const struct space *s, uint64_t page)
{
	return s->start + (page << RUN_PAGE_SHIFT);
}

static inline bool run_space_is_leaving(const struct space *s)
{
	return s->posted != s->collected;
}

/* space.c */
int run_space_create(struct pager *p, int uffd, uint64_t start,
		     struct space **out) MUST_CHECK;
/* Gives everything back; the caller has taken it off the list. */
void run_space_destroy(struct pager *p, struct space *s);
/* The child's view of its parent's pages at the moment of fork. */
int run_space_fork(struct pager *p, struct space *parent, int uffd) MUST_CHECK;
/* The process says hello: from now on pages can leave. Takes a reference. */
void run_space_set_share(struct pager *p, struct space *s, struct share *share,
			 pid_t pid);
void run_space_set_resident(struct pager *p, struct space *s, uint64_t page);
/* The page is not here any more; the caller sets its state. */
void run_space_set_gone(struct pager *p, struct space *s, uint64_t page);
/* It has no memory anywhere: as if it had never been touched. */
void run_space_set_untouched(struct pager *p, struct space *s, uint64_t page);
/* The page is here and cannot leave; and may be tried again. */
void run_space_hold(struct pager *p, struct space *s, uint64_t page,
		    bool holds);
/* The program gives [page, page + pages) up; pages that are here may stay for a
 * moment longer. */
void run_space_discard(struct pager *p, struct space *s, uint64_t page,
		       uint64_t pages);
/* The kernel has no far memory there any more. */
void run_space_forget(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages);
/* Call it after pages became alien, or far again. */
void run_space_show_aliens(struct space *s);
/* Frees spaces whose memory is gone; `only_left`: looks only at spaces whose
 * processes have left them. */
void run_spaces_sweep(struct pager *p, bool only_left);

#endif
