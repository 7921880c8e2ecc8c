/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The direct port: one-sided requests on memory that the env has mapped are
 * executed here and now, after the checks that the responder would make. A
 * request that fails a check is sent instead, so that the error comes from
 * where it always comes from.
 */
#include <errno.h>

#include "direct_priv.h"
#include "wqe_shape.h"

static int copy(struct nic_qp *qp, const struct send_op *op, uint8_t *far)
{
	struct env *env = qp->nic->env;
	bool read = op->opcode == WQE_READ;
	uint32_t offset = 0;
	int err;

	while (offset < op->length) {
		uint32_t n = op->length - offset;
		uint8_t *near =
			sendq_piece(qp, &op->data, offset,
				    read ? IBV_ACCESS_LOCAL_WRITE : 0, &n);

		if (!near)
			return -EFAULT;
		err = env->ops->direct_copy(
			env, read ? ENV_DIRECT_READ : ENV_DIRECT_WRITE,
			far + offset, near, n);
		if (UNLIKELY(err)) {
			if (err != -EADDRNOTAVAIL)
				return err == -EINPROGRESS ? err : -EACCES;
			count(qp->nic, NIC_C_local_protection);
			return -EFAULT;
		}
		offset += n;
	}
	return 1;
}

static int atomic(struct nic_qp *qp, const struct send_op *op, uint8_t *far)
{
	struct env *env = qp->nic->env;
	uint64_t original;
	int err = env->ops->direct_atomic(env, &op->atomic, far, &original);

	if (err)
		return err == -EINPROGRESS ? err : -EACCES;
	if (sendq_scatter(qp, &op->data, 0, (const uint8_t *)&original,
			  sizeof(original)))
		return -EFAULT;
	return 1;
}

/* Where the data of a request are; 0 pieces: not all of them can be used. Those
 * in the queue begin in the middle of a word, which the env does not copy from,
 * and nobody else sees them: they are copied to a place that does. */
static unsigned list_pieces(struct nic_qp *qp, const struct send_op *op,
			    uint32_t local, struct env_piece near[],
			    uint8_t in_queue[NIC_INLINE_MAX])
{
	unsigned pieces = 0;

	if (op->data.is_inline) {
		if (op->length > NIC_INLINE_MAX ||
		    sendq_gather(qp, &op->data, 0, in_queue, op->length))
			return 0;
		near[0] = (struct env_piece){in_queue, op->length};
		return 1;
	}
	for (uint32_t at = 0, n; at < op->length; at += n) {
		uint8_t *p;

		n = op->length - at;
		p = sendq_piece(qp, &op->data, at, local, &n);
		if (!p || pieces == NIC_SGE_MAX + 1)
			return 0;
		near[pieces++] = (struct env_piece){p, n};
	}
	return pieces;
}

/* By the system, in memory that is not mapped. What goes wrong is found out by
 * frames. */
static int reach(struct nic_qp *qp, const struct send_op *op,
		 const struct env_direct *map, uint64_t offset, uint32_t local)
{
	struct env *env = qp->nic->env;
	_Alignas(uint64_t) uint8_t in_queue[NIC_INLINE_MAX];
	struct env_piece near[NIC_SGE_MAX + 1];
	unsigned pieces;

	if (op->info->access == IBV_ACCESS_REMOTE_ATOMIC ||
	    op->length > NIC_REACH_MAX ||
	    !env->ops->reach_is_wanted(env, op->length))
		return 0;
	pieces = list_pieces(qp, op, local, near, in_queue);
	qp->req.reach_failed =
		!pieces ||
		env->ops->reach_copy(env, map,
				     op->opcode == WQE_READ ? ENV_DIRECT_READ
							    : ENV_DIRECT_WRITE,
				     offset, near, pieces) != 0;
	if (qp->req.reach_failed)
		return 0;
	count(qp->nic, NIC_C_reach_ops);
	qp->nic->counters[NIC_C_reach_bytes] += op->length;
	return 2;
}

static void note_far(struct nic_qp *qp, uint32_t rkey)
{
	struct requester *req = &qp->req;

	if (req->far_key != rkey)
		req->far_misses = 0;
	req->far_key = rkey;
	if (req->far_misses < DIRECT_FAR_SURE)
		req->far_misses++;
}

bool direct_is_worth_waiting(struct nic_qp *qp, const struct send_op *op)
{
	const struct send_slot *last = sendq_slot(&qp->sq, qp->sq.send - 1);
	struct env *env = qp->nic->env;
	const struct env_direct *map;

	if (qp->req.reach_failed ||
	    !(op->opcode == WQE_READ || op->opcode == WQE_WRITE) ||
	    op->length < NIC_REACH_LARGE || op->length > NIC_REACH_MAX ||
	    !(last->opcode == WQE_READ || last->opcode == WQE_WRITE) ||
	    last->length < NIC_REACH_LARGE || direct_is_far(qp, op->rkey))
		return false;
	map = env->ops->direct_find(env, qp->path, qp->qpn, qp->dest_qpn,
				    op->rkey);
	return map && !map->base && env->ops->reach_is_wanted(env, op->length);
}

