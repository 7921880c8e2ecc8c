/* SPDX-License-Identifier: Apache-2.0 */
/* What SwordBox claims. */
#include "claims_docs.h"

#define SIM(where, text, figure, what, note)          \
	CLAIM_OF_FIGURE(CLAIM_SIMULATED, where, text, \
			"switch --figure " figure, what, note)
#define MODEL(where, text, figure, what)                                     \
	CLAIM_OF_FIGURE(CLAIM_MODEL, where, text, "switch --figure " figure, \
			what, NULL)

#define STEERING "full / plain: steering against none"
#define FUSEE	 "full / fusee-like: steering against the FUSEE-like one"

static const struct claim claims[] = {
	SIM("2.1.2, figure 2.4",
	    "Without steering less than 4 % of operations succeed at once, 240 "
	    "threads",
	    "2.4", "plain: operations that succeed, 240 threads", NULL),
	CLAIM_UNTRIED("2.3.1, figure 2.8", "The program fits into 8 stages",
		      "no compiler for a pipeline says ours; `aquifer switch "
		      "--resources` counts tables"),
	SIM("2.4.2, figures 2.3 and 2.9",
	    "WRITEs instead of compare-and-swaps: 6.2 times, host memory",
	    "2.9", "replaced / cas: host", NULL),
	SIM("2.4.2, figures 2.3 and 2.9",
	    "The same on connections that the switch has moved", "2.9",
	    "moved / cas: host", NULL),
	SIM("2.4.2, figures 2.3 and 2.9", "2.5 times, the NIC's memory", "2.9",
	    "replaced/nic / cas/nic: device", NULL),
	SIM("2.4.2, figures 2.3 and 2.9",
	    "The same on connections that the switch has moved", "2.9",
	    "moved/nic / cas/nic: device", NULL),
	CLAIM_OF_BENCH("2.4.2, figure 2.9",
		       "One core of the middlebox replaces 2.8 million "
		       "compare-and-swaps a second",
		       "switch --only cas", "swordbox_cas_rate", 2.8, 0),
	SIM("2.4.3, figure 2.10", "40 million reads a second", "2.10",
	    "plain: READs per second, no steering", NULL),
	SIM("2.4.3, figure 2.10", "Reads only: steering changes nothing",
	    "2.10", STEERING, NULL),
	MODEL("2.4.3, figure 2.10", "Reads only: 1.9 to 2.5 times FUSEE",
	      "2.10", FUSEE),
	SIM("2.4.3, figure 2.11", "5 % writes without steering: 14.3 Mops",
	    "2.11", "plain: no steering, 5 % writes: 40 / 2.8", NULL),
	SIM("2.4.3, figure 2.11", "5 % writes: steering gains 2.8 times",
	    "2.11", STEERING, NULL),
	MODEL("2.4.3, figure 2.11", "5 % writes: 1.9 to 2.5 times FUSEE",
	      "2.11", FUSEE),
	SIM("2.4.3, figure 2.12", "50 % writes: steering gains 35 times",
	    "2.12", STEERING, NULL),
	SIM("2.4.3, figure 2.12",
	    "50 % writes: steering of writes alone almost doubles", "2.12",
	    "writes / plain: steering of writes alone", NULL),
	MODEL("2.4.3, figure 2.12", "50 % writes: 1.9 to 2.5 times FUSEE",
	      "2.12", FUSEE),
	SIM("2.4.3, figure 2.13", "Writes only: steering gains 46 times",
	    "2.13", STEERING, NULL),
	MODEL("2.4.3, figure 2.13", "Writes only: 1.9 to 2.5 times FUSEE",
	      "2.13", FUSEE),
	SIM("2.4.3, figure 2.14", "5 % writes: 2.5 times fewer bytes", "2.14",
	    "plain / full: fewer bytes, 5 % writes", NULL),
	SIM("2.4.3, figure 2.14", "50 % writes: 16 times fewer bytes", "2.14",
	    "plain / full: fewer bytes, 50 % writes", NULL),
	SIM("2.4.3, figure 2.15",
	    "5 % writes: the 99th percentile of reads is 70 us without "
	    "steering",
	    "2.15", "plain: p99 of reads without steering, 5 % writes", NULL),
	SIM("2.4.3, figure 2.15", "5 % writes: 8 us with it", "2.15",
	    "full: p99 of reads with steering, 5 % writes", NULL),
	SIM("2.4.3, figure 2.15", "5 % writes: reads 8 times lower", "2.15",
	    "plain / full: lower p99 of reads, 5 % writes", NULL),
	SIM("2.4.3, figure 2.15", "5 % writes: writes 17 times lower", "2.15",
	    "plain / full: lower p99 of writes, 5 % writes", NULL),
	SIM("2.4.3, figure 2.15", "50 % writes: reads 300 times lower", "2.15",
	    "plain / full: lower p99 of reads, 50 % writes", NULL),
	SIM("2.4.3, figure 2.15", "50 % writes: writes 189 times lower", "2.15",
	    "plain / full: lower p99 of writes, 50 % writes", NULL),
	SIM("2.4.3, figure 2.15", "Writes only: 252 times lower", "2.15",
	    "plain / full: lower p99 of writes, 100 % writes", NULL),
	SIM("2.4.3, figure 2.16", "Steering the 8 hottest keys gains 9.5 times",
	    "2.16", "full / plain: 8 keys steered", NULL),
	SIM("2.4.3, figure 2.16", "Steering the 64 hottest keys gains 27 times",
	    "2.16", "full / plain: 64 keys steered", NULL),
};

const struct claim_doc claim_doc_swordbox = {
	"swordbox", "SwordBox (S. Grant's dissertation, chapter 2)", claims,
	ARRAY_LEN(claims)};
