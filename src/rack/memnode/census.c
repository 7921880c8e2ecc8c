/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tallies of other processes, and their sums. */
#include "census.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/tally.h"
#include "control/ctl_metrics.h"

enum {
	SOURCES = 1024, /* tallies at a time */
	SERIES = 256,	/* kinds, objects and tenants; the last: all others */
	FILES = 512,	/* in one look */
	LABELS = 3,
	BOUNDS = CTL_LATENCY_BOUNDS,
};

#define LOOK_NS	   1000000000ull
#define ASKED_NS   300000000000ull /* nobody asks any more */
#define LOOK_BYTES (64ull << 20)   /* read in one look */

struct values {
	uint64_t count[TALLY_COUNT];
	uint64_t sum_ns;
	uint64_t bucket[BOUNDS + 1];
};

/* What was seen of one tally. */
struct source {
	uint64_t pid, start_ns;
	unsigned number;
	bool is_used, is_there;
	struct values last;
};

struct series {
	enum tally_kind kind;
	char object[COUNTER_TEXT_MAX];
	char tenant[COUNTER_TEXT_MAX];
	unsigned clients; /* now */
	uint64_t look;	  /* the last one that saw a client */
	struct values total;
};

struct mem_census {
	pthread_mutex_t lock; /* guards all that follows */
	char rundir[COUNTER_PATH_MAX];
	uint64_t looked_ns, asked_ns; /* 0: never */
	uint64_t look;		      /* counts them */
	uint64_t bytes;		      /* read in this look */
	unsigned files;
	unsigned series_count;
	uint8_t bound_of[HIST_BUCKETS];
	struct source source[SOURCES];
	struct series series[SERIES];
};

/* ---- life --------------------------------------------------------------- */

int census_create(const char *rundir, struct mem_census **out)
{
	struct mem_census *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	snprintf(c->rundir, sizeof(c->rundir), "%s", rundir);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		c->bound_of[i] = (uint8_t)ctl_latency_bound(i);
	*out = c;
	return 0;
}

void census_destroy(struct mem_census *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- looking ------------------------------------------------------------ */

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_part(uint64_t *total, uint64_t now, uint64_t last)
{
	/* What falls was not seen before: its client began anew, or lies. */
	*total = plus(*total, now >= last ? now - last : now);
}

static void add_growth(struct values *total, const struct values *now,
		       const struct values *last)
{
	unsigned i;

	for (i = 0; i < TALLY_COUNT; i++)
		add_part(&total->count[i], now->count[i], last->count[i]);
	for (i = 0; i <= BOUNDS; i++)
		add_part(&total->bucket[i], now->bucket[i], last->bucket[i]);
	add_part(&total->sum_ns, now->sum_ns, last->sum_ns);
}

static void take_values(const struct mem_census *c, const struct tally_view *t,
			struct values *out)
{
	*out = (struct values){0};
	memcpy(out->count, t->count, sizeof(out->count));
	if (!t->latency)
		return;
	out->sum_ns = t->latency->sum;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t *to = &out->bucket[c->bound_of[i]];

		*to = plus(*to, t->latency->bucket[i]);
	}
}

/* The one whose clients have ended longest ago gives its place up: what it
 * counted is what those who ask have seen. The last one: none has, and whoever
 * was not seen yet in this look was seen in the one before. */
static struct series *unused(struct mem_census *c)
{
	struct series *oldest = NULL;

	for (unsigned i = 0; i < SERIES - 1; i++) {
		struct series *s = &c->series[i];

		if (s->look + 1 < c->look &&
		    (!oldest || s->look < oldest->look))
			oldest = s;
	}
	return oldest ? oldest : &c->series[SERIES - 1];
}

static struct series *series_of(struct mem_census *c,
				const struct tally_view *t)
{
	struct series *s;
	unsigned i;

	for (i = 0; i < c->series_count; i++) {
		s = &c->series[i];
		if (s->kind == t->kind && strcmp(s->object, t->object) == 0 &&
		    strcmp(s->tenant, t->tenant) == 0)
			return s;
	}
	/* The last is for those that have no place of their own. */
	s = i < SERIES - 1 ? &c->series[i] : unused(c);
	if (s != &c->series[SERIES - 1]) {
		*s = (struct series){.kind = t->kind};
		memcpy(s->object, t->object, sizeof(s->object));
		memcpy(s->tenant, t->tenant, sizeof(s->tenant));
	} else {
		s->kind = TALLY_OTHER;
	}
	c->series_count =
		u32_max(c->series_count, (uint32_t)(s - c->series) + 1);
	return s;
}

/* The place of a tally that is known, or a free one; NULL: there is none. */
static struct source *source_of(struct mem_census *c,
				const struct counter_snapshot *snap,
				unsigned number)
{
	uint64_t pid = counter_snapshot_pid(snap);
	uint64_t start_ns = counter_snapshot_start_ns(snap);
	struct source *s = NULL;

	for (unsigned i = 0; i < SOURCES; i++) {
		struct source *at = &c->source[i];

		if (at->is_used && at->pid == pid && at->number == number &&
		    at->start_ns == start_ns)
			return at->is_there ? NULL : at; /* once in a look */
		if (!at->is_used && !s)
			s = at;
	}
	if (s)
		*s = (struct source){.pid = pid,
				     .start_ns = start_ns,
				     .number = number,
				     .is_used = true};
	return s;
}

