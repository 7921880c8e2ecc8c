/* SPDX-License-Identifier: Apache-2.0 */
/* Which points the figures have, and what was published about them. */
#include "kv_figure.h"

#include <errno.h>
#include <string.h>

#include "sim/sim.h"

enum {
	ALL_CLIENTS = 320,
	FEW_CLIENTS = 8,
	READS_A = 500000,
	READS_B = 950000,
	READS_C = 1000000,
	LARGE = 1000000,      /* entries, where locks must not be few */
	HUGE_TABLE = 4000000, /* or fewer still */
	PERCENT = 10000,      /* of a million */
};

/* Until as many clients wait for the most popular keys as will: each meets one
 * of them now and then, and then it takes long. */
#define WARM_PS (1500 * SIM_US)
#define SPAN_PS (500 * SIM_US)

struct plan {
	struct kv_figure *k;
	bool quick;
};

static void add(struct plan *p, const char *figure, const char *series,
		const char *along, uint64_t x, struct kv_fig_config cfg)
{
	struct kv_figure_point *at = &p->k->point[p->k->count];

	if (p->k->count == KV_FIGURE_POINTS_MAX)
		return;
	p->k->count++;
	cfg.seed = 1;
	if (p->quick) {
		cfg.clients = u32_min(cfg.clients, 24);
		cfg.capacity =
			u64_min(cfg.capacity ? cfg.capacity : 20000, 20000);
		cfg.span_ps = cfg.failures ? 5 * SIM_MS : 50 * SIM_US;
		cfg.warm_ps = 0;
	}
	*at = (struct kv_figure_point){.figure = figure,
				       .series = series,
				       .along = along,
				       .x = x,
				       .cfg = cfg};
}

/* ---- 3.9 to 3.11: the stores, by clients -------------------------------- */

static void plan_ycsb(struct plan *p, const char *figure, uint32_t read_ppm,
		      uint32_t theta_milli)
{
	static const uint32_t clients[] = {10, 80, 160, ALL_CLIENTS};
	unsigned s, i;

	for (s = 0; s < KV_FIG_STORES; s++)
		for (i = p->quick || s >= KV_FIG_PEERS ? 3 : 0;
		     i < ARRAY_LEN(clients); i++)
			add(p, figure, kv_fig_store_name((enum kv_fig_store)s),
			    "clients", clients[i],
			    (struct kv_fig_config){.store =
							   (enum kv_fig_store)s,
						   .clients = clients[i],
						   .read_ppm = read_ppm,
						   .theta_milli = theta_milli,
						   .warm_ps = WARM_PS,
						   .span_ps = SPAN_PS});
}

static void plan_9(struct plan *p)
{
	plan_ycsb(p, "3.9", READS_C, 0);
}

static void plan_10(struct plan *p)
{
	plan_ycsb(p, "3.10", READS_B, 0);
}

static void plan_11(struct plan *p)
{
	plan_ycsb(p, "3.11", READS_A, 0);
	/* What was published of RCuckoo is this, by its author's script. */
	plan_ycsb(p, "3.11 at 0.90", READS_A, 900);
}

/* ---- 3.12 to 3.15: inserts, by fill ------------------------------------- */

static void plan_fill(struct plan *p, const char *figure, const char *series,
		      uint64_t capacity, uint32_t read_ppm)
{
	static const uint32_t fill[] = {10, 50, 70, 90};
	uint32_t clients = capacity == HUGE_TABLE ? ALL_CLIENTS : FEW_CLIENTS;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(fill); i += p->quick ? 3 : 1)
		add(p, figure, series, "% full", fill[i],
		    (struct kv_fig_config){.clients = clients,
					   .read_ppm = read_ppm,
					   .inserts = true,
					   .capacity = capacity,
					   .fill_ppm = fill[i] * PERCENT});
}

static void plan_12(struct plan *p)
{
	plan_fill(p, "3.12", "C", HUGE_TABLE, READS_C);
	plan_fill(p, "3.12", "B", HUGE_TABLE, READS_B);
	plan_fill(p, "3.12", "A", HUGE_TABLE, READS_A);
	plan_fill(p, "3.12", "W", HUGE_TABLE, 0);
}

/* Latency, bytes and messages are columns of the same runs. */
static void plan_13(struct plan *p)
{
	plan_fill(p, "3.13-3.15", "reads", LARGE, READS_C);
	plan_fill(p, "3.13-3.15", "inserts", LARGE, 0);
}

