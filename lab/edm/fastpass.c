/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fastpass: a central arbiter as EDM's, but on a server behind one port of the
 * network. Its matching is the same scheduler, infinitely fast; every demand
 * and every grant is a control packet through that one port, and that port is
 * what counts. With small messages it is overloaded by orders of magnitude;
 * then times grow with the length of the run, which must be said beside them.
 */
#include <errno.h>
#include <stdlib.h>

#include "edm_rival.h"
#include "edm_sched.h"

enum {
	EV_REQUEST,   /* a read's request at the switch */
	EV_REQUESTED, /* and at the memory node */
	EV_DEMAND,    /* a: message; at the arbiter */
	EV_WAKE,      /* a: token */
	EV_GRANTED,   /* a: packet; at the sender */
	EV_DATA,
	EV_ARRIVED,
};

struct fastpass {
	struct edm_rival r;
	struct edm_sched *sched;
	struct edm_pipe in, out; /* the arbiter's link */
};

static uint64_t control_ps(const struct fastpass *f)
{
	return f->r.run->c.fastpass_free
		       ? 0
		       : f->r.path.control_bytes * f->r.path.byte_ps;
}

/* Host to arbiter or back. */
static uint64_t control_send(struct fastpass *f, struct edm_pipe *pipe)
{
	uint64_t at =
		edm_rival_now(&f->r) + f->r.path.link_ps + f->r.path.switch_ps;

	return edm_pipe_send(pipe, at, control_ps(f)) + control_ps(f) +
	       f->r.path.link_ps;
}

static void demand_send(struct fastpass *f, uint32_t msg)
{
	edm_run_push(f->r.run, control_send(f, &f->in), EV_DEMAND, 0, msg, 0);
}

static void on_demand(struct fastpass *f, uint32_t msg)
{
	const struct edm_msg *m = &f->r.run->msg[msg];
	struct edm_demand d = {
		.src = edm_rival_data_src(m),
		.dst = edm_rival_data_dst(m),
		.handle = msg,
		.bytes = m->bytes,
		.control_port = m->src,
	};
	int rc = edm_sched_notify(f->sched, edm_rival_now(&f->r), &d);

	ASSERT(!rc); /* the arbiter's queues have no bound that is reached */
}

static void on_grant(void *owner, const struct edm_grant *g)
{
	struct fastpass *f = owner;
	uint32_t i = edm_rival_packet(&f->r);

	f->r.packet[i] = (struct edm_packet){
		.msg = g->handle,
		.bytes = g->bytes,
		.wire_bytes = edm_path_bytes(&f->r.path, g->bytes),
		.src = g->src,
		.dst = g->dst,
	};
	f->r.grants++;
	edm_run_push(f->r.run, control_send(f, &f->out), EV_GRANTED, g->src, i,
		     0);
}

static void on_wake(void *owner, uint64_t at_ps, uint32_t token)
{
	struct fastpass *f = owner;

	edm_run_push(f->r.run, at_ps, EV_WAKE, 0, token, 0);
}

static void fastpass_submit(void *proto, uint32_t msg)
{
	struct fastpass *f = proto;

	if (f->r.run->msg[msg].op == EDM_WRITE)
		demand_send(f, msg);
	else
		edm_rival_request(&f->r, msg, EV_REQUEST);
}

static void fastpass_event(void *proto, const struct edm_event *e)
{
	struct fastpass *f = proto;
	struct edm_rival *r = &f->r;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_REQUEST:
		(void)edm_rival_forward(r, e->a, EV_REQUESTED);
		return;
	case EV_REQUESTED:
		demand_send(f, edm_rival_take(r, e->a));
		return;
	case EV_DEMAND:
		on_demand(f, e->a);
		return;
	case EV_WAKE:
		edm_sched_wake(f->sched, e->at_ps, e->a);
		return;
	case EV_GRANTED:
		edm_rival_send(r, e->a, EV_DATA);
		return;
	case EV_DATA:
		(void)edm_rival_forward(r, e->a, EV_ARRIVED);
		return;
	case EV_ARRIVED:
		edm_rival_take_data(r, e->a);
		return;
	default:
		ASSERT(false);
	}
}

static void fastpass_destroy(void *proto)
{
	struct fastpass *f = proto;

	edm_sched_destroy(f->sched);
	edm_rival_destroy(&f->r);
}

static int fastpass_create(struct edm_run *run, void **out)
{
	struct fastpass *f = edm_rival_create(run, sizeof(*f), out);
	struct edm_sched_config sc;

	if (!f)
		return -ENOMEM;
	edm_config_sched(&run->c, &sc);
	sc.discipline = EDM_ASYNC;
	sc.charge_control = false; /* not on these links */
	sc.lanes = 1;
	sc.active_max = UINT16_MAX;
	sc.grant = on_grant;
	sc.wake = on_wake;
	sc.owner = f;
	return edm_sched_create(&sc, &f->sched);
}

const struct edm_proto_ops edm_proto_fastpass = {
	.create = fastpass_create,
	.destroy = fastpass_destroy,
	.submit = fastpass_submit,
	.event = fastpass_event,
	.report = edm_rival_report,
	.lead_ps = edm_rival_lead_ps,
};
