/* SPDX-License-Identifier: Apache-2.0 */
/* What EDM claims. */
#include "claims_docs.h"

#define SIM(where, text, figure, what, note)          \
	CLAIM_OF_FIGURE(CLAIM_SIMULATED, where, text, \
			"edm --figure " figure " --quiet", what, note)
#define TABLE_1(text, column, stack, op)                                      \
	CLAIM_OF_INPUT("4.2.1, table 1", text, "edm --figure table1 --quiet", \
		       column, stack, op)
#define UNDER_LOAD(text, what)                                               \
	SIM("4.3.1, figure 8a", text ", by port load", "8a", what,           \
	    "port load"),                                                    \
		SIM("4.3.1, figure 8a",                                      \
		    text ", by port load, matchings take their time", "8a",  \
		    what, "port load, timed"),                               \
		SIM("4.3.1, figure 8a",                                      \
		    text ", at the published payload loads", "8a-payload",   \
		    what, "payload load"),                                   \
		SIM("4.3.1, figure 8a",                                      \
		    text ", at the published payload loads, matchings take " \
			 "their time",                                       \
		    "8a-payload", what, "payload load, timed")

static const struct claim claims[] = {
	CLAIM_UNTRIED("2.2", "Frames of 64 B waste 88 % on a request of 8 B",
		      "arithmetic on a standard"),
	CLAIM_UNTRIED("3.1.3",
		      "A matching of 512 ports takes 9 ns at 3 GHz; chunks of "
		      "128 B keep links of 100 Gb/s busy",
		      "arithmetic on the scheduler's cycles; `aquifer sim edm "
		      "--figure scale` shows what they cost"),
	CLAIM_UNTRIED("3.1.4",
		      "Notifications and grants take at most 6 % of the "
		      "bandwidth",
		      "all blocks around a payload are counted together here "
		      "(columns load and payload of figure 8a)"),
	SIM("3.2.3 and 4.2.1",
	    "Beside IP frames a memory access stays near 300 ns (policy fair, "
	    "as published; a tenth is asked)",
	    "ip", "later beside frames, mean of the worst load", "fair"),
	SIM("3.2.3 and 4.2.1", "The same where memory goes first", "ip",
	    "later beside frames, mean of the worst load", "memory first"),
	CLAIM_UNTRIED("4.1",
		      "512 ports take 10 square millimetres and 1 MB of "
		      "SRAM, and run at 3 GHz",
		      "no synthesis here"),
	TABLE_1("A read takes 299.5 ns", "total_ns", "EDM", "read"),
	TABLE_1("A write takes 297.0 ns", "total_ns", "EDM", "write"),
	TABLE_1("A read is 3.7 times as fast as over raw Ethernet", "times_edm",
		"Ethernet", "read"),
	TABLE_1("A write is 1.9 times as fast as over raw Ethernet",
		"times_edm", "Ethernet", "write"),
	TABLE_1("A read is 6.8 times as fast as over RoCEv2", "times_edm",
		"RoCEv2", "read"),
	TABLE_1("A write is 3.4 times as fast as over RoCEv2", "times_edm",
		"RoCEv2", "write"),
	TABLE_1("A read is 12.7 times as fast as over TCP/IP", "times_edm",
		"TCP/IP", "read"),
	TABLE_1("A write is 6.4 times as fast as over TCP/IP", "times_edm",
		"TCP/IP", "write"),
	SIM("4.2.2, figure 6",
	    "About 2.7 times the requests of RDMA, YCSB A (23 over 11)", "6",
	    "YCSB: A", NULL),
	SIM("4.2.2, figure 6", "The same, YCSB B (7 over 1.9)", "6", "YCSB: B",
	    NULL),
	SIM("4.2.2, figure 6", "The same, YCSB F (20.4 over 9)", "6", "YCSB: F",
	    NULL),
	SIM("4.2.2, figure 7", "Within 1.3 times CXL's latency, YCSB A", "7",
	    "fig7_edm_over_cxl_worst", NULL),
	UNDER_LOAD("Writes within 1.3 of the unloaded latency",
		   "EDM's writes at all loads"),
	UNDER_LOAD("Reads within 1.2 of the unloaded latency",
		   "EDM's reads at all loads"),
	UNDER_LOAD("Mixes within 1.3 of the unloaded latency", "EDM's mixes"),
	SIM("4.3.2, figure 8b",
	    "Applications: within 1.2 to 1.4 times the ideal, as published",
	    "8b --long-messages 25000", "EDM over the ideal, worst application",
	    "published matching"),
	SIM("4.3.2, figure 8b", "The same where matchings take their time",
	    "8b --long-messages 25000", "EDM over the ideal, worst application",
	    "published matching, timed"),
	SIM("4.3.2, figure 8b", "The same with the best discipline known here",
	    "8b --long-messages 25000", "EDM over the ideal, worst application",
	    "best discipline"),
	SIM("1 and 4.3.2, figure 8b", "Up to 8 times as fast as CXL",
	    "8b --long-messages 25000", "CXL over EDM, most",
	    "published matching"),
	SIM("1 and 4.3.2, figure 8b",
	    "The same with the best discipline known here",
	    "8b --long-messages 25000", "CXL over EDM, most",
	    "best discipline"),
};

const struct claim_doc claim_doc_edm = {"edm", "EDM (ASPLOS 2025)", claims,
					ARRAY_LEN(claims)};
