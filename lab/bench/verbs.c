/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench verbs`: READs on the soft NIC, beside a raw ring, UCX and
 * memcpy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "machine.h"
#include "peers.h"
#include "programs.h"
#include "stats.h"

#define CABLE	    .udp = false
#define UDP	    .udp = true
#define LOSSY(ppm_) .udp = true, .loss_ppm = (ppm_)
#define OURS(name_, what_, way_, ...)                                         \
	&(const struct subject_desc)                                          \
	{                                                                     \
		.name = name_, .what = "READ " what_, .ops = &ours_ops, way_, \
		.param = &(const struct ours_param)                           \
		{                                                             \
			__VA_ARGS__                                           \
		}                                                             \
	}
#define UCX(name_, what_, mode_, tls_)                                      \
	&(const struct subject_desc)                                        \
	{                                                                   \
		.name = name_, .what = "UCX get " what_, .ucx_mode = mode_, \
		.ucx_tls = tls_                                             \
	}
#define COPY(name_, what_, block_)                                \
	&(const struct subject_desc)                              \
	{                                                         \
		.name = name_, .what = "memcpy of " what_,        \
		.ops = &copy_peer_ops, .param = &(const uint32_t) \
		{                                                 \
			block_                                    \
		}                                                 \
	}
#define LAT_64	.block = 64, .depth = 1, .qp_count = 1
#define RATE_64 .block = 64, .depth = 64, .qp_count = 1
#define RATE_4K .block = 4096, .depth = 32, .qp_count = 1

static struct conduct_group groups[] = {
	{"shm_read64_lat_vs_ring",
	 METRIC_P50,
	 {OURS("shm_read64_lat", "64 B, one outstanding, shm cable", CABLE,
	       LAT_64),
	  &(const struct subject_desc){
		  .name = "ring_rtt64",
		  .what = "raw ring, 64 B slots, round trip",
		  .ops = &ring_peer_ops}},
	 2,
	 NULL},
	{"shm_read64_rate_vs_ucx_shm",
	 METRIC_RATE,
	 {OURS("shm_read64_rate", "64 B, 64 outstanding, shm cable", CABLE,
	       RATE_64),
	  UCX("ucx_shm_get64_rate", "64 B, 64 outstanding, ordinary memory",
	      "get64", "posix,cma")},
	 2,
	 NULL},
	{"shm_read4k_rate_vs_ucx_shm",
	 METRIC_RATE,
	 {OURS("shm_read4k_rate", "4 KiB, 32 outstanding, shm cable", CABLE,
	       RATE_4K),
	  UCX("ucx_shm_get4k_rate", "4 KiB, 32 outstanding, ordinary memory",
	      "get4k", "posix,cma")},
	 2,
	 NULL},
	{"direct_read64_lat_vs_ucx_mapped",
	 METRIC_P50,
	 {OURS("direct_read64_lat", "64 B, one outstanding, direct", CABLE,
	       LAT_64, .direct = true),
	  UCX("ucx_mapped_get64_lat",
	      "64 B, one outstanding, memory allocated by UCX", "mapped64",
	      "posix")},
	 2,
	 NULL},
	{"qp1000_rate_vs_qp1",
	 METRIC_RATE,
	 {OURS("qp1000_read64_rate",
	       "64 B, 64 outstanding over 1,000 queue pairs", CABLE,
	       .block = 64, .depth = 64, .qp_count = 1000),
	  OURS("qp1_read64_rate", "64 B, 64 outstanding on 1 queue pair", CABLE,
	       RATE_64)},
	 2,
	 NULL},
	{"udp_read64_lat_vs_ucx_tcp",
	 METRIC_P50,
	 {OURS("udp_read64_lat", "64 B, one outstanding, UDP on loopback", UDP,
	       LAT_64),
	  UCX("ucx_tcp_get64_lat", "64 B, one outstanding, tcp on loopback",
	      "lat64", "tcp")},
	 2,
	 NULL},
	{"udp_read64_rate_vs_ucx_tcp",
	 METRIC_RATE,
	 {OURS("udp_read64_rate", "64 B, 64 outstanding, UDP on loopback", UDP,
	       RATE_64),
	  UCX("ucx_tcp_get64_rate", "64 B, 64 outstanding, tcp on loopback",
	      "get64", "tcp")},
	 2,
	 NULL},
	{"udp_read4k_rate_vs_ucx_tcp",
	 METRIC_RATE,
	 {OURS("udp_read4k_rate", "4 KiB, 32 outstanding, UDP on loopback", UDP,
	       RATE_4K),
	  UCX("ucx_tcp_get4k_rate", "4 KiB, 32 outstanding, tcp on loopback",
	      "get4k", "tcp")},
	 2,
	 NULL},
	{"udp_loss1_rate_vs_loss0",
	 METRIC_RATE,
	 {OURS("udp_loss1_rate",
	       "64 B, 64 outstanding, UDP, 1 % of packets lost", LOSSY(10000),
	       RATE_64),
	  OURS("udp_loss0_rate", "64 B, 64 outstanding, UDP on loopback", UDP,
	       RATE_64),
	  OURS("udp_loss01_rate",
	       "64 B, 64 outstanding, UDP, 0.1 % of packets lost", LOSSY(1000),
	       RATE_64),
	  OURS("udp_loss5_rate",
	       "64 B, 64 outstanding, UDP, 5 % of packets lost", LOSSY(50000),
	       RATE_64)},
	 4,
	 NULL},
	{"udp_qp1000",
	 METRIC_RATE,
	 {OURS("udp_qp1000_rate",
	       "64 B, 64 outstanding over 1,000 queue pairs, UDP", UDP,
	       .block = 64, .depth = 64, .qp_count = 1000),
	  OURS("udp_qp1_rate", "64 B, 64 outstanding on 1 queue pair, UDP", UDP,
	       RATE_64)},
	 2,
	 NULL},
	{"auth_lat",
	 METRIC_P50,
	 {OURS("auth_read64_lat",
	       "64 B, one outstanding, UDP, packets with a MAC", UDP, LAT_64,
	       .auth = true),
	  OURS("plain_read64_lat",
	       "64 B, one outstanding, UDP, packets without", UDP, LAT_64)},
	 2,
	 NULL},
	{"auth_rate",
	 METRIC_RATE,
	 {OURS("auth_read64_rate",
	       "64 B, 64 outstanding, UDP, packets with a MAC", UDP, RATE_64,
	       .auth = true),
	  OURS("plain_read64_rate",
	       "64 B, 64 outstanding, UDP, packets without", UDP, RATE_64),
	  OURS("auth_read4k_rate",
	       "4 KiB, 32 outstanding, UDP, packets with a MAC", UDP, RATE_4K,
	       .auth = true),
	  OURS("plain_read4k_rate",
	       "4 KiB, 32 outstanding, UDP, packets without", UDP, RATE_4K)},
	 4,
	 NULL},
	{"caller_time",
	 METRIC_CALLER,
	 {OURS("caller_shm", "64 B, post and poll, shm cable", CABLE, LAT_64,
	       .caller_time = true),
	  OURS("caller_direct", "64 B, post and poll, direct", CABLE, LAT_64,
	       .caller_time = true, .direct = true),
	  COPY("memcpy64", "64 B, near memory", 64),
	  COPY("memcpy4k", "4 KiB, near memory", 4096)},
	 4,
	 NULL},
};

#define RATIO(name_, meaning_, must_, bound_, ours_, peer_, metric_)     \
	BENCH_RATIO(name_, meaning_, name_, must_, bound_, ours_, peer_, \
		    metric_, NULL)

/* Without a bound. */
#define RATIO_OF(name_, meaning_, group_, ours_, peer_)             \
	BENCH_RATIO(name_, meaning_, group_, NULL, 0, ours_, peer_, \
		    METRIC_RATE, NULL)

static const struct bench_ratio ratios[] = {
	RATIO("shm_read64_lat_vs_ring",
	      "64 B READ latency over a shm cable / round trip of a raw ring",
	      "<=", 4, "shm_read64_lat", "ring_rtt64", METRIC_P50),
	RATIO("shm_read64_rate_vs_ucx_shm",
	      "64 B READs per second over a shm cable / UCX shm get", ">=", 1.2,
	      "shm_read64_rate", "ucx_shm_get64_rate", METRIC_RATE),
	RATIO("shm_read4k_rate_vs_ucx_shm",
	      "4 KiB READs per second over a shm cable / UCX shm get",
	      ">=", 0.9, "shm_read4k_rate", "ucx_shm_get4k_rate", METRIC_RATE),
	RATIO("direct_read64_lat_vs_ucx_mapped",
	      "64 B READ latency, direct / UCX get on memory it mapped", "<=",
	      2.5, "direct_read64_lat", "ucx_mapped_get64_lat", METRIC_P50),
	RATIO("qp1000_rate_vs_qp1",
	      "READ rate over 1,000 queue pairs / over one", ">=", 0.8,
	      "qp1000_read64_rate", "qp1_read64_rate", METRIC_RATE),
	RATIO("udp_read64_lat_vs_ucx_tcp",
	      "64 B READ latency over UDP / UCX tcp get, both on loopback",
	      "<=", 0.6, "udp_read64_lat", "ucx_tcp_get64_lat", METRIC_P50),
	RATIO("udp_read64_rate_vs_ucx_tcp",
	      "64 B READs per second over UDP / UCX tcp get", ">=", 12,
	      "udp_read64_rate", "ucx_tcp_get64_rate", METRIC_RATE),
	RATIO("udp_read4k_rate_vs_ucx_tcp",
	      "4 KiB READs per second over UDP / UCX tcp get", ">=", 1.5,
	      "udp_read4k_rate", "ucx_tcp_get4k_rate", METRIC_RATE),
	RATIO("udp_loss1_rate_vs_loss0",
	      "READ rate over UDP at 1 % loss / without loss", ">=", 0.8,
	      "udp_loss1_rate", "udp_loss0_rate", METRIC_RATE),
	RATIO_OF("udp_loss01_rate_vs_loss0", "the same at 0.1 %",
		 "udp_loss1_rate_vs_loss0", "udp_loss01_rate",
		 "udp_loss0_rate"),
	RATIO_OF("udp_loss5_rate_vs_loss0", "the same at 5 %",
		 "udp_loss1_rate_vs_loss0", "udp_loss5_rate", "udp_loss0_rate"),
	RATIO_OF("udp_qp1000_rate_vs_qp1",
		 "READ rate over UDP over 1,000 queue pairs / over one",
		 "udp_qp1000", "udp_qp1000_rate", "udp_qp1_rate"),
	BENCH_NUMBER("write_lat_vs_read_lat",
		     "ib_write_lat / ib_read_lat, 64 B, two cores", "programs",
		     "<=", 2),
	BENCH_NUMBER("write64_lat_vs_ucx_shm",
		     "ib_write_lat / ucp_put_lat over shared memory, 64 B",
		     "programs", "<=", 2.5),
	BENCH_NUMBER("write64_lat_vs_ucx_cma",
		     "the same, but UCX's memory is ordinary, as perftest's",
		     "programs", NULL, 0),
	BENCH_NUMBER("bw64k_vs_ucx_shm",
		     "ib_write_bw and ib_read_bw of 64 KiB, the worse / UCX",
		     "programs", ">=", 0.9),
	BENCH_NUMBER("bw64k_vs_ucx_cma",
		     "the same, but UCX's memory is ordinary, as perftest's",
		     "programs", NULL, 0),
	BENCH_NUMBER("busy_lat_growth",
		     "ib_read_lat beside two busy loops / alone", "programs",
		     "<=", 10),
	{.name = NULL},
};

/*
 * The two parts of the caller's time. The breakdown that Cowbird's figure 2
 * gives for a real RNIC is a picture without numbers; what its text says of it
 * is that a post and a poll together cost an order of magnitude more than the
 * local memory writes that Cowbird needs (locks, atomics and fences around
 * queue and doorbell).
 */
static void add_parts(struct bench *b, const struct conduct_group *g,
		      const struct conduct_track *t, json_t *row)
{
	static const char *const part[] = {"post", "poll"};
	double v[2][CONDUCT_ROUNDS_MAX];
	unsigned n = 0;
	char name[64];

	for (unsigned i = 0; i < CONDUCT_ROUNDS_MAX; i++)
		if (t->is_clean[i] && t->round[i].series[1].count) {
			v[0][n] = t->round[i].series[0].p50_ns;
			v[1][n++] = t->round[i].series[1].p50_ns;
		}
	for (unsigned i = 0; n && i < 2; i++) {
		snprintf(name, sizeof(name), "%s_%s", t->desc->name, part[i]);
		(void)bench_row(b, g->name, name, stats_median(v[i], n), "ns",
				"a part of this; Cowbird, fig. 2, on an RNIC: "
				"both are about 10 times local memory writes");
	}
}

static int run(struct bench *b)
{
	char *helper = machine_find_helper("aquifer-bench-ucx");
	struct conduct_options opt = {.rounds = b->rounds,
				      .window_ns = b->window_ms * 1000000ull,
				      .helper = helper,
				      .keep_all = b->busy};
	int rc =
		bench_run_groups(b, groups, ARRAY_LEN(groups), &opt, add_parts);

	free(helper);
	if (rc == 0 && bench_wants(b, "programs"))
		rc = programs_run(b);
	return rc;
}

static const char *const more_groups[] = {"auth_lat", "auth_rate",
					  "caller_time", NULL};
static const char *const columns[] = {"n",	   "p99",   "p99.9", "rounds",
				      "discarded", "guard", NULL};

const struct bench_def bench_verbs = {
	.name = "verbs",
	.summary = "the NIC beside a raw ring, UCX and memcpy",
	.about = "Measures READs on the soft NIC and its peers (a raw ring, "
		 "UCX, memcpy), in turns,\none process per core.\n",
	.rounds = 9,
	.rounds_quick = 3,
	.window_ms = 100,
	.window_ms_quick = 20,
	.more_groups = more_groups,
	.ratios = ratios,
	.columns = columns,
	.run = run,
};
