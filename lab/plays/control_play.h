/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer sim control`: the shipped core of the controller, the shipped half
 * of a node, and the ledger in memory, on virtual time. Several controllers on
 * one ledger lead in turn; they are killed, stopped and cut off, messages are
 * lost, doubled and late, clocks drift by a tenth, answers of the ledger are
 * lost. After every step promises are checked (control_judge.c).
 */
#ifndef AQ_PLAYS_CONTROL_PLAY_H
#define AQ_PLAYS_CONTROL_PLAY_H

#include "sim/plants.h"

struct control_options {
	uint64_t seed;
	uint64_t failovers; /* until it ends */
};

struct control_result {
	uint64_t failovers, steps, commits, stale, unknown, grants, refused;
	uint64_t beats, breaks, joins, changes, virtual_s, hash;
	uint64_t renewals, blocks, maps;
	uint64_t again;			 /* names that were not made twice */
	uint64_t chain_writes, copies;	 /* of blocks with copies */
	uint64_t writes, moves, settled; /* of regions */
	char wrong[200];		 /* "": all promises held */
};

/* Bugs that must be found; ends with PLANT_none. */
extern const enum plant control_bugs[];

/* -ENOMEM; else what happened is in *out. */
int control_play(const struct control_options *o,
		 struct control_result *out) MUST_CHECK;
/* The command; the exit code. */
int control_play_cmd(int argc, char **argv);

#endif
