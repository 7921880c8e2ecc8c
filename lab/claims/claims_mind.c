/* SPDX-License-Identifier: Apache-2.0 */
/* What MIND claims: the dissertation has its design, the paper the numbers of
 * its evaluation. */
#include "claims_docs.h"

#define FIGURE(kind, where, text, figure, what) \
	CLAIM_OF_FIGURE(kind, where, text, "mind --figure " figure, what, NULL)
#define SIM(where, text, figure, what) \
	FIGURE(CLAIM_SIMULATED, where, text, figure, what)
#define MODEL(where, text, figure, what) \
	FIGURE(CLAIM_MODEL, where, text, figure, what)
#define SET(where, text, figure, what) \
	FIGURE(CLAIM_INPUT, where, text, figure, what)

#define TEN(app, system) \
	app " " system " / " app " " system ": ten threads over one"
#define OVER(app, to, from) \
	app " MIND / " app " MIND: " to " machines over " from
#define FALSE_OVER(app, from, over)                                      \
	app " dynamic / " app " static: false invalidations, from " from \
	    " over " over

static const struct claim claims[] = {
	SET("SOSP 2021, figure 7 left",
	    "A page that nobody has, or others have read: 9 us", "transitions",
	    "MIND: I to S"),
	SIM("figure 7 left", "The same, to read what others read",
	    "transitions", "MIND: S to S"),
	SIM("figure 7 left", "The same, to write", "transitions",
	    "MIND: I to M"),
	SIM("figure 7 left", "The same, to write what another one read",
	    "transitions", "MIND: S to M"),
	SIM("figure 7 left", "The same, what seven read", "transitions",
	    "MIND: S of seven to M"),
	SIM("figure 7 left", "To read what another one wrote: 18 us",
	    "transitions", "MIND: M to S"),
	SIM("figure 7 left", "To write it: 18 us", "transitions",
	    "MIND: M to M"),
	SIM("figure 7 right", "1 to 2 million pages a second, only read",
	    "sharing", "100 % reads: only read, shared"),
	SIM("figure 7 right", "The same, private", "sharing",
	    "100 % reads: only read, private"),
	SIM("figure 7 right", "Ten times fewer, shared and written", "sharing",
	    "100 % reads / 0 % reads: only read over only written, shared"),
	SIM("figure 6 left", "Training is nearly linear to ten threads",
	    "threads", TEN("TF", "MIND")),
	SIM("figure 6 left", "So is PageRank", "threads", TEN("GC", "MIND")),
	SIM("figure 6 left", "So is Memcached, YCSB A", "threads",
	    TEN("M_A", "MIND")),
	SIM("figure 6 left", "So is Memcached, YCSB C", "threads",
	    TEN("M_C", "MIND")),
	MODEL("figure 6 left", "So is FastSwap (training)", "threads",
	      TEN("TF", "swap")),
	SET("figure 6 left", "GAM scales to four (training)", "threads",
	    TEN("TF", "GAM-like")),
	SIM("figure 6 centre", "Training: 1.67 for each doubling of machines",
	    "machines", OVER("TF", "8", "1")),
	MODEL("figure 6 centre", "Training: 59 times GAM, eight machines",
	      "machines",
	      "TF MIND / TF GAM-like: eight machines, MIND over GAM-like"),
	SIM("figure 6 centre", "PageRank gains from two machines", "machines",
	    OVER("GC", "2", "1")),
	SIM("figure 6 centre", "And loses from more", "machines",
	    OVER("GC", "8", "2")),
	SIM("figure 6 centre", "Memcached, YCSB A, gains nothing beyond one",
	    "machines", OVER("M_A", "8", "1")),
	SIM("figure 6 centre", "Nor does YCSB C", "machines",
	    OVER("M_C", "8", "1")),
	MODEL("figure 6 centre",
	      "With PSO and an unbounded directory about as GAM (PageRank)",
	      "machines",
	      "GC PSO+ / GC GAM-like: eight machines, PSO+ over GAM-like"),
	MODEL("figure 6 centre", "The same, Memcached, YCSB A", "machines",
	      "M_A PSO+ / M_A GAM-like: eight machines, PSO+ over GAM-like"),
	SIM("figure 6 right", "A store that is only read: linear to 80 threads",
	    "kvs", "KVS C MIND / KVS C MIND: 80 threads over 10"),
	SIM("figure 6 right", "Half of it updates: flat", "kvs",
	    "KVS A MIND / KVS A MIND: 80 threads over 10"),
	SIM("figure 8 left", "Training needs well below 30 thousand entries",
	    "directory", "TF MIND: entries of the directory"),
	SIM("figure 8 left", "So does PageRank", "directory",
	    "GC MIND: entries of the directory"),
	SIM("figure 8 left", "Memcached needs all of them", "directory",
	    "M_A MIND: entries of the directory"),
	MODEL("figure 8 centre", "Rules do not grow with threads (training)",
	      "rules", "TF MIND / TF MIND: rules, 80 threads over 10"),
	MODEL("figure 8 centre", "They stay below 2 thousand", "rules",
	      "TF MIND: rules, 80 threads"),
	MODEL("figure 8 right", "Memory lies evenly: Jain's index near 1",
	      "rules", "TF MIND: Jain's index, 80 threads"),
	SIM("figure 9",
	    "Splitting, training: 85 million false invalidations, 35 with "
	    "regions of 16 KB",
	    "splitting", FALSE_OVER("TF", "16 KB", "16 KB")),
	SIM("figure 9", "325 million with regions of 2 MB", "splitting",
	    FALSE_OVER("TF", "16 KB", "2 MB")),
	SIM("figure 9", "PageRank: 244 million, 170 with 16 KB", "splitting",
	    FALSE_OVER("GC", "16 KB", "16 KB")),
	SIM("figure 9", "The directory's bound is kept", "splitting",
	    "TF dynamic from 16 KB: entries used"),
	SIM("figure 9", "The epoch's length hardly matters (training)",
	    "epochs", "TF / TF: false invalidations, 30 ms over 1 ms"),
	SIM("figure 9", "The same, PageRank", "epochs",
	    "GC / GC: false invalidations, 30 ms over 1 ms"),
	CLAIM_UNTRIED("3.2.3",
		      "Address translation, protection and coherence in the "
		      "switch at line rate",
		      "our switch is a processor"),
	CLAIM_UNTRIED("3.2.1", "Threads of one process run on several blades",
		      "not promised: docs/mind.md"),
};

const struct claim_doc claim_doc_mind = {
	"mind", "MIND (SOSP 2021; Y. Tang's dissertation, 3.2)", claims,
	ARRAY_LEN(claims)};
