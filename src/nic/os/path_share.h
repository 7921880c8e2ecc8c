/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many frames are taken from a path before the next has its turn. Paths of
 * one tenant, which the NIC knows by its protection domain, share what one path
 * of another tenant gets: else who has many processes would have many turns.
 * And of those who had frames lately, who had more than the one with the fewest
 * gets less at a time: so the others do not wait for what it has in its queues.
 * Pure; whoever holds the host's lock.
 */
#ifndef AQ_OS_PATH_SHARE_H
#define AQ_OS_PATH_SHARE_H

#include "base/base.h"

enum {
	SHARE_TENANTS = 64, /* that are known; a power of two */
	SHARE_PROBES = 8,
	SHARE_ROUNDS_MAX = 1000, /* for which a second tenant is expected */
	SHARE_GREEDY = 8,	 /* this part of the budget is for who had more
				    than others, ... */
	SHARE_MORE = 64,	 /* ... and by how much */
	SHARE_MEMORY =
		128, /* what was taken so many rounds ago counts little */
};

/* What a tenant had. */
struct share_tenant {
	uint64_t domain;
	uint32_t round;	     /* the last one that it had frames in; 0: none */
	uint32_t used;	     /* lately, in sixteenths */
	uint16_t paths;	     /* on which frames came in that round */
	uint16_t last_paths; /* and in the one before */
	uint16_t taken;
	uint8_t weight; /* of a frame */
};

struct share {
	struct share_tenant tenant[SHARE_TENANTS];
	uint32_t round;
	unsigned tenants; /* in this round */
	unsigned crowd;	  /* rounds in which budgets are shared */
	uint32_t least;	  /* used by one tenant, when there were others */
	uint32_t least_now;
};

/* All zeroes is the beginning. A round: share_begin, then for each path its
 * budget, which may be 0, and share_note if frames came: how many, and how
 * much work they were, in small ones. A domain is any number. */
void share_begin(struct share *s);
unsigned share_budget(struct share *s, uint64_t domain, unsigned budget);
void share_note(struct share *s, uint64_t domain, unsigned got, uint32_t work);

#endif
