/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conductor. Subjects of a group take turns (ours, peer, ours, peer ...),
 * so that whatever the machine does meanwhile happens to both.
 */
#include "conduct.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stats.h"

static void nap_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&ts, NULL);
}

static void start(struct conduct_track *t, struct subject *subj,
		  const struct conduct_options *opt)
{
	if (t->desc->ucx_mode && !opt->helper) {
		snprintf(t->why, sizeof(t->why),
			 "aquifer-bench-ucx is not built: apt-get install "
			 "libucx-dev, then meson setup --reconfigure build && "
			 "ninja -C build");
		return;
	}
	if (subject_start(subj, t->desc, opt->helper, opt->world) < 0)
		snprintf(t->why, sizeof(t->why), "%s", subj->why);
	t->guard = subj->guard;
}

/* One round, again when something else ran, up to a limit. */
static void play(struct conduct_track *t, struct subject *subj, unsigned round,
		 const struct conduct_options *opt)
{
	struct side_result r;
	double foreign;

	for (int i = 0; i < CONDUCT_TRIES; i++) {
		nap_ms(CONDUCT_SETTLE_MS);
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
		nap_ms(CONDUCT_CALM_MS);
	}
}

void conduct_group(struct conduct_track *tracks,
		   const struct subject_desc *const *desc, size_t count,
		   const struct conduct_options *opt)
{
	struct subject subj[CONDUCT_GROUP_MAX];

	for (size_t i = 0; i < count; i++) {
		tracks[i] = (struct conduct_track){.desc = desc[i]};
		subj[i] = (struct subject){.ctl_fd = {-1, -1}};
		start(&tracks[i], &subj[i], opt);
	}
	for (unsigned r = 0; r < opt->rounds && r < CONDUCT_ROUNDS_MAX; r++)
		for (size_t i = 0; i < count; i++)
			if (tracks[i].why[0] == '\0')
				play(&tracks[i], &subj[i], r, opt);
	for (size_t i = 0; i < count; i++)
		subject_stop(&subj[i]);
}

/* Median, least and greatest of one number over the rounds. */
static void spread(double *v, unsigned count, double *median, double *least,
		   double *most)
{
	*median = stats_median(v, count);
	*least = count ? v[0] : 0;
	*most = count ? v[count - 1] : 0;
}

double conduct_round_rate(const struct side_result *r)
{
	return r->elapsed_ns ? (double)r->ops * 1e9 / (double)r->elapsed_ns : 0;
}

void conduct_summarize(const struct conduct_track *track, unsigned series,
		       struct conduct_summary *out)
{
	double rate[CONDUCT_ROUNDS_MAX], p50[CONDUCT_ROUNDS_MAX];
	double p99[CONDUCT_ROUNDS_MAX], p999[CONDUCT_ROUNDS_MAX];
	struct conduct_summary sum = {0};
	unsigned n = 0;

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++) {
		const struct side_result *r = &track->round[i];
		const struct side_series *v = &r->series[series];

		if (!track->is_clean[i])
			continue;
		rate[n] = conduct_round_rate(r);
		p50[n] = v->p50_ns;
		p99[n] = v->p99_ns;
		p999[n++] = v->p999_ns;
		sum.sample_count += v->count;
		sum.op_count += r->ops;
	}
	spread(rate, n, &sum.rate, &sum.rate_min, &sum.rate_max);
	spread(p50, n, &sum.p50_ns, &sum.p50_min_ns, &sum.p50_max_ns);
	sum.p99_ns = stats_median(p99, n);
	sum.p999_ns = stats_median(p999, n);
	*out = sum;
}

bool conduct_has_series(const struct conduct_track *track, unsigned series)
{
	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (track->is_clean[i] && track->round[i].series[series].count)
			return true;
	return false;
}

bool conduct_is_sound(const struct conduct_track *track, unsigned rounds)
{
	return track->why[0] == '\0' && track->kept * 2 > rounds;
}
