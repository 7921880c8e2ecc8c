/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the play "verbs". A node is one host; a connection is one RC
 * connection with an endpoint at each end. Every endpoint has a window and some
 * words that only its peer operates on, so the order of one send queue fixes
 * what they must contain; all endpoints share one page of counters per node.
 *
 * What the checks rely on: requests of one queue pair take effect in the order
 * of posting; a READ may see later unfenced WRITEs; a success means that the
 * effect is there; after an error the rest may or may not have happened. What
 * did happen is known from the responder itself: verbs_record.c.
 */
#ifndef AQ_PLAYS_VERBS_PRIV_H
#define AQ_PLAYS_VERBS_PRIV_H

#include <infiniband/verbs.h>

#include "base/atomic_op.h"
#include "sim/fiber.h"
#include "sim/rack.h"
#include "verbs_play.h"

enum {
	VS_NODE_MIN = 2,
	VS_NODE_MAX = 4,
	VS_CONN_MAX = 6,
	VS_CQ_MAX = 3,
	VS_SGE_MAX = 32,
	VS_LEN_MAX = 64 << 10,
	VS_MSG_MAX = 16 << 10, /* of messages that need a receive */
	VS_SQ_MAX = 64,
	VS_RQ_MAX = 32,
	VS_SRQ_WR = 48,
	VS_WORDS = 8,
	VS_SHARED = 4,
	VS_SHARED_MAX = 4096, /* adds to one shared counter */
	VS_SOURCE_BYTES = 128 << 10,
	VS_WINDOW_BYTES = 80 << 10,
	VS_LAND_SLOTS = 8,
	VS_SLOT_GAP = 64, /* behind each piece of a slot */
	VS_MSG_SLOT_BYTES = VS_MSG_MAX + 34 * VS_SLOT_GAP,
	VS_LAND_SLOT_BYTES = VS_LEN_MAX + 34 * VS_SLOT_GAP,
	VS_CANARY_BYTES = 256,
	VS_AREA_MAX = 128,
	VS_INLINE_MAX = 256,
	VS_STATIONS = 32,  /* of a trail that is walked */
	VS_WALK_ROOM = 4,  /* walks that a node executes at a time */
	VS_WALK_PAD = 192, /* what fits the smallest MTU */
	VS_BAD_KEYS = 5,   /* per pair of nodes; eight would block the source */
};

#define VS_POISON 0xa7

/* Marks the wr_id of a receive: error completions do not say their kind. */
#define VS_ID_RECV  (1ull << 62)
#define VS_ID_SRQ   (1ull << 61)
#define VS_ID_UD    (1ull << 60)
#define VS_ID_SLOTS 256 /* a receive's slot is in the low bits */

/* A piece of a node's memory with canaries at both sides. */
struct vs_area {
	uint8_t *base;
	size_t len_bytes;
	uint64_t iova;
};

struct vs_piece {
	uint32_t off;
	uint32_t len;
};

enum vs_kind {
	VS_SEND,
	VS_SEND_IMM,
	VS_SEND_INV,
	VS_WRITE,
	VS_WRITE_IMM,
	VS_READ,
	VS_CAS,
	VS_FAA,
	VS_MASKED_CAS,
	VS_MASKED_FAA,
	VS_SHARED_FAA,
	VS_WALK,
	VS_BIND,
	VS_KIND_COUNT,
};

/* What a request must end with if the connection holds until it executes. */
enum vs_expect {
	VS_OK,
	VS_REMOTE_ACCESS,
	VS_REMOTE_INVALID,
	VS_LOCAL_PROTECTION,
};

