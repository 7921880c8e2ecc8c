/* SPDX-License-Identifier: Apache-2.0 */
/* The responder: what it remembers, its answers, acknowledgements and NAKs. */
#ifndef AQ_NIC_RESPONDER_PRIV_H
#define AQ_NIC_RESPONDER_PRIV_H

#include "base/base.h"

struct nic_qp;
struct wire_pkt;

struct walk_res;

enum resp_kind {
	RESP_READ,
	RESP_ATOMIC,
	RESP_WALK,
	RESP_WALKING, /* a walk that has no answer yet */
};

/* A READ, atomic or walk that was answered, or is being answered. */
struct resp_res {
	uint32_t first_psn;
	uint32_t last_psn;
	uint32_t next_psn; /* next response packet to send */
	uint32_t rkey;
	uint32_t length;
	bool used;
	uint8_t kind;	/* enum resp_kind */
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
	uint32_t ahead_psn;	/* the last packet that came too early ... */
	uint32_t ahead_count;	/* ... and how many came since the NAK */
	uint32_t nak_psn;	/* the packet that the NAK is about */
	struct walk_res *walks; /* beside res; NULL: it takes no walks */
	uint8_t recv_status; /* why the receive in use failed; 0: it has not */
};
STATIC_ASSERT(offsetof(struct responder, ack_psn) <= CACHE_LINE,
	      "the line of a responder");

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

#endif
