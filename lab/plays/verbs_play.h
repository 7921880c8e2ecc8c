/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The play "verbs": two to four simulated hosts do random verbs operations with
 * each other, first over a faulty network with errors on purpose, then over a
 * network without faults, where everything must finish. Every effect is checked
 * against a shadow. One seed is one run, and the same seed gives the same trace
 * hash.
 */
#ifndef AQ_PLAYS_VERBS_PLAY_H
#define AQ_PLAYS_VERBS_PLAY_H

#include "play.h"
#include "rig/tor_net.h"

/* What happened in a run; each has a line in the result. */
#define VERBS_PLAY_COUNTS(X)                                  \
	X(frames, "frames sent")                              \
	X(delivered, "frames delivered")                      \
	X(lost, "frames lost")                                \
	X(duplicated, "frames duplicated")                    \
	X(reordered, "frames reordered")                      \
	X(corrupted, "frames corrupted")                      \
	X(marked, "frames marked: congestion")                \
	X(cut, "frames that met a path that was down")        \
	X(path_full, "times a transmit queue was full")       \
	X(switch_full, "frames lost in a full switch")        \
	X(crashes, "hosts crashed")                           \
	X(cuts, "paths cut for a while")                      \
	X(path_downs, "paths reported down")                  \
	X(sends, "SEND")                                      \
	X(sends_imm, "SEND with immediate")                   \
	X(sends_inv, "SEND with invalidate")                  \
	X(writes, "WRITE")                                    \
	X(writes_imm, "WRITE with immediate")                 \
	X(reads, "READ")                                      \
	X(cas, "compare and swap")                            \
	X(faa, "fetch and add")                               \
	X(masked, "masked atomics")                           \
	X(shared_faa, "fetch and add on shared counters")     \
	X(walks, "walks")                                     \
	X(walk_waits, "walks that waited for others")         \
	X(binds, "windows bound")                             \
	X(datagrams, "datagrams sent")                        \
	X(datagrams_received, "datagrams received")           \
	X(receives, "receives completed")                     \
	X(bad_ops, "requests made wrong on purpose")          \
	X(short_receives, "receives too small on purpose")    \
	X(executed, "packets that targets executed")          \
	X(refused, "requests that targets refused")           \
	X(errors, "first errors of a queue pair")             \
	X(flushes, "requests flushed")                        \
	X(resets, "connections made anew")                    \
	X(recreates, "of them with new queue pairs")          \
	X(reregs, "regions registered anew")                  \
	X(rnr, "receiver-not-ready sent")                     \
	X(retries, "go-back-N restarts")                      \
	X(timeouts, "timeouts")                               \
	X(duplicate_atomics, "duplicate atomics replayed")    \
	X(duplicate_reads, "duplicate READs answered again")  \
	X(duplicate_walks, "duplicate walks answered again")  \
	X(icrc_drops, "frames dropped for their ICRC")        \
	X(forwarded, "frames that the shipped switch passed") \
	X(events, "simulator events")                         \
	X(virtual_us, "virtual microseconds")

PLAY_COUNTS(verbs_play_counts, VERBS_PLAY_COUNTS);

struct verbs_play_options {
	struct play_options common;
	bool udp;  /* slower links and a switch that marks and overflows */
	bool auth; /* connections have keys, and packets a MAC */
	bool is_switched; /* through the shipped switch, with these programs */
	struct rig_tor_config tor;
	uint64_t read_ps; /* of a lone READ, where a fabric was chosen */
};

extern const struct play verbs_play;
extern const struct play switch_play; /* the same through the switch */

#endif
