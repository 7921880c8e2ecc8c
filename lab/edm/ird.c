/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IRD, an idealized receiver-driven transport. A receiver knows of a message
 * the moment its sender has it. Each receiver on its own gives out credits of
 * one chunk, shortest remaining message first, at its line rate and no more
 * than one delay-bandwidth product ahead; the switch passes credits to a sender
 * at the rate at which the chunks would come back; a sender with several
 * credits serves the shortest message and lets the other receivers wait. That
 * last sentence is what a central matching avoids.
 */
#include <errno.h>
#include <stdlib.h>

#include "edm_rival.h"

enum {
	EV_REQUEST,   /* a read's request arrives at the switch */
	EV_REQUESTED, /* and at the memory node */
	EV_CREDIT,    /* port: receiver; may give the next credit */
	EV_GRANTED,   /* a: credit packet, at the sender */
	EV_SENDER,    /* port: sender; its link is free */
	EV_DATA,      /* at the switch */
	EV_ARRIVED,
};

struct receiver {
	struct edm_list msgs; /* with bytes that have no credit yet */
	uint64_t ahead;	      /* bytes credited, not arrived */
	uint64_t next_ps;     /* earliest time of the next credit */
	bool waiting;	      /* an EV_CREDIT is set */
};

struct sender {
	struct edm_list credits; /* packets */
	struct edm_pipe shaper;	 /* of credits, in the switch */
	bool busy;
};

struct ird {
	struct edm_rival r;
	struct receiver *receiver;
	struct sender *sender;
	uint64_t ahead_max; /* bytes */
};

static uint64_t chunk_ps(const struct ird *d, uint32_t bytes)
{
	return edm_path_bytes(&d->r.path, bytes) * d->r.path.byte_ps;
}

/* What is left of it to be credited. */
static uint32_t msg_left(const struct ird *d, uint32_t msg)
{
	const struct edm_msg *m = &d->r.run->msg[msg];

	return m->bytes - m->sent_bytes[0];
}

static void credit_send(struct ird *d, uint16_t port, uint32_t msg)
{
	struct edm_rival *r = &d->r;
	struct edm_msg *m = &r->run->msg[msg];
	uint32_t bytes = u32_min(msg_left(d, msg), r->run->c.chunk_bytes);
	uint32_t i = edm_rival_packet(r);
	struct edm_packet *p = &r->packet[i];
	uint64_t at;

	*p = (struct edm_packet){
		.msg = msg,
		.bytes = bytes,
		.wire_bytes = edm_path_bytes(&r->path, bytes),
		.src = edm_rival_data_src(m),
		.dst = port,
		/* The sender's order: what is left including this. */
		.seq = m->bytes - m->sent_bytes[0],
	};
	m->sent_bytes[0] += bytes;
	r->grants++;
	/* Credits are small; only the shaper can hold them up. */
	at = edm_rival_now(r) + r->path.link_ps + r->path.switch_ps;
	at = edm_pipe_send(&d->sender[p->src].shaper, at, chunk_ps(d, bytes));
	edm_run_push(r->run, at + r->path.link_ps, EV_GRANTED, p->src, i, 0);
}

static void receiver_wait(struct ird *d, uint16_t port)
{
	struct receiver *v = &d->receiver[port];

	if (v->waiting || !v->msgs.count || v->ahead >= d->ahead_max)
		return;
	v->waiting = true;
	edm_run_push(d->r.run, u64_max(v->next_ps, edm_rival_now(&d->r)),
		     EV_CREDIT, port, 0, 0);
}

