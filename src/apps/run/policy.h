/* SPDX-License-Identifier: Apache-2.0 */
/* The hand of a space's clock: where the next pages to leave are looked for. */
#ifndef AQ_RUN_HAND_H
#define AQ_RUN_HAND_H

#include "base/base.h"
#include "base/rng.h"

struct hand {
	uint64_t at;
	struct rng rng;
};

void run_hand_init(struct hand *h);

/*
 * A page came back soon after it left. With the hand at most `reach` pages
 * ahead of it, somebody goes through memory behind the hand, which takes what
 * he will want next, and each page that comes back moves it on by one: it jumps
 * ahead, not more than `most` pages.
 */
void run_hand_missed(struct hand *h, uint64_t page, uint64_t reach,
		     uint64_t most);

#endif
