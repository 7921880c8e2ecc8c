/* SPDX-License-Identifier: Apache-2.0 */
/* Cowbird's figures: record sizes by thread counts by ways to read, and what
 * the paper says about them. */
#include <string.h>

#include "figures.h"
#include "offload_costs.h"
#include "sim/sim.h"

enum {
	SEED = 1,
	ENGINE_MANY = 8,
	READ_MOPS = 93, /* model_constants.h: READs of one NIC */
	PROBE_FAR_PPM = 950000,
	/* Around a record on the wire: preamble, Ethernet, IP, UDP, BTH, AETH,
	 * ICRC, FCS, gap. */
	FRAME_BYTES = 8 + 14 + 20 + 8 + 12 + 4 + 4 + 4 + 12,
	REDY_FAR_PPM = 944000, /* 1 of 18 GB is local, uniform */
	SIZES_MAX = 6,
	THREADS_MAX = 6,
	WAYS_MAX = 8,
	ANY = UINT16_MAX, /* record size, threads */
	LOG_XY = FIGURE_LOG_X | FIGURE_LOG_Y,
};

#define WARM_PS (120 * SIM_US)
#define SPAN_PS (240 * SIM_US) /* with eight threads and more */

struct offload_figure_options {
	struct figure_options f;
	uint64_t client_ns;
};

/* ---- applications ------------------------------------------------------- */

static void app_probe(struct fig_config *c)
{
	c->app_ps = offload_costs.probe_ps;
	c->far_ppm = PROBE_FAR_PPM;
}

static void app_store(struct fig_config *c)
{
	bool small = c->bytes <= 64;

	c->has_record = true;
	c->app_ps =
		small ? offload_costs.store_64_ps : offload_costs.store_512_ps;
	c->far_ppm = (uint32_t)(small ? offload_costs.store_64_far_ppm
				      : offload_costs.store_512_far_ppm);
}

static void app_store_uniform(struct fig_config *c)
{
	app_store(c);
	c->far_ppm = REDY_FAR_PPM;
}

/* Nothing but requests. */
static void app_none(struct fig_config *c)
{
	c->far_ppm = 1000000;
	c->burst = true;
}

/* Reads of small objects, without pause. */
static void app_objects(struct fig_config *c)
{
	c->far_ppm = 1000000;
}

/* ---- points ------------------------------------------------------------- */

struct way {
	const char *name;
	enum fig_device device;
	uint32_t engines, depth, batch; /* 0: the default */
};

static const struct way local = {"local", FIG_LOCAL, 0, 0, 0};
static const struct way cow_1 = {"cow-1", FIG_COW, 1, 0, 0};
static const struct way cow_8 = {"cow-8", FIG_COW, ENGINE_MANY, 0, 0};
static const struct way async = {"async", FIG_ASYNC, 0, 0, 0};
static const struct way sync = {"sync", FIG_SYNC, 0, 0, 0};
static const struct way two_sided = {"2-sided", FIG_TWO_SIDED, 0, 0, 0};
static const struct way p4 = {"p4", FIG_P4, 0, 0, 0};
static const struct way redy = {"redy", FIG_REDY, 0, 0, 0};
static const struct way blocking = {"blocking", FIG_BLOCKING, 0, 0, 0};
static const struct way sync_one = {"sync", FIG_SYNC, 0, 1, 0};
static const struct way cow_one = {"cow", FIG_COW, 1, 1, 1};
static const struct way cow_100 = {"cow-100", FIG_COW, 1, 100, 0};
static const struct way async_100 = {"async-100", FIG_ASYNC, 0, 100, 0};
static const struct way alone = {"alone", FIG_LOCAL, 0, 0, 0};

/* In the order of the figures. Sizes and threads end with 0. */
static const struct grid {
	uint32_t bytes[SIZES_MAX], threads[THREADS_MAX];
	const struct way *way[WAYS_MAX];
	void (*app)(struct fig_config *c);
} grids[] = {
	{{8, 64, 256, 512},
	 {1, 2, 4, 8, 16},
	 {&local, &cow_1, &cow_8, &async, &sync, &two_sided},
	 app_probe},
	{{64, 512},
	 {1, 2, 4, 8, 16},
	 {&local, &cow_1, &cow_8, &async, &sync, &p4},
	 app_store},
	{{64}, {1, 2, 4, 8}, {&cow_1, &cow_8, &redy}, app_store_uniform},
	{{8}, {1, 2, 4, 8}, {&cow_1, &cow_8, &blocking}, app_objects},
	{{8, 64, 256, 512, 1024},
	 {1},
	 {&sync_one, &cow_one, &cow_100, &async_100},
	 app_none},
	{{512}, {1, 2, 4, 8}, {&alone, &cow_8, &p4}, app_store},
};

