/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slow pages are promoted: the hot page selection of Linux (memory
 * tiering of NUMA balancing), on the caller's clock. Pure.
 *
 * A page is made to fault on purpose; the time from there to its fault is its
 * latency. A page whose latency is below the threshold is a candidate, and a
 * candidate is promoted unless the second's candidates have reached the limit.
 * While the top node has room, every page that faults is promoted, and the
 * threshold starts anew.
 *
 * Each period the threshold follows the candidates: more than 110 % of what the
 * limit allows in a period, one step less, but at least one step; less than
 * 90 %, one step more, but at most 2 x reference. A step is 2 x reference / 16.
 *
 * Periods and seconds begin with the first page that is judged after the last
 * one's end. A second in which nobody asks has no effect on the next.
 */
#ifndef AQ_TIER_PROMOTE_H
#define AQ_TIER_PROMOTE_H

#include "base/base.h"

enum {
	TIER_STEPS = 16, /* of the threshold, from 0 to 2 x reference */
	TIER_PAGE_SHIFT = 12,
	/* What Linux has: a second, and a minute. */
	TIER_REFERENCE_MS = 1000,
	TIER_PERIOD_MS = 60000,
	TIER_LIMIT_MB_MAX = 1 << 20, /* a second */
};

struct tier_promote_rule {
	uint64_t reference_ns;
	uint64_t period_ns;
	uint64_t limit_pages; /* a second */
};

/* One thread at a time. */
struct tier_promote {
	struct tier_promote_rule rule;
	uint64_t threshold_ns; /* 0: the reference */
	uint64_t candidates;   /* ever */
	uint64_t period_ns,
		period_candidates; /* when it began, with how many */
	uint64_t second_ns, second_candidates;
};

enum tier_verdict {
	TIER_HOT,     /* promote it */
	TIER_COLD,    /* its latency is not below the threshold */
	TIER_LIMITED, /* hot, but the second is full */
	TIER_GUARDED, /* the top node is too busy for more (tier/guard.h) */
	TIER_VERDICTS,
};

/* What the pager and the simulator say about the top node. */
struct tier_top {
	bool has_room;
	bool is_guarded;
};

/* A limit in MiB a second. */
struct tier_promote_rule tier_promote_rule_of(uint64_t limit_mb);
/* A limit that suits a slow tier of so many bytes: a 256th of it in a second,
 * at least 1 MiB. More than what is hot would only follow the threshold up. */
uint64_t tier_promote_fitting_mb(uint64_t slow_bytes);
void tier_promote_init(struct tier_promote *p,
		       const struct tier_promote_rule *rule, uint64_t now_ns);
uint64_t tier_promote_threshold_ns(const struct tier_promote *p);
/* Judges `pages` that faulted together, `latency_ns` after they were made to.
 */
enum tier_verdict tier_promote_judge(struct tier_promote *p, uint64_t now_ns,
				     uint64_t latency_ns, uint64_t pages,
				     struct tier_top top);

#endif
