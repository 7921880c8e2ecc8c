/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers in a hierarchical wheel: set and cancel cost a list operation. The
 * wheel has no clock: its owner says what time it is. One thread at a time.
 */
#ifndef AQ_TIMER_H
#define AQ_TIMER_H

#include "base.h"

struct timer;
typedef void (*timer_fn)(struct timer *t, uint64_t now_ns);

/* Embedded in its owner, which fn finds with container_of. */
struct timer {
	struct timer *next;
	struct timer **prev; /* NULL while not set */
	uint64_t deadline_ns;
	timer_fn fn;
};

enum {
	TIMER_SLOT_BITS = 6,
	TIMER_SLOTS = 1 << TIMER_SLOT_BITS,
	TIMER_LEVELS = 6,
	TIMER_TICK_SHIFT = 10, /* one tick is 1,024 ns */
};

struct timer_wheel {
	uint64_t now_tick;
	uint32_t count;
	uint64_t occupied[TIMER_LEVELS]; /* a bit per slot */
	struct timer *slot[TIMER_LEVELS][TIMER_SLOTS];
};

void timer_wheel_init(struct timer_wheel *w, uint64_t now_ns);

static inline void timer_init(struct timer *t, timer_fn fn)
{
	*t = (struct timer){.fn = fn};
}

static inline bool timer_is_set(const struct timer *t)
{
	return t->prev != NULL;
}

/* Sets or moves the timer. It fires at the first advance past deadline_ns,
 * never early, at most one tick late by the wheel's own doing. */
void timer_set(struct timer_wheel *w, struct timer *t, uint64_t deadline_ns);
void timer_cancel(struct timer_wheel *w, struct timer *t);

/* Runs what is due. Callbacks may set and cancel any timer, also their own. */
void timer_wheel_advance(struct timer_wheel *w, uint64_t now_ns);

/* When to advance next: not after the tick in which the earliest timer fires,
 * which begins up to one tick after its deadline. May be earlier, to move
 * timers between levels. UINT64_MAX without timers. */
uint64_t timer_wheel_next_ns(const struct timer_wheel *w);

#endif
