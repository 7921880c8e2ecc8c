/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs of the play "offload" and what they came to. */
#ifndef AQ_SCENARIO_OFFLOAD_BATCH_H
#define AQ_SCENARIO_OFFLOAD_BATCH_H

#include "offload_play.h"
#include "sim/batch.h"

enum {
	OFFLOAD_POINT_WHENS = 3, /* before, inside, after */
};

struct offload_batch {
	/* Seeds; or, with `points`, runs of one seed: number 3k + 1 kills its
	 * engine before doorbell k + 1, 3k + 2 inside, 3k + 3 after it. */
	uint64_t from, to;
	bool points;
	uint64_t seed; /* of points */
	unsigned jobs;
	enum plant bug;
	unsigned scale;
	const struct sim_fabric_choice *fabric;
	bool stop_at_first;
};

struct offload_sum {
	struct sim_batch_sum sum;
	uint64_t hash;
	struct offload_play_counts counts;
	struct offload_play_counts hit; /* in how many runs each was not 0 */
};

int offload_batch_run(const struct offload_batch *b,
		      struct offload_sum *sum) MUST_CHECK;

#endif
