/* SPDX-License-Identifier: Apache-2.0 */
/* From subjects to rows and ratios: a ratio is the median, over the rounds, of
 * what two subjects did in the same round. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "shield.h"

/* ---- rows ---------------------------------------------------------------- */

static void add_times(json_t *row, const struct conduct_summary *sum)
{
	json_object_update_new(row, json_pack("{s:f, s:f, s:f, s:I}", "p50",
					      sum->p50_ns, "p99", sum->p99_ns,
					      "p99.9", sum->p999_ns, "samples",
					      (json_int_t)sum->sample_count));
}

static json_t *track_row(struct bench *b, const struct conduct_group *g,
			 const struct conduct_track *t)
{
	struct conduct_summary sum;
	json_t *row;

	conduct_summarize(t, g->metric, &sum);
	row = bench_row(b, g->name, t->desc->name, sum.median,
			conduct_unit(g->metric), t->desc->what);
	json_object_update_new(
		row, json_pack("{s:f, s:f, s:I, s:i, s:i, s:f, s:s}", "min",
			       sum.min, "max", sum.max, "n",
			       (json_int_t)sum.op_count, "rounds", (int)t->kept,
			       "discarded", (int)t->discarded,
			       "foreign_cores_worst", t->foreign_worst, "guard",
			       shield_name((enum shield_kind)t->shield)));
	if (sum.sample_count)
		add_times(row, &sum);
	return row;
}

static void report_group(struct bench *b, const struct conduct_group *g,
			 bench_row_fn more)
{
	for (unsigned i = 0; i < g->subject_count; i++) {
		const struct conduct_track *t = &g->track[i];
		json_t *row;

		if (t->why[0] || !t->kept) {
			bench_row_failed(b, g->name, t->desc->name,
					 conduct_unit(g->metric),
					 t->why[0] ? t->why
						   : "foreign load in all "
						     "rounds");
			/* Others' programs may fail, or be missing. */
			if (t->why[0] && !t->is_absent && !t->desc->ucx_mode)
				(void)bench_fail(b, -EIO, "%s", t->why);
			continue;
		}
		row = track_row(b, g, t);
		if (more)
			more(b, g, t, row);
	}
}

/* ---- ratios -------------------------------------------------------------- */

static const struct conduct_track *find(const struct conduct_group *g,
					const char *name)
{
	for (unsigned i = 0; g->track && i < g->subject_count; i++)
		if (strcmp(g->track[i].desc->name, name) == 0)
			return &g->track[i];
	return NULL;
}

/* Whether the ratio is void because of this subject. */
static bool refuse(struct bench *b, const struct bench_ratio *r,
		   const struct conduct_track *t)
{
	if (!t)
		bench_void(b, r->name, "not measured");
	else if (t->why[0])
		bench_void(b, r->name, "%s", t->why);
	else if (!conduct_is_sound(t, b->rounds))
		bench_void(b, r->name,
			   "%s: foreign load in all but %u of %u rounds",
			   t->desc->name, t->kept, b->rounds);
	else
		return false;
	return true;
}

static void judge_one(struct bench *b, const struct conduct_group *g,
		      const struct bench_ratio *r)
{
	const struct conduct_track *ours = find(g, r->ours);
	const struct conduct_track *peer = r->peer ? find(g, r->peer) : NULL;
	struct conduct_summary sum;
	double v;

	if (refuse(b, r, ours) || (r->peer && refuse(b, r, peer)))
		return;
	if (!peer) {
		conduct_summarize(ours, r->metric, &sum);
		bench_ratio_add(b, r->name, sum.median);
	} else if (conduct_paired(ours, peer, r->metric, &v) == 0) {
		bench_void(b, r->name, "no round that both have");
	} else {
		bench_ratio_add(b, r->name, v);
	}
}

void bench_judge(struct bench *b, const struct conduct_group *groups,
		 unsigned count)
{
	for (const struct bench_ratio *r = b->def->ratios; r->name; r++)
		for (unsigned i = 0; r->ours && i < count; i++)
			if (groups[i].track &&
			    strcmp(groups[i].name, r->group) == 0)
				judge_one(b, &groups[i], r);
}

void bench_report_tracks(struct bench *b, const char *group,
			 struct conduct_track *track, unsigned count,
			 bench_row_fn more)
{
	const struct conduct_group g = {.name = group,
					.metric = METRIC_RATE,
					.subject_count = count,
					.track = track};

	report_group(b, &g, more);
	bench_judge(b, &g, 1);
}

/* Each group by itself, or all their subjects in turns. */
static void run_wanted(struct bench *b, struct conduct_group *groups,
		       unsigned count, const struct conduct_options *opt,
		       struct conduct_track *track)
{
	const struct subject_desc *desc[CONDUCT_GROUP_MAX] = {NULL};
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		struct conduct_group *g = &groups[i];

		if (!bench_wants(b, g->name))
			continue;
		bench_progress(b, "%s", g->name);
		g->track = track + n;
		if (opt->is_together)
			memcpy(&desc[n], g->subject,
			       g->subject_count * sizeof(*desc));
		else
			conduct_run(g->track, g->subject, g->subject_count,
				    opt);
		n += g->subject_count;
	}
	if (opt->is_together)
		conduct_run(track, desc, n, opt);
}

int bench_run_groups(struct bench *b, struct conduct_group *groups,
		     unsigned count, const struct conduct_options *opt,
		     bench_row_fn more)
{
	struct conduct_track *track;
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += groups[i].subject_count;
	ASSERT(!opt->is_together || n <= CONDUCT_GROUP_MAX);
	track = calloc(n, sizeof(*track));
	if (!track)
		return bench_fail(b, -ENOMEM, "no memory");
	run_wanted(b, groups, count, opt, track);
	for (unsigned i = 0; i < count; i++)
		if (groups[i].track)
			report_group(b, &groups[i], more);
	bench_judge(b, groups, count);
	for (unsigned i = 0; i < count; i++)
		groups[i].track = NULL;
	free(track);
	return b->why[0] ? -EIO : 0;
}
