/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many frames are taken from a path before the next has its turn. Paths of
 * one tenant, which the NIC knows by its protection domain, share what one path
 * of another tenant gets; otherwise a tenant with many processes would have
 * many turns. A greedy tenant, which always has more frames than are taken,
 * gets fewer at a time than one that finishes its turn: the greedy one waits
 * for its own frames, the other for our answers. Pure; guarded by the host's
 * lock.
 */
#ifndef AQ_OS_PATH_SHARE_H
#define AQ_OS_PATH_SHARE_H

#include "base/base.h"

enum {
	SHARE_BUCKETS = 61,	 /* two tenants rarely meet in one */
	SHARE_ROUNDS_MAX = 1000, /* for which a second tenant is expected */
	SHARE_GREEDY = 8,	 /* a greedy tenant gets 1/8 of the budget */
};

/* What a tenant did in a round. */
struct share_tenant {
	uint16_t paths; /* on which frames came */
	uint16_t taken;
	bool is_greedy; /* one path used up its budget */
};

struct share {
	struct share_tenant tenant[2][SHARE_BUCKETS]; /* this round, the last */
	unsigned now;	  /* which of the two is this round */
	unsigned tenants; /* in this round */
	unsigned crowd;	  /* rounds in which budgets are shared */
};

/* The struct starts as zeros. A round is share_begin, then for each path
 * share_budget, which may be 0, and share_note if frames came: how many, and
 * whether they used up the budget. A domain is any number. */
void share_begin(struct share *s);
unsigned share_budget(const struct share *s, uint64_t domain, unsigned budget);
void share_note(struct share *s, uint64_t domain, unsigned got, bool is_full);

#endif
