/* SPDX-License-Identifier: Apache-2.0 */
/* The directory's transitions: what machines say and what it answers. */
#include <string.h>

#include "base/plant.h"
#include "dir_priv.h"

struct coh_dir_action *coh_dir_push(struct coh_dir_out *out,
				    enum coh_dir_action_kind kind)
{
	struct coh_dir_action *a;

	ASSERT(out->count < COH_DIR_OUT_MAX);
	a = &out->action[out->count++];
	*a = (struct coh_dir_action){.kind = kind};
	return a;
}

static void push_slot(struct coh_dir *d, uint16_t slot,
		      enum coh_dir_action_kind kind, struct coh_dir_out *out)
{
	struct coh_dir_action *a = coh_dir_push(out, kind);

	a->machine = slot_machine(d, slot);
	a->lane = (uint8_t)(slot % d->lanes);
	a->page = d->slots[slot].page;
	a->right = (enum coh_right)d->slots[slot].right;
}

/* ---- answers ------------------------------------------------------------- */

static void decide(struct coh_dir_slot *s)
{
	if (!PLANTED(mind_grant_late))
		s->granted = s->serial;
}

static void answer(struct coh_dir *d, uint16_t slot,
		   enum coh_dir_action_kind kind, struct coh_dir_out *out)
{
	d->slots[slot].granted = d->slots[slot].serial;
	d->slots[slot].state = COH_SLOT_FREE;
	push_slot(d, slot, kind, out);
}

static void grant(struct coh_dir *d, uint16_t slot, struct coh_dir_out *out)
{
	decide(&d->slots[slot]);
	d->slots[slot].state = COH_SLOT_GRANTED;
	push_slot(d, slot, COH_DIR_READ, out);
}

void coh_dir_refuse(struct coh_dir *d, uint16_t slot,
		    enum coh_dir_action_kind kind, struct coh_dir_out *out)
{
	/* Memory is read only for those who need not fear a loss. */
	ASSERT(d->slots[slot].state != COH_SLOT_FETCHING);
	d->slots[slot].state = COH_SLOT_FREE;
	push_slot(d, slot, kind, out);
}

void coh_dir_read_done(struct coh_dir *d, uint8_t machine, uint8_t lane,
		       struct coh_dir_out *out)
{
	uint16_t slot = (uint16_t)(machine * d->lanes + lane);
	struct coh_dir_slot *s = &d->slots[slot];

	out->count = 0;
	ASSERT(machine < d->machines && lane < d->lanes);
	if (s->state == COH_SLOT_ORPHAN) {
		s->state = COH_SLOT_FREE;
	} else if (s->state == COH_SLOT_FETCHING) {
		s->state = COH_SLOT_HOLDING;
		push_slot(d, slot, COH_DIR_HOLD, out);
	} else {
		ASSERT(s->state == COH_SLOT_GRANTED);
		answer(d, slot, COH_DIR_ANSWER, out);
	}
}

/* ---- gets ---------------------------------------------------------------- */

void coh_dir_invalidate(struct coh_dir *d, struct coh_dir_entry *e,
			uint16_t machines, enum coh_right to, uint64_t target,
			struct coh_dir_out *out)
{
	e->owned = e->state == COH_DIR_MODIFIED;
	e->waiting = machines;
	e->seq = ++d->seq;
	for (uint8_t m = 0; m < d->machines; m++) {
		struct coh_dir_action *a;

		if (!(machines & coh_bit(m)))
			continue;
		a = coh_dir_push(out, COH_DIR_INVAL);
		a->machine = m;
		a->inval = (struct coh_inval){
			.range = {e->page, coh_dir_pages(e)},
			.target = target,
			.term = d->term,
			.seq = e->seq,
			.to = to,
		};
		for (uint8_t i = 0; i < d->lanes; i++)
			a->inval.granted[i] =
				d->slots[m * d->lanes + i].granted;
		d->counters[COH_DIR_C_invals]++;
	}
}

/* Somebody else may have what this slot asks for. */
static void ask(struct coh_dir *d, struct coh_dir_entry *e, uint16_t slot,
		struct coh_dir_out *out)
{
	struct coh_dir_slot *s = &d->slots[slot];
	uint8_t b = slot_machine(d, slot);
	bool shared = e->state == COH_DIR_SHARED;
	enum coh_right to = s->right == COH_WRITE ? COH_NONE : COH_READ;

