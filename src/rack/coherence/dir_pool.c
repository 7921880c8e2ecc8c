/* SPDX-License-Identifier: Apache-2.0 */
/* The directory's entries by region, those that are free, recalls, and the
 * queues of gets. */
#include <string.h>

#include "base/plant.h"
#include "dir_priv.h"

/* ---- queues -------------------------------------------------------------- */

void coh_queue_push(struct coh_dir *d, uint16_t *first, uint16_t *last,
		    uint16_t slot)
{
	d->slots[slot].next = COH_SLOT_NONE;
	if (*first == COH_SLOT_NONE)
		*first = slot;
	else
		d->slots[*last].next = slot;
	*last = slot;
}

uint16_t coh_queue_pop(struct coh_dir *d, uint16_t *first, uint16_t *last)
{
	uint16_t slot = *first;

	*first = d->slots[slot].next;
	if (*first == COH_SLOT_NONE)
		*last = COH_SLOT_NONE;
	return slot;
}

void coh_queue_remove(struct coh_dir *d, uint16_t *first, uint16_t *last,
		      uint16_t slot)
{
	uint16_t before = COH_SLOT_NONE;
	uint16_t at = *first;

	while (at != slot) {
		ASSERT(at != COH_SLOT_NONE);
		before = at;
		at = d->slots[at].next;
	}
	if (before == COH_SLOT_NONE)
		*first = d->slots[slot].next;
	else
		d->slots[before].next = d->slots[slot].next;
	if (*last == slot)
		*last = before;
}

/* ---- entries ------------------------------------------------------------- */

static uint64_t base_of(uint64_t page, uint8_t order)
{
	return page >> order << order;
}

/* By the first page: neighbours in different buckets; high bits count, too. */
static uint32_t *bucket_of(const struct coh_dir *d, uint64_t base)
{
	uint64_t h = (base ^ base >> 32) * 0x9e3779b97f4a7c15ull;

	return &d->buckets[(h >> 32) & (d->bucket_count - 1)];
}

static struct coh_dir_entry *find_at(const struct coh_dir *d, uint64_t base,
				     uint8_t order)
{
	uint32_t i = *bucket_of(d, base);

	while (i != COH_ENTRY_NONE &&
	       (d->entries[i].page != base || d->entries[i].order != order))
		i = d->entries[i].next;
	return i == COH_ENTRY_NONE ? NULL : &d->entries[i];
}

/* One probe for each size that there is. */
struct coh_dir_entry *coh_dir_lookup(const struct coh_dir *d, uint64_t page)
{
	for (uint8_t o = 0; o < COH_ORDERS; o++) {
		struct coh_dir_entry *e =
			d->order_count[o] ? find_at(d, base_of(page, o), o)
					  : NULL;

		if (e)
			return e;
	}
	return NULL;
}

bool coh_pool_is_vacant(const struct coh_dir *d, uint64_t base, uint8_t order)
{
	for (uint8_t o = 0; o < order; o++)
		for (uint64_t at = 0; d->order_count[o] && at < 1ull << order;
		     at += 1ull << o)
			if (find_at(d, base + at, o))
				return false;
	return !coh_dir_lookup(d, base);
}

bool coh_pool_is_covered(const struct coh_dir *d, const struct coh_dir_entry *e)
{
	for (uint8_t o = (uint8_t)(e->order + 1); o < COH_ORDERS; o++)
		if (find_at(d, base_of(e->page, o), o))
			return true;
	return false;
}

uint8_t coh_pool_order(const struct coh_dir *d, uint64_t page)
{
	uint8_t order = (uint8_t)__builtin_ctz(d->new_pages);

	while (order && !coh_pool_is_vacant(d, base_of(page, order), order))
		order--;
	return order;
}

const struct coh_dir_entry *coh_dir_find(const struct coh_dir *d, uint64_t page)
{
	return coh_dir_lookup(d, page);
}

