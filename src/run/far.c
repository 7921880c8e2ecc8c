/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, shelves, and the ends of their operations. */
#include "far.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "aquifer/aquifer.h"
#include "log.h"
#include "relax.h"

enum {
	SPINS = 32,   /* some 5 us: a node that is not busy answers sooner */
	YIELDS = 200, /* some 50 us */
	NAP_NS = 20000,
};

/* ---- shelves ------------------------------------------------------------ */

static int grow_tables(struct far *f, uint32_t slots)
{
	uint16_t *refs = realloc(f->refs, slots * sizeof(*refs));
	uint32_t *stack;

	if (!refs)
		return -ENOMEM;
	f->refs = refs;
	memset(refs + f->slots, 0, (slots - f->slots) * sizeof(*refs));
	stack = realloc(f->free, slots * sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	f->free = stack;
	return 0;
}

static int open_shelf(struct far *f, uint32_t pages)
{
	struct far_shelf *shelf = &f->shelf[f->shelf_count];
	struct page_store_options o = {.pages = pages,
				       .mode = f->mode,
				       .is_unmapped = f->is_unmapped,
				       .data = 1,
				       .parity = f->copies > 1 ? f->copies - 1
							       : 0};
	char name[40];
	int err = grow_tables(f, f->slots + pages);

	if (err)
		return err;
	(void)snprintf(name, sizeof(name), "%s-%u", f->name, f->shelf_count);
	err = page_store_open(f->rack, name, &o, &shelf->store);
	if (err)
		return err;
	err = page_register(shelf->store, f->buffer, f->buffer_bytes);
	if (err) {
		page_store_close(shelf->store);
		return err;
	}
	shelf->first = f->slots;
	shelf->pages = pages;
	f->shelf_count++;
	/* Low numbers first: neighbours leave together and lie together. */
	for (uint32_t i = pages; i > 0; i--)
		f->free[f->free_count++] = shelf->first + i - 1;
	f->slots += pages;
	return 0;
}

/* Each twice as large as the one before; smaller where that does not fit. */
static int grow(struct far *f)
{
	uint64_t pages = u64_min((uint64_t)RUN_SHELF_PAGES << f->shelf_count,
				 RUN_SHELF_PAGES_MAX);
	int err = -ENOSPC;

	if (f->shelf_count == RUN_SHELVES_MAX)
		return -ENOSPC;
	for (; pages >= RUN_SHELF_PAGES_MIN; pages /= 2) {
		err = open_shelf(f, (uint32_t)pages);
		if (err != -ENOSPC && err != -EDQUOT)
			break;
	}
	return err;
}

int run_check_mode(const char *mode)
{
	enum page_mode m;

	return page_mode_parse(mode, &m);
}

int run_far_open(struct far *f, const struct run_options *o, void *buffer,
		 size_t buffer_bytes)
{
	int err;

	*f = (struct far){.copies = o->copies,
			  .is_unmapped = o->is_unmapped,
			  .buffer = buffer,
			  .buffer_bytes = buffer_bytes};
	(void)snprintf(f->name, sizeof(f->name), "run-%d", (int)getpid());
	err = o->mode ? page_mode_parse(o->mode, &f->mode) : 0;
	if (!err)
		err = grow_tables(f, 1);
	if (err)
		return err;
	f->slots = 1; /* 0 means none */
	err = aq_rack_open(o->rack, &f->rack);
	if (!err)
		err = grow(f);
	if (err)
		run_far_close(f);
	return err;
}

void run_far_close(struct far *f)
{
	for (unsigned i = 0; i < f->shelf_count; i++)
		page_store_close(f->shelf[i].store);
	aq_rack_close(f->rack);
	free(f->refs);
	free(f->free);
	*f = (struct far){0};
}

static struct far_shelf *shelf_of(struct far *f, uint32_t slot)
{
	for (unsigned i = f->shelf_count; i-- > 0;)
		if (slot >= f->shelf[i].first)
			return &f->shelf[i];
	return &f->shelf[0];
}

/* ---- slots -------------------------------------------------------------- */

uint32_t run_far_slot_new(struct far *f)
{
	uint32_t slot;

	if (f->free_count == 0 && !f->grow_err) {
		lock_take(&f->lock);
		f->grow_err = grow(f);
		lock_drop(&f->lock);
	}
	if (f->free_count == 0)
		return 0;
	f->grow_err = 0;
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

void run_far_slot_put(struct far *f, uint32_t slot)
{
	struct far_shelf *shelf;

	ASSERT(f->refs[slot] > 0);
	if (--f->refs[slot] > 0)
		return;
	shelf = shelf_of(f, slot);
	lock_take(&f->lock);
	/* Room that cannot be given back now goes with the shelf. */
	if (page_is_stored(shelf->store, slot - shelf->first))
		(void)!page_drop(shelf->store, slot - shelf->first);
	lock_drop(&f->lock);
	f->free[f->free_count++] = slot;
	f->used--;
	f->grow_err = 0;
}

/* ---- operations --------------------------------------------------------- */

static void note_lost(struct far *f, struct far_shelf *shelf, int err)
{
	const char *node = page_lost_node(shelf->store);

	if (f->lost[0])
		return;
	(void)snprintf(f->lost, sizeof(f->lost), "%s",
		       node ? node : aq_strerror(err));
}

static void poll_shelf(struct far *f, struct far_shelf *shelf)
{
	struct page_op *done[64];
	int n;

	if (page_pending(shelf->store) == 0)
		return;
	n = page_poll(shelf->store, done, ARRAY_LEN(done));
	for (int i = 0; i < n; i++) {
		struct far_user *u = done[i]->cookie;

		if (done[i]->result)
			note_lost(f, shelf, done[i]->result);
		/* F1 */
		(void)atomic_fetch_sub_explicit(&u->left, 1,
						memory_order_release);
	}
}

static void poll_all(struct far *f)
{
	for (unsigned i = 0; i < f->shelf_count; i++)
		poll_shelf(f, &f->shelf[i]);
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
}

/* With the lock. Every operation ends within the store's deadline, so waiting
 * is bounded. */
static void submit(struct far *f, uint32_t slot, struct page_op *op)
{
	struct far_shelf *shelf = shelf_of(f, slot);
	unsigned tries = 0;

	op->page = slot - shelf->first;
	while (page_submit(shelf->store, &op, 1) != 1) {
		poll_all(f);
		relax(f, &tries);
	}
}

/* With the lock, which is free while nothing comes. */
static void await(struct far *f, struct far_user *u)
{
	unsigned tries = 0;

	for (;;) {
		poll_all(f);
		/* Pairs with F1. */
		if (!atomic_load_explicit(&u->left, memory_order_acquire))
			return;
		relax(f, &tries);
	}
}

void run_far_poll(struct far *f)
{
	lock_take(&f->lock);
	poll_all(f);
	lock_drop(&f->lock);
}

void run_far_await(struct far *f, struct far_user *u)
{
	lock_take(&f->lock);
	await(f, u);
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

void run_far_lost(struct far *f, char *name, size_t bytes)
{
	lock_take(&f->lock);
	(void)snprintf(name, bytes, "%s", f->lost);
	lock_drop(&f->lock);
}