struct vs_op {
	unsigned refs; /* send queue and message list */
	uint64_t id;   /* wr_id; ascending per endpoint */
	enum vs_kind kind;
	enum vs_expect expect;
	bool signaled;
	bool fence;
	bool solicited;
	bool strict; /* posted when there were no faults any more */
	bool acked;
	uint32_t len;
	uint32_t off; /* in the peer's window */
	uint32_t imm;
	uint32_t inv_key;
	uint64_t target_iova;
	uint32_t target_key;
	unsigned word;
	struct atomic_op atomic;
	uint64_t original; /* what an atomic must return */
	/* Walk: what it asks for, and how many stations it visits, from
	 * `word` on. */
	uint32_t iterations;
	uint32_t send_bytes;
	uint32_t visits;
	int land; /* slot, or -1 */
	unsigned piece_count;
	struct vs_piece pieces[VS_SGE_MAX]; /* in source area or slot */
	/* Where its packets are among all of this connection, as the responder
	 * counts them; none: it is not sent. */
	uint32_t at;
	uint32_t packets;
	uint32_t answered; /* READ, walk: packets that were answered */
	/* Frames of this connection before it was posted: to its end, and to
	 * the peer. */
	uint64_t harmed;
	uint64_t peer_harmed;
	struct vs_op *msg_next;
	uint8_t *data; /* bytes sent, or expected from a READ */
	uint8_t *old;  /* WRITE: what it replaced in the shadow; walk: what
			* it sends */
};

/* What an endpoint's responder says that it did on this connection. */
struct vs_record {
	uint32_t first_psn;
	uint32_t executed; /* packets, in order and once each */
	bool refused;
	uint32_t refused_at;
	uint8_t syndrome;
};

/* A receive that was posted, on a queue pair or a shared queue. */
struct vs_recv {
	bool posted;
	uint64_t id;
	uint32_t room;
	unsigned piece_count;
	struct vs_piece pieces[VS_SGE_MAX];
};

/* Buffers that only the NIC writes, one request at a time. After a completion
 * they must not change: `sum` must hold until the slot is used again. */
struct vs_slots {
	struct vs_area area;
	struct ibv_mr *mr;
	unsigned count;
	uint32_t slot_bytes;
	bool busy[VS_SRQ_WR];
	bool sealed[VS_SRQ_WR];
	uint64_t sum[VS_SRQ_WR];
};

enum vs_arm_mode {
	VS_ARM_NONE,
	VS_ARM_ANY,
	VS_ARM_SOLICITED,
};

/* How a CQ was armed, and whether an event is due since. */
struct vs_arm {
	enum vs_arm_mode mode;
	bool due;
	bool told;
};

struct aqdv_walk;
struct vs;
struct vs_ep;
struct vs_ud;

/* A walk that a node executes. */
struct vs_walking {
	struct aqdv_walk *walk; /* NULL: none */
	uint64_t at;
	uint32_t took;
};

struct vs_walker {
	struct vs_walking at[VS_WALK_ROOM];
	unsigned next;
	struct rng rand;
};

struct vs_node {
	struct vs *vs;
	unsigned index;
	struct sim_host *host;
	struct nic_witness witness;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cqs[VS_CQ_MAX];
	struct vs_arm arms[VS_CQ_MAX];
	unsigned cq_count;
	struct ibv_srq *srq;
	struct vs_slots srq_slots;
	struct vs_recv srq_recvs[VS_SRQ_WR];
	struct vs_area source; /* never changes; peers may only read it */
	struct ibv_mr *source_mr;
	struct vs_area shared;
	struct ibv_mr *shared_mr;
	uint32_t shared_acked[VS_SHARED];
	uint32_t shared_unknown[VS_SHARED];
	uint8_t shared_seen[VS_SHARED][VS_SHARED_MAX];
	struct vs_area trail; /* see verbs_walk.c */
	struct ibv_mr *trail_mr;
	struct vs_walker walker;
	uint32_t visits_acked[VS_STATIONS];
	uint32_t visits_unknown[VS_STATIONS];
	unsigned bad_keys[VS_NODE_MAX]; /* by the node that used them */
	struct vs_area areas[VS_AREA_MAX];
	unsigned area_count;
	uint64_t recv_id;
	struct vs_ud *ud;
	bool crashed;
};

