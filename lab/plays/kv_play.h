/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "kv": clients put, get, delete and compare and swap keys of one
 * small table, one at a time or several together, over a network that loses,
 * doubles, reorders and damages. At any
 * of their requests they die, or sleep for so long that others take them for
 * dead. What they saw must be linearizable, and in the end the table whole.
 */
#ifndef AQ_SCENARIO_KV_PLAY_H
#define AQ_SCENARIO_KV_PLAY_H

#include <stdio.h>

#include "base/base.h"
#include "sim/net_fabric.h"
#include "sim/plants.h"

enum {
	KV_PLAY_POINTS = 16, /* room for enum kv_point */
};

#define KV_PLAY_COUNTS(X)                                      \
	X(gets, "keys read")                                   \
	X(misses, "of them, those that were not there")        \
	X(puts, "keys written")                                \
	X(deletes, "keys deleted")                             \
	X(swaps, "compare and swap")                           \
	X(together, "operations under way with others")        \
	X(deaths, "clients that died in an operation")         \
	X(sleeps, "clients that slept in one")                 \
	X(stale, "operations that a fence cut off")            \
	X(fenced, "clients that others fenced")                \
	X(repairs, "words of locks of the dead, let go")       \
	X(rows_mended, "rows that got a new CRC")              \
	X(doubles_mended, "entries that stood twice")          \
	X(torn, "rows that were read again")                   \
	X(second, "inserts that had to look for another path") \
	X(full, "puts that found no place")                    \
	X(timeouts, "operations that ended at their deadline") \
	X(resizes, "resizes that ended")                       \
	X(resizes_left, "resizes whose client died over them") \
	X(nodes_killed, "memory nodes killed")                 \
	X(frames, "frames sent")                               \
	X(lost, "frames lost")                                 \
	X(checked, "operations in the checked history")        \
	X(steps, "steps of the checker")                       \
	X(virtual_us, "virtual microseconds")

struct kv_play_counts {
#define KV_PLAY_FIELD(name, help) uint64_t name;
	KV_PLAY_COUNTS(KV_PLAY_FIELD)
#undef KV_PLAY_FIELD
};

struct kv_play_options {
	uint64_t seed;
	FILE *trace; /* frames as text, or NULL */
	/* Three nodes, shards, copies; clients resize the table, and where
	 * there are two copies a node may be killed. */
	bool leaves;
	enum plant bug;
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

struct kv_play_result {
	unsigned violations;
	char first[512];
	uint64_t hash;
	struct kv_play_counts counts;
	uint64_t died_at[KV_PLAY_POINTS]; /* before which requests */
};

/* What it must find. */
extern const enum plant kv_play_bugs[];

int kv_play_run(const struct kv_play_options *opt,
		struct kv_play_result *res) MUST_CHECK;

/* `aquifer sim kv`; argv[0] is its name. `fabrics`: what --fabric may name. */
int kv_play_cmd(int argc, char **argv, const struct sim_fabric_choice *fabrics);

#endif
