/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "walk": shipped memory nodes, NICs, walk engines and the library of
 * walks in a simulated rack. Structures in a striped region change, by WRITE,
 * compare-and-swap and walks that store, while others walk them; the network
 * loses, doubles, reorders and damages; nodes, clients and the switch, which in
 * half of the racks carries walks on, are killed, regions are resized,
 * replaced, programs dropped, keys taken back.
 *
 * Must hold: every walk ends within its deadline, with the right bytes or an
 * error that fits what happened; lookups and changes of each key are
 * linearizable; every byte that comes back was once written there; what walks
 * store is stored once, or after an error at most once; the client, nodes by
 * way of the client, and nodes by way of the switch find the same in what
 * nobody changes.
 */
#ifndef AQ_PLAYS_WALK_PLAY_H
#define AQ_PLAYS_WALK_PLAY_H

#include "play.h"

#define WALK_PLAY_COUNTS(X)                                                \
	X(finds, "lookups by walks that ended well")                       \
	X(misses, "of these, keys that were not there")                    \
	X(blobs, "lookups of many bytes, each of them once written")       \
	X(sets, "values set by walks")                                     \
	X(swaps, "values swapped by walks")                                \
	X(adds, "lists walked that count every visit")                     \
	X(same, "lookups in what is at rest, the same by all ways")        \
	X(writes, "values written by WRITE")                               \
	X(cases, "values swapped by compare-and-swap")                     \
	X(inserts, "keys inserted")                                        \
	X(crossings, "changes from node to node")                          \
	X(carried, "of these, by the switch")                              \
	X(wild, "pointers that lead nowhere, refused")                     \
	X(circles, "circles, ended")                                       \
	X(refused, "images that no verifier may take, refused")            \
	X(failed, "walks that ended with an error")                        \
	X(unsure, "of these, with stores that may have happened")          \
	X(dropped, "programs dropped by nodes, installed again")           \
	X(resizes, "resizes of the region")                                \
	X(replaced, "times that the region was made anew")                 \
	X(nodes_killed, "memory nodes killed and started again")           \
	X(clients_killed, "clients killed")                                \
	X(switch_killed, "times that the switch was killed and restarted") \
	X(revoked, "keys taken back from walks under way")                 \
	X(walks, "walks executed by nodes")                                \
	X(iterations, "iterations made by nodes")                          \
	X(lost, "frames lost by the network")                              \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(walk_play_counts, WALK_PLAY_COUNTS);

struct walk_play_options {
	struct play_options common;
};

extern const struct play walk_play;

#endif
