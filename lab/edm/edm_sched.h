/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler of the memory switch: demand notifications in, grants out. A
 * pure object: it has no clock and no queue of events; its owner passes the
 * time with every call, and gets grants and requests to be woken through two
 * upcalls. One thread.
 *
 * What always holds:
 *  - a source or destination port is held by at most one granted chunk;
 *  - messages of one lane of a (source, destination) pair are granted whole and
 *    in the order of their notifications, whatever the policy says about
 * others. Lanes keep apart what needs no common order: answers to reads,
 * writes, and the processes of a node where order is per process;
 *  - a port is released at the wire time of its chunk, counted in blocks from
 *    the grant, not when the bytes arrive.
 */
#ifndef AQ_EDM_SCHED_H
#define AQ_EDM_SCHED_H

#include "edm_units.h"

/* When and over which ports a matching is made. */
enum edm_discipline {
	/* As written in the paper: whenever a port becomes free, it goes to the
	 * best message whose other port is free at that instant. */
	EDM_ASYNC,
	/* All chunks begin at common slot boundaries. */
	EDM_SLOT,
	/* Like ASYNC, but a message that is the best one at both of its ports
	 * keeps a free port waiting for the other, and only chunks that fit
	 * into the wait may use it meanwhile. */
	EDM_RESERVE,
	/* Like ASYNC by priority PIM with iterations that take time. */
	EDM_PIM,
};

enum edm_policy {
	EDM_FCFS,
	EDM_SRPT, /* fewest bytes left of a lane's first message */
	EDM_PAIR, /* messages waiting behind it count: sched_key.c */
};

struct edm_grant {
	uint64_t issue_ps; /* when it leaves the scheduler; not in the past */
	uint32_t handle;
	uint32_t bytes;	 /* payload of the message in this chunk */
	uint32_t blocks; /* on the wire */
	uint16_t src, dst;
	bool first, last;
};

struct edm_sched_config {
	uint32_t ports;
	uint32_t lanes;	     /* per pair */
	uint32_t active_max; /* notifications of one lane; ENOSPC beyond */
	uint32_t chunk_bytes;
	uint64_t block_ps;
	enum edm_md md;
	enum edm_discipline discipline;
	enum edm_policy policy;
	/* Control blocks lengthen the holds of ports without idle time. */
	bool charge_control;
	uint32_t slot_blocks; /* EDM_SLOT */
	/* How long one matching takes, for all but PIM; 0: no time. Ports and
	 * messages that come meanwhile wait for the next one (sched_round.c).
	 */
	uint64_t match_ps;
	uint32_t pim_iterations; /* EDM_PIM: of one round */
	uint64_t pim_iteration_ps;
	uint64_t age_cap_ps; /* not FCFS: older goes first; 0: never */

	/* Upcalls. `wake` asks for edm_sched_wake(token) at that time. */
	void (*grant)(void *owner, const struct edm_grant *g);
	void (*wake)(void *owner, uint64_t at_ps, uint32_t token);
	void *owner;
};

struct edm_demand {
	uint16_t src, dst; /* of the data */
	uint16_t lane;
	uint32_t handle;
	uint32_t bytes;
	uint32_t first_extra_bytes; /* the address in a first write chunk */
	uint32_t control_up_blocks; /* that its notification took, from whom */
	uint32_t control_down_blocks; /* of its first grant, towards src */
	uint16_t control_port;	      /* of the sender of the notification */
};

struct edm_sched_stats {
	uint64_t grants;
	uint64_t notifications;
	uint64_t matchings; /* PIM iterations or slots with something to do */
	uint64_t depth_max; /* most notifications of one destination */
	uint64_t backfills; /* RESERVE: chunks that used a wait */
};

struct edm_sched;

/* -EINVAL with words for impossible parameters. */
int edm_sched_create(const struct edm_sched_config *config,
		     struct edm_sched **out) MUST_CHECK;
void edm_sched_destroy(struct edm_sched *s);

/* -ENOSPC: the lane has active_max already; -ENETDOWN: a port is disabled. */
int edm_sched_notify(struct edm_sched *s, uint64_t now_ps,
		     const struct edm_demand *d) MUST_CHECK;
void edm_sched_wake(struct edm_sched *s, uint64_t now_ps, uint32_t token);

/* A notification that was sent again, because its grant did not come in time:
 * `bytes` have not been granted as far as the sender knows. A known message is
 * corrected, an unknown one enters as if new. Returns as notify. */
int edm_sched_renotify(struct edm_sched *s, uint64_t now_ps,
		       const struct edm_demand *d) MUST_CHECK;
/* Forgets a message, if it is known: nothing more of it is granted. */
void edm_sched_withdraw(struct edm_sched *s, const struct edm_demand *d);
/* Ends all traffic to and from this port; forgets messages that wait for it.
 * Handles of forgotten messages go to `dropped` (may be NULL). */
void edm_sched_disable_port(struct edm_sched *s, uint16_t port,
			    void (*dropped)(void *owner, uint32_t handle));

uint32_t edm_sched_backlog(const struct edm_sched *s); /* notifications */
bool edm_sched_src_free(const struct edm_sched *s, uint64_t now_ps, uint16_t p);
bool edm_sched_dst_free(const struct edm_sched *s, uint64_t now_ps, uint16_t p);
void edm_sched_stats(const struct edm_sched *s, struct edm_sched_stats *out);

/* Of PIM, until a matching is maximal, on average: log2(ports). */
uint32_t edm_sched_iterations(uint32_t ports);
/*
 * The time of one maximal matching on average, 3 log2(ports) cycles, and the
 * smallest chunk whose wire time hides it, rounded up to a power of two.
 */
uint64_t edm_sched_matching_ps(uint32_t ports, uint32_t clock_mhz);
uint32_t edm_sched_chunk_min(uint32_t ports, uint32_t clock_mhz, uint32_t gbps);

#endif
