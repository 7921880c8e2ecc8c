/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim elastic`: files, queues and a key-value store of blocks, clients
 * that are cut off, repeat themselves and die. */
#ifndef AQ_PLAYS_ELASTIC_PLAY_H
#define AQ_PLAYS_ELASTIC_PLAY_H

#include "play.h"

#define ELASTIC_PLAY_COUNTS(X)                                          \
	X(ops, "operations that clients began")                         \
	X(executed, "changes that blocks executed")                     \
	X(repeated, "answers that were given again")                    \
	X(lost, "messages and answers lost with their connection")      \
	X(fenced, "messages of a former connection that came too late") \
	X(fetched, "values that the node fetched")                      \
	X(deaths, "clients that died")                                  \
	X(returned, "items that came back from the dead")               \
	X(away, "items that came back from clients that came later")    \
	X(refused, "puts that found the queue full")                    \
	X(grown, "blocks that were added")                              \
	X(records, "records of files at the end")                       \
	X(items, "items of queues that were delivered")                 \
	X(batches, "batches of slots that moved to another block")      \
	X(alone, "records that moved alone")                            \
	X(listed, "lists of records that movers read themselves")       \
	X(moved, "of them, begun again: records had moved")             \
	X(grouped, "operations that followed others in a message")      \
	X(behind, "of them, left undone by one that was refused")       \
	X(stopped, "clients that were stopped in the middle of a move") \
	X(helped, "moves that another client went on with")             \
	X(renewed, "blocks that were given back empty")                 \
	X(events, "events that a watcher was told")                     \
	X(missed, "events that it was too slow for, by its count")      \
	X(keys, "keys of stores at the end")                            \
	X(killed, "nodes with a copy that were killed")                 \
	X(cut, "members that were cut out of a chain")                  \
	X(joined, "members that joined one")                            \
	X(elsewhere, "clients who were sent to another member")

PLAY_COUNTS(elastic_play_counts, ELASTIC_PLAY_COUNTS);

extern const struct play elastic_play;

#endif
