/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figure 7: latency of YCSB A with part of the keys in another node's memory,
 * simulated request by request (kv.c) over EDM, CXL and RoCEv2 at 25 Gb/s, with
 * the constants of Table 1, serialization, and DRAM once.
 */
#include <errno.h>

#include "base/error.h"
#include "edm_figure.h"
#include "edm_kv.h"

enum {
	RATIOS = 5,
	FABRICS = 3,
	REQUESTS = 20000,
	REQUESTS_FULL = 200000,
};

/* Numbers of a row: by fabric the published mean, ours and its deviation. */
enum {
	N7_PAPER,
	N7_MEAN,
	N7_DEVIATION,
	N7_PER_FABRIC,
	N7_RATIO = FABRICS * N7_PER_FABRIC,
	N7_REMOTE,
};

#define CELL(fabric, what) number[(fabric)*N7_PER_FABRIC + (what)]

const struct figure_column edm_columns_7[] = {
	EDM_COLUMN(p.x_name, "local:remote", 0),
	EDM_COLUMN(number[N7_REMOTE], "remote", 3),
	EDM_COLUMN(CELL(0, N7_PAPER), "paper_edm", 0),
	EDM_COLUMN(CELL(0, N7_MEAN), "edm", 1),
	EDM_COLUMN(CELL(0, N7_DEVIATION), "edm_sd", 1),
	EDM_COLUMN(CELL(1, N7_PAPER), "paper_cxl", 0),
	EDM_COLUMN(CELL(1, N7_MEAN), "cxl", 1),
	EDM_COLUMN(CELL(1, N7_DEVIATION), "cxl_sd", 1),
	EDM_COLUMN(CELL(2, N7_PAPER), "paper_rdma", 0),
	EDM_COLUMN(CELL(2, N7_MEAN), "rdma", 1),
	EDM_COLUMN(CELL(2, N7_DEVIATION), "rdma_sd", 1),
	EDM_COLUMN(number[N7_RATIO], "edm_over_cxl", 3),
	{.name = NULL},
};

static const enum edm_proto proto[FABRICS] = {EDM_PROTO_EDM, EDM_PROTO_CXL,
					      EDM_PROTO_PFC};
static const struct {
	const char *name;
	double remote;
	double paper[FABRICS]; /* ns */
} ratio[RATIOS] = {
	{"100:10", 1.0 / 11, {113, 107, 227}},
	{"66:34", 1.0 / 3, {195, 168, 639}},
	{"50:50", 0.5, {250, 207, 915}},
	{"34:66", 2.0 / 3, {311, 252, 1218}},
	{"10:100", 10.0 / 11, {395, 313, 1637}},
};

/* The mean over seeds; the same requests for each fabric. */
static int point(unsigned at, unsigned fabric, uint32_t requests, uint64_t seed,
		 uint32_t seeds, struct edm_kv_result *out)
{
	*out = (struct edm_kv_result){0};
	for (uint32_t i = 0; i < seeds; i++) {
		struct edm_kv_config c = {.proto = proto[fabric],
					  .gbps = 25,
					  .remote = ratio[at].remote,
					  .writes = 0.5,
					  .requests = requests,
					  .seed = seed + i};
		struct edm_kv_result one;
		int rc = edm_kv_run(&c, &one);

		if (!rc && one.wrong)
			rc = error_set(-EIO, "%u records had wrong bytes",
				       one.wrong);
		if (rc)
			return rc;
		out->mean_ns += one.mean_ns / seeds;
		out->deviation_ns += one.deviation_ns / seeds;
		out->remote += one.remote / seeds;
	}
	return 0;
}

int edm_figure_7_worst(uint32_t requests, uint64_t seed, double *worst)
{
	*worst = 0;
	for (unsigned i = 0; i < RATIOS; i++) {
		struct edm_kv_result edm, cxl;
		int rc = point(i, 0, requests, seed, 1, &edm);

		if (!rc)
			rc = point(i, 1, requests, seed, 1, &cxl);
		if (rc)
			return rc;
		if (edm.mean_ns / cxl.mean_ns > *worst)
			*worst = edm.mean_ns / cxl.mean_ns;
	}
	return 0;
}

int edm_plan_7(struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);
	uint32_t requests = o->messages
				    ? (uint32_t)u64_min(o->messages, UINT32_MAX)
			    : o->full ? REQUESTS_FULL
				      : REQUESTS;

	for (unsigned i = 0; i < RATIOS; i++) {
		struct edm_row *row = figure_add(r, NULL, "YCSB A", i);

		row->p.x_name = ratio[i].name;
		for (unsigned k = 0; k < FABRICS; k++) {
			struct edm_kv_result res;
			int rc = point(i, k, requests, o->base.seed,
				       u32_max(o->seeds, 1), &res);

			if (rc)
				return rc;
			row->CELL(k, N7_PAPER) = ratio[i].paper[k];
			row->CELL(k, N7_MEAN) = res.mean_ns;
			row->CELL(k, N7_DEVIATION) = res.deviation_ns;
			row->number[N7_REMOTE] = res.remote;
		}
		row->number[N7_RATIO] =
			row->CELL(0, N7_MEAN) / row->CELL(1, N7_MEAN);
	}
	return 0;
}

void edm_judge_7(struct figure_run *r)
{
	static const char *const column[FABRICS] = {"edm", "cxl", "rdma"};
	double worst = 0;

	for (unsigned i = 0; i < RATIOS; i++) {
		const struct edm_row *row = figure_row(r, i);

		if (row->number[N7_RATIO] > worst)
			worst = row->number[N7_RATIO];
		for (unsigned k = 0; k < FABRICS; k++)
			figure_claim_at(r,
					&(struct figure_claim){
						.what = column[k],
						.column = column[k],
						.series = "YCSB A",
						.x = i,
						.published = ratio[i].paper[k],
						.unit = "ns",
						.note = ratio[i].name});
	}
	figure_claim_add(
		r,
		&(struct figure_claim){.what = "fig7_edm_over_cxl_worst",
				       .published = 1.3,
				       .most = 1.3,
				       .unit = "x",
				       .note = "within 1.3, simulated"},
		worst);
}