static void receiver_credit(struct ird *d, uint16_t port)
{
	struct receiver *v = &d->receiver[port];
	uint32_t best = 0, msg;

	v->waiting = false;
	if (!v->msgs.count || v->ahead >= d->ahead_max)
		return;
	for (uint32_t i = 1; i < v->msgs.count; i++)
		if (msg_left(d, v->msgs.item[i]) <
		    msg_left(d, v->msgs.item[best]))
			best = i;
	msg = v->msgs.item[best];
	v->ahead += u32_min(msg_left(d, msg), d->r.run->c.chunk_bytes);
	v->next_ps =
		edm_rival_now(&d->r) +
		chunk_ps(d, u32_min(msg_left(d, msg), d->r.run->c.chunk_bytes));
	credit_send(d, port, msg);
	if (!msg_left(d, msg))
		(void)edm_list_take(&v->msgs, best);
	receiver_wait(d, port);
}

static void sender_next(struct ird *d, uint16_t port)
{
	struct sender *s = &d->sender[port];
	struct edm_rival *r = &d->r;
	uint32_t best = 0, i;

	s->busy = false;
	if (!s->credits.count)
		return;
	for (i = 1; i < s->credits.count; i++)
		if (r->packet[s->credits.item[i]].seq <
		    r->packet[s->credits.item[best]].seq)
			best = i;
	i = edm_list_take(&s->credits, best);
	s->busy = true;
	edm_rival_send(r, i, EV_DATA);
	edm_run_push(r->run, r->up[port].busy_ps, EV_SENDER, port, 0, 0);
}

/* The sender has the data: its receiver knows at once. */
static void announce(struct ird *d, uint32_t msg)
{
	uint16_t port = edm_rival_data_dst(&d->r.run->msg[msg]);

	edm_list_add(&d->receiver[port].msgs, msg);
	receiver_wait(d, port);
}

static void ird_submit(void *proto, uint32_t msg)
{
	struct ird *d = proto;

	if (d->r.run->msg[msg].op == EDM_WRITE)
		announce(d, msg);
	else
		edm_rival_request(&d->r, msg, EV_REQUEST);
}

static void ird_event(void *proto, const struct edm_event *e)
{
	struct ird *d = proto;
	struct edm_rival *r = &d->r;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_REQUEST:
		(void)edm_rival_forward(r, e->a, EV_REQUESTED);
		return;
	case EV_REQUESTED:
		announce(d, edm_rival_take(r, e->a));
		return;
	case EV_CREDIT:
		receiver_credit(d, e->port);
		return;
	case EV_GRANTED:
		edm_list_add(&d->sender[e->port].credits, e->a);
		if (!d->sender[e->port].busy)
			sender_next(d, e->port);
		return;
	case EV_SENDER:
		sender_next(d, e->port);
		return;
	case EV_DATA:
		(void)edm_rival_forward(r, e->a, EV_ARRIVED);
		return;
	case EV_ARRIVED:
		d->receiver[e->port].ahead -= r->packet[e->a].bytes;
		edm_rival_take_data(r, e->a);
		receiver_wait(d, e->port);
		return;
	default:
		ASSERT(false);
	}
}

static void ird_destroy(void *proto)
{
	struct ird *d = proto;

	for (uint32_t i = 0; i < d->r.nodes; i++) {
		if (d->receiver)
			free(d->receiver[i].msgs.item);
		if (d->sender)
			free(d->sender[i].credits.item);
	}
	edm_rival_destroy(d);
}

static int ird_create(struct edm_run *run, void **out)
{
	struct ird *d = edm_rival_create(run, sizeof(*d), out);
	uint64_t round_ps;

	if (!d)
		return -ENOMEM;
	d->receiver =
		edm_rival_array(&d->r, run->c.nodes, sizeof(*d->receiver));
	d->sender = edm_rival_array(&d->r, run->c.nodes, sizeof(*d->sender));
	if (!d->receiver || !d->sender)
		return -ENOMEM;
	round_ps = 2 * edm_path_one_way_ps(&d->r.path);
	d->ahead_max = round_ps / d->r.path.byte_ps + 2 * run->c.chunk_bytes;
	return 0;
}

const struct edm_proto_ops edm_proto_ird = {
	.create = ird_create,
	.destroy = ird_destroy,
	.submit = ird_submit,
	.event = ird_event,
	.report = edm_rival_report,
	.lead_ps = edm_rival_lead_ps,
};
