/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "index": clients read, write and delete a few keys of a version-list
 * store through a switch, over a network that loses, doubles and reorders;
 * clients die or sleep at any request, and the switch is killed and started
 * again. With steering the switch chooses where appends and reads go. What the
 * clients saw must be linearizable either way, and the store whole at the end.
 */
#ifndef AQ_PLAYS_VLIST_PLAY_H
#define AQ_PLAYS_VLIST_PLAY_H

#include "play.h"

#define VLIST_PLAY_COUNTS(X)                                        \
	X(gets, "reads")                                            \
	X(misses, "of them, of an absent key")                      \
	X(puts, "writes")                                           \
	X(deletes, "deletes")                                       \
	X(deaths, "clients that died in an operation")              \
	X(sleeps, "clients that slept in one")                      \
	X(bypasses, "connections that the switch was not told of")  \
	X(restarts, "times the switch was killed and started")      \
	X(absences, "connections that it was told to leave alone")  \
	X(timeouts, "operations without a known outcome")           \
	X(stale, "operations cut off with their connection")        \
	X(full, "writes that found no memory")                      \
	X(chases, "versions followed to the next")                  \
	X(steered_reads, "READs answered with a newer version")     \
	X(steered_appends, "appends sent to the end of the list")   \
	X(unvouched, "answers that nobody vouched for")             \
	X(verified, "appends found to be in the list")              \
	X(abandoned, "appends given up")                            \
	X(unknown, "appends of unknown outcome")                    \
	X(fenced, "clients that others fenced")                     \
	X(collected, "versions collected")                          \
	X(adopted, "chunks of the dead that others took")           \
	X(appends_failed, "appends that came too late")             \
	X(sent_again, "appends that the switch sent again")         \
	X(held, "answers that the switch held back")                \
	X(other_uses, "appends whose place it knew in another use") \
	X(frames, "frames sent")                                    \
	X(lost, "frames lost")                                      \
	X(checked, "operations in the checked history")             \
	X(steps, "steps of the checker")                            \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(vlist_play_counts, VLIST_PLAY_COUNTS);

enum vlist_steer {
	VLIST_STEER_BOTH, /* the seed is played twice */
	VLIST_STEER_ON,
	VLIST_STEER_OFF,
};

struct vlist_play_options {
	struct play_options common;
	unsigned steer; /* enum vlist_steer */
};

extern const struct play vlist_play;

#endif
