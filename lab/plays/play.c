/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a play, and many: worlds, judgement, sums. */
#include "play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fiber.h"
#include "sim/lin_file.h"

enum {
	SHOWN_LINES = 400, /* of a history that is not linearizable */
};

void play_fail(struct play_run *r, const char *fmt, ...)
{
	struct play_result *res = r->res;
	va_list ap;
	int n;

	if (res->violations++)
		return;
	n = snprintf(res->first, sizeof(res->first),
		     "at %" PRIu64 " ns: ", r->sim ? play_now_ns(r) : 0);
	va_start(ap, fmt);
	vsnprintf(res->first + n, sizeof(res->first) - (size_t)n, fmt, ap);
	va_end(ap);
	if (r->opt->trace)
		fprintf(r->opt->trace, "violation: %s\n", res->first);
}

/* ---- counts ------------------------------------------------------------- */

uint64_t *play_count(struct play_run *r, const char *name)
{
	for (unsigned i = 0; i < r->play->count_count; i++)
		if (!strcmp(r->play->counts[i].name, name))
			return &r->res->count[i];
	return NULL;
}

/* What a run has anyway, for plays that have a count of that name. */
static void judge_counts(struct play_run *r, const struct lin_result *lin)
{
	const struct sim_net_stats *st = sim_net_stats(r->net);
	const struct {
		const char *name;
		uint64_t value;
	} known[] = {
		{"frames", st->sent},
		{"delivered", st->delivered},
		{"lost", st->lost},
		{"duplicated", st->duplicated},
		{"reordered", st->reordered},
		{"corrupted", st->corrupted},
		{"marked", st->marked},
		{"cut", st->cut},
		{"path_full", st->queue_full},
		{"switch_full", st->switch_full},
		{"checked", r->history ? lin_history_op_count(r->history) : 0},
		{"steps", lin->steps},
		{"events", sim_event_count(r->sim)},
		{"virtual_us", sim_now_ns(r->sim) / 1000},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		uint64_t *n = play_count(r, known[i].name);

		if (n)
			*n = known[i].value;
	}
}

/* ---- one run ------------------------------------------------------------ */

int play_stage_open(struct play_run *r, struct rig_stage_config *cfg)
{
	int err;

	if (!cfg->seed)
		cfg->seed = r->opt->seed;
	cfg->trace = r->opt->trace;
	cfg->pcap = r->opt->pcap;
	cfg->fabric = r->opt->fabric;
	err = rig_stage_create(cfg, &r->stage);
	if (err)
		return err;
	r->sim = rig_stage_sim(r->stage);
	r->net = rig_stage_net(r->stage);
	return 0;
}

struct sim_faults play_draw_faults(struct rng *rand, uint32_t loss_max,
				   uint32_t dup_max, uint32_t reorder_max,
				   uint32_t corrupt_max)
{
	struct sim_faults f = {.reorder_max_ps = 20 * SIM_US};

	f.loss_ppm = sim_rand_below(rand, loss_max);
	f.dup_ppm = sim_rand_below(rand, dup_max);
	f.reorder_ppm = sim_rand_below(rand, reorder_max);
	if (corrupt_max)
		f.corrupt_ppm = sim_rand_below(rand, corrupt_max);
	return f;
}

static void judge_history(struct play_run *r, struct lin_result *lin)
{
	FILE *trace = r->opt->trace;
	int err = lin_check(r->history, r->play->model, NULL, lin);

	if (err)
		play_fail(r, "the checker failed: %d", err);
	else if (lin->verdict == LIN_VIOLATED)
		play_fail(r, "not linearizable: %s", lin->text);
	else if (lin->verdict == LIN_UNKNOWN)
		play_fail(r, "the checker gave up");
	if (lin->verdict == LIN_VIOLATED && trace)
		lin_show_key(r->history, lin->key, lin->op, SHOWN_LINES, trace);
	if (r->opt->history && lin_history_write(r->history, r->opt->history))
		play_fail(r, "the history could not be written");
}

static void fail_unfinished(struct play_run *r)
{
	char report[256];

	sim_fiber_report(r->sim, report, sizeof(report));
	play_fail(r, "%u clients have not finished: %s", r->running, report);
}

static int perform(struct play_run *r)
{
	const struct play *play = r->play;
	struct lin_result lin = {0};

	if (play->perform) {
		play->perform(r);
	} else {
		r->end = sim_run_until(r->sim, play->limit_ps);
		if (r->running)
			fail_unfinished(r);
	}
	if (r->history)
		judge_history(r, &lin);
	judge_counts(r, &lin);
	r->res->hash = sim_trace_hash(r->sim);
	return play->judge ? play->judge(r) : 0;
}

int play_world(const struct play *play, const struct play_options *opt,
	       struct play_result *res)
{
	struct play_run *r = calloc(1, play->world_bytes);
	int err = r ? 0 : -ENOMEM;

	memset(res, 0, sizeof(*res));
	if (err)
		return err;
	r->play = play;
	r->opt = opt;
	r->res = res;
	if (play->has_history)
		err = lin_history_create(&r->history);
	if (!err)
		err = play->open(r);
	if (!err)
		err = perform(r);
	/* Those who did not come to their end hold what is given back now. */
	if (r->stage)
		sim_fiber_kill_all(r->sim);
	if (play->close)
		play->close(r);
	if (r->stage)
		rig_stage_destroy(r->stage);
	lin_history_destroy(r->history);
	free(r);
	return err;
}

int play_seed(const struct play *play, const struct play_options *opt,
	      struct play_result *res)
{
	int err;

	plant_set(opt->bug);
	err = play->run ? play->run(opt, res) : play_world(play, opt, res);
	plant_set(PLANT_none);
	return err;
}

/* ---- many --------------------------------------------------------------- */

struct many {
	const struct play *play;
	const struct play_options *opt;
	struct play_sum *sum;
	bool one;
};

static int run_seed(void *ctx, uint64_t seed, void *result)
{
	const struct many *m = ctx;
	struct play_options *opt = malloc(m->play->options_bytes);
	int err;

	if (!opt)
		return -ENOMEM;
	memcpy(opt, m->opt, m->play->options_bytes);
	opt->seed = seed;
	err = play_seed(m->play, opt, result);
	free(opt);
	return err;
}

static const char *add(void *ctx, uint64_t seed, const void *result)
{
	const struct play_result *res = result;
	const struct many *m = ctx;

	for (unsigned i = 0; i < m->play->count_count; i++) {
		m->sum->count[i] += res->count[i];
		m->sum->hit[i] += res->count[i] != 0;
	}
	for (unsigned i = 0; i < PLAY_POINTS_MAX; i++)
		m->sum->died_at[i] += res->died_at[i];
	/* Reports come in any order; the sum must not depend on it. */
	m->sum->hash += m->one ? res->hash : res->hash * (2 * seed + 1);
	return res->violations ? res->first : NULL;
}

int play_seeds(const struct play *play, const struct play_options *opt,
	       struct sim_batch *batch, struct play_sum *sum)
{
	struct many m = {play, opt, sum, batch->one};

	memset(sum, 0, sizeof(*sum));
	batch->ctx = &m;
	batch->result_bytes = sizeof(struct play_result);
	batch->run = run_seed;
	batch->add = add;
	return sim_batch_run(batch, &sum->batch);
}
