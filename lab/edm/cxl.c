/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CXL switch with credit flow control. Every input port has a buffer per
 * message class; a sender sends only what fits there, and learns of freed room
 * one link delay later. An input buffer is one queue: its head waits for its
 * output port, and everything behind it waits too, unless it has a queue per
 * output (voq). Long messages are packets of four flits' payload.
 */
#include <errno.h>

#include "edm_constants.h"
#include "edm_rival.h"

enum cxl_class {
	CLASS_REQUEST, /* M2S Req */
	CLASS_WRITE,   /* M2S RwD */
	CLASS_READ,    /* S2M DRS */
	CLASSES,
};

enum {
	EV_HOST,    /* port: host; its link may be free */
	EV_ARRIVE,  /* a: packet; at the switch's input */
	EV_OUT,	    /* port: output is free */
	EV_CREDIT,  /* port: host; a: class; b: flits */
	EV_ARRIVED, /* a: packet */
	FLIT_PAYLOAD = 64,
	PACKET_BYTES = 256,
	NONE = UINT32_MAX,
};

struct host {
	struct edm_fifo msgs[CLASSES]; /* a packet stands for each */
	uint32_t credits[CLASSES];
	uint64_t busy_ps;
	bool kicked;
	uint8_t turn; /* round robin over classes */
};

/* One queue of packets in the switch; its head waits at one output. */
struct lane {
	struct edm_fifo packets;
	uint32_t next; /* in the output's list of waiting lanes */
	bool busy;     /* its head waits at an output or leaves */
};

struct output {
	uint32_t first, last; /* waiting lanes */
	bool busy;
};

struct cxl {
	struct edm_rival r;
	struct host *host;
	struct output *output;
	struct lane *lane;
	bool voq, wire;
};

static uint32_t flits_of(uint32_t bytes)
{
	uint32_t slots =
		1 + (bytes + EDM_CXL_SLOT_BYTES - 1) / EDM_CXL_SLOT_BYTES;

	return (slots + 3) / 4;
}

static uint32_t wire_bytes(const struct cxl *x, uint32_t bytes)
{
	/* Flits of several messages are packed: a message takes its slots. */
	uint32_t slots =
		1 + (bytes + EDM_CXL_SLOT_BYTES - 1) / EDM_CXL_SLOT_BYTES;

	return x->wire ? (slots * EDM_CXL_FLIT_BYTES + 3) / 4
		       : u32_max(bytes, 8);
}

/* ---- hosts ------------------------------------------------------------------
 */

static void host_kick(struct cxl *x, uint16_t host)
{
	struct host *h = &x->host[host];

	if (h->kicked)
		return;
	h->kicked = true;
	edm_run_push(x->r.run, u64_max(h->busy_ps, edm_rival_now(&x->r)),
		     EV_HOST, host, 0, 0);
}

static void host_queue(struct cxl *x, uint16_t host, enum cxl_class class,
		       uint32_t msg)
{
	edm_fifo_push(&x->r, &x->host[host].msgs[class],
		      edm_rival_part(&x->r, msg, class == CLASS_REQUEST));
}

/* What the next packet of this class carries. */
static uint32_t packet_bytes(const struct cxl *x, enum cxl_class class,
			     const struct host *h)
{
	const struct edm_msg *m =
		&x->r.run->msg[x->r.packet[h->msgs[class].head].msg];

	if (class == CLASS_REQUEST)
		return edm_rival_request_bytes(m);
	return u32_min(m->bytes - m->sent_bytes[0], PACKET_BYTES);
}

static void packet_send(struct cxl *x, uint16_t host, enum cxl_class class)
{
	struct edm_rival *r = &x->r;
	struct host *h = &x->host[host];
	uint32_t part = h->msgs[class].head, msg = r->packet[part].msg;
	struct edm_msg *m = &r->run->msg[msg];
	uint32_t bytes = packet_bytes(x, class, h);
	uint32_t i = edm_rival_packet(r);
	bool more;

	r->packet[i] = (struct edm_packet){
		.msg = msg,
		.bytes = bytes,
		.wire_bytes = wire_bytes(x, bytes),
		.src = host,
		.dst = host == m->src ? m->dst : m->src,
		.part = (uint8_t) class,
	};
	h->credits[class] -= flits_of(bytes);
	if (class != CLASS_REQUEST)
		m->sent_bytes[0] += bytes;
	/* Messages of a host take turns, as the accesses of its cores do. */
	more = class != CLASS_REQUEST && m->sent_bytes[0] < m->bytes;
	if (!more && class != CLASS_REQUEST)
		edm_run_sent(r->run, msg);
	if (!more || !r->run->c.cxl_fifo)
		(void)edm_fifo_pop(r, &h->msgs[class]);
	if (!more)
		edm_rival_packet_put(r, part);
	else if (!r->run->c.cxl_fifo)
		edm_fifo_push(r, &h->msgs[class], part);
	edm_run_push(r->run,
		     edm_rival_now(r) + r->path.link_ps + r->path.switch_ps,
		     EV_ARRIVE, host, i, 0);
	h->busy_ps =
		edm_rival_now(r) + r->packet[i].wire_bytes * r->path.byte_ps;
}