static void add(struct figure_run *r, const struct grid *g, uint32_t bytes,
		uint32_t threads, const struct way *w)
{
	static const char *const panels[] = {"8 B", "64 B", "256 B", "512 B"};
	static const uint32_t sizes[] = {8, 64, 256, 512};
	const struct offload_figure_options *own =
		(const struct offload_figure_options *)r->options;
	bool by_size = !g->threads[1]; /* one count of threads */
	struct offload_row *row =
		figure_add(r, NULL, w->name, by_size ? bytes : threads);

	for (unsigned i = 0; i < ARRAY_LEN(sizes) && !by_size; i++)
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
		/* An engine on hardware has other times than on this machine.
		 */
		.flush_ns = 2000,
		.probe_ns = 500,
		.client_ps = 1000 * own->client_ns,
		.tcp = !strcmp(r->figure->name, "14"),
		.warm_ps = r->options->quick ? WARM_PS / 4 : WARM_PS,
		.span_ps = r->options->quick ? SPAN_PS / 8 : SPAN_PS,
		.seed = SEED,
	};
	/* Few threads need longer for as many requests. */
	if (threads < 8)
		row->cfg.span_ps = row->cfg.span_ps * 8 / threads;
	g->app(&row->cfg);
}

static int plan(struct figure_run *r)
{
	const struct grid *g = &grids[r->figure - offload_figures.figures];

	for (const uint32_t *b = g->bytes; *b; b++)
		for (const uint32_t *t = g->threads; *t; t++)
			for (const struct way *const *w = g->way; *w; w++)
				add(r, g, *b, *t, *w);
	return 0;
}

/* ---- claims ------------------------------------------------------------- */

/*
 * Could hardware carry what local memory serves at all? 95 % of the link, and
 * the READ rate of a NIC. Where not, far memory cannot keep up in any way.
 */
static bool fits(const struct offload_row *near)
{
	double far = near->res.mops * near->cfg.far_ppm / 1e6;

	return far <= READ_MOPS &&
	       far * (near->cfg.bytes + FRAME_BYTES) * 8 <= 95e3;
}

enum how {
	BELOW, /* by how many percent it is below the rival, at most */
	OVER,  /* how many times the rival, at least */
	MOST,  /* the largest value, at most */
	MORE,  /* how much more than the rival, at most */
};

/* The extreme over all sizes and thread counts up to these. */
static const struct extreme {
	const char *figure, *what, *way;
	enum how how;
	const char *rival, *column;
	uint32_t bytes, threads;
	double paper;
	const char *unit, *note;
} extremes[] = {
	{"8", "8 and 64 B: below local memory, one thread", "cow-1", BELOW,
	 "local", "mops", 64, 1, 11.4, "%", "one engine core"},
	{"8", "8 and 64 B: below local memory, worst", "cow-8", BELOW, "local",
	 "mops", 64, ANY, 11.4, "%", "8 engine cores, where the NIC can do it"},
	{"8", "8 and 64 B: below local memory, worst", "cow-1", BELOW, "local",
	 "mops", 64, ANY, 11.4, "%", "one engine core: its processor"},
	{"8", "over asynchronous verbs, best", "cow-8", OVER, "async", "mops",
	 ANY, ANY, 3.5, "x", ""},
	{"8", "asynchronous over synchronous verbs, best", "async", OVER,
	 "sync", "mops", ANY, ANY, 10, "x", "\"an order of magnitude\""},
	{"9", "below local memory, one thread", "cow-1", BELOW, "local", "mops",
	 64, 1, 8, "%", "64 B, one engine core"},
	{"9", "below local memory, worst", "cow-8", BELOW, "local", "mops", ANY,
	 ANY, 8, "%", "8 engine cores, where the link can do it"},
	{"9", "below local memory, worst", "cow-1", BELOW, "local", "mops", ANY,
	 ANY, 8, "%", "one engine core: its processor"},
	{"9", "over asynchronous verbs, best", "cow-8", OVER, "async", "mops",
	 ANY, ANY, 1.4, "x", ""},
	{"9", "over synchronous verbs, best", "cow-8", OVER, "sync", "mops",
	 ANY, ANY, 9, "x", ""},
	{"9", "time in the communication library", "cow-1", MOST, NULL,
	 "communication_share", ANY, 1, 20, "%", "one thread"},
	{"9", "switch below spot engine, worst", "p4", BELOW, "cow-8", "mops",
	 ANY, ANY, 10, "%", "\"similar\"; 8 engine cores"},
	{"11", "over Redy, best", "cow-8", OVER, "redy", "mops", ANY, ANY, 1.6,
	 "x", "8 engine cores"},
	{"11", "over Redy, best", "cow-1", OVER, "redy", "mops", ANY, ANY, 1.6,
	 "x", "one engine core"},
	{"12", "over threads that block, best", "cow-8", OVER, "blocking",
	 "mops", ANY, ANY, 71, "x", "8 engine cores"},
	{"12", "over threads that block, best", "cow-1", OVER, "blocking",
	 "mops", ANY, ANY, 71, "x", "one engine core"},
	{"13", "batches of 100: median, any size", "cow-100", MOST, NULL,
	 "p50_us", ANY, ANY, 10, "us", ""},
	{"13", "batches of 100: p99, any size", "cow-100", MOST, NULL, "p99_us",
	 ANY, ANY, 20, "us", ""},
	{"13", "alone: more than a synchronous READ", "cow", MORE, "sync",
	 "p50_us", ANY, ANY, 4.4, "us",
	 "\"slightly\": 2 round trips, as they are here"},
	{"14", "TCP bandwidth lost beside Cowbird, worst", "cow-8", BELOW,
	 "alone", "tcp_gbps", ANY, ANY, 3, "%",
	 "\"negligible\" for the spot engine"},
	{"14", "the same beside the engine in the switch", "p4", BELOW, "alone",
	 "tcp_gbps", ANY, ANY, 30, "%", "\"up to\", with priority for RDMA"},
};

