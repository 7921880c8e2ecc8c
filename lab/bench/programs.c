/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of `bench verbs` that users would measure themselves: programs of
 * perftest as they are packaged, on the soft NIC, beside ucx_perftest over
 * shared memory and CMA, in turns. Nothing has a priority, and the NIC's
 * threads share the cores with the programs, which spin.
 */
#include "programs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "stats.h"

enum {
	ROUNDS_MAX = 15,
	LAT_N = 2000,
	BW_N = 4000,
	BW_BYTES = 65536,
	/* Columns: perftest's typical time and average bandwidth, UCX's median
	 * time and overall bandwidth. */
	LAT_COLUMN = 4,
	BW_COLUMN = 3,
	UCX_LAT_COLUMN = 1,
	UCX_BW_COLUMN = 5,
};

enum which {
	WRITE_LAT,
	READ_LAT,
	SEND_LAT,
	ATOMIC_LAT,
	WRITE_BW,
	READ_BW,
	UCX_PUT_LAT,
	UCX_PUT_BW,
	UCX_GET_BW,
	CMA_PUT_LAT,
	CMA_PUT_BW,
	CMA_GET_BW,
	PROGRAMS,
};

#define LAT(name_, what_, bytes_)                                           \
	{                                                                   \
		.name = name_, .what = what_, .unit = "us",                 \
		.verbs = "ib_" name_, .bytes = bytes_, .iterations = LAT_N, \
		.column = LAT_COLUMN                                        \
	}
#define BW(name_, what_)                                                     \
	{                                                                    \
		.name = name_, .what = what_, .unit = "MiB/s",               \
		.verbs = "ib_" name_, .bytes = BW_BYTES, .iterations = BW_N, \
		.column = BW_COLUMN                                          \
	}

#define SHARED	 "memory that UCX shares"
#define ORDINARY "ordinary memory"
#define UCX_LAT(name_, memory_, plain_)                                 \
	{                                                               \
		.name = name_,                                          \
		.what = "ucp_put_lat, 64 B, median, one way, " memory_, \
		.unit = "us", .ucx = "ucp_put_lat", .bytes = 64,        \
		.iterations = 10 * LAT_N, .column = UCX_LAT_COLUMN,     \
		.is_plain_memory = plain_                               \
	}
#define UCX_BW(name_, test_, memory_, plain_)                      \
	{                                                          \
		.name = name_, .what = test_ ", 64 KiB, " memory_, \
		.unit = "MiB/s", .ucx = test_, .bytes = BW_BYTES,  \
		.iterations = BW_N, .column = UCX_BW_COLUMN,       \
		.is_plain_memory = plain_                          \
	}

static const struct program programs[PROGRAMS] = {
	[WRITE_LAT] =
		LAT("write_lat", "ib_write_lat, 64 B, typical, one way", 64),
	[READ_LAT] = LAT("read_lat", "ib_read_lat, 64 B, typical", 64),
	[SEND_LAT] = LAT("send_lat", "ib_send_lat, 64 B, typical, one way", 64),
	[ATOMIC_LAT] = LAT("atomic_lat", "ib_atomic_lat, typical", 8),
	[WRITE_BW] = BW("write_bw", "ib_write_bw, 64 KiB"),
	[READ_BW] = BW("read_bw", "ib_read_bw, 64 KiB"),
	[UCX_PUT_LAT] = UCX_LAT("ucx_put_lat", SHARED, false),
	[UCX_PUT_BW] = UCX_BW("ucx_put_bw", "ucp_put_bw", SHARED, false),
	[UCX_GET_BW] = UCX_BW("ucx_get_bw", "ucp_get", SHARED, false),
	[CMA_PUT_LAT] = UCX_LAT("ucx_cma_put_lat", ORDINARY, true),
	[CMA_PUT_BW] = UCX_BW("ucx_cma_put_bw", "ucp_put_bw", ORDINARY, true),
	[CMA_GET_BW] = UCX_BW("ucx_cma_get_bw", "ucp_get", ORDINARY, true),
};

static const char *const where_names[PROGRAM_WHERES] = {
	[PROGRAM_TWO_CORES] = "two",
	[PROGRAM_SAME_CORE] = "same",
	[PROGRAM_BUSY] = "busy",
};

struct result {
	double value[ROUNDS_MAX]; /* NAN: that run failed */
	int err;		  /* of the last run that did */
};

