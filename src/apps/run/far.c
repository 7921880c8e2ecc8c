/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, and the ends of their operations. */
#include "far.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "base/log.h"
#include "base/relax.h"

enum {
	SPINS = 32,   /* some 5 us: a node that is not busy answers sooner */
	YIELDS = 200, /* some 50 us */
	NAP_NS = 20000,
	NAPS_PER_LOOK = 64, /* a few milliseconds */
	SILENT_MS = 3000,   /* then it is worth a line */
};

int run_far_open(struct far *f, const struct run_options *o, void *buffer,
		 size_t buffer_bytes)
{
	int err;

	*f = (struct far){.mode = PAGE_AUTO,
			  .copies = o->copies,
			  .is_unmapped = o->is_unmapped,
			  .patience_ms = o->patience_ms,
			  .buffer = buffer,
			  .buffer_bytes = buffer_bytes};
	(void)snprintf(f->name, sizeof(f->name), "run-%d", (int)getpid());
	err = o->mode ? page_mode_parse(o->mode, &f->mode) : 0;
	if (!err)
		err = run_far_tables(f, 1);
	if (err)
		return err;
	f->slots = 1; /* 0 means none */
	err = aq_rack_open(o->rack, &f->rack);
	if (!err)
		err = run_far_grow(f);
	/* Nothing but room is missing: it may come. */
	if (err == -ENOSPC || err == -EDQUOT) {
		f->grow_err = err;
		err = o->overflow_bytes ? 0 : err;
	}
	if (err)
		run_far_close(f);
	return err;
}

void run_far_close(struct far *f)
{
	/* All count with the first. */
	for (unsigned i = f->store_count; i-- > 0;)
		page_store_close(f->store[i].handle);
	aq_rack_close(f->rack);
	free(f->refs);
	free(f->free);
	free(f->aside);
	free(f->drops.slot);
	*f = (struct far){0};
}

static struct far_store *store_of(struct far *f, uint32_t slot)
{
	for (unsigned i = f->store_count; i-- > 0;)
		if (slot >= f->store[i].first)
			return &f->store[i];
	return &f->store[0];
}

/* ---- slots --------------------------------------------------------------- */

uint32_t run_far_slot_new(struct far *f)
{
	uint32_t slot = run_far_drop_take(f);

	if (!slot && f->free_count == 0 && !f->grow_err) {
		lock_take(&f->lock);
		f->grow_err = run_far_grow(f);
		lock_drop(&f->lock);
	}
	if (!slot && f->free_count == 0)
		return 0;
	if (!slot)
		slot = f->free[--f->free_count];
	f->refs[slot] = 1;
	f->used++;
	return slot;
}

void run_far_slot_get(struct far *f, uint32_t slot)
{
	ASSERT(f->refs[slot] > 0 && f->refs[slot] < UINT16_MAX);
	f->refs[slot]++;
}

static bool is_stored(struct far *f, uint32_t slot)
{
	const struct far_store *store = store_of(f, slot);
	bool stored;

	lock_take(&f->lock);
	stored = page_is_stored(store->handle, slot - store->first);
	lock_drop(&f->lock);
	return stored;
}

/* One reference less; true: it was the last. */
static bool let_go(struct far *f, uint32_t slot)
{
	ASSERT(f->refs[slot] > 0);
	if (--f->refs[slot] > 0)
		return false;
	f->used--;
	return true;
}

bool run_far_slot_put(struct far *f, uint32_t slot)
{
	if (!let_go(f, slot))
		return false;
	if (is_stored(f, slot))
		run_far_drop_later(f, slot);
	else
		f->free[f->free_count++] = slot;
	return true;
}

/* No node has it, so giving it up is a matter of the store's records. */
void run_far_slot_refuse(struct far *f, uint32_t slot)
{
	const struct far_store *store = store_of(f, slot);

	if (!let_go(f, slot))
		return;
	lock_take(&f->lock);
	/* Room that cannot be given back now goes with the store. */
	(void)!page_drop(store->handle, slot - store->first);
	lock_drop(&f->lock);
	f->aside[f->aside_count++] = slot;
}

void run_far_retry(struct far *f)
{
	if (atomic_exchange_explicit(&f->may_grow, false,
				     memory_order_relaxed)) {
		lock_take(&f->lock);
		f->grow_err = run_far_grow(f);
		lock_drop(&f->lock);
	}
	while (f->aside_count)
		f->free[f->free_count++] = f->aside[--f->aside_count];
}

bool run_far_slot_is_there(struct far *f, uint32_t slot)
{
	struct far_store *store = store_of(f, slot);
	bool is_there;

	/* Nothing has ever failed: no look. */
	if (!atomic_load_explicit(&f->has_failed, memory_order_relaxed))
		return true;
	lock_take(&f->lock);
	is_there = page_is_there(store->handle, slot - store->first);
	lock_drop(&f->lock);
	return is_there;
}

/* ---- operations ---------------------------------------------------------- */

