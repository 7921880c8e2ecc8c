/* SPDX-License-Identifier: Apache-2.0 */
/* RCuckoo's figures: which points they have, and what was published. */
#include <string.h>

#include "kv_rows.h"
#include "sim/sim.h"

enum {
	ALL_CLIENTS = 320,
	FEW_CLIENTS = 8,
	LARGE = 1000000, /* entries, where locks must not be few */
	MANY = 4000000,
	MOST = 8000000, /* the nearest to the published 100 million */
	DEATH_TABLE = 4000000,
	FAILURE_MS = 100, /* as published; a table's default is a second */
	FAILURE_MS_SHIPPED = 1000,
	PERCENT = 10000, /* of a million */
};

/* Until as many clients wait for the most popular keys as will: each meets one
 * of them now and then, and then it takes long. */
#define WARM_PS (1500 * SIM_US)
#define SPAN_PS (500 * SIM_US)

static const uint32_t clients_all[] = {10, 80, 160, ALL_CLIENTS};
static const uint32_t fills[] = {10, 50, 70, 90};
static const uint32_t rows_few[] = {1, 4, 16, 64};
static const uint32_t rows_all[] = {1, 2, 4, 8, 16, 32, 64, 512};
static const uint32_t failures[] = {0, 100, 500, 1000};
static const uint32_t entries[] = {16, 32, 48, 64, 96, 120};
static const uint32_t values[] = {8, 32, 64, 128, 256, 512, 1024};

#define LIST(a) a, ARRAY_LEN(a)

/* ---- 3.9 to 3.11: the stores, by clients -------------------------------- */

static void stores(struct figure_run *r, const char *panel, uint32_t read_ppm,
		   uint32_t theta_milli)
{
	struct kv_fig_config c = {.read_ppm = read_ppm,
				  .theta_milli = theta_milli,
				  .warm_ps = WARM_PS,
				  .span_ps = SPAN_PS};

	for (unsigned s = 0; s < KV_FIG_STORES; s++) {
		size_t from = r->options->quick || s >= KV_FIG_PEERS ? 3 : 0;

		c.store = (enum kv_fig_store)s;
		kv_rows_line(r, panel, kv_fig_store_name(c.store), &c,
			     &c.clients, 1, clients_all + from,
			     ARRAY_LEN(clients_all) - from, 1);
	}
}

static int plan_9(struct figure_run *r)
{
	stores(r, NULL, READS_C, 0);
	return 0;
}

static int plan_10(struct figure_run *r)
{
	stores(r, NULL, READS_B, 0);
	return 0;
}

static int plan_11(struct figure_run *r)
{
	stores(r, "at 0.99", READS_A, 0);
	/* What was published of RCuckoo is this, by its author's script. */
	stores(r, "at 0.90", READS_A, 900);
	return 0;
}

/* ---- 3.12 to 3.15: inserts, by fill ------------------------------------- */

static void fill(struct figure_run *r, const char *series, uint32_t clients,
		 uint64_t capacity, uint32_t read_ppm)
{
	struct kv_fig_config c = {.clients = clients,
				  .read_ppm = read_ppm,
				  .inserts = true,
				  .capacity = capacity};

	kv_rows_line(r, NULL, series, &c, &c.fill_ppm, PERCENT, LIST(fills), 3);
}

static int plan_12(struct figure_run *r)
{
	fill(r, "C", ALL_CLIENTS, MOST, READS_C);
	fill(r, "B", ALL_CLIENTS, MOST, READS_B);
	fill(r, "A", ALL_CLIENTS, MOST, READS_A);
	fill(r, "W", ALL_CLIENTS, MOST, 0);
	/* How much of it is the table's size: few locks are shared by more. */
	fill(r, "W, 4 M entries", ALL_CLIENTS, MANY, 0);
	fill(r, "W, 1 M entries", ALL_CLIENTS, LARGE, 0);
	return 0;
}

/* Latency, bytes and messages are columns of the same runs. */
static int plan_13(struct figure_run *r)
{
	fill(r, "reads", FEW_CLIENTS, LARGE, READS_C);
	fill(r, "inserts", FEW_CLIENTS, LARGE, 0);
	return 0;
}

/* ---- 3.7, 3.16 to 3.18: locks and failures ------------------------------ */