enum vs_state {
	VS_RUN,
	VS_DRAIN, /* both ends fail their queue pair and wait for flushes */
	VS_DEAD,  /* an end has crashed and the other has drained */
	VS_DONE,
};

struct vs_ep {
	struct vs_conn *s;
	struct vs_node *node;
	struct vs_ep *peer;
	char name[16];
	struct ibv_qp *qp;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	bool use_srq;
	bool sig_all;
	uint32_t sge_max;
	uint32_t inline_max;
	uint32_t sq_max;
	uint32_t rq_max;
	/* What the peer operates on, and what it must contain. */
	struct vs_area window;
	struct ibv_mr *window_mr;
	uint32_t stale_key; /* of a region that is gone; 0: none */
	uint8_t *shadow;
	struct vs_area words;
	struct ibv_mr *words_mr;
	uint64_t word_shadow[VS_WORDS];
	struct ibv_mw *mw;
	uint32_t mw_key; /* usable by the peer; 0: not now */
	bool mw_busy;	 /* bound, or being bound or invalidated */
	/* Own requests, oldest first. */
	struct vs_op *sq[VS_SQ_MAX];
	uint32_t sq_head;
	uint32_t sq_tail;
	uint64_t op_id;
	uint32_t unsignaled; /* since the last signaled one */
	struct vs_slots land;
	struct vs_recv rq[VS_RQ_MAX];
	uint32_t rq_head;
	uint32_t rq_tail;
	struct vs_slots rq_slots;
	/* Messages under way to the peer, oldest first. */
	struct vs_op *msg_first;
	struct vs_op **msg_last;
	/* This epoch. */
	bool failed_send;   /* an error completion was seen on the send side */
	bool failed_cause;  /* it was not only a flush, or a path broke */
	bool failed_itself; /* the play moved it to the error state */
	bool flush_seen;    /* before that; something must explain it */
	bool bad_posted;    /* a request that breaks the peer was posted */
	bool short_seen;    /* a receive was too small */
	bool short_claimed; /* the peer said that its receive was */
	bool gave_up;	    /* the peer did not answer */
	bool gave_up_whole; /* but all it sent has arrived, in order */
	bool gave_up_clean; /* and all we sent, too */
	bool broke;	    /* on purpose, by the client */
	bool drained;
	uint64_t drain_ps; /* since when */
	struct vs_record rec;
	uint32_t next_at; /* of the next request */
	uint64_t harmed;  /* frames to it that were lost, damaged or late */
	/* Requests that ended with an unknown fate, oldest first. */
	struct vs_op *unsure[VS_SQ_MAX];
	unsigned unsure_count;
	bool held; /* receives are held back, to make RNR happen */
	uint8_t rnr_retry;
	uint32_t psn;
	unsigned posted; /* requests in this phase */
	unsigned quota;
	unsigned spoil_at; /* which of them the peer must refuse, at the end */
	struct rng rand;
};

struct vs_conn {
	struct vs *vs;
	unsigned index;
	enum vs_state state;
	bool final;   /* strict: nothing may fail from here on */
	bool parting; /* ends with one request that is refused */
	bool was_cut; /* the path between the ends, in this epoch */
	uint32_t epoch;
	enum ibv_mtu mtu;
	struct vs_ep ep[2];
};

enum vs_phase {
	VS_CHAOS,
	VS_HEALED,
	VS_OVER,
};

struct vs {
	struct play_run run;
	const struct verbs_play_options *opt;
	struct verbs_play_counts *n;
	struct sim_rack *rack;
	struct rig_tor *tor; /* NULL: the simulator's own switch */
	struct sim_faults faults;
	enum vs_phase phase;
	unsigned node_count;
	unsigned conn_count;
	struct vs_node nodes[VS_NODE_MAX];
	struct vs_conn conns[VS_CONN_MAX];
	bool mild; /* too few losses for any request to run out of retries */
	unsigned bad_ppm;   /* how often a request is made wrong */
	unsigned break_ppm; /* how often a connection is broken */
	unsigned len_class; /* how large requests tend to be */
	uint64_t tapped;    /* frames looked at by vs_wire_check */
};

