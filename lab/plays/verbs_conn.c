/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the play: making them, giving them up, and again. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <string.h>

#include "verbs_priv.h"

enum {
	PORT = 1,
	HOP_LIMIT = 64,
};

#define FLUSH_PS       (1 * SIM_MS) /* for every flush to be polled */
#define DRAIN_LIMIT_PS (100 * SIM_MS)
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

int vs_ep_create_qp(struct vs_ep *ep)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = ep,
		.send_cq = ep->send_cq,
		.recv_cq = ep->recv_cq,
		.srq = ep->use_srq ? ep->node->srq : NULL,
		.cap = {.max_send_wr = ep->sq_max,
			.max_recv_wr = ep->use_srq ? 0 : ep->rq_max,
			.max_send_sge = ep->sge_max,
			.max_recv_sge = ep->use_srq ? 0 : ep->sge_max,
			.max_inline_data = ep->inline_max},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = ep->sig_all,
	};

	ep->qp = ibv_create_qp(ep->node->pd, &attr);
	return ep->qp ? aqdv_qp_set_walk_pad(ep->qp, VS_WALK_PAD) : -errno;
}

static int to_init(struct vs_ep *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = ACCESS};

	return -ibv_modify_qp(ep->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct vs_ep *ep, uint8_t rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = ep->s->mtu,
		.dest_qp_num = ep->peer->qp->qp_num,
		.rq_psn = ep->peer->psn,
		.max_dest_rd_atomic = rd_atomic,
		/* 10 to 640 microseconds. */
		.min_rnr_timer = (uint8_t)sim_rand_range(&ep->rand, 1, 12),
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.dgid = ep->peer->node->gid,
				    .hop_limit = HOP_LIMIT}}};

	return -ibv_modify_qp(ep->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct vs_ep *ep, uint8_t rd_atomic)
{
	bool healed = ep->s->vs->phase != VS_CHAOS;
	unsigned longer = ep->s->vs->mild ? 4 : 0;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .rnr_retry = 7,
				   .sq_psn = ep->psn,
				   .max_rd_atomic = rd_atomic};

	/* 0.26 to 2.1 milliseconds, or 4.2 to 34. */
	attr.timeout = (uint8_t)(sim_rand_range(&ep->rand, 6, 9) + longer);
	attr.retry_cnt = (uint8_t)sim_rand_range(&ep->rand, 4, 7);
	if (!healed && sim_rand_below(&ep->rand, 4) == 0)
		attr.rnr_retry = (uint8_t)sim_rand_range(&ep->rand, 1, 6);
	ep->rnr_retry = attr.rnr_retry;
	return -ibv_modify_qp(ep->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
}

/* A new one for each connection. */
static int set_key(struct vs_conn *s)
{
	uint8_t key[AQDV_AUTH_KEY_BYTES];
	int err = 0;

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)sim_rand_below(&s->vs->run.rand, 256);
	for (unsigned i = 0; !err && i < 2; i++)
		err = aqdv_qp_set_auth(s->ep[i].qp, key, sizeof(key));
	return err;
}

int vs_conn_connect(struct vs_conn *s)
{
	struct rng *r = &s->vs->run.rand;
	uint8_t rd = (uint8_t)sim_rand_range(r, 1, 16);
	int err = 0;

	s->mtu = (enum ibv_mtu)sim_rand_range(r, IBV_MTU_256, IBV_MTU_4096);
	for (unsigned i = 0; !err && i < 2; i++) {
		struct vs_ep *ep = &s->ep[i];

		/* Far ahead of the last connection's numbers, so that what is
		 * left of it in the network looks old. Sometimes the circle
		 * closes soon. */
		ep->psn = (ep->psn + (1u << 21) + sim_rand_below(r, 1u << 21)) &
			  0xffffff;
		if (s->epoch == 0 && sim_rand_below(r, 3) == 0)
			ep->psn = 0xffffff - sim_rand_below(r, 200);
		err = to_init(ep);
		if (!err)
			vs_post_recvs(ep);
	}
	if (!err && s->vs->opt->auth)
		err = set_key(s);
	for (unsigned i = 0; i < 2; i++)
		vs_record_begin(&s->ep[i]);
	for (unsigned i = 0; !err && i < 2; i++)
		err = to_rtr(&s->ep[i], rd);
	for (unsigned i = 0; !err && i < 2; i++)
		err = to_rts(&s->ep[i], rd);
	s->epoch++;
	s->was_cut = false;
	s->state = VS_RUN;
	return err;
}

void vs_ep_fail_qp(struct vs_ep *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int err;

	if (ep->failed_itself)
		return;
	ep->failed_itself = true;
	vs_trace(ep->s->vs, "%s: to error", ep->name);
	err = ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE);
	if (err)
		vs_fail(ep->s->vs, "%s: going to ERR failed with %d", ep->name,
			err);
}

void vs_conn_break(struct vs_conn *s)
{
	uint64_t now_ps = sim_now_ps(s->vs->run.sim);

	if (s->state != VS_RUN)
		return;
	s->state = VS_DRAIN;
	s->ep[0].drain_ps = now_ps;
	s->ep[1].drain_ps = now_ps;
}

/* ---- the end of an epoch ------------------------------------------------ */

static void check_explained(struct vs_ep *ep)
{
	struct vs *vs = ep->s->vs;

	vs_record_explain(ep);
	/* Several losses in a row are as good as impossible here. */
	if (ep->gave_up && vs->mild && !ep->s->was_cut && !ep->bad_posted &&
	    !ep->peer->failed_cause && !ep->peer->short_seen &&
	    !ep->peer->broke && !ep->peer->node->crashed)
		vs_fail(vs, "%s: out of retries, but the network is mild",
			ep->name);
	if (ep->short_claimed && !ep->peer->short_seen &&
	    !ep->peer->node->crashed)
		vs_fail(vs,
			"%s: refused as too long, but no receive was too small",
			ep->name);
}