	coh_dir_invalidate(d, e, e->sharers & (uint16_t)~coh_bit(b), to,
			   s->page, out);
	e->state =
		s->right == COH_WRITE ? COH_DIR_TO_MODIFIED : COH_DIR_TO_SHARED;
	e->asker = slot;
	e->gainer = b;
	s->state = shared ? COH_SLOT_FETCHING : COH_SLOT_ASKING;
	if (shared)
		push_slot(d, slot, COH_DIR_READ, out);
}

void coh_dir_start(struct coh_dir *d, struct coh_dir_entry *e, uint16_t slot,
		   struct coh_dir_out *out)
{
	struct coh_dir_slot *s = &d->slots[slot];
	uint16_t b = coh_bit(slot_machine(d, slot));
	bool alone = !(e->sharers & ~b);

	if (e->state == COH_DIR_LOST) {
		coh_dir_refuse(d, slot, COH_DIR_REFUSE_LOST, out);
	} else if (is_busy(e)) {
		d->counters[COH_DIR_C_waits]++;
		s->state = COH_SLOT_QUEUED;
		coh_queue_push(d, &e->first, &e->last, slot);
	} else if (alone ||
		   (e->state == COH_DIR_SHARED && s->right == COH_READ)) {
		if (s->right == COH_WRITE)
			e->state = COH_DIR_MODIFIED;
		e->sharers |= b;
		grant(d, slot, out);
	} else {
		ask(d, e, slot, out);
	}
}

/* A member asks on a lane that carries no other get. */
static bool is_welcome(const struct coh_dir *d, const struct coh_get *get)
{
	return get->machine < d->machines && get->lane < d->lanes &&
	       d->members & coh_bit(get->machine) &&
	       (get->right == COH_READ || get->right == COH_WRITE) &&
	       d->slots[get->machine * d->lanes + get->lane].state ==
		       COH_SLOT_FREE;
}

void coh_dir_get(struct coh_dir *d, const struct coh_get *get,
		 struct coh_dir_out *out)
{
	uint16_t slot = (uint16_t)(get->machine * d->lanes + get->lane);
	struct coh_dir_entry *e = coh_dir_lookup(d, get->page);

	out->count = 0;
	if (!is_welcome(d, get)) {
		struct coh_dir_action *a =
			coh_dir_push(out, COH_DIR_REFUSE_GET);

		a->machine = get->machine;
		a->lane = get->lane;
		a->page = get->page;
		d->counters[COH_DIR_C_refused_gets]++;
		return;
	}
	d->slots[slot].page = get->page;
	d->slots[slot].serial = get->serial;
	d->slots[slot].right = (uint8_t)get->right;
	if (d->lost && !coh_dir_goes_on(d, get->page)) {
		coh_dir_refuse(d, slot, COH_DIR_REFUSE_LOST, out);
	} else if (e && !d->lost) {
		coh_dir_start(d, e, slot, out);
	} else {
		coh_room_wait(d, slot);
		coh_room_serve(d, out);
		coh_pool_make_room(d, out);
	}
}

/* ---- what comes back ----------------------------------------------------- */

/* Whether this machine may have stores in the region. */
static bool is_owner(const struct coh_dir_entry *e, uint8_t machine)
{
	if (e->state == COH_DIR_MODIFIED)
		return e->sharers == coh_bit(machine);
	return is_busy(e) && e->owned && (e->waiting & coh_bit(machine));
}

static void take_target(struct coh_dir *d, struct coh_dir_entry *e,
			struct coh_dir_out *out)
{
	struct coh_dir_slot *s = &d->slots[e->asker];

	if (e->state == COH_DIR_TO_SHARED || PLANTED(mind_answer_early)) {
		/* A reader needs no more than these bytes: the owner has
		 * protected the whole region before it gave them. */
		answer(d, e->asker, COH_DIR_ANSWER, out);
		e->asker = COH_SLOT_NONE;
	} else {
		s->state = COH_SLOT_HOLDING;
		push_slot(d, e->asker, COH_DIR_HOLD, out);
	}
}

void coh_dir_give(struct coh_dir *d, uint8_t machine, uint64_t page,
		  struct coh_dir_out *out)
{
	struct coh_dir_entry *e = coh_dir_lookup(d, page);
	bool cleans = machine < d->machines && d->unclean & coh_bit(machine);
	struct coh_dir_action *a;

