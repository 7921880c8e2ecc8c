/* SPDX-License-Identifier: Apache-2.0 */
/* What the PULSE paper states in numbers. Where a gain is published, at least
 * half of it is asked for. */
#include <stdio.h>

#include "wfig_plan.h"

/* Why not, where it is always the same. */
#define SLOW_STEPS "; an instruction is 1.67 ns here, 0.2 there"
#define FEW_SPACES "more than; 7 workspaces of 256 B in 0.2 us are 9 GB/s of 25"
#define LONG_PATH  "bound: eta; a full node, of which every key is compared"
#define SCATTER	   "published: 10 to 30; keys came in random order"

#define LATENCY(app)                                                     \
	{                                                                \
		"apps", "latency, one node: cache over walk", "mean_us", \
			app " cache", 1, app " walk", 1, 9, 4.5, 0, "x", \
			"published: 9 to 34.4"                           \
	}
#define RATE(app)                                                        \
	{                                                                \
		"apps", "throughput, one node: walk over cache", "kops", \
			app " walk", 1, app " cache", 1, 28, 14, 0, "x", \
			"published: 28 to 171"                           \
	}
#define RPC(app, why)                                                    \
	{                                                                \
		"apps", "latency, one node: walk over RPC", "mean_us",   \
			app " walk", 1, app " rpc", 1, 1.4, 0, 1.4, "x", \
			"published: 1 to 1.4" why                        \
	}
#define RPC_RATE(app, why)                                                    \
	{                                                                     \
		"apps", "throughput, four nodes: switch over RPC", "kops",    \
			app " walk, switch", 4, app " rpc", 4, 1.1, 1.05, 0,  \
			"x", "published: 1.1 to 1.36; the way is a model" why \
	}
#define MEMORY(app, why)                                                 \
	{                                                                \
		"apps", "bandwidth of memory, one node", "memory_share", \
			app " walk", 1, NULL, 0, 90, 45, 0, "%", why     \
	}
#define NETWORK(app, why)                                            \
	{                                                            \
		"apps", "of the network, one node", "network_share", \
			app " walk", 1, NULL, 0, 25, 0, 25, "%",     \
			"published: 0.5 to 25" why                   \
	}

