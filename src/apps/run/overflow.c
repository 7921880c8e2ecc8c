/* SPDX-License-Identifier: Apache-2.0 */
/* When far memory takes no more pages. */
#include "overflow.h"

enum {
	STEP_PART = 8, /* of the limit */
	STEP_MIN = 64,
	TRY_PAGES = 64,
};

#define PAUSE_MIN_NS 250000000ull
#define PAUSE_MAX_NS 4000000000ull

void overflow_init(struct overflow *o, uint64_t limit_pages, uint64_t extra_max)
{
	*o = (struct overflow){
		.pause_ns = PAUSE_MIN_NS,
		.extra_max = extra_max,
		.step = u64_max(limit_pages / STEP_PART, STEP_MIN)};
}

bool overflow_is_due(struct overflow *o, uint64_t now_ns)
{
	if (!o->is_full || now_ns < o->retry_ns)
		return false;
	o->credit = TRY_PAGES;
	o->pause_ns = u64_min(2 * o->pause_ns, PAUSE_MAX_NS);
	o->retry_ns = now_ns + o->pause_ns;
	return true;
}

uint64_t overflow_budget(const struct overflow *o)
{
	return o->is_full ? o->room + o->credit : UINT64_MAX;
}

void overflow_sent(struct overflow *o, uint64_t pages)
{
	uint64_t from_room = u64_min(o->room, pages);

	if (!o->is_full)
		return;
	o->room -= from_room;
	o->is_trying |= pages > from_room;
	o->credit -= u64_min(o->credit, pages - from_room);
}

void overflow_result(struct overflow *o, uint64_t now_ns, uint64_t placed,
		     uint64_t refused)
{
	if (!refused) {
		if (placed && o->is_trying)
			o->is_full = o->is_trying = false;
		return;
	}
	/* One of several nodes may be full: as long as others take some, on. */
	if (placed || !o->is_full) {
		o->pause_ns = PAUSE_MIN_NS;
		o->retry_ns = placed ? now_ns : now_ns + o->pause_ns;
	}
	o->is_full = true;
	o->is_trying = false;
	o->room = o->credit = 0;
}

void overflow_freed(struct overflow *o)
{
	if (o->is_full)
		o->room++;
}

void overflow_raise(struct overflow *o, uint64_t limit_pages, uint64_t resident)
{
	uint64_t over = resident > limit_pages ? resident - limit_pages : 0;

	o->extra = u64_max(o->extra, u64_min(over + o->step, o->extra_max));
}

void overflow_settle(struct overflow *o, uint64_t limit_pages,
		     uint64_t resident)
{
	uint64_t over = resident > limit_pages ? resident - limit_pages : 0;

	if (!o->is_full)
		o->extra = 0;
	else if (over + 2 * o->step < o->extra)
		o->extra = over + o->step;
}

bool overflow_is_spent(const struct overflow *o, uint64_t limit_pages,
		       uint64_t resident)
{
	return o->is_full && o->extra_max != OVERFLOW_NO_LIMIT &&
	       resident >= limit_pages + o->extra_max;
}
