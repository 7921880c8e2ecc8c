/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "hostile": one memory node, three honest tenants, and a hostile one
 * that lies, floods, replays, guesses and stops. The three use regions and
 * pages, each in another mode, and know every byte that they have written. The
 * hostile one must not read or change their data, nor stop them.
 *
 * The hostile one knows more than it should: addresses, numbers of queue pairs
 * and packets, and the others' keys. It sends any frame from its own port.
 *
 * In a second act the nodes fail: one hangs, and the heartbeats to the others
 * must not suffer.
 */
#ifndef AQ_PLAYS_HOSTILE_PLAY_H
#define AQ_PLAYS_HOSTILE_PLAY_H

#include "play.h"

/* Limits of a memory node, which this room cannot include: the interval of
 * heartbeats, the silence after which it ends a connection, the interval of its
 * ticks, and the gap between ticks that counts as not running. */
enum {
	HOSTILE_HEARTBEAT_MS = 1000,
	HOSTILE_PATIENCE_MS = 5 * HOSTILE_HEARTBEAT_MS,
	HOSTILE_TICK_MS = 250,
	HOSTILE_PAUSE_MS = 1000,
};

/* What happened in a run; each has a line in the result. */
#define HOSTILE_PLAY_COUNTS(X)                                    \
	X(ops, "operations of those who work, each checked")      \
	X(pages, "of them, on pages")                             \
	X(acts, "acts of the hostile tenant")                     \
	X(lies, "one-sided requests beyond its rights")           \
	X(guesses, "keys guessed")                                \
	X(calls, "page requests, most of them lies")              \
	X(withheld, "of them, without a receive")                 \
	X(pieces, "requests by the keys of pieces, old ones too") \
	X(chained, "calls of its chains")                         \
	X(forged, "frames forged in somebody's name")             \
	X(replayed, "frames sent again, anybody's")               \
	X(floods, "floods")                                       \
	X(sweeps, "sweeps over all queue pairs")                  \
	X(opened, "connections opened by it")                     \
	X(deaths, "times it died")                                \
	X(denied, "requests that the node's NIC refused")         \
	X(dropped, "frames that the node's NIC dropped")          \
	X(frames, "frames sent")                                  \
	X(lost, "frames lost")                                    \
	X(beats, "heartbeats to nodes")                           \
	X(hangs, "times that a node hung, was slow or was gone")  \
	X(forgotten, "connections that nodes forgot")             \
	X(events, "simulator events")                             \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(hostile_play_counts, HOSTILE_PLAY_COUNTS);

extern const struct play hostile_play;

#endif
