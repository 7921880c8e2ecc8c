/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 6: how many requests of YCSB fit through one link. The paper counts
 * the direction of the requests only, in which a read is almost nothing; a link
 * has two directions, and the answers of 1 KB fill the other one.
 */
#include "edm_figure.h"

enum {
	READ_BYTES = 1024,
	WRITE_BYTES = 100,
	ROCE_READ = 98,	    /* bytes on the wire: request */
	ROCE_WRITE = 198,   /* request with 100 B */
	ROCE_ANSWER = 1110, /* 1 KB */
	ROCE_ACK = 86,
	WORKLOADS = 3,
};

static const struct {
	const char *name;
	double writes;
	double paper_edm, paper_rdma; /* published results, M writes/s */
} workload[WORKLOADS] = {
	{"A", 0.5, 23, 11},
	{"B", 0.05, 7, 1.9},
	{"F", 1.0 / 3, 20.4, 9},
};

/* Blocks of 8 bytes, in the paper's own count. */
static double paper_blocks(double writes, bool edm)
{
	return edm ? writes * 15 + (1 - writes) * 2
		   : writes * 23.5 + (1 - writes) * 9.5;
}

static double up_blocks(double writes, bool edm)
{
	if (!edm)
		return (writes * ROCE_WRITE + (1 - writes) * ROCE_READ) / 8;
	return writes * (1 + edm_blocks(EDM_MD_DATA, WRITE_BYTES + 8)) +
	       (1 - writes) * edm_blocks(EDM_MD_DATA, 8);
}

static double down_blocks(double writes, bool edm)
{
	if (!edm)
		return (writes * ROCE_ACK + (1 - writes) * ROCE_ANSWER) / 8;
	/* A grant per write; four chunks of 256 B per read. */
	return writes + (1 - writes) * 4 * edm_blocks(EDM_MD_DATA, 256);
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static size_t saturated_add(struct edm_jobs *j,
			    const struct edm_figure_options *o, double writes,
			    enum edm_proto proto)
{
	struct edm_config c = o->base;

	c.nodes = 2;
	c.gbps = 25;
	c.pattern = EDM_PATTERN_INCAST;
	c.sizes = EDM_SIZES_YCSB;
	c.write_ppm = (uint32_t)(writes * 1e6);
	c.load = 1.5;
	c.active_max = 64; /* one client must be able to fill its link */
	c.messages = o->full ? 100000 : 20000;
	c.warmup_ppm = 0;
	c.proto = proto;
	c.framing = EDM_FRAMING_WIRE;
	return edm_jobs_add(j, &c);
}

static double rate_of(const struct edm_jobs *j, size_t i)
{
	const struct edm_point *p = &j->job[i].mean;

	return (double)p->arrivals / p->end_ns * 1e3;
}

static void tables(const struct edm_figure_options *o, const struct edm_jobs *j,
		   const size_t *edm, const size_t *roce)
{
	static const char *const head[] = {
		"workload",    "paper_edm",    "paper_rdma",
		"formula_edm", "formula_rdma", "requests",
		"both_edm",    "both_rdma",    "both_ratio",
		"sim_edm",     "sim_rdma",     "sim_ratio",
		NULL};
	const double block_us = 2.56e-3;
	struct edm_table t;
	double sum = 0;

	edm_table_init(&t, "figure6",
		       "Figure 6 at 25 Gb/s. paper, formula: M writes/s, "
		       "requests' direction only; requests: their ratio by "
		       "formula; both, sim: M requests/s, busier direction",
		       head);
	for (unsigned i = 0; i < WORKLOADS; i++) {
		double w = workload[i].writes;
		double edm_m = w / paper_blocks(w, true) / block_us;
		double rdma_m = w / paper_blocks(w, false) / block_us;
		double both_edm =
			1 / larger(up_blocks(w, true), down_blocks(w, true)) /
			block_us;
		double both_rdma =
			1 / larger(up_blocks(w, false), down_blocks(w, false)) /
			block_us;

		sum += edm_m / rdma_m;
		edm_table_text(&t, "%s", workload[i].name);
		edm_table_number(&t, workload[i].paper_edm, 1);
		edm_table_number(&t, workload[i].paper_rdma, 1);
		edm_table_number(&t, edm_m, 2);
		edm_table_number(&t, rdma_m, 2);
		edm_table_number(&t, edm_m / rdma_m, 2);
		edm_table_number(&t, both_edm, 2);
		edm_table_number(&t, both_rdma, 2);
		edm_table_number(&t, both_edm / both_rdma, 2);
		edm_table_number(&t, rate_of(j, edm[i]), 2);
		edm_table_number(&t, rate_of(j, roce[i]), 2);
		edm_table_number(&t, rate_of(j, edm[i]) / rate_of(j, roce[i]),
				 2);
	}
	if (!o->json)
		printf("mean ratio in the requests' direction: %.2f "
		       "(paper: 2.7)\n",
		       sum / WORKLOADS);
	edm_figure_emit(o, &t);
}

static int chart(const struct edm_figure_options *o)
{
	static const char *const x[] = {"A", "B", "F"};
	double y[4 * WORKLOADS];
	const struct edm_chart c = {
		.title = "Figure 6: EDM over RoCEv2, requests per second",
		.x_label = "YCSB workload",
		.y_label = "ratio",
		.x = x,
		.points = WORKLOADS,
		.series = 2,
		.name = {"requests' direction only", "busier direction"},
		.y = y,
		.bars = true,
	};

	for (unsigned i = 0; i < WORKLOADS; i++) {
		double w = workload[i].writes;

		y[i] = paper_blocks(w, false) / paper_blocks(w, true);
		y[WORKLOADS + i] =
			larger(up_blocks(w, false), down_blocks(w, false)) /
			larger(up_blocks(w, true), down_blocks(w, true));
	}
	return o->out ? edm_chart_write(&c, o->out, "figure6") : 0;
}

int edm_figure_6(const struct edm_figure_options *o)
{
	struct edm_jobs j;
	size_t edm[WORKLOADS], roce[WORKLOADS];
	int rc;

	edm_figure_jobs(o, "figure 6", &j);
	for (unsigned i = 0; i < WORKLOADS; i++) {
		edm[i] =
			saturated_add(&j, o, workload[i].writes, EDM_PROTO_EDM);
		roce[i] =
			saturated_add(&j, o, workload[i].writes, EDM_PROTO_PFC);
	}
	rc = edm_jobs_run(&j);
	if (!rc) {
		tables(o, &j, edm, roce);
		rc = chart(o);
	}
	edm_jobs_release(&j);
	return rc;
}
