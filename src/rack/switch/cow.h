/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cowbird, the offload engine inside the switch: it finds requests in an
 * application's rings (wire/offload.h), lets each packet that comes back be the
 * next one, and writes progress. No payload is kept: the answer to a READ
 * leaves as a WRITE, and what is lost is read again from where it came.
 *
 *	probe	 READ of the green word of the rings
 *	fetch	 READ of requests that it announces
 *	execute	 a read: READ at the memory node, WRITE to the application
 *		 a write: READ from the application, WRITE at the memory node
 *	complete WRITE of the red block, whose last word announces all before it
 *
 * A session is one application thread. It has an end (end_tx.h) at the
 * application, and at each memory node one for reads and one for writes; the
 * latter carries this session's writes in order and nothing else, so that a
 * successor can tell from packet numbers what was executed. All its packets are
 * WRITE ONLY or a READ with one packet of answer, `mtu` bytes at most.
 *
 * Why nothing can go wrong:
 *  - Order. Requests begin in the order of the ring. A read waits until every
 *    write before it was executed; a write waits until the application was told
 *    of every read before it: a successor would repeat those reads behind it.
 *    With a filter only those count that may overlap.
 *  - Data before news. The data of a read is sent to the application before the
 *    red block that announces it, on one connection, which executes in order.
 *  - Once. A WRITE is made again under its own packet number, with the bytes of
 *    the same request: a write's bytes do not change until it is announced, and
 *a read may see newer ones as long as it is not.
 *  - Room. A READ is sent only when the WRITE that it becomes has a place.
 */
#ifndef AQ_COW_H
#define AQ_COW_H

#include "end_tx.h"
#include "wire/offload_filter.h"
#include "wire/offload_resume.h"

extern const struct tor_program tor_cowbird;

enum {
	COW_SESSIONS = 64,
	COW_SESSIONS_MAX = 1024,
	COW_REQUESTS = 1024, /* of a session, begun and not yet told */
	COW_REQUESTS_MAX = 1 << 16,
	COW_REGIONS = OFFLOAD_REGIONS_MAX, /* of a session */
	COW_FETCH = 42, /* requests of one READ: as many as 1 KiB holds */
	COW_BATCH = 32,
	COW_REDS = 8,	    /* publications on the way */
	COW_READS = 16,	    /* READs on the way on an end, unless told */
	COW_RING_KEPT = 40, /* places at the application for all but data */
	/* Numbers of a session's ends: the lowest bits of its own_qpn. */
	COW_END_BITS = 5,
	COW_ENDS = 1 << COW_END_BITS,
	COW_OWNER_MAX = 32,
};

#define COW_PROBE_NS	 2000ull
#define COW_PROBE_MAX_NS 10000000ull
#define COW_FLUSH_NS	 10000ull
#define COW_PATIENCE_NS	 4000000000ull

#define COW_COUNTERS(X) \
	X(probes)       \
	X(probes_empty) \
	X(fetches)      \
	X(reads)        \
	X(writes)       \
	X(read_bytes)   \
	X(write_bytes)  \
	X(errors)       \
	X(publications) \
	X(app_writes)   \
	X(app_bytes)    \
	X(held)         \
	X(read_again)   \
	X(skipped)      \
	X(broken)       \
	X(recirculated) \
	X(coalesced)    \
	X(end_naks)     \
	X(end_timeouts) \
	X(end_resent)   \
	X(end_dead)

enum cow_counter {
#define COW_ENUM(name) COW_C_##name,
	COW_COUNTERS(COW_ENUM)
#undef COW_ENUM
	COW_COUNTER_COUNT
};

/* What a packet of an end is. */
enum cow_what {
	COW_PREAMBLE, /* READs at the application */
	COW_SHOWN,    /* requests of a predecessor */
	COW_GREEN,
	COW_METAS,
	COW_SOURCE, /* a part's bytes, to become a COW_PART elsewhere */
	COW_PART,   /* a WRITE of such bytes */
	COW_STATUS,
	COW_RED,
	COW_STATE,
};

struct cow_out {
	uint8_t what;
	bool again;	 /* COW_SOURCE: for a WRITE that has a number */
	bool is_awaited; /* COW_PART: its bytes are on their way, again */
	uint32_t which;	 /* COW_RED */
	uint32_t len_bytes;
	uint64_t pos;	    /* of the request, or of the first one */
	struct cow_end *to; /* COW_SOURCE: where it goes */
	uint32_t psn;	    /* with which number, if again */
	/* Of a part. */
	uint32_t at; /* in its request */
	uint32_t rkey;
	uint64_t va;
};

struct cow_session;

