/* SPDX-License-Identifier: Apache-2.0 */
/* Hierarchical timer wheel: 6 levels of 64 slots, ticks of 1,024 ns. */
#include "timer.h"

/* 2^36 ticks, about 19 hours; later deadlines wait in the last slot and are
 * put in place again when it comes round. */
#define HORIZON_TICKS (1ull << (TIMER_SLOT_BITS * TIMER_LEVELS))

static uint64_t tick_of(uint64_t ns)
{
	return ns >> TIMER_TICK_SHIFT;
}

/* A timer fires in the tick after its deadline's, so never early. */
static uint64_t fire_tick(uint64_t deadline_ns)
{
	return tick_of(deadline_ns) + 1;
}

void timer_wheel_init(struct timer_wheel *w, uint64_t now_ns)
{
	*w = (struct timer_wheel){.now_tick = tick_of(now_ns)};
}

/* first_tick: the earliest tick that will still be fired. */
static void link_timer(struct timer_wheel *w, struct timer *t,
		       uint64_t first_tick)
{
	uint64_t tick = u64_max(fire_tick(t->deadline_ns), first_tick);
	unsigned level, slot;
	struct timer **head;

	if (tick - w->now_tick >= HORIZON_TICKS)
		tick = w->now_tick + HORIZON_TICKS - 1;
	/* The level is where tick and now first differ: every slot below it is
	 * reached only after this one was cascaded. */
	level = (63 - (unsigned)__builtin_clzll((tick ^ w->now_tick) | 1)) /
		TIMER_SLOT_BITS;
	if (level >= TIMER_LEVELS)
		level = TIMER_LEVELS - 1;
	slot = (tick >> (level * TIMER_SLOT_BITS)) & (TIMER_SLOTS - 1);
	head = &w->slot[level][slot];
	t->next = *head;
	t->prev = head;
	if (t->next)
		t->next->prev = &t->next;
	*head = t;
	w->occupied[level] |= 1ull << slot;
}

static void unlink_timer(struct timer *t)
{
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->prev = NULL;
	t->next = NULL;
}

void timer_set(struct timer_wheel *w, struct timer *t, uint64_t deadline_ns)
{
	if (timer_is_set(t))
		unlink_timer(t);
	else
		w->count++;
	t->deadline_ns = deadline_ns;
	link_timer(w, t, w->now_tick + 1);
}

void timer_cancel(struct timer_wheel *w, struct timer *t)
{
	if (!timer_is_set(t))
		return;
	unlink_timer(t);
	w->count--;
}

/* Takes a whole slot out, so that callbacks may set timers into it again. */
static struct timer *take_slot(struct timer_wheel *w, unsigned level,
			       unsigned slot, struct timer **list)
{
	*list = w->slot[level][slot];
	w->slot[level][slot] = NULL;
	w->occupied[level] &= ~(1ull << slot);
	if (*list)
		(*list)->prev = list;
	return *list;
}

static void cascade(struct timer_wheel *w, unsigned level)
{
	unsigned slot =
		(w->now_tick >> (level * TIMER_SLOT_BITS)) & (TIMER_SLOTS - 1);
	struct timer *list;

	if (slot == 0 && level + 1 < TIMER_LEVELS)
		cascade(w, level + 1);
	take_slot(w, level, slot, &list);
	while (list) {
		struct timer *t = list;

		unlink_timer(t);
		link_timer(w, t, w->now_tick);
	}
}

static void fire_slot(struct timer_wheel *w, uint64_t now_ns)
{
	struct timer *list;

	take_slot(w, 0, w->now_tick & (TIMER_SLOTS - 1), &list);
	while (list) {
		struct timer *t = list;

		unlink_timer(t);
		w->count--;
		t->fn(t, now_ns);
	}
}

/* The next tick at which something must be done: a slot of level 0, or the
 * turn of a higher level. */
static uint64_t next_stop(const struct timer_wheel *w)
{
	unsigned level;

	for (level = 0; level < TIMER_LEVELS; level++) {
		unsigned shift = level * TIMER_SLOT_BITS;
		unsigned pos = (w->now_tick >> shift) & (TIMER_SLOTS - 1);
		uint64_t later = pos == TIMER_SLOTS - 1
					 ? 0
					 : w->occupied[level] >> (pos + 1);

		if (later)
			return ((w->now_tick >> shift) + 1 +
				(unsigned)__builtin_ctzll(later))
			       << shift;
		/* Slots at or before pos belong to the next turn, which only
		 * the last level can hold (deadlines past the horizon). */
		if (level == TIMER_LEVELS - 1 && w->occupied[level])
			return ((w->now_tick >> shift) + 1) << shift;
	}
	return UINT64_MAX;
}

void timer_wheel_advance(struct timer_wheel *w, uint64_t now_ns)
{
	uint64_t target = tick_of(now_ns);

	while (w->now_tick < target) {
		uint64_t stop = w->count ? next_stop(w) : UINT64_MAX;

		if (stop > target) {
			w->now_tick = target;
			break;
		}
		w->now_tick = stop;
		if ((stop & (TIMER_SLOTS - 1)) == 0)
			cascade(w, 1);
		fire_slot(w, now_ns);
	}
}

uint64_t timer_wheel_next_ns(const struct timer_wheel *w)
{
	uint64_t stop = w->count ? next_stop(w) : UINT64_MAX;

	return stop == UINT64_MAX ? stop : stop << TIMER_TICK_SHIFT;
}
