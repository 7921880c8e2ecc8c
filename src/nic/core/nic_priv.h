/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NIC's inside: its objects, and what its files offer each other, grouped
 * by file. All of it belongs to the holder of the host's lock, except the two
 * indices of a completion queue (see cq.c).
 */
#ifndef AQ_NIC_PRIV_H
#define AQ_NIC_PRIV_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/list.h"
#include "base/plant.h"
#include "base/timer.h"
#include "chain.h"
#include "congestion.h"
#include "nic.h"
#include "nic_limits.h"
#include "stamps.h"
#include "wire/wire.h"
#include "wire/wqe.h"
#include "wqe_op.h"
#include "wqe_shape.h"

/* ---- key.c: the table of local and remote keys -------------------------- */

enum {
	KEY_HOLES = 8,	      /* separate holes of one key */
	KEYS_WITH_HOLES = 64, /* further keys with holes are refused whole */
};

/* Offsets in the region. */
struct key_hole {
	uint64_t from;
	uint64_t to;
};

/* See hole.c. */
struct key_holes {
	uint64_t length; /* of the region */
	uint32_t count;	 /* 0: not used */
	struct key_hole hole[KEY_HOLES];
};

/* What a key opens. Lives in its memory region or window. */
struct nic_key {
	uint32_t key; /* 24 random bits, then the 8-bit tag */
	uint32_t access;
	struct nic_pd *pd;
	struct nic_qp *qp; /* windows of type 2: the only user; else NULL */
	uint64_t iova;
	uint64_t length;
	uint8_t *host;		 /* where iova is in this process */
	struct key_holes *holes; /* NULL: none; else length is 0 */
	bool valid;
	bool is_window;
};

struct key_slot {
	uint32_t index; /* key >> 8; 0 is never given out */
	struct nic_key *key;
};

struct key_table {
	struct key_slot *slots;
	uint32_t mask;
	uint32_t count;
	/*
	 * Grows whenever a key opens less than before, or other memory: a check
	 * that passed in the same epoch need not be repeated. Never 0.
	 */
	uint32_t epoch;
	uint32_t *retired; /* KEYS_RETIRED keys valid lately, by hash */
	struct key_holes holes[KEYS_WITH_HOLES];
};

enum key_verdict {
	KEY_OK,
	KEY_UNKNOWN,
	KEY_OTHER_PD,
	KEY_NO_ACCESS,
	KEY_OUT_OF_BOUNDS,
	KEY_GONE, /* the program has unmapped it */
};

int key_table_init(struct key_table *t) MUST_CHECK;
void key_table_release(struct key_table *t);
/* Gives `k` a random key and enters it. */
int key_insert(struct nic *nic, struct nic_key *k) MUST_CHECK;
void key_remove(struct nic *nic, struct nic_key *k);
/* Another random key; on failure the old one stands. */
int key_renew(struct nic *nic, struct nic_key *k) MUST_CHECK;
void key_count_denial(struct nic *nic, enum key_verdict v);
/* This value opens nothing from now on. */
void key_retire(struct key_table *t, uint32_t key);
/* Whether a peer need not have guessed this key: it is, or was lately,
 * valid. */
bool key_was_known(const struct key_table *t, uint32_t key);

/* hole.c */
void key_holes_forget(struct nic_key *k);
enum key_verdict key_holes_cover(const struct nic_key *k, uint64_t offset,
				 uint64_t len);

static inline void key_changed(struct key_table *t)
{
	if (++t->epoch == 0)
		t->epoch = 1;
}

/* The slot that holds `index`, or the free one where it would go. Indices are
 * random already and need no hashing. The table is never more than half full,
 * so the walk ends. */
static inline struct key_slot *key_slot_of(const struct key_table *t,
					   uint32_t index)
{
	uint32_t i = index & t->mask;

	while (t->slots[i].index != index && t->slots[i].index != 0)
		i = (i + 1) & t->mask;
	return &t->slots[i];
}

/* The entry with these upper 24 bits, whatever its tag and state. Index 0 is
 * that of free slots, which have no key. */
static inline struct nic_key *key_at(const struct key_table *t, uint32_t key)
{
	return key_slot_of(t, key >> 8)->key;
}

/* The valid key with this value; NULL: none. */
static inline struct nic_key *key_find(const struct key_table *t, uint32_t key)
{
	struct nic_key *k = key_at(t, key);

	return k && k->key == key && k->valid ? k : NULL;
}

/* ---- mr.c (also domains and device memory), mw.c ------------------------ */

