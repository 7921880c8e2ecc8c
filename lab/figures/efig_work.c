/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants start jobs in bursts; a job is stages with outputs whose sizes are
 * log-normal, as its tenant's are. */
#include "efig_work.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "efig_costs.h"

const struct efig_costs efig_costs = {EFIG_COSTS(MODEL_VALUE)};

static double normal(struct rng *r)
{
	double u = 1 - rng_double(r), v = rng_double(r);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double exponential(struct rng *r, double mean)
{
	return -mean * log(1 - rng_double(r));
}

static double rate_s(unsigned tasks)
{
	return (double)tasks * (double)efig_costs.task_mb_s * 1e6;
}

static void make_job(struct rng *r, double tenant_scale, struct efig_job *j)
{
	double sigma = (double)efig_costs.stage_milli_sigma / 1e3;
	double spread = (double)efig_costs.data_milli_sigma / 1e3;
	double most = (double)efig_costs.data_max_mb * 1e6;
	uint64_t largest = 0;

	j->stages = 2;
	while (j->stages < efig_costs.stages_max && rng_below(r, 2))
		j->stages++;
	for (unsigned i = 0; i < j->stages; i++) {
		struct efig_stage *s = &j->stage[i];
		double bytes = (double)efig_costs.data_kb * 1e3 * tenant_scale *
			       exp(spread * normal(r));

		s->work_s = (double)efig_costs.stage_milli_s / 1e3 *
			    exp(sigma * normal(r));
		s->bytes = i + 1 < j->stages ? (uint64_t)fmin(bytes, most) : 0;
		largest = u64_max(largest, s->bytes);
	}
	j->tasks = (unsigned)u64_min(
		1 + largest / (efig_costs.task_data_mb * 1000000),
		efig_costs.tasks_max);
}

static double moved(const struct efig_job *j, unsigned stage)
{
	return (double)(j->stage[stage].bytes +
			(stage ? j->stage[stage - 1].bytes : 0));
}

double efig_stage_s(const struct efig_job *j, unsigned stage)
{
	return j->stage[stage].work_s +
	       moved(j, stage) /
		       (j->tasks * (double)efig_costs.work_mb_s * 1e6);
}

static double span_s(const struct efig_job *j, unsigned stage)
{
	return efig_stage_s(j, stage) + moved(j, stage) / rate_s(j->tasks);
}

double efig_job_s(const struct efig_job *j)
{
	double s = 0;

	for (unsigned i = 0; i < j->stages; i++)
		s += span_s(j, i);
	return s;
}

uint64_t efig_job_peak(const struct efig_job *j)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < j->stages; i++)
		most = u64_max(most, j->stage[i].bytes +
					     (i ? j->stage[i - 1].bytes : 0));
	return most;
}

static int by_start(const void *a, const void *b)
{
	double x = ((const struct efig_job *)a)->start_s;
	double y = ((const struct efig_job *)b)->start_s;

	return (x > y) - (x < y);
}

/* ---- statistics ---------------------------------------------------------- */

void efig_work_demand(const struct efig_job *j, double *sum, unsigned seconds)
{
	double at = j->start_s, before = 0;

	for (unsigned i = 0; i < j->stages; i++) {
		double out = (double)j->stage[i].bytes;
		double span = span_s(j, i);

		for (unsigned t = (unsigned)at; t < at + span && t < seconds;
		     t++) {
			double done = fmin(1, fmax(0, (t + 1 - at) / span));
			double share = fmin(t + 1, at + span) - fmax(t, at);

			sum[t] += (before + out * done) * share;
		}
		at += span;
		before = out;
	}
}

static int count(struct efig_work *w)
{
	unsigned seconds = (unsigned)w->window_s;
	double *all = calloc(seconds, sizeof(*all));
	double *one = calloc(seconds, sizeof(*one));

	for (unsigned t = 0; all && one && t < w->tenants; t++) {
		memset(one, 0, seconds * sizeof(*one));
		for (unsigned i = 0; i < w->jobs; i++)
			if (w->job[i].tenant == t)
				efig_work_demand(&w->job[i], one, seconds);
		for (unsigned s = 0; s < seconds; s++) {
			all[s] += one[s];
			w->tenant_mean[t] += one[s] / seconds;
			w->tenant_peak[t] = fmax(w->tenant_peak[t], one[s]);
		}
	}
	for (unsigned s = 0; all && one && s < seconds; s++) {
		w->mean += all[s] / seconds;
		w->peak = fmax(w->peak, all[s]);
	}
	free(one);
	free(all);
	return all && one ? 0 : -ENOMEM;
}

/* ---- making -------------------------------------------------------------- */

int efig_work_make(struct efig_work *w, unsigned parts, uint64_t seed)
{
	double sigma = (double)efig_costs.busy_milli_sigma / 1e3;
	double power = (double)efig_costs.busy_milli_power / 1e3;
	double scale[EFIG_TENANTS_MAX], weight[EFIG_TENANTS_MAX], sum = 0;
	unsigned made = 0;
	struct rng r;
	int err;

	rng_init(&r, seed);
	*w = (struct efig_work){
		.jobs = (unsigned)efig_costs.jobs / parts,
		.tenants = (unsigned)efig_costs.tenants,
		.window_s = (double)efig_costs.window_s / parts,
	};
	w->job = calloc(w->jobs, sizeof(*w->job));
	if (!w->job)
		return -ENOMEM;
	for (unsigned t = 0; t < w->tenants; t++) {
		weight[t] = exp(sigma * normal(&r));
		scale[t] = pow(weight[t], power);
		sum += weight[t];
	}
	for (unsigned t = 0; t < w->tenants; t++) {
		unsigned share = (unsigned)(weight[t] / sum * w->jobs);
		double at = 0;

		if (t + 1 == w->tenants)
			share = w->jobs - made;
		for (unsigned left = 0; share && made < w->jobs;
		     share--, made++) {
			struct efig_job *j = &w->job[made];

			if (!left) { /* another burst */
				at = rng_double(&r) * w->window_s;
				left = 1 +
				       (unsigned)exponential(
					       &r,
					       (double)efig_costs.burst_jobs);
			}
			left--;
			at += exponential(
				&r, (double)efig_costs.burst_gap_milli_s / 1e3);
			make_job(&r, scale[t], j);
			j->tenant = t;
			j->start_s = fmod(at, w->window_s);
		}
	}
	qsort(w->job, w->jobs, sizeof(*w->job), by_start);
	err = count(w);
	if (err)
		efig_work_free(w);
	return err;
}

void efig_work_free(struct efig_work *w)
{
	free(w->job);
	w->job = NULL;
}
