/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as what a user writes about tiers: refused, or within its limits. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tier/promote.h"
#include "tier/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	char *text = malloc(len_bytes + 1);
	struct tier_spec s;
	struct tier_ratio r;
	uint64_t mb;

	if (!text)
		return 0;
	memcpy(text, data, len_bytes);
	text[len_bytes] = '\0';
	if (!tier_spec_parse(text, &s)) {
		ASSERT(s.at[TIER_TOP].bytes >= 4096);
		for (unsigned t = TIER_TOP; t < TIER_FAR; t++)
			ASSERT(s.at[t].node <= TIER_NODE_MAX);
		ASSERT(!s.at[TIER_SLOW].bytes ||
		       s.at[TIER_SLOW].node != s.at[TIER_TOP].node);
	}
	if (!tier_ratio_parse(text, &r)) {
		ASSERT(r.top <= TIER_WEIGHT_MAX && r.slow <= TIER_WEIGHT_MAX);
		ASSERT(r.top + r.slow > 0);
	}
	if (!tier_promote_parse(text, &mb))
		ASSERT(mb <= TIER_LIMIT_MB_MAX || mb == TIER_PROMOTE_AUTO);
	free(text);
	return 0;
}
