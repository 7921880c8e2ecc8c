/* SPDX-License-Identifier: Apache-2.0 */
/* The directory's entries by region, those that are free, recalls, and the
 * queues of gets. */
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

static uint64_t region_of(const struct coh_dir *d, uint64_t page)
{
	return page & ~(uint64_t)(d->region_pages - 1);
}

static uint32_t *bucket_of(const struct coh_dir *d, uint64_t page)
{
	uint64_t h = region_of(d, page) / d->region_pages;

	/* Neighbours in different buckets; high bits count, too. */
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return &d->buckets[(h >> 32) & (d->bucket_count - 1)];
}

struct coh_dir_entry *coh_dir_lookup(const struct coh_dir *d, uint64_t page)
{
	uint32_t i = *bucket_of(d, page);

	while (i != COH_ENTRY_NONE && d->entries[i].page != region_of(d, page))
		i = d->entries[i].next;
	return i == COH_ENTRY_NONE ? NULL : &d->entries[i];
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
	d->free = 0;
}

struct coh_dir_entry *coh_pool_take(struct coh_dir *d, uint64_t page)
{
	uint32_t *bucket = bucket_of(d, page);
	uint32_t i = d->free;
	struct coh_dir_entry *e = &d->entries[i];

	d->free = e->next;
	*e = (struct coh_dir_entry){
		.page = region_of(d, page),
		.state = COH_DIR_SHARED,
		.asker = COH_SLOT_NONE,
		.first = COH_SLOT_NONE,
		.last = COH_SLOT_NONE,
		.gainer = COH_NOBODY,
		.next = *bucket,
	};
	*bucket = i;
	return e;
}

void coh_pool_free(struct coh_dir *d, struct coh_dir_entry *e)
{
	uint32_t *at = bucket_of(d, e->page);
	uint32_t i = (uint32_t)(e - d->entries);

	while (*at != i)
		at = &d->entries[*at].next;
	*at = e->next;
	*e = (struct coh_dir_entry){.state = COH_DIR_FREE, .next = d->free};
	d->free = i;
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

void coh_room_refuse(struct coh_dir *d, struct coh_dir_out *out)
{
	while (d->first != COH_SLOT_NONE) {
		uint16_t slot = coh_queue_pop(d, &d->first, &d->last);

		d->room_count--;
		coh_dir_refuse(d, slot, COH_DIR_REFUSE_LOST, out);
	}
}

/* The first one may wait for a region that has an entry by now, because the one
 * before it took that. */
void coh_room_serve(struct coh_dir *d, struct coh_dir_out *out)
{
	if (d->unclean && !PLANTED(mind_no_clean))
		return;
	/* Each may invalidate a whole entry. */
	while (d->first != COH_SLOT_NONE &&
	       out->count + 2 * COH_MACHINES_MAX < COH_DIR_OUT_MAX) {
		uint64_t page = d->slots[d->first].page;
		struct coh_dir_entry *e = coh_dir_lookup(d, page);

		if (!e && d->free == COH_ENTRY_NONE)
			return;
		if (!e)
			e = coh_pool_take(d, page);
		d->room_count--;
		coh_dir_start(d, e, coh_queue_pop(d, &d->first, &d->last), out);
	}
}

/* Who waits for the machines of a former term needs no entry yet. */
bool coh_pool_is_wanted(const struct coh_dir *d)
{
	return !d->unclean && d->free == COH_ENTRY_NONE &&
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
		coh_room_refuse(d, out);
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
