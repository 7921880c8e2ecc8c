/* SPDX-License-Identifier: Apache-2.0 */
/* Runs are independent objects, so threads only share the list of what is left
 * and the table of unloaded times. */
#include "edm_jobs.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	THREADS_MAX = 64,
	BAR = 30,
};

struct work {
	struct edm_jobs *j;
	struct edm_unloaded *unloaded;
	pthread_mutex_t lock; /* of what follows and of the jobs' sums */
	size_t next, done;
	int rc;
	char why[ERROR_TEXT_MAX];
	struct edm_point *sample; /* [job * seeds + seed] */
};

size_t edm_jobs_add(struct edm_jobs *j, const struct edm_config *c)
{
	if (j->count == j->size) {
		j->size = j->size ? 2 * j->size : 16;
		j->job = realloc(j->job, j->size * sizeof(*j->job));
		ASSERT(j->job);
	}
	j->job[j->count] = (struct edm_job){.c = *c};
	return j->count++;
}

void edm_jobs_release(struct edm_jobs *j)
{
	free(j->job);
}

static double edm_percentile(const struct hist *h, uint32_t part)
{
	return (double)hist_percentile(h, part) / 1000;
}

void edm_point_of(struct edm_point *p, const struct edm_result *r)
{
#define VALUE(type, name, how, value) .name = (value),
	*p = (struct edm_point){EDM_POINT(VALUE)};
#undef VALUE
}

double edm_student(uint32_t n)
{
	static const double t[] = {0,	  0,	 12.706, 4.303, 3.182, 2.776,
				   2.571, 2.447, 2.365,	 2.306, 2.262};

	double free = n - 1.0;

	return n < ARRAY_LEN(t) ? t[n]
				: 1.96 + 2.4 / free + 2.8 / (free * free);
}

static void progress_show(const struct work *w)
{
	const struct edm_jobs *j = w->j;
	size_t total = j->count * j->seeds;
	size_t filled = w->done * BAR / total;

	if (!j->progress)
		return;
	fprintf(stderr, "\r%s [", j->title);
	for (size_t i = 0; i < BAR; i++)
		fputc(i < filled ? '#' : '.', stderr);
	fprintf(stderr, "] %zu/%zu%s", w->done, total,
		w->done == total ? "\n" : "");
	fflush(stderr);
}

/* Takes runs until none is left. */
static void *worker(void *arg)
{
	struct work *w = arg;
	struct edm_result *r = malloc(sizeof(*r));

	pthread_mutex_lock(&w->lock);
	if (!r)
		w->rc = -ENOMEM;
	while (!w->rc && w->next < w->j->count * w->j->seeds) {
		size_t i = w->next++;
		struct edm_config c = w->j->job[i / w->j->seeds].c;
		int rc;

		c.seed += i % w->j->seeds;
		pthread_mutex_unlock(&w->lock);
		rc = edm_run_all(&c, w->unloaded, r);
		pthread_mutex_lock(&w->lock);
		if (rc && !w->rc) {
			w->rc = rc;
			snprintf(w->why, sizeof(w->why), "%s", error_last());
		}
		edm_point_of(&w->sample[i], r);
		w->done++;
		progress_show(w);
	}
	pthread_mutex_unlock(&w->lock);
	free(r);
	return NULL;
}

double edm_half_width(const double *v, uint32_t n)
{
	double mean = 0, square = 0;

	if (n < 2)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		mean += v[i] / n;
	for (uint32_t i = 0; i < n; i++)
		square += (v[i] - mean) * (v[i] - mean);
	return edm_student(n) * sqrt(square / (n - 1) / n);
}

double edm_growth(const struct edm_point *p, const char **trend)
{
	const double v[EDM_PARTS] = {p->part0, p->part1, p->part2, p->part3,
				     p->part4, p->part5, p->part6, p->part7};
	const double middle = (EDM_PARTS - 1) / 2.0, surely = 3.71;
	double mean = 0, slope = 0, xx = 0, error = 0, first = 0, growth;

	for (int i = 0; i < EDM_PARTS; i++) {
		mean += v[i] / EDM_PARTS;
		slope += (i - middle) * v[i];
		xx += (i - middle) * (i - middle);
		first += i < EDM_PARTS / 2 ? v[i] : 0;
	}
	slope /= xx;
	for (int i = 0; i < EDM_PARTS; i++) {
		double off = v[i] - mean - slope * (i - middle);

		error += off * off;
	}
	error = sqrt(error / (EDM_PARTS - 2) / xx);
	growth = first > 0 ? (mean * EDM_PARTS - first) / first : 1;
	*trend = fabs(growth - 1) > 0.1 ? "unsettled" : NULL;
	if (slope * (EDM_PARTS - 1) > 0.05 * mean && slope > surely * error)
		*trend = "overload";
	return growth;
}

/* Means are sums until the end. */
#define FIRST(sum, v)
#define SUM(sum, v)  (sum) += (v);
#define MEAN(sum, v) (sum) += (v);
#define MAX(sum, v)  (sum) = u64_max(sum, v);
#define FIRST_END(sum)
#define SUM_END(sum)
#define MEAN_END(sum) (sum) /= n;
#define MAX_END(sum)

static void job_sum(struct edm_job *job, const struct edm_point *p, uint32_t n)
{
	struct edm_point *m = &job->mean;
	double own[EDM_SEEDS_MAX], common[EDM_SEEDS_MAX], ns[EDM_SEEDS_MAX];

	*m = p[0];
	job->seeds = n;
	for (uint32_t k = 0; k < n; k++) {
		own[k] = p[k].own;
		common[k] = job->common[k] = p[k].common;
		ns[k] = p[k].mean_ns;
		if (!k)
			continue;
#define ADD(type, name, how, value) how(m->name, p[k].name)
		EDM_POINT(ADD)
#undef ADD
	}
#define END(type, name, how, value) how##_END(m->name)
	EDM_POINT(END)
#undef END
	job->growth = edm_growth(m, &job->trend);
	job->own_ci = edm_half_width(own, n);
	job->common_ci = edm_half_width(common, n);
	job->mean_ns_ci = edm_half_width(ns, n);
}

int edm_jobs_run(struct edm_jobs *j)
{
	struct work w = {.j = j};
	pthread_t thread[THREADS_MAX];
	uint32_t started = 0, want;
	int rc;

	j->seeds = j->seeds < 1 ? 1 : u32_min(j->seeds, EDM_SEEDS_MAX);
	want = u32_min(j->threads ? j->threads : 1, THREADS_MAX);
	w.sample = calloc(j->count * j->seeds, sizeof(*w.sample));
	rc = w.sample ? edm_unloaded_create(&w.unloaded) : -ENOMEM;
	if (rc)
		goto out;
	pthread_mutex_init(&w.lock, NULL);
	while (started + 1 < want &&
	       !pthread_create(&thread[started], NULL, worker, &w))
		started++;
	worker(&w);
	while (started)
		pthread_join(thread[--started], NULL);
	pthread_mutex_destroy(&w.lock);
	rc = w.rc;
	if (rc)
		(void)error_set(rc, "%s", w.why);
	for (size_t i = 0; !rc && i < j->count; i++)
		job_sum(&j->job[i], &w.sample[i * j->seeds], j->seeds);
out:
	edm_unloaded_destroy(w.unloaded);
	free(w.sample);
	return rc;
}
