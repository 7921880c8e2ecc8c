/* SPDX-License-Identifier: Apache-2.0 */
/* The play over many seeds, or over every doorbell of one seed's engine. */
#include "offload_batch.h"

#include <string.h>

struct context {
	const struct offload_batch *b;
	struct offload_sum *sum;
};

static int run(void *ctx, uint64_t number, void *result)
{
	const struct offload_batch *b = ((struct context *)ctx)->b;
	struct offload_play_options opt = {.seed = number,
					   .bug = b->bug,
					   .scale = b->scale,
					   .fabric = b->fabric};

	if (b->points) {
		opt.seed = b->seed;
		opt.point = (number - 1) / OFFLOAD_POINT_WHENS + 1;
		opt.point_when = (unsigned)((number - 1) % OFFLOAD_POINT_WHENS);
	}
	return offload_play_run(&opt, result);
}

static const char *add(void *ctx, uint64_t number, const void *result)
{
	struct offload_sum *sum = ((struct context *)ctx)->sum;
	const struct offload_play_result *res = result;
	const struct offload_play_counts *c = &res->counts;

#define ADD(name, help) sum->counts.name += c->name;
	OFFLOAD_PLAY_COUNTS(ADD)
#undef ADD
#define HIT(name, help) sum->hit.name += c->name != 0;
	OFFLOAD_PLAY_COUNTS(HIT)
#undef HIT
	/* Reports come in any order; the sum must not depend on it. */
	sum->hash += res->hash * (2 * number + 1);
	return res->violations ? res->first : NULL;
}

int offload_batch_run(const struct offload_batch *batch,
		      struct offload_sum *sum)
{
	struct context ctx = {batch, sum};
	struct sim_batch b = {
		.from = batch->from,
		.to = batch->to,
		.jobs = batch->jobs,
		.stop_at_first = batch->stop_at_first,
		.ctx = &ctx,
		.result_bytes = sizeof(struct offload_play_result),
		.run = run,
		.add = add,
	};

	memset(sum, 0, sizeof(*sum));
	return sim_batch_run(&b, &sum->sum);
}
