/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine is made of. All of it belongs to the thread that steps it.
 *
 * The engine mirrors each session's rings: an offset in the application's rings
 * is the same offset in the mirror, so data is never moved inside the engine
 * and nothing is allocated on the data path.
 */
#ifndef AQ_OFFLOAD_ENGINE_PRIV_H
#define AQ_OFFLOAD_ENGINE_PRIV_H

#include "engine.h"
#include "ring.h"
#include "wire/offload_filter.h"

enum wr_kind {
	WR_PREAMBLE,
	WR_FETCH,
	WR_BASE,
	WR_PROBE,
	WR_PUBLISH,
	WR_NOTE,
	WR_READ,
	WR_WRITE,
	WR_GATHER,
};

/* What one request asks of a memory node: a work request, or, of reads that
 * follow each other, a part of one. */
struct part {
	uint64_t seq;
	uint32_t slot;	   /* of the request */
	uint32_t psn_next; /* behind it */
	bool is_last;	   /* of its request at this node */
};

/* Bytes of a region and of the mirror. */
struct place {
	uint64_t local;	 /* address */
	uint64_t remote; /* address at the node */
	uint64_t far;	 /* in the region */
	uint32_t rkey;
	uint32_t len_bytes;
};

/* One queue pair and what is under way on it, in order. */
struct node_queue {
	struct ibv_qp *qp;
	uint32_t posted; /* since the beginning */
	uint32_t done;
	uint64_t moved_ns; /* when something was last done or begun */
	struct part part[OFFLOAD_NODE_DEPTH];
};

struct node {
	int err;
	struct gathers *gathers; /* NULL: it gathers nothing for us */
	struct node_queue queue[OFFLOAD_KINDS];
	uint32_t mtu;
	uint32_t psn;		  /* of the next packet that is posted */
	struct offload_past past; /* what the predecessors did */
	struct offload_progress base;
	struct offload_progress progress;
	/* The write that was posted last, while more of it may come. */
	uint32_t open_part;
	uint32_t open_psn;
};

enum request_state {
	REQUEST_FREE,
	REQUEST_ACTIVE,
	REQUEST_READY, /* done or failed; perhaps told already */
};

enum request_filtered {
	FILTERED_NOT,
	FILTERED_WIDE,
	FILTERED_LINES,
};

struct request {
	uint64_t seq;
	uint64_t far;  /* in the region */
	uint32_t near; /* in its data ring */
	uint32_t len_bytes;
	uint32_t parts; /* under way */
	uint16_t region;
	uint8_t kind;
	uint8_t state;
	uint8_t err;	  /* positive errno */
	bool is_posted;	  /* all parts */
	uint8_t filtered; /* enum request_filtered */
};

enum session_state {
	SESSION_START,	/* the preamble is on its way */
	SESSION_RESUME, /* what a predecessor left is on its way */
	SESSION_BASE,	/* our own beginning is being published */
	SESSION_RUN,
};

/* Beside the mirror, also registered. */
struct session_extra {
	struct offload_red red[OFFLOAD_RED_SLOTS];
	struct offload_state note;
};

struct offload_session {
	struct offload_engine *engine;
	uint32_t index;
	uint32_t generation;
	struct offload_session_config config;
	enum session_state state;
	int err;

	uint8_t *mirror; /* of the rings; extra follows */
	struct session_extra *extra;
	size_t memory_bytes;
	struct ibv_mr *mr;
	struct offload_map map;

	uint32_t ring_posted; /* work requests towards the application */
	uint32_t ring_done;
	uint32_t red_posted;
	uint32_t red_done;
	bool is_asking;	   /* a probe or a fetch is on its way */
	uint32_t ahead;	   /* requests that are likely to come at once */
	uint32_t guess;	   /* of `ahead`, fetched together with the probe */
	uint64_t probe_ns; /* when to ask next */
	uint64_t probe_gap_ns;

	/* Positions: head <= next <= fetched. */
	uint64_t head;
	uint64_t head_reads;
	uint64_t next;
	uint64_t fetched;
	uint64_t fetching; /* what fetched will be */
	uint64_t wdata_fetched;
	struct offload_resume resume;	   /* until SESSION_RUN */
	uint64_t seen[OFFLOAD_KINDS];	   /* sequences given out at next */
	uint64_t ready[OFFLOAD_KINDS];	   /* complete up to here, in order */
	uint64_t published[OFFLOAD_KINDS]; /* told up to here */
	/* Reads that the application certainly knows of. Only then may an
	 * overlapping write start: a successor would read again. */
	uint64_t told_reads;
	uint64_t ready_ns; /* since when something is to be told */
	uint32_t active;   /* requests in REQUEST_ACTIVE */
	uint64_t part_at;  /* bytes of request `next` that are posted */
	bool is_open;	   /* request `next` was begun */
	bool is_held;	   /* request `next` overlaps with earlier ones */
	int64_t deficit;
	uint16_t touched; /* nodes of the write that is being posted */

	struct request *request;
	uint32_t *order[OFFLOAD_KINDS]; /* slot by sequence */
	struct offload_filter filter;
	/* The filter is kept exactly for this many more requests. */
	uint32_t mixed;
	uint8_t last_kind;
	struct node node[OFFLOAD_NODES_MAX];
};

