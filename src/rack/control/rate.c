/* SPDX-License-Identifier: Apache-2.0 */
/* Token buckets. */
#include <stdio.h>
#include <string.h>

#include "ctl_rate.h"

bool ctl_bucket_take(struct ctl_bucket *b, uint32_t per_s, uint32_t burst,
		     uint64_t now_ns, uint64_t *wait_ns)
{
	uint64_t cost_ns = 1000000000ull / u32_max(per_s, 1);
	uint64_t full_ns = u64_max(b->full_ns, now_ns) + cost_ns;
	uint64_t most_ns = now_ns + burst * cost_ns;

	if (per_s && full_ns <= most_ns) {
		b->full_ns = full_ns;
		return true;
	}
	*wait_ns = full_ns > most_ns ? full_ns - most_ns : cost_ns;
	return false;
}

struct ctl_bucket *ctl_origins_bucket(struct ctl_origins *o, const char *name)
{
	struct ctl_origin *least = &o->origin[0];

	for (unsigned i = 0; i < CTL_RATE_ORIGINS; i++) {
		struct ctl_origin *at = &o->origin[i];

		if (strncmp(at->name, name, sizeof(at->name) - 1) == 0)
			return &at->bucket;
		if (at->bucket.full_ns < least->bucket.full_ns)
			least = at;
	}
	*least = (struct ctl_origin){0};
	(void)snprintf(least->name, sizeof(least->name), "%s", name);
	return &least->bucket;
}