void coh_pool_init(struct coh_dir *d)
{
	for (uint32_t i = 0; i < d->bucket_count; i++)
		d->buckets[i] = COH_ENTRY_NONE;
	for (uint32_t i = 0; i < d->entry_count; i++)
		d->entries[i] = (struct coh_dir_entry){
			.state = COH_DIR_FREE,
			.next = i + 1 < d->entry_count ? i + 1 : COH_ENTRY_NONE,
		};
	d->free = d->used = 0;
	memset(d->order_count, 0, sizeof(d->order_count));
}

static void link_entry(struct coh_dir *d, struct coh_dir_entry *e)
{
	uint32_t *bucket = bucket_of(d, e->page);

	e->next = *bucket;
	*bucket = (uint32_t)(e - d->entries);
	d->order_count[e->order]++;
}

static void unlink_entry(struct coh_dir *d, const struct coh_dir_entry *e)
{
	uint32_t *at = bucket_of(d, e->page);

	while (*at != (uint32_t)(e - d->entries))
		at = &d->entries[*at].next;
	*at = e->next;
	d->order_count[e->order]--;
}

struct coh_dir_entry *coh_pool_take(struct coh_dir *d, uint64_t page,
				    uint8_t order)
{
	struct coh_dir_entry *e = &d->entries[d->free];

	d->free = e->next;
	d->used++;
	*e = (struct coh_dir_entry){
		.page = base_of(page, order),
		.order = order,
		.state = COH_DIR_SHARED,
		.asker = COH_SLOT_NONE,
		.first = COH_SLOT_NONE,
		.last = COH_SLOT_NONE,
		.gainer = COH_NOBODY,
	};
	link_entry(d, e);
	return e;
}

void coh_pool_free(struct coh_dir *d, struct coh_dir_entry *e)
{
	unlink_entry(d, e);
	*e = (struct coh_dir_entry){.state = COH_DIR_FREE, .next = d->free};
	d->free = (uint32_t)(e - d->entries);
	d->used--;
}

/* ---- sizes --------------------------------------------------------------- */

/* A machine that is gone has it still: coh_dir_gone has not been there. What it
 * has must not go where that has been already, or it has it for ever. */
static bool has_gone(const struct coh_dir *d, const struct coh_dir_entry *e)
{
	return e->sharers & ~d->members && !PLANTED(mind_split_gone);
}

bool coh_dir_split(struct coh_dir *d, struct coh_dir_entry *e)
{
	struct coh_dir_entry *right;

	if (!is_idle(e) || !e->order || d->free == COH_ENTRY_NONE ||
	    has_gone(d, e))
		return false;
	d->order_count[e->order]--;
	e->order--;
	d->order_count[e->order]++;
	e->false_invals /= 2;
	right = coh_pool_take(d, e->page + coh_dir_pages(e), e->order);
	right->state = e->state;
	right->sharers = e->sharers;
	right->false_invals = e->false_invals;
	if (PLANTED(mind_split_forgets))
		right->sharers &= (uint16_t)(right->sharers - 1);
	return true;
}

bool coh_dir_merge(struct coh_dir *d, struct coh_dir_entry *e)
{
	uint64_t at = e->page + coh_dir_pages(e);
	struct coh_dir_entry *right = coh_dir_lookup(d, at);

	if (!is_idle(e) || e->order + 1 == COH_ORDERS ||
	    e->page & coh_dir_pages(e) || has_gone(d, e))
		return false;
	if (right) {
		if (right->order != e->order || right->state != e->state ||
		    has_gone(d, right) ||
		    (e->state == COH_DIR_MODIFIED &&
		     right->sharers != e->sharers &&
		     !PLANTED(mind_join_owners)))
			return false;
		e->sharers |= right->sharers;
		e->false_invals += right->false_invals;
		coh_pool_free(d, right);
	} else if (!coh_pool_is_vacant(d, at, e->order)) {
		return false;
	}
	d->order_count[e->order]--;
	e->order++;
	d->order_count[e->order]++;
	return true;
}

