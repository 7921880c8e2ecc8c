/* SPDX-License-Identifier: Apache-2.0 */
/* Trays: what has left the programs and is on its way to far memory. They are
 * filled in turn, so the oldest is the next one needed; until then its pages
 * come back without a transfer. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pager_priv.h"

uint8_t *run_tray_bytes(const struct pager *p, uint32_t tray_page)
{
	return p->trays.bytes + (size_t)tray_page * RUN_PAGE_BYTES;
}

static struct tray *tray_of(struct pager *p, uint32_t tray_page)
{
	return &p->trays.tray[tray_page / RUN_BATCH_PAGES];
}

/* Scratch pages stand before the trays, so that the NIC needs one region. */
int run_trays_open(struct pager *p, uint32_t tray_count)
{
	size_t scratch = (size_t)(RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES;
	size_t bytes = (size_t)tray_count * RUN_BATCH_PAGES * RUN_PAGE_BYTES;
	struct trays *t = &p->trays;
	uint8_t *mem;

	t->fd = memfd_create("aquifer-run-trays", MFD_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	if (ftruncate(t->fd, (off_t)bytes) != 0)
		goto err_close;
	mem = mmap(NULL, scratch + bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		goto err_close;
	if (mmap(mem + scratch, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, t->fd, 0) == MAP_FAILED)
		goto err_unmap;
	t->tray = calloc(tray_count, sizeof(*t->tray));
	if (!t->tray)
		goto err_unmap;
	p->scratch = mem;
	t->bytes = mem + scratch;
	t->count = tray_count;
	for (uint32_t i = 0; i < tray_count; i++)
		t->tray[i].pager = p;
	return 0;
err_unmap:
	(void)munmap(mem, scratch + bytes);
err_close:
	(void)close(t->fd);
	return -ENOMEM;
}

void run_trays_close(struct pager *p)
{
	size_t scratch = (size_t)(RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES;

	if (!p->trays.tray)
		return;
	(void)munmap(p->scratch, scratch + (size_t)p->trays.count *
						   RUN_BATCH_PAGES *
						   RUN_PAGE_BYTES);
	(void)close(p->trays.fd);
	free(p->trays.tray);
	p->trays.tray = NULL;
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
		       ((1u << 25) - 1);
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

int run_trays_take(struct pager *p)
{
	struct trays *ts = &p->trays;
	struct tray *t = &ts->tray[ts->head];

	if (t->state == TRAY_HELD)
		run_trays_clean_ahead(p);
	if (t->state != TRAY_FREE && t->state != TRAY_CLEAN)
		return -EAGAIN;
	for (unsigned i = 0; i < RUN_BATCH_PAGES && t->live; i++) {
		struct space *s = t->page[i].space;

		if (!s)
			continue;
		s->pages.page[t->page[i].page].state = RUN_FAR;
		s->pages.page[t->page[i].page].returns = 0;
		run_tray_forget(p, ts->head * RUN_BATCH_PAGES + i);
	}
	t->state = TRAY_FILLING;
	memset(t->page, 0, sizeof(t->page));
	ts->head = (ts->head + 1) % ts->count;
	return (int)(t - ts->tray);
}

/* ---- filled ------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes)
{
	const uint64_t *w = (const uint64_t *)(const void *)bytes;

	/* The first word decides for almost every page that has something. */
	return w[0] == 0 && memcmp(bytes, bytes + 8, RUN_PAGE_BYTES - 8) == 0;
}

static void page_filled(struct pager *p, struct tray *t, unsigned i,
			struct space *s, uint64_t page)
{
	struct run_page *e = &s->pages.page[page];
	uint32_t at = (uint32_t)(t - p->trays.tray) * RUN_BATCH_PAGES + i;
	const uint8_t *bytes = run_tray_bytes(p, at);
	XXH128_hash_t h;

	if (is_zero(bytes)) {
		count(&p->stats->evicted_zero, 1);
		run_space_set_gone(p, s, page, RUN_UNTOUCHED);
		return;
	}
	h = XXH3_128bits(bytes, RUN_PAGE_BYTES);
	run_space_set_gone(p, s, page, RUN_STAGED);
	set_staged(p, t, i, s, page);
	t->page[i].hash[0] = h.low64;
	t->page[i].hash[1] = h.high64;
	t->page[i].is_dirty =
		!e->slot || e->hash[0] != h.low64 || e->hash[1] != h.high64;
	if (!t->page[i].is_dirty)
		count(&p->stats->evicted_clean, 1);
}

void run_tray_filled(struct pager *p, uint32_t tray, struct space *s,
		     const struct leaving *l, uint64_t failed)
{
	struct tray *t = &p->trays.tray[tray];
	bool is_dirty = false;

	for (unsigned i = 0; i < l->count; i++) {
		if (failed >> i & 1)
			continue;
		page_filled(p, t, i, s, l->page[i]);
		is_dirty |= t->page[i].is_dirty;
		count(&p->stats->evicted, 1);
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

/* What found no slot is dirty still. */
static void stored_one(struct tray *t)
{
	if (--t->storing == 0)
		t->state = has_dirty(t, NULL) ? TRAY_HELD : TRAY_CLEAN;
}

static void store_ended(struct far_user *u, struct page_op *op)
{
	struct tray *t = container_of(u, struct tray, user);
	struct tray_page *e = &t->page[op - t->op];

	if (op->result && e->space) {
		/* Its bytes are still here; without a place to go they stay
		 * until the tray is needed, and are lost then. */
		e->space->pages.page[e->page].state = RUN_LOST;
		run_tray_forget(t->pager, (uint32_t)(t - t->pager->trays.tray) *
							  RUN_BATCH_PAGES +
						  (uint32_t)(op - t->op));
	}
	stored_one(t);
}

/* A slot of its own: what others share stays as it is. */
static bool give_slot(struct pager *p, struct run_page *e)
{
	uint32_t slot;

	if (e->slot && !run_far_slot_is_shared(&p->far, e->slot))
		return true;
	slot = run_far_slot_new(&p->far);
	if (!slot)
		return false;
	if (e->slot)
		run_far_slot_put(&p->far, e->slot);
	e->slot = slot;
	return true;
}

static void tray_store(struct pager *p, struct tray *t)
{
	uint32_t first = (uint32_t)(t - p->trays.tray) * RUN_BATCH_PAGES;

	t->state = TRAY_STORING;
	t->user.ended = store_ended;
	t->storing = 1; /* ours, until all are started */
	for (unsigned i = 0; i < RUN_BATCH_PAGES; i++) {
		struct tray_page *tp = &t->page[i];
		struct run_page *e;

		if (!tp->space || !tp->is_dirty)
			continue;
		e = &tp->space->pages.page[tp->page];
		if (!give_slot(p, e)) {
			/* It stays here, and so does the tray. */
			run_pager_complain(p, NULL);
			break;
		}
		tp->is_dirty = false;
		memcpy(e->hash, tp->hash, sizeof(e->hash));
		t->storing++;
		t->op[i] = (struct page_op){.buf = run_tray_bytes(p, first + i),
					    .cookie = &t->user};
		count(&p->stats->stored, 1);
		run_far_store(&p->far, e->slot, &t->op[i]);
	}
	stored_one(t);
	show(&p->stats->far_pages, p->far.used);
	show_peak(&p->stats->far_peak, p->far.used);
}

void run_trays_clean_ahead(struct pager *p)
{
	struct trays *ts = &p->trays;
	uint32_t ahead = u32_max(2, ts->count / 8);

	for (uint32_t i = 0; i < ahead; i++) {
		struct tray *t = &ts->tray[(ts->head + i) % ts->count];

		if (t->state == TRAY_HELD)
			tray_store(p, t);
	}
}

void run_trays_flush(struct pager *p, const struct space *s)
{
	for (uint32_t i = 0; i < p->trays.count; i++)
		if (p->trays.tray[i].state == TRAY_HELD &&
		    has_dirty(&p->trays.tray[i], s))
			tray_store(p, &p->trays.tray[i]);
	for (run_far_poll(&p->far); run_far_is_busy(&p->far);
	     run_far_poll(&p->far))
		(void)sched_yield();
}