static void run_round(struct bench *b, unsigned round,
		      struct result out[PROGRAM_WHERES][PROGRAMS])
{
	for (unsigned w = 0; w < PROGRAM_WHERES; w++)
		for (unsigned i = 0; i < PROGRAMS; i++) {
			struct result *r = &out[w][i];
			double v = NAN;
			int err = r->err;

			bench_progress(b, "round %u: %s, %s", round + 1,
				       programs[i].name, where_names[w]);
			/* What is missing, or hangs, is not tried again. */
			if (err != -ENOENT && err != -ETIMEDOUT)
				err = program_run(&programs[i], w, &v);
			if (err)
				r->err = err;
			r->value[round] = err ? NAN : v;
		}
}

static double median(const double *v, unsigned rounds)
{
	double good[ROUNDS_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < rounds; i++)
		if (!isnan(v[i]))
			good[n++] = v[i];
	return n ? stats_median(good, n) : NAN;
}

static void add_row(struct bench *b, unsigned w, unsigned i,
		    const struct result *r, unsigned rounds)
{
	const struct program *p = &programs[i];
	double m = median(r->value, rounds);
	json_t *row, *all;
	char name[48];

	snprintf(name, sizeof(name), "%s_%s", p->name, where_names[w]);
	if (isnan(m)) {
		bench_row_failed(b, "programs", name, p->unit,
				 r->err == -ENOENT ? "not installed"
						   : "it did not end well");
		if (r->err != -ENOENT && p->verbs)
			(void)bench_fail(b, -EIO, "%s failed", p->verbs);
		return;
	}
	row = bench_row(b, "programs", name, m, p->unit, p->what);
	all = json_array();
	for (unsigned k = 0; k < rounds; k++)
		if (!isnan(r->value[k]))
			json_array_append_new(all, json_real(r->value[k]));
	json_object_set_new(row, "all", all);
}

/* The median over the rounds of what two did in the same one. */
static double paired(const struct result *a, const struct result *b,
		     unsigned rounds)
{
	double v[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		v[i] = a->value[i] / b->value[i];
	return median(v, rounds);
}

static void judge(struct bench *b, const char *name, double value)
{
	if (isnan(value))
		bench_void(b, name, "no round that both have");
	else
		bench_ratio_add(b, name, value);
}

int programs_run(struct bench *b)
{
	static const char *const judged[] = {
		"write_lat_vs_read_lat",  "write64_lat_vs_ucx_shm",
		"write64_lat_vs_ucx_cma", "bw64k_vs_ucx_shm",
		"bw64k_vs_ucx_cma",	  "busy_lat_growth"};
	static struct result all[PROGRAM_WHERES][PROGRAMS];
	const struct result *two = all[PROGRAM_TWO_CORES];
	unsigned rounds = b->rounds < ROUNDS_MAX ? b->rounds : ROUNDS_MAX;

	/* A round takes half a minute. */
	if (b->quick && !b->only) {
		for (unsigned i = 0; i < ARRAY_LEN(judged); i++)
			bench_void(b, judged[i],
				   "--quick leaves programs out, unless --only "
				   "names them");
		return 0;
	}
	for (unsigned i = 0; i < rounds; i++)
		run_round(b, i, all);
	for (unsigned w = 0; w < PROGRAM_WHERES; w++)
		for (unsigned i = 0; i < PROGRAMS; i++)
			add_row(b, w, i, &all[w][i], rounds);
	judge(b, "write_lat_vs_read_lat",
	      paired(&two[WRITE_LAT], &two[READ_LAT], rounds));
	judge(b, "write64_lat_vs_ucx_shm",
	      paired(&two[WRITE_LAT], &two[UCX_PUT_LAT], rounds));
	judge(b, "write64_lat_vs_ucx_cma",
	      paired(&two[WRITE_LAT], &two[CMA_PUT_LAT], rounds));
	judge(b, "bw64k_vs_ucx_shm",
	      fmin(paired(&two[WRITE_BW], &two[UCX_PUT_BW], rounds),
		   paired(&two[READ_BW], &two[UCX_GET_BW], rounds)));
	judge(b, "bw64k_vs_ucx_cma",
	      fmin(paired(&two[WRITE_BW], &two[CMA_PUT_BW], rounds),
		   paired(&two[READ_BW], &two[CMA_GET_BW], rounds)));
	judge(b, "busy_lat_growth",
	      paired(&all[PROGRAM_BUSY][READ_LAT], &two[READ_LAT], rounds));
	return b->why[0] ? -EIO : 0;
}
