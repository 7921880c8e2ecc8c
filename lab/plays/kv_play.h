/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "kv": clients put, get, delete and compare and swap keys of one
 * small table, count a number up, write values that expire, one at a time,
 * several together or as one unit, over a network that loses, doubles, reorders
 * and damages. At any of their requests they die, or sleep for so long that
 * others take them for dead. What they saw must be linearizable, no half of a
 * unit may be seen, and in the end the table must be whole.
 */
#ifndef AQ_PLAYS_KV_PLAY_H
#define AQ_PLAYS_KV_PLAY_H

#include "play.h"

#define KV_PLAY_COUNTS(X)                                      \
	X(gets, "keys read")                                   \
	X(misses, "of them, those that were not there")        \
	X(puts, "keys written")                                \
	X(deletes, "keys deleted")                             \
	X(swaps, "compare and swap")                           \
	X(increments, "increments of a number")                \
	X(mortals, "values with a time to live")               \
	X(expired, "of them, those that were met too late")    \
	X(together, "operations under way with others")        \
	X(units, "changes of several keys as one")             \
	X(deaths, "clients that died in an operation")         \
	X(sleeps, "clients that slept in one")                 \
	X(stale, "operations that a fence cut off")            \
	X(fenced, "clients that others fenced")                \
	X(repairs, "words of locks of the dead, let go")       \
	X(rows_mended, "rows that got a new CRC")              \
	X(doubles_mended, "entries that stood twice")          \
	X(walks, "gets by walks")                              \
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

PLAY_COUNTS(kv_play_counts, KV_PLAY_COUNTS);

struct kv_play_options {
	struct play_options common;
	/* Three nodes, shards, copies; clients resize the table, and where
	 * there are two copies a node may be killed. */
	bool leaves;
};

extern const struct play kv_play;

#endif
