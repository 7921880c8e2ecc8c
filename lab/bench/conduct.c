/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conductor. Subjects of a group take turns (ours, peer, ours, peer ...),
 * so that whatever the machine does meanwhile happens to both.
 */
#include "conduct.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stats.h"

static void start(struct conduct_track *t, struct subject *subj,
		  const struct conduct_options *opt)
{
	if (t->desc->ucx_mode && !opt->helper) {
		snprintf(t->why, sizeof(t->why),
			 "aquifer-bench-ucx is not built: apt-get install "
			 "libucx-dev, then meson setup --reconfigure build && "
			 "ninja -C build");
		t->is_absent = true;
		return;
	}
	if (subject_start(subj, t->desc, opt->helper, opt->world) < 0)
		snprintf(t->why, sizeof(t->why), "%s", subj->why);
	t->shield = subj->shield;
}

/* One round, again when something else ran, up to a limit. */
static void play(struct conduct_track *t, struct subject *subj, unsigned round,
		 const struct conduct_options *opt)
{
	struct side_result r;
	double foreign;

	for (int i = 0; i < CONDUCT_TRIES; i++) {
		(void)usleep(CONDUCT_SETTLE_MS * 1000);
		if (subject_round(subj, opt->window_ns, &r, &foreign) < 0) {
			snprintf(t->why, sizeof(t->why), "%s", subj->why);
			subject_stop(subj);
			return;
		}
		if (foreign > t->foreign_worst)
			t->foreign_worst = foreign;
		if (foreign <= CONDUCT_FOREIGN_MAX || opt->keep_all) {
			t->round[round] = r;
			t->is_clean[round] = true;
			t->kept++;
			return;
		}
		t->discarded++;
		(void)usleep(CONDUCT_CALM_MS * 1000);
	}
}

void conduct_run(struct conduct_track *tracks,
		 const struct subject_desc *const *desc, size_t count,
		 const struct conduct_options *opt)
{
	struct subject subj[CONDUCT_GROUP_MAX];

	for (size_t i = 0; i < count; i++) {
		tracks[i] = (struct conduct_track){.desc = desc[i]};
		subj[i] = (struct subject){0};
		start(&tracks[i], &subj[i], opt);
	}
	for (unsigned r = 0; r < opt->rounds && r < CONDUCT_ROUNDS_MAX; r++)
		for (size_t i = 0; i < count; i++)
			if (tracks[i].why[0] == '\0')
				play(&tracks[i], &subj[i], r, opt);
	for (size_t i = 0; i < count; i++)
		subject_stop(&subj[i]);
}

double conduct_metric_of(const struct side_result *r, enum conduct_metric m)
{
	double empty = r->more[SIDE_MORE_EMPTY];

	switch (m) {
	case METRIC_RATE:
		return r->elapsed_ns
			       ? (double)r->ops * 1e9 / (double)r->elapsed_ns
			       : 0;
	case METRIC_CALLER:
		return r->series[0].p50_ns + r->series[1].p50_ns;
	case METRIC_P50:
		return r->series[0].p50_ns;
	case METRIC_P99:
		return r->series[0].p99_ns;
	case METRIC_COMM_BUSY:
		return (r->more[SIDE_MORE_COMM] - empty) / (1 - empty);
	case METRIC_COMM:
		break;
	}
	return r->more[SIDE_MORE_COMM];
}

const char *conduct_unit(enum conduct_metric m)
{
	return m == METRIC_RATE ? "op/s" : m >= METRIC_COMM ? "share" : "ns";
}

void conduct_summarize(const struct conduct_track *track, enum conduct_metric m,
		       struct conduct_summary *out)
{
	double v[CONDUCT_ROUNDS_MAX], p50[CONDUCT_ROUNDS_MAX];
	double p99[CONDUCT_ROUNDS_MAX], p999[CONDUCT_ROUNDS_MAX];
	struct conduct_summary sum = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		const struct side_result *r = &track->round[i];

		if (!track->is_clean[i])
			continue;
		v[n] = conduct_metric_of(r, m);
		p50[n] = r->series[0].p50_ns;
		p99[n] = r->series[0].p99_ns;
		p999[n++] = r->series[0].p999_ns;
		sum.sample_count += r->series[0].count;
		sum.op_count += r->ops;
	}
	sum.median = stats_median(v, n);
	sum.min = n ? v[0] : 0;
	sum.max = n ? v[n - 1] : 0;
	sum.p50_ns = stats_median(p50, n);
	sum.p99_ns = stats_median(p99, n);
	sum.p999_ns = stats_median(p999, n);
	*out = sum;
}

unsigned conduct_paired(const struct conduct_track *ours,
			const struct conduct_track *peer, enum conduct_metric m,
			double *ratio)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		double y = conduct_metric_of(&peer->round[i], m);

		if (ours->is_clean[i] && peer->is_clean[i] && y > 0)
			v[n++] = conduct_metric_of(&ours->round[i], m) / y;
	}
	*ratio = stats_median(v, n);
	return n;
}

double conduct_more(const struct conduct_track *t, unsigned more,
		    bool is_per_op)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		const struct side_result *r = &t->round[i];

		if (t->is_clean[i] && (!is_per_op || r->ops_all))
			v[n++] = r->more[more] /
				 (is_per_op ? (double)r->ops_all : 1);
	}
	return stats_median(v, n);
}

double conduct_series(const struct conduct_track *t, unsigned series)
{
	double v[CONDUCT_ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (t->is_clean[i])
			v[n++] = t->round[i].series[series].p50_ns;
	return stats_median(v, n);
}

void conduct_record(struct conduct_track *track, unsigned round, uint64_t ops,
		    uint64_t elapsed_ns)
{
	track->round[round] =
		(struct side_result){.ops = ops, .elapsed_ns = elapsed_ns};
	track->is_clean[round] = true;
	track->kept++;
}

bool conduct_is_sound(const struct conduct_track *track, unsigned rounds)
{
	return track->why[0] == '\0' && track->kept * 2 > rounds;
}
