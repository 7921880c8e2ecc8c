/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DCTCP: a connection per ordered pair of nodes, messages as a byte stream,
 * marks above a queue length, cumulative acknowledgements, go-back-N. One path,
 * so nothing is reordered. The window is in dctcp_law.c.
 */
#include <errno.h>

#include "edm_dctcp.h"
#include "edm_rival.h"

enum {
	EV_DATA,    /* at the switch */
	EV_ARRIVED, /* at the receiver */
	EV_ACK,	    /* at the switch */
	EV_ACKED,   /* at the sender */
	EV_ANSWER,  /* a: message; memory has made the answer */
	EV_TIMER,   /* a: connection */
	DUPLICATES = 3,
	WINDOW_PACKETS = 10,
};

struct conn {
	struct edm_dctcp law;
	uint64_t una, nxt, end; /* acknowledged, sent, written */
	uint64_t expected;	/* of the receiver */
	uint64_t progress_ps;
	/* Messages and requests in the stream that the receiver has not seen
	 * whole; seq: of the last byte, + 1. */
	struct edm_fifo parts;
	uint16_t duplicates;
	bool timing;
};

struct dctcp {
	struct edm_rival r;
	struct conn *conn;	   /* [src * nodes + dst] */
	uint64_t mark_ps, drop_ps; /* queue lengths as times */
	uint64_t timeout_ps;
};

static void timer_set(struct dctcp *d, uint32_t c, uint64_t at_ps)
{
	d->conn[c].timing = true;
	edm_run_push(d->r.run, at_ps, EV_TIMER, 0, c, 0);
}

static void conn_send(struct dctcp *d, uint32_t c)
{
	struct conn *k = &d->conn[c];
	struct edm_rival *r = &d->r;

	while (k->nxt < k->end &&
	       (double)(k->nxt - k->una) < k->law.window_bytes) {
		uint32_t i = edm_rival_packet(r);
		struct edm_packet *p = &r->packet[i];

		p->bytes =
			(uint32_t)u64_min(k->end - k->nxt, r->path.mtu_bytes);
		p->wire_bytes = edm_path_bytes(&r->path, p->bytes);
		p->seq = k->nxt;
		p->src = (uint16_t)(c / r->nodes);
		p->dst = (uint16_t)(c % r->nodes);
		k->nxt += p->bytes;
		edm_rival_send(r, i, EV_DATA);
	}
	if (!k->timing && k->una < k->nxt) {
		k->progress_ps = edm_rival_now(r);
		timer_set(d, c, k->progress_ps + d->timeout_ps);
	}
}

static void conn_write(struct dctcp *d, uint16_t src, uint16_t dst,
		       uint32_t msg, bool request)
{
	uint32_t c = src * d->r.nodes + dst;
	uint32_t i = edm_rival_part(&d->r, msg, request);
	struct conn *k = &d->conn[c];

	k->end += d->r.packet[i].bytes;
	d->r.packet[i].seq = k->end;
	edm_fifo_push(&d->r, &k->parts, i);
	conn_send(d, c);
}

static void dctcp_submit(void *proto, uint32_t msg)
{
	struct dctcp *d = proto;
	const struct edm_msg *m = &d->r.run->msg[msg];

	conn_write(d, m->src, m->dst, msg, m->op != EDM_WRITE);
}

/* The receiver's stream has grown: hand over what is whole. */
static void deliver(struct dctcp *d, uint32_t c)
{
	struct edm_rival *r = &d->r;
	struct conn *k = &d->conn[c];

	while (k->parts.head != EDM_PACKET_NONE &&
	       r->packet[k->parts.head].seq <= k->expected) {
		uint32_t i = edm_fifo_pop(r, &k->parts);

		if (r->packet[i].part == EDM_PART_REQUEST)
			edm_run_push(r->run, edm_rival_now(r) + r->path.send_ps,
				     EV_ANSWER, 0, edm_rival_take(r, i), 0);
		else
			edm_rival_take_data(r, i);
	}
}

static void on_data(struct dctcp *d, uint32_t i)
{
	struct edm_rival *r = &d->r;
	struct edm_packet *p = &r->packet[i];
	uint64_t backlog = edm_pipe_backlog(&r->down[p->dst], edm_rival_now(r));

	if (backlog > d->drop_ps) {
		r->drops++;
		edm_rival_packet_put(r, i);
		return;
	}
	if (backlog > d->mark_ps) {
		p->marked = true;
		r->marks++;
	}
	(void)edm_rival_forward(r, i, EV_ARRIVED);
}

