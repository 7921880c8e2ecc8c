/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements that wait. Whoever sent a message that is answered by a
 * message waits for the answer; its acknowledgement only stands in the way: it
 * is the first thing that the peer's NIC sees when the next message comes, and
 * on a network it is a packet and a system call of its own. So it is held back
 * for some turns of whoever drives the NIC; by then it stands for several
 * messages, or leaves behind what the application sends next.
 */
#include "qp_priv.h"

void nic_hold_acks(struct nic *nic, bool on)
{
	nic->holds_acks = on;
}

HOT bool ack_hold(struct nic_qp *qp)
{
	struct responder *rsp = &qp->rsp;
	struct nic *nic = qp->nic;

	if (!nic->holds_acks || !rsp->ack_due || !rsp->ack_waits ||
	    rsp->res_pending || rsp->nak_due || rsp->marked ||
	    rsp->held >= NIC_ACK_HOLD_MAX)
		return false;
	if (list_is_empty(&qp->held)) {
		count(nic, NIC_C_acks_held);
		list_append(&nic->held, &qp->held);
	}
	if (rsp->held > nic_held_acks(nic))
		atomic_store_explicit(&nic->held_most, rsp->held,
				      memory_order_relaxed);
	return true;
}

HOT uint32_t nic_held_acks(const struct nic *nic)
{
	return atomic_load_explicit(&nic->held_most, memory_order_relaxed);
}

void nic_release_acks(struct nic *nic)
{
	atomic_store_explicit(&nic->held_most, 0, memory_order_relaxed);
	while (!list_is_empty(&nic->held)) {
		struct nic_qp *qp =
			container_of(nic->held.next, struct nic_qp, held);

		list_remove(&qp->held);
		if (responder_has_work(qp) && !responder_run(qp))
			qp_make_ready(qp);
	}
}
