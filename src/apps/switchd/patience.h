/* SPDX-License-Identifier: Apache-2.0 */
/* When a switch that has nothing to do yields, and when it sleeps. */
#ifndef AQ_SWITCHD_PATIENCE_H
#define AQ_SWITCHD_PATIENCE_H

#include "base/env.h"

struct patience {
	uint32_t yields; /* idle turns before the sleep */
	uint32_t score;	 /* of yields that took long */
	uint64_t crowded_until_ns;
	uint64_t span_ns;
};

void patience_init(struct patience *p, uint32_t yields);
bool patience_is_over(const struct patience *p, uint32_t idle, uint64_t now_ns);
/* Lets others run, and notices when they take long. */
void patience_yield(struct patience *p, struct env *env, uint64_t now_ns);

#endif