struct nic_pd {
	struct nic *nic;
	uint32_t users;
	struct nic_pd *turns; /* whose turns its QPs have: mostly its own */
	struct list ready; /* QPs with something to send that have its turns */
	struct list turn;  /* on nic->ready while there are some */
	uint32_t debt;	   /* what it did beyond its last turn */
	uint32_t used;	   /* what it did lately, in sixteenths ... */
	uint32_t used_flush; /* ... and when that was */
};

struct nic_mr {
	struct nic_key key;
	uint32_t windows; /* bound to it */
	struct nic_dm *dm;
};

struct nic_mw {
	struct nic_key key;
	enum ibv_mw_type type;
	struct nic_mr *mr; /* bound to; NULL: not bound */
};

struct nic_dm {
	struct nic *nic;
	uint64_t length;
	uint32_t users;
	uint8_t *bytes;
};

int mw_bind(struct nic_qp *qp, const struct wqe_bind *bind) MUST_CHECK;
/* Ends a window of type 2 that is bound to this queue pair. */
int key_invalidate(struct nic_qp *qp, uint32_t key) MUST_CHECK;
void mw_end_all(struct nic_qp *qp); /* all windows of type 2 bound to it */

/* ---- cq.c --------------------------------------------------------------- */

enum cq_arm {
	CQ_ARM_NONE,
	CQ_ARM_SOLICITED,
	CQ_ARM_ANY,
};

struct nic_cq {
	struct nic *nic;
	void *owner;
	struct nic_cqe *ring;
	uint32_t mask;
	uint32_t size; /* what the user may count on */
	uint32_t users;
	enum cq_arm arm;
	bool timestamps;
	bool overflowed;
	bool counting;	 /* successes are counted and not shown */
	uint32_t number; /* what WAIT calls it */
	uint32_t counted;
	uint32_t external_count; /* in `counted`, not caused by a chain */
	uint64_t fuel;		 /* of the chain that caused the last one */
	struct list waits;	 /* chains that wait for it */
	CACHE_ALIGNED atomic_uint produced; /* written by the NIC */
	CACHE_ALIGNED atomic_uint consumed; /* written by the poller */
};

struct nic_cqe *cq_overflow(struct nic_cq *cq);
void cq_end_slow(struct nic_cq *cq, struct nic_cqe *cqe);
/* cq_begin and cq_end at once; false when the queue overflowed. */
bool cq_push(struct nic_cq *cq, const struct nic_cqe *cqe);
void cq_purge(struct nic_cq *cq, const void *qp_owner);

/* ---- recvq.c: receive queues, shared or not ----------------------------- */

struct recvq {
	uint8_t *wqes;	  /* count x stride bytes, struct wqe_data each */
	uint64_t *wr_ids; /* NULL: managed, they are counted */
	uint32_t count;	  /* power of two */
	uint32_t limit;	  /* what the user may post */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t head; /* next to post */
	uint32_t tail; /* next to use */
};

/* A receive request that a message is being written to. */
struct recv_op {
	bool active;
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t imm_count; /* places for the immediate: managed queues */
	uint64_t capacity;  /* bytes */
	struct ibv_sge imm[NIC_RECV_IMMS];
	struct ibv_sge sge[NIC_SGE_MAX];
};

struct nic_srq {
	struct nic *nic;
	struct nic_pd *pd;
	void *owner;
	uint32_t number;
	uint32_t users;
	uint32_t low_mark; /* armed limit; 0: none */
	struct recvq q;
};

int recvq_init(struct nic *nic, struct recvq *q, uint32_t wr_count,
	       uint32_t max_sge) MUST_CHECK;
/* For a managed queue pair, whose entries are in the application's memory. */
void recvq_init_managed(struct recvq *q, uint32_t wr_count, uint32_t max_sge);
void recvq_release(struct nic *nic, struct recvq *q);
int recvq_post(struct recvq *q, const struct ibv_recv_wr *wr) MUST_CHECK;
/* Takes the oldest request of the QP's queue; false when there is none. A
 * request with room for less than `need` bytes stays in the queue, and *op is
 * then not active. */
bool recvq_take_if(struct nic_qp *qp, struct recv_op *op, uint32_t need);
static inline bool recvq_take(struct nic_qp *qp, struct recv_op *op)
{
	return recvq_take_if(qp, op, 0);
}

/* ---- sendq.c: work queue entries ---------------------------------------- */

/* Where a request's message bytes are. */
struct send_data {
	uint32_t off;  /* of the first data segment, in the queue */
	uint16_t segs; /* pointers, when not inline */
	bool is_inline;
};

