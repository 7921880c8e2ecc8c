/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario "verbs" over many seeds: what a batch needs to know about it. */
#include <string.h>

#include "sim/batch.h"
#include "verbs_cmd.h"

struct context {
	const struct sim_verbs_batch *b;
	struct sim_verbs_sum *sum;
};

static int run(void *ctx, uint64_t seed, void *result)
{
	const struct sim_verbs_batch *b = ((struct context *)ctx)->b;
	struct sim_verbs_options opt = {.seed = seed,
					.bug = b->bug,
					.scale = b->scale,
					.hook = b->hook,
					.fabric = b->fabric,
					.udp = b->udp,
					.auth = b->auth};

	return sim_verbs_run(&opt, result);
}

static void add_counts(struct sim_verbs_counts *sum,
		       const struct sim_verbs_counts *c)
{
#define ADD(name, help) sum->name += c->name;
	SIM_VERBS_COUNTS(ADD)
#undef ADD
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	struct sim_verbs_sum *sum = ((struct context *)ctx)->sum;
	const struct sim_verbs_result *res = result;
	const struct sim_verbs_counts *c = &res->counts;

	add_counts(&sum->counts, c);
	/* Reports come in any order; the sum must not depend on it. */
	sum->hash += res->hash * (2 * seed + 1);
	if (!res->violations &&
	    (!c->lost || !c->duplicated || !c->reordered || !c->corrupted))
		sum->missing_kind++;
	return res->violations ? res->first : NULL;
}

int sim_verbs_run_batch(const struct sim_verbs_batch *batch,
			struct sim_verbs_sum *sum)
{
	struct context ctx = {batch, sum};
	struct sim_batch b = {
		.from = batch->from,
		.to = batch->to,
		.jobs = batch->jobs,
		.stop_at_first = batch->stop_at_first,
		.ctx = &ctx,
		.result_bytes = sizeof(struct sim_verbs_result),
		.run = run,
		.add = add,
	};
	struct sim_batch_sum s;
	int err;

	memset(sum, 0, sizeof(*sum));
	err = sim_batch_run(&b, &s);
	sum->runs = s.runs;
	sum->violated = s.violated;
	sum->first_seed = s.first_seed;
	memcpy(sum->first, s.first, sizeof(sum->first));
	return err;
}
