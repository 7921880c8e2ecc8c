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

#define CTL_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum ctl_metric_kind {
	CTL_METRIC_COUNTER, /* the name ends in _total */
	CTL_METRIC_GAUGE,
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
/* A family of one sample without labels. */
void ctl_metrics_one(struct ctl_metrics *m, enum ctl_metric_kind kind,
		     const char *name, const char *help, uint64_t value);

#endif