/* Beside each entry of a send queue: what the NIC remembers of it. */
struct send_slot {
	uint64_t wr_id;
	uint32_t block;	 /* first 64-byte block of its WQE */
	uint32_t blocks; /* how many */
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t length; /* message bytes */
	struct send_data data;
	uint8_t opcode; /* enum wqe_opcode */
	bool signaled;
	bool has_psn;	   /* first_psn and last_psn are set */
	uint32_t rd_count; /* its part of rd_outstanding */
	uint32_t epoch; /* of the keys when `host` was found; 0: it was not */
	struct nic_ah *ah; /* datagrams: holds a reference */
	uint8_t *host;	   /* where the answer goes, if to one segment */
};
STATIC_ASSERT(sizeof(struct send_slot) == 64, "one cache line");

struct sendq {
	uint8_t *wqes;
	uint32_t block_count; /* power of two */
	uint32_t slot_mask;
	uint32_t limit; /* what the user may post */
	uint32_t max_sge;
	uint32_t max_inline;
	struct send_slot *slots;
	uint32_t head; /* next slot to post */
	uint32_t send; /* next slot to transmit */
	uint32_t tail; /* oldest slot not completed */
	uint32_t block_head;
	uint32_t block_tail;
	uint32_t slot_base; /* which request has the first slot */
};

/* A send request as its WQE says now. */
struct send_op {
	const struct wqe_op *info;
	uint8_t opcode; /* enum wqe_opcode */
	uint8_t flags;	/* enum wqe_ctrl_flags */
	uint32_t imm;	/* as ibv_wc shows it: network order, or a key */
	uint32_t rkey;
	uint64_t va;
	struct atomic_op atomic;
	struct send_data data;
	uint32_t length;
	uint32_t dest_qpn; /* datagrams */
	uint32_t qkey;
	struct wqe_bind bind;
};

int sendq_init(struct nic *nic, struct sendq *q,
	       struct ibv_qp_cap *cap) MUST_CHECK;
void sendq_release(struct nic *nic, struct sendq *q);
int sendq_post(struct nic_qp *qp, const struct ibv_send_wr *wr,
	       const struct nic_send_extra *extra) MUST_CHECK;
/* Reads a WQE. -EINVAL: it was rewritten into something invalid. */
int sendq_decode(const struct sendq *q, const struct send_slot *slot,
		 struct send_op *op) MUST_CHECK;
/* The same for a request that has packet numbers already: its opcode and length
 * must still be those that the numbers were given for. */
int sendq_decode_again(const struct sendq *q, const struct send_slot *slot,
		       struct send_op *op) MUST_CHECK;
/* Copies message bytes between the data segments and a buffer. -EFAULT: a
 * local key does not cover them. */
int sendq_gather(struct nic_qp *qp, const struct send_data *data,
		 uint32_t offset, uint8_t *dst, uint32_t len_bytes) MUST_CHECK;
int sendq_scatter(struct nic_qp *qp, const struct send_data *data,
		  uint32_t offset, const uint8_t *src,
		  uint32_t len_bytes) MUST_CHECK;
/* Are all data segments usable with this access? If there is exactly one, and
 * it is not empty, *host is where it is; else *host is left alone. */
int sendq_check(struct nic_qp *qp, const struct send_op *op, uint32_t access,
		uint8_t **host) MUST_CHECK;
/* The piece of data at `offset`; *len_bytes is cut to where it is contiguous.
 * NULL: no valid key. Inline data is found in the queue itself. */
uint8_t *sendq_piece(struct nic_qp *qp, const struct send_data *data,
		     uint32_t offset, uint32_t access, uint32_t *len_bytes);

static inline bool slot_needs_response(const struct send_slot *slot)
{
	return wqe_op_get(slot->opcode)->flags & WQE_OP_RESPONSE;
}

static inline uint32_t sendq_bytes(const struct sendq *q)
{
	return q->block_count * (uint32_t)WQE_BLOCK_BYTES;
}

/* WQEs wrap at the end of the queue; segments never straddle it. */
static inline void *sendq_seg(const struct sendq *q, uint32_t byte_off)
{
	return q->wqes + (byte_off & (sendq_bytes(q) - 1));
}

static inline struct send_slot *sendq_slot(const struct sendq *q, uint32_t i)
{
	return &q->slots[(i - q->slot_base) & q->slot_mask];
}

/* ---- qp.c, qp_modify.c -------------------------------------------------- */

/* A READ or atomic that was answered, or is being answered. */
struct resp_res {
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t next_psn; /* next response packet to send */
	uint32_t rkey;
	uint32_t length;
	bool used;
	bool is_atomic;
	bool answered;	/* all packets were sent at least once */
	bool pending;	/* packets next_psn..last_psn are still to be sent */
	bool restart;	/* the next packet starts a response: FIRST or ONLY */
	uint32_t epoch; /* of the keys when `host` was found */
	uint8_t *host;	/* where va is */
	uint64_t va;
	uint64_t original;
};

