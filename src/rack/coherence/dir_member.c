/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a member of the directory: those of a former term, those that join,
 * those that are gone, and what they leave. */
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "dir_priv.h"

void coh_dir_init(struct coh_dir *d, uint32_t term, uint16_t unclean, bool lost)
{
	ASSERT(d->machines <= COH_MACHINES_MAX && d->lanes <= COH_LANES_MAX);
	ASSERT(d->entry_count && d->region_pages &&
	       !(d->region_pages & (d->region_pages - 1)) &&
	       d->region_pages <= COH_REGION_PAGES_MAX);
	ASSERT(d->bucket_count && !(d->bucket_count & (d->bucket_count - 1)));
	d->term = term;
	d->members = d->unclean = unclean;
	d->first = d->last = COH_SLOT_NONE;
	d->seq = d->hand = d->recalls = d->lost_count = d->room_count = 0;
	d->lost = lost;
	d->new_pages = d->region_pages;
	memset(d->counters, 0, sizeof(d->counters));
	memset(d->slots, 0, sizeof(*d->slots) * d->machines * d->lanes);
	coh_pool_init(d);
}

void coh_dir_set_lost(struct coh_dir *d, const struct coh_range *region)
{
	uint8_t order = 0;

	while (order + 1 < COH_ORDERS && 1u << order < region->count)
		order++;
	if (coh_dir_lookup(d, region->page))
		return;
	if (d->free == COH_ENTRY_NONE || 1u << order != region->count ||
	    region->page % region->count ||
	    !coh_pool_is_vacant(d, region->page, order)) {
		d->counters[COH_DIR_C_lost]++; /* the keeper looks */
		d->lost = true;
		return;
	}
	coh_pool_take(d, region->page, order)->state = COH_DIR_LOST;
	d->lost_count++;
}

int coh_dir_join(struct coh_dir *d, uint8_t machine)
{
	if (machine >= d->machines || d->members & coh_bit(machine))
		return -EINVAL;
	for (uint8_t i = 0; i < d->lanes; i++)
		if (d->slots[machine * d->lanes + i].state != COH_SLOT_FREE)
			return -EBUSY;
	for (uint8_t i = 0; i < d->lanes; i++)
		d->slots[machine * d->lanes + i] = (struct coh_dir_slot){0};
	d->members |= coh_bit(machine);
	return 0;
}

void coh_dir_clean(struct coh_dir *d, uint8_t machine, uint32_t term,
		   struct coh_dir_out *out)
{
	out->count = 0;
	if (machine >= d->machines || term != d->term)
		return;
	d->unclean &= (uint16_t)~coh_bit(machine);
	if (d->lost)
		return;
	coh_room_serve(d, out);
	coh_pool_make_room(d, out);
}

/* ---- the dead ------------------------------------------------------------ */

bool coh_dir_goes_on(const struct coh_dir *d, uint64_t page)
{
	uint32_t low = 0, high = d->goes_on_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (d->goes_on[mid].page + d->goes_on[mid].count <= page)
			low = mid + 1;
		else
			high = mid;
	}
	return d->keep_going ||
	       (low < d->goes_on_count && d->goes_on[low].page <= page);
}

/* The owner's stores are gone. True: memory's bytes count. */
static bool lose(struct coh_dir *d, bool goes_on)
{
	d->counters[COH_DIR_C_lost]++;
	if (goes_on)
		d->counters[COH_DIR_C_old_bytes]++;
	return goes_on || PLANTED(mind_forget_owner);
}

static void mark_lost(struct coh_dir *d, struct coh_dir_entry *e,
		      struct coh_dir_out *out)
{
	/* Who was given the owner's bytes has those that memory has. */
	bool had = e->gainer != COH_NOBODY && e->asker == COH_SLOT_NONE;

