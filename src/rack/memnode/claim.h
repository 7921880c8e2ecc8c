/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of regions that somebody is about to make. A region is on any of the
 * rack's nodes, so no node alone can tell that its name is free: whoever makes
 * one claims the name first, at every node that answers, and the claim ends by
 * itself if its holder does.
 */
#ifndef AQ_CLAIM_H
#define AQ_CLAIM_H

#include <stdint.h>

#include "base/base.h"
#include "mem_limits.h"

enum {
	MEM_CLAIM_MAX = 16, /* of one tenant */
	MEM_CLAIM_HOLDER_MAX = 32,
	MEM_CLAIM_MS_MAX = 60000,
};

struct mem_claims {
	struct mem_claim {
		char name[MEM_REGION_NAME_MAX + 1];
		char holder[MEM_CLAIM_HOLDER_MAX + 1];
		uint64_t until_ns; /* 0: a free place */
	} row[MEM_CLAIM_MAX];
};

/* Also makes the holder's own claim last longer. -EBUSY: it is another's;
 * -EAGAIN: there are too many. */
int claim_take(struct mem_claims *claims, const char *name, const char *holder,
	       uint64_t now_ns, uint64_t until_ns) MUST_CHECK;
/* -ENOENT: the holder has no such claim, or none any more. */
int claim_drop(struct mem_claims *claims, const char *name, const char *holder,
	       uint64_t now_ns) MUST_CHECK;

#endif