struct responder {
	/* What every request touches; within one cache line. */
	uint32_t epsn;
	uint32_t msn;
	bool nak_sent;	 /* no second NAK until the expected packet comes */
	bool rnr_sent;	 /* no NAK at all until the expected packet comes */
	uint8_t nak_due; /* syndrome of the NAK that waits; 0: none */
	bool refuses;	 /* the queue pair ends when nak_due has been sent */
	bool ack_due;
	bool ack_waits; /* see ack_hold.c */
	uint8_t held;	/* messages whose acknowledgement is held back */
	bool marked;	/* congestion: the next answer says so (BECN) */
	uint8_t kind; /* of the message in progress, enum wire_kind; 0: none */
	uint32_t offset; /* bytes of it placed so far */
	/* Ring of responder resources: res_next is the next to reuse. */
	struct resp_res *res;
	uint32_t res_count;
	uint32_t res_next;
	uint32_t res_pending; /* how many are pending */
	uint32_t res_scan;    /* no older resource is pending */
	uint32_t ack_psn;     /* the newest request that asked for it */
	/* The message in progress. */
	uint32_t rkey;
	uint64_t va;
	uint32_t dma_len;
	uint32_t ahead_psn;   /* the last packet that came too early ... */
	uint32_t ahead_count; /* ... and how many came since the NAK */
	uint32_t nak_psn;     /* the packet that the NAK is about */
	uint8_t recv_status;  /* why the receive in use failed; 0: it has not */
};

struct requester {
	struct timer timer;
	uint32_t next_psn; /* of the next new request */
	uint32_t una_psn;  /* oldest not acknowledged */
	uint32_t send_pkt; /* packets of slot `send` already sent */
	uint32_t rd_outstanding;
	uint32_t unasked; /* packets since acknowledgement was asked for */
	bool rnr_wait;
	bool restarted;	 /* went back to una_psn already, no progress since */
	uint8_t repeats; /* without progress; see requester_resend */
	uint8_t retry_left;
	uint8_t rnr_left;
	bool progressed;     /* since the timer was set */
	bool gave_up;	     /* retries ended without an answer */
	uint8_t waited;	     /* timers in a row without news of the peer */
	uint64_t peer_turns; /* of the peer, when the wait began */
	uint64_t stalled_ns; /* since when the peer does not run; 0: it runs */
	/* The key that the env had no mapping for, and how often in a row. */
	uint32_t far_key;
	uint32_t far_misses;
	uint32_t ahead_psn;  /* the last response that came too early */
	uint64_t restart_ns; /* when restarted was set; only where cc is on */
	uint64_t rto_ns;     /* when rto_timer is due */
	struct timer rto_timer; /* resends without using up a retry */
};

/* The state of the peer when it was last probed; probe.c. */
struct probe {
	uint32_t epsn;
	uint32_t una_psn;
	bool waits; /* for an answer */
};

/*
 * Ordered by use: a thousand queue pairs fit the second cache only if each
 * needs few of its lines. A READ touches the first three, that of the send
 * queue, a slot and a WQE; its answer at the peer the first two and that of the
 * responder.
 */
struct nic_qp {
	uint32_t qpn;
	uint32_t dest_qpn;
	enum ibv_qp_state state;
	enum ibv_qp_type type;
	uint32_t mtu;
	uint32_t flow; /* see flow_number; 0: none, as of datagrams */
	struct nic *nic;
	struct nic_pd *pd;
	struct env_path *path;
	uint32_t access; /* what peers may do: IBV_ACCESS_REMOTE_* */
	/* As in attr. */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t max_rd_atomic;
	bool lossy; /* the path is: cc is on */
	bool peer_gone;
	bool sq_sig_all;
	bool sqd_notify;
	bool last_wqe_told;
	bool managed_sq; /* requests come from memory: chain_run */
	uint16_t from;	 /* where its packets come from: enum nic_from */