HOT int direct_execute(struct nic_qp *qp, const struct send_op *op)
{
	struct nic *nic = qp->nic;
	struct env *env = nic->env;
	uint32_t access = op->info->access;
	uint32_t local =
		op->info->flags & WQE_OP_RESPONSE ? IBV_ACCESS_LOCAL_WRITE : 0;
	const struct env_direct *map;
	uint64_t offset;
	uint8_t *far, *near;
	int done;

	if (!access || op->length == 0)
		return 0;
	if (direct_is_far(qp, op->rkey))
		return 0;
	map = env->ops->direct_find(env, qp->path, qp->qpn, qp->dest_qpn,
				    op->rkey);
	if (!map) {
		note_far(qp, op->rkey);
		return 0;
	}
	qp->req.far_misses = 0;
	if ((map->access & access) != access)
		return 0;
	offset = op->va - map->iova;
	if (offset > map->length || op->length > map->length - offset)
		return 0;
	if (!map->base)
		return reach(qp, op, map, offset, local);
	far = map->base + offset;
	/* Nothing happens unless all of it can. */
	if ((op->data.segs > 1 || access == IBV_ACCESS_REMOTE_ATOMIC) &&
	    sendq_check(qp, op, local, &near))
		return 0;
	if (access != IBV_ACCESS_REMOTE_ATOMIC) {
		done = copy(qp, op, far);
	} else {
		if ((uintptr_t)far % 8 || op->va % 8)
			return 0;
		done = atomic(qp, op, far);
	}
	count(nic, done == -EACCES || done == -EINPROGRESS ? NIC_C_direct_faults
							   : NIC_C_direct_ops);
	return done;
}

/* ---- misses that overlap ------------------------------------------------ */

/* Where the bytes are; NULL: not here. */
static const uint8_t *find_far(struct nic_qp *qp, const struct nic_read *r,
			       const struct env_direct **map, uint32_t *rkey)
{
	struct env *env = qp->nic->env;
	uint64_t offset;

	if (!*map || *rkey != r->rkey) {
		*rkey = r->rkey;
		if (direct_is_far(qp, r->rkey))
			return NULL;
		*map = env->ops->direct_find(env, qp->path, qp->qpn,
					     qp->dest_qpn, r->rkey);
		if (!*map) {
			note_far(qp, r->rkey);
			return NULL;
		}
		qp->req.far_misses = 0;
	}
	offset = r->addr - (*map)->iova;
	if (!(*map)->base || !((*map)->access & IBV_ACCESS_REMOTE_READ) ||
	    r->len_bytes == 0 || offset > (*map)->length ||
	    r->len_bytes > (*map)->length - offset)
		return NULL;
	return (*map)->base + offset;
}

/* The misses of several reads overlap, as they do in hardware. */
static inline void fetch_ahead(const uint8_t *far, uint32_t len_bytes)
{
	uint32_t end = u32_min(len_bytes, NIC_READ_AHEAD_BYTES);

	for (uint32_t at = 0; at < end; at += CACHE_LINE)
		__builtin_prefetch(far + at);
}

HOT void direct_foretell(struct nic_qp *qp)
{
	const struct sendq *q = &qp->sq;
	uint32_t end = q->send + u32_min(q->head - q->send, NIC_DIRECT_AHEAD);
	const struct env_direct *map = NULL;
	uint32_t rkey = 0;

	for (uint32_t i = q->send; i != end; i++) {
		const struct send_slot *slot = sendq_slot(q, i);
		const struct plain_wqe *wqe =
			sendq_seg(q, slot->block * (uint32_t)WQE_BLOCK_BYTES);
		struct nic_read r = {
			.addr = be64_get(wqe->raddr.addr),
			.rkey = be32_get(wqe->raddr.rkey),
			.len_bytes = be32_get(wqe->data.byte_count),
		};
		const uint8_t *far;

		if ((be32_get(wqe->ctrl.opmod_idx_opcode) & 0xff) != WQE_READ)
			return;
		far = find_far(qp, &r, &map, &rkey);
		if (!far)
			return;
		fetch_ahead(far, r.len_bytes);
	}
}

/* ---- reads that need no queue ------------------------------------------- */

HOT unsigned nic_qp_read_now(struct nic_qp *qp, const struct nic_read *reads,
			     unsigned count)
{
	struct env *env = qp->nic->env;
	const uint8_t *far[NIC_READ_NOW_MAX];
	const struct env_direct *map = NULL;
	uint32_t rkey = 0;
	unsigned i, found;

	count = u32_min(count, NIC_READ_NOW_MAX);
	if (qp->state != IBV_QPS_RTS || qp->type != IBV_QPT_RC ||
	    qp->peer_gone || qp->managed_sq || qp->sq.tail != qp->sq.head ||
	    !env->ops->direct_find)
		return 0;
	for (found = 0; found < count; found++) {
		far[found] = find_far(qp, &reads[found], &map, &rkey);
		if (!far[found])
			break;
		fetch_ahead(far[found], reads[found].len_bytes);
	}
	for (i = 0; i < found; i++)
		if (env->ops->direct_copy(env, ENV_DIRECT_READ,
					  (uint8_t *)(uintptr_t)far[i],
					  reads[i].to, reads[i].len_bytes))
			break;
	qp->nic->counters[NIC_C_direct_ops] += i;
	return i;
}
