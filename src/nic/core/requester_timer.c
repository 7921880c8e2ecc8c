/* SPDX-License-Identifier: Apache-2.0 */
/* The requester's timers: when what was sent counts as lost. */
#include "requester_timer_priv.h"

static uint64_t retry_timeout_ns(const struct nic_qp *qp)
{
	return 4096ull << qp->timeout;
}

/* A wait begins: remembers what the peer has done so far. */
static void begin_wait(struct nic_qp *qp)
{
	struct env *env = qp->nic->env;

	qp->req.waited = 0;
	qp->req.peer_turns =
		env->ops->path_turns ? env->ops->path_turns(env, qp->path) : 0;
}

static void set_timer(struct nic_qp *qp)
{
	qp->req.progressed = false;
	timer_set(&qp->nic->wheel, &qp->req.timer,
		  env_now_ns(qp->nic->env) + retry_timeout_ns(qp));
}

/*
 * The timer is moved lazily: progress only leaves a mark, and the timer that
 * finds it starts over. So a loss is noticed after one to two timeouts (IBA
 * allows four), and the clock is read once per timeout, not per packet.
 */
void requester_start_timer(struct nic_qp *qp)
{
	if (qp->timeout == 0)
		return;
	if (timer_is_set(&qp->req.timer)) {
		qp->req.progressed = true;
		return;
	}
	begin_wait(qp);
	set_timer(qp);
}

/*
 * Whether the peer had no chance to answer yet. A retry would put another copy
 * beside the request that it has not read, and counting it would fail
 * connections of healthy programs on a machine that is busy. Not for ever: a
 * peer that is never continued is an error. Of a peer behind a network nothing
 * is known, so its timeouts are as long as they may be.
 */
static bool peer_is_slow(struct nic_qp *qp, uint64_t now_ns)
{
	struct env *env = qp->nic->env;
	struct requester *req = &qp->req;
	enum env_peer peer =
		env->ops->path_peer
			? env->ops->path_peer(env, qp->path, req->peer_turns)
			: ENV_PEER_UNKNOWN;

	if (peer == ENV_PEER_STALLED) {
		/* Perhaps it was not known when the wait began. */
		if (req->peer_turns == 0)
			begin_wait(qp);
		if (req->stalled_ns == 0)
			req->stalled_ns = now_ns;
		return now_ns - req->stalled_ns < NIC_STALL_NS;
	}
	req->stalled_ns = 0;
	return peer == ENV_PEER_UNKNOWN && qp->lossy &&
	       ++req->waited < NIC_TIMEOUT_STRETCH;
}

static void on_timer(struct timer *t, uint64_t now_ns)
{
	struct nic_qp *qp = container_of(t, struct nic_qp, req.timer);
	struct requester *req = &qp->req;

	if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
		return;
	if (req->rnr_wait) {
		req->rnr_wait = false;
		requester_start_timer(qp);
		requester_start_rto(qp);
		qp_make_ready(qp);
		return;
	}
	if (req->una_psn == req->next_psn || qp->timeout == 0)
		return;
	if (req->progressed) {
		requester_start_timer(qp);
		return;
	}
	if (peer_is_slow(qp, now_ns)) {
		set_timer(qp);
		return;
	}
	count(qp->nic, NIC_C_timeouts);
	req->restarted = false;
	requester_retry(qp, IBV_WC_RETRY_EXC_ERR);
	if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
		requester_start_timer(qp);
}

/*
 * Over a network that loses, a second timer works in round trips and not in
 * what the application allows for. It uses up no retry: who fails, and when, is
 * the first timer's.
 */
void requester_set_rto(struct nic_qp *qp)
{
	struct requester *req = &qp->req;

	req->rto_ns = env_now_ns(qp->nic->env) + congestion_rto_ns(&qp->cc);
	if (!timer_is_set(&req->rto_timer))
		timer_set(&qp->nic->wheel, &req->rto_timer, req->rto_ns);
}

static void on_rto(struct timer *t, uint64_t now_ns)
{
	struct nic_qp *qp = container_of(t, struct nic_qp, req.rto_timer);
	struct requester *req = &qp->req;

	if ((qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD) ||
	    req->rnr_wait || req->una_psn == req->next_psn || !qp->lossy)
		return;
	if (now_ns < req->rto_ns) {
		timer_set(&qp->nic->wheel, t, req->rto_ns);
		return;
	}
	count(qp->nic, NIC_C_fast_timeouts);
	congestion_lost(&qp->cc, req->next_psn, true);
	requester_go_back(qp);
	requester_start_rto(qp);
}

void requester_stop_timers(struct nic_qp *qp)
{
	timer_cancel(&qp->nic->wheel, &qp->req.timer);
	timer_cancel(&qp->nic->wheel, &qp->req.rto_timer);
}

void requester_reset(struct nic_qp *qp)
{
	struct requester *req = &qp->req;

	requester_stop_timers(qp);
	*req = (struct requester){0};
	timer_init(&req->timer, on_timer);
	timer_init(&req->rto_timer, on_rto);
}
