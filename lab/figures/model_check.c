/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the published experiments on the cost model and tells both numbers.
 * Printing is in model_figure.c.
 */
#include "model_check.h"

#include "model_drive.h"

#include <errno.h>

enum check_numbers {
	CHECK_SPAN_US = 150,
	/* Client threads of the figures, one queue pair each, as the data
	 * files and their notes say; the caption of figure 1.1 says twenty. */
	CHECK_THREADS = 24,
	CHECK_KEYS = 1024,
	CHECK_DEPTH_FULL = 15, /* the right end of figure 1.1 */
};

struct check {
	const struct model_params *p;
	struct model_row *rows;
	size_t count;
	int err;
};

static void row(struct check *c, const char *figure, const char *what,
		const char *unit, double published, double tolerance,
		double model)
{
	ASSERT(c->count < MODEL_ROWS_MAX);
	c->rows[c->count++] = (struct model_row){.figure = figure,
						 .what = what,
						 .unit = unit,
						 .published = published,
						 .tolerance = tolerance,
						 .model = model};
}

static double rate(struct check *c, struct drive_config config)
{
	struct drive_result result = {0};
	int err;

	config.params = c->p;
	config.bytes = 8;
	config.span_ps = CHECK_SPAN_US * 1000000ull;
	config.seed = 1;
	err = drive_closed_loop(&config, &result);
	if (err && !c->err)
		c->err = err;
	return result.mops;
}

/* Figure 1.1's threads: each posts `depth` requests and waits for them. */
static double threads(struct check *c, enum model_kind kind, uint32_t depth,
		      uint32_t addrs, bool in_device)
{
	return rate(c, (struct drive_config){.kind = kind,
					     .qps = CHECK_THREADS,
					     .depth = depth,
					     .batch = true,
					     .addrs = addrs,
					     .in_device = in_device});
}

/* Figure 2.1's queue pairs: always full. */
static double stream(struct check *c, uint32_t qps, uint32_t addrs,
		     bool in_device)
{
	return rate(c, (struct drive_config){.kind = MODEL_WRITE,
					     .qps = qps,
					     .depth = 256,
					     .addrs = addrs,
					     .in_device = in_device});
}

static void figure_1_1(struct check *c)
{
	static const struct {
		const char *what;
		enum model_kind kind;
		uint32_t depth;
		double mops;
	} points[] = {
		{"WRITE, 24 in flight", MODEL_WRITE, 1, 11.02},
		{"WRITE, 96 in flight", MODEL_WRITE, 4, 41.26},
		{"WRITE, 120 in flight", MODEL_WRITE, 5, 44.73},
		{"WRITE, 192 in flight", MODEL_WRITE, 8, 62.35},
		{"WRITE, 360 in flight", MODEL_WRITE, 15, 103.56},
		{"READ, 24 in flight", MODEL_READ, 1, 8.89},
		{"READ, 96 in flight", MODEL_READ, 4, 35.30},
		{"READ, 120 in flight", MODEL_READ, 5, 40.94},
		{"READ, 192 in flight", MODEL_READ, 8, 53.89},
		{"READ, 360 in flight", MODEL_READ, 15, 84.46},
		{"CAS, 24 in flight", MODEL_CAS, 1, 8.71},
		{"CAS, 96 in flight", MODEL_CAS, 4, 35.72},
		{"CAS, 120 in flight", MODEL_CAS, 5, 43.69},
		{"CAS, 192 in flight", MODEL_CAS, 8, 51.61},
		{"CAS, 360 in flight", MODEL_CAS, 15, 50.56},
	};
	double cas;

	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		row(c, "1.1", points[i].what, "Mops", points[i].mops, 0.15,
		    threads(c, points[i].kind, points[i].depth, CHECK_KEYS,
			    false));
	cas = rate(c, (struct drive_config){.kind = MODEL_CAS,
					    .qps = 20,
					    .depth = CHECK_DEPTH_FULL,
					    .batch = true,
					    .addrs = CHECK_KEYS});
	row(c, "1.1", "CAS of each of twenty queue pairs", "Mops", 2.7, 0.15,
	    cas / 20);
	row(c, "1.1", "CAS of twenty queue pairs", "Mops", 55, 0.15, cas);
}

static void figure_1_2(struct check *c)
{
	double one_host = threads(c, MODEL_CAS, 16, 1, false);
	double one_device = threads(c, MODEL_CAS, 16, 1, true);
	double many_host = threads(c, MODEL_CAS, 15, CHECK_KEYS, false);
	double many_device = threads(c, MODEL_CAS, 16, CHECK_KEYS, true);

	row(c, "1.2", "CAS, one address, host memory", "Mops", 2.929, 0.1,
	    one_host);
	row(c, "1.2", "CAS, one address, device memory", "Mops", 8.975, 0.1,
	    one_device);
	row(c, "1.2", "CAS, many addresses, host memory", "Mops", 50.56, 0.1,
	    many_host);
	row(c, "1.2", "CAS, many addresses, device memory", "Mops", 91.12, 0.1,
	    many_device);
	row(c, "1.2", "device over host, one address", "x", 3.1, 0.1,
	    one_device / one_host);
	row(c, "1.2", "device over host, many addresses", "x", 1.8, 0.1,
	    many_device / many_host);
}

