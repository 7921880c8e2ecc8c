/* SPDX-License-Identifier: Apache-2.0 */
/* The figures: what is run, what the paper says about it, and the running. */
#include "offload_figure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "offload_costs.h"
#include "sim/batch.h"
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
};

#define WARM_PS (120 * SIM_US)
#define SPAN_PS (240 * SIM_US) /* with eight threads and more */

/* ---- applications ------------------------------------------------------- */

static void app_probe(uint32_t bytes, struct fig_config *c)
{
	c->app_ps = offload_costs.probe_ps;
	c->far_ppm = PROBE_FAR_PPM;
}

static void app_store(uint32_t bytes, struct fig_config *c)
{
	c->has_record = true;
	c->app_ps = bytes <= 64 ? offload_costs.store_64_ps
				: offload_costs.store_512_ps;
	c->far_ppm = (uint32_t)(bytes <= 64 ? offload_costs.store_64_far_ppm
					    : offload_costs.store_512_far_ppm);
}

static void app_store_uniform(uint32_t bytes, struct fig_config *c)
{
	app_store(bytes, c);
	c->far_ppm = REDY_FAR_PPM;
}

/* Nothing but requests. */
static void app_none(uint32_t bytes, struct fig_config *c)
{
	c->far_ppm = 1000000;
	c->burst = true;
}

/* Reads of small objects, without pause. */
static void app_objects(uint32_t bytes, struct fig_config *c)
{
	c->far_ppm = 1000000;
}

/* ---- claims ------------------------------------------------------------- */

/* Columns of the figures with throughputs. */
enum {
	LOCAL,
	COW_1,
	COW_MANY,
	ASYNC,
	SYNC,
	TWO_SIDED,
};

enum {
	P4_9 = 5, /* the switch's column in figure 9 */
};

static double mops(const struct figure_grid *g, unsigned size, unsigned thread,
		   unsigned column)
{
	return figure_point(g, size, thread, column)->mops;
}

/*
 * Could hardware carry what local memory serves at all? 95 % of the link, and
 * the READ rate of a NIC. Where not, far memory cannot keep up in any way.
 */
static bool fits(const struct figure_grid *g, unsigned size, unsigned thread)
{
	struct fig_config c = {.bytes = g->figure->bytes[size]};
	double far;

	g->figure->app(c.bytes, &c);
	far = mops(g, size, thread, LOCAL) * c.far_ppm / 1e6;
	return far <= READ_MOPS && far * (c.bytes + FRAME_BYTES) * 8 <= 95e3;
}

/* How far below local memory, in percent, at worst where the hardware
 * suffices. */
static double below_local(const struct figure_grid *g, unsigned sizes,
			  unsigned column)
{
	double worst = 0;

	for (unsigned s = 0; s < sizes; s++) {
		for (unsigned t = 0; t < g->threads; t++) {
			double r = mops(g, s, t, column) / mops(g, s, t, LOCAL);

			if (fits(g, s, t) && 1 - r > worst)
				worst = 1 - r;
		}
	}
	return 100 * worst;
}

/* The largest a/b over sizes [from, to) and all thread counts. */
static double largest(const struct figure_grid *g, unsigned from, unsigned to,
		      unsigned a, unsigned b)
{
	double best = 0;

	for (unsigned s = from; s < to; s++) {
		for (unsigned t = 0; t < g->threads; t++) {
			double r = mops(g, s, t, a) / mops(g, s, t, b);

			best = r > best ? r : best;
		}
	}
	return best;
}

static void add(struct figure_claim *c, const char *what, double paper,
		double ours, const char *unit, bool at_most, const char *note)
{
	*c = (struct figure_claim){
		.paper = paper, .ours = ours, .unit = unit, .at_most = at_most};
	snprintf(c->what, sizeof(c->what), "%s", what);
	snprintf(c->note, sizeof(c->note), "%s", note);
}