struct cow_end {
	struct tor_end at;
	struct end_tx tx;
	struct cow_session *session;
	uint8_t node;	   /* unless it is the application's */
	uint32_t reads;	   /* on the way at most */
	uint32_t promised; /* places for what READs elsewhere will bring */
	struct cow_out out[END_TX_WINDOW]; /* by psn */
};

struct cow_node {
	int err; /* why it cannot be used */
	struct offload_final final;
	struct offload_past past;
	struct offload_progress base;
	uint64_t seq;	/* writes up to this one are done here */
	uint64_t ahead; /* packets that were executed behind it */
	struct cow_end *end[OFFLOAD_KINDS];
};

enum cow_request_state {
	COW_FREE,
	COW_KNOWN,
	COW_BEGUN,
	COW_READY,
};

struct cow_request {
	uint64_t pos;
	uint64_t seq;
	uint64_t far;  /* in the region */
	uint32_t near; /* in its data ring */
	uint32_t len_bytes;
	uint32_t parts; /* on the way */
	uint16_t region;
	uint8_t kind;
	uint8_t state;
	uint8_t err;
	bool is_refused; /* nothing was sent for it */
	bool is_filtered;
	bool is_sent; /* all parts were begun */
};

/* What a red block on its way says. */
struct cow_red {
	uint64_t head;
	uint64_t head_reads;
	uint64_t done[OFFLOAD_KINDS];
};

enum cow_state {
	COW_TOLD,   /* being declared */
	COW_START,  /* the preamble is on its way */
	COW_RESUME, /* what a predecessor left is looked at */
	COW_BASE,   /* our own beginning is being published */
	COW_RUN,
	COW_BROKEN,
};

struct cow_session {
	/* First what a look at idle rings needs, on few lines. */
	struct cow *cow;
	bool used;
	bool is_due;	/* to be run when the batch ends */
	bool is_idling; /* one of cow->idle */
	bool is_open;	/* request `next` was begun */
	bool is_held;	/* it waits for those of the other kind */
	bool is_asking; /* a probe is on its way */
	enum cow_state state;
	struct cow_end *ring;
	uint64_t ring_addr;
	uint32_t ring_rkey;
	uint32_t mask; /* of slots */

	/* Positions: head <= next <= fetched <= fetching <= tail. */
	uint64_t head;
	uint64_t head_reads;
	uint64_t next;
	uint64_t fetched;
	uint64_t fetching;
	uint64_t tail;
	uint64_t told_head;		   /* slots before it are free */
	uint64_t seen[OFFLOAD_KINDS];	   /* sequences given out at next */
	uint64_t ready[OFFLOAD_KINDS];	   /* complete up to here, in order */
	uint64_t published[OFFLOAD_KINDS]; /* sent to the application */
	uint64_t told_reads;		   /* and acknowledged by it */
	uint32_t active;		   /* requests in COW_BEGUN */
	uint32_t node_count;
	uint32_t red_sent, red_done;
	uint64_t part_at;  /* bytes of request `next` that were begun */
	uint64_t ready_ns; /* since when something is to be told; 0: nothing */
	uint64_t flush_ns;
	uint64_t probe_ns; /* when to ask next */
	uint64_t probe_gap_ns;
	struct timer timer;

	uint32_t batch;
	uint32_t id;
	char owner[COW_OWNER_MAX + 1]; /* who has declared it; or "" */
	uint8_t own_ip[16];	       /* of its ends */
	uint32_t own_qpn;	       /* of the first one */
	int err;
	uint64_t ring_bytes;
	uint32_t epoch;
	uint32_t mtu; /* of all its connections */
	uint64_t patience_ns;
	struct offload_map map;
	struct offload_resume resume;
	struct cow_red red[COW_REDS];
	uint8_t bytes[sizeof(struct offload_red)]; /* of the packet made now */
	/* The payload that came in the packet being handled, for one WRITE. */
	const uint8_t *payload;
	const struct cow_end *payload_end;
	uint32_t payload_psn;

	struct offload_filter *filter; /* NULL: every one overlaps */
	struct cow_request *request;
	uint32_t *order[OFFLOAD_KINDS]; /* slot by sequence */
	uint32_t region_count;
	struct offload_region_config *region;
	struct cow_node node[OFFLOAD_NODES_MAX];
};

struct cow_options {
	uint32_t sessions;
	uint32_t requests;
	uint32_t fetch;
	uint32_t batch; /* 1: tells of each */
	uint64_t flush_ns;
	uint64_t probe_ns;
	uint64_t rto_ns;
	bool filter; /* requests pass others that they do not overlap */
};

