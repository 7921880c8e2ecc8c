/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy of eviction: which page leaves, when, and how many do. It is a
 * clock: a hand per space goes through resident pages by address and spares
 * pages that came back, the longer the more often they did.
 *
 * Only policy.c changes the policy's state, and only it knows what the bits of
 * a page mean:
 *
 *	page	heat		rounds of the hand that the page is spared
 *	page	returns		how often in a row it came back from a buffer
 *	space	hand		where the next pages to leave are looked for
 *	space	held_next	where the next probe of held pages starts
 *	pager	limit, slack	pages that may be resident; more, for a moment
 *	pager	next		the space that gives the next batch
 *	pager	probe_ns	when pages that could not leave are tried again
 *
 *	event				heat		returns
 *	the hand passes it		1 less
 *	it leaves; a fork copies it	0
 *	it could not leave		1 (*)
 *	it came back from its buffer	returns (**)	1 more
 *	its buffer was needed: far			0
 *
 * (*) 0 if it only has to be guarded: then it leaves the next time. (**) The
 * hand jumps, if it is followed.
 */
#ifndef AQ_RUN_POLICY_H
#define AQ_RUN_POLICY_H

#include "base/rng.h"
#include "page_table.h"

struct pager;
struct space;

struct policy {
	uint64_t limit_pages; /* that may be resident, without held ones */
	uint64_t slack_pages;
	struct space *next; /* NULL: the first */
	uint64_t probe_ns;
};

struct policy_space {
	uint64_t hand;
	uint64_t tier_hand[2]; /* of POLICY_DEMOTE, POLICY_SAMPLE */
	uint64_t held_next;
	struct rng rng;
};

/* Which pages a hand looks for. Pages that leave for other reasons have hands
 * of their own. */
enum policy_want {
	POLICY_ANY,
	POLICY_SLOW,   /* to leave: those of the slow node */
	POLICY_DEMOTE, /* those of the top node */
	POLICY_SAMPLE, /* those of the slow node, however warm */
};

/* What may be picked, and what was seen on the way. */
struct policy_pick {
	enum policy_want want;
	uint64_t
		budget; /* pages that may leave although they need a new slot */
	uint64_t spared; /* pages that may leave the next time */
};

/* ---- how much ------------------------------------------------------------ */

/* Divides the pages of local memory; returns how many writeback buffers there
 * are to be. */
uint32_t run_policy_init(struct policy *y, uint64_t local_pages);
/* The pages that count against the limit: without those that cannot leave,
 * because nothing should wait for them. */
uint64_t run_policy_load(const struct pager *p);
/* Whether the reclaim thread is needed; and whether, with this many pages on
 * their way out, more should follow. */
bool run_policy_is_over(const struct pager *p, uint64_t leaving);
/* Whether faults have to wait; and, once they do, still have to. */
bool run_policy_must_wait(const struct pager *p, bool does_wait);
/* How many pages may come at once; at least the wanted one. */
unsigned run_policy_room(const struct pager *p, unsigned want);

/* ---- which space, and when ----------------------------------------------- */

/* The spaces take turns, a batch each; NULL: there is none. */
struct space *run_policy_next_space(struct pager *p);
/* Whether pages that were held are tried again: only where there are too many
 * here, and now and then. */
bool run_policy_probe_is_due(struct pager *p);
/* Held pages could leave: programs that unpin one page mostly unpin many. */
void run_policy_probe_helped(struct pager *p);
/* Far memory was full, and more is local than should be. */
bool run_policy_retry_is_due(const struct pager *p);
void run_policy_space_gone(struct pager *p, const struct space *s);

/* ---- which pages --------------------------------------------------------- */

void run_policy_space_init(struct policy_space *y);
/* Picks pages from the hand on, at most twice around; or pages that could not
 * leave the last time. Returns how many, in ascending order. */
uint32_t run_policy_pick(struct policy_space *y, const struct run_pages *pages,
			 uint64_t resident_count, struct policy_pick *c,
			 uint64_t page[RUN_BATCH_PAGES]);
uint32_t run_policy_pick_held(struct policy_space *y,
			      const struct run_pages *pages,
			      struct policy_pick *c,
			      uint64_t page[RUN_BATCH_PAGES]);

/* The events of the table above. */
void run_policy_left(struct run_page *e);
void run_policy_stayed(struct run_page *e, bool to_be_guarded);
void run_policy_came_back(struct run_page *e);
void run_policy_is_far(struct run_page *e);
/*
 * A page came back from a buffer. If the hand is at most `reach` pages ahead of
 * it, the program goes through memory right behind the hand, which takes the
 * pages it will touch next; so the hand jumps ahead, at most `most` pages.
 */
void run_policy_followed(struct policy_space *y, uint64_t page, uint64_t reach,
			 uint64_t most);

#endif