static void figure_2_1(struct check *c)
{
	static const struct {
		const char *what;
		uint32_t qps;
		double mops;
	} points[] = {
		{"WRITE, 1 queue pair", 1, 18.26},
		{"WRITE, 2 queue pairs", 2, 37.05},
		{"WRITE, 4 queue pairs", 4, 74.92},
		{"WRITE, 6 queue pairs", 6, 112.65},
		{"WRITE, 7 queue pairs", 7, 117.92},
		{"WRITE, 8 queue pairs", 8, 117.94},
	};

	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		row(c, "2.1", points[i].what, "Mops", points[i].mops, 0.1,
		    stream(c, points[i].qps, CHECK_KEYS, false));
}

static void figure_2_2(struct check *c)
{
	struct drive_order order = {0};
	int err = drive_reordering(c->p, 32, 200000, 1000000, 1, &order);

	if (err && !c->err)
		c->err = err;
	/* What matters is how many are out of order: 3 %, within half. */
	row(c, "2.2", "responses out of order, 32 QPs at 1 Mops", "%", 3, 0.5,
	    100 * (1 - order.in_order));
	row(c, "2.2", "largest step between responses", "requests", 13, 0.2,
	    order.max_step);
}

static void figure_2_3(struct check *c)
{
	double cas_host = threads(c, MODEL_CAS, 16, 1, false);
	double cas_device = threads(c, MODEL_CAS, 16, 1, true);
	double write_host = stream(c, 1, 1, false);
	double write_device = stream(c, 1, 1, true);

	row(c, "2.3", "CAS, host memory", "Mops", 2.929, 0.1, cas_host);
	row(c, "2.3", "CAS, device memory", "Mops", 8.975, 0.1, cas_device);
	row(c, "2.3", "WRITE, one queue pair, host memory", "Mops", 18.26, 0.1,
	    write_host);
	row(c, "2.3", "WRITE, one queue pair, device memory", "Mops", 22.14,
	    0.1, write_device);
	row(c, "2.3", "WRITE over CAS, host memory", "x", 6.2, 0.1,
	    write_host / cas_host);
	row(c, "2.3", "WRITE over CAS, device memory", "x", 2.5, 0.1,
	    write_device / cas_device);
}

/* From the post until the other CPU sees the data, without a switch. */
static double one_way_us(struct check *c, uint32_t bytes)
{
	struct model_op op = {
		.kind = MODEL_WRITE, .bytes = bytes, .active_qps = 1};
	struct model_params p = *c->p;
	struct model_nic *client = NULL, *server = NULL;
	uint64_t t, memory_ps = 0;

	p.stall_every_ps = 0;
	if (model_nic_create(&p, 1, &client) ||
	    model_nic_create(&p, 2, &server)) {
		c->err = c->err ? c->err : -ENOMEM;
		goto out;
	}
	t = model_post(client, &op, 1, 0);
	t = model_tx_request(client, &op, t) + model_path_ps(&p, 0);
	(void)model_rx_request(server, &op, t, &memory_ps);
	memory_ps += p.cpu_poll_ps;
out:
	model_nic_destroy(server);
	model_nic_destroy(client);
	return (double)memory_ps / 1e6;
}

static void figure_3_1(struct check *c)
{
	static const struct {
		const char *what;
		uint32_t bytes;
		double us;
	} points[] = {
		{"one way, 2 B", 2, 0.80},     {"one way, 8 B", 8, 0.80},
		{"one way, 32 B", 32, 0.83},   {"one way, 64 B", 64, 0.85},
		{"one way, 128 B", 128, 0.90}, {"one way, 256 B", 256, 1.10},
		{"one way, 512 B", 512, 1.25}, {"one way, 1 KiB", 1024, 1.40},
	};

	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		row(c, "3.1", points[i].what, "us", points[i].us, 0.15,
		    one_way_us(c, points[i].bytes));
}

/* Points of the data files that the text does not show. */
static void data_files(struct check *c)
{
	row(c, "data", "FAA, one thread, one at a time", "Mops", 0.4988, 0.15,
	    rate(c, (struct drive_config){.kind = MODEL_FAA,
					  .qps = 1,
					  .depth = 1,
					  .batch = true,
					  .addrs = CHECK_KEYS}));
	row(c, "data", "FAA, one address, host memory", "Mops", 2.539, 0.1,
	    threads(c, MODEL_FAA, 16, 1, false));
	row(c, "data", "FAA, one address, device memory", "Mops", 7.723, 0.1,
	    threads(c, MODEL_FAA, 16, 1, true));
	row(c, "data", "READ, one address, host memory", "Mops", 23.08, 0.1,
	    threads(c, MODEL_READ, 16, 1, false));
	row(c, "data", "WRITE, one address, device memory", "Mops", 22.14, 0.1,
	    threads(c, MODEL_WRITE, 16, 1, true));
	row(c, "data", "READ, many addresses, device memory", "Mops", 93.72,
	    0.1, threads(c, MODEL_READ, 16, CHECK_KEYS, true));
}