static void note_failure(struct far *f, struct far_store *store)
{
	const char *node = page_lost_node(store->handle);

	/* The pager's lock is not ours to take, and nothing hangs on when it
	 * sees that. */
	atomic_store_explicit(&f->has_failed, true, memory_order_relaxed);
	if (!node || strcmp(f->lost, node) == 0)
		return;
	(void)snprintf(f->lost, sizeof(f->lost), "%s", node);
	(void)snprintf(f->ever_lost, sizeof(f->ever_lost), "%s", node);
	for (unsigned i = 0; i < f->store_count; i++)
		page_lose_node(f->store[i].handle, f->lost);
}

/* Who waits long is told for whom, once for each silence. */
static void look_for_silence(struct far *f)
{
	const char *node = NULL;

	for (unsigned i = 0; i < f->store_count && !node; i++)
		node = page_silent_node(f->store[i].handle, SILENT_MS);
	if (!node || f->is_silent)
		return;
	f->is_silent = true;
	(void)fprintf(stderr,
		      "aquifer: run: memory node %s has not answered for %d "
		      "s; who needs its pages waits, %u s at most "
		      "(--patience)\n",
		      node, SILENT_MS / 1000, f->patience_ms / 1000);
}

static void note_success(struct far *f)
{
	if (!f->is_silent)
		return;
	f->is_silent = false;
	(void)fprintf(stderr, "aquifer: run: the memory node answers again\n");
}

static void poll_store(struct far *f, struct far_store *store)
{
	struct page_op *done[64];
	int n;

	if (page_pending(store->handle) == 0)
		return;
	n = page_poll(store->handle, done, ARRAY_LEN(done));
	for (int i = 0; i < n; i++) {
		struct far_user *u = done[i]->cookie;

		if (done[i]->result)
			note_failure(f, store);
		else
			note_success(f);
		/* RUN-F1 */
		(void)atomic_fetch_sub_explicit(&u->left, 1,
						memory_order_release);
	}
}

void run_far_poll_locked(struct far *f)
{
	for (unsigned i = 0; i < f->store_count; i++)
		poll_store(f, &f->store[i]);
}

/* With the lock, which is free meanwhile. A node on our core may be in another
 * session, to which a yield gives nothing: after some, we sleep. */
static void relax(struct far *f, unsigned *tries)
{
	struct timespec nap = {.tv_nsec = NAP_NS};

	lock_drop(&f->lock);
	if (++*tries > YIELDS)
		(void)nanosleep(&nap, NULL);
	else if (*tries > SPINS)
		relax_briefly();
	lock_take(&f->lock);
	if (*tries % NAPS_PER_LOOK == 0)
		look_for_silence(f);
}

bool run_far_try(struct far *f, uint32_t slot, struct page_op *op)
{
	struct far_store *store = store_of(f, slot);

	op->page = slot - store->first;
	return page_submit(store->handle, &op, 1) == 1;
}

/* With the lock. Every operation ends within the store's deadline, so waiting
 * is bounded. */
static void submit(struct far *f, uint32_t slot, struct page_op *op)
{
	unsigned tries = 0;

	while (!run_far_try(f, slot, op)) {
		run_far_poll_locked(f);
		relax(f, &tries);
	}
}

void run_far_poll(struct far *f)
{
	lock_take(&f->lock);
	run_far_poll_locked(f);
	lock_drop(&f->lock);
}

void run_far_await(struct far *f, struct far_user *u)
{
	unsigned tries = 0;

	lock_take(&f->lock);
	for (;;) {
		run_far_poll_locked(f);
		/* RUN-F1 */
		if (!atomic_load_explicit(&u->left, memory_order_acquire))
			break;
		relax(f, &tries); /* the lock is free meanwhile */
	}
	lock_drop(&f->lock);
}

void run_far_store(struct far *f, uint32_t slot, struct page_op *op)
{
	op->kind = PAGE_STORE;
	lock_take(&f->lock);
	submit(f, slot, op);
	lock_drop(&f->lock);
}

void run_far_load(struct far *f, struct far_load *l, unsigned n,
		  const uint32_t slot[], uint8_t *bytes)
{
	ASSERT(n > 0 && n <= ARRAY_LEN(l->op));
	atomic_init(&l->first.left, 1);
	atomic_init(&l->others.left, n - 1);
	lock_take(&f->lock);
	for (unsigned i = 0; i < n; i++) {
		l->op[i] = (struct page_op){
			.kind = PAGE_LOAD,
			.buf = bytes + (size_t)i * RUN_PAGE_BYTES,
			.cookie = i ? &l->others : &l->first};
		submit(f, slot[i], &l->op[i]);
	}
	lock_drop(&f->lock);
}

void run_far_lost(struct far *f, bool ever, char *name, size_t bytes)
{
	lock_take(&f->lock);
	for (unsigned i = 0; i < f->store_count && !ever && !f->lost[0]; i++) {
		page_notice(f->store[i].handle);
		if (page_lost_node(f->store[i].handle))
			note_failure(f, &f->store[i]);
	}
	(void)snprintf(name, bytes, "%s", ever ? f->ever_lost : f->lost);
	lock_drop(&f->lock);
}
