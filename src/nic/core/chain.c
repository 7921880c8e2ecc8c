/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed send queues. A request is fetched from memory when all before it were
 * begun (ordered queues: completed), copied once into the queue's own memory
 * and executed from there: nobody can change what was checked. What needs
 * packets then goes the way of every request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access_priv.h"
#include "cq_priv.h"
#include "turn_priv.h"
#include "wqe_shape.h"

enum {
	/* Requests fetched and not completed. */
	IN_FLIGHT_MIN = 32,
	IN_FLIGHT_MAX = 1024,
	ORDER_SEGS = 2, /* control, order */
	BLOCK_SEGS = WQE_BLOCK_BYTES / WQE_SEG_BYTES,
};

/* ---- life --------------------------------------------------------------- */

static bool is_power(uint32_t count, uint32_t max)
{
	return count && count <= max && (count & (count - 1)) == 0;
}

static int check_send(const struct nic_chain_attr *a)
{
	if (a->sq_blocks == 0)
		return a->flags ? -EINVAL : 0;
	if (a->sq_blocks > NIC_CHAIN_BLOCKS_MAX || a->sq_addr % WQE_BLOCK_BYTES)
		return -EINVAL;
	return 0;
}

static int check_recv(const struct nic_chain_attr *a)
{
	if (a->rq_entries == 0)
		return a->rq_dbr_addr ? -EINVAL : 0;
	if (!is_power(a->rq_entries, NIC_QP_WR_MAX) ||
	    !is_power(a->rq_segs, NIC_SGE_MAX) || a->rq_addr % WQE_SEG_BYTES ||
	    a->rq_dbr_addr % sizeof(be32))
		return -EINVAL;
	return 0;
}

static int check_attr(const struct nic_qp *qp, const struct nic_chain_attr *a)
{
	if (qp->type != IBV_QPT_RC || qp->srq ||
	    (a->sq_blocks == 0 && a->rq_entries == 0) ||
	    (a->flags & ~(NIC_CHAIN_ORDERED | NIC_CHAIN_CYCLIC)) ||
	    a->max_steps > NIC_CHAIN_STEPS_MAX)
		return -EINVAL;
	if (check_send(a))
		return -EINVAL;
	return check_recv(a);
}

static void set_memory(struct chain *ch, const struct nic_chain_attr *a)
{
	ch->sq = (struct chain_memory){
		.addr = a->sq_addr,
		.lkey = a->sq_lkey,
		.bytes = (uint64_t)a->sq_blocks * WQE_BLOCK_BYTES,
	};
	ch->rq = (struct chain_memory){
		.addr = a->rq_addr,
		.lkey = a->rq_lkey,
		.bytes = (uint64_t)a->rq_entries * a->rq_segs * WQE_SEG_BYTES,
	};
	ch->dbr = (struct chain_memory){
		.addr = a->rq_dbr_addr,
		.lkey = a->rq_dbr_lkey,
		.bytes = a->rq_dbr_addr ? sizeof(be32) : 0,
	};
}

/* Now, to report a bad key to who can mend it; and again at each read. */
static bool can_read(const struct nic_qp *qp, struct chain_memory *m)
{
	return m->bytes == 0 || chain_memory_host(qp, m);
}

int chain_create(struct nic_qp *qp, const struct nic_chain_attr *attr)
{
	struct chain *ch;
	int err = check_attr(qp, attr);

	if (err)
		return err;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return -ENOMEM;
	ch->qp = qp;
	ch->blocks = attr->sq_blocks;
	ch->flags = attr->flags;
	ch->max_steps = attr->max_steps ? attr->max_steps : NIC_CHAIN_STEPS;
	list_init(&ch->waiting);
	set_memory(ch, attr);
	qp->chain = ch;
	qp->managed_sq = attr->sq_blocks != 0;
	if (!can_read(qp, &ch->sq) || !can_read(qp, &ch->rq) ||
	    !can_read(qp, &ch->dbr)) {
		chain_release(qp);
		return -EACCES;
	}
	return 0;
}

void chain_release(struct nic_qp *qp)
{
	if (qp->chain)
		chain_stop(qp);
	free(qp->chain);
	qp->chain = NULL;
}

void chain_stop(struct nic_qp *qp)
{
	list_remove(&qp->chain->waiting);
	qp->chain->wait_cq = NULL;
	qp->chain->pause = CHAIN_FREE;
}

