/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "offload": application threads read and write far memory through
 * their rings, over a bad network, while engines are killed and followed by
 * others, while memory nodes and applications die; then everything heals and
 * must finish. What the threads saw goes to the linearizability checker.
 */
#ifndef AQ_SCENARIO_OFFLOAD_PLAY_H
#define AQ_SCENARIO_OFFLOAD_PLAY_H

#include <stdio.h>

#include "sim/net_fabric.h"
#include "sim/plants.h"

/* What happened in a run; each has a line in the result. */
#define OFFLOAD_PLAY_COUNTS(X)                              \
	X(reads, "reads of shared records")                 \
	X(writes, "writes of shared records")               \
	X(private_reads, "reads of a thread's own bytes")   \
	X(private_writes, "writes of a thread's own bytes") \
	X(full, "times a ring was full")                    \
	X(errors, "requests that ended with an error")      \
	X(kills, "engines killed at a random time")         \
	X(point_kills, "engines killed at a doorbell")      \
	X(zombies, "engines replaced while they ran on")    \
	X(takeovers, "sessions taken over")                 \
	X(node_deaths, "memory nodes killed")               \
	X(app_deaths, "applications killed")                \
	X(skipped, "writes that a predecessor had done")    \
	X(conflicts, "waits for an overlapping request")    \
	X(probes, "probes")                                 \
	X(publications, "progress told")                    \
	X(frames, "frames sent")                            \
	X(lost, "frames lost")                              \
	X(duplicated, "frames duplicated")                  \
	X(reordered, "frames reordered")                    \
	X(corrupted, "frames corrupted")                    \
	X(checked, "operations in checked histories")       \
	X(steps, "steps of the checker")                    \
	X(events, "simulator events")                       \
	X(virtual_us, "virtual microseconds")

struct offload_play_counts {
#define OFFLOAD_PLAY_FIELD(name, help) uint64_t name;
	OFFLOAD_PLAY_COUNTS(OFFLOAD_PLAY_FIELD)
#undef OFFLOAD_PLAY_FIELD
};

struct offload_play_options {
	uint64_t seed;
	enum plant bug;
	/* 0: as the seed says. Else the first engine is killed at this doorbell
	 * of its own, before, inside or after it, and no other fault happens.
	 */
	uint64_t point;
	unsigned point_when; /* 0 before, 1 inside, 2 after */
	unsigned scale;	     /* percent of the usual operations; 0: 100 */
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
	FILE *trace;				/* frames as text, or NULL */
	FILE *pcap;				/* delivered frames, or NULL */
	FILE *history; /* what the threads saw, as JSON lines, or NULL */
};

struct offload_play_result {
	unsigned violations; /* 0: all checks held */
	char first[512];     /* the first one, in words */
	uint64_t hash;
	uint64_t doorbells; /* of the first engine */
	struct offload_play_counts counts;
};

/* One seed. 0, or -errno when the run could not be made. Sets the process's
 * verbs provider meanwhile: one at a time. */
int offload_play_run(const struct offload_play_options *opt,
		     struct offload_play_result *res) MUST_CHECK;

/* What it must find. */
extern const enum plant offload_play_bugs[];

/* `aquifer sim offload`: the exit code. `fabrics`: what --fabric may name. */
int scenario_offload_cmd(int argc, char **argv,
			 const struct sim_fabric_choice *fabrics);

#endif
