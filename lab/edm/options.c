/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `aquifer sim edm`: of figures, and of every run. */
#include <errno.h>

#include "edm_constants.h"
#include "edm_figure.h"
#include "sim/model_constants.h"

#define COUNT_MAX 9000000000000000

/* Rows of a run, which are about the base of all runs. */
#define ARGS			 struct edm_figure_options
#define FLAG(member, name, help) OPT_FLAG(ARGS, base.member, name, help)
#define TEXT(member, name, help) OPT_TEXT(ARGS, base.member, name, "FILE", help)
#define CHOICE(member, name, words, help) \
	OPT_CHOICE(ARGS, base.member, name, words, help)
#define U32(member, name, help) \
	OPT_U32(ARGS, base.member, name, "N", 0, UINT32_MAX, help)
#define U64(member, name, help) \
	OPT_U64(ARGS, base.member, name, "N", 0, COUNT_MAX, help)
#define REAL(member, name, help) \
	OPT_REAL(ARGS, base.member, name, "X", 1000000, help)
#define SHARE(member, name, help) \
	OPT_SCALED32(ARGS, base.member, name, "SHARE", 1, 1000000, help)
#define NS32(member, name, help) \
	OPT_SCALED32(ARGS, base.member, name, "NS", 4000000, 1000, help)
#define NS64(member, name, help) \
	OPT_SCALED64(ARGS, base.member, name, "NS", 1000000000000, 1000, help)

static void constants_print(void)
{
	static const struct model_constant rows[] = {
		EDM_CONSTANTS(MODEL_CONSTANT)};
	static const struct figure_column columns[] = {
#define COLUMN(member) FIGURE_COLUMN(struct model_constant, member, #member, 0)
		COLUMN(name), COLUMN(value),  COLUMN(unit),
		COLUMN(kind), COLUMN(source), {.name = NULL}};
#undef COLUMN

	figure_table(stdout, columns, rows, sizeof(*rows), ARRAY_LEN(rows));
}

static int take_constants(void *args, const char *word)
{
	((struct figure_options *)args)->print = constants_print;
	return 0;
}

const struct opt edm_options[] = {
	OPT_FLAG(ARGS, full, "full", "figures at full length (minutes)"),
	OPT_U64(ARGS, long_messages, "long-messages", "N", 0, UINT32_MAX,
		"messages of application runs in figures"),
	OPT_U32(ARGS, seeds, "seeds", "N", 1, EDM_SEEDS_MAX,
		"runs of every point, with 95 % interval (1)"),
	OPT_FLAG(ARGS, quiet, "quiet", "no progress on stderr"),
	OPT_CALL(take_constants, "constants", NULL,
		 "print what the model takes for granted, with sources"),
	OPT_TEXT(ARGS, pcap, "pcap", "FILE",
		 "frames for the figure of that name"),
	/* Of every run, and of the one that is made without --figure. */
	CHOICE(proto, "fabric", "edm|ird|pfabric|pfc|dctcp|cxl|fastpass",
	       "which fabric"),
	U32(nodes, "nodes", "2..1024 (144)"),
	U32(gbps, "gbps", "10..800 (100)"),
	REAL(load, "load", "of the busiest port (0.8)"),
	FLAG(load_is_payload, "payload-load",
	     "--load counts payload bytes only"),
	OPT_U64(ARGS, messages, "messages", "N", 1, COUNT_MAX,
		"warm-up included (100000)"),
	SHARE(warmup_ppm, "warmup", "not counted (0.2)"),
	U64(seed, "seed", "of all chance (1)"),
	CHOICE(sizes, "sizes",
	       "fixed|hadoop|spark|sparksql|graphlab|memcached|ycsb",
	       "distribution (fixed)"),
	U32(fixed_bytes, "size", "bytes of fixed messages (64)"),
	CHOICE(pattern, "pattern", "uniform|incast|skew|split",
	       "who with whom (uniform)"),
	SHARE(write_ppm, "writes", "the rest are reads (1)"),
	SHARE(rmw_ppm, "rmw", "compare-and-swaps (0)"),
	TEXT(trace, "trace", "file: id,src,dst,bytes,start_s[,R|W]"),
	CHOICE(latency, "latency", "full|sched|hops",
	       "full, sched or hops (full)"),
	CHOICE(framing, "framing", "payload|wire", "of rivals (payload)"),
	FLAG(asic, "asic", "switch at 3 GHz"),
	NS32(mem_ps, "memory-ns", "memory access of a read (0)"),
	CHOICE(discipline, "discipline", "async|slot|reserve|pim",
	       "of EDM's matching (async)"),
	CHOICE(policy, "policy", "fcfs|srpt|pair", "fcfs, srpt or pair (fcfs)"),
	CHOICE(md, "md", "data|control|bare", "memory data blocks (data)"),
	U32(chunk_bytes, "chunk", "bytes of a grant (256)"),
	U32(active_max, "active", "X, notifications a pair (3)"),
	U32(channels, "channels", "ordered channels a pair (1)"),
	U32(batch_bytes, "batch", "bytes under one notification (0)"),
	FLAG(nest, "nest", "requests may stand inside other messages"),
	FLAG(timed, "timed",
	     "a matching takes 3 log2(nodes) cycles of 3 GHz, whatever the "
	     "discipline"),
	U32(pim_iterations, "pim-iterations", "of a round (8)"),
	NS32(pim_iteration_ps, "pim-ns", "of one iteration (1)"),
	NS64(age_cap_ps, "age-cap-ns", "SRPT: then oldest first"),
	SHARE(ip_load_ppm, "ip-load",
	      "frames on every link, which take its bandwidth (0)"),
	CHOICE(ip_policy, "ip-policy", "fair|memory",
	       "frames and memory in turns, or memory first (fair)"),
	SHARE(loss_ppm, "loss", "of control blocks (0)"),
	NS64(timer_ps, "timer-ns", "then ask again (never)"),
	U32(read_retries, "retries", "of a read, then NULL (3)"),
	FLAG(mirror, "mirror", "second switch"),
	NS32(mirror_skew_ps, "mirror-skew-ns",
	     "cables of the second switch differ up to (0)"),
	NS64(fail_switch_ps, "fail-switch-ns", "the first switch dies then"),
	NS64(fail_link_ps, "fail-link-ns",
	     "link of --fail-port is disabled then"),
	NS64(fail_node_ps, "fail-node-ns", "node --fail-port dies then"),
	U32(fail_port, "fail-port", "(0)"),
	FLAG(published, "published",
	     "rivals' thresholds as published, not scaled to this network"),
	U32(cxl_credits, "cxl-credits", "flits of a buffer (128)"),
	FLAG(cxl_voq, "cxl-voq", "no head-of-line blocking"),
	FLAG(cxl_fifo, "cxl-fifo",
	     "hosts send message after message, not in turns"),
	FLAG(fastpass_free, "fastpass-free", "arbiter with an unlimited link"),
	OPT_END,
};

int edm_option_set(struct edm_config *c, const char *name, const char *value)
{
	struct edm_figure_options o = {.base = *c};
	int rc = opt_set(edm_options, &o, name, value);

	*c = o.base;
	return rc;
}
