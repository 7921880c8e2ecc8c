/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "index --kind tree": clients, some of them threads of one process,
 * read, write, delete and scan a few keys of an ordered index over a network
 * that loses, doubles and reorders; they die or sleep at any request. Nodes are
 * small, so they split and empty all the time, or of several packets, so that
 * readers meet half of a change. What clients saw must be linearizable, a scan
 * as one read of each key in its range, and the index whole at the end. A
 * switch may replace the atomics on the locks, and it may be restarted at any
 * moment.
 */
#ifndef AQ_PLAYS_TREE_PLAY_H
#define AQ_PLAYS_TREE_PLAY_H

#include "play.h"

#define TREE_PLAY_COUNTS(X)                                  \
	X(gets, "reads")                                     \
	X(misses, "of them, of an absent key")               \
	X(puts, "writes")                                    \
	X(deletes, "deletes")                                \
	X(scans, "scans")                                    \
	X(pairs, "keys that they found")                     \
	X(sums, "ranges added up")                           \
	X(walks, "walks")                                    \
	X(walks_short, "of them, those that READs ended")    \
	X(deaths, "clients that died in an operation")       \
	X(sleeps, "clients that slept in one")               \
	X(cuts, "connections cut at any moment")             \
	X(timeouts, "operations without a known outcome")    \
	X(stale, "operations cut off with their connection") \
	X(full, "writes that found no memory")               \
	X(torn, "nodes read while they changed")             \
	X(rights, "steps to the right")                      \
	X(splits, "nodes split")                             \
	X(grown, "levels added")                             \
	X(helped, "separators put in for others")            \
	X(pruned, "empty nodes removed")                     \
	X(handed, "locks handed on at home")                 \
	X(taken_over, "locks of the dead taken over")        \
	X(fenced, "clients that others fenced")              \
	X(mended, "nodes of the dead put in order")          \
	X(lost_entries, "entries half written by the dead")  \
	X(adopted, "chunks that others had before")          \
	X(reclaimed, "nodes that were never put in")         \
	X(replaced, "atomics that the switch replaced")      \
	X(restarts, "switches killed and started again")     \
	X(keys, "keys at the end")                           \
	X(unnamed, "nodes that no parent knew then")         \
	X(frames, "frames sent")                             \
	X(lost, "frames lost")                               \
	X(checked, "operations in the checked history")      \
	X(steps, "steps of the checker")                     \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(tree_play_counts, TREE_PLAY_COUNTS);

struct tree_play_options {
	struct play_options common;
	/* Options of the program swordbox, to which the locks are declared;
	 * NULL: there is no such switch. */
	const char *sword;
};

extern const struct play tree_play;

#endif
