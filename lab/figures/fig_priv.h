/* SPDX-License-Identifier: Apache-2.0 */
/* A figure's point while it runs. */
#ifndef AQ_RIG_FIG_PRIV_H
#define AQ_RIG_FIG_PRIV_H

#include "base/hist.h"
#include "base/rng.h"
#include "fig.h"
#include "offload_costs.h"
#include "rig/offload_rig.h"
#include "sim/fiber.h"

enum {
	FIG_REGION_BYTES = 4 << 20,
	FIG_STRIPE_SHIFT = 12,
	FIG_RAILS = 4,	     /* queue pairs to the memory node */
	FIG_LOOK_EVERY = 16, /* requests between looks for completions */
};

struct fig;

/* ---- fig_server.c ------------------------------------------------------- */

/* Two ends that send each other messages: a thread of the application's
 * machine and one of the memory node's. */
struct fig_talk {
	struct rig_pair pair;
	struct ibv_cq *cq, *far_cq;
	struct ibv_mr *mr, *far_mr;
	uint8_t *mem, *far_mem; /* slots of slot_bytes each: send, receive */
	uint32_t slots;
	uint32_t slot_bytes;
};

int fig_talk_open(struct fig *fig, uint32_t slots, uint32_t slot_bytes,
		  struct fig_talk *talk) MUST_CHECK;
void fig_talk_close(struct fig_talk *talk);
/* Sends slot `from` of one end; the other end's next receive gets it. */
void fig_talk_send(struct fig_talk *talk, bool far, uint32_t slot,
		   uint32_t len_bytes);
/* A receive into the slot behind the sending ones. */
void fig_talk_receive(struct fig_talk *talk, bool far, uint32_t slot);
static inline uint8_t *fig_talk_slot(struct fig_talk *talk, bool far,
				     uint32_t slot, bool receive)
{
	return (far ? talk->far_mem : talk->mem) +
	       (size_t)(slot + (receive ? talk->slots : 0)) * talk->slot_bytes;
}

/* A far request under way; the place is free when issued_ps is 0. */
struct fig_flight {
	uint64_t issued_ps;
	uint64_t record;
	int64_t id;
};

struct fig_thread {
	struct fig *fig;
	uint32_t index;
	struct rng rng;
	struct fig_flight flight[FIG_DEPTH_MAX];
	uint32_t free[FIG_DEPTH_MAX]; /* a stack of places */
	uint32_t frees;
	uint32_t depth;
	uint8_t *buf;	     /* depth records */
	struct rig_app *app; /* FIG_COW */
	uint64_t first,
		next_id; /* FIG_COW: oldest under way, places in order */
	struct fig_verbs *verbs; /* FIG_ASYNC, FIG_SYNC */
	struct fig_redy *redy;	 /* FIG_REDY */
	struct fig_talk talk;	 /* FIG_TWO_SIDED, FIG_REDY, FIG_BLOCKING */
	uint64_t owed_ps; /* processor time that was not waited for yet */
	uint64_t requests;
	uint64_t far;
	/* Communication, and of that: to issue, to wait. */
	uint64_t comm_ps, issue_ps, wait_ps;
	uint64_t start_ps;
};

struct fig {
	struct fig_config cfg;
	struct fig_result *res;
	struct rig_stage *stage;
	struct sim *sim;
	struct rig rig;	       /* node 0 is the memory node */
	struct rig_host *host; /* of the application */
	char program[128];     /* FIG_SWITCH: its name and options */
	struct fig_thread *thread[FIG_THREADS_MAX];
	struct hist latency; /* picoseconds / 1000 */
	bool measuring;
	uint64_t begin_ps;
	struct fig_tcp *tcp;
	uint64_t slow_percent; /* of threads that share cores; 100: none does */
};

/* One way to read. `issue` has a free place; it may wait. `look` takes
 * completed requests; neither blocks unless it must. */
struct fig_ops {
	const char *name;
	int (*open)(struct fig_thread *t);
	void (*issue)(struct fig_thread *t, uint32_t place);
	void (*look)(struct fig_thread *t);
};

extern const struct fig_ops fig_ops[FIG_DEVICES];

/* fig_verbs.c */
int fig_verbs_open(struct fig_thread *t) MUST_CHECK;
void fig_verbs_close(struct fig_thread *t);
void fig_async_issue(struct fig_thread *t, uint32_t place);
void fig_sync_issue(struct fig_thread *t, uint32_t place);
void fig_verbs_look(struct fig_thread *t);
/* fig_server.c: one request at a time, the server answers. */
int fig_ask_open(struct fig_thread *t) MUST_CHECK;
void fig_ask_issue(struct fig_thread *t, uint32_t place);
/* fig_redy.c: an I/O thread per application thread. */
int fig_redy_open(struct fig_thread *t) MUST_CHECK;
void fig_redy_issue(struct fig_thread *t, uint32_t place);
void fig_redy_look(struct fig_thread *t);

/* ---- fig_switch.c ------------------------------------------------------- */

struct fig_switch_counts {
	uint64_t packets, probes, told, recirculated, held, lost;
};

/* After all hosts were added. */
int fig_switch_open(struct fig *fig) MUST_CHECK;
/* All 0 without a switch. */
struct fig_switch_counts fig_switch_counts(const struct fig *fig);
void fig_switch_close(struct fig *fig);

/* Processor time of a thread, for its work, for communication, and of that for
 * issuing requests. */
void fig_work(struct fig_thread *t, uint64_t ps);
void fig_comm(struct fig_thread *t, uint64_t ps);
void fig_issue_cost(struct fig_thread *t, uint64_t ps);
/* Waits until the processor time that the thread owes has passed. */
void fig_settle(struct fig_thread *t);
/* Waits for the NIC; the time counts as communication. */
void fig_wait(struct fig_thread *t);
/* The request of this place is complete, its record at `data`. */
void fig_complete(struct fig_thread *t, uint32_t place, const uint8_t *data);
static inline uint8_t *fig_buf(struct fig_thread *t, uint32_t place)
{
	return t->buf + (size_t)place * t->fig->cfg.bytes;
}

/* ---- fig_tcp.c ---------------------------------------------------------- */

int fig_tcp_start(struct fig *fig) MUST_CHECK;
uint64_t fig_tcp_bytes(const struct fig *fig); /* delivered so far */
/* That left the application's machine or reached it. */
uint64_t fig_tcp_packets(const struct fig *fig);
void fig_tcp_release(struct fig *fig);

#endif