/* Work requests that are posted together. */
struct wr_list {
	unsigned count;
	unsigned parts; /* in them; towards nodes */
	struct ibv_send_wr wr[OFFLOAD_POST_MAX];
	struct ibv_sge sge[OFFLOAD_POST_MAX];
};

struct offload_engine {
	struct offload_engine_config config;
	uint64_t own_counters[OFFLOAD_C_COUNT];
	uint64_t *counters;
	uint64_t now_ns; /* of this step */
	uint64_t memory_used;
	uint32_t cq_used;
	uint32_t generation;
	uint32_t turn;
	uint32_t session_count; /* places in use, with holes */
	struct offload_session *session[OFFLOAD_SESSIONS_MAX];
	struct wr_list ring_wrs;
	struct wr_list node_wrs[OFFLOAD_NODES_MAX][OFFLOAD_KINDS];
};

/* ---- session.c ---------------------------------------------------------- */

/* The session ends with a fault, which the application is told. */
void offload_session_break(struct offload_session *s, int err);
static inline uint64_t offload_session_wr_id(const struct offload_session *s,
					     enum wr_kind kind, unsigned node,
					     uint32_t count)
{
	return (uint64_t)kind << 60 | (uint64_t)node << 56 |
	       (uint64_t)s->index << 44 |
	       (uint64_t)(s->generation & 0xfff) << 32 | count;
}

STATIC_ASSERT(OFFLOAD_SESSIONS_MAX <= 1 << 12, "12 bits of a wr_id");
STATIC_ASSERT(OFFLOAD_NODES_MAX <= 1 << 4, "4 bits of a wr_id");

/* Adds one transfer between the application's rings and the mirror to the
 * engine's ring list; the places are the same on both sides unless `local` is
 * given. */
void offload_session_ring_add(struct offload_session *s,
			      enum ibv_wr_opcode opcode, uint64_t at,
			      const void *local, uint32_t len_bytes);
/* Posts the list; its last request is signalled. */
int offload_session_ring_post(struct offload_session *s, enum wr_kind kind);
uint32_t offload_session_ring_room(const struct offload_session *s);
int offload_session_start(struct offload_session *s);
void offload_session_ring_done(struct offload_session *s, enum wr_kind kind,
			       uint32_t count);
/* Asks for news if it is time. */
unsigned offload_session_probe(struct offload_session *s);

/* ---- dispatch.c --------------------------------------------------------- */

/* A request's metadata as it stands in the mirror. */
struct offload_meta offload_session_meta(const struct offload_session *s,
					 uint64_t pos);
/* Begins as many requests as the session's turn allows. */
unsigned offload_session_dispatch(struct offload_session *s);
/* The application knows of this many reads, counted modulo 2^32. */
void offload_session_told(struct offload_session *s, uint32_t reads);
void offload_session_part_done(struct offload_session *s, unsigned node,
			       unsigned kind, uint32_t count);

/* ---- post.c ------------------------------------------------------------- */

/* Adds a part of the open request, at s->part_at, to what will be posted.
 * -EAGAIN: too much is under way. */
int offload_session_add_part(struct offload_session *s, const struct request *r,
			     const struct offload_piece_config *piece,
			     uint64_t offset, uint32_t len_bytes) MUST_CHECK;
/* Posts one list, or all that a turn has made. */
int offload_session_flush(struct offload_session *s, unsigned node,
			  unsigned kind) MUST_CHECK;
int offload_session_flush_all(struct offload_session *s) MUST_CHECK;
/* For gather.c: a request of its own; whether the last one could be longer
 * instead. */
void offload_session_add_wr(struct offload_session *s, unsigned node,
			    unsigned kind, const struct place *p);
bool offload_session_goes_on(const struct wr_list *c, const struct place *p);

/* ---- gather.c ----------------------------------------------------------- */

/* What it takes beside the mirror, registered like that. */
uint64_t offload_gather_memory(const struct offload_session *s);
int offload_gather_open(struct offload_session *s, uint8_t *memory) MUST_CHECK;
void offload_gather_close(struct offload_session *s);
/* 1: the read leaves with others. 0: it needs a request of its own, or makes
 * the last one of the list longer. -EAGAIN: too much is under way. */
int offload_gather_take(struct offload_session *s, unsigned node,
			const struct place *p) MUST_CHECK;
/* Posts what has come together, if anything. */
int offload_gather_post(struct offload_session *s, unsigned node) MUST_CHECK;
/* The oldest is answered; `count` as for offload_session_part_done. */
void offload_gather_done(struct offload_session *s, unsigned node,
			 uint32_t count);

/* ---- publish.c ---------------------------------------------------------- */

/* Tells the application what is done, if it is time. */
unsigned offload_session_publish(struct offload_session *s);
/* Publishes, before the first request, where this engine begins. */
int offload_session_publish_base(struct offload_session *s);
/* When progress must be published at the latest; UINT64_MAX: there is none. */
uint64_t offload_session_flush_ns(const struct offload_session *s);

static inline void engine_count(struct offload_engine *e,
				enum offload_counter c, uint64_t n)
{
	e->counters[c] += n;
}

#endif