	CACHE_ALIGNED struct list ready; /* on nic->ready while there is
					  * something to send */
	struct nic_cq *send_cq;
	void *owner;
	struct requester req;
	CACHE_ALIGNED struct sendq sq;
	CACHE_ALIGNED struct responder rsp;
	struct congestion cc; /* the requester's */
	struct recvq rq;
	struct nic_srq *srq;
	struct nic_cq *recv_cq;
	struct chain *chain;   /* NULL: neither queue is managed */
	struct nic_auth *auth; /* NULL: its packets carry no MAC */
	struct list held;      /* on nic->held while its ACK waits */
	uint64_t born;	       /* which connection of the NIC it is */
	uint32_t qkey;
	uint32_t windows; /* of type 2, bound to it */
	bool established_told;
	struct wire_pkt out;	 /* addresses filled in when connected */
	struct ibv_qp_attr attr; /* as set by modify, for query */
	struct ibv_qp_cap cap;
	struct recv_op recv; /* large, and only receives use it */
	struct probe probe;
};
STATIC_ASSERT(offsetof(struct nic_qp, from) < CACHE_LINE, "the first line");
STATIC_ASSERT(offsetof(struct nic_qp, req.ahead_psn) <= 3 * CACHE_LINE,
	      "the first three lines");
STATIC_ASSERT(sizeof(struct sendq) == CACHE_LINE, "the line of a send queue");
STATIC_ASSERT(offsetof(struct responder, ack_psn) <= CACHE_LINE,
	      "the line of a responder");

struct nic_ah {
	struct nic *nic;
	struct nic_pd *pd;
	uint32_t refs;
	struct env_addr dst;
	uint8_t sgid_index;
	uint8_t tos;
	uint8_t ttl;
};

/* Moves the queue pair to the error state and flushes both queues. */
void qp_fail(struct nic_qp *qp);
/* A request has completed with an error. That ends a connection; for datagrams
 * it ends only the send queue (IBA 10.3.1.6). */
void qp_fail_sends(struct nic_qp *qp);
void qp_event(struct nic_qp *qp, enum ibv_event_type type);
/* Completes the oldest send request. */
void qp_complete_send(struct nic_qp *qp, enum ibv_wc_status status);
/* Completes qp->recv. */
void qp_complete_recv(struct nic_qp *qp, struct nic_cqe *cqe);
/* Completes a receive by a message that uses only its immediate value. */
void qp_complete_notice(struct nic_qp *qp, uint64_t wr_id,
			const struct wire_pkt *pkt, enum ibv_wc_opcode opcode);
void qp_flush_sends(struct nic_qp *qp);
void qp_flush_recvs(struct nic_qp *qp);
void qp_forget(struct nic_qp *qp); /* back to RESET: queues emptied */
/* One more request is posted and not completed. */
void qp_count_posted(struct nic_qp *qp);
/* Are all messages that were begun also answered? One may be sent in part only,
 * or have to be sent again. */
static inline bool qp_is_drained(const struct nic_qp *qp)
{
	return qp->req.una_psn == qp->req.next_psn;
}
int ah_fill(struct nic *nic, const struct ibv_ah_attr *attr,
	    struct nic_ah *ah) MUST_CHECK;
void ah_get(struct nic_ah *ah);
void ah_put(struct nic_ah *ah);

/* Whether this packet ends a piece in which a READ is requested. */
static inline bool qp_ends_chunk(const struct nic_qp *qp, uint32_t i)
{
	return qp->lossy && (i + 1) % NIC_READ_CHUNK_PACKETS == 0;
}

/* ---- requester.c, completer.c, responder.c, ud.c, direct.c -------------- */

/* Sends what may be sent, for at most one turn. False: the path was full. */
bool requester_run(struct nic_qp *qp);
/* The same for what is in the send queue. */
bool requester_run_queued(struct nic_qp *qp);
/* requester_timer.c. Something was sent or answered: restarts the timer. */
void requester_start_timer(struct nic_qp *qp);
void requester_set_rto(struct nic_qp *qp);
static inline void requester_start_rto(struct nic_qp *qp)
{
	if (UNLIKELY(qp->lossy))
		requester_set_rto(qp);
}
void requester_reset(struct nic_qp *qp);
void requester_stop_timers(struct nic_qp *qp);
/* Sends again from the oldest packet that was not acknowledged. */
void requester_go_back(struct nic_qp *qp);
bool requester_is_new_loss(struct nic_qp *qp, uint32_t psn);
bool requester_is_new_nak(const struct nic_qp *qp);
/* One retry is used up: goes back, or fails the queue pair. */
void requester_retry(struct nic_qp *qp, enum ibv_wc_status exhausted);
/* The peer's answer says, or implies, that something was lost. */
void requester_resend(struct nic_qp *qp);
void requester_progress(struct nic_qp *qp);
bool requester_has_work(const struct nic_qp *qp);

void completer_input(struct nic_qp *qp, const struct wire_pkt *pkt);

void responder_input(struct nic_qp *qp, const struct wire_pkt *pkt);
/* nak.c. The expected packet cannot be taken now; the peer repeats it. */
void nak_expected(struct nic_qp *qp, uint8_t syndrome);
/* Packet `psn` is refused: the queue pair ends once the NAK has left, after the
 * answers that are owed. The second also sends what it can now. */
