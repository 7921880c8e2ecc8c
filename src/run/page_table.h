/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page table of a space: per page where it is, and two sets of pages
 * (touched, resident) that can be walked quickly although the range is large
 * and mostly empty. Memory is only used for what was touched.
 */
#ifndef AQ_RUN_PAGE_TABLE_H
#define AQ_RUN_PAGE_TABLE_H

#include "run_channel.h"

enum run_state {
	RUN_UNTOUCHED, /* zeros; no memory anywhere */
	RUN_RESIDENT,
	RUN_LEAVING, /* the agent copies and drops it */
	RUN_STAGED,  /* in a tray */
	RUN_FAR,
	RUN_LOST, /* its node is gone */
};

struct run_page {
	struct run_hash hash; /* of what is in `slot` */
	uint32_t slot;	      /* 0: none */
	uint32_t state : 3;
	uint32_t heat : 2;    /* rounds of the hand that it is spared */
	uint32_t returns : 2; /* in a row that it came back from a tray */
	uint32_t is_kept : 1; /* far memory did not take it */
	uint32_t tray_page : 24;
};
STATIC_ASSERT(sizeof(struct run_page) == 24, "one per page");

struct run_set {
	uint64_t *word;
	uint64_t *summary; /* a bit per word: may be other than 0 */
	uint64_t pages;
};

int run_set_init(struct run_set *s, uint64_t pages) MUST_CHECK;
void run_set_release(struct run_set *s);
/* The first member at or after `from`; `pages` if there is none. */
uint64_t run_set_next(const struct run_set *s, uint64_t from);

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

struct run_pages {
	struct run_page *page;
	struct run_set touched;
	struct run_set resident;
};

int run_pages_init(struct run_pages *p, uint64_t pages) MUST_CHECK;
void run_pages_release(struct run_pages *p);

#endif