void chain_reset(struct nic_qp *qp)
{
	struct chain *ch = qp->chain;

	chain_stop(qp);
	ch->fetched = 0;
	ch->place = 0;
	ch->enabled = 0;
	ch->fuel = 0;
}

void chain_cap(const struct nic_chain_attr *attr, struct ibv_qp_cap *cap)
{
	if (attr->sq_blocks) {
		/* What is in flight; blocks beyond it stay in memory. */
		cap->max_send_wr = u32_min(
			u32_max(attr->sq_blocks, IN_FLIGHT_MIN), IN_FLIGHT_MAX);
		cap->max_send_sge = 1;
		cap->max_inline_data = 0;
	}
}

uint8_t *chain_memory_find(const struct nic_qp *qp, struct chain_memory *m)
{
	uint8_t *host;

	m->epoch = 0;
	if (key_check(qp, m->lkey, m->addr, m->bytes, 0, &host) != KEY_OK) {
		count(qp->nic, NIC_C_local_protection);
		return NULL;
	}
	m->writable = key_check(qp, m->lkey, m->addr, m->bytes,
				IBV_ACCESS_LOCAL_WRITE, &host) == KEY_OK;
	m->host = host;
	m->epoch = qp->nic->keys.epoch;
	return host;
}

void chain_wake(struct nic_qp *qp)
{
	qp->nic->chains_due = true;
	qp_make_ready(qp);
}

bool nic_has_chains(const struct nic *nic)
{
	return nic->chains_due;
}

/* ---- one request -------------------------------------------------------- */

/* The request that was copied to the head of the queue. */
static struct send_slot *new_slot(struct nic_qp *qp, uint32_t blocks)
{
	struct sendq *q = &qp->sq;
	struct send_slot *slot = sendq_slot(q, q->head);

	*slot = (struct send_slot){
		.wr_id = qp->chain->fetched,
		.block = q->block_head,
		.blocks = blocks,
	};
	q->block_head += blocks;
	q->head++;
	qp_count_posted(qp);
	return slot;
}

/* The queue ends here, with a completion that says why; but after those of
 * what was sent before. Returns false: nothing more to do now. */
static bool end(struct nic_qp *qp, enum ibv_wc_status status)
{
	if (qp->sq.tail != qp->sq.head)
		return false;
	count(qp->nic, status == IBV_WC_FATAL_ERR ? NIC_C_chain_runaways
						  : NIC_C_chain_faults);
	new_slot(qp, 1)->signaled = true;
	qp_complete_send(qp, status);
	qp_fail(qp);
	return false;
}

/* Where block `i` of the next request is. */
static uint32_t ring_offset(const struct chain *ch, uint32_t i)
{
	uint32_t place = ch->place + i;

	return (place < ch->blocks ? place : place - ch->blocks) *
	       (uint32_t)WQE_BLOCK_BYTES;
}

static void executed(struct chain *ch, uint32_t blocks)
{
	ch->fetched += blocks;
	ch->place += blocks;
	if (ch->place >= ch->blocks)
		ch->place -= ch->blocks;
}

static void *block_at(const struct nic_qp *qp, uint32_t i)
{
	return sendq_seg(&qp->sq,
			 (qp->sq.block_head + i) * (uint32_t)WQE_BLOCK_BYTES);
}

/* Copies the next request, whose first block was fetched, to the head of the
 * queue; the number of its blocks, or -errno. */
static int fetch(struct nic_qp *qp, const union chain_wqe *first,
		 const uint8_t *ring)
{
	const struct chain *ch = qp->chain;
	uint32_t left = ch->flags & NIC_CHAIN_CYCLIC
				? ch->blocks
				: ch->enabled - ch->fetched;
	uint32_t segs = be32_get(first->ctrl.qpn_ds) & 0xff;
	uint32_t blocks =
		(segs * WQE_SEG_BYTES + WQE_BLOCK_BYTES - 1) / WQE_BLOCK_BYTES;
	uint32_t i;

	if (UNLIKELY(segs == 0 || blocks > CHAIN_WQE_BLOCKS_MAX ||
		     blocks > left))
		return -EINVAL;
	memcpy(block_at(qp, 0), first->bytes, WQE_BLOCK_BYTES);
	for (i = 1; i < blocks; i++)
		if (touch_read(block_at(qp, i), ring + ring_offset(ch, i),
			       WQE_BLOCK_BYTES))
			return -EFAULT;
	return (int)blocks;
}