/* YCSB-A; who dies does so in an insert. In a steady state: after three times
 * the time after which a silent client is dead. A table without deaths is in
 * one from the start. */
static void deaths(struct figure_run *r, const char *series, uint32_t rows,
		   uint32_t failure_ms)
{
	struct kv_fig_config c = {.clients = ALL_CLIENTS,
				  .read_ppm = READS_A,
				  .capacity = DEATH_TABLE,
				  .failure_ms = failure_ms,
				  .rows_per_lock = rows,
				  .warm_ps = WARM_PS,
				  .span_ps = 5 * SIM_MS};

	kv_rows_line(r, NULL, series, &c, &c.failures, 1, failures, 1, 1);
	c.warm_ps = 3 * failure_ms * SIM_MS;
	c.span_ps = failure_ms * SIM_MS;
	kv_rows_line(r, NULL, series, &c, &c.failures, 1, failures + 1,
		     ARRAY_LEN(failures) - 1, 2);
}

static int plan_16(struct figure_run *r)
{
	deaths(r, "16 rows per lock", 16, FAILURE_MS);
	deaths(r, "64 rows per lock", 64, FAILURE_MS);
	deaths(r, "16 rows, dead after 1 s", 16, FAILURE_MS_SHIPPED);
	return 0;
}

static int plan_7(struct figure_run *r)
{
	struct kv_fig_config c = {.clients = FEW_CLIENTS,
				  .inserts = true,
				  .capacity = 4096,
				  .fill_ppm = 1,
				  .fill_to_ppm = 95 * PERCENT};

	kv_rows_line(r, NULL, "64 locks per message", &c, &c.rows_per_lock, 1,
		     LIST(rows_all), 4);
	c.word_locks = true;
	kv_rows_line(r, NULL, "1 lock per message", &c, &c.rows_per_lock, 1,
		     LIST(rows_all), 4);
	return 0;
}

static int plan_17(struct figure_run *r)
{
	struct kv_fig_config c = {.clients = FEW_CLIENTS,
				  .inserts = true,
				  .capacity = 100000,
				  .fill_ppm = 85 * PERCENT,
				  .fill_to_ppm = 94 * PERCENT};

	kv_rows_line(r, NULL, "dependent, breadth first", &c, &c.rows_per_lock,
		     1, LIST(rows_few), 2);
	c.independent = true;
	kv_rows_line(r, NULL, "independent, depth first", &c, &c.rows_per_lock,
		     1, LIST(rows_few), 2);
	return 0;
}

static int plan_18(struct figure_run *r)
{
	struct kv_fig_config c = {.clients = ALL_CLIENTS,
				  .inserts = true,
				  .capacity = LARGE,
				  .fill_ppm = 85 * PERCENT,
				  .forgets = true};

	/* The client that is shipped reads the rows of its guess and four
	 * more, the published one all rows of the locks. */
	kv_rows_line(r, NULL, "shipped", &c, &c.rows_per_lock, 1,
		     LIST(rows_few), 3);
	c.whole_locks = true;
	kv_rows_line(r, NULL, "all rows of the locks", &c, &c.rows_per_lock, 1,
		     LIST(rows_few), 3);
	return 0;
}

/* ---- 3.19, 3.20: sizes -------------------------------------------------- */

static int plan_19(struct figure_run *r)
{
	struct kv_fig_config c = {.clients = ALL_CLIENTS,
				  .read_ppm = READS_A,
				  .inserts = true,
				  .capacity = LARGE,
				  .fill_ppm = 50 * PERCENT};

	kv_rows_line(r, NULL, "A, inserts", &c, &c.entry_bytes, 1,
		     LIST(entries), 5);
	c.inserts = false;
	c.read_ppm = READS_C;
	kv_rows_line(r, NULL, "C", &c, &c.entry_bytes, 1, LIST(entries), 5);
	return 0;
}

static int plan_20(struct figure_run *r)
{
	static const char *const mix[] = {"A", "B", "C"};
	static const uint32_t read_ppm[] = {READS_A, READS_B, READS_C};
	struct kv_fig_config c = {
		.clients = 120, .capacity = 20000, .entry_bytes = 32};

	for (unsigned m = 0; m < ARRAY_LEN(mix); m++) {
		c.read_ppm = read_ppm[m];
		kv_rows_line(r, NULL, mix[m], &c, &c.value_bytes, 1,
			     LIST(values), 3);
	}
	return 0;
}

