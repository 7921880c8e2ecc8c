/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 6: how many requests of YCSB fit through one link. The paper counts
 * the direction of the requests only, in which a read is almost nothing; a link
 * has two directions, and the answers of 1 KB fill the other one.
 *
 * Figure 7: mean latency of YCSB A with part of the keys local. Once with the
 * cycle counts of the paper's own model, which charges DRAM at both ends of a
 * read, and once with Table 1, real serialization and DRAM once.
 */
#include "edm_figure.h"
#include "edm_timing.h"

enum {
	READ_BYTES = 1024,
	WRITE_BYTES = 100,
	ROCE_READ = 98,	    /* bytes on the wire: request */
	ROCE_WRITE = 198,   /* request with 100 B */
	ROCE_ANSWER = 1110, /* 1 KB */
	ROCE_ACK = 86,
	WORKLOADS = 3,
	RATIOS = 5,
	LOCAL_NS = 82,
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
		return larger(writes * ROCE_WRITE + reads * ROCE_READ,
			      writes * ROCE_ACK + reads * ROCE_ANSWER) /
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
	static const struct figure_claim mean = {
		.what = "mean ratio in the requests' direction",
		.published = 2.7,
		.unit = "x"};
	double sum = 0;

	for (unsigned i = 0; i < WORKLOADS; i++) {
		struct edm_row *row = figure_row(r, i);
		double *n = row->number;

		for (unsigned k = 0; k < 2; k++)
			n[N6_SIM_EDM + k] = (double)row->job[k].mean.arrivals /
					    row->job[k].mean.end_ns * 1e3;
		n[N6_SIM_RATIO] = n[N6_SIM_EDM] / n[N6_SIM_RDMA];
		sum += n[N6_REQUESTS];
		figure_claim_at(
			r, &(struct figure_claim){.what = workload[i].name,
						  .column = "requests",
						  .series = "YCSB",
						  .x = i,
						  .published = n[N6_PAPER_EDM] /
							       n[N6_PAPER_RDMA],
						  .unit = "x"});
	}
	figure_claim_add(r, &mean, sum / WORKLOADS);
}

/* ---- figure 7 ----------------------------------------------------------- */

enum {
	N7_PAPER_EDM,
	N7_PAPER_CXL,
	N7_PAPER_RDMA,
	N7_MODEL_EDM,
	N7_MODEL_CXL,
	N7_MODEL_RATIO,
	N7_OUR_EDM,
	N7_OUR_CXL,
	N7_OUR_RDMA,
	N7_OUR_RATIO,
};

const struct figure_column edm_columns_7[] = {
	EDM_COLUMN(p.x_name, "local:remote", 0),
	EDM_COLUMN(number[N7_PAPER_EDM], "paper_edm", 0),
	EDM_COLUMN(number[N7_MODEL_EDM], "model_edm", 0),
	EDM_COLUMN(number[N7_PAPER_CXL], "paper_cxl", 0),
	EDM_COLUMN(number[N7_MODEL_CXL], "model_cxl", 0),
	EDM_COLUMN(number[N7_MODEL_RATIO], "ratio", 2),
	EDM_COLUMN(number[N7_OUR_EDM], "our_edm", 0),
	EDM_COLUMN(number[N7_OUR_CXL], "our_cxl", 0),
	EDM_COLUMN(number[N7_PAPER_RDMA], "paper_rdma", 0),
	EDM_COLUMN(number[N7_OUR_RDMA], "our_rdma", 0),
	EDM_COLUMN(number[N7_OUR_RATIO], "our_ratio", 2),
	{.name = NULL},
};

static const struct {
	const char *name;
	double remote;
	double paper[3]; /* published results of EDM, CXL and RDMA, ns */
} ratio[RATIOS] = {
	{"100:10", 1.0 / 11, {113, 107, 227}},
	{"66:34", 1.0 / 3, {195, 168, 639}},
	{"50:50", 0.5, {250, 207, 915}},
	{"34:66", 2.0 / 3, {311, 252, 1218}},
	{"10:100", 10.0 / 11, {395, 313, 1637}},
};