struct cow {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *c;
	struct cow_options opt;
	struct cow_session *sessions; /* opt.sessions of them */
	/* Of the batch: sessions with something to do, as indices; packets that
	 * were taken, and how many had been made before them. */
	uint16_t *due;
	uint32_t due_count;
	uint32_t batch_packets;
	uint64_t batch_made;
	/* Sessions whose rings nobody fills, as indices: they are looked at one
	 * behind the other, at the same time. */
	uint16_t *idle;
	uint32_t idle_count;
	/* How often a session was declared, has ended or broken; from 1. */
	uint64_t changes;
	struct timer idle_timer;
};

static inline void cow_count(struct cow *c, enum cow_counter which, uint64_t n)
{
	c->c[which] += n;
}

static inline uint64_t cow_now_ns(const struct cow_session *s)
{
	return tor_now_ns(s->cow->tor);
}

static inline struct cow_end *cow_end_of(struct end_tx *e)
{
	return container_of(e, struct cow_end, tx);
}

static inline struct cow_request *cow_slot(struct cow_session *s, uint64_t pos)
{
	return &s->request[pos & s->mask];
}

/* ---- cow_end.c: packets of an end -----------------------------------------
 */

/* -EEXIST: another end has its number. */
int cow_end_init(struct cow_end *e, struct cow_session *s) MUST_CHECK;
void cow_end_stop(struct cow_end *e);
/* What the next packet of the end will be. */
struct cow_out *cow_out_next(struct cow_end *e, enum cow_what what);
void cow_out_send(struct cow_end *e, uint8_t opcode, uint32_t len_bytes);
/* What a look at the rings needs of their end is fetched into the cache. */
void cow_end_prefetch(const struct cow_end *e);
/* Room for a READ, or for a WRITE that is no part. */
bool cow_end_has_room(const struct cow_end *e, bool is_read);

/* ---- cow_move.c: requests and their parts ---------------------------------
 */

/* A request as the application wrote it. False: it is none. */
bool cow_request_take(struct cow_session *s, uint64_t pos,
		      const struct offload_meta *m);
/* Requests of the other kind need not wait for it any more. */
void cow_request_pass(struct cow_session *s, struct cow_request *r);
/* Begins as many as can be. */
void cow_dispatch(struct cow_session *s);
/* A part's bytes have come, or a WRITE of them was executed. */
void cow_source_came(struct cow_end *e, const struct cow_out *o,
		     const uint8_t *payload);
void cow_part_done(struct cow_end *e, const struct cow_out *o);
/* Reads the bytes of this WRITE, and of those behind it, again. */
void cow_read_again(struct cow_end *to, uint32_t psn);

/* ---- cow_tell.c: progress -------------------------------------------------
 */

/* Tells the application what is ready, if it is time. */
void cow_publish(struct cow_session *s);
/* Publishes where this engine begins. */
void cow_publish_base(struct cow_session *s);
void cow_red_build(struct cow_session *s, uint32_t which,
		   struct offload_red *red);
/* Where in the rings the block begins, with as many nodes as there are. */
uint32_t cow_red_skip(const struct cow_session *s);
void cow_red_told(struct cow_session *s, uint32_t which);
uint64_t cow_flush_ns(const struct cow_session *s);

/* ---- cow_session.c: its life ----------------------------------------------
 */

/* Memory for one; cow_session_release() frees it, also after -ENOMEM. */
int cow_session_init(struct cow_session *s) MUST_CHECK;
/* Looks at the rings; all was declared. */
void cow_session_start(struct cow_session *s);
void cow_session_release(struct cow_session *s);
/* The session ends with a fault, which the application is told. */
void cow_session_break(struct cow_session *s, int err);
/* Does what can be done now. */
void cow_session_run(struct cow_session *s);
/* What that needs of one whose rings are idle is fetched into the cache. */
void cow_session_prefetch(const struct cow_session *s);
/* It is time for all that idle. */
void cow_idle_run(struct timer *timer, uint64_t now_ns);
/* The same when the batch ends: packets of a session come many at a time. */
void cow_session_run_soon(struct cow_session *s);
void cow_preamble_came(struct cow_session *s, const uint8_t *payload);
void cow_green_came(struct cow_session *s, const uint8_t *payload);
void cow_metas_came(struct cow_session *s, const struct cow_out *o,
		    const uint8_t *payload);

/* ---- cowbird.c: what a batch brings ---------------------------------------
 */

/* A packet for an end of a session. */
void cow_end_packet(struct tor_end *at, const struct wire_pkt *w);

/* ---- cow_ctl.c: options and control calls ---------------------------------
 */

int cow_parse(const char *text, struct cow_options *out) MUST_CHECK;
int cow_control(void *state, const char *text, struct json_out *out);

#endif
