/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many frames are taken from a path before the next has its turn. Paths of
 * one tenant, which the NIC knows by its protection domain, share what one path
 * of another tenant gets: else who has many processes would have many turns.
 * Pure; whoever holds the host's lock.
 */
#ifndef AQ_OS_PATH_SHARE_H
#define AQ_OS_PATH_SHARE_H

#include "base.h"

enum {
	SHARE_BUCKETS = 61,	 /* two tenants rarely meet in one */
	SHARE_ROUNDS_MAX = 1000, /* for which a second tenant is expected */
};

struct share {
	uint16_t busy[2][SHARE_BUCKETS]; /* paths, this round and the last */
	unsigned now;			 /* which of the two is this round */
	unsigned tenants;		 /* in this round */
	unsigned crowd; /* rounds in which budgets are shared */
};

/* All zeroes is the beginning. A round: share_begin, then for each path its
 * budget, and share_note if frames came. A domain is any number. */
void share_begin(struct share *s);
unsigned share_budget(const struct share *s, uint64_t domain, unsigned budget);
void share_note(struct share *s, uint64_t domain);

#endif
