/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far pages by slot: numbers that are counted (forked processes share them) and
 * backed by page stores ("stores"), of which more are opened as they fill.
 *
 * Slots and their counts are of the pager's state, under its lock. Two threads
 * start and end operations, under a lock of their own, so that a thread that
 * wants a page does not wait for all pages that are being stored.
 */
#ifndef AQ_RUN_FAR_H
#define AQ_RUN_FAR_H

#include <stdatomic.h>

#include "base/lock.h"
#include "page/page_store.h"
#include "run.h"
#include "run_channel.h"
#include "run_limits.h"

struct aq_rack;

/* The owner of some operations, in page_op.cookie. */
struct far_user {
	/* RUN-F1: one less for each operation that has ended. A thread that
	 * sees 0 sees the result of every operation and the bytes of every
	 * page. */
	_Atomic unsigned left;
};

enum {
	FAR_DROPS = 32, /* pages that are given back at a time */
};

/* Pages that are given back in the background (far_drop.c). */
struct far_drops {
	uint32_t *slot; /* a stack of those that nobody refers to */
	uint32_t count;
	/* Under way: */
	struct far_user user;
	uint32_t under_way;
	uint32_t leaving[FAR_DROPS];
	struct page_op op[FAR_DROPS];
};

struct far_store {
	struct page_store *handle;
	uint32_t first; /* slot */
	uint32_t pages;
};

struct far {
	struct lock lock; /* of the stores' operations and `lost` */
	struct aq_rack *rack;
	char name[24];
	enum page_mode mode;
	unsigned copies;
	bool is_unmapped;
	void *buffer; /* registered with every store */
	size_t buffer_bytes;
	struct far_store store[RUN_STORES_MAX];
	unsigned store_count;
	uint16_t *refs; /* by slot; slot 0 is not used */
	uint32_t *free; /* a stack */
	uint32_t free_count;
	uint32_t slots;	 /* that exist, slot 0 included */
	uint32_t used;	 /* slots */
	uint32_t *aside; /* slots whose stores were refused */
	uint32_t aside_count;
	struct far_drops drops;
	uint32_t patience_ms;
	int grow_err;  /* why there are no more; 0: not tried */
	char lost[64]; /* the node; "": none */
	char ever_lost[64];
	bool is_silent; /* a node is, and that was logged */
	/* wants_room: no room was found; may_grow: now there seems to be some.
	 * It does not matter when these are seen. */
	_Atomic bool wants_room, may_grow;
	/* An operation has failed: not every page is where it was stored. */
	_Atomic bool has_failed;
};

int run_far_open(struct far *f, const struct run_options *o, void *buffer,
		 size_t buffer_bytes) MUST_CHECK;
void run_far_close(struct far *f);

/* Bytes that programs of this run could still store now, or -errno. */
int64_t run_far_room(struct far *f);

/* far_grow.c. One more store, with f->lock. */
int run_far_grow(struct far *f) MUST_CHECK;
int run_far_tables(struct far *f, uint32_t slots) MUST_CHECK;
/* Pages of the next store when there are `have`: a part of those, which bounds
 * what is unused. */
uint64_t run_far_store_pages(uint64_t have);
/* How many of `want` pages fit on how many of the nodes; 0: too few for a
 * store. Sorts them. */
struct client_host;
uint64_t run_far_fit(struct client_host *host, unsigned count, unsigned copies,
		     uint64_t want, uint32_t *nodes);

/* A slot with one reference; 0: the rack has no room (grow_err). */
uint32_t run_far_slot_new(struct far *f);
void run_far_slot_get(struct far *f, uint32_t slot);
/* True: that was the last reference. */
bool run_far_slot_put(struct far *f, uint32_t slot);
/* The same for a slot that no node took; other slots are given out first. */
void run_far_slot_refuse(struct far *f, uint32_t slot);
/* Slots that were refused may be tried again, and the rack is asked for more if
 * there seems to be room. */
void run_far_retry(struct far *f);
/* Whether what was stored there can still be loaded, as far as is known. */
bool run_far_slot_is_there(struct far *f, uint32_t slot);
static inline bool run_far_slot_is_shared(const struct far *f, uint32_t slot)
{
	return f->refs[slot] > 1;
}

/* far_drop.c. The slot's page leaves its nodes some time later. */
void run_far_drop_later(struct far *f, uint32_t slot);
/* One that has not left yet; 0: there is none. */
uint32_t run_far_drop_take(struct far *f);
/* Goes on with it; without anything else to do, also with a few. Returns how
 * many pages the nodes were told of. */
unsigned run_far_drop_step(struct far *f, bool is_idle);
bool run_far_is_dropping(const struct far *f);
/* Waits for those under way. */
void run_far_drop_end(struct far *f);

/* The first page can be waited for alone. */
struct far_load {
	struct far_user first, others;
	struct page_op op[RUN_PREFETCH_MAX + 1];
};

/* Starts to load n pages to `bytes`, one after the other. */
void run_far_load(struct far *f, struct far_load *l, unsigned n,
		  const uint32_t slot[], uint8_t *bytes);
/* Starts a store; op->cookie is a far_user that counts it. Waits while the
 * queue is full. op must stay until it has ended. */
void run_far_store(struct far *f, uint32_t slot, struct page_op *op);
/* Starts it, with f->lock; false: the queue is full. */
bool run_far_try(struct far *f, uint32_t slot, struct page_op *op) MUST_CHECK;
/* Handles operations that have ended. */
void run_far_poll(struct far *f);
/* The same with f->lock held. */
void run_far_poll_locked(struct far *f);
/* Waits until all operations of the user have ended. */
void run_far_await(struct far *f, struct far_user *u);
/* The name of a node that is lost, or "": asks the heartbeat. With `ever`, also
 * of a node that was lost and may be back without its pages. */
void run_far_lost(struct far *f, bool ever, char *name, size_t bytes);

#endif
