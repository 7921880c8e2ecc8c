/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SwordBox's figures. Published numbers are from S. Grant's dissertation,
 * chapter 2: its text, captions and section 2.4. What is compared is asked to
 * be between half of what was published and twice that, also where it is
 * without the switch: a rival that is too weak makes any gain.
 */
#include <string.h>

#include "figures.h"
#include "sim/sim.h"

enum {
	THREADS = 392, /* seven machines with 56 each */
	PARTIAL_THREADS = 336,
	CAS_THREADS = 112, /* beyond the published 24: to find the limits */
	THETA = 990,
	PARTIAL_THETA = 1500,
	ANY = UINT16_MAX,
};

/* Which points are asked for. */
struct vfig_figure_options {
	struct figure_options f;
	uint32_t system, threads, writes; /* ANY; 0 threads are any, too */
	uint64_t seed;
};

/* ---- points -------------------------------------------------------------- */

/* NULL: it is none of those that were asked for. */
static struct vfig_row *add(struct figure_run *r, enum vfig_system system,
			    double x, uint32_t threads, uint32_t write_percent)
{
	const struct vfig_figure_options *asked =
		(const struct vfig_figure_options *)r->options;
	struct vfig_row *row;

	if ((asked->system != ANY && asked->system != system) ||
	    (asked->threads && asked->threads != threads) ||
	    (asked->writes != ANY && asked->writes != write_percent))
		return NULL;
	row = figure_add(r, NULL, vfig_system_names[system], x);
	row->cfg = (struct vfig_config){
		.system = system,
		.threads = threads,
		.write_percent = write_percent,
		.theta_milli = THETA,
		.warm_ps = (r->options->quick ? 200 : 3000) * SIM_US,
		.span_ps = (r->options->quick ? 300 : 2000) * SIM_US,
		.seed = asked->seed};
	row->steering = vfig_system_names[system];
	row->keys = VFIG_KEYS;
	row->theta = THETA / 1000.0;
	return row;
}

static int plan_success(struct figure_run *r)
{
	static const uint32_t threads[] = {8, 60, 120, 180, 240};

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		(void)add(r, VFIG_PLAIN, threads[i], threads[i], 50);
	return 0;
}

/* All want one lock, in host memory and in the NIC's. */
static int plan_cas(struct figure_run *r)
{
	static const uint32_t threads[] = {1, 8, 24, CAS_THREADS};

	for (unsigned device = 0; device < 2; device++)
		for (unsigned s = VFIG_CAS; s < VFIG_SYSTEMS; s++)
			for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
				struct vfig_row *row =
					add(r, (enum vfig_system)s, threads[i],
					    threads[i], 100);

				if (!row || !device)
					continue;
				row->cfg.in_device = true;
				strcat(row->p.series, "/nic");
			}
	/* The switch is one core of a processor, as published. */
	for (unsigned s = VFIG_CAS_REPLACED; s < VFIG_SYSTEMS; s++)
		for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
			struct vfig_row *row = add(r, (enum vfig_system)s,
						   threads[i], threads[i], 100);

			if (!row)
				continue;
			row->cfg.on_core = true;
			strcat(row->p.series, "/core");
		}
	return 0;
}

/* 2.10 to 2.13, each with its share of writes. */
static int plan_rate(struct figure_run *r)
{
	static const uint32_t threads[] = {14, 112, 224, THREADS};
	static const uint32_t percent[] = {0, 5, 50, 100};
	uint32_t writes =
		percent[r->figure - figure_by_name(r->system, "2.10")];

	for (unsigned s = 0; s < VFIG_STORES; s++)
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			(void)add(r, (enum vfig_system)s, threads[i],
				  threads[i], writes);
	return 0;
}

static int plan_cost(struct figure_run *r)
{
	static const uint32_t percent[] = {5, 50, 100};

	for (unsigned s = 0; s < VFIG_FUSEE; s++)
		for (size_t i = 0; i < ARRAY_LEN(percent); i++)
			(void)add(r, (enum vfig_system)s, percent[i], THREADS,
				  percent[i]);
	return 0;
}

static int plan_partial(struct figure_run *r)
{
	static const uint32_t keys[] = {0, 8, 16, 32, 64, 128, VFIG_KEYS};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		uint32_t all = keys[i] ? keys[i] : VFIG_KEYS;
		struct vfig_row *row = add(r, keys[i] ? VFIG_FULL : VFIG_PLAIN,
					   all, PARTIAL_THREADS, 50);

		if (!row)
			continue;
		row->cfg.theta_milli = PARTIAL_THETA;
		row->theta = PARTIAL_THETA / 1000.0;
		row->cfg.steer_keys = keys[i];
		row->keys = all;
	}
	return 0;
}

/* ---- claims -------------------------------------------------------------- */

