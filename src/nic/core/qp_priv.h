/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs. */
#ifndef AQ_NIC_QP_PRIV_H
#define AQ_NIC_QP_PRIV_H

#include "congestion.h"
#include "memory_priv.h"
#include "nic_priv.h"
#include "recvq_priv.h"
#include "requester_priv.h"
#include "responder_priv.h"
#include "sendq_priv.h"
#include "wire/wire.h"

struct chain;
struct hops;
struct nic_auth;
struct nic_cq;
struct nic_srq;
struct wire_stamp;
struct wire_vary;

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
	uint32_t flow; /* see wire_stamps_flow; 0: none, as of datagrams */
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
	uint32_t windows;  /* of type 2, bound to it */
	uint32_t walk_pad; /* bytes; 0: it takes no walks */
	struct hops *hops; /* NULL: it takes none that a switch carries on */
	bool established_told;
	bool is_reached;	 /* its peer may reach memory by itself */
	bool path_down;		 /* the process at the other end is gone */
	struct wire_pkt out;	 /* addresses filled in when connected */
	struct ibv_qp_attr attr; /* as set by modify, for query */
	struct ibv_qp_cap cap;
	struct recv_op recv; /* large, and only receives use it */
	struct probe probe;
};
STATIC_ASSERT(offsetof(struct nic_qp, from) < CACHE_LINE, "the first line");
STATIC_ASSERT(offsetof(struct nic_qp, req.ahead_psn) <= 3 * CACHE_LINE,
	      "the first three lines");

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
/* The connection ends, or its peer may do less than before. */
void qp_end_reach(struct nic_qp *qp);
void qp_forget(struct nic_qp *qp); /* back to RESET: queues emptied */
/* One more request is posted and not completed. */
void qp_count_posted(struct nic_qp *qp);

/* Are all messages that were begun also answered? One may be sent in part only,
 * or have to be sent again. */
static inline bool qp_is_drained(const struct nic_qp *qp)
{
	return qp->req.una_psn == qp->req.next_psn;
}

/* Whether this packet ends a piece in which a READ is requested. */
static inline bool qp_ends_chunk(const struct nic_qp *qp, uint32_t i)
{
	return qp->lossy && (i + 1) % NIC_READ_CHUNK_PACKETS == 0;
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
