/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiers: pages that are here are on the top node or on the slow one, mapped on
 * both; others are far. The pager maps all pages, and userfaultfd allocates by
 * the policy of the thread that copies, so it chooses the node (tier/place.h).
 * Pages that come for the first time are copied zeros: a mapped zero page would
 * be replaced by the program's own write, on a node of the kernel's choice.
 *
 *	comes, first or from far	where it belongs		tiers.c
 *	comes back from a buffer	to the node that it left
 *	slow -> a sample buffer		an agent takes it out		sample.c
 *	  touched soon enough		top: promoted
 *	  touched late, or not at all	slow again
 *	top -> a sample buffer		what the hand would demote	sample.c
 *	  touched			top, and spared by the hand
 *	  not touched			slow: demoted
 *	top -> slow			an agent moves it, mapped, if	evict.c
 *					samples do not make room soon
 *					enough
 *	slow -> far			as pages leave without tiers,	evict.c
 *					if both have more than theirs
 *
 * Where a page is, is_slow says. What a fork shares and a write then copies,
 * the kernel puts near the processor that writes; so the counts of processes
 * that fork are not exact.
 */
#ifndef AQ_RUN_TIERS_PRIV_H
#define AQ_RUN_TIERS_PRIV_H

#include "bandwidth.h"
#include "page_table.h"
#include "tier/guard.h"
#include "tier/place.h"
#include "tier/promote.h"

struct leaving;
struct pager;
struct run_options;
struct run_outcome;
struct space;

/* All of it under the pager's lock; only the first thread copies pages. */
struct tiers {
	bool is_on;    /* there are nodes to choose from */
	bool has_slow; /* one of them is slow */
	bool promotes;
	struct tier_ratio ratio;
	uint32_t node[TIER_FAR];	 /* by enum tier */
	struct tier_fill fill[TIER_FAR]; /* pages that are here, not held */
	enum tier aim;	     /* where what is copied goes; TIER_FAR: unknown */
	uint8_t *zeros;	     /* RUN_ZERO_WINDOW_MAX pages */
	uint32_t share_node; /* of the buffers */
	struct tier_promote promote;
	enum tier_verdict verdict; /* about the page that comes; VERDICTS: none
				    */
	struct tier_guard guard;
	struct bandwidth bandwidth;
	uint64_t tick_ns;   /* the next look at samples */
	uint64_t demote_ns; /* not before: nothing could be demoted */
	uint64_t demoting;  /* pages that agents move now */
	struct space *next; /* that gives the next sample; NULL: the first */
	bool tests_top;	    /* the next sample is of top pages */
};

/* ---- tiers.c ------------------------------------------------------------- */

/* Whether this machine has what the options ask for; -EINVAL with `text`. */
int run_tiers_check(const struct run_options *options, char *text,
		    size_t text_bytes) MUST_CHECK;
/* Divides the pages, of which so many are buffers already; returns how many
 * sample buffers there are to be, or -errno. */
int run_tiers_open(struct pager *p, uint32_t buffers) MUST_CHECK;
void run_tiers_close(struct pager *p);

/* Of up to n pages that come, how many from the first on go to the same node:
 * their is_slow is set, and what is copied goes there. They are not here. */
unsigned run_tiers_aim(struct pager *p, struct space *s, uint64_t page,
		       unsigned n);
/* What is copied goes to that tier from now on. */
void run_tiers_aim_at(struct pager *p, enum tier t);
/* As run_uffd_zero, with memory of its own for every page. */
int run_tiers_zero(struct pager *p, struct space *s, uint64_t page,
		   unsigned n) MUST_CHECK;

/* The page is counted, or no longer, where is_slow says. */
static inline void run_tiers_count(struct tiers *t, const struct run_page *e,
				   int64_t n)
{
	t->fill[e->is_slow ? TIER_SLOW : TIER_TOP].pages += (uint64_t)n;
}

/* Whether pages of the top node should leave it for the slow one now. */
bool run_tiers_is_over(const struct pager *p);
/* What became of a batch of pages that an agent should move. */
void run_tiers_demoted(struct pager *p, struct space *s,
		       const struct leaving *l, const struct run_outcome *o);
void run_tiers_show(struct pager *p);

/* ---- sample.c ------------------------------------------------------------ */

/* A page comes back from a buffer: aims at its node, which a page of a sample
 * may have changed by being wanted so soon. Returns whether it is one. */
bool run_sample_aim(struct pager *p, struct run_page *e, bool is_wanted);
/* It is there, and what was decided about it counts. */
void run_sample_came(struct pager *p);
/* Now and then: takes samples, and gives those back that nobody wanted. Only
 * for the thread that reads events. */
void run_sample_tick(struct pager *p);
void run_sample_space_gone(struct pager *p, const struct space *s);
/* evict.c: a batch of slow pages, or of top pages that would be demoted next,
 * goes to a sample buffer. 0 or -errno. */
int run_evict_sample(struct pager *p, struct space *s, bool of_top) MUST_CHECK;

#endif
