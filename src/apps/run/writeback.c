/* SPDX-License-Identifier: Apache-2.0 */
/* Writeback buffers: what has left the programs and is on its way to far
 * memory. They are filled in turn, so the oldest is the next one needed; until
 * then its pages come back without a transfer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pager_priv.h"

static struct wb_buffer *buffer_of(const struct pager *p, uint32_t buffer_page)
{
	return &p->writeback.buffer[buffer_page / RUN_BATCH_PAGES];
}

static struct wb_page *page_of(const struct pager *p, uint32_t buffer_page)
{
	return &buffer_of(p, buffer_page)->page[buffer_page % RUN_BATCH_PAGES];
}

uint8_t *run_writeback_bytes(const struct pager *p, uint32_t buffer_page)
{
	return run_share_page(buffer_of(p, buffer_page)->share, buffer_page);
}

int run_writeback_open(struct pager *p, uint32_t buffer_count, uint32_t samples)
{
	p->writeback.count = buffer_count;
	p->writeback.total = buffer_count + samples;
	ASSERT(p->writeback.total * RUN_BATCH_PAGES <=
	       1u << RUN_BUFFER_PAGE_BITS);
	p->writeback.buffer =
		calloc(p->writeback.total, sizeof(*p->writeback.buffer));
	return p->writeback.buffer ? 0 : -ENOMEM;
}

void run_writeback_close(struct pager *p)
{
	if (!p->writeback.buffer)
		return;
	for (uint32_t i = 0; i < p->writeback.total; i++)
		run_share_put(p->writeback.buffer[i].share);
	free(p->writeback.buffer);
	p->writeback.buffer = NULL;
}

/* ---- whose bytes --------------------------------------------------------- */

static void give_share(struct pager *p, struct wb_buffer *t,
		       struct share *share)
{
	if (t->share == share)
		return;
	if (t->share) {
		run_share_clear(t->share, (uint32_t)(t - p->writeback.buffer));
		run_share_put(t->share);
	}
	t->share = share ? run_share_get(share) : NULL;
}

void run_writeback_leave(struct pager *p, const struct space *s)
{
	for (uint32_t i = 0; s->share && i < p->writeback.total; i++) {
		struct wb_buffer *t = &p->writeback.buffer[i];

		/* What is being stored still reads them. */
		if (t->share != s->share || t->state == WB_STORING)
			continue;
		ASSERT(t->live == 0);
		t->state = WB_FREE;
		p->writeback.returning -= t->is_returning;
		t->is_returning = false;
		give_share(p, t, NULL);
	}
}

static void set_staged(struct pager *p, struct wb_buffer *t, unsigned i,
		       struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];

	t->page[i].space = s;
	t->page[i].page = page;
	t->live++;
	run_page_set_state(e, RUN_STAGED);
	e->buffer_page =
		(uint32_t)((t - p->writeback.buffer) * RUN_BATCH_PAGES + i) &
		((1u << RUN_BUFFER_PAGE_BITS) - 1);
	count(&p->stats->buffered_pages, 1);
}

void run_writeback_forget(struct pager *p, uint32_t buffer_page)
{
	struct wb_page *e = page_of(p, buffer_page);

	ASSERT(e->space);
	e->space = NULL;
	buffer_of(p, buffer_page)->live--;
	count(&p->stats->buffered_pages, (uint64_t)-1);
}

void run_writeback_moved(struct pager *p, uint32_t buffer_page, uint64_t page)
{
	page_of(p, buffer_page)->page = page;
}

/* What was stored has gone since, with its node, but its bytes are here. */
static bool has_gone(struct pager *p, struct wb_buffer *t)
{
	bool any = false;

	for (unsigned i = 0; i < RUN_BATCH_PAGES && t->live; i++) {
		struct wb_page *tp = &t->page[i];

		if (!tp->space ||
		    run_far_slot_is_there(&p->far,
					  tp->space->pages.page[tp->page].slot))
			continue;
		tp->is_dirty = any = true;
	}
	return any;
}