const struct figure_claim wfig_claims[] = {
	{"motivation", "time in traversals, all cached", "share", "web cache",
	 100, NULL, 0, 13.6, 0, 0, "%", "the work is set by it"},
	{"motivation", "time in traversals, all cached", "share", "range cache",
	 100, NULL, 0, 63.7, 0, 0, "%", "the work is set by it"},
	{"motivation", "time in traversals, all cached", "share", "tsv cache",
	 100, NULL, 0, 55.8, 0, 0, "%", "the work is set by it"},
	{"motivation", "run time, 6.25 % cached", "mean_us", "web cache", 6.25,
	 "web cache", 100, 0, 2, 0, "x", "published in words: it grows"},
	{"motivation", "run time, 6.25 % cached", "mean_us", "range cache",
	 6.25, "range cache", 100, 0, 2, 0, "x",
	 "published in words: it grows"},
	{"motivation", "run time, 6.25 % cached", "mean_us", "tsv cache", 6.25,
	 "tsv cache", 100, 0, 2, 0, "x", "published in words: it grows"},
	{"crossings", "requests that change node, 1 GB", "crossed",
	 "web requests", 1024, NULL, 0, 0, 0, 0.1, "%", "published: none"},
	{"crossings", "requests that change node, 1 GB", "crossed",
	 "range requests", 1024, NULL, 0, 97, 97, 0, "%", ""},
	{"crossings", "requests that change node, 1 GB", "crossed",
	 "tsv requests", 1024, NULL, 0, 75, 75, 0, "%", ""},
	{"crossings", "pointers that lead to another node, 1 GB", "pointers",
	 "range requests", 1024, NULL, 0, 30, 10, 30, "%", SCATTER},
	{"crossings", "pointers that lead to another node, 1 GB", "pointers",
	 "tsv requests", 1024, NULL, 0, 30, 10, 30, "%",
	 "published: 10 to 30; they came in order of time"},
	LATENCY("web"),
	LATENCY("range"),
	LATENCY("tsv"),
	RATE("web"),
	RATE("range"),
	RATE("tsv"),
	RPC("web", ""),
	RPC("range", ""),
	RPC("tsv", SLOW_STEPS),
	RPC_RATE("range", ""),
	RPC_RATE("tsv", "; 7 workspaces of 147 ns against 16 cores of 80"),
	MEMORY("web", ""),
	MEMORY("range", FEW_SPACES),
	MEMORY("tsv", FEW_SPACES),
	{"apps", "of the network, one node", "network_share", "web cache", 1,
	 NULL, 0, 1, 0, 0, "%", "published: less than; a stronger rival here"},
	NETWORK("web", "; 8 KiB a request are 8 GB/s of 12.5"),
	NETWORK("range", ""),
	NETWORK("tsv", ""),
	{"windows", "latency, 38 nodes", "mean_us", "tsv cache", 38, "tsv walk",
	 38, 9, 4.5, 0, "x", "published: 9 to 34.4"},
	{"windows", "latency, 227 nodes", "mean_us", "tsv cache", 227,
	 "tsv walk", 227, 9, 4.5, 0, "x", "published: 9 to 34.4"},
	{"windows", "latency: 227 over 38 nodes", "mean_us", "tsv walk", 227,
	 "tsv walk", 38, 227.0 / 38, 3, 12, "x", "nodes: 227 / 38"},
	{"ratio", "hash chain, as executed", "ratio", "web walk", 0, NULL, 0,
	 0.06, 0, 0.12, "", ""},
	{"ratio", "B+ tree, as executed", "ratio", "range walk", 1, NULL, 0,
	 0.63, 0, 0.75, "", "bound: eta"},
	{"ratio", "reduce, as executed", "ratio", "tsv walk", 2, NULL, 0, 0.71,
	 0, 0.75, "", "bound: eta"},
	{"ratio", "hash chain, longest path", "ratio_longest", "web walk", 0,
	 NULL, 0, 0.06, 0, 0.75, "", "bound: eta"},
	{"ratio", "B+ tree, longest path", "ratio_longest", "range walk", 1,
	 NULL, 0, 0.63, 0, 0.75, "", LONG_PATH},
	{"ratio", "reduce, longest path", "ratio_longest", "tsv walk", 2, NULL,
	 0, 0.71, 0, 0.75, "", LONG_PATH},
	{"breakdown", "memory pipeline", "memory_ns", "web bounce", 1, NULL, 0,
	 132, 0, 0, "ns", "set, and no wait"},
	{"breakdown", "logic pipeline", "logic_ns", "web bounce", 1, NULL, 0,
	 10, 5, 20, "ns", "instructions of our image"},
	{"breakdown", "latency, two nodes", "mean_us", "range bounce", 2,
	 "range switch", 2, 1.02, 1.01, 0, "x",
	 "published: 1.02 to 1.15; the way is a model"},
	{"breakdown", "latency, two nodes", "mean_us", "tsv bounce", 2,
	 "tsv switch", 2, 1.02, 1.01, 0, "x",
	 "published: 1.02 to 1.15; the way is a model"},
	{"breakdown", "throughput, two nodes", "kops", "range bounce", 2,
	 "range switch", 2, 1, 0.9, 1.1, "x",
	 "the way is a model; 11 changes with a pad of 2 KiB fill the network"},
	{"breakdown", "throughput, two nodes", "kops", "tsv bounce", 2,
	 "tsv switch", 2, 1, 0.9, 1.1, "x", "the way is a model"},
	{"placement", "latency, random over partitioned", "mean_us",
	 "range walk, switch", 2, "range walk, switch", 0, 3.7, 1.85, 0, "x",
	 "published: 3.7 to 10.8"},
	{"placement", "latency, random over partitioned", "mean_us",
	 "tsv walk, switch", 2, "tsv walk, switch", 0, 3.7, 1.85, 0, "x",
	 "published: 3.7 to 10.8"},
	{"insert", "time until it is linked, over looking through",
	 "traverse_us", "web append", 1, "web miss", 0, 1.011, 0, 1.022, "x",
	 "published: less than 1.011"},
	{"insert", "the same, with memory that must be asked for",
	 "traverse_us", "web append, allocate", 2, "web miss", 0, 1.4, 0, 1.4,
	 "x", "published: up to 1.4"},
	{"skew", "latency, uniform over zipfian", "mean_us", "web walk", 0,
	 "web walk", 1, 1.33, 0, 1.33, "x", "published: at most"},
	{"skew", "latency, uniform over zipfian", "mean_us", "range walk", 0,
	 "range walk", 1, 1.33, 0, 1.33, "x", "published: at most"},
	{"cxl", "without walks, four nodes", "cxl_slowdown", "web CXL", 4, NULL,
	 0, 5.5, 2.75, 11, "x", ""},
	{"cxl", "with walks, four nodes", "cxl_walk_slowdown", "web CXL", 4,
	 NULL, 0, 1.18, 0, 1.36, "x", ""},
	{"cxl", "without walks, four nodes", "cxl_slowdown", "range CXL", 4,
	 NULL, 0, 9.3, 4.65, 18.6, "x", ""},
	{"cxl", "with walks, four nodes", "cxl_walk_slowdown", "range CXL", 4,
	 NULL, 0, 3.06, 0, 5.12, "x", ""},
	{"cxl", "without walks, one node", "cxl_slowdown", "range CXL", 1, NULL,
	 0, 5.5, 2.75, 11, "x", ""},
	{"cxl", "with walks, one node", "cxl_walk_slowdown", "range CXL", 1,
	 NULL, 0, 1.31, 0, 1.62, "x", ""},
	{"cxl", "without walks, one node", "cxl_slowdown", "tsv CXL", 1, NULL,
	 0, 5.9, 2.95, 11.8, "x", "published: 5.9 to 6.3"},
	{"cxl", "with walks, one node", "cxl_walk_slowdown", "tsv CXL", 1, NULL,
	 0, 1.16, 0, 1.48, "x", "published: 1.16 to 1.48"},
	{"eta", "memory pipelines in use, 3 of 4", "memory_use", "web serial",
	 0.75, NULL, 0, 100, 90, 0, "%",
	 "the proof: full while t_c <= eta t_d"},
	{"eta", "memory pipelines in use, 3 of 4", "memory_use", "range serial",
	 0.75, NULL, 0, 100, 90, 0, "%",
	 "the proof: full while t_c <= eta t_d"},
	{"pipes", "latency of READs over a walk that the rule refuses",
	 "mean_us", "range reads", 4, "range walk, 4 ns a step", 4, 0, 1, 0,
	 "x", "what the rule costs its request"},
	{"pipes", "rate of a walk that the rule refuses over READs", "kops",
	 "range walk, 4 ns a step", 4, "range reads", 4, 0, 1, 0, "x",
	 "what the rule costs its request"},
	{"pipes", "bandwidth of memory, 4 pipelines", "memory_share",
	 "web walk", 4, NULL, 0, 90, 45, 0, "%", "\"more than\""},
	{"pipes", "bandwidth of memory, 16 pipelines", "memory_share",
	 "web walk", 16, NULL, 0, 90, 45, 0, "%", "\"more than\""},
};

