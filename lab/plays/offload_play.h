/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "offload": application threads read and write far memory through
 * their rings, over a faulty network, while engines are killed and replaced and
 * memory nodes and applications die; then the faults end and every request must
 * finish. What the threads saw goes to the linearizability checker.
 */
#ifndef AQ_PLAYS_OFFLOAD_PLAY_H
#define AQ_PLAYS_OFFLOAD_PLAY_H

#include "play.h"

/* What happened in a run; each has a line in the result. */
#define OFFLOAD_PLAY_COUNTS(X)                                   \
	X(reads, "reads of shared records")                      \
	X(writes, "writes of shared records")                    \
	X(private_reads, "reads of a thread's own bytes")        \
	X(private_writes, "writes of a thread's own bytes")      \
	X(full, "times a ring was full")                         \
	X(errors, "requests that ended with an error")           \
	X(kills, "engines killed at a random time")              \
	X(point_kills, "engines killed at a doorbell")           \
	X(zombies, "engines replaced while they ran on")         \
	X(takeovers, "sessions taken over")                      \
	X(node_deaths, "memory nodes killed")                    \
	X(app_deaths, "applications killed")                     \
	X(skipped, "writes that a predecessor had done")         \
	X(conflicts, "waits for an overlapping request")         \
	X(probes, "probes")                                      \
	X(publications, "progress told")                         \
	X(gathers, "requests to nodes for many reads")           \
	X(doorbells, "doorbells of the first engine, or frames") \
	X(frames, "frames sent")                                 \
	X(lost, "frames lost")                                   \
	X(duplicated, "frames duplicated")                       \
	X(reordered, "frames reordered")                         \
	X(corrupted, "frames corrupted")                         \
	X(checked, "operations in checked histories")            \
	X(steps, "steps of the checker")                         \
	X(events, "simulator events")                            \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(offload_play_counts, OFFLOAD_PLAY_COUNTS);

enum {
	OFFLOAD_POINT_WHENS = 3, /* before, inside, after */
};

enum offload_play_engine {
	OFFLOAD_SPOT,	/* a process on a host of its own */
	OFFLOAD_SWITCH, /* a program of the switch between all */
	OFFLOAD_BOTH,	/* one follows the other */
};

struct offload_play_options {
	struct play_options common;
	/* Numbers are not seeds but runs of the seed points_seed, with no other
	 * fault: number 3k + 1 kills the first engine before its doorbell k +
	 * 1, 3k + 2 inside, 3k + 3 after it. */
	bool points;
	uint64_t points_seed;
	uint32_t engine; /* enum offload_play_engine */
};

extern const struct play offload_play;

#endif
