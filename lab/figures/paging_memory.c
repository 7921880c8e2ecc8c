/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a program that pages, as a kernel keeps it: pages here in the
 * order of their last use, a limit, reclaim that writes behind the program's
 * back, and a window of neighbours that a fault reads ahead, which grows while
 * they are used and shrinks while they are not.
 *
 * A page that comes back keeps its slot, and so its far copy. Where slots are
 * freed as Linux does (do_swap_page, reuse_swap_page), only until it is written
 * to, or touched while more than half of the area is used: then the slot is
 * given up, far memory is told to discard the page, and the page gets another
 * slot when it leaves again. What is written to while it is being stored keeps
 * its slot.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paging_priv.h"
#include "paging_swap.h"

enum state {
	PAGE_NEW, /* never touched */
	PAGE_HERE,
	PAGE_FAR,
	PAGE_COMING,
	PAGE_LEAVING, /* is being written; whoever touches it keeps it */
};

enum {
	NOBODY = UINT32_MAX,
	SAMPLE_EVERY = 16, /* faults */
};

struct page_state {
	uint8_t state;
	bool is_dirty;
	bool has_copy;	  /* far */
	bool was_ahead;	  /* read ahead and not touched since */
	bool is_writing;  /* a store is under way */
	uint32_t version; /* that its far copy must have */
	uint32_t at;	  /* slot of the area; PAGING_SWAP_NONE: none */
	uint32_t newer, older;
};

/* A far operation. */
struct slot {
	struct page_op op;
	uint32_t page;
	struct slot *next;
};

struct paging_memory {
	struct paging_worker *w;
	uint32_t pages, local;
	uint32_t here; /* or coming or leaving */
	uint32_t leaving;
	uint32_t newest, oldest;
	uint32_t window, ahead_used; /* of the last window */
	uint32_t last_fault;
	bool is_dry;
	uint64_t touch_ps, debt_ps;
	uint64_t faults, touches;
	struct page_state *page;
	struct paging_swap *swap;
	struct slot *slot;
	struct slot *free;
	uint32_t busy;
};

int paging_memory_open(struct paging_worker *w, uint32_t pages, uint32_t local,
		       struct paging_memory **out)
{
	struct paging_memory *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->w = w;
	m->pages = pages;
	m->local = local;
	m->page = calloc(pages, sizeof(*m->page));
	m->slot = calloc(w->depth, sizeof(*m->slot));
	if (!m->page || !m->slot ||
	    paging_swap_open((uint32_t)w->p->swap_pages, &m->swap)) {
		paging_memory_close(m);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->depth; i++) {
		m->slot[i].op.buf = w->buf + (size_t)i * PAGE_BYTES;
		m->slot[i].next = m->free;
		m->free = &m->slot[i];
	}
	paging_memory_dry(m, false);
	*out = m;
	return 0;
}

void paging_memory_close(struct paging_memory *m)
{
	if (!m)
		return;
	paging_swap_close(m->swap);
	free(m->page);
	free(m->slot);
	free(m);
}

void paging_memory_dry(struct paging_memory *m, bool is_dry)
{
	m->is_dry = is_dry;
	m->newest = m->oldest = NOBODY;
	m->here = m->leaving = 0;
	m->window = 1;
	m->ahead_used = 0;
	m->last_fault = NOBODY;
	m->faults = m->touches = 0;
	m->debt_ps = 0;
	memset(m->page, 0, m->pages * sizeof(*m->page));
	for (uint32_t i = 0; i < m->pages; i++)
		m->page[i].at = PAGING_SWAP_NONE;
}

void paging_memory_set_touch_ps(struct paging_memory *m, uint64_t touch_ps)
{
	m->touch_ps = touch_ps;
}

void paging_memory_restart(struct paging_memory *m)
{
	m->faults = m->touches = 0;
}

uint64_t paging_memory_faults(const struct paging_memory *m)
{
	return m->faults;
}

uint64_t paging_memory_touches(const struct paging_memory *m)
{
	return m->touches;
}

/* ---- the order of use ---------------------------------------------------- */

static void unlink_page(struct paging_memory *m, uint32_t i)
{
	struct page_state *f = &m->page[i];

	if (f->newer != NOBODY)
		m->page[f->newer].older = f->older;
	else
		m->newest = f->older;
	if (f->older != NOBODY)
		m->page[f->older].newer = f->newer;
	else
		m->oldest = f->newer;
}

