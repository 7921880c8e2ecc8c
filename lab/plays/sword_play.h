/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "swordbox": clients compare and swap, add, read and write shared
 * words of one server through a switch that replaces atomics, over a network
 * that loses, doubles, reorders and damages on both sides of the switch, and
 * with the switch killed and started again. What they saw must be what the
 * words could have said: the linearizability checker decides.
 */
#ifndef AQ_SCENARIO_SWORD_PLAY_H
#define AQ_SCENARIO_SWORD_PLAY_H

#include <stdio.h>

#include "base/base.h"
#include "sim/plants.h"

#define SWORD_PLAY_COUNTS(X)                                    \
	X(cas, "compare and swap that succeeded")               \
	X(cas_failed, "compare and swap that did not")          \
	X(faa, "fetch and add")                                 \
	X(reads, "READ")                                        \
	X(writes, "WRITE of a word")                            \
	X(bulk, "WRITE of more than a word")                    \
	X(own, "operations whose order of posting was checked") \
	X(published, "WRITEs published by a WRITE of a word")   \
	X(watched, "publications looked at")                    \
	X(errors, "connections that ended with an error")       \
	X(restarts, "times the switch was killed and started")  \
	X(replaced, "atomics that the switch replaced")         \
	X(failed, "of them, those that changed nothing")        \
	X(repeated, "requests that came again")                 \
	X(coalesced, "answers that came in one")                \
	X(refused, "requests refused for their order")          \
	X(shared_resent, "packets resent to the server")        \
	X(moved, "requests of moved connections, as they came") \
	X(gaps, "packets of theirs behind one that was lost")   \
	X(frames, "frames sent")                                \
	X(lost, "frames lost")                                  \
	X(duplicated, "frames duplicated")                      \
	X(reordered, "frames reordered")                        \
	X(corrupted, "frames corrupted")                        \
	X(checked, "operations in the checked history")         \
	X(steps, "steps of the checker")                        \
	X(events, "simulator events")                           \
	X(virtual_us, "virtual microseconds")

struct sword_play_counts {
#define SWORD_PLAY_FIELD(name, help) uint64_t name;
	SWORD_PLAY_COUNTS(SWORD_PLAY_FIELD)
#undef SWORD_PLAY_FIELD
};

struct sword_play_options {
	uint64_t seed;
	enum plant bug;
	FILE *trace;	 /* frames as text, or NULL */
	bool no_restart; /* the switch lives */
};

struct sword_play_result {
	unsigned violations;
	char first[512];
	uint64_t hash;
	struct sword_play_counts counts;
};

/* What it must find. */
extern const enum plant sword_play_bugs[];

int sword_play_run(const struct sword_play_options *opt,
		   struct sword_play_result *res) MUST_CHECK;

/* `aquifer sim swordbox`; argv[0] is its name. */
int sword_play_cmd(int argc, char **argv);

#endif
