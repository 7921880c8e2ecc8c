/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text writer. */
#include "ctl_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/release.h"

int ctl_metrics_init(struct ctl_metrics *m)
{
	*m = (struct ctl_metrics){0};
	m->stream = open_memstream(&m->text, &m->text_bytes);
	return m->stream ? 0 : -ENOMEM;
}

int ctl_metrics_end(struct ctl_metrics *m, char **text, size_t *text_bytes)
{
	bool failed = ferror(m->stream) != 0;

	if (fclose(m->stream) != 0 || failed) {
		free(m->text);
		return -ENOMEM;
	}
	*text = m->text;
	*text_bytes = m->text_bytes;
	return 0;
}

static void put_escaped(struct ctl_metrics *m, const char *s, bool is_label)
{
	for (; *s; s++) {
		if (*s == '\\')
			fputs("\\\\", m->stream);
		else if (*s == '\n')
			fputs("\\n", m->stream);
		else if (*s == '"' && is_label)
			fputs("\\\"", m->stream);
		else
			fputc(*s, m->stream);
	}
}

void ctl_metrics_family(struct ctl_metrics *m, enum ctl_metric_kind kind,
			const char *name, const char *help)
{
	m->family = name;
	fprintf(m->stream, "# HELP %s ", name);
	put_escaped(m, help, false);
	fprintf(m->stream, "\n# TYPE %s %s\n", name,
		kind == CTL_METRIC_COUNTER ? "counter"
		: kind == CTL_METRIC_GAUGE ? "gauge"
					   : "histogram");
}

/* The labels, and the bound of a bucket if there is one. */
static void put_labels(struct ctl_metrics *m, const char *const *labels,
		       unsigned count, const char *bound)
{
	for (unsigned i = 0; i < count; i++) {
		fprintf(m->stream, "%c%s=\"", i ? ',' : '{', labels[2 * i]);
		put_escaped(m, labels[2 * i + 1], true);
		fputc('"', m->stream);
	}
	if (bound)
		fprintf(m->stream, "%cle=\"%s\"", count ? ',' : '{', bound);
	fputs(count || bound ? "} " : " ", m->stream);
}

void ctl_metrics_sample(struct ctl_metrics *m, uint64_t value,
			const char *const *labels, unsigned count)
{
	fputs(m->family, m->stream);
	put_labels(m, labels, count, NULL);
	fprintf(m->stream, "%" PRIu64 "\n", value);
}

void ctl_metrics_histogram(struct ctl_metrics *m, const double *bounds,
			   const uint64_t *counts, unsigned n, double sum,
			   const char *const *labels, unsigned count)
{
	uint64_t below = 0;
	char bound[32];

	for (unsigned i = 0; i <= n; i++) {
		if (__builtin_add_overflow(below, counts[i], &below))
			below = UINT64_MAX;
		(void)snprintf(bound, sizeof(bound), i < n ? "%g" : "+Inf",
			       i < n ? bounds[i] : 0);
		fprintf(m->stream, "%s_bucket", m->family);
		put_labels(m, labels, count, bound);
		fprintf(m->stream, "%" PRIu64 "\n", below);
	}
	fprintf(m->stream, "%s_sum", m->family);
	put_labels(m, labels, count, NULL);
	fprintf(m->stream, "%.9g\n", sum);
	fprintf(m->stream, "%s_count", m->family);
	put_labels(m, labels, count, NULL);
	fprintf(m->stream, "%" PRIu64 "\n", below);
}

const double ctl_latency_bounds_s[CTL_LATENCY_BOUNDS] = {
	1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3,
	5e-3, 1e-2, 2e-2, 5e-2, 0.1,  0.2,  0.5,  1,	2,    5,
};

unsigned ctl_latency_bound(unsigned bucket)
{
	double high = (double)(hist_bucket_low(bucket) +
			       hist_bucket_width(bucket) - 1) /
		      1e9;
	unsigned i = 0;

	while (i < CTL_LATENCY_BOUNDS && high > ctl_latency_bounds_s[i])
		i++;
	return i;
}

void ctl_metrics_latency(struct ctl_metrics *m, const struct hist *h,
			 const char *const *labels, unsigned count)
{
	uint64_t counts[CTL_LATENCY_BOUNDS + 1] = {0};

	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		if (h->bucket[i])
			counts[ctl_latency_bound(i)] += h->bucket[i];
	ctl_metrics_histogram(m, ctl_latency_bounds_s, counts,
			      CTL_LATENCY_BOUNDS, (double)h->sum / 1e9, labels,
			      count);
}

void ctl_metrics_build(struct ctl_metrics *m)
{
	const char *labels[] = {"version", AQ_RELEASE};

	ctl_metrics_family(m, CTL_METRIC_GAUGE, "aquifer_build_info",
			   "What is running here; always 1.");
	ctl_metrics_sample(m, 1, labels, 1);
}

void ctl_metrics_one(struct ctl_metrics *m, enum ctl_metric_kind kind,
		     const char *name, const char *help, uint64_t value)
{
	ctl_metrics_family(m, kind, name, help);
	ctl_metrics_sample(m, value, NULL, 0);
}
