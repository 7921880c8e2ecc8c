/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of life from the peer of a connection that has nothing to say. The
 * question is a SEND without payload that has the number of the packet before
 * the next. To the peer it is an old packet whose acknowledgement was lost: it
 * acknowledges it again and does nothing else, before it looks at rights, keys
 * or receives (IBA 9.7.5.1.4, C9-105). No responder can do without that, so any
 * adapter answers, and nothing about the connection changes at either end.
 */
#include <errno.h>

#include "qp_priv.h"

/* Who has requests under way finds out by their answers or retries. */
static bool is_idle(const struct nic_qp *qp)
{
	return qp->type == IBV_QPT_RC && qp->state == IBV_QPS_RTS &&
	       qp->req.una_psn == qp->req.next_psn;
}

static bool ask(struct nic_qp *qp)
{
	struct wire_pkt *out = &qp->out;

	out->opcode = WIRE_RC_SEND_ONLY;
	out->psn = wire_psn_add(qp->req.next_psn, WIRE_PSN_MASK);
	out->dest_qpn = qp->dest_qpn;
	out->solicited = false;
	out->ack_req = true;
	out->becn = false;
	out->payload = NULL;
	out->payload_len = 0;
	if (!nic_send(qp))
		return false;
	count(qp->nic, NIC_C_probes);
	nic_tx_flush(qp->nic, false);
	return true;
}

int nic_qp_probe(struct nic *nic, uint32_t qpn)
{
	struct nic_qp *qp = qp_find(nic, qpn);
	struct probe *p;
	bool silent;

	if (!qp || qp->type != IBV_QPT_RC)
		return -EINVAL;
	if (qp->state == IBV_QPS_ERR && qp->req.gave_up)
		return 1;
	p = &qp->probe;
	silent = p->waits && p->epsn == qp->rsp.epsn &&
		 p->una_psn == qp->req.una_psn && is_idle(qp);
	p->epsn = qp->rsp.epsn;
	p->una_psn = qp->req.una_psn;
	p->waits = is_idle(qp) && ask(qp);
	return silent;
}
