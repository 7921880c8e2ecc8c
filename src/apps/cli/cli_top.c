/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of counter files and their differences. */
#include "cli_top.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/counter.h"

/* How a counter is called, and where its sum goes. */
static const struct field {
	const char *suffix; /* after the last dot */
	bool is_client;	    /* or an engine */
	bool is_switch;
	size_t offset;
} fields[] = {
#define SWITCH_FIELD(name)                                                 \
	{                                                                  \
#name, false, true, offsetof(struct cli_top_process, name) \
	}
	SWITCH_FIELD(frames),	     SWITCH_FIELD(forwarded),
	SWITCH_FIELD(program_drops), SWITCH_FIELD(program_frames),
#undef SWITCH_FIELD
#define FIELD(name, client)                                                  \
	{                                                                    \
#name, client, false, offsetof(struct cli_top_process, name) \
	}
	FIELD(reads, true),	     FIELD(writes, true),
	FIELD(atomics, true),	     FIELD(errors, true),
	FIELD(read_bytes, true),     FIELD(write_bytes, true),
	FIELD(rx_bytes, false),	     FIELD(tx_bytes, false),
	FIELD(rx_frames, false),     FIELD(tx_frames, false),
	FIELD(direct_ops, false),    FIELD(probes, true),
	FIELD(publications, true),
#undef FIELD
};

static uint64_t *value_of(struct cli_top_process *p, const struct field *f)
{
	return (uint64_t *)(void *)((char *)p + f->offset);
}

static struct cli_top_process *find(struct cli_top_sample *s, uint64_t pid)
{
	unsigned i;

	for (i = 0; i < s->count; i++)
		if (s->process[i].pid == pid)
			return &s->process[i];
	return NULL;
}

static void take_view(struct cli_top_sample *s, struct cli_top_process *p,
		      const struct counter_view *v)
{
	bool is_engine = strncmp(v->name, "engine.", 7) == 0;
	bool is_client = strncmp(v->name, "client.", 7) == 0 || is_engine;
	bool is_switch = strncmp(v->name, "switch.", 7) == 0;
	const char *suffix = strrchr(v->name, '.');
	size_t i;

	if (!suffix ||
	    (!is_client && !is_switch && strncmp(v->name, "nic.", 4) != 0))
		return;
	suffix++;
	if (v->kind == COUNTER_GAUGE && is_engine)
		p->sessions = v->value;
	if (v->kind == COUNTER_HIST && is_client) {
		hist_merge(&s->latency, v->hist);
		return;
	}
	for (i = 0; i < ARRAY_LEN(fields); i++)
		if (v->kind == COUNTER_COUNT &&
		    fields[i].is_client == is_client &&
		    fields[i].is_switch == is_switch &&
		    strcmp(fields[i].suffix, suffix) == 0)
			*value_of(p, &fields[i]) += v->value;
	p->is_client |= is_client && !is_engine;
	p->is_engine |= is_engine;
	p->is_switch |= is_switch;
}

static void name_process(struct cli_top_process *p)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%llu/comm",
		 (unsigned long long)p->pid);
	f = fopen(path, "re");
	if (!f || !fgets(p->name, sizeof(p->name), f))
		snprintf(p->name, sizeof(p->name), "?");
	p->name[strcspn(p->name, "\n")] = '\0';
	if (f)
		fclose(f);
}

static int take_file(const char *path, void *user)
{
	struct cli_top_sample *s = user;
	struct counter_snapshot *snap;
	struct cli_top_process *p;
	struct counter_view view;
	unsigned cursor = 0;

	/* It may have ended since it was listed. */
	if (counter_snapshot_read(path, &snap))
		return 0;
	p = find(s, counter_snapshot_pid(snap));
	if (!p && s->count < CLI_TOP_PROCESS_MAX) {
		p = &s->process[s->count++];
		p->pid = counter_snapshot_pid(snap);
		name_process(p);
	}
	while (p && counter_snapshot_next(snap, &cursor, &view))
		take_view(s, p, &view);
	counter_snapshot_free(snap);
	return 0;
}

void cli_top_take(const char *rundir, struct cli_top_sample *out)
{
	int err;

	memset(out, 0, sizeof(*out));
	hist_init(&out->latency);
	out->at_ns = clock_mono_ns();
	err = counter_dir_each(rundir, take_file, out);
	/* A directory that cannot be read has nothing to show. */
	(void)err;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void cli_top_diff(const struct cli_top_sample *before,
		  const struct cli_top_sample *now, struct cli_top_sample *out)
{
	unsigned i, k;

	*out = *now;
	out->at_ns = now->at_ns - before->at_ns;
	for (i = 0; i < out->count; i++) {
		struct cli_top_process *p = &out->process[i];

		for (k = 0; k < before->count; k++) {
			struct cli_top_process old = before->process[k];

			if (old.pid != p->pid)
				continue;
			for (size_t f = 0; f < ARRAY_LEN(fields); f++)
				*value_of(p, &fields[f]) =
					minus(*value_of(p, &fields[f]),
					      *value_of(&old, &fields[f]));
		}
	}
	out->latency.sum = minus(now->latency.sum, before->latency.sum);
	for (i = 0; i < HIST_BUCKETS; i++)
		out->latency.bucket[i] = minus(now->latency.bucket[i],
					       before->latency.bucket[i]);
}
