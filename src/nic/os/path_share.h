/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many frames are taken from a path before the next has its turn. Paths of
 * one tenant, which the NIC knows by its protection domain, share what one path
 * of another tenant gets: else who has many processes would have many turns.
 * And who always has more than is taken gets less at a time than who is done
 * with his turn: the one waits for his own frames, the other for ours. Pure;
 * whoever holds the host's lock.
 */
#ifndef AQ_OS_PATH_SHARE_H
#define AQ_OS_PATH_SHARE_H

#include "base/base.h"

enum {
	SHARE_BUCKETS = 61,	 /* two tenants rarely meet in one */
	SHARE_ROUNDS_MAX = 1000, /* for which a second tenant is expected */
	SHARE_GREEDY = 8,	 /* of the budget, what a greedy tenant gets */
};

/* What a tenant did in a round. */
struct share_tenant {
	uint16_t paths; /* on which frames came */
	uint16_t taken;
	bool is_greedy; /* one of them had at least as many as it might */
};

struct share {
	struct share_tenant tenant[2][SHARE_BUCKETS]; /* this round, the last */
	unsigned now;	  /* which of the two is this round */
	unsigned tenants; /* in this round */
	unsigned crowd;	  /* rounds in which budgets are shared */
};

/* All zeroes is the beginning. A round: share_begin, then for each path its
 * budget, which may be 0, and share_note if frames came: how many, and whether
 * as many as might. A domain is any number. */
void share_begin(struct share *s);
unsigned share_budget(const struct share *s, uint64_t domain, unsigned budget);
void share_note(struct share *s, uint64_t domain, unsigned got, bool is_full);

#endif
