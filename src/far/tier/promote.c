/* SPDX-License-Identifier: Apache-2.0 */
/* The threshold of hot pages, and how many of them are promoted in a second. */
#include "promote.h"

enum {
	FITTING_PART = 256,
};

#define MS_NS	  1000000ull
#define SECOND_NS 1000000000ull

struct tier_promote_rule tier_promote_rule_of(uint64_t limit_mb)
{
	return (struct tier_promote_rule){
		.reference_ns = TIER_REFERENCE_MS * MS_NS,
		.period_ns = TIER_PERIOD_MS * MS_NS,
		.limit_pages = limit_mb << (20 - TIER_PAGE_SHIFT),
	};
}

uint64_t tier_promote_fitting_mb(uint64_t slow_bytes)
{
	return u64_max(1, (slow_bytes >> 20) / FITTING_PART);
}

void tier_promote_init(struct tier_promote *p,
		       const struct tier_promote_rule *rule, uint64_t now_ns)
{
	*p = (struct tier_promote){
		.rule = *rule, .period_ns = now_ns, .second_ns = now_ns};
}

uint64_t tier_promote_threshold_ns(const struct tier_promote *p)
{
	return p->threshold_ns ? p->threshold_ns : p->rule.reference_ns;
}

static void adjust(struct tier_promote *p, uint64_t now_ns)
{
	uint64_t step = 2 * p->rule.reference_ns / TIER_STEPS;
	uint64_t threshold = tier_promote_threshold_ns(p);
	/* In thousandths of a second, so that a long period fits. */
	uint64_t fits = p->rule.limit_pages * (p->rule.period_ns / MS_NS) /
			(SECOND_NS / MS_NS);
	uint64_t came = p->candidates - p->period_candidates;

	if (now_ns - p->period_ns <= p->rule.period_ns)
		return;
	if (came * 10 > fits * 11)
		threshold = threshold > 2 * step ? threshold - step : step;
	else if (came * 10 < fits * 9)
		threshold = u64_min(threshold + step, 2 * p->rule.reference_ns);
	p->threshold_ns = threshold;
	p->period_ns = now_ns;
	p->period_candidates = p->candidates;
}

/* Candidates that are refused count as well: that is how the threshold learns
 * that there are too many. */
static bool is_limited(struct tier_promote *p, uint64_t now_ns, uint64_t pages)
{
	if (now_ns - p->second_ns > SECOND_NS) {
		p->second_ns = now_ns;
		p->second_candidates = p->candidates;
	}
	p->candidates += pages;
	return p->candidates - p->second_candidates > p->rule.limit_pages;
}

enum tier_verdict tier_promote_judge(struct tier_promote *p, uint64_t now_ns,
				     uint64_t latency_ns, uint64_t pages,
				     struct tier_top top)
{
	if (top.is_guarded)
		return TIER_GUARDED;
	if (top.has_room) {
		p->threshold_ns = 0;
		return TIER_HOT;
	}
	adjust(p, now_ns);
	if (latency_ns >= tier_promote_threshold_ns(p))
		return TIER_COLD;
	return is_limited(p, now_ns, pages) ? TIER_LIMITED : TIER_HOT;
}
