/* SPDX-License-Identifier: Apache-2.0 */
/* Walks (include/aquifer/aqdv.h): posting them, and those who execute them. */
#include <aquifer/aqdv.h>

#include "core/nic_limits.h"
#include "verbs_priv.h"

/* Both sides see the same memory under their own names. */
#define SAME_WALK(member)                                        \
	STATIC_ASSERT(offsetof(struct aqdv_walk, member) ==      \
			      offsetof(struct nic_walk, member), \
		      #member)
SAME_WALK(at);
SAME_WALK(program);
SAME_WALK(iterations);
SAME_WALK(send_bytes);
SAME_WALK(answer_bytes);
SAME_WALK(pad_room);
SAME_WALK(pad);
SAME_WALK(job);
STATIC_ASSERT(offsetof(struct aqdv_walk, qp) ==
			      offsetof(struct nic_walk, qp_owner) &&
		      sizeof(struct aqdv_walk) == sizeof(struct nic_walk),
	      "a walk");
/* The owner of a queue pair is its struct verbs_qp. */
STATIC_ASSERT(offsetof(struct verbs_qp, ibv) == 0, "the owner's handle");

#define SAME_SPAN(member)                                             \
	STATIC_ASSERT(offsetof(struct aqdv_walk_span, member) ==      \
			      offsetof(struct nic_walk_span, member), \
		      #member)
SAME_SPAN(from);
SAME_SPAN(len);
SAME_SPAN(host);

#define SAME_RESULT(member)                                             \
	STATIC_ASSERT(offsetof(struct aqdv_walk_result, member) ==      \
			      offsetof(struct nic_walk_result, member), \
		      #member)
SAME_RESULT(at);
SAME_RESULT(program);
SAME_RESULT(space);
SAME_RESULT(left);
SAME_RESULT(took);
SAME_RESULT(pad_bytes);
SAME_RESULT(status);
SAME_RESULT(hops);
STATIC_ASSERT(sizeof(struct aqdv_walk_result) == AQDV_WALK_RESULT_BYTES &&
		      sizeof(struct nic_walk_result) == AQDV_WALK_RESULT_BYTES,
	      "a result");
STATIC_ASSERT(AQDV_WALK_PAD_MAX == (unsigned)NIC_WALK_PAD_MAX &&
		      AQDV_WALK_STAYS == (unsigned)NIC_WALK_STAYS,
	      "limits");
STATIC_ASSERT((int)AQDV_WALK_HERE == (int)NIC_WALK_HERE &&
		      (int)AQDV_WALK_IS_ELSEWHERE == (int)NIC_WALK_ELSEWHERE &&
		      (int)AQDV_WALK_IS_FAULT == (int)NIC_WALK_FAULT &&
		      (int)AQDV_WALK_IS_NO_RIGHT == (int)NIC_WALK_NO_RIGHT,
	      "passed through");
STATIC_ASSERT(offsetof(struct aqdv_walker, start) ==
			      offsetof(struct nic_walker, start) &&
		      offsetof(struct aqdv_walker, turn) ==
			      offsetof(struct nic_walker, turn) &&
		      offsetof(struct aqdv_walker, forget) ==
			      offsetof(struct nic_walker, forget),
	      "a walker");

/* ---- asking -------------------------------------------------------------- */

static int post_one(struct verbs_qp *qp, const struct aqdv_walk_wr *w)
{
	struct nic_walk_request request = {
		.at = w->at,
		.program = w->program,
		.rkey = w->rkey,
		.iterations = w->iterations,
		.send_bytes = w->send_bytes,
		.forward = w->flags & AQDV_WALK_FORWARD,
	};
	struct nic_send_extra extra = {.walk = &request};
	struct ibv_send_wr wr = {
		.wr_id = w->wr_id,
		.sg_list = w->sg_list,
		.num_sge = w->num_sge,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = w->send_flags,
	};

	if ((w->send_flags & ~(unsigned)(IBV_SEND_SIGNALED | IBV_SEND_FENCE)) ||
	    w->flags & ~(uint32_t)AQDV_WALK_FORWARD)
		return -EINVAL;
	return nic_qp_post_send(qp->nic, &wr, &extra);
}

static int post_before(struct verbs_qp *qp, const struct ibv_send_wr *wr)
{
	int rc = 0;

	for (; wr && !rc; wr = wr->next)
		rc = verbs_post_one(qp, wr);
	return rc;
}

VERBS_EXPORT int aqdv_post_walk(struct ibv_qp *ibqp, struct aqdv_walk_wr *wr,
				struct aqdv_walk_wr **bad_wr)
{
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (!rc && ibqp->qp_type != IBV_QPT_RC)
		rc = -EINVAL;
	if (!rc) {
		lock_take(&qp->host->lock);
		for (; wr && !rc; wr = rc ? wr : wr->next) {
			rc = post_before(qp, wr->before);
			if (!rc)
				rc = post_one(qp, wr);
		}
		nic_qp_kick(qp->nic);
		lock_drop(&qp->host->lock);
	}
	if (rc && bad_wr)
		*bad_wr = wr;
	return rc;
}

/* ---- answering ----------------------------------------------------------- */

VERBS_EXPORT int aqdv_qp_set_walk_pad(struct ibv_qp *ibqp, uint32_t pad_bytes)
{
	struct verbs_qp *qp;
	int rc = verbs_own_qp(ibqp, &qp);

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_set_walk_pad(qp->nic, pad_bytes);
	lock_drop(&qp->host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_qp_set_hops(struct ibv_qp *ibqp, uint32_t count,
				  const union ibv_gid *from)
{
	struct verbs_qp *qp;
	int rc = from ? verbs_own_qp(ibqp, &qp) : -EINVAL;

	if (rc)
		return rc;
	lock_take(&qp->host->lock);
	rc = nic_qp_set_hops(qp->nic, count, from->raw);
	lock_drop(&qp->host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_set_place(struct ibv_mr *ibmr,
				const struct aqdv_place *place)
{
	struct nic_place p;
	struct nic_host *host;
	int rc;

	if (!ibmr || !place)
		return -EINVAL;
	if (!verbs_is_own(ibmr->context))
		return -EOPNOTSUPP;
	host = verbs_host(ibmr->context);
	if (!host || !to_mr(ibmr)->nic)
		return -EIO;
	p = (struct nic_place){
		.space = place->space,
		.index = place->index,
		.count = place->count,
		.shift = place->shift,
	};
	lock_take(&host->lock);
	rc = nic_mr_set_place(to_mr(ibmr)->nic, &p);
	lock_drop(&host->lock);
	return rc;
}

VERBS_EXPORT int aqdv_set_walker(struct ibv_context *context,
				 const struct aqdv_walker *walker)
{
	const struct nic_walker *same = (const struct nic_walker *)walker;
	struct nic_host *host;
	int rc;

	if (!verbs_is_own(context))
		return -EOPNOTSUPP;
	host = verbs_host(context);
	if (!host)
		return -EIO;
	if (walker && (!walker->start || !walker->turn || !walker->forget))
		return -EINVAL;
	lock_take(&host->lock);
	rc = nic_set_walker(host->nic, same);
	lock_drop(&host->lock);
	return rc;
}

/* These are called by the walker, so the lock is held. */
VERBS_EXPORT HOT enum aqdv_walk_where aqdv_walk_reach(struct aqdv_walk *walk,
						      uint64_t at,
						      uint32_t len_bytes,
						      bool write,
						      uint8_t **host)
{
	return (enum aqdv_walk_where)nic_walk_reach((struct nic_walk *)walk, at,
						    len_bytes, write, host);
}

VERBS_EXPORT HOT enum aqdv_walk_where aqdv_walk_span(
	struct aqdv_walk *walk, uint64_t at, uint32_t len_bytes, bool write,
	struct aqdv_walk_span *span)
{
	return (enum aqdv_walk_where)nic_walk_span(
		(struct nic_walk *)walk, at, len_bytes, write,
		(struct nic_walk_span *)span);
}

VERBS_EXPORT const uint32_t *aqdv_walk_epoch(struct ibv_context *context)
{
	struct nic_host *host =
		verbs_is_own(context) ? verbs_host(context) : NULL;

	return host ? nic_walk_epoch(host->nic) : NULL;
}

VERBS_EXPORT void aqdv_walk_done(struct aqdv_walk *walk,
				 enum aqdv_walk_status status, uint64_t at,
				 uint32_t left, uint32_t took)
{
	nic_walk_done((struct nic_walk *)walk, (uint8_t)status, at, left, took);
}
