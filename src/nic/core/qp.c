/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs: their life, their completions, and how they fail. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth_priv.h"
#include "cq_priv.h"
#include "requester_timer_priv.h"
#include "turn_priv.h"
#include "walk_priv.h"

enum {
	QPN_TRIES = 1000, /* random numbers until a free one is found */
};

void qp_event(struct nic_qp *qp, enum ibv_event_type type)
{
	if (qp->nic->up)
		qp->nic->up->async_event(qp->owner, type);
}

/* ---- life ------------------------------------------------------------------
 */

/* Random numbers, so that a stranger cannot guess the next queue pair. */
static int choose_qpn(struct nic_qp *qp, bool is_gsi)
{
	struct nic *nic = qp->nic;
	unsigned tries;

	if (is_gsi) {
		if (nic->qps[NIC_GSI_INDEX])
			return -EBUSY;
		qp->qpn = nic->cfg.slot << NIC_QPN_INDEX_BITS | NIC_GSI_INDEX;
		nic->qps[NIC_GSI_INDEX] = qp;
		return 0;
	}
	for (tries = 0; tries < QPN_TRIES; tries++) {
		uint32_t random, i;

		env_random(nic->env, &random, sizeof(random));
		i = random & (NIC_QP_MAX - 1);
		if (nic->qps[i] || i <= NIC_GSI_INDEX)
			continue;
		qp->qpn = nic->cfg.slot << NIC_QPN_INDEX_BITS | i;
		nic->qps[i] = qp;
		return 0;
	}
	return -ENOMEM;
}

static int check_cap(const struct nic_qp_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (attr->type != IBV_QPT_RC && attr->type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	/* Completions without an owner are those of a purged queue pair. */
	if (!attr->send_cq || !attr->recv_cq || !attr->owner ||
	    (attr->is_gsi && attr->type != IBV_QPT_UD))
		return -EINVAL;
	if (cap->max_send_wr > NIC_QP_WR_MAX ||
	    cap->max_send_sge > NIC_SGE_MAX ||
	    cap->max_inline_data > NIC_INLINE_MAX)
		return -EINVAL;
	if (!attr->srq && (cap->max_recv_wr > NIC_QP_WR_MAX ||
			   cap->max_recv_sge > NIC_SGE_MAX))
		return -EINVAL;
	return 0;
}

static int make_queues(struct nic_qp *qp, struct nic_qp_attr *attr)
{
	const struct nic_chain_attr *chain = attr->chain;
	int err;

	if (chain)
		chain_cap(chain, &attr->cap);
	err = sendq_init(qp->nic, &qp->sq, &attr->cap);
	if (err)
		return err;
	if (qp->srq) {
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	} else if (chain && chain->rq_entries) {
		attr->cap.max_recv_wr = chain->rq_entries;
		attr->cap.max_recv_sge = chain->rq_segs;
		recvq_init_managed(&qp->rq, chain->rq_entries, chain->rq_segs);
	} else {
		err = recvq_init(qp->nic, &qp->rq, attr->cap.max_recv_wr,
				 attr->cap.max_recv_sge);
	}
	if (err)
		sendq_release(qp->nic, &qp->sq);
	return err;
}

int nic_qp_create(struct nic_pd *pd, struct nic_qp_attr *attr,
		  struct nic_qp **out)
{
	struct nic *nic = pd->nic;
	struct nic_qp *qp;
	int err = check_cap(attr);

	if (err)
		return err;
	if (nic->qp_count >= NIC_QP_MAX / 2)
		return -ENOMEM; /* more would make free numbers hard to find */
	qp = aligned_alloc(CACHE_LINE, align_up(sizeof(*qp), CACHE_LINE));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	qp->nic = nic;
	qp->pd = pd;
	qp->type = attr->type;
	qp->state = IBV_QPS_RESET;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->sq_sig_all = attr->sq_sig_all;
	qp->owner = attr->owner;
	list_init(&qp->ready);
	list_init(&qp->held);
	requester_reset(qp);
	if (attr->chain)
		err = chain_create(qp, attr->chain);
	if (err)
		goto err_free;
	err = make_queues(qp, attr);
	if (err)
		goto err_free;
	err = choose_qpn(qp, attr->is_gsi);
	if (err)
		goto err_release_queues;
	qp->cap = attr->cap;
	pd->users++;
	qp->send_cq->users++;
	qp->recv_cq->users++;
	if (qp->srq)
		qp->srq->users++;
	nic->qp_count++;
	*out = qp;
	return 0;

err_release_queues:
	sendq_release(nic, &qp->sq);
	recvq_release(nic, &qp->rq);
err_free:
	chain_release(qp);
	free(qp);
	return err;
}

static void retire_send(struct nic_qp *qp)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->tail);
	struct nic *nic = qp->nic;

	if (slot->ah)
		ah_put(slot->ah);
	slot->ah = NULL;
	q->block_tail += slot->blocks;
	q->tail++;
	/* Completed before its turn to be sent, or to be sent again. */
	if ((int32_t)(q->send - q->tail) < 0) {
		q->send = q->tail;
		qp->req.send_pkt = 0;
	}
	/* Slots from the start again: a queue pair that has one request at a
	 * time stays with one, which is in the cache. */
	if (q->tail == q->head)
		q->slot_base = q->head;
	atomic_store_explicit(
		&nic->outstanding,
		atomic_load_explicit(&nic->outstanding, memory_order_relaxed) -
			1,
		memory_order_relaxed);
}

