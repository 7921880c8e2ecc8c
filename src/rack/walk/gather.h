/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathering (wire/gather_wire.h): walks that fetch many places instead of
 * following pointers. They need no program and no workspace. All places of a
 * turn are prefetched before the first is copied, so their misses overlap.
 *
 * All calls come from one thread, or under one lock. Nothing is allocated after
 * open.
 */
#ifndef AQ_WALK_GATHER_H
#define AQ_WALK_GATHER_H

#include "engine.h"

enum {
	/* Under way at a time. More wait at the host, which takes its tenants
	 * in turn. */
	WALK_GATHERS = 8,
};

struct walk_gathers;

/* Of `host` it uses reach, done and ctx; addresses are asked for anew in every
 * turn. */
int walk_gathers_open(const struct walk_host *host,
		      struct walk_gathers **out) MUST_CHECK;
/* Forgets all of them without a word. */
void walk_gathers_close(struct walk_gathers *g);

/*
 * The list is the first list_bytes of the pad, which has room for room_bytes;
 * *answer_bytes is what the answer has, at most what it was. The pad is the
 * gather's until `done`, which is never called from here. -EAGAIN: too many are
 * under way. -EINVAL: a list that is no list, is empty, or asks for too much.
 */
int walk_gathers_start(struct walk_gathers *g, void *handle, uint8_t *pad,
		       uint32_t list_bytes, uint32_t room_bytes,
		       uint32_t *answer_bytes) MUST_CHECK;
/* Fetches at most this many places; returns how many it looked at. */
uint32_t walk_gathers_turn(struct walk_gathers *g, uint32_t places_max);
/* Ends it without `done`; its pad is the host's again. False: there is none. */
bool walk_gathers_forget(struct walk_gathers *g, const void *handle);
uint32_t walk_gathers_busy(const struct walk_gathers *g);

#endif