static void complete_loop(struct nic_qp *qp, const struct send_op *op,
			  uint32_t blocks)
{
	struct send_slot *slot;

	if (!(op->flags & WQE_CTRL_CQE) && !qp->sq_sig_all)
		return;
	if (LIKELY(qp->send_cq->counting)) {
		cq_counted(qp->send_cq, qp, false);
		return;
	}
	slot = new_slot(qp, blocks);
	slot->opcode = op->opcode;
	slot->length = op->length;
	slot->signaled = true;
	qp_complete_send(qp, IBV_WC_SUCCESS);
}

/* To a queue pair of this NIC; 0: it goes another way. */
static int loop(struct nic_qp *qp, uint32_t blocks)
{
	struct send_slot probe = {
		.block = qp->sq.block_head,
		.blocks = blocks,
	};
	struct nic_qp *peer = chain_near_peer(qp);
	struct send_op op;
	enum ibv_wc_status status;

	if (!peer || qp->sq.tail != qp->sq.head)
		return 0;
	if (UNLIKELY(sendq_decode(&qp->sq, &probe, &op))) {
		end(qp, IBV_WC_LOC_QP_OP_ERR);
		return -1;
	}
	/* What the other end would see a completion of goes as a packet. */
	if (!op.info->access)
		return 0;
	status = chain_loop(qp, peer, &op);
	if (UNLIKELY(status != IBV_WC_SUCCESS)) {
		end(qp, status);
		return -1;
	}
	complete_loop(qp, &op, blocks);
	executed(qp->chain, blocks);
	return 1;
}

/* The short way for what chains do most. 0, and nothing happened: let loop
 * decide. */
static inline int loop_quick(struct nic_qp *qp, const union chain_wqe *wqe)
{
	bool shown = (wqe->ctrl.flags & WQE_CTRL_CQE) || qp->sq_sig_all;
	enum ibv_wc_status status;
	struct nic_qp *peer;

	if (!qp->chain->own_address || qp->sq.tail != qp->sq.head ||
	    (shown && !qp->send_cq->counting))
		return 0;
	peer = chain_near_peer(qp);
	if (!peer || !chain_loop_quick(qp, peer, wqe, &status))
		return 0;
	if (UNLIKELY(status != IBV_WC_SUCCESS)) {
		end(qp, status);
		return -1;
	}
	if (shown)
		cq_counted(qp->send_cq, qp, false);
	executed(qp->chain, 1);
	return 1;
}

/* A request that is no order to other queues. */
static bool begin(struct nic_qp *qp, const union chain_wqe *wqe,
		  const uint8_t *ring)
{
	uint8_t opcode = chain_opcode(wqe);
	struct send_slot *slot;
	uint32_t blocks;
	int n, done;

	done = loop_quick(qp, wqe);
	if (LIKELY(done))
		return done > 0;
	n = fetch(qp, wqe, ring);
	if (UNLIKELY(n < 0))
		return end(qp, n == -EFAULT ? IBV_WC_LOC_PROT_ERR
					    : IBV_WC_LOC_QP_OP_ERR);
	blocks = (uint32_t)n;
	done = qp->chain->own_address ? loop(qp, blocks) : 0;
	if (done)
		return done > 0 && qp->state == IBV_QPS_RTS;
	slot = new_slot(qp, blocks);
	slot->opcode = opcode;
	slot->signaled = (wqe->ctrl.flags & WQE_CTRL_CQE) || qp->sq_sig_all;
	executed(qp->chain, blocks);
	return true;
}

static bool is_order(uint8_t opcode)
{
	return opcode == WQE_WAIT || opcode == WQE_SEND_ENABLE ||
	       opcode == WQE_RECV_ENABLE;
}

/* A WAIT or ENABLE that is to complete does so in its turn, as a NOP. */
static void complete_order(struct nic_qp *qp)
{
	struct wqe_ctrl *ctrl = sendq_seg(
		&qp->sq, qp->sq.block_head * (uint32_t)WQE_BLOCK_BYTES);
	struct send_slot *slot = new_slot(qp, 1);

	ctrl->opmod_idx_opcode = be32_put(WQE_NOP);
	ctrl->qpn_ds = be32_put(1);
	ctrl->flags = WQE_CTRL_CQE;
	slot->wr_id = qp->chain->fetched - 1;
	slot->signaled = true;
}