void qp_forget(struct nic_qp *qp)
{
	struct nic *nic = qp->nic;

	qp_end_reach(qp);
	while (qp->sq.tail != qp->sq.head)
		retire_send(qp);
	qp->sq.head = qp->sq.send = qp->sq.tail = qp->sq.slot_base = 0;
	qp->sq.block_head = qp->sq.block_tail = 0;
	qp->rq.head = qp->rq.tail = 0;
	qp->recv.active = false;
	list_remove(&qp->ready);
	list_remove(&qp->held);
	if (qp->chain)
		chain_reset(qp);
	mw_end_all(qp);
	requester_reset(qp);
	responder_release(qp);
	if (qp->path)
		nic->env->ops->path_close(nic->env, qp->path);
	qp->path = NULL;
	auth_forget(qp);
	qp->peer_gone = false;
	qp->path_down = false;
	qp->last_wqe_told = false;
	qp->established_told = false;
	cq_purge(qp->send_cq, qp->owner);
	if (qp->recv_cq != qp->send_cq)
		cq_purge(qp->recv_cq, qp->owner);
}

void nic_qp_destroy(struct nic_qp *qp)
{
	struct nic *nic = qp->nic;

	qp_forget(qp);
	nic->qps[qp->qpn & (NIC_QP_MAX - 1)] = NULL;
	nic->qp_count--;
	qp->pd->users--;
	qp->send_cq->users--;
	qp->recv_cq->users--;
	if (qp->srq)
		qp->srq->users--;
	sendq_release(nic, &qp->sq);
	recvq_release(nic, &qp->rq);
	chain_release(qp);
	hop_release(qp);
	free(qp);
}

uint32_t nic_qp_number(const struct nic_qp *qp)
{
	return qp->qpn;
}

enum ibv_qp_state nic_qp_state(const struct nic_qp *qp)
{
	return qp->state;
}

bool nic_qp_peer_gone(const struct nic_qp *qp)
{
	return qp->path_down;
}

/* ---- completions -------------------------------------------------------- */

/* A lost completion cannot be repaired: the queue pair ends. Of a queue that
 * counts only failures can be lost, and there were others. */
static COLD void lost_completion(struct nic_qp *qp, const struct nic_cq *cq)
{
	if (qp->state == IBV_QPS_ERR || cq->counting)
		return;
	qp_event(qp, IBV_EVENT_QP_FATAL);
	qp_fail(qp);
}

