/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of pages that have left their process and are being stored. */
#ifndef AQ_RUN_WRITEBACK_PRIV_H
#define AQ_RUN_WRITEBACK_PRIV_H

#include "far.h"
#include "page_table.h"
#include "share.h"

struct leaving;
struct pager;
struct space;

enum wb_state {
	WB_FREE,
	WB_FILLING, /* an agent fills it */
	WB_HELD,    /* some pages are not stored */
	WB_STORING,
	WB_CLEAN, /* all are stored: may be taken for others */
};

struct wb_page {
	struct space *space; /* NULL: its space has ended */
	uint64_t page;
	bool is_dirty;
	struct run_hash hash;
};

struct wb_buffer {
	struct far_user user;
	enum wb_state state;
	struct share *share; /* where its bytes are; NULL: nowhere */
	unsigned live;	     /* pages with a space */
	struct wb_page page[RUN_BATCH_PAGES];
	/* Stores under way: their slots, and whose they are. `sent` of them
	 * have been started. */
	unsigned op_count, sent;
	uint32_t slot[RUN_BATCH_PAGES];
	uint8_t place[RUN_BATCH_PAGES];
	uint64_t is_new;    /* bit by place: its slot was empty */
	bool is_returning;  /* HELD: no room for its dirty pages */
	uint64_t filled_ns; /* of a sample */
	struct page_op op[RUN_BATCH_PAGES];
};

struct writeback {
	struct wb_buffer *buffer;
	uint32_t count;				    /* taken in turn */
	uint32_t total;				    /* with those for samples */
	uint32_t head;				    /* the oldest, taken next */
	struct wb_buffer *storing[RUN_STORING_MAX]; /* all that are STORING */
	unsigned storing_count;
	unsigned returning; /* buffers with is_returning */
};

/* writeback.c */
int run_writeback_open(struct pager *p, uint32_t count,
		       uint32_t samples) MUST_CHECK;
void run_writeback_close(struct pager *p);
/* The next buffer, empty, in the space's share; -EAGAIN: it is still being
 * stored. */
int run_writeback_take(struct pager *p, const struct space *s) MUST_CHECK;
bool run_writeback_is_ready(const struct pager *p);
/* A buffer for a sample (sample.c), which is never stored to make room for
 * others; -ENOBUFS: all are in use. */
int run_writeback_take_sample(struct pager *p,
			      const struct space *s) MUST_CHECK;
bool run_writeback_is_sample(const struct pager *p, uint32_t buffer_page);
/* No agent will fill it. */
void run_writeback_give_up(struct pager *p, uint32_t buffer);
/* The space ends: its buffers' bytes go, but for those on their way. */
void run_writeback_leave(struct pager *p, const struct space *s);
uint8_t *run_writeback_bytes(const struct pager *p, uint32_t buffer_page);
/* The agent has filled it: sorts pages, but those that failed, into zero, clean
 * and dirty. */
void run_writeback_filled(struct pager *p, struct space *s,
			  const struct leaving *l,
			  const struct run_hash hash_of[], uint64_t zero,
			  uint64_t failed);
/* The page went back, or is not needed any more. */
void run_writeback_forget(struct pager *p, uint32_t buffer_page);
/* Its space has it at another address. */
void run_writeback_moved(struct pager *p, uint32_t buffer_page, uint64_t page);
/* Starts a few stores of buffers that will be needed soon, for which it drops
 * the lock, and handles stores that have ended; false: nothing to do. */
bool run_writeback_store(struct pager *p);
/* Whether the oldest buffers wait for far memory. */
bool run_writeback_is_storing(const struct pager *p);
/* Gives pages that found no place back to their program; true: some went back.
 * Only the thread that reads events may call it: a page that is mapped between
 * a fork and its event would be missing in the child. */
bool run_writeback_return(struct pager *p);
/* Whether only the buffer has the page's bytes. */
bool run_writeback_is_dirty(const struct pager *p, uint32_t buffer_page);
/* All of the space's pages in buffers are stored when it returns, but those
 * that found no place. */
void run_writeback_flush(struct pager *p, const struct space *s);

#endif
