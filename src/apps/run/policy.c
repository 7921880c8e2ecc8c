/* SPDX-License-Identifier: Apache-2.0 */
/* Where the hand goes when it is followed. */
#include "policy.h"

void run_hand_init(struct hand *h)
{
	*h = (struct hand){0};
	rng_init(&h->rng, 0);
}

void run_hand_missed(struct hand *h, uint64_t page, uint64_t reach,
		     uint64_t most)
{
	if (h->at > page && h->at - page <= reach)
		h->at += rng_between(&h->rng, 1, most);
}
