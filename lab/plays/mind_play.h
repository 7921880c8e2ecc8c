/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "mind": machines share memory through the shipped switch with the
 * program `coherence`, over shipped NICs and a network that loses, doubles,
 * reorders and damages. A machine is the shipped half of a cache around a
 * simulated MMU; its threads load, store, compare and swap, and add, or run
 * litmus shapes. Regions are split, joined and recalled, caches are tiny, the
 * directory is small; machines die at named steps, the switch at any frame, a
 * memory node at any time, or it is silent for a while; some worlds have all
 * pages in two nodes.
 *
 * A load must see the last store of all, at the moment at which it is executed
 * (a shadow of the memory knows it); histories must be linearizable; litmus
 * shapes must end as some order of their steps does; a store is lost only where
 * that was said.
 */
#ifndef AQ_PLAYS_MIND_PLAY_H
#define AQ_PLAYS_MIND_PLAY_H

#include "play.h"

#define MIND_PLAY_COUNTS(X)                                              \
	X(loads, "loads")                                                \
	X(stores, "stores")                                              \
	X(atomics, "compare-and-swaps and additions")                    \
	X(hits, "of all, on pages that were there")                      \
	X(failed, "that were refused: lost, or no memory node")          \
	X(litmus, "rounds of litmus shapes")                             \
	X(gets, "gets that the switch took")                             \
	X(gets_again, "gets that came again")                            \
	X(gives, "pages given back")                                     \
	X(invals, "INVALs")                                              \
	X(false_invals, "pages given back that nobody asked for")        \
	X(recalls, "entries recalled")                                   \
	X(waits, "gets that met a busy region")                          \
	X(splits, "regions split")                                       \
	X(joins, "regions joined")                                       \
	X(evictions, "pages that machines gave up")                      \
	X(leaves, "ranges that machines left")                           \
	X(machine_deaths, "machines that died")                          \
	X(switch_deaths, "times the switch was killed and started")      \
	X(node_deaths, "memory nodes that died")                         \
	X(node_silences, "memory nodes that did not answer for a while") \
	X(copies_left, "times that one of two copies went on alone")     \
	X(lost_regions, "regions that were lost")                        \
	X(repairs, "repairs")                                            \
	X(moves, "times that pages moved to another memory node")        \
	X(resent, "packets that the switch sent again")                  \
	X(frames, "frames sent")                                         \
	X(lost, "frames lost")                                           \
	X(duplicated, "frames duplicated")                               \
	X(reordered, "frames reordered")                                 \
	X(corrupted, "frames corrupted")                                 \
	X(checked, "operations in the checked history")                  \
	X(steps, "steps of the checker")                                 \
	X(events, "simulator events")                                    \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(mind_play_counts, MIND_PLAY_COUNTS);

extern const struct play mind_play;

#endif