static unsigned claims_8(const struct figure_grid *g, struct figure_claim *c)
{
	double one = 0;

	for (unsigned s = 0; s < 2; s++) {
		double below = 1 - mops(g, s, 0, COW_1) / mops(g, s, 0, LOCAL);

		one = below > one ? below : one;
	}
	add(&c[0], "8 and 64 B: below local memory, one thread", 11.4,
	    100 * one, "%", true, "one engine core");
	add(&c[1], "8 and 64 B: below local memory, worst", 11.4,
	    below_local(g, 2, COW_MANY), "%", true,
	    "8 engine cores, where the NIC can do it");
	add(&c[2], "8 and 64 B: below local memory, worst", 11.4,
	    below_local(g, 2, COW_1), "%", true,
	    "one engine core: its processor");
	add(&c[3], "over asynchronous verbs, best", 3.5,
	    largest(g, 0, g->sizes, COW_MANY, ASYNC), "x", false, "");
	add(&c[4], "asynchronous over synchronous verbs, best", 10,
	    largest(g, 0, g->sizes, ASYNC, SYNC), "x", false,
	    "\"an order of magnitude\"");
	add(&c[5], "512 B, 16 threads: of the link's bandwidth", 100,
	    100 * mops(g, g->sizes - 1, g->threads - 1, COW_MANY) *
		    (PROBE_FAR_PPM / 1e6) * (512 + FRAME_BYTES) * 8 / 1e5,
	    "%", false, "\"fully utilize\"");
	return 6;
}

static unsigned claims_9(const struct figure_grid *g, struct figure_claim *c)
{
	double comm = 0;

	for (unsigned s = 0; s < g->sizes; s++) {
		double share = figure_point(g, s, 0, COW_1)->comm;

		comm = share > comm ? share : comm;
	}
	add(&c[0], "below local memory, one thread", 8,
	    100 * (1 - mops(g, 0, 0, COW_1) / mops(g, 0, 0, LOCAL)), "%", true,
	    "64 B, one engine core");
	add(&c[1], "below local memory, worst", 8,
	    below_local(g, g->sizes, COW_MANY), "%", true,
	    "8 engine cores, where the link can do it");
	add(&c[2], "below local memory, worst", 8,
	    below_local(g, g->sizes, COW_1), "%", true,
	    "one engine core: its processor");
	add(&c[3], "over asynchronous verbs, best", 1.4,
	    largest(g, 0, g->sizes, COW_MANY, ASYNC), "x", false, "");
	add(&c[4], "over synchronous verbs, best", 9,
	    largest(g, 0, g->sizes, COW_MANY, SYNC), "x", false, "");
	add(&c[5], "time in the communication library", 20, 100 * comm, "%",
	    true, "one thread");
	add(&c[6], "switch below spot engine, worst", 10,
	    100 * (1 - 1 / largest(g, 0, g->sizes, COW_MANY, P4_9)), "%", true,
	    "\"similar\"; 8 engine cores");
	return 7;
}

static unsigned claims_11(const struct figure_grid *g, struct figure_claim *c)
{
	/* Columns: cowbird 1, cowbird many, redy. */
	add(&c[0], "over Redy, best", 1.6, largest(g, 0, 1, 1, 2), "x", false,
	    "8 engine cores");
	add(&c[1], "over Redy, best", 1.6, largest(g, 0, 1, 0, 2), "x", false,
	    "one engine core");
	return 2;
}

static unsigned claims_12(const struct figure_grid *g, struct figure_claim *c)
{
	/* Columns: cowbird 1, cowbird many, blocking. */
	add(&c[0], "over threads that block, best", 71, largest(g, 0, 1, 1, 2),
	    "x", false, "8 engine cores");
	add(&c[1], "over threads that block, best", 71, largest(g, 0, 1, 0, 2),
	    "x", false, "one engine core");
	return 2;
}