STATIC_ASSERT(ARRAY_LEN(wfig_claims) == WFIG_CLAIMS, "how many claims");

/* What a change of node costs beside RPC: a share less of the time that
 * several nodes add. */
void wfig_judge_overhead(struct figure_run *r)
{
	static const enum wfig_app apps[] = {WFIG_RANGE, WFIG_TSV};

	for (unsigned i = 0; i < ARRAY_LEN(apps); i++) {
		const char *app = wfig_app_name(apps[i]);
		const struct wfig_row *q[4];
		char series[FIGURE_SERIES_MAX], what[64];

		for (unsigned k = 0; k < ARRAY_LEN(q); k++) {
			snprintf(series, sizeof(series), "%s %s", app,
				 k & 1 ? "rpc" : "walk, switch");
			q[k] = figure_find(r, app, series, k < 2 ? 1 : 4);
		}
		if (!q[0] || !q[1] || !q[2] || !q[3])
			continue;
		snprintf(what, sizeof(what),
			 "%s: less overhead than RPC, four nodes", app);
		figure_claim_add(
			r,
			&(struct figure_claim){
				.what = what,
				.published = 33,
				.least = 16.5,
				.unit = "%",
				.note = "published: 33 to 98; the way is a "
					"model"},
			100 * (1 - (q[2]->res.mean_us - q[0]->res.mean_us) /
					   (q[3]->res.mean_us -
					    q[1]->res.mean_us)));
	}
}
