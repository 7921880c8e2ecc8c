/* SPDX-License-Identifier: Apache-2.0 */
/* What shared memory does, for people and collectors: what the switch's program
 * counts, as the lead was told last, and what cache servers of this host
 * count. */
#include <stdio.h>
#include <string.h>

#include "base/counter.h"
#include "base/error.h"
#include "mem_priv.h"
#include "shared_priv.h"

enum {
	CACHES_MAX = 16,
	CACHE_FILES_MAX = 1024, /* that are looked at */
};

/* Keys of the program's report, names of metrics, and what they mean. The last
 * two are numbers that only grow, whose difference is told. */
static const struct {
	const char *key, *metric, *help;
} uses[] = {
	{"gets", "aquifer_shared_gets_total", "Pages that machines asked for."},
	{"waits", "aquifer_shared_waits_total",
	 "Those that met a busy region and waited."},
	{"refused", "aquifer_shared_refused_total", "Those that were refused."},
	{"invals", "aquifer_shared_invalidations_total",
	 "Invalidations that machines were sent."},
	{"gives", "aquifer_shared_given_back_total",
	 "Pages that machines gave back."},
	{"false_invals", "aquifer_shared_false_invalidations_total",
	 "Pages given back that nobody had asked for."},
	{"recalls", "aquifer_shared_recalls_total",
	 "Regions taken back for room in the directory."},
	{"splits", "aquifer_shared_splits_total", "Regions that were split."},
	{"joins", "aquifer_shared_joins_total", "Regions that were joined."},
	{"entries_made", NULL, NULL},
	{"entries_freed", NULL, NULL},
};

enum {
	USES = ARRAY_LEN(uses),
	MADE = USES - 2,
	FREED = USES - 1,
};
STATIC_ASSERT(ARRAY_LEN(uses) <= MEM_SHARED_USES,
	      "there is room for all of them");

/* ---- the switch -----------------------------------------------------------
 */

void shared_use_note(struct mem_shared_use *u, const json_t *program)
{
	for (unsigned i = 0; i < USES; i++) {
		json_int_t v = json_integer_value(
			json_object_get(program, uses[i].key));

		u->value[i] = v < 0 ? 0 : (uint64_t)v;
	}
}

static uint64_t directory_used(const struct mem_shared_use *u)
{
	return u->value[MADE] - u64_min(u->value[FREED], u->value[MADE]);
}

json_t *shared_use_describe(const struct mem_shared_use *u)
{
	json_t *tree = json_object();

	for (unsigned i = 0; i < MADE; i++)
		(void)json_object_set_new(
			tree, uses[i].key,
			json_integer((json_int_t)u->value[i]));
	(void)json_object_set_new(tree, "directory_used",
				  json_integer((json_int_t)directory_used(u)));
	return tree;
}

void shared_use_metrics(struct ctl_metrics *m, const struct mem_shared_use *u)
{
	for (unsigned i = 0; i < MADE; i++)
		ctl_metrics_one(m, CTL_METRIC_COUNTER, uses[i].metric,
				uses[i].help, u->value[i]);
	ctl_metrics_one(m, CTL_METRIC_GAUGE, "aquifer_shared_directory_used",
			"Entries of the switch's directory in use.",
			directory_used(u));
}

/* ---- cache servers of this host -------------------------------------------
 */

static const struct {
	const char *counter, *metric, *help;
	enum ctl_metric_kind kind;
} kept[] = {
	{"shared.faults", "aquifer_shared_cache_faults_total",
	 "Page faults of programs.", CTL_METRIC_COUNTER},
	{"shared.gets_read", "aquifer_shared_cache_gets_read_total",
	 "Pages asked for to read.", CTL_METRIC_COUNTER},
	{"shared.gets_write", "aquifer_shared_cache_gets_write_total",
	 "Pages asked for to write.", CTL_METRIC_COUNTER},
	{"shared.refused", "aquifer_shared_cache_refused_total",
	 "Gets that were refused.", CTL_METRIC_COUNTER},
	{"shared.invals", "aquifer_shared_cache_invalidations_total",
	 "Invalidations of the switch.", CTL_METRIC_COUNTER},
	{"shared.gives", "aquifer_shared_cache_given_back_total",
	 "Pages given back.", CTL_METRIC_COUNTER},
	{"shared.evictions", "aquifer_shared_cache_evictions_total",
	 "Pages given up for others.", CTL_METRIC_COUNTER},
	{"shared.cached_bytes", "aquifer_shared_cache_bytes",
	 "Memory of cached pages.", CTL_METRIC_GAUGE},
};

struct caches {
	unsigned count, files;
	struct {
		uint64_t pid;
		uint64_t value[ARRAY_LEN(kept)];
	} cache[CACHES_MAX];
};

static int take_file(const char *path, void *user)
{
	struct caches *c = user;
	struct counter_snapshot *snap;
	struct counter_view v;
	unsigned cursor = 0;

	if (c->files++ == CACHE_FILES_MAX || c->count == CACHES_MAX)
		return 0;
	/* It may have ended since it was listed. */
	if (counter_snapshot_read(path, &snap))
		return 0;
	if (strcmp(counter_snapshot_process(snap), "shared-cache") == 0) {
		c->cache[c->count].pid = counter_snapshot_pid(snap);
		while (counter_snapshot_next(snap, &cursor, &v))
			for (unsigned i = 0; i < ARRAY_LEN(kept); i++)
				if (strcmp(kept[i].counter, v.name) == 0)
					c->cache[c->count].value[i] = v.value;
		c->count++;
	}
	counter_snapshot_free(snap);
	return 0;
}

void shared_caches_metrics(struct ctl_metrics *m, const char *rundir)
{
	struct caches c = {0};

	/* A directory that cannot be read has nothing to show. */
	(void)!counter_dir_each(rundir, take_file, &c);
	error_clear();
	for (unsigned f = 0; c.count && f < ARRAY_LEN(kept); f++) {
		ctl_metrics_family(m, kept[f].kind, kept[f].metric,
				   kept[f].help);
		for (unsigned i = 0; i < c.count; i++) {
			char pid[24];
			const char *labels[] = {"pid", pid};

			(void)snprintf(pid, sizeof(pid), "%llu",
				       (unsigned long long)c.cache[i].pid);
			ctl_metrics_sample(m, c.cache[i].value[f], labels, 1);
		}
	}
}