/* One violation; the run ends soon after. */
#define vs_fail(vs, ...) play_fail(&(vs)->run, __VA_ARGS__)
/* A line of text. */
void vs_trace(struct vs *vs, const char *fmt, ...) PRINTF(2, 3);

static inline bool vs_over(const struct vs *vs)
{
	return vs->run.res->violations || vs->phase == VS_OVER;
}

/* ---- verbs_mem.c: areas, slots, canaries -------------------------------- */
int vs_area_add(struct vs_node *node, size_t len_bytes,
		struct vs_area *out) MUST_CHECK;
void vs_areas_check(struct vs_node *node);
void vs_areas_release(struct vs_node *node);
int vs_slots_init(struct vs_node *node, struct vs_slots *slots, unsigned count,
		  uint32_t slot_bytes) MUST_CHECK;
void vs_slots_release(struct vs_slots *slots);
/* A free slot filled with poison, cut into random pieces of `len` in all;
 * -1 when all are busy. */
int vs_slot_take(struct vs *vs, struct vs_slots *slots, struct rng *r,
		 uint32_t len, unsigned piece_max, struct vs_piece *pieces,
		 unsigned *piece_count);
/* The request is done. `data`: what the first `len` bytes of the pieces must
 * be, and the rest poison; NULL: anything inside the pieces. */
void vs_slot_give(struct vs *vs, struct vs_slots *slots, unsigned slot,
		  const struct vs_piece *pieces, unsigned piece_count,
		  const uint8_t *data, uint32_t len, const char *what);
/* A slot whose request vanished with its queue pair. */
void vs_slot_drop(struct vs_slots *slots, unsigned slot);
void vs_slots_check(struct vs *vs, struct vs_slots *slots, const char *what);
unsigned vs_pieces(struct rng *r, uint32_t len, unsigned piece_max,
		   struct vs_piece *pieces);
struct ibv_mr *vs_reg(struct vs_node *node, const struct vs_area *area,
		      int access);

/* ---- verbs_shadow.c: what memory must contain --------------------------- */
void vs_shadow_post(struct vs_ep *ep, struct vs_op *op);
void vs_shadow_success(struct vs_ep *ep, struct vs_op *op);
/* All requests of `ep` are over and both queue pairs dead: adopts what is in
 * the peer's memory, if it can have come about. */
void vs_shadow_settle(struct vs_ep *ep, struct vs_op *const *unsure,
		      unsigned count);
void vs_shadow_final(struct vs_ep *ep);
void vs_shared_final(struct vs_node *node);
/* A WRITE's bytes, seen from the receive it produced. */
void vs_shadow_arrived(struct vs_ep *from, const struct vs_op *op);

/* ---- verbs_record.c: completions against the responder's own record ----- */
/* A nic_witness of a node; ctx is the node. */
void vs_record_saw(void *ctx, const struct nic_deed *deed);
/* A sim_net_tap for frames that a fault strikes; ctx is the struct vs. */
void vs_record_harm(void *ctx, const uint8_t *frame, size_t len_bytes);
/* A connection begins: its numbers are known. */
void vs_record_begin(struct vs_ep *ep);
void vs_record_post(struct vs_ep *ep, struct vs_op *op);
/* Checks that the request can have ended so, after what the peer did. */
void vs_record_check(struct vs_ep *ep, const struct vs_op *op,
		     enum ibv_wc_status status);
/* Both ends are over: checks that there was a reason to give up or flush. */
void vs_record_explain(struct vs_ep *ep);

/* ---- verbs_post.c: random requests and receives ------------------------- */
void vs_post_sends(struct vs_ep *ep);
/* Good requests, one that is refused, and some behind it. */
void vs_post_parting(struct vs_ep *ep);
void vs_post_recvs(struct vs_ep *ep);
void vs_post_srq(struct vs_node *node);

