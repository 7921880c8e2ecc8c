/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim verbs`: the scenario over one or many seeds. */
#ifndef AQ_SIM_VERBS_CMD_H
#define AQ_SIM_VERBS_CMD_H

#include "scenario_verbs.h"

/* Runs it with the command's arguments (argv[0] is its name) and prints what
 * happened. `fabrics` are what --fabric may name; NULL: nothing. Returns the
 * exit code: 0 no violation, 1 some, 2 wrong usage. */
int sim_verbs_cmd(int argc, char **argv,
		  const struct sim_fabric_choice *fabrics);
/* The same with something in the network. */
int sim_verbs_cmd_hooked(int argc, char **argv,
			 const struct sim_verbs_hook *hook);

/* What many seeds came to. */
struct sim_verbs_sum {
	uint64_t runs;
	uint64_t violated;     /* runs with a violation */
	uint64_t first_seed;   /* the smallest of them */
	char first[512];       /* and what it found */
	uint64_t hash;	       /* over all runs, in the order of their seeds */
	uint64_t missing_kind; /* runs in which a fault kind never happened */
	struct sim_verbs_counts counts;
};

struct sim_verbs_batch {
	uint64_t from;
	uint64_t to; /* included */
	unsigned jobs;
	enum plant bug;
	unsigned scale;
	bool udp; /* see scenario_verbs.h */
	bool auth;
	const struct sim_fabric_choice *fabric;
	bool stop_at_first; /* do not start more after a violation */
	const struct sim_verbs_hook *hook; /* NULL: nothing */
};

/* Runs the seeds in `jobs` processes. -errno when a process could not be
 * started or died: then `sum` names the seed it was at. */
int sim_verbs_run_batch(const struct sim_verbs_batch *batch,
			struct sim_verbs_sum *sum) MUST_CHECK;

#endif