/* ---- gets that wait for an entry ----------------------------------------- */

void coh_room_wait(struct coh_dir *d, uint16_t slot)
{
	d->slots[slot].state = COH_SLOT_ROOM;
	coh_queue_push(d, &d->first, &d->last, slot);
	d->room_count++;
}

void coh_room_leave(struct coh_dir *d, uint16_t slot)
{
	coh_queue_remove(d, &d->first, &d->last, slot);
	d->room_count--;
}

static void refuse_all(struct coh_dir *d, struct coh_dir_out *out)
{
	while (d->first != COH_SLOT_NONE) {
		uint16_t slot = coh_queue_pop(d, &d->first, &d->last);

		d->room_count--;
		coh_dir_refuse(d, slot, COH_DIR_REFUSE_LOST, out);
	}
}

void coh_room_lost(struct coh_dir *d, struct coh_dir_out *out)
{
	for (uint16_t slot = d->first, next; slot != COH_SLOT_NONE;
	     slot = next) {
		next = d->slots[slot].next;
		if (coh_dir_goes_on(d, d->slots[slot].page))
			continue;
		coh_room_leave(d, slot);
		coh_dir_refuse(d, slot, COH_DIR_REFUSE_LOST, out);
	}
}

/* The first one may wait for a region that has an entry by now, because the one
 * before it took that. */
void coh_room_serve(struct coh_dir *d, struct coh_dir_out *out)
{
	if (d->lost || (d->unclean && !PLANTED(mind_no_clean)))
		return;
	/* Each may invalidate a whole entry. */
	while (d->first != COH_SLOT_NONE &&
	       out->count + 2 * COH_MACHINES_MAX < COH_DIR_OUT_MAX) {
		uint64_t page = d->slots[d->first].page;
		struct coh_dir_entry *e = coh_dir_lookup(d, page);

		if (!e && d->free == COH_ENTRY_NONE)
			return;
		if (!e)
			e = coh_pool_take(d, page, coh_pool_order(d, page));
		d->room_count--;
		coh_dir_start(d, e, coh_queue_pop(d, &d->first, &d->last), out);
	}
}

/* Who waits for the machines of a former term, or until memory's bytes count,
 * needs no entry yet. */
bool coh_pool_is_wanted(const struct coh_dir *d)
{
	return !d->unclean && !d->lost && d->free == COH_ENTRY_NONE &&
	       d->recalls < d->room_count && !PLANTED(mind_no_room);
}

void coh_pool_recall(struct coh_dir *d, struct coh_dir_entry *e,
		     struct coh_dir_out *out)
{
	coh_dir_invalidate(d, e, e->sharers, COH_NONE, e->page, out);
	e->state = COH_DIR_RECALL;
	d->recalls++;
	d->counters[COH_DIR_C_recalls]++;
}

void coh_pool_make_room(struct coh_dir *d, struct coh_dir_out *out)
{
	if (d->lost_count == d->entry_count)
		refuse_all(d, out);
	if (!coh_pool_is_wanted(d))
		return;
	for (uint32_t n = 0; n < COH_DIR_SCAN_MAX && n < d->entry_count; n++) {
		struct coh_dir_entry *e = &d->entries[d->hand];

		d->hand = (d->hand + 1) % d->entry_count;
		if (is_idle(e)) {
			coh_pool_recall(d, e, out);
			return;
		}
	}
}

void coh_dir_tick(struct coh_dir *d, struct coh_dir_out *out)
{
	out->count = 0;
	coh_room_serve(d, out);
	coh_pool_make_room(d, out);
}

void coh_dir_recall(struct coh_dir *d, uint64_t page, struct coh_dir_out *out)
{
	struct coh_dir_entry *e = coh_dir_lookup(d, page);

	out->count = 0;
	if (e && is_idle(e))
		coh_pool_recall(d, e, out);
}
