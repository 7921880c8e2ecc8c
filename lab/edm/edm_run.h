/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulation: clock, messages in flight, a protocol and the metrics. Owned
 * by one thread; any number of them may exist. Either edm_run() does it all, or
 * an owner submits messages itself and drives the clock, which is how the
 * fabric serves as a link model below something else.
 */
#ifndef AQ_EDM_RUN_H
#define AQ_EDM_RUN_H

#include "base/hist.h"
#include "edm_config.h"
#include "edm_queue.h"
#include "edm_workload.h"

enum {
	EDM_PLANES = 2,
	EDM_PARTS = 8, /* of a run, to see whether something grows */
	EDM_MSG_NONE = UINT32_MAX,
	EDM_EV_ARRIVAL = 0, /* kinds from 1 on belong to the protocol */
	EDM_EV_SUBMIT = 1,
	EDM_EV_PROTO = 2,
};

/* A message in flight. The protocol owns everything after `measured`. */
struct edm_msg {
	uint64_t born_ps;
	uint32_t bytes;
	uint32_t request_bytes; /* 0: the operation's own */
	uint16_t src, dst;
	uint8_t op;
	bool live;
	bool measured;
	uint8_t part; /* of the run, if it is measured */
	bool done;
	bool sent;	      /* its last byte has left its sender */
	uint8_t planes;	      /* EDM: switches that still work on it */
	uint8_t attempt;      /* EDM: of a read */
	uint8_t channel;      /* EDM */
	bool asked;	      /* its request has been at the memory node */
	bool deferred;	      /* a read whose data come by edm_run_ready() */
	uint32_t turn;	      /* changes when the slot is used again */
	uint32_t had_bytes;   /* handed over, whichever switch they came by */
	uint32_t ready_bytes; /* deferred: may be sent */
	uint32_t seen_bytes;  /* deferred: of these, when last looked at */
	uint64_t patience_ps; /* deferred: it is lost if no more come in time */
	uint32_t parked, parked_last; /* EDM: chunks that wait for them */
	uint32_t next[EDM_PLANES];
	uint32_t batch; /* EDM: the next message under one notification */
	uint32_t sent_bytes[EDM_PLANES];
	uint32_t got_bytes[EDM_PLANES];
	void *flow;   /* rivals: state of their own */
	uint64_t tag; /* for the owner of the run */
};

struct edm_tally {
	uint64_t count;
	double sum_ns;
	double sum_own;	   /* over this protocol's unloaded time */
	double sum_common; /* over EDM's unloaded time */
};

struct edm_result {
	uint64_t arrivals;  /* all, also outside the measured part */
	uint64_t measured;  /* arrivals that count */
	uint64_t completed; /* measured arrivals that completed */
	uint64_t nulls;	    /* measured reads that were answered with NULL */
	struct edm_tally all, write, read;
	/* The same in the order of arrival, as many in each. */
	struct edm_tally part[EDM_PARTS];
	struct hist latency;	  /* ps */
	struct hist slowdown_own; /* in thousandths */
	struct hist slowdown_common;
	double payload_load; /* offered, of the busiest port */
	double horizon_ns;   /* simulated time of the measured arrivals */
	double end_ns;	     /* when the last event was over */
	uint64_t events;
	double wall_s;
	uint64_t in_flight_max;
	/* what the protocol counted */
	uint64_t grants;
	uint64_t egress_blocks_max; /* deepest switch queue, in 8-byte blocks */
	uint64_t drops, marks, pauses, timeouts;
	uint64_t duplicates; /* second copies from the mirror */
	double copy_gap_ns;  /* mean time between the two copies */
	double ip_share;     /* of all links, for frames */
};

static inline double edm_tally_mean(const struct edm_tally *t, double sum)
{
	return t->count ? sum / (double)t->count : 0;
}

struct edm_run;

/* What a protocol gives; `p` is what its create made. */
struct edm_proto_ops {
	int (*create)(struct edm_run *run, void **out);
	void (*destroy)(void *p);
	void (*submit)(void *p, uint32_t msg);
	void (*event)(void *p, const struct edm_event *e);
	void (*report)(void *p, struct edm_result *r);
	/* As edm_run_ready(). NULL: the protocol has no deferred reads. */
	void (*ready)(void *p, uint64_t at_ps, uint32_t msg, uint32_t bytes);
	/* The time from a message's birth to its submit. */
	uint64_t (*lead_ps)(const struct edm_config *c);
};