static double extreme_of(const struct figure_run *r, const struct extreme *e)
{
	double best = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *x = figure_row(r, i), *y = x;
		double v, under;

		if (strcmp(x->p.series, e->way) || x->cfg.bytes > e->bytes ||
		    x->cfg.threads > e->threads || x->p.err)
			continue;
		if (e->rival)
			y = figure_find(r, x->p.panel, e->rival, x->p.x);
		/* All threads beside local memory: where that is possible. */
		if (!y || (y->cfg.device == FIG_LOCAL && e->threads == ANY &&
			   !y->cfg.tcp && !fits(y)))
			continue;
		v = figure_value(r, x, e->column);
		under = figure_value(r, y, e->column);
		v = e->how == BELOW   ? 100 * (1 - v / under)
		    : e->how == OVER  ? v / under
		    : e->how == MORE  ? v - under
		    : *e->unit == '%' ? 100 * v
				      : v;
		best = v > best ? v : best;
	}
	return best;
}

static void judge(struct figure_run *r)
{
	static const struct figure_claim link = {
		.what = "512 B, 16 threads: of the link's bandwidth",
		.published = 100,
		.least = 100,
		.unit = "%",
		.note = "\"fully utilize\""};
	const struct offload_row *full = figure_find(r, "512 B", "cow-8", 16);

	for (size_t i = 0; i < ARRAY_LEN(extremes); i++) {
		const struct extreme *e = &extremes[i];
		const struct figure_claim c = {
			.what = e->what,
			.published = e->paper,
			.least = e->how == OVER ? e->paper : 0,
			.most = e->how == OVER ? 0 : e->paper,
			.unit = e->unit,
			.note = e->note};

		if (!strcmp(e->figure, r->figure->name))
			figure_claim_add(r, &c, extreme_of(r, e));
	}
	if (full && full->cfg.far_ppm == PROBE_FAR_PPM)
		figure_claim_add(r, &link,
				 full->res.mops * (PROBE_FAR_PPM / 1e6) *
					 (512 + FRAME_BYTES) * 8 / 1e3);
}

/* ---- the system --------------------------------------------------------- */

static const struct figure figures[] = {
	{"8", "hash probes, 95 % of records far", "threads", LOG_XY, "mops",
	 plan, judge, NULL},
	{"9", "hybrid-log store, YCSB-C Zipfian, 5 of 18 or 24 GB local",
	 "threads", LOG_XY, "mops", plan, judge, NULL},
	{"11", "hybrid-log store, uniform, 1 of 18 GB local, beside Redy",
	 "threads", LOG_XY, "mops", plan, judge, NULL},
	{"12", "random reads of 8-byte objects beside threads that block",
	 "threads", LOG_XY, "mops", plan, judge, NULL},
	{"13", "latency of reads, one thread", "record bytes", LOG_XY,
	 "p50_us p99_us", plan, judge, NULL},
	{"14", "ten TCP flows to a 25 Gb/s machine beside the store", "threads",
	 FIGURE_LOG_X, "tcp_gbps mops", plan, judge, NULL},
	{.name = NULL},
};

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct offload_row, member, name, decimals)

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
	R(p50_us, 2),
	R(p99_us, 2),
	R(engine_busy, 2),
	C(res.wire_bytes, "wire_bytes_per_request", JSON),
	R(tcp_gbps, 2),
	R(requests, JSON),
	{.name = NULL},
};

static int point(void *row)
{
	struct offload_row *x = row;

	return fig_run(&x->cfg, &x->res);
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

static const struct offload_figure_options defaults = {.f = {.jobs = 1}};

static const struct opt options[] = {
	OPT_U64(struct offload_figure_options, client_ns, "client-ns", "N", 0,
		10000, "as if issuing and polling cost the caller N ns"),
	OPT_CALL(take_costs, "costs", NULL,
		 "only print what processors cost, and the sources"),
	OPT_END,
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
	.defaults = &defaults.f,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct offload_row),
	.run = figure_points_run,
	.point = point,
	.result_at = offsetof(struct offload_row, res),
	.result_bytes = sizeof(struct fig_result),
	.wrong = wrong,
};
