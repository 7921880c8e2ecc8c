/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often somebody may ask: a token bucket, kept as the one time at which it
 * would be full again, and a table of them for callers that have nothing but an
 * address. Pure; the caller brings the clock and the lock.
 */
#ifndef AQ_CTL_RATE_H
#define AQ_CTL_RATE_H

#include "base/base.h"

enum {
	CTL_RATE_ORIGINS = 256,
	CTL_RATE_ORIGIN_TEXT = 64, /* with the NUL; longer ones are cut */
};

struct ctl_bucket {
	uint64_t full_ns; /* from then on nothing is owed; 0: it is full */
};

/* Takes one request out of a bucket that holds `burst` and gets `per_s` a
 * second. False: it is empty, and *wait_ns says when to come again. */
bool ctl_bucket_take(struct ctl_bucket *b, uint32_t per_s, uint32_t burst,
		     uint64_t now_ns, uint64_t *wait_ns) MUST_CHECK;

struct ctl_origins {
	struct ctl_origin {
		char name[CTL_RATE_ORIGIN_TEXT];
		struct ctl_bucket bucket;
	} origin[CTL_RATE_ORIGINS];
};

/* The bucket of an origin. Where there are too many, the one that owes least
 * loses its place: an address that asks too often keeps what it owes. */
struct ctl_bucket *ctl_origins_bucket(struct ctl_origins *o, const char *name);

#endif
