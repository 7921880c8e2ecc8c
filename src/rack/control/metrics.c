/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text writer. */
#include "ctl_metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

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
		kind == CTL_METRIC_COUNTER ? "counter" : "gauge");
}

void ctl_metrics_sample(struct ctl_metrics *m, uint64_t value,
			const char *const *labels, unsigned count)
{
	fputs(m->family, m->stream);
	for (unsigned i = 0; i < count; i++) {
		fprintf(m->stream, "%c%s=\"", i ? ',' : '{', labels[2 * i]);
		put_escaped(m, labels[2 * i + 1], true);
		fputc('"', m->stream);
	}
	fprintf(m->stream, "%s %" PRIu64 "\n", count ? "}" : "", value);
}

void ctl_metrics_one(struct ctl_metrics *m, enum ctl_metric_kind kind,
		     const char *name, const char *help, uint64_t value)
{
	ctl_metrics_family(m, kind, name, help);
	ctl_metrics_sample(m, value, NULL, 0);
}