static struct drive_result pages(struct check *c, enum drive_page what,
				 uint32_t workers)
{
	struct drive_result result = {0};
	int err = drive_pages(c->p, what, workers, 1000000000, &result);

	if (err && !c->err)
		c->err = err;
	return result;
}

static void odrp_throughput(struct check *c)
{
	enum {
		WORKERS = 64
	};
	double read = pages(c, DRIVE_PAGE_READ, WORKERS).mops;
	double load = pages(c, DRIVE_PAGE_LOAD, WORKERS).mops;
	double mapped = pages(c, DRIVE_PAGE_STORE_MAPPED, WORKERS).mops;
	double unmapped = pages(c, DRIVE_PAGE_STORE_UNMAPPED, WORKERS).mops;
	bool lowest = unmapped < mapped && unmapped < load && unmapped < read;

	row(c, "ODRP 10", "page load over READ, deep queue", "x", 0.921, 0.1,
	    load / read);
	row(c, "ODRP 10", "unmapped store is the lowest (1: yes)", "", 1, 0,
	    lowest);
}

/* Work requests of a chain, alone on the NIC. */
static double chain_us(struct check *c, const struct model_op *ops,
		       const uint32_t *sges, size_t n, bool fetched)
{
	struct model_params p = *c->p;
	struct model_nic *nic;
	uint64_t t = 0;

	p.stall_every_ps = 0;
	if (model_nic_create(&p, 1, &nic)) {
		c->err = c->err ? c->err : -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		t = model_chain_local(nic, &ops[i], sges[i], fetched, t);
	model_nic_destroy(nic);
	return (double)t / 1e6;
}

static void odrp_latency(struct check *c)
{
	const struct model_op faa_swap[] = {{.kind = MODEL_FAA, .bytes = 8},
					    {.kind = MODEL_READ, .bytes = 8}};
	const uint32_t faa_swap_sges[] = {1, 8};
	struct model_op reads[8];
	uint32_t one[8];

	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		reads[i] = (struct model_op){.kind = MODEL_READ, .bytes = 1};
		one[i] = 1;
	}
	row(c, "ODRP 11", "READ of a page", "us", 2.9, 0.15,
	    pages(c, DRIVE_PAGE_READ, 1).mean_us);
	row(c, "ODRP 11", "WRITE of a page", "us", 2.9, 0.15,
	    pages(c, DRIVE_PAGE_WRITE, 1).mean_us);
	row(c, "ODRP 11", "page load", "us", 5.5, 0.15,
	    pages(c, DRIVE_PAGE_LOAD, 1).mean_us);
	row(c, "ODRP 11", "mapped page store", "us", 4.6, 0.15,
	    pages(c, DRIVE_PAGE_STORE_MAPPED, 1).mean_us);
	row(c, "ODRP 11", "two-sided over one-sided (needs a CPU model)", "x",
	    3.8, 0, -1);
	row(c, "ODRP 12", "unmapped page store, all savings subtracted", "us",
	    9.4, 0.15, pages(c, DRIVE_PAGE_STORE_UNMAPPED, 1).mean_us);
	row(c, "ODRP 12", "8 READs less one with 8 entries", "us", 6.2, 0.15,
	    chain_us(c, reads, one, 8, true) -
		    chain_us(c, reads, &faa_swap_sges[1], 1, true));
	row(c, "ODRP 12", "one FAA and one byte swap", "us", 2.4, 0.15,
	    chain_us(c, faa_swap, faa_swap_sges, 2, true));
}

int model_check_run(const struct model_params *params,
		    struct model_row rows[MODEL_ROWS_MAX], size_t *count)
{
	struct check c = {.p = params, .rows = rows};

	figure_1_1(&c);
	figure_1_2(&c);
	figure_2_1(&c);
	figure_2_2(&c);
	figure_2_3(&c);
	figure_3_1(&c);
	data_files(&c);
	odrp_throughput(&c);
	odrp_latency(&c);
	if (c.err)
		return c.err;
	*count = c.count;
	return 0;
}

enum model_verdict model_row_verdict(const struct model_row *r)
{
	double off = r->model / r->published - 1;

	if (r->model < 0)
		return MODEL_NOT_MODELLED;
	if (off > r->tolerance || off < -r->tolerance)
		return MODEL_OFF;
	return MODEL_REPRODUCED;
}