void nak_refuse(struct nic_qp *qp, uint8_t syndrome, uint32_t psn);
void nak_refuse_now(struct nic_qp *qp, uint8_t syndrome, uint32_t psn);
/* Sends the NAK that waits. False: the path is full. */
bool nak_send(struct nic_qp *qp);
/* answer.c. False: the path is full. */
bool answer_nak(struct nic_qp *qp, uint8_t syndrome, uint32_t psn);
/* Sends responses and acknowledgements. False: the path was full. */
bool responder_run(struct nic_qp *qp);
bool responder_has_work(const struct nic_qp *qp);
int responder_init(struct nic_qp *qp, uint32_t res_count) MUST_CHECK;
void responder_release(struct nic_qp *qp);
/* ack_hold.c. True if only an acknowledgement is due and it may wait;
 * nic_release_acks then sends it. */
bool ack_hold(struct nic_qp *qp);
/* Writes a piece of a message into the receive in progress. */
int recv_scatter(struct nic_qp *qp, uint32_t offset, const uint8_t *src,
		 uint32_t len_bytes) MUST_CHECK;

/* Sends one datagram: 1 sent, 0 the path is full, or -errno. */
int ud_send(struct nic_qp *qp, struct send_slot *slot,
	    const struct send_op *op);
void ud_input(struct nic_qp *qp, const struct wire_pkt *pkt,
	      const uint8_t *frame);
void ud_paths_close(struct nic *nic);
void ud_path_down(struct nic *nic, struct env_path *path);

/* Executes the request on mapped memory. 1: done; 0: not possible, send it;
 * -errno: it failed like a remote access. */
int direct_execute(struct nic_qp *qp, const struct send_op *op);
/* Fetches into the cache what the next READs in the queue will copy. */
void direct_foretell(struct nic_qp *qp);

enum {
	DIRECT_FAR_SURE = 64,	   /* times without a mapping, then ... */
	DIRECT_FAR_ASK_EVERY = 16, /* ... one in so many asks */
};

/*
 * Asking for a mapping of memory that is not granted costs a cache miss or two,
 * so after the env had none for a while it is asked only now and then. One
 * request may lead here twice, hence the two chances in a row.
 */
static inline bool direct_is_far(struct nic_qp *qp, uint32_t rkey)
{
	return qp->req.far_key == rkey &&
	       qp->req.far_misses >= DIRECT_FAR_SURE &&
	       ++qp->req.far_misses % DIRECT_FAR_ASK_EVERY >= 2;
}

/* ---- touch.c: registered memory ------------------------------------------
 * All access to it goes through these, because the program may have unmapped
 * it. -EFAULT: it has, and a part may be done; landing_hit says which. */

