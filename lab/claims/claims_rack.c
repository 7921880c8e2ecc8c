/* SPDX-License-Identifier: Apache-2.0 */
/* What the paper on Jiffy claims (EuroSys 2022), and the dissertation that has
 * a chapter on it. */
#include "claims_docs.h"

#define SIM(where_, text_, figure_, what_)              \
	CLAIM_OF_FIGURE(CLAIM_SIMULATED, where_, text_, \
			"elastic --figure " figure_, what_, NULL)
#define MODEL(where_, text_, figure_, what_)        \
	CLAIM_OF_FIGURE(CLAIM_MODEL, where_, text_, \
			"elastic --figure " figure_, what_, NULL)

static const struct claim jiffy[] = {
	SIM("figure 9", "Jobs take 2.53 times as long on 20 % of the peak",
	    "slowdown", "ours: ours, 20 %"),
	MODEL("figure 9", "Pocket's take 1.9 times as long as these on 80 %",
	      "slowdown",
	      "Pocket-like / ours: Pocket-like slower than ours, 80 %"),
	MODEL("figure 9", "1.6 times on 20 %", "slowdown",
	      "Pocket-like / ours: Pocket-like slower than ours, 20 %"),
	SIM("figure 9", "99.5 % of the memory is used, of 20 %", "slowdown",
	    "ours: ours uses, 20 %"),
	MODEL("figure 9", "2.9 times as much as with ElastiCache", "slowdown",
	      "ours / ElastiCache-like: ours uses more than "
	      "ElastiCache-like, 20 %"),
	MODEL("figure 9", "4.2 times as much as with Pocket", "slowdown",
	      "ours / Pocket-like: ours uses more than Pocket-like, 20 %"),
	SIM("figure 11", "A file has little that it does not use", "life",
	    "file: surplus"),
	SIM("figure 11", "So has a queue", "life", "queue: surplus"),
	SIM("figure 11", "A store with Zipf keys has most", "life",
	    "store / file: a store's surplus is the largest"),
	SIM("figure 12", "Another block of a file or queue: 1.85 to 2.3 ms",
	    "repartition", "file, queue, 10 Gb/s: a block more"),
	SIM("figure 12", "Half of a store's block: 134 to 500 ms",
	    "repartition", "store, 10 Gb/s: a split"),
	SIM("figure 12", "Gets meanwhile are as before", "repartition",
	    "p99 of gets during it"),
	SIM("figure 14", "Longer leases leave more unused", "sweep",
	    "more with longer leases"),
	SIM("figure 14", "So do larger blocks", "sweep",
	    "more with larger blocks"),
	SIM("figure 14", "The high mark hardly matters", "sweep",
	    "changes with the high mark by"),
	SIM("chains", "A change with two copies: 238 us", "chain",
	    "ours: a change, 2 copies"),
	SIM("chains", "With five: 741 us", "chain", "ours: a change, 5 copies"),
	SIM("notifications", "512 subscribers: 4.8 ms", "subscribers",
	    "ours: 512 subscribers"),
	CLAIM_UNTRIED("6.4", "TPC-DS on HDFS over Jiffy",
		      "needs Hive and its data"),
	CLAIM_UNTRIED("6.4", "ExCamera waits 10 to 20 % less",
		      "needs its video codec as functions"),
	CLAIM_UNTRIED("6.2", "The controller scales over 64 cores",
		      "ours is one thread by decision"),
};

const struct claim_doc claim_doc_jiffy = {
	"jiffy", "Jiffy (EuroSys 2022; Y. Tang's dissertation, 2)", jiffy,
	ARRAY_LEN(jiffy)};
