/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots that nobody refers to any more, whose pages the nodes still have. Nodes
 * are told in the background, some at a time: a program may give up thousands
 * of pages in one call, and nobody waits for a round trip each. Who needs a
 * slot meanwhile takes one of these first, because a page that has its place
 * already is stored with less work.
 */
#include "far.h"

void run_far_drop_later(struct far *f, uint32_t slot)
{
	f->drops.slot[f->drops.count++] = slot;
}

uint32_t run_far_drop_take(struct far *f)
{
	return f->drops.count ? f->drops.slot[--f->drops.count] : 0;
}

bool run_far_is_dropping(const struct far *f)
{
	return f->drops.under_way > 0;
}

/* Those whose pages are gone can be used again, and also if a node could not be
 * told: what it keeps goes with the store. */
static bool collect(struct far *f)
{
	struct far_drops *d = &f->drops;

	/* RUN-F1 */
	if (!d->under_way ||
	    atomic_load_explicit(&d->user.left, memory_order_acquire))
		return false;
	while (d->under_way)
		f->free[f->free_count++] = d->leaving[--d->under_way];
	return true;
}

/* With f->lock. As many as the stores take now. */
static void start(struct far *f)
{
	struct far_drops *d = &f->drops;
	unsigned want = u32_min(d->count, FAR_DROPS), n = 0;

	/* Those that end at once must not bring it to 0 before all are in. */
	atomic_store_explicit(&d->user.left, want, memory_order_relaxed);
	while (n < want) {
		uint32_t slot = d->slot[d->count - 1];

		d->op[n] = (struct page_op){.kind = PAGE_INVALIDATE,
					    .cookie = &d->user};
		if (!run_far_try(f, slot, &d->op[n]))
			break;
		d->leaving[n++] = slot;
		d->count--;
	}
	/* RUN-F1 */
	(void)atomic_fetch_sub_explicit(&d->user.left, want - n,
					memory_order_release);
	d->under_way = n;
}

unsigned run_far_drop_step(struct far *f, bool is_idle)
{
	struct far_drops *d = &f->drops;

	if (!d->under_way && d->count < (is_idle ? 1 : FAR_DROPS))
		return 0;
	lock_take(&f->lock);
	run_far_poll_locked(f);
	(void)collect(f);
	if (d->under_way || d->count < (is_idle ? 1 : FAR_DROPS)) {
		lock_drop(&f->lock);
		return 0;
	}
	start(f);
	lock_drop(&f->lock);
	return d->under_way;
}

void run_far_drop_end(struct far *f)
{
	if (f->drops.under_way)
		run_far_await(f, &f->drops.user);
	(void)collect(f);
}
