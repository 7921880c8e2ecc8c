/* SPDX-License-Identifier: Apache-2.0 */
/* What RCuckoo claims. */
#include "claims_docs.h"

#define SIM(where, text, figure, what, note)                                 \
	CLAIM_OF_FIGURE(CLAIM_SIMULATED, where, text, "kv --figure " figure, \
			what, note)
#define MODEL(where, text, figure, what)                                       \
	CLAIM_OF_FIGURE(CLAIM_MODEL, where, text, "kv --figure " figure, what, \
			NULL)
#define BENCH(where, text, group, ratio, least, most) \
	CLAIM_OF_BENCH(where, text, "kv --only " group, ratio, least, most)

static const struct claim claims[] = {
	CLAIM_UNTRIED("3.2.2",
		      "Covering reads of up to 2 KB gain 3 % more on inserts",
		      "the threshold is not an option"),
	BENCH("3.2.2", "A read takes one round trip", "trips",
	      "rtt_read_inline", 0, 1),
	BENCH("3.2.2", "A read of a value in an extent takes two", "trips",
	      "rtt_read_extent", 0, 2),
	BENCH("3.2.2", "An update takes two", "trips", "rtt_update", 0, 2),
	BENCH("3.2.2", "A delete takes two", "trips", "rtt_delete", 0, 2),
	BENCH("3.2.2", "An insert takes two, median", "trips",
	      "rtt_insert_median", 0, 2),
	BENCH("3.2.3, figure 3.4",
	      "With f = 2.3, 68 % of keys have both rows within five", "fill",
	      "within_five", 0.68, 0),
	BENCH("3.2.3, figure 3.5", "More than 95 % of the entries are used",
	      "fill", "max_fill", 0.95, 0),
	BENCH("3.2.4, figure 3.6",
	      "99 % of inserts lock with one compare-and-swap", "fill",
	      "single_mcas_share", 0.99, 0),
	CLAIM_UNTRIED("3.2.3, figure 3.6",
		      "95 % of inserts to 95 % fill span up to 32 rows; with "
		      "independent hashing nearly all that move anything span "
		      "2,000",
		      "`aquifer bench kv --only fill` prints the spans of "
		      "dependent hashing, and has no such ratio"),
	MODEL("3.4.2, figure 3.9", "YCSB-C: above all others (1.17 times)",
	      "3.9", "c_vs_best_rival"),
	MODEL("3.4.2, figure 3.9", "YCSB-C: 2.9 times FUSEE", "3.9",
	      "c_vs_slowest_rival"),
	SIM("3.4.2, figure 3.9", "YCSB-C: 46.5 Mops", "3.9", "c_table", NULL),
	MODEL("3.4.2, figure 3.9", "YCSB-C: FUSEE has 16.2 Mops", "3.9",
	      "c_fusee"),
	SIM("3.4.2, figure 3.9", "YCSB-C: Clover has 39.9 Mops", "3.9",
	    "c_clover", NULL),
	MODEL("3.4.2, figure 3.10", "YCSB-B: above all others (2.7 times)",
	      "3.10", "b_vs_best_rival"),
	MODEL("3.4.2, figure 3.10", "YCSB-B: 2.9 times the slowest", "3.10",
	      "b_vs_slowest_rival"),
	SIM("3.4.2, figure 3.10", "YCSB-B: 38.6 Mops", "3.10", "b_table", NULL),
	MODEL("3.4.2, figure 3.10", "YCSB-B: FUSEE has 14.2 Mops", "3.10",
	      "b_fusee"),
	SIM("3.4.2, figure 3.10", "YCSB-B: Clover has 13.4 Mops", "3.10",
	    "b_clover", NULL),
	MODEL("3.4.2, figure 3.11", "YCSB-A: like FUSEE (0.96)", "3.11",
	      "a90_vs_best_rival"),
	MODEL("3.4.2, figure 3.11", "YCSB-A: 7.1 times Clover", "3.11",
	      "a90_vs_slowest_rival"),
	SIM("3.4.2, figure 3.11", "YCSB-A: 11.4 Mops (Zipf 0.90)", "3.11",
	    "a90_table", NULL),
	SIM("3.4.2, figure 3.11", "YCSB-A: 0.56 Mops (Zipf 0.99)", "3.11",
	    "a_table", NULL),
	MODEL("3.4.2, figure 3.11", "YCSB-A: FUSEE has 11.9 Mops (Zipf 0.99)",
	      "3.11", "a_fusee"),
	SIM("3.4.2, figure 3.11", "YCSB-A: Clover has 1.6 Mops (Zipf 0.99)",
	    "3.11", "a_clover", NULL),
	CLAIM_UNTRIED("3.4.2, figure 3.11",
		      "Sherman reaches 5 Mops on YCSB-A and collapses then",
		      "Sherman had several nodes; the tree here has one"),
	SIM("3.4.2, figure 3.12", "11.5 million inserts a second, nearly empty",
	    "3.12", "W: insert_mops_empty", NULL),
	SIM("3.4.2, figure 3.12", "4.5 million at 90 % fill", "3.12",
	    "W: insert_mops_90", NULL),
	CLAIM_UNTRIED("3.4.2, figure 3.12",
		      "FUSEE inserts 9.1 million a second, whatever the fill",
		      "the model of FUSEE has no inserts"),
	SIM("3.4.2, figure 3.13", "A full table makes inserts twice as long",
	    "3.13", "inserts / inserts: insert_latency_90_vs_empty", NULL),
	SIM("3.4.2, figure 3.14", "The same in bytes", "3.13",
	    "inserts / inserts: insert_bytes_90_vs_empty", NULL),
	SIM("3.4.2, figure 3.15", "The same in messages", "3.13",
	    "inserts / inserts: insert_messages_90_vs_empty", NULL),
	SIM("3.4.3, figure 3.16",
	    "Throughput stays high (0.9) up to 500 deaths a second", "3.16",
	    "16 rows per lock / 16 rows per lock: throughput_500_failures",
	    NULL),
	SIM("3.4.4, figure 3.17",
	    "Dependent hashing and breadth first: an order of magnitude fewer "
	    "round trips, 99th percentile",
	    "3.17",
	    "dependent, breadth first / independent, depth first: "
	    "insert_p99_trips_bfs_vs_dfs",
	    NULL),
	SIM("3.4.4, figure 3.18",
	    "The second search succeeds in 95 % at 64 rows per lock", "3.18",
	    "shipped: second_search_64", NULL),
	CLAIM_UNTRIED("3.4.4, figure 3.19",
		      "Reads hardly depend on the size of entries",
		      "no number was published; `aquifer sim kv --figure 3.19` "
		      "has ours"),
	SIM("3.4.4, figure 3.20", "Inline values gain 37 % on YCSB-A", "3.20",
	    "A / A: inline_gain_a", NULL),
	SIM("3.4.4, figure 3.20", "Inline values gain 21 % on YCSB-B", "3.20",
	    "B / B: inline_gain_b", NULL),
};

const struct claim_doc claim_doc_rcuckoo = {
	"rcuckoo", "RCuckoo (the same, chapter 3)", claims, ARRAY_LEN(claims)};