HOT void qp_complete_send(struct nic_qp *qp, enum ibv_wc_status status)
{
	const struct send_slot *slot = sendq_slot(&qp->sq, qp->sq.tail);
	bool shown = slot->signaled || status != IBV_WC_SUCCESS;
	struct nic_cqe *cqe;

	/* Still there: what is retired is overwritten by the next post. */
	retire_send(qp);
	if (UNLIKELY(qp->send_cq->counting) && status == IBV_WC_SUCCESS) {
		if (shown)
			cq_counted(qp->send_cq, qp, false);
	} else if (LIKELY(shown)) {
		cqe = cq_begin(qp->send_cq);
		if (UNLIKELY(!cqe)) {
			lost_completion(qp, qp->send_cq);
		} else {
			*cqe = (struct nic_cqe){
				.wr_id = slot->wr_id,
				.byte_len = slot->length,
				.status = (uint8_t)status,
				.opcode = wqe_op_get(slot->opcode)->wc,
				.qp_num = qp->qpn,
				.qp_owner = qp->owner,
			};
			cq_end(qp->send_cq, cqe);
		}
	}
	if (UNLIKELY(qp->state == IBV_QPS_SQD && qp->sqd_notify &&
		     qp_is_drained(qp))) {
		qp->sqd_notify = false;
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
	}
}

void qp_complete_recv(struct nic_qp *qp, struct nic_cqe *cqe)
{
	cqe->wr_id = qp->recv.wr_id;
	cqe->is_recv = true;
	cqe->qp_num = qp->qpn;
	cqe->qp_owner = qp->owner;
	qp->recv.active = false;
	if (UNLIKELY(qp->recv_cq->counting) && cqe->status == IBV_WC_SUCCESS)
		cq_counted(qp->recv_cq, qp, true);
	else if (UNLIKELY(!cq_push(qp->recv_cq, cqe)))
		lost_completion(qp, qp->recv_cq);
}

/* Written where it stays: what is put together first and then copied in larger
 * pieces waits for its own stores. */
HOT void qp_complete_notice(struct nic_qp *qp, uint64_t wr_id,
			    const struct wire_pkt *pkt,
			    enum ibv_wc_opcode opcode)
{
	struct nic_cqe *cqe;

	if (UNLIKELY(qp->recv_cq->counting)) {
		cq_counted(qp->recv_cq, qp, true);
		return;
	}
	cqe = cq_begin(qp->recv_cq);
	if (UNLIKELY(!cqe)) {
		lost_completion(qp, qp->recv_cq);
		return;
	}
	*cqe = (struct nic_cqe){
		.wr_id = wr_id,
		.byte_len = pkt->payload_len,
		.status = IBV_WC_SUCCESS,
		.opcode = (uint8_t)opcode,
		.is_recv = true,
		.solicited = pkt->solicited,
		.wc_flags = IBV_WC_WITH_IMM,
		.qp_num = qp->qpn,
		.src_qp = qp->dest_qpn,
		.qp_owner = qp->owner,
	};
	memcpy(&cqe->imm_or_key, &pkt->imm, sizeof(cqe->imm_or_key));
	cq_end(qp->recv_cq, cqe);
}

/* ---- failure ------------------------------------------------------------ */

void qp_flush_sends(struct nic_qp *qp)
{
	uint32_t n = 0;

	while (qp->sq.tail != qp->sq.head) {
		if (PLANTED(drop_flush) && n++ == 1)
			retire_send(qp);
		else
			qp_complete_send(qp, IBV_WC_WR_FLUSH_ERR);
	}
}

void qp_flush_recvs(struct nic_qp *qp)
{
	struct nic_cqe cqe = {.status = IBV_WC_WR_FLUSH_ERR};

	if (qp->recv.active) {
		if (qp->rsp.recv_status)
			cqe.status = qp->rsp.recv_status;
		qp_complete_recv(qp, &cqe);
	}
	if (qp->srq) {
		/* Others may use what is left; the owner learns that this
		 * queue pair takes no more (IBA 11.6.3.3). */
		if (!qp->last_wqe_told)
			qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
		qp->last_wqe_told = true;
		return;
	}
	/* Nobody posted what is in memory. */
	if (!qp->rq.wr_ids)
		return;
	while (recvq_take(qp, &qp->recv)) {
		cqe = (struct nic_cqe){.status = IBV_WC_WR_FLUSH_ERR};
		qp_complete_recv(qp, &cqe);
	}
}

