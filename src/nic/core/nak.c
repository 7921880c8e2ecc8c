/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The responder's NAKs, which wait their turn. A NAK must not overtake the
 * answers to what came before it, or the requester takes those for lost. One
 * that refuses a request also ends the queue pair, and the end waits with it:
 * answers that are owed leave first, and nothing new is executed meanwhile.
 */
#include "base/plant.h"
#include "qp_priv.h"
#include "walk_priv.h"

void nak_expected(struct nic_qp *qp, uint8_t syndrome)
{
	qp->rsp.nak_due = syndrome;
	qp->rsp.nak_psn = qp->rsp.epsn;
	if (qp->rsp.res_pending || qp->rsp.ack_due || !nak_send(qp))
		qp_make_ready(qp);
}

/* Answers from packet `psn` on, or all, will never be sent. */
static void forget_answers(struct nic_qp *qp, uint32_t psn, bool all)
{
	struct responder *rsp = &qp->rsp;
	uint32_t i;

	for (i = 0; i < rsp->res_count; i++) {
		struct resp_res *res = &rsp->res[i];

		if (res->pending &&
		    (all || wire_psn_diff(res->last_psn, psn) >= 0)) {
			if (rsp->walks)
				walk_forget(walk_of(rsp, res));
			res->pending = false;
			rsp->res_pending--;
		}
	}
}

void nak_refuse(struct nic_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *rsp = &qp->rsp;

	ASSERT(wire_psn_diff(psn, rsp->epsn) <= 0);
	/* A READ whose memory is gone is older than what was refused before
	 * it. */
	forget_answers(qp, psn, PLANTED(nak_first));
	if (UNLIKELY(qp->nic->cfg.witness != NULL))
		nic_tell_witness(qp, NIC_DEED_REFUSED, psn, 1, syndrome);
	rsp->refuses = true;
	rsp->nak_due = syndrome;
	rsp->nak_psn = psn;
}

void nak_refuse_now(struct nic_qp *qp, uint8_t syndrome, uint32_t psn)
{
	nak_refuse(qp, syndrome, psn);
	if (qp->rsp.res_pending || !nak_send(qp))
		qp_make_ready(qp);
}

/* The NAK has left, and the queue pair follows it. */
static void end(struct nic_qp *qp, uint8_t syndrome)
{
	if (syndrome == WIRE_NAK_ACCESS)
		qp_event(qp, IBV_EVENT_QP_ACCESS_ERR);
	else if (syndrome == WIRE_NAK_INVALID)
		qp_event(qp, IBV_EVENT_QP_REQ_ERR);
	qp_fail(qp);
}

bool nak_send(struct nic_qp *qp)
{
	struct responder *rsp = &qp->rsp;
	uint8_t syndrome = rsp->nak_due;

	if (!answer_nak(qp, syndrome, rsp->nak_psn))
		return false;
	/* Where packets are lost it is, too. Losing this one costs a timeout,
	 * or all retries if nobody is left to repeat it: two copies. The
	 * requester heeds one. */
	if (qp->lossy && !wire_syndrome_is_rnr(syndrome))
		(void)answer_nak(qp, syndrome, rsp->nak_psn);
	rsp->nak_due = 0;
	if (rsp->refuses)
		end(qp, syndrome);
	return true;
}
