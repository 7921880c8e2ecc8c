/* SPDX-License-Identifier: Apache-2.0 */
/* Managed receive queues: entries in memory, enabled by RECV_ENABLE, by the
 * application, or by a doorbell record that messages may write to. */
#include "nic_priv.h"

/* The owner learns why: nothing else will ever be received here. */
static void fail(struct nic_qp *qp)
{
	struct nic_cqe cqe = {.status = IBV_WC_LOC_PROT_ERR};

	count(qp->nic, NIC_C_chain_faults);
	qp->recv.wr_id = qp->rq.tail;
	qp_complete_recv(qp, &cqe);
	qp_fail(qp);
}

/* An index that is nonsense enables nothing: whoever wrote it hurts itself. */
static bool read_doorbell(struct nic_qp *qp)
{
	const uint8_t *host = chain_memory_host(qp, &qp->chain->dbr);
	be32 index;

	if (!host)
		return false;
	memcpy(&index, host, sizeof(index));
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
		fail(qp);
		return false;
	}
	return q->head != q->tail;
}
