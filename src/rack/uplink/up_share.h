/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's half of allowances: what it may hand out of a tenant's quota without
 * asking. No I/O, no lock: the memory node and the simulator have it in common.
 *
 * A limit grows only by a grant of the controller, which has a larger version
 * than the last one; between two grants it only goes down. A limit that is told
 * in a beat holds from the moment when the beat is made, so whatever the
 * controller believes is at least what the node may use.
 */
#ifndef AQ_UP_SHARE_H
#define AQ_UP_SHARE_H

#include <jansson.h>

#include "base/base.h"

enum {
	UP_SLACK_BYTES = 64 << 20, /* that a node keeps beyond what is used */
	UP_SILENT_MS = 8000, /* without an answer: nothing more is handed out */
	UP_NAME_MAX = 32,
};

/* Zero-initialised. */
struct up_share {
	bool has_quota; /* else only the pool is the limit */
	bool squeeze;	/* others wait for what is not used here */
	uint64_t limit_bytes;
	uint64_t version;
	uint64_t wish_bytes; /* in all; 0: nobody waits */
	uint64_t refusals;   /* of wishes */
};

/* Whether `more` bytes may be handed out. */
bool up_share_may(const struct up_share *s, uint64_t used, uint64_t more);
/* The controller says whether the tenant has a quota. */
void up_share_rule(struct up_share *s, bool has_quota, uint64_t used);
/* The node has joined: what it knew of grants is void. */
void up_share_join(struct up_share *s, uint64_t used);

/* The share in a beat. Gives back what is not needed. */
json_t *up_share_say(struct up_share *s, const char *tenant, uint64_t used);
/* A row of the answer; whether anything has changed. One that is not as it
 * should be is left out. */
bool up_share_hear(struct up_share *s, const json_t *row, uint64_t used);

/* What a node knows of its controller. Zero-initialised. */
struct up_state {
	uint64_t term;	   /* the largest that it has heard of */
	uint64_t epoch;	   /* of its last join; 0: it has not joined */
	uint64_t heard_ns; /* when the last answered request was sent */
	char incarnation[17];
	char tenants[32]; /* the list that it has */
};

/* A beat, for the node to add to. */
json_t *up_state_say(const struct up_state *u);
/* The answer to a join or a beat that was sent then. -ESTALE: it comes from
 * somebody who led before; nothing of it may be taken. -EPROTO. */
int up_state_hear(struct up_state *u, const json_t *answer,
		  uint64_t sent_ns) MUST_CHECK;
/* Whether the controller was heard of lately. */
bool up_state_is_fresh(const struct up_state *u, uint64_t now_ns);

#endif
