/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pFabric: packets carry what is left of their message, hosts and egress queues
 * send the most urgent first and a full queue drops the least urgent. Rate
 * control is minimal: a fixed window of one delay-bandwidth product, a short
 * timeout, and single probes after repeated timeouts. Acknowledgements are the
 * most urgent of all and take a delay but no bandwidth, in favour of this
 * rival.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "edm_pfabric.h"
#include "edm_rival.h"

enum {
	EV_HOST,    /* port: link is free */
	EV_DATA,    /* at the switch */
	EV_OUT,	    /* port: egress is free */
	EV_ARRIVED, /* at the receiver */
	EV_ACKED,   /* a: message; b: packet number, turn above */
	EV_TIMER,   /* a: message; b: turn */
	PROBE_AFTER = 5,
	QUEUE_BYTES_MIN = 36864,
};

/* State of a message that is being sent. */
struct flow {
	uint32_t packets, bytes;
	uint32_t next; /* first never sent, or to be sent again */
	uint32_t in_flight;
	uint32_t acked;
	uint32_t timeouts; /* in a row */
	uint64_t progress_ps;
	bool request;
	uint64_t got[]; /* bits: acknowledged, then received */
};

struct host {
	struct edm_list flows; /* message numbers */
	bool busy;
};

struct pfabric {
	struct edm_rival r;
	struct host *host;
	struct edm_pfabric_queue *out;
	bool *out_busy;
	uint32_t window;
	uint64_t timeout_ps;
};

static uint32_t words(uint32_t packets)
{
	return (packets + 63) / 64;
}

static bool bit_set(uint64_t *bits, uint32_t i)
{
	uint64_t mask = UINT64_C(1) << (i % 64);
	bool was = bits[i / 64] & mask;

	bits[i / 64] |= mask;
	return was;
}

static struct flow *flow_of(const struct pfabric *x, uint32_t msg)
{
	return x->r.run->msg[msg].flow;
}

static uint32_t flow_left(const struct pfabric *x, const struct flow *f)
{
	uint64_t done = (uint64_t)f->acked * x->r.path.mtu_bytes;

	return f->bytes > done ? (uint32_t)(f->bytes - done) : 1;
}

/* Moves to the next packet that is not acknowledged. */
static bool flow_can_send(const struct pfabric *x, struct flow *f)
{
	uint32_t window = f->timeouts >= PROBE_AFTER ? 1 : x->window;

	while (f->next < f->packets &&
	       f->got[f->next / 64] >> (f->next % 64) & 1)
		f->next++;
	return f->next < f->packets && f->in_flight < window;
}

static void host_send(struct pfabric *x, uint16_t port)
{
	struct edm_rival *r = &x->r;
	struct host *h = &x->host[port];
	uint32_t best = EDM_MSG_NONE, i;
	struct edm_packet *p;
	struct flow *f;

	h->busy = false;
	for (i = 0; i < h->flows.count; i++) {
		f = flow_of(x, h->flows.item[i]);
		if (flow_can_send(x, f) &&
		    (best == EDM_MSG_NONE ||
		     flow_left(x, f) < flow_left(x, flow_of(x, best))))
			best = h->flows.item[i];
	}
	if (best == EDM_MSG_NONE)
		return;
	f = flow_of(x, best);
	i = edm_rival_packet(r);
	p = &r->packet[i];
	p->msg = best;
	p->turn = r->run->msg[best].turn;
	p->seq = (uint64_t)flow_left(x, f) << 32 | f->next;
	p->bytes = u32_min(f->bytes - f->next * r->path.mtu_bytes,
			   r->path.mtu_bytes);
	p->wire_bytes = edm_path_bytes(&r->path, p->bytes);
	p->src = port;
	p->dst = port == r->run->msg[best].src ? r->run->msg[best].dst
					       : r->run->msg[best].src;
	p->part = f->request ? EDM_PART_REQUEST : EDM_PART_DATA;
	f->next++;
	f->in_flight++;
	h->busy = true;
	edm_rival_send(r, i, EV_DATA);
	edm_run_push(r->run, r->up[port].busy_ps, EV_HOST, port, 0, 0);
}