/* ---- what was published ------------------------------------------------- */

/* Against the fastest and against the slowest of the others, with one memory
 * node each; the latter is what "up to" means. */
static const struct rivalry {
	const char *figure, *panel, *best, *best_note, *worst, *worst_note;
	double best_published, worst_published;
} rivalries[] = {
	{"3.9", NULL, "c_vs_best_rival", "above all others on YCSB-C",
	 "c_vs_slowest_rival", "2.9 times FUSEE", 1.17, 2.9},
	{"3.10", NULL, "b_vs_best_rival", "above all others on YCSB-B",
	 "b_vs_slowest_rival", "up to 2.5 times the others", 2.7, 2.9},
	{"3.11", "at 0.90", "a90_vs_best_rival", "like FUSEE, 0.96 of it",
	 "a90_vs_slowest_rival", "7.1 times Clover", 0.96, 7.1},
};

/* What stands beside the table, and the table itself, against the published
 * rates; a rival that is too weak is no rival. */
static const struct rate {
	const char *figure, *panel, *what, *series;
	double published;
} rates[] = {
	{"3.9", NULL, "c_table", "table", 46.5},
	{"3.9", NULL, "c_fusee", "fusee-like (model)", 16.2},
	{"3.9", NULL, "c_clover", "clover-like", 39.9},
	{"3.10", NULL, "b_table", "table", 38.6},
	{"3.10", NULL, "b_fusee", "fusee-like (model)", 14.2},
	{"3.10", NULL, "b_clover", "clover-like", 13.4},
	{"3.11", "at 0.90", "a90_table", "table", 11.4},
	{"3.11", "at 0.99", "a_table", "table", 0.56},
	{"3.11", "at 0.99", "a_fusee", "fusee-like (model)", 11.9},
	{"3.11", "at 0.99", "a_clover", "clover-like", 1.6},
};

/* From half of what was published to twice that. */
static void claim(struct figure_run *r, const char *what, double published,
		  const char *unit, const char *note, double ours)
{
	const struct figure_claim c = {.what = what,
				       .published = published,
				       .least = published / 2,
				       .most = published * 2,
				       .unit = unit,
				       .note = note};

	figure_claim_add(r, &c, ours);
}

static void judge_rivalry(struct figure_run *r, const struct rivalry *v)
{
	const struct kv_row *ours =
		figure_find(r, v->panel, "table", ALL_CLIENTS);
	double most = 0, least = 0;

	for (unsigned s = KV_FIG_TABLE + 1; s < KV_FIG_PEERS && ours; s++) {
		const struct kv_row *x = figure_find(
			r, v->panel, kv_fig_store_name((enum kv_fig_store)s),
			ALL_CLIENTS);
		double ratio =
			x && x->res.mops > 0 ? ours->res.mops / x->res.mops : 0;

		if (ratio <= 0)
			continue;
		least = least > 0 && least < ratio ? least : ratio;
		/* Nobody has published a tree with one node. */
		if (s != KV_FIG_TREE)
			most = most > ratio ? most : ratio;
	}
	if (most <= 0)
		return;
	claim(r, v->best, v->best_published, "x", v->best_note, least);
	claim(r, v->worst, v->worst_published, "x", v->worst_note, most);
}

static void judge_rivals(struct figure_run *r)
{
	for (size_t i = 0; i < ARRAY_LEN(rivalries); i++)
		if (!strcmp(rivalries[i].figure, r->figure->name))
			judge_rivalry(r, &rivalries[i]);
	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		const struct rate *t = &rates[i];
		const struct kv_row *x =
			strcmp(t->figure, r->figure->name)
				? NULL
				: figure_find(r, t->panel, t->series,
					      ALL_CLIENTS);

		if (x)
			claim(r, t->what, t->published, "Mops", "",
			      x->res.mops);
	}
}

#define INSERTS "3.13 3.14 3.15"