/* Every packet is acknowledged with what is expected next. */
static void on_arrived(struct dctcp *d, uint32_t i)
{
	struct edm_rival *r = &d->r;
	struct edm_packet *p = &r->packet[i];
	uint32_t c = p->src * r->nodes + p->dst;
	struct conn *k = &d->conn[c];
	uint16_t src = p->src;

	if (p->seq <= k->expected && p->seq + p->bytes > k->expected) {
		k->expected = p->seq + p->bytes;
		deliver(d, c);
		p = &r->packet[i];
	}
	p->src = p->dst;
	p->dst = src;
	p->seq = k->expected;
	p->part = EDM_PART_ACK;
	p->wire_bytes = r->path.control_bytes;
	edm_rival_send(r, i, EV_ACK);
}

static void on_acked(struct dctcp *d, uint32_t i)
{
	struct edm_rival *r = &d->r;
	struct edm_packet p = r->packet[i];
	uint32_t c = p.dst * r->nodes + p.src;
	struct conn *k = &d->conn[c];

	edm_rival_packet_put(r, i);
	if (p.seq > k->una) {
		uint32_t bytes = (uint32_t)(p.seq - k->una);

		k->una = p.seq;
		k->nxt = u64_max(k->nxt, k->una);
		k->duplicates = 0;
		k->progress_ps = edm_rival_now(r);
		edm_dctcp_ack(&k->law, bytes, p.marked, k->una, k->nxt);
	} else if (k->una < k->nxt && ++k->duplicates == DUPLICATES) {
		edm_dctcp_fast_retransmit(&k->law, k->nxt);
		k->nxt = k->una;
	}
	conn_send(d, c);
}

static void on_timer(struct dctcp *d, uint32_t c)
{
	struct conn *k = &d->conn[c];
	uint64_t now = edm_rival_now(&d->r);

	k->timing = false;
	if (k->una == k->nxt)
		return;
	if (now < k->progress_ps + d->timeout_ps) {
		timer_set(d, c, k->progress_ps + d->timeout_ps);
		return;
	}
	d->r.timeouts++;
	edm_dctcp_timeout(&k->law, k->nxt);
	k->nxt = k->una;
	k->duplicates = 0;
	conn_send(d, c);
}

static void on_answer(struct dctcp *d, uint32_t msg)
{
	const struct edm_msg *m = &d->r.run->msg[msg];

	conn_write(d, m->dst, m->src, msg, false);
}

static void dctcp_event(void *proto, const struct edm_event *e)
{
	struct dctcp *d = proto;

	switch (e->kind - EDM_EV_PROTO) {
	case EV_DATA:
		on_data(d, e->a);
		return;
	case EV_ARRIVED:
		on_arrived(d, e->a);
		return;
	case EV_ACK:
		(void)edm_rival_forward(&d->r, e->a, EV_ACKED);
		return;
	case EV_ACKED:
		on_acked(d, e->a);
		return;
	case EV_ANSWER:
		on_answer(d, e->a);
		return;
	case EV_TIMER:
		on_timer(d, e->a);
		return;
	default:
		ASSERT(false);
	}
}

/* Scaled: the rule K > C RTT / 7, twice that. Published: 300 KB at 100 Gb/s. */
static void thresholds_set(struct dctcp *d)
{
	const struct edm_path *path = &d->r.path;
	uint64_t round_ps = 2 * edm_path_one_way_ps(path);
	uint64_t byte_ps = path->byte_ps;

	if (d->r.run->c.published) {
		d->mark_ps = UINT64_C(3000) * d->r.run->c.gbps * byte_ps;
		d->drop_ps = UINT64_C(4000000) * byte_ps;
	} else {
		d->mark_ps = u64_max(2 * path->mtu_bytes * byte_ps,
				     round_ps * 2 / 7);
		d->drop_ps =
			u64_max(UINT64_C(200000) * byte_ps, 4 * d->mark_ps);
	}
	d->timeout_ps = u64_max(10 * round_ps, 5 * EDM_US);
}

static int dctcp_create(struct edm_run *run, void **out)
{
	struct dctcp *d = edm_rival_create(run, sizeof(*d), out);
	size_t n = run->c.nodes;

	if (!d)
		return -ENOMEM;
	d->conn = edm_rival_array(&d->r, n * n, sizeof(*d->conn));
	if (!d->conn)
		return -ENOMEM;
	for (size_t i = 0; i < n * n; i++)
		edm_dctcp_init(&d->conn[i].law, d->r.path.mtu_bytes,
			       WINDOW_PACKETS * d->r.path.mtu_bytes);
	thresholds_set(d);
	return 0;
}

const struct edm_proto_ops edm_proto_dctcp = {
	.create = dctcp_create,
	.destroy = edm_rival_destroy,
	.submit = dctcp_submit,
	.event = dctcp_event,
	.report = edm_rival_report,
	.lead_ps = edm_rival_lead_ps,
};
