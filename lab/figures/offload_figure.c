/* SPDX-License-Identifier: Apache-2.0 */
/* Cowbird's figures: record sizes by thread counts by ways to read. */
#include "offload_costs.h"
#include "offload_plan.h"
#include "sim/sim.h"

enum {
	ENGINE_MANY = 8,
	SIZES_MAX = 6,
	THREADS_MAX = 6,
	WAYS_MAX = 10,
	LOG_XY = FIGURE_LOG_X | FIGURE_LOG_Y,
};

#define WARM_PS (120 * SIM_US)
#define SPAN_PS (240 * SIM_US) /* with eight threads and more */

/* ---- points ------------------------------------------------------------- */

#define ENGINES(n) .device = FIG_COW, .engines = n

static const struct offload_way local = {.name = "local", .device = FIG_LOCAL};
static const struct offload_way cow_1 = {.name = "cow-1", ENGINES(1)};
const struct offload_way offload_cow_8 = {.name = "cow-8",
					  ENGINES(ENGINE_MANY)};
static const struct offload_way cow_8_warm = {
	.name = "cow-8-warm", ENGINES(ENGINE_MANY), .is_warm = true};
static const struct offload_way async = {.name = "async", .device = FIG_ASYNC};
/* A doorbell and a completion for each, which comes near to what the authors
 * report. */
static const struct offload_way async_each = {
	.name = "async-each", .device = FIG_ASYNC, .batch = 1};
static const struct offload_way sync = {.name = "sync", .device = FIG_SYNC};
static const struct offload_way two_sided = {.name = "2-sided",
					     .device = FIG_TWO_SIDED};
const struct offload_way offload_p4 = {.name = "p4", .device = FIG_SWITCH};
const struct offload_way offload_p4_each = {.name = "p4-each",
					    .device = FIG_SWITCH,
					    .program = {.tell = 1, .fetch = 1}};
static const struct offload_way redy = {.name = "redy", .device = FIG_REDY};
static const struct offload_way blocking = {.name = "blocking",
					    .device = FIG_BLOCKING};
/* One request at a time, or a hundred and then all their ends. */
static const struct offload_way sync_one = {
	.name = "sync", .device = FIG_SYNC, .depth = 1};
static const struct offload_way cow_one = {
	.name = "cow", ENGINES(1), .depth = 1, .batch = 1};
static const struct offload_way cow_warm_one = {.name = "cow-warm",
						ENGINES(1),
						.depth = 1,
						.batch = 1,
						.is_warm = true};
static const struct offload_way cow_100 = {
	.name = "cow-100", ENGINES(1), .depth = 100};
static const struct offload_way async_100 = {
	.name = "async-100", .device = FIG_ASYNC, .depth = 100};

/* In the order of the figures. Sizes and threads end with 0. */
static const struct grid {
	uint32_t bytes[SIZES_MAX], threads[THREADS_MAX];
	const struct offload_way *way[WAYS_MAX];
	void (*app)(struct fig_config *c);
} grids[] = {
	{{256},
	 {1, 2, 4, 8, 16},
	 {&local, &offload_cow_8, &async, &async_each, &sync, &two_sided},
	 offload_app_probe},
	{{64},
	 {1},
	 {&sync_one, &async_100, &cow_one, &cow_warm_one, &cow_100},
	 offload_app_none},
	{{8, 64, 256, 512},
	 {1, 2, 4, 8, 16},
	 {&local, &cow_1, &offload_cow_8, &cow_8_warm, &async, &async_each,
	  &sync, &two_sided, &offload_p4},
	 offload_app_probe},
	{{64, 512},
	 {1, 2, 4, 8, 16},
	 {&local, &cow_1, &offload_cow_8, &cow_8_warm, &async, &async_each,
	  &sync, &offload_p4, &offload_p4_each},
	 offload_app_store},
	{{64, 512},
	 {1, 2, 4, 8, 16},
	 {&cow_1, &offload_cow_8, &async, &sync, &offload_p4},
	 offload_app_store},
	{{64},
	 {1, 2, 4, 8},
	 {&cow_1, &offload_cow_8, &redy},
	 offload_app_store_uniform},
	{{8},
	 {1, 2, 4, 8},
	 {&cow_1, &offload_cow_8, &blocking},
	 offload_app_objects},
	{{8, 64, 256, 512, 1024},
	 {1},
	 {&sync_one, &cow_one, &cow_100, &async_100},
	 offload_app_none},
};