	out->count = 0;
	a = coh_dir_push(out, COH_DIR_REFUSE_GIVE);
	a->machine = machine;
	a->page = page;
	if (machine >= d->machines ||
	    (!cleans && (!e || !is_owner(e, machine)))) {
		d->counters[COH_DIR_C_refused_gives]++;
		return;
	}
	a->kind = COH_DIR_WRITE;
	if (cleans || !is_busy(e))
		return;
	if (e->asker != COH_SLOT_NONE && d->slots[e->asker].page == page &&
	    d->slots[e->asker].state == COH_SLOT_ASKING) {
		take_target(d, e, out);
	} else if (e->state != COH_DIR_RECALL) {
		/* Nobody asks for a page of a region that is recalled. To split
		 * it for that would need more entries where they are few. */
		e->false_invals++;
		d->counters[COH_DIR_C_false_invals]++;
	}
}

/* Whoever was to give something up has. */
static void conclude(struct coh_dir *d, struct coh_dir_entry *e,
		     struct coh_dir_out *out)
{
	uint16_t slot = e->asker;
	uint16_t gains = e->gainer == COH_NOBODY ? 0 : coh_bit(e->gainer);

	if (e->state == COH_DIR_TO_SHARED) {
		e->state = COH_DIR_SHARED;
		if (!PLANTED(mind_forget_reader) || slot != COH_SLOT_NONE)
			e->sharers |= gains;
	} else {
		d->recalls -= e->state == COH_DIR_RECALL;
		e->state = gains ? COH_DIR_MODIFIED : COH_DIR_SHARED;
		e->sharers = gains;
	}
	e->asker = COH_SLOT_NONE;
	e->gainer = COH_NOBODY;
	e->owned = false;
	if (slot == COH_SLOT_NONE)
		return;
	if (d->slots[slot].state == COH_SLOT_HOLDING) {
		answer(d, slot, COH_DIR_ANSWER_HELD, out);
	} else if (d->slots[slot].state == COH_SLOT_FETCHING) {
		decide(&d->slots[slot]);
		d->slots[slot].state = COH_SLOT_GRANTED;
	} else {
		grant(d, slot, out);
	}
}

void coh_dir_settle(struct coh_dir *d, struct coh_dir_entry *e,
		    struct coh_dir_out *out)
{
	if (PLANTED(mind_drop_queue))
		e->first = e->last = COH_SLOT_NONE;
	while (!is_busy(e) && e->first != COH_SLOT_NONE)
		coh_dir_start(d, e, coh_queue_pop(d, &e->first, &e->last), out);
	if (!is_idle(e))
		return;
	if (!e->sharers) {
		coh_pool_free(d, e);
		coh_room_serve(d, out);
	} else if (coh_pool_is_wanted(d)) {
		coh_pool_recall(d, e, out);
	}
}

void coh_dir_arrived(struct coh_dir *d, struct coh_dir_entry *e,
		     uint8_t machine, struct coh_dir_out *out)
{
	e->waiting &= (uint16_t)~coh_bit(machine);
	if (e->waiting)
		return;
	conclude(d, e, out);
	coh_dir_settle(d, e, out);
}

void coh_dir_fin(struct coh_dir *d, uint8_t machine, const struct coh_fin *fin,
		 struct coh_dir_out *out)
{
	struct coh_dir_entry *e = coh_dir_lookup(d, fin->range.page);

	out->count = 0;
	if (machine >= d->machines || !e || !is_busy(e) ||
	    fin->term != d->term || fin->seq != e->seq ||
	    !(e->waiting & coh_bit(machine))) {
		d->counters[COH_DIR_C_stray_fins]++;
		return;
	}
	coh_dir_arrived(d, e, machine, out);
}

void coh_dir_evict(struct coh_dir *d, uint8_t machine,
		   const struct coh_range *range, struct coh_dir_out *out)
{
	uint32_t count = u32_min(range->count, COH_REGION_PAGES_MAX);
	uint64_t end = range->page + count;
	uint64_t page = range->page;

	out->count = 0;
	if (machine >= d->machines || end < page)
		return;
	while (page < end) {
		struct coh_dir_entry *e = coh_dir_lookup(d, page);
		uint64_t next = e ? e->page + coh_dir_pages(e) : page + 1;
		bool whole = e && e->page >= range->page && next <= end;

		page = next;
		if (!whole || !is_idle(e) || !(e->sharers & coh_bit(machine)))
			continue;
		e->sharers &= (uint16_t)~coh_bit(machine);
		if (!e->sharers)
			coh_dir_settle(d, e, out);
	}
}