static unsigned claims_13(const struct figure_grid *g, struct figure_claim *c)
{
	/* Columns: sync, cowbird alone, cowbird batched, async. */
	double p50 = 0, p99 = 0, more = 0;

	for (unsigned s = 0; s < g->sizes; s++) {
		const struct fig_result *b = figure_point(g, s, 0, 2);
		double add_us = figure_point(g, s, 0, 1)->p50_us -
				figure_point(g, s, 0, 0)->p50_us;

		p50 = b->p50_us > p50 ? b->p50_us : p50;
		p99 = b->p99_us > p99 ? b->p99_us : p99;
		more = add_us > more ? add_us : more;
	}
	add(&c[0], "batches of 100: median, any size", 10, p50, "us", true, "");
	add(&c[1], "batches of 100: p99, any size", 20, p99, "us", true, "");
	add(&c[2], "alone: more than a synchronous READ", 4.4, more, "us", true,
	    "\"slightly\": 2 round trips, as they are here");
	return 3;
}

static unsigned claims_14(const struct figure_grid *g, struct figure_claim *c)
{
	/* Columns: TCP alone, beside cowbird, beside the switch. */
	double worst[2] = {0};

	for (unsigned k = 0; k < 2; k++) {
		for (unsigned t = 0; t < g->threads; t++) {
			double lost =
				1 - figure_point(g, 0, t, 1 + k)->tcp_gbps /
					    figure_point(g, 0, t, 0)->tcp_gbps;

			worst[k] = lost > worst[k] ? lost : worst[k];
		}
	}
	add(&c[0], "TCP bandwidth lost beside Cowbird, worst", 3,
	    100 * worst[0], "%", true, "\"negligible\" for the spot engine");
	add(&c[1], "the same beside the engine in the switch", 30,
	    100 * worst[1], "%", true, "\"up to\", with priority for RDMA");
	return 2;
}

/* ---- the figures -------------------------------------------------------- */

const struct figure offload_figures[] = {
	{"8",
	 "hash probes, 95 % of records far, Mops",
	 FIGURE_MOPS,
	 {8, 64, 256, 512, 0},
	 {1, 2, 4, 8, 16, 0},
	 {{"local", FIG_LOCAL, 0, 0, 0, false},
	  {"cow-1", FIG_COW, 1, 0, 0, false},
	  {"cow-8", FIG_COW, ENGINE_MANY, 0, 0, false},
	  {"async", FIG_ASYNC, 0, 0, 0, false},
	  {"sync", FIG_SYNC, 0, 0, 0, false},
	  {"2-sided", FIG_TWO_SIDED, 0, 0, 0, false}},
	 app_probe,
	 claims_8},
	{"9",
	 "hybrid-log store, YCSB-C Zipfian, 5 of 18 or 24 GB local, Mops",
	 FIGURE_MOPS,
	 {64, 512, 0},
	 {1, 2, 4, 8, 16, 0},
	 {{"local", FIG_LOCAL, 0, 0, 0, false},
	  {"cow-1", FIG_COW, 1, 0, 0, false},
	  {"cow-8", FIG_COW, ENGINE_MANY, 0, 0, false},
	  {"async", FIG_ASYNC, 0, 0, 0, false},
	  {"sync", FIG_SYNC, 0, 0, 0, false},
	  {"p4", FIG_P4, 0, 0, 0, false}},
	 app_store,
	 claims_9},
	{"11",
	 "hybrid-log store, uniform, 1 of 18 GB local, beside Redy, Mops",
	 FIGURE_MOPS,
	 {64, 0},
	 {1, 2, 4, 8, 0},
	 {{"cow-1", FIG_COW, 1, 0, 0, false},
	  {"cow-8", FIG_COW, ENGINE_MANY, 0, 0, false},
	  {"redy", FIG_REDY, 0, 0, 0, false}},
	 app_store_uniform,
	 claims_11},
	{"12",
	 "random reads of 8-byte objects beside threads that block, Mops",
	 FIGURE_MOPS,
	 {8, 0},
	 {1, 2, 4, 8, 0},
	 {{"cow-1", FIG_COW, 1, 0, 0, false},
	  {"cow-8", FIG_COW, ENGINE_MANY, 0, 0, false},
	  {"blocking", FIG_BLOCKING, 0, 0, 0, false}},
	 app_objects,
	 claims_12},
	{"13",
	 "latency of reads, one thread, median / p99 in us",
	 FIGURE_LATENCY,
	 {8, 64, 256, 512, 1024, 0},
	 {1, 0},
	 {{"sync", FIG_SYNC, 0, 1, 0, false},
	  {"cow", FIG_COW, 1, 1, 1, false},
	  {"cow-100", FIG_COW, 1, 100, 0, false},
	  {"async-100", FIG_ASYNC, 0, 100, 0, false}},
	 app_none,
	 claims_13},
	{"14",
	 "ten TCP flows to a 25 Gb/s machine beside the store, Gb/s",
	 FIGURE_TCP,
	 {512, 0},
	 {1, 2, 4, 8, 0},
	 {{"alone", FIG_LOCAL, 0, 0, 0, true},
	  {"cow-8", FIG_COW, ENGINE_MANY, 0, 0, false},
	  {"p4", FIG_P4, 0, 0, 0, false}},
	 app_store,
	 claims_14},
	{.name = NULL},
};

