/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of counter files and their differences. The files are other users'
 * too: what they say is bounded here and shown, and nothing depends on it. */
#include "cli_top.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/counter.h"

/* How a counter of a process is called, and where its sum goes. */
static const struct field {
	const char *prefix;
	const char *suffix; /* after the last dot */
	size_t offset;
} fields[] = {
#define FIELD(prefix, name)                                           \
	{                                                             \
		prefix, #name, offsetof(struct cli_top_process, name) \
	}
	FIELD("switch.", frames),	 FIELD("switch.", forwarded),
	FIELD("switch.", program_drops), FIELD("switch.", program_frames),
	FIELD("engine.", reads),	 FIELD("engine.", writes),
	FIELD("engine.", errors),	 FIELD("engine.", read_bytes),
	FIELD("engine.", write_bytes),	 FIELD("engine.", probes),
	FIELD("engine.", publications),	 FIELD("nic.", rx_bytes),
	FIELD("nic.", tx_bytes),	 FIELD("nic.", rx_frames),
	FIELD("nic.", tx_frames),	 FIELD("nic.", direct_ops),
	FIELD("shared.", faults),	 FIELD("shared.", gets_read),
	FIELD("shared.", gets_write),	 FIELD("shared.", refused),
	FIELD("shared.", invals),	 FIELD("shared.", gives),
	FIELD("shared.", evictions),
#undef FIELD
};

static uint64_t *value_of(struct cli_top_process *p, const struct field *f)
{
	return (uint64_t *)(void *)((char *)p + f->offset);
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void take_value(struct cli_top_process *p, const struct counter_view *v,
		       const char *own_name)
{
	bool is_engine = starts_with(v->name, "engine.");
	bool is_switch = starts_with(v->name, "switch.");
	const char *suffix = strrchr(v->name, '.');
	size_t i;

	if ((is_engine || is_switch) && !p->is_engine && !p->is_switch)
		snprintf(p->name, sizeof(p->name), "%s",
			 starts_with(own_name, "switch-") ? own_name + 7
							  : own_name);
	p->is_engine |= is_engine;
	p->is_switch |= is_switch;
	p->is_cache |= starts_with(v->name, "shared.");
	if (v->kind == COUNTER_GAUGE &&
	    strcmp(v->name, "shared.cached_bytes") == 0)
		p->cached_bytes = v->value;
	if (v->kind == COUNTER_GAUGE && strcmp(v->name, "engine.sessions") == 0)
		p->sessions = v->value;
	for (i = 0; i < ARRAY_LEN(fields) && v->kind == COUNTER_COUNT; i++)
		if (suffix && strcmp(fields[i].suffix, suffix + 1) == 0 &&
		    starts_with(v->name, fields[i].prefix))
			*value_of(p, &fields[i]) += v->value;
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
	/* Its process gave itself that name. */
	for (char *c = p->name; *c; c++)
		if (*c < 0x20 || *c >= 0x7f)
			*c = '?';
}

static struct cli_top_process *process_of(struct cli_top_sample *s,
					  uint64_t pid)
{
	struct cli_top_process *p;
	unsigned i;

	for (i = 0; i < s->process_count; i++)
		if (s->process[i].pid == pid)
			return &s->process[i];
	if (i == CLI_TOP_PROCESS_MAX)
		return NULL;
	p = &s->process[s->process_count++];
	p->pid = pid;
	name_process(p);
	return p;
}

static void take_tallies(struct cli_top_sample *s,
			 const struct cli_top_process *p,
			 const struct counter_snapshot *snap)
{
	unsigned cursor = 0, n = 0;
	struct tally_view t;

	while (s->client_count < CLI_TOP_CLIENT_MAX && n++ < TALLY_FILE_MAX &&
	       tally_next(snap, &cursor, &t)) {
		struct cli_top_client *c = &s->client[s->client_count++];

		*c = (struct cli_top_client){
			.pid = p->pid,
			.start_ns = counter_snapshot_start_ns(snap),
			.number = t.number,
			.kind = t.kind};
		memcpy(c->process, p->name, sizeof(c->process));
		memcpy(c->object, t.object, sizeof(c->object));
		memcpy(c->tenant, t.tenant, sizeof(c->tenant));
		memcpy(c->count, t.count, sizeof(c->count));
		if (t.latency)
			c->latency = *t.latency;
	}
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
	p = process_of(s, counter_snapshot_pid(snap));
	while (p && counter_snapshot_next(snap, &cursor, &view))
		take_value(p, &view, counter_snapshot_process(snap));
	if (p)
		take_tallies(s, p, snap);
	counter_snapshot_free(snap);
	return 0;
}

/* Leaves it empty, with room for clients; false: there is no memory. */
static bool clear(struct cli_top_sample *s)
{
	struct cli_top_client *client = s->client;

	if (!client)
		client = malloc(CLI_TOP_CLIENT_MAX * sizeof(*client));
	memset(s, 0, sizeof(*s));
	s->client = client;
	return client != NULL;
}

void cli_top_take(const char *rundir, struct cli_top_sample *out)
{
	bool has_room = clear(out);
	int err = 0;

	out->at_ns = clock_mono_ns();
	if (has_room)
		err = counter_dir_each(rundir, take_file, out);
	/* A directory that cannot be read has nothing to show. */
	(void)err;
}

void cli_top_release(struct cli_top_sample *s)
{
	free(s->client);
	s->client = NULL;
}

/* ---- differences --------------------------------------------------------- */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void diff_process(struct cli_top_process *p, struct cli_top_process old)
{
	for (size_t f = 0; f < ARRAY_LEN(fields); f++)
		*value_of(p, &fields[f]) = minus(*value_of(p, &fields[f]),
						 *value_of(&old, &fields[f]));
}

static void diff_client(struct cli_top_client *c,
			const struct cli_top_client *old)
{
	unsigned i;

	for (i = 0; i < TALLY_COUNT; i++)
		c->count[i] = minus(c->count[i], old->count[i]);
	c->latency.sum = minus(c->latency.sum, old->latency.sum);
	for (i = 0; i < HIST_BUCKETS; i++)
		c->latency.bucket[i] =
			minus(c->latency.bucket[i], old->latency.bucket[i]);
}

static const struct cli_top_client *find_client(
	const struct cli_top_sample *s, const struct cli_top_client *like)
{
	for (unsigned i = 0; i < s->client_count; i++) {
		const struct cli_top_client *c = &s->client[i];

		if (c->start_ns == like->start_ns &&
		    c->number == like->number && cli_top_same_client(c, like))
			return c;
	}
	return NULL;
}

void cli_top_diff(const struct cli_top_sample *before,
		  const struct cli_top_sample *now, struct cli_top_sample *out)
{
	const struct cli_top_client *old;
	unsigned i, k;

	if (!clear(out))
		return;
	out->at_ns = now->at_ns - before->at_ns;
	out->process_count = now->process_count;
	memcpy(out->process, now->process, sizeof(out->process));
	for (i = 0; i < out->process_count; i++)
		for (k = 0; k < before->process_count; k++)
			if (before->process[k].pid == out->process[i].pid)
				diff_process(&out->process[i],
					     before->process[k]);
	out->client_count = now->client_count;
	for (i = 0; i < out->client_count; i++) {
		out->client[i] = now->client[i];
		old = find_client(before, &now->client[i]);
		if (old)
			diff_client(&out->client[i], old);
	}
}
