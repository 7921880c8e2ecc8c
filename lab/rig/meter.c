/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts what a host's process posts and polls, and kills it at a chosen
 * doorbell: all that others can ever see of a process goes through one, so
 * killing it before, inside and after each is killing it at every step.
 */
#include "client/verbs_api.h"
#include "stage_priv.h"

/* Queues of this room carry their host as the user's pointer. */
static struct rig_host *host_of(void *user)
{
	return user;
}

static uint32_t length(const struct ibv_send_wr *wr)
{
	uint32_t n = 0;

	for (; wr; wr = wr->next)
		n++;
	return n;
}

/* The first half of a list, then death. */
static void post_half(struct rig_host *h, struct ibv_qp *qp,
		      struct ibv_send_wr *wr)
{
	struct ibv_send_wr *last = wr, *bad;
	uint32_t half = length(wr) / 2;

	if (!half)
		return;
	while (--half)
		last = last->next;
	last->next = NULL;
	(void)h->post_send(qp, wr, &bad); /* nobody is left to be told */
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct rig_host *h = host_of(qp->qp_context);
	struct rig_meter *m = &h->meter;
	bool last = ++m->doorbells == m->kill_at;
	int err;

	m->requests += length(wr);
	if (last && m->kill_when != RIG_KILL_AFTER) {
		if (m->kill_when == RIG_KILL_INSIDE)
			post_half(h, qp, wr);
		rig_host_kill(h);
	}
	err = h->post_send(qp, wr, bad);
	if (last)
		rig_host_kill(h);
	return err;
}

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct rig_host *h = host_of(cq->cq_context);
	int n = h->poll_cq(cq, entries, wc);

	h->meter.polls++;
	if (n > 0)
		h->meter.completions += (uint64_t)n;
	return n;
}

void rig_meter_install(struct rig_host *h)
{
	h->post_send = h->context->ops.post_send;
	h->poll_cq = h->context->ops.poll_cq;
	h->context->ops.post_send = post_send;
	h->context->ops.poll_cq = poll_cq;
}

struct ibv_cq *rig_cq_create(struct rig_host *h, uint32_t depth)
{
	return h->stage->verbs->create_cq(h->context, (int)depth, h, NULL, 0);
}
