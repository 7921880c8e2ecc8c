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
	SIM("capacity", "Jobs take 2.53 times as long on 20 % of the peak",
	    "slowdown", "ours: ours, 20 %"),
	MODEL("capacity", "Pocket's take 1.9 times as long as these on 80 %",
	      "slowdown",
	      "Pocket-like / ours: Pocket-like slower than ours, 80 %"),
	MODEL("capacity", "1.6 times on 20 %", "slowdown",
	      "Pocket-like / ours: Pocket-like slower than ours, 20 %"),
	SIM("capacity", "99.5 % of the memory is used, of 20 %", "slowdown",
	    "ours: ours uses, 20 %"),
	MODEL("capacity", "2.9 times as much as with ElastiCache", "slowdown",
	      "ours / ElastiCache-like: ours uses more than "
	      "ElastiCache-like, 20 %"),
	MODEL("capacity", "4.2 times as much as with Pocket", "slowdown",
	      "ours / Pocket-like: ours uses more than Pocket-like, 20 %"),
	SIM("use over time", "A file has little that it does not use", "life",
	    "file: surplus"),
	SIM("use over time", "So has a queue", "life", "queue: surplus"),
	SIM("use over time", "A store with Zipf keys has most", "life",
	    "store / file: a store's surplus is the largest"),
	MODEL("repartition", "Another block of a file or queue: 1.85 to 2.3 ms",
	      "repartition", "file, queue, 10 Gb/s: a block more"),
	SIM("repartition", "Half of a store's block: 134 to 500 ms",
	    "repartition", "store, 10 Gb/s: a split"),
	SIM("repartition", "Gets meanwhile are as before", "repartition",
	    "p99 of gets during it"),
	SIM("sensitivity", "Longer leases leave more unused", "sweep",
	    "more with longer leases"),
	SIM("sensitivity", "So do larger blocks", "sweep",
	    "more with larger blocks"),
	SIM("sensitivity", "The high mark hardly matters", "sweep",
	    "changes with the high mark by"),
	SIM("chains", "A change with two copies: 238 us", "chain",
	    "ours: a change, 2 copies"),
	SIM("chains", "With five: 741 us", "chain", "ours: a change, 5 copies"),
	MODEL("notifications", "512 subscribers: 4.8 ms", "subscribers",
	      "ours: 512 subscribers"),
	CLAIM_UNTRIED("applications", "TPC-DS on HDFS over Jiffy",
		      "needs Hive and its data"),
	CLAIM_UNTRIED("applications", "ExCamera waits 10 to 20 % less",
		      "needs its video codec as functions"),
	CLAIM_UNTRIED("controller", "The controller scales over 64 cores",
		      "ours is one thread by decision"),
};

const struct claim_doc claim_doc_jiffy = {
	"jiffy", "Jiffy (EuroSys 2022; Y. Tang's dissertation, 2)", jiffy,
	ARRAY_LEN(jiffy)};
