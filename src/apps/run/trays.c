/* SPDX-License-Identifier: Apache-2.0 */
/* Trays: what has left the programs and is on its way to far memory. They are
 * filled in turn, so the oldest is the next one needed; until then its pages
 * come back without a transfer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pager_priv.h"

uint8_t *run_tray_bytes(const struct pager *p, uint32_t tray_page)
{
	const struct tray *t = &p->trays.tray[tray_page / RUN_BATCH_PAGES];

	return run_share_page(t->share, tray_page);
}

static struct tray *tray_of(struct pager *p, uint32_t tray_page)
{
	return &p->trays.tray[tray_page / RUN_BATCH_PAGES];
}

static size_t scratch_bytes(void)
{
	return (size_t)(RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES;
}

int run_trays_open(struct pager *p, uint32_t tray_count)
{
	struct trays *t = &p->trays;
	void *mem = mmap(NULL, scratch_bytes(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	t->tray = calloc(tray_count, sizeof(*t->tray));
	if (!t->tray) {
		(void)munmap(mem, scratch_bytes());
		return -ENOMEM;
	}
	p->scratch = mem;
	t->count = tray_count;
	return 0;
}

void run_trays_close(struct pager *p)
{
	if (!p->trays.tray)
		return;
	for (uint32_t i = 0; i < p->trays.count; i++)
		run_share_put(p->trays.tray[i].share);
	(void)munmap(p->scratch, scratch_bytes());
	free(p->trays.tray);
	p->trays.tray = NULL;
}

/* ---- whose bytes -------------------------------------------------------- */

static void give_share(struct pager *p, struct tray *t, struct share *share)
{
	if (t->share == share)
		return;
	if (t->share) {
		run_share_clear(t->share, (uint32_t)(t - p->trays.tray));
		run_share_put(t->share);
	}
	t->share = share ? run_share_get(share) : NULL;
}

void run_trays_leave(struct pager *p, const struct space *s)
{
	for (uint32_t i = 0; s->share && i < p->trays.count; i++) {
		struct tray *t = &p->trays.tray[i];

		/* What is being stored still reads them. */
		if (t->share != s->share || t->state == TRAY_STORING)
			continue;
		ASSERT(t->live == 0);
		t->state = TRAY_FREE;
		p->trays.returning -= t->is_returning;
		t->is_returning = false;
		give_share(p, t, NULL);
	}
}

static void set_staged(struct pager *p, struct tray *t, unsigned i,
		       struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	t->page[i].space = s;
	t->page[i].page = page;
	t->live++;
	e->state = RUN_STAGED;
	e->tray_page = (uint32_t)((t - p->trays.tray) * RUN_BATCH_PAGES + i) &
		       ((1u << 20) - 1);
	count(&p->stats->tray_pages, 1);
}

void run_tray_forget(struct pager *p, uint32_t tray_page)
{
	struct tray *t = tray_of(p, tray_page);
	struct tray_page *e = &t->page[tray_page % RUN_BATCH_PAGES];

	ASSERT(e->space);
	e->space = NULL;
	t->live--;
	count(&p->stats->tray_pages, (uint64_t)-1);
}

void run_tray_moved(struct pager *p, uint32_t tray_page, uint64_t page)
{
	struct tray *t = tray_of(p, tray_page);

	t->page[tray_page % RUN_BATCH_PAGES].page = page;
}

/* What was stored has gone since, with its node, but its bytes are here. */
static bool has_gone(struct pager *p, struct tray *t)
{
	bool any = false;

	for (unsigned i = 0; i < RUN_BATCH_PAGES && t->live; i++) {
		struct tray_page *tp = &t->page[i];

		if (!tp->space ||
		    run_far_slot_is_there(&p->far,
					  tp->space->pages.page[tp->page].slot))
			continue;
		tp->is_dirty = any = true;
	}
	return any;
}

bool run_trays_are_ready(const struct pager *p)
{
	enum tray_state state = p->trays.tray[p->trays.head].state;

	return state == TRAY_FREE || state == TRAY_CLEAN;
}

int run_trays_take(struct pager *p, const struct space *space)
{
	struct trays *ts = &p->trays;
	struct tray *t = &ts->tray[ts->head];

	if (!run_trays_are_ready(p))
		return -EAGAIN;
	if (has_gone(p, t)) {
		t->state = TRAY_HELD;
		return -EAGAIN;
	}
	for (unsigned i = 0; i < RUN_BATCH_PAGES && t->live; i++) {
		struct space *s = t->page[i].space;

		if (!s)
			continue;
		s->pages.page[t->page[i].page].state = RUN_FAR;
		s->pages.page[t->page[i].page].returns = 0;
		run_tray_forget(p, ts->head * RUN_BATCH_PAGES + i);
	}
	give_share(p, t, space->share);
	t->state = TRAY_FILLING;
	memset(t->page, 0, sizeof(t->page));
	ts->head = (ts->head + 1) % ts->count;
	return (int)(t - ts->tray);
}