static void link_newest(struct paging_memory *m, uint32_t i)
{
	struct page_state *f = &m->page[i];

	f->newer = NOBODY;
	f->older = m->newest;
	if (m->newest != NOBODY)
		m->page[m->newest].newer = i;
	else
		m->oldest = i;
	m->newest = i;
}

/* ---- far operations ------------------------------------------------------ */

static void put_mark(uint8_t *buf, uint32_t page, uint32_t version)
{
	uint64_t mark = (uint64_t)version << 32 | page;

	memcpy(buf, &mark, sizeof(mark));
}

static bool has_mark(const uint8_t *buf, uint32_t page, uint32_t version)
{
	uint64_t mark = (uint64_t)version << 32 | page;

	return memcmp(buf, &mark, sizeof(mark)) == 0;
}

static void arrived(struct paging_memory *m, uint32_t i)
{
	m->page[i].state = PAGE_HERE;
	link_newest(m, i);
}

static void left(struct paging_memory *m, uint32_t i)
{
	struct page_state *f = &m->page[i];

	f->is_writing = false;
	f->has_copy = true;
	if (f->state != PAGE_LEAVING) /* somebody wanted it */
		return;
	f->state = PAGE_FAR;
	m->here--;
	m->leaving--;
}

static void ended(struct paging_memory *m, struct slot *s)
{
	struct paging_result *res = m->w->p->res;
	uint32_t i = s->page;

	if (s->op.result)
		res->failed++;
	if (s->op.kind == PAGE_LOAD) {
		if (!has_mark(s->op.buf, i, m->page[i].version))
			res->failed++;
		arrived(m, i);
	} else if (s->op.kind == PAGE_STORE) {
		left(m, i);
	}
	res->ops++;
	s->next = m->free;
	m->free = s;
	m->busy--;
}

static bool harvest(struct paging_memory *m)
{
	struct page_op *done[PAGE_DEPTH];
	int n = page_poll(m->w->store, done, PAGE_DEPTH);

	for (int i = 0; i < n; i++)
		ended(m, container_of(done[i], struct slot, op));
	return n > 0;
}

static void wait_more(struct paging_memory *m)
{
	if (!harvest(m))
		client_clock_relax(&m->w->host->clock);
}

static void count_op(struct paging_memory *m, const struct page_state *f,
		     enum page_kind kind)
{
	struct paging_result *res = m->w->p->res;

	if (kind == PAGE_LOAD)
		res->loads++;
	else if (kind == PAGE_INVALIDATE)
		res->discards++;
	else if (f->has_copy)
		res->mapped++;
	else
		res->unmapped++;
}

/* About the page's slot. */
static void start(struct paging_memory *m, uint32_t i, enum page_kind kind)
{
	struct page_state *f = &m->page[i];
	struct slot *s;

	count_op(m, f, kind);
	while (!m->free && !m->w->p->err)
		wait_more(m);
	s = m->free;
	if (!s)
		return;
	m->free = s->next;
	s->page = i;
	s->op.page = f->at;
	s->op.kind = kind;
	if (kind == PAGE_STORE)
		put_mark(s->op.buf, i, ++f->version);
	m->busy++;
	if (page_submit(m->w->store, &(struct page_op *){&s->op}, 1) != 1)
		m->w->p->err = -EIO;
}

/* The far copy is of no use any more; nobody waits until it is discarded. */
static void give_up_slot(struct paging_memory *m, uint32_t i)
{
	struct page_state *f = &m->page[i];

	f->has_copy = false;
	f->is_dirty = true;
	if (f->at == PAGING_SWAP_NONE) /* dry */
		return;
	start(m, i, PAGE_INVALIDATE);
	paging_swap_give(m->swap, f->at);
	f->at = PAGING_SWAP_NONE;
}

static void load(struct paging_memory *m, uint32_t i)
{
	m->page[i].state = PAGE_COMING;
	m->here++;
	if (m->is_dry)
		arrived(m, i);
	else
		start(m, i, PAGE_LOAD);
}

static void store(struct paging_memory *m, uint32_t i)
{
	struct page_state *f = &m->page[i];

	f->state = PAGE_LEAVING;
	m->leaving++;
	f->is_dirty = false;
	f->is_writing = true;
	if (m->is_dry) {
		left(m, i);
		return;
	}
	if (f->at == PAGING_SWAP_NONE)
		f->at = paging_swap_take(m->swap);
	if (f->at == PAGING_SWAP_NONE)
		m->w->p->err = -ENOSPC;
	else
		start(m, i, PAGE_STORE);
}

/* ---- reclaim ------------------------------------------------------------- */