/* ---- 3.16: failures ----------------------------------------------------- */

static void plan_16(struct plan *p)
{
	static const uint32_t rate[] = {0, 100, 500, 1000};
	static const struct {
		const char *name;
		uint32_t rows;
	} locks[] = {{"16 rows per lock", 16}, {"64 rows per lock", 64}};
	unsigned l, i;

	for (l = 0; l < ARRAY_LEN(locks); l++)
		for (i = 0; i < ARRAY_LEN(rate); i += p->quick ? 2 : 1)
			add(p, "3.16", locks[l].name, "failures/s", rate[i],
			    (struct kv_fig_config){.clients = ALL_CLIENTS,
						   .read_ppm = READS_A,
						   .inserts = true,
						   .capacity = LARGE,
						   .fill_ppm = 50 * PERCENT,
						   .failures = rate[i],
						   .failure_ms = 10,
						   .rows_per_lock =
							   locks[l].rows,
						   .span_ps = 20 * SIM_MS});
}

/* ---- 3.7, 3.17, 3.18: locks --------------------------------------------- */

static void plan_7(struct plan *p)
{
	static const uint32_t rows[] = {1, 2, 4, 8, 16, 32, 64, 512};
	unsigned w, i;

	for (w = 0; w < 2; w++)
		for (i = 0; i < ARRAY_LEN(rows); i += p->quick ? 4 : 1)
			add(p, "3.7",
			    w ? "1 lock per message" : "64 locks per message",
			    "rows per lock", rows[i],
			    (struct kv_fig_config){.clients = FEW_CLIENTS,
						   .inserts = true,
						   .capacity = 4096,
						   .fill_ppm = 1,
						   .fill_to_ppm = 95 * PERCENT,
						   .word_locks = w,
						   .rows_per_lock = rows[i]});
}

static void plan_17(struct plan *p)
{
	static const uint32_t rows[] = {1, 4, 16, 64};
	unsigned w, i;

	for (w = 0; w < 2; w++)
		for (i = 0; i < ARRAY_LEN(rows); i += p->quick ? 2 : 1)
			add(p, "3.17",
			    w ? "independent, depth first"
			      : "dependent, breadth first",
			    "rows per lock", rows[i],
			    (struct kv_fig_config){.clients = FEW_CLIENTS,
						   .inserts = true,
						   .capacity = 100000,
						   .fill_ppm = 85 * PERCENT,
						   .fill_to_ppm = 94 * PERCENT,
						   .independent = w,
						   .rows_per_lock = rows[i]});
}

static void plan_18(struct plan *p)
{
	static const uint32_t rows[] = {1, 4, 16, 64};
	unsigned w, i;

	for (w = 0; w < 2; w++)
		for (i = 0; i < ARRAY_LEN(rows); i += p->quick ? 3 : 1)
			add(p, "3.18",
			    w ? "only the rows of the guess"
			      : "all rows of the locks",
			    "rows per lock", rows[i],
			    (struct kv_fig_config){.clients = ALL_CLIENTS,
						   .inserts = true,
						   .capacity = LARGE,
						   .fill_ppm = 85 * PERCENT,
						   .forgets = true,
						   .whole_locks = !w,
						   .rows_per_lock = rows[i]});
}

/* ---- 3.19, 3.20: sizes -------------------------------------------------- */

static void plan_19(struct plan *p)
{
	static const uint32_t bytes[] = {16, 32, 48, 64, 96, 120};
	unsigned w, i;

	for (w = 0; w < 2; w++)
		for (i = 0; i < ARRAY_LEN(bytes); i += p->quick ? 5 : 1)
			add(p, "3.19", w ? "C" : "A, inserts", "entry bytes",
			    bytes[i],
			    (struct kv_fig_config){.clients = ALL_CLIENTS,
						   .read_ppm = w ? READS_C
								 : READS_A,
						   .inserts = !w,
						   .capacity = LARGE,
						   .fill_ppm = 50 * PERCENT,
						   .entry_bytes = bytes[i]});
}

