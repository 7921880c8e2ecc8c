/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenario "verbs": two to four simulated hosts do random verbs operations
 * with each other, first over a bad network with errors on purpose, then over
 * a healed one where everything must finish. Every effect is checked against a
 * shadow. One seed is one run, and the same seed gives the same trace hash.
 */
#ifndef AQ_SIM_SCENARIO_VERBS_H
#define AQ_SIM_SCENARIO_VERBS_H

#include <stdio.h>

#include "sim/net_fabric.h"
#include "sim/plants.h"

/* What happened in a run; each has a line in the result. */
#define SIM_VERBS_COUNTS(X)                                  \
	X(frames, "frames sent")                             \
	X(delivered, "frames delivered")                     \
	X(lost, "frames lost")                               \
	X(duplicated, "frames duplicated")                   \
	X(reordered, "frames reordered")                     \
	X(corrupted, "frames corrupted")                     \
	X(marked, "frames marked: congestion")               \
	X(cut, "frames that met a path that was down")       \
	X(path_full, "times a transmit queue was full")      \
	X(switch_full, "frames lost in a full switch")       \
	X(crashes, "hosts crashed")                          \
	X(cuts, "paths cut for a while")                     \
	X(path_downs, "paths reported down")                 \
	X(sends, "SEND")                                     \
	X(sends_imm, "SEND with immediate")                  \
	X(sends_inv, "SEND with invalidate")                 \
	X(writes, "WRITE")                                   \
	X(writes_imm, "WRITE with immediate")                \
	X(reads, "READ")                                     \
	X(cas, "compare and swap")                           \
	X(faa, "fetch and add")                              \
	X(masked, "masked atomics")                          \
	X(shared_faa, "fetch and add on shared counters")    \
	X(binds, "windows bound")                            \
	X(datagrams, "datagrams sent")                       \
	X(datagrams_received, "datagrams received")          \
	X(receives, "receives completed")                    \
	X(bad_ops, "requests made wrong on purpose")         \
	X(short_receives, "receives too small on purpose")   \
	X(executed, "packets that targets executed")         \
	X(refused, "requests that targets refused")          \
	X(errors, "first errors of a queue pair")            \
	X(flushes, "requests flushed")                       \
	X(resets, "connections made anew")                   \
	X(recreates, "of them with new queue pairs")         \
	X(reregs, "regions registered anew")                 \
	X(rnr, "receiver-not-ready sent")                    \
	X(retries, "go-back-N restarts")                     \
	X(timeouts, "timeouts")                              \
	X(duplicate_atomics, "duplicate atomics replayed")   \
	X(duplicate_reads, "duplicate READs answered again") \
	X(icrc_drops, "frames dropped for their ICRC")       \
	X(events, "simulator events")                        \
	X(virtual_us, "virtual microseconds")

struct sim_verbs_counts {
#define SIM_VERBS_COUNT_FIELD(name, help) uint64_t name;
	SIM_VERBS_COUNTS(SIM_VERBS_COUNT_FIELD)
#undef SIM_VERBS_COUNT_FIELD
};

struct sim_net;

/* What else stands in the network of a run. */
struct sim_verbs_hook {
	/* The hosts are attached, nothing was sent. What it makes is given to
	 * `done` before the network goes. */
	int (*start)(void *ctx, struct sim_net *net, uint64_t seed,
		     void **state);
	void (*done)(void *ctx, void *state);
	void *ctx;
};

struct sim_verbs_options {
	uint64_t seed;
	enum plant bug;
	FILE *trace;	/* frames and operations as text, or NULL */
	FILE *pcap;	/* delivered frames, or NULL */
	unsigned scale; /* percent of the usual number of operations; 0: 100 */
	bool udp;	/* slower links and a switch that marks and overflows */
	bool auth;	/* connections have keys, and packets a MAC */
	const struct sim_verbs_hook *hook;	/* NULL: nothing */
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

struct sim_verbs_result {
	unsigned violations; /* 0: all checks held */
	char first[512];     /* the first violation, in words */
	uint64_t hash;
	struct sim_verbs_counts counts;
};

/* Runs one seed. 0, or -errno when the run could not be made at all; what the
 * checks found is in `res`. Sets the process's verbs provider meanwhile: one
 * run at a time in a process. */
int sim_verbs_run(const struct sim_verbs_options *opt,
		  struct sim_verbs_result *res) MUST_CHECK;

/* What it must find. */
extern const enum plant sim_verbs_bugs[];

#endif
