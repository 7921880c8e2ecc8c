/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes metrics as Prometheus text (exposition format 0.0.4): families one
 * after the other, each with its samples. One thread. Running out of memory is
 * remembered and reported at the end.
 */
#ifndef AQ_CTL_METRICS_H
#define AQ_CTL_METRICS_H

#include <stdio.h>

#include "base/base.h"
#include "base/hist.h"

#define CTL_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum ctl_metric_kind {
	CTL_METRIC_COUNTER, /* the name ends in _total */
	CTL_METRIC_GAUGE,
	CTL_METRIC_HISTOGRAM,
};

struct ctl_metrics {
	FILE *stream;
	char *text;
	size_t text_bytes;
	const char *family; /* the one whose samples follow */
};

int ctl_metrics_init(struct ctl_metrics *m) MUST_CHECK; /* -ENOMEM */
/* Hands the text over, on the heap. -ENOMEM: some of it was lost. */
int ctl_metrics_end(struct ctl_metrics *m, char **text,
		    size_t *text_bytes) MUST_CHECK;

void ctl_metrics_family(struct ctl_metrics *m, enum ctl_metric_kind kind,
			const char *name, const char *help);
/* A sample with `count` labels: name, value, name, value... */
void ctl_metrics_sample(struct ctl_metrics *m, uint64_t value,
			const char *const *labels, unsigned count);
/* All samples of a histogram: counts[i] values are above bounds[i - 1] and not
 * above bounds[i]; counts[n] are above all n bounds. */
void ctl_metrics_histogram(struct ctl_metrics *m, const double *bounds,
			   const uint64_t *counts, unsigned n, double sum,
			   const char *const *labels, unsigned count);

/* Latencies are told in these buckets, seconds, 1 us to 5 s. */
enum {
	CTL_LATENCY_BOUNDS = 21,
};
extern const double ctl_latency_bounds_s[CTL_LATENCY_BOUNDS];
/* Which of them is the first that has all values of a bucket of struct hist,
 * which are nanoseconds; CTL_LATENCY_BOUNDS: none. */
unsigned ctl_latency_bound(unsigned bucket);
/* The samples of one histogram of nanoseconds. */
void ctl_metrics_latency(struct ctl_metrics *m, const struct hist *h,
			 const char *const *labels, unsigned count);

/* What is running here, as every exporter has it: aquifer_build_info. */
void ctl_metrics_build(struct ctl_metrics *m);
/* A family of one sample without labels. */
void ctl_metrics_one(struct ctl_metrics *m, enum ctl_metric_kind kind,
		     const char *name, const char *help, uint64_t value);

#endif
