/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy one resource of the cost model is, in bins of virtual time. Work
 * that comes later may use a gap before work already booked: with a single
 * "free from" time, one request that must wait for its queue pair would block
 * the resource for all others until then.
 */
#ifndef AQ_SIM_MODEL_BUSY_H
#define AQ_SIM_MODEL_BUSY_H

#include "model_limits.h"

#include <stdbool.h>
#include <stdint.h>

struct model_busy {
	struct {
		uint64_t index; /* which bin of all time this is */
		uint64_t used_ps;
	} bin[MODEL_BUSY_BINS];
};

/*
 * Books `busy_ps` at `now` or as soon after as there is room; returns when the
 * work begins and, if `end_ps` is not NULL, when it ends. Amounts are exact
 * over a bin, order inside a bin is not.
 */
uint64_t model_busy_take(struct model_busy *busy, uint64_t now,
			 uint64_t busy_ps, uint64_t *end_ps);

/* Whether work that comes at `now` would begin in the bin of that time; if not,
 * *again_ps is when the next one begins. */
bool model_busy_has_room(struct model_busy *busy, uint64_t now,
			 uint64_t *again_ps);

#endif
