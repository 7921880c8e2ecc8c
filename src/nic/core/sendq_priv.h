/* SPDX-License-Identifier: Apache-2.0 */
/* Send queues: work queue entries, and what the NIC remembers beside them. */
#ifndef AQ_NIC_SENDQ_PRIV_H
#define AQ_NIC_SENDQ_PRIV_H

#include <infiniband/verbs.h>

#include "base/atomic_op.h"
#include "nic.h"
#include "wire/wqe.h"
#include "wqe_op.h"

struct nic_ah;

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
STATIC_ASSERT(sizeof(struct sendq) == CACHE_LINE, "the line of a send queue");

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
	struct { /* of a walk */
		uint64_t program;
		uint32_t iterations;
		uint32_t send_bytes;
		bool forward;
	} walk;
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

#endif