static void settle_ep(struct vs_ep *ep)
{
	struct vs *vs = ep->s->vs;

	/* Only a crash leaves requests without completions. */
	while (ep->sq_head != ep->sq_tail) {
		struct vs_op *op = ep->sq[ep->sq_head++ % VS_SQ_MAX];

		if (op->land >= 0)
			vs_slot_drop(&ep->land, (unsigned)op->land);
		ep->unsure[ep->unsure_count++] = op;
	}
	while (ep->rq_head != ep->rq_tail) {
		struct vs_recv *recv = &ep->rq[ep->rq_head++ % VS_RQ_MAX];

		vs_slot_drop(&ep->rq_slots, (unsigned)(recv->id % VS_ID_SLOTS));
	}
	while (ep->msg_first) {
		if (ep->msg_first->acked && !ep->peer->node->crashed)
			vs_fail(vs,
				"%s: message %lu was acknowledged, but never "
				"received",
				ep->name, ep->msg_first->id);
		vs_msg_pop(ep);
	}
	if (!vs->run.res->violations)
		vs_shadow_settle(ep, ep->unsure, ep->unsure_count);
	for (unsigned i = 0; i < ep->unsure_count; i++)
		vs_op_put(ep->unsure[i]);
	ep->unsure_count = 0;
}

void vs_conn_settle(struct vs_conn *s)
{
	for (unsigned i = 0; i < 2 && !s->vs->run.res->violations; i++)
		vs_poll(s->ep[i].node);
	for (unsigned i = 0; i < 2; i++) {
		if (!s->vs->run.res->violations && !s->ep[i].node->crashed)
			check_explained(&s->ep[i]);
		settle_ep(&s->ep[i]);
	}
}

static int renew_window(struct vs_ep *ep)
{
	int access = ACCESS | IBV_ACCESS_MW_BIND;
	struct rng *r = &ep->rand;
	uint32_t key = ep->window_mr->rkey;
	int err;

	switch (sim_rand_below(r, 4)) {
	case 0:
		err = -ibv_dereg_mr(ep->window_mr);
		ep->window_mr = vs_reg(ep->node, &ep->window, access);
		if (err || !ep->window_mr)
			return err ? err : -errno;
		ep->stale_key = key;
		break;
	case 1:
		err = ibv_rereg_mr(ep->window_mr, IBV_REREG_MR_CHANGE_ACCESS,
				   ep->node->pd, NULL, 0, access);
		if (err)
			return -EIO;
		if (ep->window_mr->rkey != key)
			ep->stale_key = key;
		break;
	default:
		return 0;
	}
	ep->s->vs->n->reregs++;
	return 0;
}

static int renew_qp(struct vs_ep *ep, bool recreate)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (!recreate)
		return -ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE);
	if (ibv_destroy_qp(ep->qp))
		return -EBUSY;
	ep->qp = NULL;
	return vs_ep_create_qp(ep);
}

static int renew_ep(struct vs_ep *ep, bool recreate)
{
	int err = renew_qp(ep, recreate);

	if (!err)
		err = vs_mw_renew(ep);
	if (!err)
		err = renew_window(ep);
	ep->failed_send = false;
	ep->failed_cause = false;
	ep->failed_itself = false;
	ep->flush_seen = false;
	ep->bad_posted = false;
	ep->short_seen = false;
	ep->short_claimed = false;
	ep->gave_up = false;
	ep->gave_up_whole = false;
	ep->gave_up_clean = false;
	ep->broke = false;
	ep->drained = false;
	ep->unsignaled = 0;
	return err;
}

static void renew_conn(struct vs_conn *s)
{
	struct vs *vs = s->vs;
	bool recreate = sim_rand_below(&vs->run.rand, 2);
	int err = 0;

	vs->n->resets++;
	vs->n->recreates += recreate;
	vs_trace(vs, "connection %u: connect again%s", s->index,
		 recreate ? " with new queue pairs" : "");
	for (unsigned i = 0; !err && i < 2; i++)
		err = renew_ep(&s->ep[i], recreate);
	if (!err)
		err = vs_conn_connect(s);
	if (err)
		vs_fail(vs, "connection %u: connecting again failed with %d",
			s->index, err);
}

void vs_conn_drain(struct vs_ep *ep)
{
	struct vs_conn *s = ep->s;
	struct vs *vs = s->vs;
	bool alone = ep->peer->node->crashed;

	vs_ep_fail_qp(ep);
	if (sim_now_ps(vs->run.sim) > ep->drain_ps + FLUSH_PS)
		vs_retire_silent(ep);
	ep->drained = ep->sq_head == ep->sq_tail && ep->rq_head == ep->rq_tail;
	if (!ep->drained &&
	    sim_now_ps(vs->run.sim) > ep->drain_ps + DRAIN_LIMIT_PS) {
		vs_fail(vs,
			"%s: in error, but %u requests and %u receives were "
			"never flushed",
			ep->name, ep->sq_tail - ep->sq_head,
			ep->rq_tail - ep->rq_head);
		return;
	}
	if (!ep->drained || (!alone && !ep->peer->drained))
		return;
	vs_conn_settle(s);
	if (vs->run.res->violations)
		return;
	if (alone)
		s->state = VS_DEAD;
	else if (s->parting)
		s->state = VS_DONE;
	else
		renew_conn(s);
}
