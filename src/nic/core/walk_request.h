/* SPDX-License-Identifier: Apache-2.0 */
/* The requester's half of walks: its one packet, and what the answer leaves in
 * the list of the request. */
#ifndef AQ_NIC_WALK_REQUEST_H
#define AQ_NIC_WALK_REQUEST_H

#include "base/base.h"

struct nic_qp;
struct send_op;
struct send_slot;
struct wire_pkt;

/* Whether a list of this length can take an answer of one packet, and has the
 * bytes that the request brings. */
bool walk_has_room(const struct nic_qp *qp, uint64_t length,
		   uint32_t send_bytes);
/* Completes qp->out, which is filled in as for a READ, and sends it. 1: sent;
 * 0: the path is full; -EFAULT: no valid key for what it brings. */
int walk_send(struct nic_qp *qp, const struct send_slot *slot,
	      const struct send_op *op) MUST_CHECK;
/* Writes the result and the pad. -EBADMSG: this is no answer to that request;
 * -EFAULT: no valid key for the list. */
int walk_accept(struct nic_qp *qp, struct send_slot *slot,
		const struct wire_pkt *pkt) MUST_CHECK;

#endif