const struct edm_proto_ops *edm_proto_find(enum edm_proto p);

extern const struct edm_proto_ops edm_proto_edm, edm_proto_ird,
	edm_proto_pfabric, edm_proto_pfc, edm_proto_dctcp, edm_proto_cxl,
	edm_proto_fastpass;

struct edm_unloaded; /* remembers the times of lone messages */

struct edm_run {
	struct edm_config c;
	struct edm_queue *q;
	struct edm_msg *msg;
	uint32_t msg_used, msg_size, msg_free;
	uint32_t in_flight;
	const struct edm_proto_ops *ops;
	void *proto;
	struct edm_workload *workload;
	struct edm_arrival coming; /* the next one */
	uint64_t submitted, measured_left, first_measured_ps;
	uint64_t arrivals_max;	       /* no more than this many */
	struct edm_unloaded *unloaded; /* shared by runs; may be NULL */
	struct edm_result *result;
	/* For an owner that submits messages itself; any of them may be NULL.
	 * sent comes before done; lost comes instead of done. */
	void (*on_sent)(void *owner, const struct edm_msg *m);
	void (*on_done)(void *owner, const struct edm_msg *m);
	void (*on_lost)(void *owner, const struct edm_msg *m);
	/* A read's request, or one to modify, is at its memory, where it is
	 * executed; once per message. */
	void (*on_request)(void *owner, const struct edm_msg *m);
	/* Bytes of the data from there to m->had_bytes are handed over: in the
	 * memory of a write's target, or of who reads. Before done. */
	void (*on_bytes)(void *owner, const struct edm_msg *m, uint32_t from);
	void *owner;
};

/* The whole: arrivals until the measured ones are through, then drain. */
int edm_run_all(const struct edm_config *c, struct edm_unloaded *unloaded,
		struct edm_result *out) MUST_CHECK;

/* Piece by piece. */
int edm_run_create(const struct edm_config *c, struct edm_result *result,
		   struct edm_run **out) MUST_CHECK;
void edm_run_destroy(struct edm_run *run);
/* Submits a message now; returns its number. */
uint32_t edm_run_submit(struct edm_run *run, const struct edm_arrival *a);
/* The answer to a deferred read is there up to so many bytes, at that time. */
void edm_run_ready(struct edm_run *run, uint64_t at_ps, uint32_t msg,
		   uint32_t bytes);
/* Runs everything up to and including time_ps. */
void edm_run_until(struct edm_run *run, uint64_t time_ps);

/* For protocols: the last byte is on its sender's wire. If a protocol does not
 * call it, a message counts as sent when it is done. */
void edm_run_sent(struct edm_run *run, uint32_t msg);
/* A request is at its memory node; may be called again. */
void edm_run_request(struct edm_run *run, uint32_t msg);
/* The data are handed over up to there, or further already. */
void edm_run_bytes(struct edm_run *run, uint32_t msg, uint32_t until);
/* The last byte was handed over; null: read given up. */
void edm_run_done(struct edm_run *run, uint32_t msg, bool null);
/* The slot may be used again; after done, and for messages that were lost. */
void edm_run_forget(struct edm_run *run, uint32_t msg);

static inline void edm_run_push(struct edm_run *run, uint64_t at_ps, int kind,
				uint32_t port, uint32_t a, uint32_t b)
{
	edm_queue_push(run->q, at_ps, (uint16_t)(EDM_EV_PROTO + kind),
		       (uint16_t)port, a, b);
}

/* ---- lone messages ---------------------------------------------------------
 */

int edm_unloaded_create(struct edm_unloaded **out) MUST_CHECK;
void edm_unloaded_destroy(struct edm_unloaded *u);
/* The time of one message of this kind alone in a fabric of this protocol,
 * found by simulating just that; for EDM by a formula that a test compares with
 * the simulation. */
int edm_unloaded_ps(struct edm_unloaded *u, const struct edm_config *c,
		    enum edm_op op, uint32_t bytes, uint64_t *out) MUST_CHECK;

#endif
