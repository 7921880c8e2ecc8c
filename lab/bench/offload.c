/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench offload`: an application whose records are in far memory, and
 * every way to get them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload_bench.h"
#include "probe.h"

static bool is_probe(const struct offload_group *g)
{
	return g->ops != &offload_log_ops;
}

/* Far memory that the groups of one rack need, and which regions to fill. */
static uint64_t count_memory(const struct bench *b,
			     const struct offload_plan *plan, bool at_switch,
			     uint32_t *sizes, unsigned *size_count)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < plan->group_count; i++) {
		const struct offload_group *g = &plan->more[i];
		bool known = false;

		if (g->is_at_switch != at_switch || !g->record_bytes ||
		    !bench_wants(b, plan->group[i].name))
			continue;
		/* A store of each way, and room for its spread. */
		if (!is_probe(g)) {
			total += plan->group[i].subject_count *
				 (plan->cfg.log_bytes / 8 * 9 + (8 << 20));
			continue;
		}
		for (unsigned k = 0; k < *size_count; k++)
			known = known || sizes[k] == g->record_bytes;
		if (known)
			continue;
		sizes[(*size_count)++] = g->record_bytes;
		total += probe_far_bytes(plan->cfg.probe_records,
					 g->record_bytes) +
			 (4 << 20);
	}
	return total;
}

/* ---- what a row has besides ---------------------------------------------- */

STATIC_ASSERT((unsigned)OFFLOAD_READ_COUNT <= SUBJECT_READ_MAX,
	      "a round has a place for each");
#define READ(what) (SUBJECT_MORE_READ + OFFLOAD_READ_##what)

/* What passed the switch, and what its program did. */
static void add_switch_keys(const struct conduct_track *t, json_t *row)
{
	static const struct {
		const char *key;
		unsigned more;
		bool is_program;
	} keys[] = {
		{"switch_in_per_op", READ(SWITCH_IN), false},
		{"switch_made_per_op", READ(SWITCH_MADE), true},
		{"app_writes_per_op", READ(APP_WRITES), true},
		{"app_bytes_per_op", READ(APP_BYTES), true},
	};
	const struct offload_param *p = t->desc->param;
	double probes = conduct_more(t, READ(PROBES), false) * 1e9 /
			conduct_more(t, READ(NS), false);

	json_object_set_new(
		row, "switch_cpu",
		json_real(conduct_more(t, SUBJECT_MORE_CPU + 2, false)));
	for (size_t i = 0; i < ARRAY_LEN(keys) && p->record_bytes; i++)
		if (!keys[i].is_program || p->way == WAY_P4)
			json_object_set_new(
				row, keys[i].key,
				json_real(conduct_more(t, keys[i].more, true)));
	if (p->way == WAY_P4)
		json_object_set_new(
			row, "probes_per_s",
			json_real(p->record_bytes
					  ? probes
					  : conduct_more(t, SIDE_MORE_OWN,
							 false)));
}

static void add_keys(struct bench *b, const struct conduct_group *g,
		     const struct conduct_track *t, json_t *row)
{
	const struct offload_param *p = t->desc->param;
	const struct {
		const char *key;
		unsigned more;
		bool is_per_op, is_timed;
	} keys[] = {
		{"packets_per_op", READ(PACKETS), true, false},
		{"wire_bytes_per_op", READ(BYTES), true, false},
		{"memory_cpu", SUBJECT_MORE_CPU, false, false},
		{"engine_cpu", SUBJECT_MORE_CPU + 1, false, false},
		{"far_share", SIDE_MORE_FAR, false, false},
		{"comm_share", SIDE_MORE_COMM, false, true},
		{"empty_poll_share", SIDE_MORE_EMPTY, false, true},
	};

	json_object_set_new(row, "record_bytes",
			    json_integer((json_int_t)p->record_bytes));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (p->is_timed || !keys[i].is_timed)
			json_object_set_new(
				row, keys[i].key,
				json_real(conduct_more(t, keys[i].more,
						       keys[i].is_per_op)));
	if (g->metric == METRIC_CALLER)
		json_object_update_new(row,
				       json_pack("{s:f, s:f}", "issue",
						 conduct_series(t, 0), "poll",
						 conduct_series(t, 1)));
	if (p->is_at_switch)
		add_switch_keys(t, row);
}

/* ---- the run ------------------------------------------------------------- */

/* The groups of one rack, `count` of them from `first` on. */
static int measure(struct bench *b, struct offload_plan *plan, unsigned first,
		   unsigned count)
{
	struct conduct_options opt = {.rounds = b->rounds,
				      .window_ns = b->window_ms * 1000000ull,
				      .keep_all = b->busy};
	uint32_t sizes[OFFLOAD_GROUP_MAX];
	bool at_switch = plan->more[first].is_at_switch;
	struct offload_rack *rack;
	unsigned size_count = 0, wanted = 0;
	uint64_t pool = count_memory(b, plan, at_switch, sizes, &size_count);
	int rc;

	for (unsigned i = first; i < first + count; i++)
		wanted += bench_wants(b, plan->group[i].name);
	if (!wanted)
		return 0;
	rc = at_switch ? offload_rack_start_switch(pool, &rack)
		       : offload_rack_start(pool, &rack);
	if (rc < 0)
		return bench_fail(b, rc,
				  "no rack: %s; 'aquifer up' may say why",
				  strerror(-rc));
	rc = offload_prepare(&plan->cfg, sizes, size_count);
	if (rc < 0) {
		(void)bench_fail(b, rc, "the records cannot be written: %s",
				 strerror(-rc));
	} else {
		opt.world = offload_rack_world(rack);
		rc = bench_run_groups(b, plan->group + first, count, &opt,
				      add_keys);
	}
	offload_rack_stop(rack);
	return rc;
}

static int run(struct bench *b)
{
	struct offload_plan *plan = calloc(1, sizeof(*plan));
	const char *dir = bench_word(b, "dir");
	unsigned first = 0;
	int rc;

	if (!plan)
		return bench_fail(b, -ENOMEM, "no memory");
	plan->cfg.probe_records = bench_number(b, "records");
	plan->cfg.log_bytes = bench_number(b, "store") << 20;
	snprintf(plan->cfg.dir, sizeof(plan->cfg.dir), "%s",
		 dir ? dir : "/var/tmp");
	offload_plan_init(plan);
	while (first < plan->group_count && !plan->more[first].is_at_switch)
		first++;
	rc = measure(b, plan, 0, first);
	if (rc == 0)
		rc = measure(b, plan, first, plan->group_count - first);
	free(plan);
	return rc;
}

static const struct bench_option options[] = {
	BENCH_OPTION("records", "N", "records of the hash probe", 1000,
		     100000000, 2 << 20, 32 << 10),
	BENCH_OPTION("store", "MB",
		     "records in the store; the paper's 18 GB / 256", 8,
		     32 << 10, 72, 16),
	BENCH_WORD("dir", "DIR", "where the file is, /var/tmp unless given"),
	{.name = NULL},
};
static const char *const columns[] = {"p50",
				      "p99",
				      "issue",
				      "poll",
				      "packets_per_op",
				      "wire_bytes_per_op",
				      "memory_cpu",
				      "engine_cpu",
				      "switch_cpu",
				      "switch_in_per_op",
				      "switch_made_per_op",
				      "app_writes_per_op",
				      "app_bytes_per_op",
				      "probes_per_s",
				      "rounds",
				      NULL};

const struct bench_def bench_offload = {
	.name = "offload",
	.summary = "far records by an engine, verbs, messages, a file",
	.about = "Measures an application whose records are in far memory: "
		 "local memory, a file,\nverbs in several ways, and requests "
		 "that an engine executes (Cowbird), in turns,\non a rack of "
		 "its own; then what an engine in a switch does on another, "
		 "whose NICs are all\nat one. "
		 "The application's thread has one core; its NIC, the "
		 "engine,\nthe switch and the memory node share the other.\n",
	.rounds = 9,
	.rounds_quick = 1,
	.window_ms = 100,
	.window_ms_quick = 20,
	.options = options,
	.ratios = offload_ratios,
	.columns = columns,
	.run = run,
};