/* ---- filled ------------------------------------------------------------- */

static void page_filled(struct pager *p, struct tray *t, unsigned i,
			struct space *s, uint64_t page,
			const struct run_hash *hash)
{
	struct run_page *e = &s->pages.page[page];
	struct tray_page *tp = &t->page[i];

	run_space_set_gone(p, s, page, RUN_STAGED);
	set_staged(p, t, i, s, page);
	e->is_returned = 0;
	tp->hash = *hash;
	tp->is_dirty = !e->slot ||
		       memcmp(&e->hash, hash, sizeof(e->hash)) != 0 ||
		       !run_far_slot_is_there(&p->far, e->slot);
	if (!tp->is_dirty)
		count(&p->stats->evicted_clean, 1);
}

void run_tray_filled(struct pager *p, struct space *s, const struct leaving *l,
		     const struct run_batch *b, uint64_t failed)
{
	struct tray *t = &p->trays.tray[l->tray];
	/* Read once: it is the program's memory. */
	uint64_t zero = b->zero;
	bool is_dirty = false;

	for (unsigned i = 0; i < l->count; i++) {
		struct run_hash hash = b->hash[i];

		if (failed >> i & 1)
			continue;
		count(&p->stats->evicted, 1);
		if (zero >> i & 1) {
			count(&p->stats->evicted_zero, 1);
			run_space_set_gone(p, s, l->page[i], RUN_UNTOUCHED);
			continue;
		}
		page_filled(p, t, i, s, l->page[i], &hash);
		is_dirty |= t->page[i].is_dirty;
	}
	t->state = is_dirty ? TRAY_HELD : TRAY_CLEAN;
}

/* ---- storing ------------------------------------------------------------ */

static bool has_dirty(const struct tray *t, const struct space *s)
{
	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++)
		if (t->page[i].space && t->page[i].is_dirty &&
		    (!s || t->page[i].space == s))
			return true;
	return false;
}

/* A slot of its own: what others share, or a store is still on its way to,
 * stays as it is. */
static bool give_slot(struct pager *p, struct tray *t, unsigned place,
		      struct run_page *e)
{
	uint32_t slot;

	if (e->slot && !run_far_slot_is_shared(&p->far, e->slot))
		return true;
	slot = run_far_slot_new(&p->far);
	if (!slot)
		return false;
	t->is_new |= 1ull << place;
	if (e->slot)
		run_room_put_slot(p, e->slot);
	e->slot = slot;
	return true;
}

/* Decides what goes where; the tray's stores hold the slots until they end. */
static void tray_load_up(struct pager *p, struct tray *t)
{
	uint32_t first = (uint32_t)(t - p->trays.tray) * RUN_BATCH_PAGES;

	t->state = TRAY_STORING;
	t->op_count = t->sent = 0;
	t->is_new = 0;
	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++) {
		struct tray_page *tp = &t->page[i];
		struct run_page *e;

		if (!tp->space || !tp->is_dirty)
			continue;
		e = &tp->space->pages.page[tp->page];
		if (!give_slot(p, t, i, e))
			continue; /* dirty still: settle sees to it */
		tp->is_dirty = false;
		e->hash = tp->hash;
		run_far_slot_get(&p->far, e->slot);
		t->slot[t->op_count] = e->slot;
		t->place[t->op_count] = (uint8_t)i;
		t->op[t->op_count++] =
			(struct page_op){.buf = run_tray_bytes(p, first + i),
					 .cookie = &t->user};
		count(&p->stats->stored, 1);
	}
	/* Whoever sees it at 0 has the lock that we have now. */
	atomic_store_explicit(&t->user.left, t->op_count, memory_order_relaxed);
	show(&p->stats->far_pages, p->far.used);
	show_peak(&p->stats->far_peak, p->far.used);
}

/* Its bytes are still here: they go back to the program. */
static void store_failed(struct pager *p, struct tray *t, unsigned i)
{
	struct tray_page *tp = &t->page[t->place[i]];
	struct run_page *e;

	if (!tp->space)
		return; /* it went back by itself, and finds out when it leaves
			 */
	tp->is_dirty = true;
	e = &tp->space->pages.page[tp->page];
	if (e->slot != t->slot[i])
		return;
	e->slot = 0;
	run_far_slot_refuse(&p->far, t->slot[i]);
}