static bool order(struct nic_qp *qp, const union chain_wqe *wqe,
		  uint8_t *memory)
{
	struct chain *ch = qp->chain;
	uint32_t segs = be32_get(wqe->ctrl.qpn_ds) & 0xff;
	int done = -EINVAL;

	if (LIKELY(segs >= ORDER_SEGS && segs <= BLOCK_SEGS))
		done = chain_order(qp, chain_opcode(wqe), &wqe->control.order,
				   memory + WQE_SEG_BYTES);
	if (UNLIKELY(done < 0))
		return end(qp, done == -EFAULT ? IBV_WC_LOC_PROT_ERR
					       : IBV_WC_LOC_QP_OP_ERR);
	executed(ch, 1);
	ch->wait_signaled = (wqe->ctrl.flags & WQE_CTRL_CQE) || qp->sq_sig_all;
	if (UNLIKELY(ch->wait_signaled && done))
		complete_order(qp);
	return done > 0;
}

/* The WAIT that stands in the way. False: it is not over. */
static bool go_on(struct nic_qp *qp)
{
	if (UNLIKELY(qp->nic->cfg.chain_clock) && !chain_clock_wait(qp))
		return false;
	if (!chain_wait_is_over(qp))
		return false;
	if (UNLIKELY(qp->chain->wait_signaled))
		complete_order(qp);
	return true;
}

bool chain_has_work(const struct nic_qp *qp)
{
	const struct chain *ch = qp->chain;

	return !ch->wait_cq &&
	       ((ch->flags & NIC_CHAIN_CYCLIC) || ch->fetched != ch->enabled);
}

/* Is there room for one more, and may it be fetched already? */
static bool may_fetch(const struct nic_qp *qp)
{
	const struct sendq *q = &qp->sq;

	if ((qp->chain->flags & NIC_CHAIN_ORDERED) && q->tail != q->head)
		return false;
	return q->head - q->tail < q->limit &&
	       q->block_head - q->block_tail + CHAIN_WQE_BLOCKS_MAX <=
		       q->block_count;
}

/* Fetches one request and executes it, or begins to. False: that is all for
 * now. */
HOT static bool step(struct nic_qp *qp)
{
	struct chain *ch = qp->chain;
	union chain_wqe wqe;
	uint8_t *ring, *at;

	if (ch->wait_cq)
		return go_on(qp);
	if (!chain_has_work(qp) || !may_fetch(qp))
		return false;
	if (UNLIKELY(qp->nic->cfg.chain_clock) && !chain_clock_go(qp))
		return false;
	if (UNLIKELY(ch->fuel == 0))
		return end(qp, IBV_WC_FATAL_ERR);
	ring = chain_memory_host(qp, &ch->sq);
	if (UNLIKELY(!ring))
		return end(qp, IBV_WC_LOC_PROT_ERR);
	at = ring + ring_offset(ch, 0);
	if (UNLIKELY(touch_read(&wqe, at, sizeof(wqe)))) {
		count(qp->nic, NIC_C_local_protection);
		return end(qp, IBV_WC_LOC_PROT_ERR);
	}
	ch->fuel--;
	count(qp->nic, NIC_C_chain_steps);
	return is_order(chain_opcode(&wqe)) ? order(qp, &wqe, at)
					    : begin(qp, &wqe, ring);
}

HOT bool chain_run(struct nic_qp *qp)
{
	uint32_t slow = qp->nic->cfg.chain_turn;
	uint32_t left = UNLIKELY(slow) ? slow : NIC_CHAIN_TURN;

	while (left-- && !turn_is_over(qp->nic)) {
		if (qp->sq.send != qp->sq.head) {
			if (!requester_run_queued(qp))
				return false;
			/* It waits for an answer, or the queue pair failed. */
			if (qp->sq.send != qp->sq.head)
				return true;
		}
		if (qp->state != IBV_QPS_RTS || !step(qp))
			return true;
	}
	/* Others have their turn first. */
	chain_wake(qp);
	return true;
}