bool run_writeback_is_ready(const struct pager *p)
{
	enum wb_state state = p->writeback.buffer[p->writeback.head].state;

	return state == WB_FREE || state == WB_CLEAN;
}

int run_writeback_take(struct pager *p, const struct space *space)
{
	struct writeback *ts = &p->writeback;
	struct wb_buffer *t = &ts->buffer[ts->head];

	if (!run_writeback_is_ready(p))
		return -EAGAIN;
	if (has_gone(p, t)) {
		t->state = WB_HELD;
		return -EAGAIN;
	}
	for (unsigned i = 0; i < RUN_BATCH_PAGES && t->live; i++) {
		struct space *s = t->page[i].space;
		struct run_page *e;

		if (!s)
			continue;
		e = &s->pages.page[t->page[i].page];
		run_page_set_state(e, RUN_FAR);
		run_policy_is_far(e);
		run_writeback_forget(p, ts->head * RUN_BATCH_PAGES + i);
	}
	give_share(p, t, space->share);
	t->state = WB_FILLING;
	memset(t->page, 0, sizeof(t->page));
	ts->head = (ts->head + 1) % ts->count;
	return (int)(t - ts->buffer);
}

int run_writeback_take_sample(struct pager *p, const struct space *s)
{
	struct writeback *ts = &p->writeback;

	for (uint32_t i = ts->count; i < ts->total; i++) {
		struct wb_buffer *t = &ts->buffer[i];

		if (t->state != WB_FREE)
			continue;
		give_share(p, t, s->share);
		t->state = WB_FILLING;
		memset(t->page, 0, sizeof(t->page));
		return (int)i;
	}
	return -ENOBUFS;
}

bool run_writeback_is_sample(const struct pager *p, uint32_t buffer_page)
{
	return buffer_page / RUN_BATCH_PAGES >= p->writeback.count;
}

void run_writeback_give_up(struct pager *p, uint32_t buffer)
{
	ASSERT(p->writeback.buffer[buffer].state == WB_FILLING);
	p->writeback.buffer[buffer].state = WB_FREE;
}

/* ---- filled -------------------------------------------------------------- */

static void page_filled(struct pager *p, struct wb_buffer *t, unsigned i,
			struct space *s, uint64_t page,
			const struct run_hash *hash)
{
	struct run_page *e = &s->pages.page[page];
	struct wb_page *tp = &t->page[i];

	run_space_set_gone(p, s, page);
	set_staged(p, t, i, s, page);
	e->is_returned = 0;
	tp->hash = *hash;
	tp->is_dirty = !e->slot ||
		       memcmp(&e->hash, hash, sizeof(e->hash)) != 0 ||
		       !run_far_slot_is_there(&p->far, e->slot);
	if (!tp->is_dirty)
		count(&p->stats->evicted_clean, 1);
}

void run_writeback_filled(struct pager *p, struct space *s,
			  const struct leaving *l,
			  const struct run_hash hash_of[], uint64_t zero,
			  uint64_t failed)
{
	struct wb_buffer *t = &p->writeback.buffer[l->buffer];
	bool is_dirty = false;

	ASSERT(t->state == WB_FILLING);
	if (l->kind == BATCH_SAMPLE)
		t->filled_ns = clock_mono_ns();
	for (unsigned i = 0; i < l->count; i++) {
		struct run_hash hash = hash_of[i]; /* read once */

		if (failed >> i & 1)
			continue;
		count(l->kind == BATCH_SAMPLE ? &p->stats->sampled
					      : &p->stats->evicted,
		      1);
		if (zero >> i & 1) {
			count(&p->stats->evicted_zero, 1);
			run_space_set_untouched(p, s, l->page[i]);
			continue;
		}
		page_filled(p, t, i, s, l->page[i], &hash);
		is_dirty |= t->page[i].is_dirty;
	}
	t->state = is_dirty ? WB_HELD : WB_CLEAN;
}

bool run_writeback_is_dirty(const struct pager *p, uint32_t buffer_page)
{
	return page_of(p, buffer_page)->is_dirty;
}
