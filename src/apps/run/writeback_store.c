/* SPDX-License-Identifier: Apache-2.0 */
/* Storing writeback buffers: which is next, where its pages go, and what became
 * of them. */
#include "pager_priv.h"
#include "room_priv.h"

static bool has_dirty(const struct wb_buffer *t, const struct space *s)
{
	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++)
		if (t->page[i].space && t->page[i].is_dirty &&
		    (!s || t->page[i].space == s))
			return true;
	return false;
}

/* A slot of its own: what others share, or a store is still on its way to,
 * stays as it is. */
static bool give_slot(struct pager *p, struct wb_buffer *t, unsigned place,
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

/* Decides what goes where; the buffer's stores hold the slots until they end.
 */
static void buffer_load_up(struct pager *p, struct wb_buffer *t)
{
	uint32_t first = (uint32_t)(t - p->writeback.buffer) * RUN_BATCH_PAGES;

	ASSERT(t->state == WB_HELD && !t->is_returning);
	t->state = WB_STORING;
	t->op_count = t->sent = 0;
	t->is_new = 0;
	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++) {
		struct wb_page *tp = &t->page[i];
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
		t->op[t->op_count++] = (struct page_op){
			.buf = run_writeback_bytes(p, first + i),
			.cookie = &t->user};
		count(&p->stats->stored, 1);
	}
	/* Whoever sees it at 0 has the lock that we have now. */
	atomic_store_explicit(&t->user.left, t->op_count, memory_order_relaxed);
	show(&p->stats->far_pages, p->far.used);
	show_peak(&p->stats->far_peak, p->far.used);
}

/* Its bytes are still here: they go back to the program. */
static void store_failed(struct pager *p, struct wb_buffer *t, unsigned i)
{
	struct wb_page *tp = &t->page[t->place[i]];
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

static void take_off_list(struct writeback *ts, const struct wb_buffer *t)
{
	for (unsigned i = 0; i < ts->storing_count; i++)
		if (ts->storing[i] == t)
			ts->storing[i] = ts->storing[--ts->storing_count];
}

/* Takes note of what became of its stores; false: they have not ended. */
static bool settle(struct pager *p, struct wb_buffer *t)
{
	uint64_t placed = 0, refused = 0;
	int err = p->far.grow_err;

	/* RUN-F1 */
	if (atomic_load_explicit(&t->user.left, memory_order_acquire))
		return false;
	ASSERT(t->state == WB_STORING && t->sent == t->op_count);
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
	p->writeback.returning += t->is_returning;
	t->state = refused ? WB_HELD : WB_CLEAN;
	take_off_list(&p->writeback, t);
	return true;
}

static bool settle_ended(struct pager *p)
{
	struct writeback *ts = &p->writeback;
	bool any = false;

	/* From the end: the last one takes the place of one that leaves. */
	for (unsigned i = ts->storing_count; i-- > 0;)
		any |= settle(p, ts->storing[i]);
	return any;
}

/* The one that will be needed first and has pages to store. */
static struct wb_buffer *next_to_store(struct pager *p)
{
	struct writeback *ts = &p->writeback;
	uint32_t ahead = u32_max(2, ts->count / 8);

	for (unsigned i = 0; i < ts->storing_count; i++)
		if (ts->storing[i]->sent < ts->storing[i]->op_count)
			return ts->storing[i];
	if (ts->storing_count == RUN_STORING_MAX)
		return NULL;
	for (uint32_t i = 0; i < ahead; i++) {
		struct wb_buffer *t = &ts->buffer[(ts->head + i) % ts->count];

		if (t->state != WB_HELD || t->is_returning)
			continue;
		buffer_load_up(p, t);
		if (t->op_count) {
			ts->storing[ts->storing_count++] = t;
			return t;
		}
		(void)settle(p, t);
	}
	return NULL;
}

static void send(struct pager *p, struct wb_buffer *t, unsigned from,
		 unsigned n)
{
	for (unsigned i = from; i < from + n; i++)
		run_far_store(&p->far, t->slot[i], &t->op[i]);
}

bool run_writeback_store(struct pager *p)
{
	bool any = settle_ended(p);
	struct wb_buffer *t = next_to_store(p);
	unsigned from, n;

	if (!t) {
		if (p->writeback.storing_count && !any)
			run_far_poll(&p->far);
		return any;
	}
	/* Ours from now on, so that others may do the rest meanwhile; it is not
	 * settled before all that it counts have ended. */
	from = t->sent;
	n = u32_min(RUN_STORE_BATCH, t->op_count - from);
	t->sent += n;
	lock_drop(&p->lock);
	send(p, t, from, n);
	lock_take(&p->lock);
	return true;
}

bool run_writeback_return(struct pager *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->writeback.total && p->writeback.returning;
	     i++) {
		struct wb_buffer *t = &p->writeback.buffer[i];

		if (!t->is_returning || !run_room_return(p, t))
			continue;
		t->is_returning = false;
		p->writeback.returning--;
		t->state = WB_CLEAN;
		any = true;
	}
	return any;
}

bool run_writeback_is_storing(const struct pager *p)
{
	enum wb_state s = p->writeback.buffer[p->writeback.head].state;

	return s == WB_STORING || s == WB_HELD;
}

void run_writeback_flush(struct pager *p, const struct space *s)
{
	struct writeback *ts = &p->writeback;

	for (uint32_t i = 0; i < ts->total; i++) {
		struct wb_buffer *t = &ts->buffer[i];
		unsigned from;

		if (t->state == WB_HELD && !t->is_returning && has_dirty(t, s))
			buffer_load_up(p, t);
		if (t->state != WB_STORING)
			continue;
		from = t->sent;
		t->sent = t->op_count;
		send(p, t, from, t->op_count - from);
		/* What the reclaim thread sends, it sends without the lock. */
		run_far_await(&p->far, &t->user);
		(void)settle(p, t);
	}
}
