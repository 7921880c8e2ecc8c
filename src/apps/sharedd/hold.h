/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a page stays with a machine that was given it, so that the thread
 * which waited for it has run: else two machines pass a page to each other for
 * ever, and an instruction on two pages never ends. A page may be taken when
 * its process has used the processor since it came, or after a time: 50 us,
 * doubled up to 2 ms each time the page is asked for again right after it was
 * taken without that, and halved else. That a process has run may also be
 * another thread's doing; so in one of sixteen such rounds only time counts.
 * Who wakes others by a word of the page will let go of its lock next, and then
 * often sleep: time and use of the processor begin anew then, once, and a
 * thread that sleeps on the page ends them. Else the page would go between wake
 * and unlock, and come back for that. Pure; time is in microseconds and may
 * wrap.
 */
#ifndef AQ_SHD_HOLD_H
#define AQ_SHD_HOLD_H

#include <time.h>

#include "base/base.h"

enum {
	SHD_HOLD_US = 50,
	SHD_HOLD_MAX_US = 2000,
	SHD_HOLD_WOKEN_US = 200, /* at least, from when it woke others */
	/* A page that comes back within this is wanted by two machines: longer
	 * than the other one may have held it, or the rounds of the slower one
	 * would begin anew whenever the other has its long one. */
	SHD_HOLD_AGAIN_US = 4 * SHD_HOLD_MAX_US,
	SHD_HOLD_SHIFT_MAX = 6,
	SHD_HOLD_ROUNDS = 16,
	SHD_HOLD_RAN_NS = 20000, /* of processor time: enough for a thread */
};

struct shd_hold {
	uint64_t cpu_ns;  /* that its process had used when it came */
	clockid_t clock;  /* of that; 0: nobody waited for it */
	uint32_t came_us; /* or when it was used to wake others */
	uint32_t taken_us;
	uint8_t shift;
	uint8_t round;
	bool was_taken;
	bool was_early; /* taken because its process had run */
	bool has_woken; /* others, since it came */
	bool has_slept; /* somebody, on a word of it, since then */
	bool is_young;	/* it came since the clock looked; evict.c */
};

/* Whether only time counts in this round. */
static inline bool shd_hold_is_timed(const struct shd_hold *h)
{
	return h->round == SHD_HOLD_ROUNDS - 1;
}

static inline uint32_t shd_hold_us(const struct shd_hold *h)
{
	uint32_t least = h->has_woken ? SHD_HOLD_WOKEN_US : SHD_HOLD_US;

	return shd_hold_is_timed(h)
		       ? SHD_HOLD_MAX_US
		       : u32_max(least,
				 u32_min((uint32_t)SHD_HOLD_US << h->shift,
					 SHD_HOLD_MAX_US));
}

static inline void shd_hold_came(struct shd_hold *h, uint32_t now_us)
{
	bool is_again =
		h->was_taken && now_us - h->taken_us < SHD_HOLD_AGAIN_US;

	if (is_again && !h->was_early && h->shift < SHD_HOLD_SHIFT_MAX)
		h->shift++;
	else if ((!is_again || h->was_early) && h->shift)
		h->shift--;
	if (is_again && !shd_hold_is_timed(h))
		h->round++;
	else
		h->round = 0;
	h->came_us = now_us;
	h->was_taken = h->was_early = false;
	h->has_woken = h->has_slept = false;
	h->is_young = true;
	h->clock = 0;
}

/* False: not for the first time. Else what its process has used of the
 * processor is to be noted again. */
static inline bool shd_hold_wakes(struct shd_hold *h, uint32_t now_us)
{
	bool is_first = !h->has_woken;

	h->has_slept = false;
	h->has_woken = true;
	if (is_first)
		h->came_us = now_us;
	return is_first;
}

static inline void shd_hold_sleeps(struct shd_hold *h)
{
	h->has_slept = true;
}

static inline void shd_hold_taken(struct shd_hold *h, uint32_t now_us)
{
	h->was_early = now_us - h->came_us < shd_hold_us(h);
	h->taken_us = now_us;
	h->was_taken = true;
}

/* How much longer it stays at most; 0: it may be taken. */
static inline uint32_t shd_hold_left_us(const struct shd_hold *h,
					uint32_t now_us)
{
	uint32_t age_us = now_us - h->came_us;

	return age_us < shd_hold_us(h) ? shd_hold_us(h) - age_us : 0;
}

#endif