void qp_end_reach(struct nic_qp *qp)
{
	struct env *env = qp->nic->env;

	if (LIKELY(!qp->is_reached))
		return;
	qp->is_reached = false;
	if (env->ops->reach_revoke)
		env->ops->reach_revoke(env);
}

void qp_fail(struct nic_qp *qp)
{
	if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_RESET)
		return;
	qp_end_reach(qp);
	qp->state = IBV_QPS_ERR;
	requester_stop_timers(qp);
	list_remove(&qp->ready);
	list_remove(&qp->held);
	qp->rsp.ack_due = qp->rsp.refuses = false;
	qp->rsp.nak_due = 0;
	qp->rsp.res_pending = 0;
	walk_forget_all(qp);
	if (qp->chain)
		chain_stop(qp);
	qp_flush_sends(qp);
	qp_flush_recvs(qp);
}

void qp_fail_sends(struct nic_qp *qp)
{
	if (qp->type != IBV_QPT_UD) {
		qp_fail(qp);
		return;
	}
	/* A completion that found no room has ended it already. */
	if (qp->state != IBV_QPS_RTS)
		return;
	qp->state = IBV_QPS_SQE;
	qp_flush_sends(qp);
}

/* ---- posting ------------------------------------------------------------ */

HOT void nic_qp_prefetch(const struct nic_qp *qp)
{
	PREFETCH(qp);
	PREFETCH(&qp->ready);
	PREFETCH(&qp->req.next_psn);
	PREFETCH(&qp->sq);
}

void qp_count_posted(struct nic_qp *qp)
{
	struct nic *nic = qp->nic;

	atomic_store_explicit(
		&nic->outstanding,
		atomic_load_explicit(&nic->outstanding, memory_order_relaxed) +
			1,
		memory_order_relaxed);
}

HOT int nic_qp_post_send(struct nic_qp *qp, const struct ibv_send_wr *wr,
			 const struct nic_send_extra *extra)
{
	int err;

	if (UNLIKELY(qp->state < IBV_QPS_RTS || qp->managed_sq))
		return -EINVAL;
	err = sendq_post(qp, wr, extra);
	if (UNLIKELY(err))
		return err;
	qp_count_posted(qp);
	return 0;
}

HOT void nic_qp_kick(struct nic_qp *qp)
{
	uint64_t before;

	if (UNLIKELY(qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)) {
		qp_flush_sends(qp);
		return;
	}
	before = nic_work(qp->nic);
	if (!requester_run(qp))
		qp_make_ready(qp);
	turn_count(qp->pd->turns, nic_work(qp->nic) - before);
	nic_tx_flush(qp->nic, true);
}

void nic_qp_unpost(struct nic_qp *qp, uint32_t count)
{
	struct sendq *q = &qp->sq;
	struct nic *nic = qp->nic;
	uint32_t i;

	ASSERT(count <= q->head - q->send);
	for (i = 0; i < count; i++) {
		struct send_slot *slot = sendq_slot(q, --q->head);

		if (slot->ah)
			ah_put(slot->ah);
		slot->ah = NULL;
		q->block_head -= slot->blocks;
	}
	atomic_store_explicit(
		&nic->outstanding,
		atomic_load_explicit(&nic->outstanding, memory_order_relaxed) -
			count,
		memory_order_relaxed);
}

int nic_qp_post_recv(struct nic_qp *qp, const struct ibv_recv_wr *wr)
{
	int err;

	if (qp->srq || qp->state == IBV_QPS_RESET || !qp->rq.wr_ids)
		return -EINVAL;
	err = recvq_post(&qp->rq, wr);
	if (!err && UNLIKELY(qp->state == IBV_QPS_ERR))
		qp_flush_recvs(qp);
	return err;
}