static int take_file(const char *path, void *user)
{
	struct mem_census *c = user;
	struct counter_snapshot *snap;
	struct tally_view t;
	struct stat st;
	unsigned cursor = 0, n = 0;

	if (c->files++ == FILES || c->bytes > LOOK_BYTES)
		return 1;
	if (lstat(path, &st) == 0 && st.st_size > 0)
		c->bytes += (uint64_t)st.st_size;
	/* It may have ended since it was listed, or be none. */
	if (counter_snapshot_read(path, &snap))
		return 0;
	while (n++ < TALLY_FILE_MAX && tally_next(snap, &cursor, &t)) {
		struct source *source = source_of(c, snap, t.number);
		struct series *series;
		struct values now;

		if (!source)
			continue;
		take_values(c, &t, &now);
		series = series_of(c, &t);
		series->clients++;
		series->look = c->look;
		add_growth(&series->total, &now, &source->last);
		source->last = now;
		source->is_there = true;
	}
	counter_snapshot_free(snap);
	return 0;
}

static void look_locked(struct mem_census *c, uint64_t now_ns)
{
	unsigned i;

	if (c->looked_ns && now_ns - c->looked_ns < LOOK_NS)
		return;
	c->looked_ns = now_ns;
	c->look++;
	c->bytes = 0;
	c->files = 0;
	for (i = 0; i < SOURCES; i++)
		c->source[i].is_there = false;
	for (i = 0; i < c->series_count; i++)
		c->series[i].clients = 0;
	/* A directory that cannot be read has nothing to show. */
	(void)!counter_dir_each(c->rundir, take_file, c);
	error_clear();
	for (i = 0; i < SOURCES; i++)
		if (!c->source[i].is_there)
			c->source[i].is_used = false;
}

void census_tick(struct mem_census *c, uint64_t now_ns)
{
	pthread_mutex_lock(&c->lock);
	if (c->asked_ns && now_ns - c->asked_ns < ASKED_NS)
		look_locked(c, now_ns);
	pthread_mutex_unlock(&c->lock);
}

/* ---- telling ------------------------------------------------------------ */

static void put_clients(struct ctl_metrics *m, const struct series *s,
			const char **labels)
{
	ctl_metrics_sample(m, s->clients, labels, LABELS);
}

static void put_operations(struct ctl_metrics *m, const struct series *s,
			   const char **labels)
{
	for (unsigned i = 0; i < TALLY_OPERATIONS; i++) {
		labels[2 * LABELS] = "operation";
		labels[2 * LABELS + 1] = tally_count_name((enum tally_count)i);
		ctl_metrics_sample(m, s->total.count[i], labels, LABELS + 1);
	}
}

static void put_bytes(struct ctl_metrics *m, const struct series *s,
		      const char **labels)
{
	labels[2 * LABELS] = "direction";
	labels[2 * LABELS + 1] = "read";
	ctl_metrics_sample(m, s->total.count[TALLY_READ_BYTES], labels,
			   LABELS + 1);
	labels[2 * LABELS + 1] = "write";
	ctl_metrics_sample(m, s->total.count[TALLY_WRITE_BYTES], labels,
			   LABELS + 1);
}

static void put_errors(struct ctl_metrics *m, const struct series *s,
		       const char **labels)
{
	ctl_metrics_sample(m, s->total.count[TALLY_ERRORS], labels, LABELS);
}

static void put_latency(struct ctl_metrics *m, const struct series *s,
			const char **labels)
{
	ctl_metrics_histogram(m, ctl_latency_bounds_s, s->total.bucket, BOUNDS,
			      (double)s->total.sum_ns / 1e9, labels, LABELS);
}

static const struct {
	const char *name, *help;
	enum ctl_metric_kind kind;
	void (*put)(struct ctl_metrics *m, const struct series *s,
		    const char **labels);
} families[] = {
	{"aquifer_clients", "Clients of this machine.", CTL_METRIC_GAUGE,
	 put_clients},
	{"aquifer_client_operations_total",
	 "Operations that clients of this machine did.", CTL_METRIC_COUNTER,
	 put_operations},
	{"aquifer_client_errors_total", "Operations that failed.",
	 CTL_METRIC_COUNTER, put_errors},
	{"aquifer_client_bytes_total", "Bytes that they read and wrote.",
	 CTL_METRIC_COUNTER, put_bytes},
	{"aquifer_client_latency_seconds", "How long operations took.",
	 CTL_METRIC_HISTOGRAM, put_latency},
};

static bool is_shown(const struct series *s, const char *tenant)
{
	return !tenant || strcmp(s->tenant, tenant) == 0;
}

const char *census_rundir(const struct mem_census *c)
{
	return c->rundir;
}

void census_metrics(struct mem_census *c, struct ctl_metrics *m,
		    const char *tenant, uint64_t now_ns)
{
	unsigned i, shown = 0;

	pthread_mutex_lock(&c->lock);
	c->asked_ns = now_ns;
	look_locked(c, now_ns);
	for (i = 0; i < c->series_count; i++)
		shown += is_shown(&c->series[i], tenant);
	for (size_t f = 0; shown && f < ARRAY_LEN(families); f++) {
		ctl_metrics_family(m, families[f].kind, families[f].name,
				   families[f].help);
		for (i = 0; i < c->series_count; i++) {
			const struct series *s = &c->series[i];
			const char *labels[2 * (LABELS + 1)] = {
				"kind",	  tally_kind_name(s->kind),
				"object", s->object,
				"tenant", s->tenant};

			if (is_shown(s, tenant))
				families[f].put(m, s, labels);
		}
	}
	pthread_mutex_unlock(&c->lock);
}