/* Cycles of 2.56 ns, reads and writes, half of each: the paper's models. */
static const double edm_model_ns = (183 + 148) / 2.0 * 2.56;
static const double cxl_model_ns = (152 + 108) / 2.0 * 2.56;

static double mixed(double remote_ns, double part)
{
	return part * remote_ns + (1 - part) * LOCAL_NS;
}

double edm_figure_7_worst(void)
{
	double worst = 0;

	for (unsigned i = 0; i < RATIOS; i++)
		worst = larger(worst,
			       mixed(edm_model_ns, ratio[i].remote) /
				       mixed(cxl_model_ns, ratio[i].remote));
	return worst;
}

/* The mean of a lone read and a lone write in a simulation of this fabric. */
static int lone_ns(const struct edm_config *base, enum edm_proto proto,
		   struct edm_unloaded *u, double *out)
{
	struct edm_config c = *base;
	uint64_t read, write;
	int rc;

	c.proto = proto;
	c.framing = EDM_FRAMING_WIRE;
	c.gbps = 25;
	rc = edm_unloaded_ps(u, &c, EDM_READ, READ_BYTES, &read);
	if (!rc)
		rc = edm_unloaded_ps(u, &c, EDM_WRITE, WRITE_BYTES, &write);
	if (!rc)
		*out = (double)(read + write) / 2000 + LOCAL_NS;
	return rc;
}

int edm_plan_7(struct figure_run *r)
{
	static const enum edm_proto proto[] = {EDM_PROTO_EDM, EDM_PROTO_CXL,
					       EDM_PROTO_PFC};
	struct edm_unloaded *u;
	double lone[ARRAY_LEN(proto)];
	int rc = edm_unloaded_create(&u);

	if (rc)
		return rc;
	for (unsigned k = 0; k < ARRAY_LEN(proto) && !rc; k++)
		rc = lone_ns(&edm_options_of(r)->base, proto[k], u, &lone[k]);
	edm_unloaded_destroy(u);
	for (unsigned i = 0; i < RATIOS && !rc; i++) {
		struct edm_row *row = figure_add(r, NULL, "YCSB A", i);
		double f = ratio[i].remote, *n = row->number;

		row->p.x_name = ratio[i].name;
		n[N7_MODEL_EDM] = mixed(edm_model_ns, f);
		n[N7_MODEL_CXL] = mixed(cxl_model_ns, f);
		n[N7_MODEL_RATIO] = n[N7_MODEL_EDM] / n[N7_MODEL_CXL];
		for (unsigned k = 0; k < ARRAY_LEN(proto); k++) {
			n[N7_PAPER_EDM + k] = ratio[i].paper[k];
			n[N7_OUR_EDM + k] = mixed(lone[k], f);
		}
		n[N7_OUR_RATIO] = n[N7_OUR_EDM] / n[N7_OUR_CXL];
	}
	return rc;
}

void edm_judge_7(struct figure_run *r)
{
	static const char *const column[] = {"model_edm", "model_cxl",
					     "our_rdma"};
	static const struct figure_claim worst = {
		.what = "fig7_edm_over_cxl_worst",
		.published = 1.3,
		.most = 1.3,
		.unit = "x",
		.note = "within 1.3"};

	for (unsigned i = 0; i < RATIOS; i++)
		for (unsigned k = 0; k < ARRAY_LEN(column); k++)
			figure_claim_at(r,
					&(struct figure_claim){
						.what = column[k],
						.column = column[k],
						.series = "YCSB A",
						.x = i,
						.published = ratio[i].paper[k],
						.unit = "ns",
						.note = ratio[i].name});
	figure_claim_add(r, &worst, edm_figure_7_worst());
}
