/* SPDX-License-Identifier: Apache-2.0 */
/* What PULSE claims: the dissertation has its motivation, the paper the
 * numbers of its evaluation. */
#include "claims_docs.h"

#define BENCH(text, group, ratio, least, most) \
	CLAIM_OF_BENCH("3.3", text, "walk --only " group, ratio, least, most)
#define SIM(where, text, figure, what)                                         \
	CLAIM_OF_FIGURE(CLAIM_SIMULATED, where, text, "walk --figure " figure, \
			what, NULL)
#define MODEL(where, text, figure, what)                                   \
	CLAIM_OF_FIGURE(CLAIM_MODEL, where, text, "walk --figure " figure, \
			what, NULL)
#define SET(text, what)                             \
	CLAIM_OF_FIGURE(CLAIM_INPUT, "3.3.2", text, \
			"walk --figure motivation", what, NULL)

#define CACHED	 ": time in traversals, all cached"
#define UNCACHED ": run time, 6.25 % cached"
#define CHANGES	 ": requests that change node, 1 GB"

static const struct claim claims[] = {
	CLAIM_UNTRIED("3.3.2",
		      "Applications spend 21 to 97 % of their time in "
		      "traversals (others' studies)",
		      "none of these applications is here"),
	SET("A web service spends 13.6 % in traversals where all is cached",
	    "web cache" CACHED),
	SET("An index of ranges spends 63.7 %", "range cache" CACHED),
	SET("Time series spend 55.8 %", "tsv cache" CACHED),
	SIM("3.3.2", "The web service takes longer with a small cache",
	    "motivation", "web cache / web cache" UNCACHED),
	SIM("3.3.2", "So does the index", "motivation",
	    "range cache / range cache" UNCACHED),
	SIM("3.3.2", "So do time series", "motivation",
	    "tsv cache / tsv cache" UNCACHED),
	SIM("3.3.2; the paper",
	    "97 % of the index's requests change their memory node",
	    "crossings", "range requests" CHANGES),
	SIM("3.3.2; the paper", "75 % of time series' requests do", "crossings",
	    "tsv requests" CHANGES),
	SIM("the paper", "Web: latency 9 to 34.4 times below a cache", "apps",
	    "web cache / web walk: latency, one node: cache over walk"),
	SIM("the paper", "The same, index", "apps",
	    "range cache / range walk: latency, one node: cache over walk"),
	SIM("the paper", "The same, time series", "apps",
	    "tsv cache / tsv walk: latency, one node: cache over walk"),
	SIM("the paper", "Web: 28 to 171 times the rate of a cache", "apps",
	    "web walk / web cache: throughput, one node: walk over cache"),
	SIM("the paper", "The same, index", "apps",
	    "range walk / range cache: throughput, one node: walk over cache"),
	SIM("the paper", "The same, time series", "apps",
	    "tsv walk / tsv cache: throughput, one node: walk over cache"),
	SIM("the paper", "Web: 1 to 1.4 times the latency of a server", "apps",
	    "web walk / web rpc: latency, one node: walk over RPC"),
	SIM("the paper", "The same, index", "apps",
	    "range walk / range rpc: latency, one node: walk over RPC"),
	SIM("the paper", "The same, time series", "apps",
	    "tsv walk / tsv rpc: latency, one node: walk over RPC"),
	MODEL("3.3.6; the paper",
	      "Four nodes, index: 1.1 to 1.36 times the rate of servers",
	      "apps",
	      "range walk, switch / range rpc: throughput, four nodes: switch "
	      "over RPC"),
	MODEL("3.3.6; the paper", "The same, time series", "apps",
	      "tsv walk, switch / tsv rpc: throughput, four nodes: switch over "
	      "RPC"),
	BENCH("Traversals at the memory node take less time than fetching node "
	      "by node (no number)",
	      "single", "walk48_lat_vs_reads", 0, 1),
	BENCH("The same, many under way: a higher rate", "many",
	      "walk48_rate_vs_reads", 1, 0),
	BENCH("As fast as a server with a whole processor", "single",
	      "walk48_lat_vs_rpc", 0, 1),
	BENCH("The same, many under way", "many", "walk48_rate_vs_rpc", 1, 0),
	CLAIM_UNTRIED("3.3.7", "Less energy than processors for the same rate",
		      "nothing here measures energy"),
};

const struct claim_doc claim_doc_pulse = {
	"pulse", "PULSE (Y. Tang's dissertation, 3.3; ASPLOS 2025)", claims,
	ARRAY_LEN(claims)};
