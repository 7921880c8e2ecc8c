/* SPDX-License-Identifier: Apache-2.0 */
/* A number or a range of them, as a word: "8", "2..20", "2..20..0.5". */
#ifndef AQ_TIER_RANGE_H
#define AQ_TIER_RANGE_H

#include "base/base.h"

enum {
	TIER_RANGE_STEPS = 10, /* of a range that says none and is not of whole
				  numbers */
	TIER_RANGE_MAX = 1000, /* values of one range */
};

struct tier_range {
	double from, to, step;
	unsigned count; /* of values; 1: a number */
};

/* Whole ends go in steps of 1, others in TIER_RANGE_STEPS. -EINVAL with words:
 * not a number, backwards, no step, or too many. */
int tier_range_parse(const char *word, struct tier_range *out) MUST_CHECK;
/* Value `index`, below count; the last one is never beyond `to`. */
double tier_range_at(const struct tier_range *r, unsigned index);

#endif