static void flow_start(struct pfabric *x, uint32_t msg, uint16_t port,
		       bool request)
{
	struct edm_msg *m = &x->r.run->msg[msg];
	uint32_t bytes = edm_rival_part_bytes(m, request);
	uint32_t packets =
		(bytes + x->r.path.mtu_bytes - 1) / x->r.path.mtu_bytes;
	struct flow *f;

	f = calloc(1, sizeof(*f) + 2 * words(packets) * sizeof(uint64_t));
	ASSERT(f);
	f->packets = packets;
	f->bytes = bytes;
	f->request = request;
	f->progress_ps = edm_rival_now(&x->r);
	m->flow = f;
	edm_list_add(&x->host[port].flows, msg);
	edm_run_push(x->r.run, f->progress_ps + x->timeout_ps, EV_TIMER, port,
		     msg, m->turn);
	if (!x->host[port].busy)
		host_send(x, port);
}

static void flow_end(struct pfabric *x, uint32_t msg, uint16_t port)
{
	struct edm_list *flows = &x->host[port].flows;
	uint32_t i = 0;

	while (i < flows->count && flows->item[i] != msg)
		i++;
	ASSERT(i < flows->count);
	(void)edm_list_take(flows, i);
	free(x->r.run->msg[msg].flow);
	x->r.run->msg[msg].flow = NULL;
}

static void out_next(struct pfabric *x, uint16_t port)
{
	struct edm_rival *r = &x->r;
	uint32_t i = edm_pfabric_pop(&x->out[port], r->packet);

	x->out_busy[port] = i != EDM_MSG_NONE;
	if (i == EDM_MSG_NONE)
		return;
	(void)edm_rival_forward(r, i, EV_ARRIVED);
	edm_run_push(r->run, r->down[port].busy_ps, EV_OUT, port, 0, 0);
}

static void on_data(struct pfabric *x, uint32_t i)
{
	struct edm_rival *r = &x->r;
	uint16_t port = r->packet[i].dst;
	uint32_t dropped = edm_pfabric_push(&x->out[port], r->packet, i);

	while (dropped != EDM_MSG_NONE) {
		uint32_t next = r->packet[dropped].next;

		r->drops++;
		edm_rival_packet_put(r, dropped);
		dropped = next;
	}
	if (!x->out_busy[port])
		out_next(x, port);
}

static void on_arrived(struct pfabric *x, uint32_t i)
{
	struct edm_rival *r = &x->r;
	struct edm_packet p = r->packet[i];
	struct edm_msg *m = &r->run->msg[p.msg];
	struct flow *f = m->flow;
	uint32_t number = (uint32_t)p.seq;

	edm_rival_packet_put(r, i);
	/* A second copy, or the request of a read that is answered already. */
	if (!m->live || m->turn != p.turn || !f ||
	    f->request != (p.part == EDM_PART_REQUEST))
		return;
	edm_run_push(r->run, edm_rival_now(r) + edm_path_one_way_ps(&r->path),
		     EV_ACKED, p.src, p.msg, number | p.turn << 16);
	if (bit_set(f->got + words(f->packets), number))
		return;
	if (f->request) {
		/* One packet; the answer takes over the message. */
		flow_end(x, p.msg, p.src);
		m->turn++;
		flow_start(x, p.msg, p.dst, false);
		return;
	}
	m->got_bytes[0] += p.bytes;
	if (m->got_bytes[0] == m->bytes)
		edm_run_done(r->run, p.msg, false);
}

static void on_acked(struct pfabric *x, uint16_t port, uint32_t msg,
		     uint32_t tag)
{
	struct edm_rival *r = &x->r;
	struct edm_msg *m = &r->run->msg[msg];
	struct flow *f = m->flow;
	uint32_t number = tag & 0xffff;

	/* 16 MB are 11,492 packets, so both fit. */
	if (!m->live || !f || (m->turn & 0xffff) != tag >> 16)
		return;
	ASSERT(number < f->packets);
	f->progress_ps = edm_rival_now(r);
	f->timeouts = 0;
	f->in_flight -= f->in_flight != 0;
	if (!bit_set(f->got, number))
		f->acked++;
	if (f->acked == f->packets && m->done) {
		flow_end(x, msg, port);
		edm_run_forget(r->run, msg);
	}
	if (!x->host[port].busy)
		host_send(x, port);
}