static const struct figure_claim claims[] = {
	{"3.12", "insert_mops_empty", "mops", "W", 10, NULL, 0, 11.5, 11.5 / 2,
	 11.5 * 2, "Mops", "in a nearly empty table"},
	{"3.12", "insert_mops_90", "mops", "W", 90, NULL, 0, 4.5, 4.5 / 2,
	 4.5 * 2, "Mops", "at 90 % fill"},
	{INSERTS, "insert_latency_90_vs_empty", "change_p50_us", "inserts", 90,
	 "inserts", 10, 2, 1.5, 2.5, "x", "about twice, at maximum fill"},
	{INSERTS, "insert_messages_90_vs_empty", "messages_per_op", "inserts",
	 90, "inserts", 10, 2, 1.5, 2.5, "x", "around 2x"},
	{INSERTS, "insert_bytes_90_vs_empty", "bytes_per_op", "inserts", 90,
	 "inserts", 10, 2, 1.5, 2.5, "x", "around 2x"},
	{"3.17", "insert_p99_trips_bfs_vs_dfs", "trips_p99",
	 "dependent, breadth first", 16, "independent, depth first", 16, 0.1,
	 0.05, 0.2, "x", "an order of magnitude fewer round trips"},
	{"3.18", "second_search_64", "second_share", "shipped", 64, NULL, 0,
	 0.95, 0.95, 0, "", "95 % at 64 rows per lock"},
	{"3.16", "throughput_500_failures", "mops", "16 rows per lock", 500,
	 "16 rows per lock", 0, 0, 0.9, 0, "x",
	 "high until about 500 failures per second"},
	{"3.20", "inline_gain_a", "mops", "A", 8, "A", 64, 1.37, 1.185, 1.74,
	 "x", "inlining gains 37 % on YCSB-A"},
	{"3.20", "inline_gain_b", "mops", "B", 8, "B", 64, 1.21, 1.105, 1.42,
	 "x", "inlining gains 21 % on YCSB-B"},
};

/* ---- the system --------------------------------------------------------- */

static const struct figure figures[] = {
	{"3.7", "round trips to acquire locks, until 95 % are full",
	 "rows per lock", FIGURE_LOG_X, "lock_trips_p50 lock_trips_p99", plan_7,
	 NULL, NULL},
	{"3.9", "YCSB-C beside other stores", "clients", 0, "mops", plan_9,
	 judge_rivals, NULL},
	{"3.10", "YCSB-B beside other stores", "clients", 0, "mops", plan_10,
	 judge_rivals, NULL},
	{"3.11", "YCSB-A beside other stores", "clients", 0, "mops", plan_11,
	 judge_rivals, NULL},
	{"3.12", "inserts and reads", "% full", 0, "mops", plan_12, NULL, NULL},
	{INSERTS, "what reads and inserts cost", "% full", 0,
	 "change_p50_us bytes_per_op messages_per_op", plan_13, NULL, NULL},
	{"3.16", "clients that die", "failures/s", 0, "mops", plan_16, NULL,
	 NULL},
	{"3.17", "inserts from 85 to 94 % full", "rows per lock",
	 FIGURE_LOG_X | FIGURE_LOG_Y, "trips_p99", plan_17, NULL, NULL},
	{"3.18", "searches again under the locks", "rows per lock",
	 FIGURE_LOG_X, "second_share", plan_18, NULL, NULL},
	{"3.19", "entry sizes", "entry bytes", 0, "mops", plan_19, NULL, NULL},
	{"3.20", "value sizes", "value bytes", FIGURE_LOG_X, "mops", plan_20,
	 NULL, NULL},
	{.name = NULL},
};

const struct figure_system kv_figures = {
	.name = "kv",
	.source = "RCuckoo, in S. Grant's dissertation, chapter 3",
	.summary = "RCuckoo's figures on the costs of hardware (aquifer sim "
		   "nic-model): the table and two\nof its rivals are the "
		   "shipped code, FUSEE is a model (docs/kv-figures.md).",
	.figures = figures,
	.columns = kv_rows_columns,
	.claims = claims,
	.claim_count = ARRAY_LEN(claims),
	.options = kv_rows_options,
	.defaults = &kv_rows_defaults.f,
	.options_bytes = sizeof(kv_rows_defaults),
	.row_bytes = sizeof(struct kv_row),
	.run = figure_points_run,
	.point = kv_rows_point,
	.result_at = offsetof(struct kv_row, res),
	.result_bytes = sizeof(struct kv_fig_result),
};
