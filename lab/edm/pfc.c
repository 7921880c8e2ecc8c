/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCE over a lossless Ethernet: priority flow control pauses a host whose
 * packets fill the switch, DCQCN (dcqcn.c) slows the queue pairs whose packets
 * were marked. Queue pairs of a host take turns; egress queues are first come
 * first served. Acknowledgements are left out, in favour of this rival.
 */
#include <errno.h>

#include "edm_dcqcn.h"
#include "edm_rival.h"

enum {
	EV_HOST,    /* port: may send now */
	EV_DATA,    /* at the switch */
	EV_LEFT,    /* a: bytes; port: input port they came from */
	EV_ARRIVED, /* at the receiver */
	EV_PAUSE,   /* port: host; a: 1 pause, 0 resume */
	EV_NOTIFY,  /* a: queue pair; a congestion notification arrives */
	RESUME_BYTES = 3000,
	PAUSE_BYTES = 64000,
	NOTIFY_EVERY_US = 50,
	NONE = UINT32_MAX,
};

struct pair {
	struct edm_dcqcn law;
	uint64_t ready_ps; /* its rate allows the next packet */
	uint64_t notified_ps;
	struct edm_fifo parts; /* bytes: what is left of them */
	uint32_t next;	       /* in the host's ring */
	bool listed;
};

struct host {
	uint32_t ring; /* last of the active queue pairs; NONE: none */
	bool paused, kicked;
	uint64_t kick_ps;
};

struct input {
	uint64_t bytes; /* of this port in the switch */
	bool pausing;
};

struct pfc {
	struct edm_rival r;
	struct edm_dcqcn_params law;
	struct pair *pair;
	struct host *host;
	struct input *input;
	uint64_t used_bytes;
	double mark_low, mark_high, mark_max;
	struct rng rng;
};

/* ---- hosts
 * --------------------------------------------------------------------- */

static void host_kick(struct pfc *x, uint16_t port, uint64_t at_ps)
{
	struct host *h = &x->host[port];

	at_ps = u64_max(at_ps, x->r.up[port].busy_ps);
	if (h->paused || (h->kicked && h->kick_ps <= at_ps))
		return;
	h->kicked = true;
	h->kick_ps = at_ps;
	edm_run_push(x->r.run, at_ps, EV_HOST, port, 0, 0);
}

static void pair_write(struct pfc *x, uint16_t src, uint16_t dst, uint32_t msg,
		       bool request)
{
	uint32_t q = src * x->r.nodes + dst;
	struct pair *k = &x->pair[q];
	struct host *h = &x->host[src];

	edm_fifo_push(&x->r, &k->parts, edm_rival_part(&x->r, msg, request));
	if (!k->listed) {
		k->listed = true;
		if (h->ring == NONE) {
			k->next = q;
		} else {
			k->next = x->pair[h->ring].next;
			x->pair[h->ring].next = q;
		}
		h->ring = q;
	}
	host_kick(x, src, edm_rival_now(&x->r));
}

static void packet_send(struct pfc *x, uint32_t q)
{
	struct edm_rival *r = &x->r;
	struct pair *k = &x->pair[q];
	uint32_t i = edm_rival_packet(r);
	struct edm_packet *part = &r->packet[k->parts.head];
	struct edm_packet *p = &r->packet[i];
	uint64_t now = edm_rival_now(r);

	p->msg = part->msg;
	p->bytes = u32_min(part->bytes, r->path.mtu_bytes);
	p->wire_bytes = edm_path_bytes(&r->path, p->bytes);
	p->src = (uint16_t)(q / r->nodes);
	p->dst = (uint16_t)(q % r->nodes);
	p->part = part->part;
	part->bytes -= p->bytes;
	if (!part->bytes)
		edm_rival_packet_put(r, edm_fifo_pop(r, &k->parts));
	edm_dcqcn_sent(&k->law, &x->law, p->wire_bytes);
	k->ready_ps = now + (uint64_t)(p->wire_bytes * 8e12 / k->law.rate_bps);
	edm_rival_send(r, i, EV_DATA);
}

/* The next queue pair in turn that has a packet and may send it. */
static void host_next(struct pfc *x, uint16_t port)
{
	struct host *h = &x->host[port];
	uint64_t now = edm_rival_now(&x->r), soonest = EDM_NEVER;
	uint32_t last = h->ring, q;

	if (now != h->kick_ps)
		return; /* an earlier kick took its place */
	h->kicked = false;
	if (h->paused || h->ring == NONE)
		return;
	for (q = x->pair[last].next;; q = x->pair[q].next) {
		struct pair *k = &x->pair[q];

		edm_dcqcn_advance(&k->law, &x->law, now);
		if (k->ready_ps <= now)
			break;
		soonest = u64_min(soonest, k->ready_ps);
		if (q == last) {
			host_kick(x, port, soonest);
			return;
		}
	}
	packet_send(x, q);
	h->ring = q;
	if (x->pair[q].parts.head == EDM_PACKET_NONE) {
		uint32_t before = q;

		while (x->pair[before].next != q)
			before = x->pair[before].next;
		x->pair[before].next = x->pair[q].next;
		h->ring = before == q ? NONE : before;
		x->pair[q].listed = false;
	}
	if (h->ring != NONE)
		host_kick(x, port, now);
}

/* ---- the switch
 * ------------------------------------------------------------------ */