static void on_timer(struct pfabric *x, uint16_t port, uint32_t msg,
		     uint32_t turn)
{
	struct edm_msg *m = &x->r.run->msg[msg];
	struct flow *f = m->flow;
	uint64_t now = edm_rival_now(&x->r);
	bool waiting;

	if (!m->live || m->turn != turn || !f)
		return;
	/* Waiting in the host for more urgent messages is no loss. Packets sent
	 * twice are acknowledged twice, so in_flight alone does not tell. */
	waiting = f->in_flight || !flow_can_send(x, f);
	if (waiting && now >= f->progress_ps + x->timeout_ps) {
		x->r.timeouts++;
		f->timeouts++;
		f->in_flight = 0;
		f->next = 0;
		f->progress_ps = now;
		if (!x->host[port].busy)
			host_send(x, port);
	}
	edm_run_push(x->r.run, (waiting ? f->progress_ps : now) + x->timeout_ps,
		     EV_TIMER, port, msg, turn);
}

static void pfabric_submit(void *proto, uint32_t msg)
{
	struct pfabric *x = proto;
	const struct edm_msg *m = &x->r.run->msg[msg];

	flow_start(x, msg, m->src, m->op != EDM_WRITE);
}

static void pfabric_event(void *proto, const struct edm_event *e)
{
	struct pfabric *x = proto;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_HOST:
		host_send(x, e->port);
		return;
	case EV_DATA:
		on_data(x, e->a);
		return;
	case EV_OUT:
		out_next(x, e->port);
		return;
	case EV_ARRIVED:
		on_arrived(x, e->a);
		return;
	case EV_ACKED:
		on_acked(x, e->port, e->a, e->b);
		return;
	case EV_TIMER:
		on_timer(x, e->port, e->a, e->b);
		return;
	default:
		ASSERT(false);
	}
}

static void pfabric_destroy(void *proto)
{
	struct pfabric *x = proto;
	struct edm_run *run = x->r.run;

	for (uint32_t i = 0; i < run->msg_used; i++)
		if (run->msg[i].live)
			free(run->msg[i].flow);
	for (uint32_t i = 0; i < x->r.nodes; i++) {
		if (x->host)
			free(x->host[i].flows.item);
		if (x->out)
			edm_pfabric_release(&x->out[i]);
	}
	edm_rival_destroy(x);
}

static int pfabric_create(struct edm_run *run, void **out)
{
	struct pfabric *x = edm_rival_create(run, sizeof(*x), out);
	uint64_t round_ps, round_bytes;
	size_t n = run->c.nodes;

	if (!x)
		return -ENOMEM;
	x->host = edm_rival_array(&x->r, n, sizeof(*x->host));
	x->out = edm_rival_array(&x->r, n, sizeof(*x->out));
	x->out_busy = edm_rival_array(&x->r, n, sizeof(*x->out_busy));
	if (!x->host || !x->out || !x->out_busy)
		return -ENOMEM;
	round_ps = 2 * edm_path_one_way_ps(&x->r.path);
	round_bytes = round_ps / x->r.path.byte_ps;
	/* Published for 100 Gb/s: window 19 packets, queue 36,864 B. */
	x->window = run->c.published
			    ? 19
			    : (uint32_t)(round_bytes / x->r.path.mtu_bytes) + 2;
	x->timeout_ps =
		3 * round_ps + 10 * x->r.path.mtu_bytes * x->r.path.byte_ps;
	for (size_t i = 0; i < n; i++)
		x->out[i].limit_bytes =
			run->c.published
				? QUEUE_BYTES_MIN
				: u64_max(QUEUE_BYTES_MIN, 2 * round_bytes);
	return 0;
}

static void pfabric_report(void *proto, struct edm_result *out)
{
	struct pfabric *x = proto;

	edm_rival_report(&x->r, out);
	for (uint32_t i = 0; i < x->r.nodes; i++)
		out->egress_blocks_max = u64_max(out->egress_blocks_max,
						 x->out[i].bytes_max / 8);
}

const struct edm_proto_ops edm_proto_pfabric = {
	.create = pfabric_create,
	.destroy = pfabric_destroy,
	.submit = pfabric_submit,
	.event = pfabric_event,
	.report = pfabric_report,
	.lead_ps = edm_rival_lead_ps,
};