struct offload_row *offload_plan_add(struct figure_run *r, uint32_t bytes,
				     uint32_t threads,
				     const struct offload_way *w,
				     void (*app)(struct fig_config *c))
{
	static const char *const panels[] = {"8 B", "64 B", "256 B", "512 B"};
	static const uint32_t sizes[] = {8, 64, 256, 512};
	const struct offload_figure_options *own =
		(const struct offload_figure_options *)r->options;
	struct offload_row *row = figure_add(r, NULL, w->name, threads);

	for (unsigned i = 0; i < ARRAY_LEN(sizes); i++)
		if (sizes[i] == bytes)
			row->p.panel = panels[i];
	row->engines = w->engines;
	row->device = fig_device_name(w->device);
	row->cfg = (struct fig_config){
		.device = w->device,
		.threads = threads,
		.bytes = bytes,
		.depth = w->depth,
		.engines = w->engines,
		.batch = w->batch,
		.program = w->program,
		/* An engine on hardware has other times than on this machine.
		 */
		.flush_ns = 2000,
		.probe_ns = 500,
		.client_ps = 1000 * own->client_ns,
		.is_warm = w->is_warm,
		.warm_ps = r->options->quick ? WARM_PS / 4 : WARM_PS,
		.span_ps = r->options->quick ? SPAN_PS / 8 : SPAN_PS,
		.seed = own->seed,
	};
	/* Few threads need longer for as many requests. */
	if (threads < 8)
		row->cfg.span_ps = row->cfg.span_ps * 8 / threads;
	app(&row->cfg);
	return row;
}

static int plan(struct figure_run *r)
{
	const struct grid *g = &grids[r->figure - offload_figures.figures];
	bool by_size = !g->threads[1]; /* one count of threads */
	struct offload_row *row;

	for (const uint32_t *b = g->bytes; *b; b++)
		for (const uint32_t *t = g->threads; *t; t++)
			for (const struct offload_way *const *w = g->way; *w;
			     w++) {
				row = offload_plan_add(r, *b, *t, *w, g->app);
				row->p.x = by_size ? *b : *t;
				row->p.panel = by_size ? NULL : row->p.panel;
			}
	return 0;
}

/* Figure 2: the ways stand side by side. */
static int plan_2(struct figure_run *r)
{
	int err = plan(r);

	for (size_t i = 0; i < r->count; i++) {
		struct offload_row *x = figure_row(r, i);

		x->p.x = (double)i;
		x->p.x_name = x->p.series;
	}
	return err;
}

/* ---- the system --------------------------------------------------------- */

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct offload_row, member, name, decimals)

static const struct figure_column columns_1[] = {
	C(cfg.bytes, "bytes", 0),   C(cfg.threads, "threads", 0),
	C(p.series, "way", 0),	    C(res.mops, "mops", 2),
	C(of_local, "of_local", 2), {.name = NULL},
};

static const struct figure_column columns_2[] = {
	C(p.series, "way", 0),
	C(res.issue_ns, "issue_ns", 1),
	C(res.poll_ns, "poll_ns", 1),
	C(res.caller_ns, "caller_ns", 1),
	{.name = NULL},
};

static const struct figure figures[] = {
	{"1", "hash probes of 256 B beside local memory, 95 % of records far",
	 "threads", LOG_XY, "of_local", plan, offload_judge, columns_1},
	{"2", "processor time of the caller for a read of 64 B", "way",
	 FIGURE_BARS | FIGURE_TOGETHER, "issue_ns poll_ns", plan_2,
	 offload_judge, columns_2},
	{"8", "hash probes, 95 % of records far", "threads", LOG_XY, "mops",
	 plan, offload_judge, NULL},
	{"9", "hybrid-log store, YCSB-C Zipfian, 5 of 18 or 24 GB local",
	 "threads", LOG_XY, "mops", plan, offload_judge, NULL},
	{"10", "the same: share of the time in the communication library",
	 "threads", FIGURE_LOG_X, "communication_share", plan, offload_judge,
	 NULL},
	{"11", "hybrid-log store, uniform, 1 of 18 GB local, beside Redy",
	 "threads", LOG_XY, "mops", plan, offload_judge, NULL},
	{"12", "random reads of 8-byte objects beside threads that block",
	 "threads", LOG_XY, "mops", plan, offload_judge, NULL},
	{"13", "latency of reads, one thread", "record bytes", LOG_XY,
	 "p50_us p99_us", plan, offload_judge, NULL},
	{"14", "ten TCP flows to a 25 Gb/s machine beside the store", "threads",
	 FIGURE_LOG_X, "tcp_gbps", offload_plan_14, offload_judge_14,
	 offload_tcp_columns},
	{"table5", "the switch's program: what a pipeline has to hold", "table",
	 FIGURE_BARS, "kib", offload_plan_table5, offload_judge_table5,
	 offload_table5_columns},
	{"options", "the switch's program: what its options do, 16 threads",
	 "value", LOG_XY, "mops nic_packets", offload_plan_options, NULL,
	 offload_option_columns},
	{.name = NULL},
};