static void evict(struct paging_memory *m)
{
	uint32_t i = m->oldest;
	struct page_state *f = &m->page[i];

	unlink_page(m, i);
	f->was_ahead = false;
	if (f->is_dirty || !f->has_copy) {
		store(m, i);
		return;
	}
	f->state = PAGE_FAR;
	m->here--;
}

/* Room for `n` more: what is to leave is told so at once; the program waits
 * only if its reclaim is far behind. */
static void make_room(struct paging_memory *m, uint32_t n)
{
	uint32_t behind = (uint32_t)paging_costs.behind;

	while (m->here + n > m->local + m->leaving && m->oldest != NOBODY &&
	       !m->w->p->err) {
		const struct page_state *f = &m->page[m->oldest];

		if (f->is_writing) { /* again, before the last one ended */
			wait_more(m);
			continue;
		}
		evict(m);
	}
	while (m->here + n > m->local + behind && m->busy && !m->w->p->err)
		wait_more(m);
}

/* ---- faults -------------------------------------------------------------- */

static void pay(struct paging_memory *m)
{
	uint64_t debt_ps = m->debt_ps;

	m->debt_ps = 0;
	if (!m->is_dry && debt_ps)
		sim_fiber_sleep_ps(m->w->p->sim, debt_ps);
}

static void sample(struct paging_memory *m)
{
	struct paging *p = m->w->p;
	struct page_stats s;

	if (m->is_dry || m->faults % SAMPLE_EVERY)
		return;
	page_store_stats(m->w->store, &s);
	p->used_pages += s.used_pages;
	p->allocated_pages += p->cfg.mode == PAGE_STATIC
				      ? p->swap_pages
				      : s.allocated_bytes / PAGE_BYTES;
}

/* As Linux: the window follows what was used of the last one. */
static uint32_t next_window(struct paging_memory *m, uint32_t i)
{
	uint32_t max = (uint32_t)paging_costs.readahead, want = 1;

	if (m->ahead_used)
		want = u32_pow2_ceil(m->ahead_used + 2);
	else if (i == m->last_fault + 1 || i + 1 == m->last_fault)
		want = 2;
	want = u32_max(want, m->window / 2);
	m->window = u32_min(u32_max(want, 1), max);
	m->ahead_used = 0;
	m->last_fault = i;
	return m->window;
}

static void fault(struct paging_memory *m, uint32_t i)
{
	uint32_t window = next_window(m, i), first = i & ~(window - 1), k;

	m->faults++;
	pay(m);
	if (!m->is_dry)
		(void)harvest(m);
	make_room(m, window);
	if (m->page[i].state != PAGE_FAR)
		return; /* it was leaving when it was wanted */
	load(m, i);
	for (k = first; k < first + window && k < m->pages; k++) {
		if (m->page[k].state != PAGE_FAR)
			continue;
		m->page[k].was_ahead = true;
		load(m, k);
	}
	while (m->page[i].state == PAGE_COMING && !m->w->p->err)
		wait_more(m);
	sample(m);
}

static void first_touch(struct paging_memory *m, uint32_t i)
{
	if (!m->is_dry && m->busy)
		(void)harvest(m);
	make_room(m, 1);
	m->page[i].is_dirty = true;
	m->here++;
	arrived(m, i);
}

void paging_memory_touch(struct paging_memory *m, uint32_t i, bool writes)
{
	struct page_state *f = &m->page[i];

	m->touches++;
	m->debt_ps += m->touch_ps;
	if (f->state == PAGE_NEW) {
		pay(m);
		first_touch(m, i);
	} else if (f->state == PAGE_FAR) {
		fault(m, i);
	} else if (f->state == PAGE_LEAVING) {
		f->state = PAGE_HERE;
		m->leaving--;
		link_newest(m, i);
	} else if (f->state == PAGE_COMING) {
		pay(m);
		while (f->state == PAGE_COMING && !m->w->p->err)
			wait_more(m);
	}
	if (f->state != PAGE_HERE)
		return; /* the run has failed */
	m->ahead_used += f->was_ahead;
	f->was_ahead = false;
	f->is_dirty |= writes;
	if (m->w->p->cfg.frees && f->has_copy && !f->is_writing &&
	    (writes || paging_swap_is_full(m->swap)))
		give_up_slot(m, i);
	unlink_page(m, i);
	link_newest(m, i);
}

void paging_memory_settle(struct paging_memory *m)
{
	pay(m);
	while (m->busy && !m->is_dry && !m->w->p->err)
		wait_more(m);
}
