/* SPDX-License-Identifier: Apache-2.0 */
/* The requester's half of walks. What it waits for, sends again and completes
 * is as for READs, in requester.c and completer.c. */
#include "walk_request.h"

#include <errno.h>

#include "access_priv.h"

enum {
	RESULT_BYTES = sizeof(struct nic_walk_result),
};
STATIC_ASSERT((int)RESULT_BYTES < (int)WALK_WIRE_OVERHEAD &&
		      (int)WALK_WIRE_OVERHEAD < (int)NIC_MTU_MIN,
	      "a list that fits is one packet of numbers");
STATIC_ASSERT((int)NIC_WALK_STAYS == (int)WALK_WIRE_HOPS_MAX, "as on the wire");

bool walk_has_room(const struct nic_qp *qp, uint64_t length,
		   uint32_t send_bytes)
{
	return length >= RESULT_BYTES &&
	       length - RESULT_BYTES <= qp->mtu - WALK_WIRE_OVERHEAD &&
	       send_bytes <= length - RESULT_BYTES;
}

/* Where byte `offset` of the list is, if it has one segment and no key changed
 * since that was checked; else NULL. */
static inline uint8_t *known_place(const struct nic_qp *qp,
				   const struct send_slot *slot,
				   uint32_t offset)
{
	return LIKELY(slot->epoch == qp->nic->keys.epoch) ? slot->host + offset
							  : NULL;
}

static inline int fetch(struct nic_qp *qp, const struct send_slot *slot,
			const struct send_op *op, uint8_t *to)
{
	const uint8_t *from = known_place(qp, slot, RESULT_BYTES);
	const uint32_t bytes = op->walk.send_bytes;

	/* Memory that is gone is the list's to refuse, and to count. */
	if (LIKELY(from && !touch_read(to, from, bytes)))
		return 0;
	return sendq_gather(qp, &op->data, RESULT_BYTES, to, bytes);
}

static inline int deliver(struct nic_qp *qp, const struct send_slot *slot,
			  uint32_t offset, const void *from, uint32_t bytes)
{
	uint8_t *to = known_place(qp, slot, offset);

	return LIKELY(to && !touch_write(to, from, bytes))
		       ? 0
		       : sendq_scatter(qp, &slot->data, offset, from, bytes);
}

int walk_send(struct nic_qp *qp, const struct send_slot *slot,
	      const struct send_op *op)
{
	struct env *env = qp->nic->env;
	struct wire_pkt *out = &qp->out;
	uint32_t bytes = op->walk.send_bytes;
	size_t header =
		wire_header_bytes(WIRE_RC_WALK, wire_is_ipv4(out->dst_ip));
	uint8_t *frame;

	/* The queue is its owner's memory: a request that is sent again may
	 * have been rewritten since it was checked. */
	if (UNLIKELY(bytes > slot->length - RESULT_BYTES))
		return -EFAULT;
	frame = env->ops->tx_begin(env, qp->path, wire_frame_bound(bytes));
	if (UNLIKELY(!frame))
		return 0;
	if (UNLIKELY(fetch(qp, slot, op, frame + header))) {
		env->ops->tx_end(env, qp->path, 0);
		return -EFAULT;
	}
	out->walk = (struct wire_walk){
		.at = op->va,
		.program = op->walk.program,
		.key = op->rkey,
		.left = op->walk.iterations,
		.pad_bytes = (uint16_t)(op->length - RESULT_BYTES),
		.hops = op->walk.forward ? 0 : WALK_WIRE_HOPS_MAX,
	};
	out->payload_len = bytes;
	nic_tx(qp, qp->path, frame);
	return 1;
}

int walk_accept(struct nic_qp *qp, struct send_slot *slot,
		const struct wire_pkt *pkt)
{
	struct nic_walk_result result = {
		.at = pkt->walk.at,
		.program = pkt->walk.program,
		.space = pkt->walk.key,
		.left = pkt->walk.left,
		.took = pkt->walk.took,
		.pad_bytes = pkt->walk.pad_bytes,
		.status = pkt->walk.status,
		/* Of one that was to stay there is nothing to say. */
		.hops = qp->req.alone ? pkt->walk.hops : 0,
	};

	if (slot->opcode != WQE_WALK ||
	    pkt->walk.status >= WALK_WIRE_STATUSES ||
	    pkt->payload_len != pkt->walk.pad_bytes ||
	    pkt->payload_len > slot->length - RESULT_BYTES)
		return -EBADMSG;
	if (deliver(qp, slot, 0, &result, RESULT_BYTES) ||
	    deliver(qp, slot, RESULT_BYTES, pkt->payload, pkt->payload_len))
		return -EFAULT;
	slot->length = RESULT_BYTES + pkt->payload_len;
	return 0;
}
