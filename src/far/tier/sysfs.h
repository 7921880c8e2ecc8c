/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says about memory in /sys, as text: parsing only. */
#ifndef AQ_TIER_SYSFS_H
#define AQ_TIER_SYSFS_H

#include "spec.h"

/* Numbers from 0 to TIER_NODE_MAX, as bits. */
struct tier_set {
	uint64_t word[(TIER_NODE_MAX + 64) / 64];
};

static inline bool tier_set_has(const struct tier_set *s, uint32_t number)
{
	return number <= TIER_NODE_MAX &&
	       s->word[number / 64] >> number % 64 & 1;
}

uint32_t tier_set_count(const struct tier_set *s);

/* "0-1,4\n", or an empty line for none. -EBADMSG: anything else. */
int tier_sysfs_list(const char *text, struct tier_set *out) MUST_CHECK;
/* "325\n". -EBADMSG: anything else, or above `max`. */
int tier_sysfs_number(const char *text, uint64_t max, uint64_t *out) MUST_CHECK;
/* "32768K\n", the size of a cache, in bytes. -EBADMSG: anything else. */
int tier_sysfs_size(const char *text, uint64_t *out) MUST_CHECK;

#endif