	d->recalls -= e->state == COH_DIR_RECALL;
	d->lost_count++;
	e->state = COH_DIR_LOST;
	e->sharers = had ? coh_bit(e->gainer) : 0;
	e->waiting = 0;
	if (e->asker != COH_SLOT_NONE)
		coh_dir_refuse(d, e->asker, COH_DIR_REFUSE_LOST, out);
	e->asker = COH_SLOT_NONE;
	e->gainer = COH_NOBODY;
	e->owned = false;
	coh_dir_settle(d, e, out);
	coh_pool_make_room(d, out);
}

static void leave_entry(struct coh_dir *d, struct coh_dir_entry *e,
			uint8_t machine, struct coh_dir_out *out)
{
	uint16_t b = coh_bit(machine);
	bool owner = (e->state == COH_DIR_MODIFIED && e->sharers == b) ||
		     (is_busy(e) && e->owned && e->waiting & b);

	if (e->gainer == machine)
		e->gainer = COH_NOBODY;
	if (owner && !lose(d, coh_dir_goes_on(d, e->page))) {
		mark_lost(d, e, out);
		return;
	}
	if (!(e->sharers & b))
		return;
	e->sharers &= (uint16_t)~b;
	if (e->waiting & b)
		coh_dir_arrived(d, e, machine, out);
	else if (!is_busy(e) && !e->sharers)
		coh_dir_settle(d, e, out);
}

static void leave_slot(struct coh_dir *d, uint16_t slot)
{
	struct coh_dir_slot *s = &d->slots[slot];
	struct coh_dir_entry *e = coh_dir_lookup(d, s->page);

	switch ((enum coh_slot_state)s->state) {
	case COH_SLOT_QUEUED:
		coh_queue_remove(d, &e->first, &e->last, slot);
		s->state = COH_SLOT_FREE;
		break;
	case COH_SLOT_ROOM:
		coh_room_leave(d, slot);
		s->state = COH_SLOT_FREE;
		break;
	case COH_SLOT_FETCHING:
	case COH_SLOT_GRANTED:
		s->state = COH_SLOT_ORPHAN;
		break;
	case COH_SLOT_ASKING:
	case COH_SLOT_HOLDING:
		s->state = COH_SLOT_FREE;
		break;
	case COH_SLOT_FREE:
	case COH_SLOT_ORPHAN:
		break;
	}
	if (e && e->asker == slot)
		e->asker = COH_SLOT_NONE;
}

/* Before its entries: lanes that nobody listens to any more. */
static void leave(struct coh_dir *d, uint8_t machine, struct coh_dir_out *out)
{
	uint16_t b = coh_bit(machine);

	for (uint8_t i = 0; i < d->lanes; i++)
		leave_slot(d, (uint16_t)(machine * d->lanes + i));
	d->members &= (uint16_t)~b;
	if (!(d->unclean & b))
		return;
	d->unclean &= (uint16_t)~b;
	d->lost |= !lose(d, d->keep_going);
	if (d->lost)
		coh_room_lost(d, out);
	else
		coh_room_serve(d, out);
}

bool coh_dir_gone(struct coh_dir *d, uint8_t machine, uint32_t *at,
		  struct coh_dir_out *out)
{
	struct coh_dir_entry *e = &d->entries[*at];

	out->count = 0;
	ASSERT(machine < d->machines && *at < d->entry_count);
	if (!*at)
		leave(d, machine, out);
	if (e->state != COH_DIR_FREE)
		leave_entry(d, e, machine, out);
	return ++*at < d->entry_count;
}

int coh_dir_repair(struct coh_dir *d, uint64_t page, struct coh_dir_out *out)
{
	struct coh_dir_entry *e = coh_dir_lookup(d, page);

	out->count = 0;
	if (d->unclean)
		return -EBUSY;
	if (d->lost && d->goes_on_count)
		d->counters[COH_DIR_C_old_bytes]++;
	d->lost = false;
	if (e && e->state == COH_DIR_LOST) {
		d->lost_count--;
		e->state = COH_DIR_SHARED;
		coh_dir_settle(d, e, out);
	}
	coh_room_serve(d, out);
	coh_pool_make_room(d, out);
	return 0;
}
