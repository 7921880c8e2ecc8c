/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of `aquifer tier`. */
#ifndef AQ_CLI_TIER_H
#define AQ_CLI_TIER_H

#include "cli_action.h"

struct cli_tier_args {
	struct cli_action_args common;
	/* cost: numbers or ranges, as words; NULL: not given */
	const char *rd, *rc, *c, *rt;
	bool is_vm;
	const char *have, *want, *discount;
	/* probe */
	const char *node; /* a number, as a word; NULL: all */
	bool is_far;
	const char *mix; /* R:W; NULL: all */
	uint32_t threads;
};

/* For the table of the command's options. */
#define CLI_TIER_RANGE(member, name, help) \
	OPT_TEXT(struct cli_tier_args, member, name, "NUMBER|A..B", help)
#define CLI_TIER_COST_OPTIONS                                                  \
	CLI_TIER_RANGE(rd, "rd",                                               \
		       "cost: rate on main memory over that on SSD (10)"),     \
		CLI_TIER_RANGE(rc, "rc",                                       \
			       "cost: rate on CXL memory over that on SSD "    \
			       "(8)"),                                         \
		CLI_TIER_RANGE(c, "c",                                         \
			       "cost: bytes of main memory for a byte of CXL " \
			       "memory (2)"),                                  \
		CLI_TIER_RANGE(rt, "rt",                                       \
			       "cost: cost of a server with CXL memory over "  \
			       "one without (1.1)"),                           \
		OPT_FLAG(struct cli_tier_args, is_vm, "vm",                    \
			 "cost: what machines rented on CXL memory earn"),     \
		CLI_TIER_RANGE(have, "have",                                   \
			       "cost: with --vm: GiB of main memory for each " \
			       "processor (3)"),                               \
		CLI_TIER_RANGE(want, "want",                                   \
			       "cost: with --vm: GiB rented with each "        \
			       "processor (4)"),                               \
		CLI_TIER_RANGE(discount, "discount",                           \
			       "cost: with --vm: of machines on CXL memory, "  \
			       "0 to 1 (0.2)")

#define CLI_TIER_PROBE_OPTIONS                                                \
	OPT_TEXT(struct cli_tier_args, node, "node", "N",                     \
		 "probe: only this NUMA node"),                               \
		OPT_FLAG(struct cli_tier_args, is_far, "far",                 \
			 "probe: only the memory of the rack"),               \
		OPT_TEXT(struct cli_tier_args, mix, "mix", "R:W",             \
			 "probe: only this ratio of reads to writes"),        \
		OPT_U32(struct cli_tier_args, threads, "threads", "N", 1, 64, \
			"probe: threads that load (default: one for each "    \
			"processor)")

/* Run functions of struct cli_action. */
int cli_tier_cost(void *args);
int cli_tier_probe(void *args);

#endif
