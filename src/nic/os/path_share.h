/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many frames are taken from a path before the next has its turn. Paths of
 * one tenant, which the NIC knows by its protection domain, share what one path
 * of another tenant gets: else who has many processes would have many turns.
 * And who did more lately than another one, as the NIC says, gets less at a
 * time, so that the other one does not wait for all that it has in its queues.
 * Pure; whoever holds the host's lock.
 */
#ifndef AQ_OS_PATH_SHARE_H
#define AQ_OS_PATH_SHARE_H

#include "base/base.h"

enum {
	SHARE_TENANTS = 64, /* that are known at a time; a power of two */
	SHARE_PROBES = 8,
	SHARE_ROUNDS_MAX = 1000, /* for which a second tenant is expected */
	SHARE_GREEDY = 8,	 /* a greedy tenant gets 1/8 of the budget */
};

/* What a tenant had in the last round that it had frames in. */
struct share_tenant {
	uint64_t domain;
	uint32_t round;	     /* 0: the entry is free */
	uint16_t paths;	     /* on which frames came */
	uint16_t last_paths; /* and in the round before */
	uint16_t taken;
	bool is_greedy;
};

struct share {
	struct share_tenant tenant[SHARE_TENANTS];
	uint32_t round;
	unsigned tenants; /* in this round */
	unsigned crowd;	  /* rounds in which budgets are shared */
};

/* All zeroes is the beginning. A round: share_begin, then for each path its
 * budget, which may be 0, and share_note if frames came: how many, and whether
 * the tenant is greedy. A domain is any number. */
void share_begin(struct share *s);
unsigned share_budget(struct share *s, uint64_t domain, unsigned budget);
void share_note(struct share *s, uint64_t domain, unsigned got, bool is_greedy);

#endif