static void take_off_list(struct trays *ts, const struct tray *t)
{
	for (unsigned i = 0; i < ts->carried_count; i++)
		if (ts->carried[i] == t)
			ts->carried[i] = ts->carried[--ts->carried_count];
}

/* Takes note of what became of its stores; false: they have not ended. */
static bool settle(struct pager *p, struct tray *t)
{
	uint64_t placed = 0, refused = 0;
	int err = p->far.grow_err;

	/* Pairs with F1. */
	if (atomic_load_explicit(&t->user.left, memory_order_acquire))
		return false;
	for (unsigned i = 0; i < t->op_count; i++) {
		bool is_new = t->is_new >> t->place[i] & 1;

		if (t->op[i].result) {
			err = t->op[i].result;
			refused++;
			store_failed(p, t, i);
			run_far_slot_refuse(&p->far, t->slot[i]);
		} else {
			placed += is_new;
			run_room_put_slot(p, t->slot[i]);
		}
	}
	t->op_count = t->sent = 0;
	for (unsigned i = 0; i < RUN_BATCH_PAGES && !refused; i++)
		refused += t->page[i].space && t->page[i].is_dirty;
	if (placed || refused)
		run_room_result(p, placed, refused, err);
	t->is_returning = refused > 0;
	p->trays.returning += t->is_returning;
	t->state = refused ? TRAY_HELD : TRAY_CLEAN;
	take_off_list(&p->trays, t);
	return true;
}

static bool settle_ended(struct pager *p)
{
	struct trays *ts = &p->trays;
	bool any = false;

	/* From the end: the last one takes the place of one that leaves. */
	for (unsigned i = ts->carried_count; i-- > 0;)
		any |= settle(p, ts->carried[i]);
	return any;
}

/* The one that will be needed first and has pages to store. */
static struct tray *next_to_store(struct pager *p)
{
	struct trays *ts = &p->trays;
	uint32_t ahead = u32_max(2, ts->count / 8);

	for (unsigned i = 0; i < ts->carried_count; i++)
		if (ts->carried[i]->sent < ts->carried[i]->op_count)
			return ts->carried[i];
	if (ts->carried_count == RUN_CARRIED_MAX)
		return NULL;
	for (uint32_t i = 0; i < ahead; i++) {
		struct tray *t = &ts->tray[(ts->head + i) % ts->count];

		if (t->state != TRAY_HELD || t->is_returning)
			continue;
		tray_load_up(p, t);
		if (t->op_count) {
			ts->carried[ts->carried_count++] = t;
			return t;
		}
		(void)settle(p, t);
	}
	return NULL;
}

static void send(struct pager *p, struct tray *t, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		run_far_store(&p->far, t->slot[i], &t->op[i]);
}

bool run_trays_carry(struct pager *p)
{
	bool any = settle_ended(p);
	struct tray *t = next_to_store(p);
	unsigned from, n;

	if (!t) {
		if (p->trays.carried_count && !any)
			run_far_poll(&p->far);
		return any;
	}
	/* Ours from now on, so that others may do the rest meanwhile; it is not
	 * settled before all that it counts have ended. */
	from = t->sent;
	n = u32_min(RUN_CARRY_PAGES, t->op_count - from);
	t->sent += n;
	lock_drop(&p->lock);
	send(p, t, from, n);
	lock_take(&p->lock);
	return true;
}

bool run_trays_return(struct pager *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->trays.count && p->trays.returning; i++) {
		struct tray *t = &p->trays.tray[i];

		if (!t->is_returning || !run_room_return(p, t))
			continue;
		t->is_returning = false;
		p->trays.returning--;
		t->state = TRAY_CLEAN;
		any = true;
	}
	return any;
}

bool run_tray_is_dirty(const struct pager *p, uint32_t tray_page)
{
	const struct tray *t = &p->trays.tray[tray_page / RUN_BATCH_PAGES];

	return t->page[tray_page % RUN_BATCH_PAGES].is_dirty;
}

bool run_trays_are_storing(const struct pager *p)
{
	enum tray_state s = p->trays.tray[p->trays.head].state;

	return s == TRAY_STORING || s == TRAY_HELD;
}

void run_trays_flush(struct pager *p, const struct space *s)
{
	struct trays *ts = &p->trays;

	for (uint32_t i = 0; i < ts->count; i++) {
		struct tray *t = &ts->tray[i];
		unsigned from;

		if (t->state == TRAY_HELD && !t->is_returning &&
		    has_dirty(t, s))
			tray_load_up(p, t);
		if (t->state != TRAY_STORING)
			continue;
		from = t->sent;
		t->sent = t->op_count;
		send(p, t, from, t->op_count - from);
		/* What the porter sends, it sends without the lock. */
		run_far_await(&p->far, &t->user);
		(void)settle(p, t);
	}
}
