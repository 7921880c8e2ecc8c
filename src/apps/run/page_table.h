/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page table of a space: per page where it is, and sets of pages (touched,
 * resident, ...) that can be walked quickly although the range is large and
 * mostly empty. Memory is only used for what was touched.
 */
#ifndef AQ_RUN_PAGE_TABLE_H
#define AQ_RUN_PAGE_TABLE_H

#include "run_channel.h"

/*
 * Where a page is, and which file changes that, under the pager's lock:
 *
 *	UNTOUCHED -> RESIDENT	fault.c: it was touched
 *	RESIDENT -> LEAVING	evict.c: a batch with it is posted
 *	LEAVING -> STAGED	writeback.c: the agent has put it into a buffer
 *	LEAVING -> RESIDENT	evict.c: it could not leave
 *	STAGED -> RESIDENT	fault.c: it was touched; room.c: no room for it
 *	STAGED -> FAR		writeback.c: it is stored, its buffer was needed
 *	FAR -> RESIDENT		fault.c: it was touched, or foreseen to be
 *	FAR -> LOST		fault.c: no copy of it is left
 *	any -> UNTOUCHED	space.c: it was zeros, was given up, its
 *				space ends; it moved (move.c)
 *
 * A child's page begins in the state of its parent's (space.c, fork): STAGED
 * then is FAR, or RESIDENT if it was not stored; LEAVING, and what could not be
 * copied, is LOST.
 */
enum run_state {
	RUN_UNTOUCHED, /* zeros; no memory anywhere */
	RUN_RESIDENT,
	RUN_LEAVING, /* the agent moves or copies it out */
	RUN_STAGED,  /* in a writeback buffer */
	RUN_FAR,
	RUN_LOST, /* its node is gone */
	RUN_STATES,
};

enum {
	RUN_BUFFER_PAGE_BITS = 18,
};

struct run_page {
	struct run_hash hash; /* of what is in `slot` */
	uint32_t slot;	      /* 0: none */
	uint32_t state : 3;
	uint32_t policy : 4;  /* policy.c's */
	uint32_t by_copy : 1; /* the kernel did not move it: guard it */
	/* Reported as removed while a batch covers it; one report is the
	 * agent's own drop. */
	uint32_t removes : 2;
	/* The agent found it missing when the program had moved memory. */
	uint32_t is_missed : 1;
	uint32_t is_returned : 1; /* far memory did not take it */
	/* With tiers, of a page that is here: on the slow node; an agent moves
	 * it there. */
	uint32_t is_slow : 1;
	uint32_t is_demoted : 1;
	uint32_t buffer_page : RUN_BUFFER_PAGE_BITS;
};
STATIC_ASSERT(sizeof(struct run_page) == 24, "one per page");

/* Asserts that the change is one of those above. */
void run_page_set_state(struct run_page *e, enum run_state state);

/* Whether it can leave only if far memory has room for one more. */
static inline bool run_page_needs_slot(const struct run_page *e)
{
	return !e->slot || e->is_returned;
}

struct run_set {
	uint64_t *word;
	uint64_t *summary; /* a bit per word: may be other than 0 */
	uint64_t pages;
};

int run_set_init(struct run_set *s, uint64_t pages) MUST_CHECK;
void run_set_release(struct run_set *s);
/* The first member at or after `from`; `pages` if there is none. */
uint64_t run_set_next(const struct run_set *s, uint64_t from);
/* The same below `end`, and `end` if there is none: looks no further. */
uint64_t run_set_next_in(const struct run_set *s, uint64_t from, uint64_t end);

/* All members of [from, end), in ascending order. */
#define run_set_for_each(at, set, from, end)                            \
	for (uint64_t at = run_set_next_in(set, from, end); at < (end); \
	     at = run_set_next_in(set, at + 1, end))

static inline void run_set_add(struct run_set *s, uint64_t page)
{
	s->word[page / 64] |= 1ull << (page % 64);
	s->summary[page / 4096] |= 1ull << (page / 64 % 64);
}

static inline void run_set_del(struct run_set *s, uint64_t page)
{
	uint64_t *w = &s->word[page / 64];

	*w &= ~(1ull << (page % 64));
	if (!*w)
		s->summary[page / 4096] &= ~(1ull << (page / 64 % 64));
}

static inline bool run_set_has(const struct run_set *s, uint64_t page)
{
	return s->word[page / 64] >> (page % 64) & 1;
}

void run_set_add_range(struct run_set *s, uint64_t page, uint64_t count);
void run_set_del_range(struct run_set *s, uint64_t page, uint64_t count);
/* Copies the members of [from, from + count) to `to`, which does not
 * overlap. */
void run_set_copy_range(struct run_set *s, uint64_t to, uint64_t from,
			uint64_t count);

/* Properties of pages, whether touched or not. */
enum run_mark {
	RUN_MARK_TOUCHED,
	RUN_MARK_RESIDENT, /* resident, and may leave */
	RUN_MARK_HELD,	   /* is here and could not leave: tried now and then */
	/* The kernel has no far memory there: unmapped, or something else. */
	RUN_MARK_ALIEN,
	/* Given up by the program while it was here: gone as soon as the
	 * program's call goes on, or not at all (MADV_FREE). */
	RUN_MARK_VAGUE,
	RUN_MARK_KEPT,	   /* must not leave: locked, or used by the kernel */
	RUN_MARK_WIPED,	   /* zeros in a child made by fork */
	RUN_MARK_WITHHELD, /* not there in a child made by fork */
	RUN_MARKS,
};

struct run_pages {
	struct run_page *page;
	union {
		struct run_set set[RUN_MARKS]; /* by enum run_mark */
		struct {
			struct run_set touched, resident, held, alien, vague,
				kept, wiped, withheld;
		};
	};
};
STATIC_ASSERT(sizeof(((struct run_pages *)0)->set) ==
		      offsetof(struct run_pages, withheld) +
			      sizeof(struct run_set) -
			      offsetof(struct run_pages, touched),
	      "a name per set");

int run_pages_init(struct run_pages *p, uint64_t pages) MUST_CHECK;
void run_pages_release(struct run_pages *p);

#endif
