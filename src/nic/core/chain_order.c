/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WAIT, SEND_ENABLE and RECV_ENABLE: how the queues of a chain start and stop
 * each other. They are executed when their turn comes, whatever of the requests
 * before them is still on its way.
 */
#include <errno.h>

#include "access_priv.h"
#include "cq_priv.h"

/* Is `index` ahead of `enabled`, and by no more than a ring of `count` ahead of
 * what was executed? 0: it is not new; -EINVAL: too far. */
static int check_index(uint32_t index, uint32_t enabled, uint32_t executed,
		       uint32_t count)
{
	if ((int32_t)(index - enabled) <= 0)
		return 0;
	return index - executed <= count ? 1 : -EINVAL;
}

int nic_qp_enable_send(struct nic_qp *qp, uint32_t index)
{
	struct chain *ch = qp->chain;
	int ok;

	if (!qp->managed_sq)
		return -EINVAL;
	ok = check_index(index, ch->enabled, ch->fetched, ch->blocks);
	if (ok < 0)
		return ok;
	if (ok)
		ch->enabled = index;
	chain_pay(ch, 1);
	return 0;
}

int nic_qp_enable_recv(struct nic_qp *qp, uint32_t index)
{
	struct recvq *q = &qp->rq;
	int ok;

	if (!qp->chain || !qp->chain->rq.bytes)
		return -EINVAL;
	ok = check_index(index, q->head, q->tail, q->count);
	if (ok > 0)
		q->head = index;
	return ok < 0 ? ok : 0;
}

/* A managed queue pair of the same domain. */
static struct nic_qp *find_target(const struct nic_qp *qp, uint32_t number)
{
	struct nic_qp *target = qp_find(qp->nic, number);

	return target && target->chain && target->pd == qp->pd ? target : NULL;
}

static int enable_send(const struct nic_qp *qp, uint32_t number, uint32_t index)
{
	struct nic_qp *target = find_target(qp, number);
	struct chain *ch;
	uint32_t executed;
	int ok;

	if (!target)
		return -EFAULT;
	if (!target->managed_sq)
		return -EINVAL;
	ch = target->chain;
	/* A queue that enables itself has executed this one. */
	executed = ch->fetched + (target == qp);
	ok = check_index(index, ch->enabled, executed, ch->blocks);
	if (ok < 0)
		return ok;
	if (ok) {
		ch->enabled = index;
		if (ch->fuel < qp->chain->fuel)
			ch->fuel = qp->chain->fuel;
		if (target != qp)
			chain_wake(target);
	}
	return 1;
}

static int enable_recv(const struct nic_qp *qp, uint32_t number, uint32_t index)
{
	struct nic_qp *target = find_target(qp, number);

	if (!target)
		return -EFAULT;
	return nic_qp_enable_recv(target, index) ? -EINVAL : 1;
}

bool chain_wait_is_over(struct nic_qp *qp)
{
	struct chain *ch = qp->chain;

	if ((int32_t)(ch->wait_cq->counted - ch->wait_index) < 0)
		return false;
	chain_pay_wait(ch, ch->wait_cq);
	ch->wait_cq = NULL;
	list_remove(&ch->waiting);
	return true;
}

struct nic_cq *chain_wait_target(const struct nic *nic,
				 const struct wqe_order *o, uint32_t *index)
{
	uint32_t number = be32_get(o->base);
	const struct nic_cq *base = number ? cq_by_number(nic, number) : NULL;

	if (number && !base)
		return NULL;
	*index = be32_get(o->index) + (base ? base->counted : 0);
	return cq_by_number(nic, be32_get(o->number));
}

static int wait_for(struct nic_qp *qp, const struct wqe_order *o)
{
	struct chain *ch = qp->chain;
	uint32_t index;
	struct nic_cq *cq = chain_wait_target(qp->nic, o, &index);

	if (!cq)
		return -EFAULT;
	if (!chain_may_wait(ch, cq))
		return -EINVAL;
	if ((int32_t)(cq->counted - index) >= 0) {
		chain_pay_wait(ch, cq);
		return 1;
	}
	count(qp->nic, NIC_C_chain_waits);
	ch->wait_cq = cq;
	ch->wait_index = index;
	list_append(&cq->waits, &ch->waiting);
	return 0;
}

static int execute(struct nic_qp *qp, uint8_t opcode, const struct wqe_order *o)
{
	uint32_t number = be32_get(o->number), index = be32_get(o->index);

	switch (opcode) {
	case WQE_WAIT:
		return wait_for(qp, o);
	case WQE_SEND_ENABLE:
		return enable_send(qp, number, index);
	default:
		return enable_recv(qp, number, index);
	}
}

int chain_order(struct nic_qp *qp, uint8_t opcode, const void *segment,
		uint8_t *at)
{
	const struct wqe_order *o = segment;
	uint32_t index = be32_get(o->index);
	uint32_t step = be32_get(o->step);
	be32 next = be32_put(index + step);
	int done;

	if (step && !qp->chain->sq.writable)
		return -EFAULT;
	done = execute(qp, opcode, o);
	if (step && done >= 0 &&
	    UNLIKELY(touch_write(at + offsetof(struct wqe_order, index), &next,
				 sizeof(next))))
		return -EFAULT;
	return done;
}