static void plan_20(struct plan *p)
{
	static const uint32_t bytes[] = {8, 32, 64, 128, 256, 512, 1024};
	static const struct {
		const char *name;
		uint32_t read_ppm;
	} mix[] = {{"A", READS_A}, {"B", READS_B}, {"C", READS_C}};
	unsigned m, i;

	for (m = 0; m < ARRAY_LEN(mix); m++)
		for (i = 0; i < ARRAY_LEN(bytes); i += p->quick ? 3 : 1)
			add(p, "3.20", mix[m].name, "value bytes", bytes[i],
			    (struct kv_fig_config){.clients = 120,
						   .read_ppm = mix[m].read_ppm,
						   .capacity = 20000,
						   .entry_bytes = 32,
						   .value_bytes = bytes[i]});
}

static const struct figure {
	const char *name;
	void (*plan)(struct plan *p);
} figures[] = {
	{"3.7", plan_7},   {"3.9", plan_9},   {"3.10", plan_10},
	{"3.11", plan_11}, {"3.12", plan_12}, {"3.13", plan_13},
	{"3.16", plan_16}, {"3.17", plan_17}, {"3.18", plan_18},
	{"3.19", plan_19}, {"3.20", plan_20},
};

int kv_figure_plan(struct kv_figure *k, const char *which, bool quick)
{
	struct plan p = {k, quick};
	bool all = !strcmp(which, "all"), known = all;
	unsigned i;

	if (!strcmp(which, "3.14") || !strcmp(which, "3.15"))
		which = "3.13";
	for (i = 0; i < ARRAY_LEN(figures); i++) {
		if (!all && strcmp(which, figures[i].name))
			continue;
		figures[i].plan(&p);
		known = true;
	}
	return known ? 0 : -EINVAL;
}

/* ---- what was published ------------------------------------------------- */

static const struct kv_fig_result *find(const struct kv_figure *k,
					const char *figure, const char *series,
					uint64_t x)
{
	uint32_t i;

	for (i = 0; i < k->count; i++) {
		const struct kv_figure_point *p = &k->point[i];

		if (!p->err && !strcmp(p->figure, figure) &&
		    !strcmp(p->series, series) && p->x == x)
			return &p->res;
	}
	return NULL;
}

static void claim(struct kv_figure *k, struct kv_figure_claim c)
{
	if (k->claims < KV_FIGURE_CLAIMS_MAX)
		k->claim[k->claims++] = c;
}

/* What was published: against the best of the others, and against the worst,
 * which is what "up to" means. */
struct rivalry {
	const char *figure;
	const char *best, *best_published;
	double best_least;
	const char *worst, *worst_published;
	double worst_least;
};

/* Against the fastest and against the slowest of the others, with one memory
 * node each. */
static void judge_rivals(struct kv_figure *k, const struct rivalry *v)
{
	const struct kv_fig_result *ours =
		find(k, v->figure, "table", ALL_CLIENTS);
	double most = 0, least = 0;
	unsigned s;

	for (s = KV_FIG_TABLE + 1; s < KV_FIG_PEERS && ours; s++) {
		const struct kv_fig_result *r = find(
			k, v->figure, kv_fig_store_name((enum kv_fig_store)s),
			ALL_CLIENTS);
		double ratio = r && r->mops > 0 ? ours->mops / r->mops : 0;

		if (ratio <= 0)
			continue;
		least = least > 0 && least < ratio ? least : ratio;
		/* Nobody has published a tree with one node. */
		if (s != KV_FIG_TREE)
			most = most > ratio ? most : ratio;
	}
	if (most <= 0)
		return;
	claim(k, (struct kv_figure_claim){v->best, v->figure, v->best_published,
					  least, v->best_least, 0});
	claim(k,
	      (struct kv_figure_claim){v->worst, v->figure, v->worst_published,
				       most, v->worst_least, 0});
}

static void judge_ratio(struct kv_figure *k, const struct kv_fig_result *a,
			const struct kv_fig_result *b, double x, double y,
			struct kv_figure_claim c)
{
	if (!a || !b || y <= 0)
		return;
	c.value = x / y;
	claim(k, c);
}

