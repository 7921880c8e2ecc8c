/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes one message more urgent than another. Messages of a lane go in
 * order, so the first one's key speaks for all that wait behind it.
 *
 * SRPT looks at the first message only: one of 5 KB behind one of 1 MB is then
 * as patient as the long one, and waits a hundred times its own time. PAIR
 * weighs every message with the inverse of its size, because a ratio to its own
 * time is what it is judged by, and takes the most urgent beginning of the
 * lane: the least (bytes left) / (sum of weights) over its first 1, 2, ...
 * messages. On one port this order is optimal for jobs in chains (Sidney's
 * decomposition); a message alone in its lane gets bytes left x size, which is
 * SRPT again when sizes are alike. At most X messages of a lane are looked at.
 */
#include <math.h>
#include <string.h>

#include "sched_priv.h"

enum {
	/* Of the key: they keep the order of arrival. The others hold 2^25 - 1
	 * bytes, more than any message has. */
	ORDER_BITS = 39,
	MANTISSA_DROP = 34,
};

/* The float's own bits as a logarithm: 6 bits of exponent, 18 of mantissa. Fit
 * into the key for anything from 1 to 2^63. */
static uint64_t log_bits(double v)
{
	static const double one = 1;
	uint64_t bits, base;

	if (v < one)
		return 0;
	memcpy(&bits, &v, sizeof(bits));
	memcpy(&base, &one, sizeof(base));
	return (bits - base) >> MANTISSA_DROP;
}

static uint64_t lane_urgency(const struct edm_sched *s, uint32_t head)
{
	double left = 0, weight = 0, least = INFINITY;

	for (uint32_t e = head; e; e = s->entry[e].next) {
		left += s->entry[e].left_bytes;
		weight += 1.0 / s->entry[e].size_bytes;
		if (left / weight < least)
			least = left / weight;
	}
	return log_bits(least);
}

STATIC_ASSERT(EDM_MESSAGE_MAX < UINT64_C(1) << (64 - ORDER_BITS),
	      "bytes left fit into the key");

uint64_t sched_key(const struct edm_sched *s, uint32_t head)
{
	const struct sched_entry *e = &s->entry[head];
	uint64_t order = e->order & ((UINT64_C(1) << ORDER_BITS) - 1);

	if (s->c.policy == EDM_FCFS || e->aged)
		return order;
	if (s->c.policy == EDM_PAIR)
		return lane_urgency(s, head) << ORDER_BITS | order;
	return (uint64_t)e->left_bytes << ORDER_BITS | order;
}
