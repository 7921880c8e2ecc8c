/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a range of numbers, and as what the kernel writes in /sys: what
 * is accepted is finite and within its bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "fuzz.h"
#include "tier/range.h"
#include "tier/sysfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	char *text = malloc(len_bytes + 1);
	struct tier_range r;
	struct tier_set s;
	uint64_t v;

	ASSERT(text);
	memcpy(text, data, len_bytes);
	text[len_bytes] = '\0';
	if (tier_range_parse(text, &r) == 0) {
		ASSERT(r.count >= 1 && r.count <= TIER_RANGE_MAX);
		for (unsigned i = 0; i < r.count; i++) {
			double at = tier_range_at(&r, i);

			ASSERT(isfinite(at) && at >= r.from && at <= r.to);
		}
	}
	if (tier_sysfs_list(text, &s) == 0)
		ASSERT(tier_set_count(&s) <= TIER_NODE_MAX + 1);
	if (tier_sysfs_number(text, 1000, &v) == 0)
		ASSERT(v <= 1000);
	if (tier_sysfs_size(text, &v) == 0)
		ASSERT(v % 1024 == 0);
	free(text);
	return 0;
}