/* ---- verbs_op.c: one random request -------------------------------------- */
/* A new request for this endpoint, or NULL when the one drawn cannot be made
 * now. Its reference belongs to the send queue. */
struct vs_op *vs_op_make(struct vs_ep *ep);

static inline bool vs_op_is_message(const struct vs_op *op)
{
	return op->kind <= VS_SEND_INV || op->kind == VS_WRITE_IMM;
}

static inline bool vs_op_is_masked(const struct vs_op *op)
{
	return op->kind == VS_MASKED_CAS || op->kind == VS_MASKED_FAA;
}

static inline bool vs_op_is_atomic(const struct vs_op *op)
{
	return op->kind >= VS_CAS && op->kind <= VS_SHARED_FAA;
}

/* Masked atomics go through aqdv. */
int vs_masked_post(struct vs_ep *ep, struct vs_op *op) MUST_CHECK;
void vs_op_put(struct vs_op *op);

/* ---- verbs_walk.c: walks ------------------------------------------------- */
int vs_walk_create(struct vs_node *node) MUST_CHECK;
void vs_walk_final(struct vs_node *node);
/* The request's visits are certain, or its fate is unknown. */
void vs_walk_count(struct vs_ep *ep, const struct vs_op *op, bool acked);
/* A request of op->len bytes: a result and a pad. */
void vs_walk_draw(struct vs_ep *ep, struct vs_op *op);
int vs_walk_post(struct vs_ep *ep, struct vs_op *op) MUST_CHECK;

/* ---- verbs_poll.c: completions ------------------------------------------ */
/* Polls every CQ of the node; the number of completions. */
unsigned vs_poll(struct vs_node *node);
struct vs_ep *vs_find_ep(struct vs_node *node, uint32_t qpn);
void vs_msg_pop(struct vs_ep *from);
/* The queue pair is in error and no completion will come any more: unsignaled
 * requests that were not flushed must have succeeded before. */
void vs_retire_silent(struct vs_ep *ep);

/* ---- verbs_notify.c: completion events ---------------------------------- */
/* A completion was taken from the CQ. `solicited`: it also counts for a CQ
 * armed for solicited completions only. */
void vs_notify_seen(struct vs_node *node, unsigned cq, bool solicited);
/* The CQ is empty: checks that there was an event exactly when one was due, and
 * arms it again. */
void vs_notify_check(struct vs_node *node, unsigned cq);

/* ---- verbs_conn.c: connecting, failing, connecting again ---------------- */
int vs_ep_create_qp(struct vs_ep *ep) MUST_CHECK;
int vs_conn_connect(struct vs_conn *s) MUST_CHECK;
void vs_ep_fail_qp(struct vs_ep *ep);
/* The connection is to be given up and made anew. */
void vs_conn_break(struct vs_conn *s);
/* One step of draining; moves the connection on when both ends are ready. */
void vs_conn_drain(struct vs_ep *ep);
/* Both ends are over for good: checks and frees what is left of them. */
void vs_conn_settle(struct vs_conn *s);

/* ---- verbs_world.c: nodes and connections ------------------------------- */
int vs_world_create(struct vs *vs) MUST_CHECK;
void vs_world_destroy(struct vs *vs);
int vs_mw_renew(struct vs_ep *ep) MUST_CHECK;

/* ---- verbs_wire.c: frames as they are sent
 * ------------------------------------
 */
/* A sim_net_tap; ctx is the struct vs. */
void vs_wire_check(void *ctx, const uint8_t *frame, size_t len_bytes);
struct vs_node *vs_wire_node(struct vs *vs, const uint8_t ip[16]);

/* ---- verbs_ud.c: datagrams ---------------------------------------------- */
int vs_ud_create(struct vs_node *node) MUST_CHECK;
void vs_ud_destroy(struct vs_node *node);
void vs_ud_step(struct vs_node *node);

#endif