/* Copies in order, for programs that poll what a peer writes. */
int touch_place(uint8_t *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
int touch_write(uint8_t *dst, const void *src, uint32_t len) MUST_CHECK;
int touch_read(void *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
/* Both are registered. */
int touch_move(uint8_t *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
int touch_atomic(const struct atomic_op *op, uint8_t *host,
		 uint64_t *original) MUST_CHECK;
/* Builds a frame around registered memory; 0: it is gone. */
size_t touch_stamp(const struct wire_stamp *stamp, const struct wire_vary *v,
		   uint8_t *frame) MUST_CHECK;

/* ---- auth.c: packets with a MAC ----------------------------------------- */

/* The queue pair has a key; what modify set (its mask) is in place. */
void auth_start(struct nic_qp *qp, int mask);
void auth_forget(struct nic_qp *qp);
/* Whether it has a key, and its path is one that needs it. */
bool auth_is_on(const struct nic_qp *qp);
/* The MAC of qp->out, whose payload is pointed to or in its place in
 * `frame`. */
void auth_sign(struct nic_qp *qp, const uint8_t *frame);
/* Does the packet come from the peer, and is its number right? The payload is
 * then a private copy, valid until the next call. */
bool auth_check(struct nic_qp *qp, struct wire_pkt *pkt);

/* ---- guess.c: sources that guess keys ----------------------------------- */

struct guess_source {
	uint8_t ip[16];
	uint32_t slot;
	uint32_t failures;
	uint64_t since_ns;
	uint64_t blocked_until_ns;
	uint64_t born; /* the last connection before its first failure */
};

struct guess {
	struct guess_source sources[NIC_GUESS_SOURCES];
	uint64_t blocked_until_ns; /* no source is blocked after this */
	uint64_t births;	   /* connections made so far */
	uint32_t used;
	uint32_t next; /* to replace when full */
};

void guess_failure(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn);
/* Whether the source is blocked: guesses without a connection are ignored. */
bool guess_is_blocked(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn);
/* Whether this packet is dropped, because its connection is newer than the
 * source's guesses. */
bool guess_drops(struct nic *nic, const struct nic_qp *qp,
		 const struct wire_pkt *pkt);

/* ---- nic.c -------------------------------------------------------------- */

struct ud_path {
	uint8_t ip[16];
	uint32_t slot;
	struct env_path *path;
};

struct nic {
	struct env *env;
	struct nic_config cfg;
	const struct nic_upcalls *up;
	uint64_t *counters;
	uint64_t *own_counters;
	struct nic_qp **qps; /* by the low bits of the QPN */
	struct list ready;   /* domains whose QPs have something to send */
	struct list held;    /* QPs whose acknowledgement waits */
	bool holds_acks;
	atomic_uint held_most; /* the most messages that one of them covers */
	struct key_table keys;
	struct timer_wheel wheel;
	struct guess guess;
	atomic_uint outstanding;
	uint32_t qp_count;
	uint32_t cq_count;
	uint32_t srq_count;
	uint32_t pd_count;
	uint32_t ah_count;
	uint32_t srq_numbers;
	uint64_t dm_used;
	uint32_t ud_path_count;
	struct ud_path ud_paths[NIC_UD_PATH_MAX];
	struct cq_numbers counting;
	uint64_t turn_end; /* when nic_work is that much, the turn is over */
	uint32_t crowd;	   /* flushes in which domains share */
	uint32_t flush;	   /* how many there were */
	struct nic_pd *last_domain; /* that did something, or NULL */
	uint32_t least_used;	    /* by one domain, when there were others */
	uint64_t chain_bytes;	    /* that chains moved within this NIC */
	uint64_t input_work;	    /* when nic_take_domain was called last */
	struct nic_pd
		*input_pd; /* of the last packet that was taken, or NULL */
	bool chains_due;   /* a chain has its turn before nic_flush returns */
	struct stamps stamps;
};

/* What was done so far, in the measure of turns among domains: packets, large
 * ones more than small ones, and steps of chains, which are less. */
static inline uint64_t nic_work(const struct nic *nic)
{
	return nic->counters[NIC_C_tx_frames] +
	       nic->counters[NIC_C_chain_steps] / NIC_TURN_STEPS +
	       ((nic->counters[NIC_C_tx_bytes] + nic->chain_bytes) >>
		NIC_TURN_SHIFT);
}

/* A domain does something now, and another one did before: both are there, and
 * for a while they share. */
void turn_changes(struct nic_pd *pd);

/* It did more lately than another one that is there. */
bool turn_is_greedy(struct nic_pd *pd);

static inline void turn_of(struct nic_pd *pd)
{
	if (UNLIKELY(pd->nic->last_domain != pd))
		turn_changes(pd);
}

/* What was done outside of turns, because somebody posted it, counts, too. */
static inline void turn_count(struct nic_pd *pd, uint64_t work)
{
	if (!work)
		return;
	turn_of(pd);
	if (UNLIKELY(pd->nic->crowd))
		pd->used += (uint32_t)work * NIC_USED_PART;
}

/* Another domain has its turn now; whoever asks becomes ready again. */
static inline bool turn_is_over(const struct nic *nic)
{
	return UNLIKELY(nic->crowd) && nic_work(nic) >= nic->turn_end;
}

static inline void count(struct nic *nic, enum nic_counter c)
{
	nic->counters[c]++;
}

/* A responder did something that a witness wants to know. */
void nic_tell_witness(const struct nic_qp *qp, enum nic_deed_kind kind,
		      uint32_t psn, uint32_t packets, uint8_t syndrome);

static inline void witness(const struct nic_qp *qp, enum nic_deed_kind kind,
			   uint32_t psn, uint32_t packets)
{
	if (UNLIKELY(qp->nic->cfg.witness != NULL))
		nic_tell_witness(qp, kind, psn, packets, 0);
}

static inline struct nic_qp *qp_find(const struct nic *nic, uint32_t qpn)
{
	struct nic_qp *qp = nic->qps[qpn & (NIC_QP_MAX - 1)];

	/* Peers that do not know our slot use the plain number. */
	return qp && (qp->qpn == qpn || qpn == NIC_GSI_INDEX) ? qp : NULL;
}

/* The QP has something to send and gets its turn in nic_flush. */
static inline void qp_make_ready(struct nic_qp *qp)
{
	struct nic_pd *pd = qp->pd->turns;

	if (!list_is_empty(&qp->ready))
		return;
	list_append(&pd->ready, &qp->ready);
	if (list_is_empty(&pd->turn))
		list_append(&qp->nic->ready, &pd->turn);
}

/* May `qp` use `k`, which may be NULL, for all of [va, va + len)? On KEY_OK,
 * *host is va. */
static inline enum key_verdict key_covers(const struct nic_qp *qp,
					  const struct nic_key *k, uint64_t va,
					  uint64_t len, uint32_t access,
					  uint8_t **host)
{
	uint64_t offset;

	if (UNLIKELY(!k))
		return KEY_UNKNOWN;
	if (UNLIKELY(k->pd != qp->pd || (k->qp && k->qp != qp)) &&
	    !PLANTED(any_domain))
		return KEY_OTHER_PD;
	if (UNLIKELY((k->access & access) != access) && !PLANTED(any_right))
		return KEY_NO_ACCESS;
	/* An address below iova gives a huge offset. */
	offset = va - k->iova;
	if (UNLIKELY(offset > k->length || len > k->length - offset) &&
	    !(PLANTED(past_end) && offset + len == k->length + 1)) {
		enum key_verdict v = k->holes ? key_holes_cover(k, offset, len)
					      : KEY_OUT_OF_BOUNDS;

		if (v != KEY_OK)
			return v;
	}
	*host = k->host + offset;
	return KEY_OK;
}

/* The same by the key's value. */
static inline enum key_verdict key_check(const struct nic_qp *qp, uint32_t key,
					 uint64_t va, uint64_t len,
					 uint32_t access, uint8_t **host)
{
	return key_covers(qp, key_find(&qp->nic->keys, key), va, len, access,
			  host);
}

/* Where the memory is, if its key still covers it; NULL: it does not. */
static inline uint8_t *chain_memory_host(const struct nic_qp *qp,
					 struct chain_memory *m)
{
	return LIKELY(m->epoch == qp->nic->keys.epoch)
		       ? m->host
		       : chain_memory_find(qp, m);
}

/* Appends a completion: room for it, or NULL when the queue overflowed; to be
 * filled in completely and shown with cq_end. */
static inline struct nic_cqe *cq_begin(struct nic_cq *cq)
{
	uint32_t produced =
		atomic_load_explicit(&cq->produced, memory_order_relaxed);
	/* CQ-2, with nic_cq_pop: no entry is overwritten while it is read. */
	uint32_t consumed =
		atomic_load_explicit(&cq->consumed, memory_order_acquire);

	if (UNLIKELY(produced - consumed > cq->mask))
		return cq_overflow(cq);
	return &cq->ring[produced & cq->mask];
}

static inline void cq_show(struct nic_cq *cq, uint32_t produced)
{
	count(cq->nic, NIC_C_completions);
	/* CQ-1, with nic_cq_peek: the poller never sees half an entry. */
	atomic_store_explicit(&cq->produced, produced + 1,
			      memory_order_release);
}

static inline void cq_end(struct nic_cq *cq, struct nic_cqe *cqe)
{
	if (UNLIKELY(cq->timestamps || PLANTED_ANY() || cq->arm != CQ_ARM_NONE))
		cq_end_slow(cq, cqe);
	else
		cq_show(cq, atomic_load_explicit(&cq->produced,
						 memory_order_relaxed));
}

/* Is it an address of this NIC? */
bool nic_is_ours(const struct nic *nic, const uint8_t ip[16]);
/* The MTU of the port, as enum ibv_mtu. */
enum ibv_mtu nic_active_mtu(const struct nic *nic);

/* The source port for a path: `any` where the env does not care. */
static inline uint16_t nic_src_port(const struct nic *nic,
				    struct env_path *path, uint16_t any)
{
	const struct env_ops *ops = nic->env->ops;
	uint16_t port = path && ops->path_src_port
				? ops->path_src_port(nic->env, path)
				: 0;

	return port ? port : any;
}

/* Everything was handed to the env for now and should be sent. */
static inline void nic_tx_flush(struct nic *nic, bool more)
{
	if (nic->env->ops->tx_flush)
		nic->env->ops->tx_flush(nic->env, more);
}

/* Sends qp->out, whose payload is in place in `frame`. */
void nic_tx(struct nic_qp *qp, struct env_path *path, uint8_t *frame);
/* Sends qp->out to the connected peer; its payload is registered memory, or
 * there is none. 1: sent; 0: the path is full, and nothing happened; -EFAULT:
 * the memory is gone, and nothing was sent. */
int nic_send(struct nic_qp *qp);
/* The same by a stamp, without qp->out. */
int nic_send_stamped(struct nic_qp *qp, const struct wire_stamp *stamp,
		     const struct wire_vary *v);

#endif