static uint64_t pause_bytes(const struct pfc *x)
{
	/* Published: half of what is left of the shared buffer. */
	uint64_t buffer = UINT64_C(320000) * x->r.run->c.gbps;

	if (!x->r.run->c.published)
		return PAUSE_BYTES;
	return buffer > x->used_bytes ? (buffer - x->used_bytes) / 2 : 0;
}

static void pause_send(struct pfc *x, uint16_t port, bool pause)
{
	x->input[port].pausing = pause;
	x->r.pauses += pause;
	edm_run_push(x->r.run,
		     edm_rival_now(&x->r) + x->r.path.link_ps +
			     x->r.path.control_bytes * x->r.path.byte_ps,
		     EV_PAUSE, port, pause, 0);
}

static bool mark_drawn(struct pfc *x, double queue_bytes)
{
	double p = (queue_bytes - x->mark_low) / (x->mark_high - x->mark_low) *
		   x->mark_max;

	if (queue_bytes > x->mark_high)
		p = 1;
	return p > 0 && rng_double(&x->rng) < p;
}

static void on_data(struct pfc *x, uint32_t i)
{
	struct edm_rival *r = &x->r;
	struct edm_packet *p = &r->packet[i];
	struct input *in = &x->input[p->src];
	uint64_t now = edm_rival_now(r);
	uint64_t backlog = edm_pipe_backlog(&r->down[p->dst], now);

	if (mark_drawn(x, (double)backlog / (double)r->path.byte_ps)) {
		p->marked = true;
		r->marks++;
	}
	in->bytes += p->wire_bytes;
	x->used_bytes += p->wire_bytes;
	if (!in->pausing && in->bytes > pause_bytes(x))
		pause_send(x, p->src, true);
	(void)edm_rival_forward(r, i, EV_ARRIVED);
	edm_run_push(r->run, r->down[p->dst].busy_ps, EV_LEFT, p->src,
		     p->wire_bytes, 0);
}

static void on_left(struct pfc *x, uint16_t port, uint32_t bytes)
{
	struct input *in = &x->input[port];

	in->bytes -= bytes;
	x->used_bytes -= bytes;
	if (in->pausing && in->bytes + RESUME_BYTES <= pause_bytes(x))
		pause_send(x, port, false);
}

static void on_arrived(struct pfc *x, uint32_t i)
{
	struct edm_rival *r = &x->r;
	struct edm_packet p = r->packet[i];
	uint32_t q = p.src * r->nodes + p.dst;
	uint64_t now = edm_rival_now(r);

	edm_rival_packet_put(r, i);
	if (p.marked &&
	    (!x->pair[q].notified_ps ||
	     now >= x->pair[q].notified_ps + NOTIFY_EVERY_US * EDM_US)) {
		x->pair[q].notified_ps = now;
		edm_run_push(r->run, now + edm_path_one_way_ps(&r->path),
			     EV_NOTIFY, p.src, q, 0);
	}
	if (p.part == EDM_PART_REQUEST) {
		const struct edm_msg *m = &r->run->msg[p.msg];

		edm_run_request(r->run, p.msg);
		pair_write(x, m->dst, m->src, p.msg, false);
	} else {
		edm_rival_got(r, p.msg, p.bytes);
	}
}

static void pfc_submit(void *proto, uint32_t msg)
{
	struct pfc *x = proto;
	const struct edm_msg *m = &x->r.run->msg[msg];

	pair_write(x, m->src, m->dst, msg, m->op != EDM_WRITE);
}

static void pfc_event(void *proto, const struct edm_event *e)
{
	struct pfc *x = proto;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_HOST:
		host_next(x, e->port);
		return;
	case EV_DATA:
		on_data(x, e->a);
		return;
	case EV_LEFT:
		on_left(x, e->port, e->a);
		return;
	case EV_ARRIVED:
		on_arrived(x, e->a);
		return;
	case EV_PAUSE:
		x->host[e->port].paused = e->a != 0;
		if (!e->a && x->host[e->port].ring != NONE)
			host_kick(x, e->port, e->at_ps);
		return;
	case EV_NOTIFY:
		edm_dcqcn_notified(&x->pair[e->a].law, &x->law, e->at_ps);
		return;
	default:
		ASSERT(false);
	}
}

static int pfc_create(struct edm_run *run, void **out)
{
	struct pfc *x = edm_rival_create(run, sizeof(*x), out);
	size_t n = run->c.nodes;
	double scale = run->c.gbps / 100.0;

	if (!x)
		return -ENOMEM;
	rng_init_stream(&x->rng, run->c.seed, 3);
	edm_dcqcn_params(&x->law, run->c.gbps, run->c.published);
	x->mark_low = run->c.published ? 400e3 * scale : 5e3;
	x->mark_high = run->c.published ? 1600e3 * scale : 200e3;
	x->mark_max = run->c.published ? 0.2 : 0.01;
	x->pair = edm_rival_array(&x->r, n * n, sizeof(*x->pair));
	x->host = edm_rival_array(&x->r, n, sizeof(*x->host));
	x->input = edm_rival_array(&x->r, n, sizeof(*x->input));
	if (!x->pair || !x->host || !x->input)
		return -ENOMEM;
	for (size_t i = 0; i < n * n; i++)
		edm_dcqcn_init(&x->pair[i].law, &x->law);
	for (size_t i = 0; i < n; i++)
		x->host[i].ring = NONE;
	return 0;
}

const struct edm_proto_ops edm_proto_pfc = {
	.create = pfc_create,
	.destroy = edm_rival_destroy,
	.submit = pfc_submit,
	.event = pfc_event,
	.report = edm_rival_report,
	.lead_ps = edm_rival_lead_ps,
};