static void host_next(struct cxl *x, uint16_t host)
{
	struct host *h = &x->host[host];

	h->kicked = false;
	for (unsigned k = 0; k < CLASSES; k++) {
		enum cxl_class class =
			(enum cxl_class)((h->turn + k) % CLASSES);

		if (h->msgs[class].head == EDM_PACKET_NONE ||
		    flits_of(packet_bytes(x, class, h)) > h->credits[class])
			continue;
		packet_send(x, host, class);
		h->turn = (uint8_t)((class + 1) % CLASSES);
		host_kick(x, host);
		return;
	}
	/* No credit: the next one wakes it. */
	for (unsigned k = 0; k < CLASSES; k++)
		x->r.pauses += h->msgs[k].head != EDM_PACKET_NONE;
}

/* ---- the switch
 * --------------------------------------------------------------- */

static uint32_t lane_of(const struct cxl *x, const struct edm_packet *p)
{
	uint32_t lane = p->src * CLASSES + p->part;

	return x->voq ? lane * x->r.nodes + p->dst : lane;
}

static void output_next(struct cxl *x, uint16_t port)
{
	struct edm_rival *r = &x->r;
	struct output *o = &x->output[port];
	uint32_t l = o->first, i;
	uint64_t end;
	struct lane *lane;
	struct edm_packet *p;

	if (l == NONE) {
		o->busy = false;
		return;
	}
	lane = &x->lane[l];
	o->first = lane->next;
	i = edm_fifo_pop(r, &lane->packets);
	p = &r->packet[i];
	o->busy = true;
	end = edm_rival_now(r) + p->wire_bytes * r->path.byte_ps;
	edm_run_push(r->run, end, EV_OUT, port, 0, l);
	/* Room in the input buffer is there when the packet has left it. */
	edm_run_push(r->run, end + r->path.link_ps, EV_CREDIT, p->src, p->part,
		     flits_of(p->bytes));
	edm_run_push(r->run,
		     end + r->path.link_ps + r->path.receive_ps +
			     (p->part == CLASS_REQUEST ? r->path.send_ps : 0),
		     EV_ARRIVED, port, i, 0);
}

/* The head of a lane goes to the list of its output. */
static void lane_wait(struct cxl *x, uint32_t l)
{
	struct lane *lane = &x->lane[l];
	uint16_t port = x->r.packet[lane->packets.head].dst;
	struct output *o = &x->output[port];

	lane->busy = true;
	lane->next = NONE;
	if (o->first == NONE)
		o->first = l;
	else
		x->lane[o->last].next = l;
	o->last = l;
	if (!o->busy)
		output_next(x, port);
}

static void switch_arrive(struct cxl *x, uint32_t i)
{
	uint32_t l = lane_of(x, &x->r.packet[i]);

	edm_fifo_push(&x->r, &x->lane[l].packets, i);
	if (!x->lane[l].busy)
		lane_wait(x, l);
}

static void output_done(struct cxl *x, uint16_t port, uint32_t l)
{
	struct lane *lane = &x->lane[l];

	output_next(x, port);
	lane->busy = false;
	if (lane->packets.head != EDM_PACKET_NONE)
		lane_wait(x, l);
}

/* ---- messages
 * ------------------------------------------------------------------ */

static void cxl_submit(void *proto, uint32_t msg)
{
	struct cxl *x = proto;
	const struct edm_msg *m = &x->r.run->msg[msg];

	host_queue(x, m->src, m->op == EDM_WRITE ? CLASS_WRITE : CLASS_REQUEST,
		   msg);
	host_kick(x, m->src);
}

static void arrived(struct cxl *x, uint32_t i)
{
	const struct edm_packet p = x->r.packet[i];

	edm_rival_packet_put(&x->r, i);
	if (p.part == CLASS_REQUEST) {
		edm_run_request(x->r.run, p.msg);
		host_queue(x, p.dst, CLASS_READ, p.msg);
		host_kick(x, p.dst);
		return;
	}
	edm_rival_got(&x->r, p.msg, p.bytes);
}

static void cxl_event(void *proto, const struct edm_event *e)
{
	struct cxl *x = proto;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_HOST:
		host_next(x, e->port);
		return;
	case EV_ARRIVE:
		switch_arrive(x, e->a);
		return;
	case EV_OUT:
		output_done(x, e->port, e->b);
		return;
	case EV_CREDIT:
		x->host[e->port].credits[e->a] += e->b;
		host_kick(x, e->port);
		return;
	case EV_ARRIVED:
		arrived(x, e->a);
		return;
	default:
		ASSERT(false);
	}
}

static int cxl_create(struct edm_run *run, void **out)
{
	struct cxl *x = edm_rival_create(run, sizeof(*x), out);
	size_t n = run->c.nodes, lanes;

	if (!x)
		return -ENOMEM;
	x->voq = run->c.cxl_voq;
	x->wire = run->c.framing == EDM_FRAMING_WIRE;
	lanes = n * CLASSES * (x->voq ? n : 1);
	x->host = edm_rival_array(&x->r, n, sizeof(*x->host));
	x->output = edm_rival_array(&x->r, n, sizeof(*x->output));
	x->lane = edm_rival_array(&x->r, lanes, sizeof(*x->lane));
	if (!x->host || !x->output || !x->lane)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		x->output[i].first = NONE;
		for (unsigned k = 0; k < CLASSES; k++)
			x->host[i].credits[k] = run->c.cxl_credits;
	}
	return 0;
}

const struct edm_proto_ops edm_proto_cxl = {
	.create = cxl_create,
	.destroy = edm_rival_destroy,
	.submit = cxl_submit,
	.event = cxl_event,
	.report = edm_rival_report,
	.lead_ps = edm_rival_lead_ps,
};
