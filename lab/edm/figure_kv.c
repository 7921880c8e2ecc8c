/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 6: how many requests of YCSB fit through one link. The paper counts
 * the direction of the requests only, in which a read is almost nothing; a link
 * has two directions, and the answers of 1 KB fill the other one.
 */
#include "edm_constants.h"
#include "edm_figure.h"

enum {
	WRITE_BYTES = 100,
	WORKLOADS = 3,
};

/* ---- figure 6 ----------------------------------------------------------- */

enum {
	N6_PAPER_EDM,
	N6_PAPER_RDMA,
	N6_FORMULA_EDM,
	N6_FORMULA_RDMA,
	N6_REQUESTS,
	N6_BOTH_EDM,
	N6_BOTH_RDMA,
	N6_BOTH_RATIO,
	N6_SIM_EDM,
	N6_SIM_RDMA,
	N6_SIM_RATIO,
};

const struct figure_column edm_columns_6[] = {
	EDM_COLUMN(p.x_name, "workload", 0),
	EDM_COLUMN(number[N6_PAPER_EDM], "paper_edm", 1),
	EDM_COLUMN(number[N6_PAPER_RDMA], "paper_rdma", 1),
	EDM_COLUMN(number[N6_FORMULA_EDM], "formula_edm", 2),
	EDM_COLUMN(number[N6_FORMULA_RDMA], "formula_rdma", 2),
	EDM_COLUMN(number[N6_REQUESTS], "requests", 2),
	EDM_COLUMN(number[N6_BOTH_EDM], "both_edm", 2),
	EDM_COLUMN(number[N6_BOTH_RDMA], "both_rdma", 2),
	EDM_COLUMN(number[N6_BOTH_RATIO], "both_ratio", 2),
	EDM_COLUMN(number[N6_SIM_EDM], "sim_edm", 2),
	EDM_COLUMN(number[N6_SIM_RDMA], "sim_rdma", 2),
	EDM_COLUMN(number[N6_SIM_RATIO], "sim_ratio", 2),
	{.name = NULL},
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

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Of the busier direction. */
static double both_blocks(double writes, bool edm)
{
	double reads = 1 - writes;

	if (!edm)
		return larger(writes * EDM_ROCE_WRITE + reads * EDM_ROCE_READ,
			      writes * EDM_ROCE_ACK + reads * EDM_ROCE_ANSWER) /
		       8;
	/* Back: a grant per write; four chunks of 256 B per read. */
	return larger(writes * (1 + edm_blocks(EDM_MD_DATA, WRITE_BYTES + 8)) +
			      reads * edm_blocks(EDM_MD_DATA, 8),
		      writes + reads * 4 * edm_blocks(EDM_MD_DATA, 256));
}

static void add_saturated(struct figure_run *r, struct edm_row *row,
			  double writes, enum edm_proto proto)
{
	const struct edm_figure_options *o = edm_options_of(r);
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
	edm_row_job(row, &c);
}

int edm_plan_6(struct figure_run *r)
{
	const double block_us = 2.56e-3;

	for (unsigned i = 0; i < WORKLOADS; i++) {
		struct edm_row *row = figure_add(r, NULL, "YCSB", i);
		double w = workload[i].writes, *n = row->number;

		row->p.x_name = workload[i].name;
		n[N6_PAPER_EDM] = workload[i].paper_edm;
		n[N6_PAPER_RDMA] = workload[i].paper_rdma;
		n[N6_FORMULA_EDM] = w / paper_blocks(w, true) / block_us;
		n[N6_FORMULA_RDMA] = w / paper_blocks(w, false) / block_us;
		n[N6_REQUESTS] = n[N6_FORMULA_EDM] / n[N6_FORMULA_RDMA];
		n[N6_BOTH_EDM] = 1 / both_blocks(w, true) / block_us;
		n[N6_BOTH_RDMA] = 1 / both_blocks(w, false) / block_us;
		n[N6_BOTH_RATIO] = n[N6_BOTH_EDM] / n[N6_BOTH_RDMA];
		add_saturated(r, row, w, EDM_PROTO_EDM);
		add_saturated(r, row, w, EDM_PROTO_PFC);
	}
	return 0;
}

void edm_judge_6(struct figure_run *r)
{
	for (unsigned i = 0; i < WORKLOADS; i++) {
		struct edm_row *row = figure_row(r, i);
		double *n = row->number, paper;

		for (unsigned k = 0; k < 2; k++)
			n[N6_SIM_EDM + k] = (double)row->job[k].mean.arrivals /
					    row->job[k].mean.end_ns * 1e3;
		n[N6_SIM_RATIO] = n[N6_SIM_EDM] / n[N6_SIM_RDMA];
		paper = n[N6_PAPER_EDM] / n[N6_PAPER_RDMA];
		figure_claim_at(
			r, &(struct figure_claim){.what = workload[i].name,
						  .column = "sim_ratio",
						  .series = "YCSB",
						  .x = i,
						  .published = paper,
						  .least = paper,
						  .unit = "x",
						  .note = "simulated, both "
							  "directions"});
	}
}