#define GAIN(figure, what, column, a, b, x, gain, note)               \
	{                                                             \
		figure, what, column, a, x, b, x, gain, (gain) / 2.0, \
			(gain)*2.0, "x", note                         \
	}
#define VALUE(figure, what, column, series, x, value, unit)      \
	{                                                        \
		figure, what, column, series, x, NULL, 0, value, \
			(value) / 2.0, (value)*2.0, unit, ""     \
	}
#define STEERING(figure, gain)                                              \
	GAIN(figure, "steering against none", "mops", "full", "plain",      \
	     THREADS, gain, ""),                                            \
		GAIN(figure, "steering against the FUSEE-like one", "mops", \
		     "full", "fusee-like", THREADS, 1.9,                    \
		     "published: 1.9 to 2.5")

/* The published middlebox stopped at 2.8 Mops, what one of its cores forwards:
 * the series /core. Those without it are bounded by what figure 2.3 measured
 * without a middlebox. That one word takes 2.9 million compare-and-swaps in
 * host memory and 9 in the NIC's, and what a packet costs the core, are
 * constants of the model, and no claims. */
static const struct figure_claim claims[] = {
	{"2.4", "operations that succeed, 240 threads", "success_share",
	 "plain", 240, NULL, 0, 4, 1, 4, "%", "published: less than"},
	GAIN("2.9", "host", "mops", "replaced", "cas", CAS_THREADS, 6.2,
	     "bound of figure 2.3"),
	GAIN("2.9", "host", "mops", "moved", "cas", CAS_THREADS, 6.2,
	     "bound of figure 2.3"),
	GAIN("2.9", "device", "mops", "replaced/nic", "cas/nic", CAS_THREADS,
	     2.5, "bound of figure 2.3"),
	GAIN("2.9", "device", "mops", "moved/nic", "cas/nic", CAS_THREADS, 2.5,
	     "bound of figure 2.3"),
	VALUE("2.10", "READs per second, no steering", "mops", "plain", THREADS,
	      40, "Mops"),
	VALUE("2.11", "no steering, 5 % writes: 40 / 2.8", "mops", "plain",
	      THREADS, 14.3, "Mops"),
	VALUE("2.15", "p99 of reads without steering, 5 % writes",
	      "read_p99_us", "plain", 5, 70, "us"),
	VALUE("2.15", "p99 of reads with steering, 5 % writes", "read_p99_us",
	      "full", 5, 8, "us"),
	STEERING("2.10", 1),
	STEERING("2.11", 2.8),
	STEERING("2.12", 35),
	GAIN("2.12", "steering of writes alone", "mops", "writes", "plain",
	     THREADS, 2, "published: almost doubles"),
	STEERING("2.13", 46),
	GAIN("2.14", "fewer bytes, 5 % writes", "bytes_per_op", "plain", "full",
	     5, 2.5, ""),
	GAIN("2.14", "fewer bytes, 50 % writes", "bytes_per_op", "plain",
	     "full", 50, 16, ""),
	GAIN("2.15", "lower p99 of reads, 5 % writes", "read_p99_us", "plain",
	     "full", 5, 8, ""),
	GAIN("2.15", "lower p99 of writes, 5 % writes", "write_p99_us", "plain",
	     "full", 5, 17, ""),
	GAIN("2.15", "lower p99 of reads, 50 % writes", "read_p99_us", "plain",
	     "full", 50, 300, ""),
	GAIN("2.15", "lower p99 of writes, 50 % writes", "write_p99_us",
	     "plain", "full", 50, 189, ""),
	GAIN("2.15", "lower p99 of writes, 100 % writes", "write_p99_us",
	     "plain", "full", 100, 252, ""),
	{"2.16", "8 keys steered", "mops", "full", 8, "plain", VFIG_KEYS, 9.5,
	 9.5 / 2, 9.5 * 2, "x", ""},
	{"2.16", "64 keys steered", "mops", "full", 64, "plain", VFIG_KEYS, 27,
	 27.0 / 2, 27.0 * 2, "x", ""},
};

/* ---- the system ---------------------------------------------------------- */