#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY

static const struct figure_column columns[] = {
	C(cfg.bytes, "bytes", 0),
	C(cfg.threads, "threads", 0),
	C(p.series, "way", 0),
	C(device, "device", JSON),
	C(engines, "engine_cores", JSON),
	R(mops, 2),
	C(res.comm, "communication_share", 2),
	R(caller_ns, JSON),
	R(p50_us, 2),
	R(p99_us, 2),
	R(engine_busy, 2),
	C(res.wire_bytes, "wire_bytes_per_request", JSON),
	R(tcp_gbps, 2),
	R(nic_packets, 2),
	R(program_packets, 2),
	R(told, JSON),
	R(recirculated, 2),
	R(probes_per_us, JSON),
	R(lost, JSON),
	R(requests, JSON),
	{.name = NULL},
};

static int point(void *row)
{
	struct offload_row *x = row;

	/* A table of the switch is known without a run. */
	x->cfg.fabric = x->p.fabric;
	return x->table.name ? 0 : fig_run(&x->cfg, &x->res);
}

static const char *wrong(const void *row)
{
	return ((const struct offload_row *)row)->res.wrong
		       ? "a record had the wrong bytes"
		       : NULL;
}

static void print_costs(void)
{
	static const struct model_constant rows[] = {
		OFFLOAD_COSTS(MODEL_CONSTANT)};

	model_constants_print(rows, ARRAY_LEN(rows), NULL);
}

static int take_costs(void *args, const char *word)
{
	((struct figure_options *)args)->print = print_costs;
	return 0;
}

static const struct offload_figure_options defaults = {.f = {.jobs = 1},
						       .seed = 1};

static const struct opt options[] = {
	OPT_U64(struct offload_figure_options, client_ns, "client-ns", "N", 1,
		10000, "issuing and polling 64 B costs the caller N ns (51)"),
	OPT_U64(struct offload_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of the requests (1)"),
	FIGURE_OPTION_FABRIC,
	OPT_U64(struct offload_figure_options, nic_mpps, "nic-mpps", "N", 1,
		1000, "figure 14: million packets per second of a NIC (69)"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what processors cost, and the sources"),
	OPT_END,
};

/* Figures of the switch alone run over Ethernet, and callers of those pay for
 * their code alone. */
static const struct figure_takes takes[] = {
	{"1", "quick seed fabric client-ns"},
	{"2", "quick seed fabric client-ns"},
	{"8", "quick seed fabric client-ns"},
	{"9", "quick seed fabric client-ns"},
	{"10", "quick seed fabric client-ns"},
	{"11", "quick seed fabric client-ns"},
	{"12", "quick seed fabric client-ns"},
	{"13", "quick seed fabric client-ns"},
	{"14", "quick seed fabric nic-mpps"},
	{"table5", "quick seed"},
	{"options", "quick seed"},
	{NULL, "costs"},
	{NULL, NULL},
};

const struct figure_system offload_figures = {
	.name = "offload",
	.source = "Cowbird, SIGCOMM 2023",
	.summary = "Cowbird's figures on the costs of hardware (aquifer sim "
		   "nic-model, aquifer sim\noffload --costs): NICs, rings and "
		   "engine are the shipped code.",
	.figures = figures,
	.columns = columns,
	.options = options,
	.takes = takes,
	.defaults = &defaults.f,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct offload_row),
	.run = figure_points_run,
	.point = point,
	.result_at = offsetof(struct offload_row, res),
	.result_bytes = sizeof(struct fig_result),
	.wrong = wrong,
};
