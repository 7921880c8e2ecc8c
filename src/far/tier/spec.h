/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user writes about tiers: "top=2G@0,slow=6G@1", "3:1", "on". Whether
 * this machine has such nodes is for the caller to find out. All of them give
 * 0, or -EINVAL with words by error_set; nothing is written then.
 */
#ifndef AQ_TIER_SPEC_H
#define AQ_TIER_SPEC_H

#include "place.h"

enum {
	TIER_NODE_MAX = 1023,  /* Linux has at most 1,024 nodes */
	TIER_WEIGHT_MAX = 255, /* as in Linux's weighted interleave */
};

/* As much as suits the slow tier. */
#define TIER_PROMOTE_AUTO UINT64_MAX

struct tier_spec_node {
	uint64_t bytes; /* 0: no such tier */
	uint32_t node;
};

/* By enum tier: top, which must be there, and slow, which need not. */
struct tier_spec {
	struct tier_spec_node at[TIER_FAR];
};

int tier_spec_parse(const char *text, struct tier_spec *out) MUST_CHECK;
/* N:M, each 0 to 255, not both 0. */
int tier_ratio_parse(const char *text, struct tier_ratio *out) MUST_CHECK;
/* on (AUTO), off (0), or a limit in MiB a second. */
int tier_promote_parse(const char *text, uint64_t *limit_mb) MUST_CHECK;

#endif
