/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of room at a node, and those that are asked for ahead. */
#ifndef AQ_PAGE_PIECE_H
#define AQ_PAGE_PIECE_H

#include "page_call.h"

enum piece_state {
	PIECE_NONE,
	PIECE_ASKED,
	PIECE_HERE,
	PIECE_LEAVING, /* the node was told */
};

struct piece {
	uint8_t state;
	uint32_t call;	  /* the slot of the call under way */
	uint32_t used;	  /* pages */
	uint32_t waiting; /* slot of the first job that needs it, plus one */
	uint32_t run;	  /* pieces that its call under way is about */
	bool is_ahead;	  /* no job needs that call */
	uint32_t leaver;  /* tag of the job that gave it up, or NO_LEAVER */
	uint32_t after;	  /* piece to ask for when this has left, plus one */
	uint32_t rkey;
	uint64_t addr;
};

#define NO_LEAVER UINT32_MAX

struct wait {
	struct page_job job;
	uint32_t next; /* slot, plus one */
};

/* Pieces that are here before a page needs them. */
struct ahead {
	uint32_t run_max; /* 1: none */
	uint32_t run;	  /* what the next call asks for */
	uint32_t calls;	  /* under way that no job needs */
	uint32_t unused;  /* pieces that are here without a page */
	uint64_t hint;	  /* one of them is here, or further down */
	uint64_t mark;	  /* when this one is used the next run is asked for */
	uint64_t next;	  /* where that begins */
};

struct dynamic {
	struct page_caller caller;
	struct ahead ahead;
	uint64_t per_piece; /* pages */
	uint64_t piece_count;
	struct piece *piece;
	uint8_t *used;	     /* by index: whether the page counts */
	struct wait *wait;   /* by slot */
	uint32_t *free_call; /* slots of the caller */
	uint32_t free_count;
};

/* page_ahead.c. There is a call's slot for each job, and some more for room
 * ahead. */
int page_piece_call(struct dynamic *d, uint64_t number,
		    enum page_wire_kind kind, uint32_t run) MUST_CHECK;
/* Asks for a piece that a job waits for, and perhaps for those behind it. */
int page_piece_ask(struct dynamic *d, uint64_t number) MUST_CHECK;
/* Half of a run is used: the next one shall be here when this one ends. */
int page_ahead_ask(struct dynamic *d) MUST_CHECK;
/* A piece that is here and that no page has; piece_count: there is none. */
uint64_t page_ahead_find(struct dynamic *d);
/* Gives that one back. `after`, unless it is 0, is the piece plus one to ask
 * for then. */
int page_ahead_give(struct dynamic *d, uint64_t number,
		    uint32_t after) MUST_CHECK;
/* A store that gets smaller needs no room ahead. */
int page_ahead_shrink(struct dynamic *d) MUST_CHECK;

/* The answer is written behind the request, in the same slot. */
static inline struct page_piece *page_piece_answer(struct dynamic *d,
						   uint32_t call)
{
	return (struct page_piece *)((uint8_t *)page_caller_text(&d->caller,
								 call) +
				     sizeof(struct page_request));
}

#endif
