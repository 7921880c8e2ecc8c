/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: a page that has left and is wanted back, and with it those that its
 * trend foresees, from far memory and from the buffers. */
#include <errno.h>
#include <string.h>

#include "pager_priv.h"
#include "uffd.h"

/* What a fault brings. */
struct fetch {
	uint64_t far[RUN_PREFETCH_MAX + 1];
	unsigned far_count;
	uint64_t staged[RUN_PREFETCH_MAX + 1];
	unsigned staged_count;
};

/* ---- foreseeing --------------------------------------------------------- */

static struct trend *trend_place(struct space *s, uint64_t key)
{
	return &s->trend[(key * 0x9e3779b97f4a7c15ull >> 32) % SPACE_TRENDS];
}

static bool foretold(const struct trend *t, uint64_t key, uint64_t page)
{
	return t->key == key && t->window && t->next == page;
}

/* A thread may follow several streams (a partition has two): those in different
 * neighbourhoods do not meet. One that leaves its own goes on in the next. */
static struct trend *trend_of(struct space *s, uint32_t tid, uint64_t page)
{
	uint64_t key = (uint64_t)tid << 32 | page >> RUN_STREAM_SHIFT;
	struct trend *t = trend_place(s, key);
	struct trend comes = {.key = key};

	if (foretold(t, key, page))
		return t;
	if (foretold(trend_place(s, key - 1), key - 1, page))
		comes = *trend_place(s, key - 1);
	else if (foretold(trend_place(s, key + 1), key + 1, page))
		comes = *trend_place(s, key + 1);
	else if (t->key == key)
		return t;
	*t = comes;
	t->key = key;
	return t;
}

static void reverse(uint64_t *pages, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		uint64_t page = pages[i];

		pages[i] = pages[n - 1 - i];
		pages[n - 1 - i] = page;
	}
}

static void add_page(const struct space *s, uint64_t page, struct fetch *c)
{
	uint8_t state = s->pages.page[page].state;

	if (state == RUN_FAR)
		c->far[c->far_count++] = page;
	else if (state == RUN_STAGED)
		c->staged[c->staged_count++] = page;
}

/* The wanted page is the first of its kind. The other far ones ascend, so that
 * neighbours can be put with one call. */
static void foresee(struct pager *p, const struct waiting *w, struct fetch *c)
{
	struct space *s = w->space;
	struct trend *t = trend_of(s, w->tid, w->page);
	int64_t stride = 0;
	uint32_t want =
		run_trend_fault(t, w->page, p->options.prefetch_max, &stride);
	unsigned most = run_fault_room(p, RUN_PREFETCH_MAX + 1);
	unsigned first;
	uint32_t i;

	c->far_count = c->staged_count = 0;
	add_page(s, w->page, c);
	first = c->far_count;
	for (i = 1; i <= want && c->far_count + c->staged_count < most; i++) {
		uint64_t page = w->page + (uint64_t)stride * i;

		if (page == 0 || page >= RUN_RANGE_PAGES ||
		    s->pages.page[page].state == RUN_UNTOUCHED)
			break;
		if (!run_evict_covers(s, page))
			add_page(s, page, c);
	}
	if (want)
		run_trend_fetched(t, w->page, i - 1);
	if (stride < 0)
		reverse(c->far + first, c->far_count - first);
}

/* ---- putting ------------------------------------------------------------ */

static int put(const struct space *s, uint64_t page, const void *bytes)
{
	return run_uffd_copy(s->uffd, run_space_addr(s, page), bytes);
}

static void put_wanted(struct pager *p, const struct waiting *w,
		       const struct page_op *op)
{
	if (op->result)
		run_fault_lost(p, w);
	else if (run_fault_mapped(p, w, put(w->space, w->page, op->buf)))
		count(&p->stats->loads, 1);
}

/* It is there again, and what the buffer has is nobody's. */
static void came_back(struct pager *p, struct run_page *e, uint32_t buffer_page)
{
	run_writeback_forget(p, buffer_page);
	if (e->returns < RUN_HEAT_MAX)
		e->returns++;
	e->heat = e->returns;
	count(&p->stats->second, 1);
}

static void put_staged_wanted(struct pager *p, const struct waiting *w)
{
	struct run_page *e = &w->space->pages.page[w->page];
	uint32_t buffer_page = e->buffer_page;
	int err = put(w->space, w->page, run_writeback_bytes(p, buffer_page));

	if (!run_fault_mapped(p, w, err))
		return;
	came_back(p, e, buffer_page);
	/* What left with it or after it lies within that. */
	run_hand_missed(&w->space->hand, w->page,
			2ull * p->writeback.count * RUN_BATCH_PAGES,
			w->space->resident_count);
}

/* What cannot be put stays where it is until it is wanted. */
static void put_staged(struct pager *p, struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];
	uint32_t buffer_page = e->buffer_page;

	if (put(s, page, run_writeback_bytes(p, buffer_page)) != 0)
		return;
	run_space_set_resident(p, s, page);
	came_back(p, e, buffer_page);
}

/* n pages that lie one after the other, there as here; returns how many have
 * been dealt with. What cannot be put is fetched again when it is wanted. */
static unsigned put_run(struct pager *p, struct space *s, uint64_t page,
			const void *bytes, unsigned n)
{
	uint64_t addr = run_space_addr(s, page);
	int got = run_uffd_copy_many(s->uffd, addr, bytes, n);

	/* The program's advice and rights may have cut the range. */
	if (got == -ENOENT && n > 1)
		got = run_uffd_copy_many(s->uffd, addr, bytes, 1);
	if (got < 0 && got != -EEXIST)
		return 1;
	n = got < 0 ? 1 : (unsigned)got;
	for (unsigned i = 0; i < n; i++)
		run_space_set_resident(p, s, page + i);
	count(&p->stats->prefetched, n);
	return n;
}

static void put_ahead(struct pager *p, struct space *s, const uint64_t pages[],
		      const struct page_op op[], unsigned n)
{
	unsigned i = 0;

	while (i < n) {
		unsigned run = 0;

		while (i + run < n && !op[i + run].result &&
		       pages[i + run] == pages[i] + run)
			run++;
		i += run ? put_run(p, s, pages[i], op[i].buf, run) : 1;
	}
}

/* The wanted page's thread runs while the others come. */
static void bring_far(struct pager *p, const struct waiting *w,
		      const struct fetch *c, bool is_wanted)
{
	uint32_t slot[RUN_PREFETCH_MAX + 1];
	struct far_load l;

	for (unsigned i = 0; i < c->far_count; i++)
		slot[i] = w->space->pages.page[c->far[i]].slot;
	run_far_load(&p->far, &l, c->far_count, slot, p->scratch);
	if (is_wanted) {
		run_far_await(&p->far, &l.first);
		put_wanted(p, w, &l.op[0]);
	}
	run_far_await(&p->far, &l.first);
	run_far_await(&p->far, &l.others);
	put_ahead(p, w->space, c->far + is_wanted, l.op + is_wanted,
		  c->far_count - is_wanted);
}

void run_stream_serve(struct pager *p, const struct waiting *w)
{
	bool is_far = w->space->pages.page[w->page].state == RUN_FAR;
	struct fetch c;

	foresee(p, w, &c);
	if (!is_far)
		put_staged_wanted(p, w);
	if (c.far_count)
		bring_far(p, w, &c, is_far);
	for (unsigned i = is_far ? 0 : 1; i < c.staged_count; i++)
		put_staged(p, w->space, c.staged[i]);
}
