/* SPDX-License-Identifier: Apache-2.0 */
/* Managed receive queues: entries in memory, enabled by RECV_ENABLE, by the
 * application, or by a doorbell record that messages may write to. */
#include <string.h>

#include "access_priv.h"
#include "base/landing.h"
#include "cq_priv.h"

/* The owner learns why when the queue pair has refused the message and ends:
 * nothing else will ever be received here. */
void chain_recv_fail(struct nic_qp *qp)
{
	count(qp->nic, NIC_C_chain_faults);
	qp->recv = (struct recv_op){.active = true, .wr_id = qp->rq.tail};
	qp->rsp.recv_status = IBV_WC_LOC_PROT_ERR;
}

/* An index that is nonsense enables nothing: whoever wrote it hurts itself. */
static bool read_doorbell(struct nic_qp *qp)
{
	const uint8_t *host = chain_memory_host(qp, &qp->chain->dbr);
	be32 index;

	if (!host || touch_read(&index, host, sizeof(index)))
		return false;
	(void)!nic_qp_enable_recv(qp, be32_get(index));
	return true;
}

bool chain_recv_ready(struct nic_qp *qp)
{
	struct chain *ch = qp->chain;
	struct recvq *q = &qp->rq;
	bool ok = true;

	if (qp->state == IBV_QPS_ERR)
		return false;
	if (q->head == q->tail && ch->dbr.bytes)
		ok = read_doorbell(qp);
	q->wqes = ok ? chain_memory_host(qp, &ch->rq) : NULL;
	if (UNLIKELY(!q->wqes)) {
		chain_recv_fail(qp);
		return false;
	}
	return q->head != q->tail;
}

/* ---- the short way ------------------------------------------------------ */

/* Where a piece of a message goes; without a source: the immediate value. */
struct piece {
	uint8_t *dst;
	const uint8_t *src;
	uint32_t bytes;
};

/*
 * Reads the oldest receive, once, and finds a place for all of the packet.
 * Returns how many pieces there are; 0: not all of them can be written, or the
 * receive is not an ordinary one.
 */
static uint32_t find_places(const struct nic_qp *qp, const uint8_t *wqe,
			    const struct wire_pkt *pkt, struct piece *to)
{
	const struct wqe_data *seg = (const struct wqe_data *)wqe;
	bool has_imm = wire_opcodes[pkt->opcode].flags & WIRE_OP_IMM;
	const uint8_t *src = pkt->payload;
	uint32_t left = pkt->payload_len, imms = 0, n = 0, s;
	const struct nic_key *key = NULL;

	for (s = 0; s < qp->rq.max_sge; s++, seg++) {
		uint32_t lkey = be32_get(seg->lkey);
		uint32_t bytes = be32_get(seg->byte_count);
		bool is_imm = bytes & WQE_INLINE_FLAG;

		if (lkey == WQE_INVALID_LKEY)
			break;
		bytes = is_imm ? (uint32_t)sizeof(pkt->imm)
			       : u32_min(bytes, left);
		if (!key || key->key != lkey)
			key = key_find(&qp->nic->keys, lkey);
		if (n == NIC_RECV_PLACES || bytes == 0 ||
		    (is_imm && (!has_imm || imms++ == NIC_RECV_IMMS)) ||
		    key_covers(qp, key, be64_get(seg->addr), bytes,
			       IBV_ACCESS_LOCAL_WRITE, &to[n].dst) != KEY_OK)
			return 0;
		to[n].src = is_imm ? NULL : src;
		to[n++].bytes = bytes;
		if (!is_imm) {
			src += bytes;
			left -= bytes;
		}
	}
	return left ? 0 : n;
}

static inline void land(const struct piece *to, const struct wire_pkt *pkt)
{
	if (!to->src)
		memcpy(to->dst, &pkt->imm, sizeof(pkt->imm));
	else if (to->bytes == 8)
		memcpy(to->dst, to->src, 8);
	else if (to->bytes == 16)
		memcpy(to->dst, to->src, 16);
	else
		memcpy(to->dst, to->src, to->bytes);
}

enum {
	DELIVERED = 1,
	REFUSED,
};

/* Reads the receive and writes the message. */
static size_t deliver(void *qp, const void *pkt, uintptr_t wqe)
{
	struct piece to[NIC_RECV_PLACES];
	uint32_t n = find_places(qp, (const uint8_t *)wqe, pkt, to);

	for (uint32_t i = 0; i < n; i++)
		land(&to[i], pkt);
	return n ? DELIVERED : REFUSED;
}

HOT bool chain_recv_call(struct nic_qp *qp, const struct wire_pkt *pkt)
{
	struct recvq *q = &qp->rq;
	const uint8_t *ring, *wqe;

	if (q->head == q->tail || qp->recv.active || !qp->recv_cq->counting)
		return false;
	ring = chain_memory_host(qp, &qp->chain->rq);
	if (!ring)
		return false;
	wqe = ring + (q->tail & (q->count - 1)) * q->stride;
	/* Any of that memory may be gone; who goes the long way finds out which
	 * it is. */
	if (landing_call(qp, pkt, (uintptr_t)wqe, deliver, 0, UINTPTR_MAX) !=
	    DELIVERED)
		return false;
	q->tail++;
	cq_counted(qp->recv_cq, qp, true);
	return true;
}