const struct figure *offload_figure_find(const char *name)
{
	for (const struct figure *f = offload_figures; f->name; f++) {
		if (!strcmp(f->name, name))
			return f;
	}
	return NULL;
}

/* ---- running ------------------------------------------------------------ */

static struct fig_config config_of(const struct figure_grid *g, uint64_t index)
{
	const struct figure *f = g->figure;
	const struct figure_column *col = &f->column[index % g->columns];
	uint64_t row = index / g->columns;
	struct fig_config c = {
		.device = col->device,
		.threads = f->threads[row % g->threads],
		.bytes = f->bytes[row / g->threads],
		.depth = col->depth,
		.engines = col->engines,
		.batch = col->batch,
		/* An engine on hardware has other times than on this machine.
		 */
		.flush_ns = 2000,
		.probe_ns = 500,
		.client_ps = g->client_ps,
		.tcp = f->kind == FIGURE_TCP,
		.warm_ps = WARM_PS,
		.span_ps = SPAN_PS,
		.seed = SEED,
	};

	/* Few threads need longer for as many requests. */
	if (c.threads < 8)
		c.span_ps = SPAN_PS * 8 / c.threads;
	f->app(c.bytes, &c);
	return c;
}

static int run_point(void *ctx, uint64_t number, void *result)
{
	struct figure_grid *g = ctx;
	struct fig_config c = config_of(g, number - 1);

	return fig_run(&c, result);
}

static const char *take_point(void *ctx, uint64_t number, const void *result)
{
	struct figure_grid *g = ctx;
	const struct fig_result *r = result;

	g->point[number - 1] = *r;
	return r->wrong ? "a record had the wrong bytes" : NULL;
}

static unsigned until_zero(const uint32_t *v, unsigned max)
{
	unsigned n = 0;

	while (n < max && v[n])
		n++;
	return n;
}

int offload_figure_run(const struct figure *f, unsigned jobs,
		       uint64_t client_ps, struct figure_grid *g)
{
	struct sim_batch b = {.from = 1,
			      .jobs = jobs,
			      .ctx = g,
			      .result_bytes = sizeof(struct fig_result),
			      .run = run_point,
			      .add = take_point};
	struct sim_batch_sum sum;
	int err;

	memset(g, 0, sizeof(*g));
	g->figure = f;
	g->client_ps = client_ps;
	g->sizes = until_zero(f->bytes, FIGURE_SIZES_MAX);
	g->threads = until_zero(f->threads, FIGURE_THREADS_MAX);
	while (g->columns < FIGURE_COLUMNS_MAX && f->column[g->columns].name)
		g->columns++;
	b.to = (uint64_t)g->sizes * g->threads * g->columns;
	err = sim_batch_run(&b, &sum);
	if (err)
		return error_set(err, "the points could not be run");
	if (sum.violated)
		return error_set(-EIO, "point %llu: %s",
				 (unsigned long long)sum.first_seed, sum.first);
	g->claim_count = f->claims(g, g->claim);
	return 0;
}
