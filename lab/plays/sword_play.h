/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "swordbox": clients compare and swap, add, read and write shared
 * words of one server through a switch that replaces atomics, over a network
 * that loses, doubles, reorders and damages on both sides of the switch, and
 * with the switch killed and started again. What they saw must be linearizable.
 */
#ifndef AQ_PLAYS_SWORD_PLAY_H
#define AQ_PLAYS_SWORD_PLAY_H

#include "play.h"

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

PLAY_COUNTS(sword_play_counts, SWORD_PLAY_COUNTS);

extern const struct play sword_play;

#endif