static void judge_inserts(struct kv_figure *k)
{
	const struct kv_fig_result *a = find(k, "3.12", "W", 10);
	const struct kv_fig_result *b = find(k, "3.12", "W", 90);

	if (a)
		claim(k, (struct kv_figure_claim){
				 "insert_mops_empty", "3.12",
				 "11.5 Mops in a nearly empty table", a->mops,
				 11.5 / 2, 11.5 * 2});
	if (b)
		claim(k, (struct kv_figure_claim){"insert_mops_90", "3.12",
						  "4.5 Mops at 90 % fill",
						  b->mops, 4.5 / 2, 4.5 * 2});
	a = find(k, "3.13-3.15", "inserts", 10);
	b = find(k, "3.13-3.15", "inserts", 90);
	judge_ratio(k, a, b, b ? b->change_p50_us : 0, a ? a->change_p50_us : 0,
		    (struct kv_figure_claim){
			    "insert_latency_90_vs_empty", "3.13",
			    "about twice, at maximum fill", 0, 1, 2.5});
	judge_ratio(k, a, b, b ? b->messages : 0, a ? a->messages : 0,
		    (struct kv_figure_claim){"insert_messages_90_vs_empty",
					     "3.15", "around 2x", 0, 1, 2.5});
	judge_ratio(k, a, b, b ? b->bytes : 0, a ? a->bytes : 0,
		    (struct kv_figure_claim){"insert_bytes_90_vs_empty", "3.14",
					     "around 2x", 0, 1, 2.5});
}

static void judge_locks(struct kv_figure *k)
{
	const struct kv_fig_result *a =
		find(k, "3.17", "dependent, breadth first", 16);
	const struct kv_fig_result *b =
		find(k, "3.17", "independent, depth first", 16);
	const struct kv_fig_result *c =
		find(k, "3.18", "all rows of the locks", 64);

	judge_ratio(k, a, b, a ? a->trips_p99 : 0, b ? b->trips_p99 : 0,
		    (struct kv_figure_claim){
			    "insert_p99_trips_bfs_vs_dfs", "3.17",
			    "an order of magnitude fewer round trips", 0, 0,
			    0.1});
	if (c)
		claim(k, (struct kv_figure_claim){"second_search_64", "3.18",
						  "95 % at 64 rows per lock",
						  c->second_share, 0.95, 0});
	a = find(k, "3.16", "16 rows per lock", 500);
	b = find(k, "3.16", "16 rows per lock", 0);
	judge_ratio(k, a, b, a ? a->mops : 0, b ? b->mops : 0,
		    (struct kv_figure_claim){
			    "throughput_500_failures", "3.16",
			    "high until about 500 failures per second", 0, 0.9,
			    0});
}

static void judge_sizes(struct kv_figure *k)
{
	const struct kv_fig_result *a = find(k, "3.20", "A", 8);
	const struct kv_fig_result *b = find(k, "3.20", "A", 64);

	judge_ratio(k, a, b, a ? a->mops : 0, b ? b->mops : 0,
		    (struct kv_figure_claim){"inline_gain_a", "3.20",
					     "inlining gains 37 % on YCSB-A", 0,
					     1.1, 0});
	a = find(k, "3.20", "B", 8);
	b = find(k, "3.20", "B", 64);
	judge_ratio(k, a, b, a ? a->mops : 0, b ? b->mops : 0,
		    (struct kv_figure_claim){"inline_gain_b", "3.20",
					     "inlining gains 21 % on YCSB-B", 0,
					     1.1, 0});
}

void kv_figure_judge(struct kv_figure *k)
{
	static const struct rivalry rivalry[] = {
		{"3.9", "c_vs_best_rival", "above all others on YCSB-C", 1,
		 "c_vs_slowest_rival", "2.9 times FUSEE", 2.9},
		{"3.10", "b_vs_best_rival", "above all others on YCSB-B", 1,
		 "b_vs_slowest_rival", "up to 2.5 times the others", 2.5},
		{"3.11", "a_vs_best_rival", "like FUSEE, 0.05 of it at 0.99",
		 0.96, "a_vs_slowest_rival", "up to 7.1 times the others", 7.1},
		{"3.11 at 0.90", "a90_vs_best_rival", "like FUSEE, 0.96 of it",
		 0.96, "a90_vs_slowest_rival", "7.1 times Clover", 7.1},
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rivalry); i++)
		judge_rivals(k, &rivalry[i]);
	judge_inserts(k);
	judge_locks(k);
	judge_sizes(k);
}

bool kv_figure_holds(const struct kv_figure_claim *c)
{
	return (!c->least || c->value >= c->least) &&
	       (!c->most || c->value <= c->most);
}