static const struct figure figures[] = {
	{"2.4", "operations that succeed, 50 % writes, no steering", "threads",
	 0, "success_share", plan_success, NULL, NULL},
	{"2.9", "compare and swap of one word, and what replaces it", "threads",
	 FIGURE_LOG_X, "mops", plan_cas, NULL, NULL},
	{"2.10", "throughput, reads only", "threads", 0, "mops", plan_rate,
	 NULL, NULL},
	{"2.11", "throughput, 5 % writes", "threads", 0, "mops", plan_rate,
	 NULL, NULL},
	{"2.12", "throughput, 50 % writes", "threads", 0, "mops", plan_rate,
	 NULL, NULL},
	{"2.13", "throughput, writes only", "threads", 0, "mops", plan_rate,
	 NULL, NULL},
	{"2.14", "bytes per operation", "% writes", FIGURE_BARS | FIGURE_LOG_Y,
	 "bytes_per_op", plan_cost, NULL, NULL},
	{"2.15", "99th percentile of latencies", "% writes",
	 FIGURE_BARS | FIGURE_LOG_Y, "read_p99_us write_p99_us", plan_cost,
	 NULL, NULL},
	{"2.16", "steering of the keys that are written most, Zipf 1.5",
	 "keys steered", FIGURE_LOG_X, "mops", plan_partial, NULL, NULL},
	{.name = NULL},
};

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct vfig_row, member, name, decimals)
#define PER_OP(name, help) C(work.name, "per_op_" #name, FIGURE_JSON_ONLY),
#define STEER(name) \
	C(steer[VFIG_STEER_##name], "switch_per_op_" #name, FIGURE_JSON_ONLY),
#define TRIPS(kind, k, count, i)                                             \
	C(res.trips[k][i].share, kind "_of_" count "_trips_share",           \
	  FIGURE_JSON_ONLY),                                                 \
		C(res.trips[k][i].p50_us, kind "_of_" count "_trips_p50_us", \
		  FIGURE_JSON_ONLY),                                         \
		C(res.trips[k][i].p99_us, kind "_of_" count "_trips_p99_us", \
		  FIGURE_JSON_ONLY)

#define R(name, decimals) C(res.name, #name, decimals)
#define JSON		  FIGURE_JSON_ONLY

static const struct figure_column columns[] = {
	C(p.series, "series", 0),
	C(steering, "steering", JSON),
	C(cfg.in_device, "in_device", JSON),
	C(cfg.threads, "threads", 0),
	C(cfg.write_percent, "write_percent", 0),
	C(keys, "keys_steered", 0),
	C(theta, "theta", JSON),
	R(mops, 3),
	C(res.success, "success_share", 3),
	C(res.bytes, "bytes_per_op", 0),
	R(read_p50_us, JSON),
	R(read_p99_us, 1),
	R(write_p50_us, JSON),
	R(write_p99_us, 1),
	R(reads, JSON),
	R(writes, JSON),
	R(evictions, JSON),
	R(errors, 0),
	/* Where the tail comes from: operations by their round trips. */
	TRIPS("reads", 0, "1", 0),
	TRIPS("reads", 0, "2", 1),
	TRIPS("reads", 0, "more", 2),
	TRIPS("writes", 1, "1", 0),
	TRIPS("writes", 1, "2", 1),
	TRIPS("writes", 1, "more", 2),
	VLIST_STATS(PER_OP) VFIG_STEER(STEER){.name = NULL},
};

static int point(void *row)
{
	struct vfig_row *x = row;
	double done;
	int err;

	x->cfg.fabric = x->p.fabric;
	err = vfig_run(&x->cfg, &x->res);
	done = x->res.done ? (double)x->res.done : 1;

#define SHARE(name, help) x->work.name = (double)x->res.work.name / done;
	VLIST_STATS(SHARE)
#undef SHARE
	for (unsigned i = 0; i < VFIG_STEER_COUNTS; i++)
		x->steer[i] = (double)x->res.steer[i] / done;
	return err;
}

static const struct vfig_figure_options defaults = {
	.f = {.jobs = 1}, .system = ANY, .writes = ANY, .seed = 1};

static const struct opt options[] = {
	OPT_CHOICE(struct vfig_figure_options, system, "system",
		   VFIG_SYSTEM_LIST, "only points of this one"),
	OPT_U32(struct vfig_figure_options, threads, "threads", "N", 0,
		VFIG_THREADS_MAX, "only points with so many"),
	FIGURE_OPTION_FABRIC,
	OPT_U32(struct vfig_figure_options, writes, "writes", "N", 0, 100,
		"only points with so many percent"),
	OPT_U64(struct vfig_figure_options, seed, "seed", "N", 0, UINT64_MAX,
		"of all chance (default 1)"),
	OPT_END,
};

const struct figure_system switch_figures = {
	.name = "switch",
	.source = "SwordBox, in S. Grant's dissertation, chapter 2",
	.summary = "SwordBox's figures on the costs of hardware (aquifer sim "
		   "nic-model): store, NICs and\nswitch are the shipped code "
		   "(docs/switch-figures.md).",
	.figures = figures,
	.columns = columns,
	.claims = claims,
	.claim_count = ARRAY_LEN(claims),
	.options = options,
	.defaults = &defaults.f,
	.options_bytes = sizeof(defaults),
	.row_bytes = sizeof(struct vfig_row),
	.run = figure_points_run,
	.point = point,
	.result_at = offsetof(struct vfig_row, res),
	.result_bytes =
		sizeof(struct vfig_row) - offsetof(struct vfig_row, res),
};
