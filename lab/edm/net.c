/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as messages of a simulated fabric, and over EDM the READs and atomics
 * of the NIC as EDM's own. The fabric has an event queue of
 * its own; one event in the simulator's queue stands for its earliest.
 */
#include "edm_net.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "edm_fabric.h"
#include "net_roce.h"
#include "wire/wire.h"

enum {
	/* An answer that is not there by then goes without the grant that came
	 * with its request. */
	ANSWER_US = 20,
	PSN_NONE = 1 << 24, /* wider than any */
	MTU_BYTES = 4096,   /* of answers, until a long one was seen */
};

/* A frame between two ports, in the order in which they were sent. */
struct trip {
	struct trip *next;    /* of the pair */
	struct trip *follows; /* of the answer */
	struct sim_frame *frame;
	struct answer *answer; /* that it is a part of */
	uint32_t end;	       /* in the answer */
	uint32_t pair;
	bool is_request, has_arrived;
};

/* What is granted to the target of a READ or an atomic, for its answer. */
struct answer {
	struct answer *next; /* of the pair that the answer goes by */
	struct trip *request, *parts;
	uint32_t msg, bytes, ready, psn;
	uint32_t pair;
	bool is_asked;
};

struct net {
	struct sim_fabric fabric;
	struct edm_fabric *edm;
	struct sim_event turn; /* of the fabric's earliest event */
	uint32_t ports;
	bool has_reads;
	struct lane {
		struct trip *first, *last;
		struct answer *answers;
		uint32_t mtu_bytes; /* of answers; 0: not known yet */
	} * lane;		    /* [from * ports + to] */
	uint64_t ready_ps[]; /* by port: frames leave in the order they came */
};

/* What a message stands for: a trip, or an answer with the lowest bit. */
#define TAG_ANSWER 1u

static struct net *of_fabric(struct sim_fabric *f)
{
	return container_of(f, struct net, fabric);
}

static struct trip *trip_of(uint64_t tag)
{
	return (struct trip *)(uintptr_t)tag;
}

static struct answer *answer_of(uint64_t tag)
{
	return (struct answer *)(uintptr_t)(tag & ~(uint64_t)TAG_ANSWER);
}

static void turn_set(struct net *n)
{
	uint64_t next_ps = edm_fabric_next_ps(n->edm);

	if (next_ps != EDM_NEVER)
		sim_schedule_at(sim_net_sim(n->fabric.net), &n->turn, next_ps);
}

static void turn_take(struct sim *sim, struct sim_event *ev)
{
	struct net *n = container_of(ev, struct net, turn);

	edm_fabric_run(n->edm, sim_now_ps(sim));
	turn_set(n);
}

/* ---- order --------------------------------------------------------------- */

static struct trip *trip_start(struct net *n, struct sim_frame *frame,
			       unsigned from, unsigned to)
{
	struct trip *t = calloc(1, sizeof(*t));
	struct lane *lane = &n->lane[from * n->ports + to];

	ASSERT(t);
	t->frame = frame;
	t->pair = from * n->ports + to;
	if (lane->first)
		lane->last->next = t;
	else
		lane->first = t;
	lane->last = t;
	return t;
}

/* What has arrived goes on once all before it have. */
static void lane_flow(struct net *n, struct lane *lane)
{
	while (lane->first && lane->first->has_arrived) {
		struct trip *t = lane->first;
		struct sim_frame *frame = t->frame;

		lane->first = t->next;
		free(t);
		if (frame)
			sim_net_route(n->fabric.net, frame);
	}
}

static void trip_arrive(struct net *n, struct trip *t)
{
	t->has_arrived = true;
	lane_flow(n, &n->lane[t->pair]);
}

static void trip_lose(struct net *n, struct trip *t)
{
	sim_net_lose(n->fabric.net, t->frame);
	t->frame = NULL;
	trip_arrive(n, t);
}

/* ---- upcalls of the fabric ----------------------------------------------- */

static void on_sent(void *owner, uint64_t tag)
{
	if (!(tag & TAG_ANSWER))
		sim_port_sent(trip_of(tag)->frame->port);
}

static void request_leave(struct net *n, struct answer *a)
{
	struct trip *t = a->request;

	a->request = NULL;
	sim_port_sent(t->frame->port);
	trip_arrive(n, t);
}

static void on_asked(void *owner, uint64_t tag)
{
	struct net *n = owner;
	struct answer *a = answer_of(tag);

	a->is_asked = true;
	request_leave(n, a);
}

static void on_part(void *owner, uint64_t tag, uint32_t bytes)
{
	struct net *n = owner;
	struct answer *a = answer_of(tag);

	while (a->parts && a->parts->end <= bytes) {
		struct trip *t = a->parts;

		a->parts = t->follows;
		sim_port_sent(t->frame->port);
		trip_arrive(n, t);
	}
}

static void answer_end(struct net *n, struct answer *a)
{
	struct answer **at = &n->lane[a->pair].answers;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	free(a);
}

static void on_delivered(void *owner, uint64_t tag)
{
	struct net *n = owner;

	if (tag & TAG_ANSWER)
		answer_end(n, answer_of(tag));
	else
		trip_arrive(n, trip_of(tag));
}

static void on_lost(void *owner, uint64_t tag)
{
	struct net *n = owner;
	struct answer *a = answer_of(tag);

	if (!(tag & TAG_ANSWER)) {
		trip_lose(n, trip_of(tag));
		return;
	}
	if (a->request) {
		sim_port_sent(a->request->frame->port);
		trip_lose(n, a->request);
	}
	while (a->parts) {
		struct trip *t = a->parts;

		a->parts = t->follows;
		sim_port_sent(t->frame->port);
		trip_lose(n, t);
	}
	answer_end(n, a);
}

static int attach(struct sim_fabric *f, unsigned port)
{
	struct net *n = of_fabric(f);

	return port < n->ports
		       ? 0
		       : error_set(-ENOSPC, "this fabric was made for %u ports",
				   n->ports);
}

/* ---- sending ------------------------------------------------------------- */

static uint32_t mtu_of(const struct lane *lane)
{
	return lane->mtu_bytes ? lane->mtu_bytes : MTU_BYTES;
}

static void ask(struct net *n, struct trip *t, unsigned from, unsigned to,
		const uint8_t *bth, uint64_t ready_ps)
{
	struct answer *a = calloc(1, sizeof(*a));
	struct lane *back = &n->lane[to * n->ports + from];
	struct answer **at = &back->answers;
	int rc;

	ASSERT(a);
	a->request = t;
	t->is_request = true;
	a->bytes = net_answer_bytes(t->frame, bth, mtu_of(back));
	a->psn = net_psn(bth);
	a->pair = to * n->ports + from;
	while (*at)
		at = &(*at)->next;
	*at = a;
	rc = edm_fabric_ask(n->edm, ready_ps, (uint16_t)from, (uint16_t)to,
			    net_inner_bytes(t->frame, bth), a->bytes,
			    ANSWER_US * EDM_US, (uintptr_t)a | TAG_ANSWER,
			    &a->msg);
	ASSERT(!rc); /* attach has checked the ports */
}

/* The answer that this frame is the next part of, if there is room for it. */
static struct answer *answer_find(struct net *n, unsigned from, unsigned to,
				  const struct sim_frame *frame,
				  const uint8_t *bth, uint64_t ready_ps)
{
	uint8_t kind = wire_opcodes[*bth].kind;
	struct answer *a = n->lane[from * n->ports + to].answers;

	if (kind != WIRE_READ_RESP && kind != WIRE_ATOMIC_ACK)
		return NULL;
	while (a && (!a->is_asked || a->psn != net_psn(bth)))
		a = a->next;
	if (!a || a->ready + net_inner_bytes(frame, bth) <= a->bytes)
		return a;
	/* No room for it: what there is goes on its way. */
	a->ready = a->bytes;
	a->psn = PSN_NONE;
	edm_fabric_ready(n->edm, ready_ps, a->msg, a->ready);
	return NULL;
}

static void answer_add(struct net *n, struct answer *a, struct trip *t,
		       const uint8_t *bth, uint64_t ready_ps)
{
	struct trip **at = &a->parts;

	while (*at)
		at = &(*at)->follows;
	*at = t;
	t->answer = a;
	a->ready += net_inner_bytes(t->frame, bth);
	t->end = a->ready;
	a->psn = (a->psn + 1) & WIRE_PSN_MASK;
	/* Less than was asked for: what is left of the grant is idle. */
	if (wire_opcodes[*bth].flags & WIRE_OP_LAST) {
		a->ready = a->bytes;
		a->psn = PSN_NONE;
	} else if (wire_opcodes[*bth].flags & WIRE_OP_FIRST) {
		n->lane[a->pair].mtu_bytes = net_inner_bytes(t->frame, bth) -
					     NET_BTH_BYTES - NET_AETH_BYTES;
	}
	edm_fabric_ready(n->edm, ready_ps, a->msg, a->ready);
}

/*
 * READs and atomics are EDM's own: the request is its own notification, and the
 * answer has the grant that came with it. Everything else is a write. Whatever
 * way frames go, they come out in the order in which they went in.
 */
static void send(struct sim_fabric *f, struct sim_frame *frame,
		 struct sim_port *from_port, struct sim_port *to_port,
		 uint64_t ready_ps)
{
	struct net *n = of_fabric(f);
	unsigned from = sim_port_index(from_port), to;
	const uint8_t *bth = n->has_reads ? net_bth(frame) : NULL;
	struct answer *a = NULL;
	struct trip *t;
	int rc;

	/* A later frame that is ready sooner would overtake. */
	ready_ps = u64_max(ready_ps, n->ready_ps[from]);
	n->ready_ps[from] = ready_ps;
	if (!to_port || to_port == from_port) {
		/* Frames to nobody and to oneself do not pass the fabric. */
		sim_event_init(&frame->ev, sim_frame_leave);
		sim_schedule_at(sim_net_sim(f->net), &frame->ev, ready_ps);
		return;
	}
	to = sim_port_index(to_port);
	t = trip_start(n, frame, from, to);
	if (bth)
		a = answer_find(n, from, to, frame, bth, ready_ps);
	if (a) {
		answer_add(n, a, t, bth, ready_ps);
	} else if (bth && net_answer_bytes(frame, bth, MTU_BYTES)) {
		ask(n, t, from, to, bth, ready_ps);
	} else {
		rc = edm_fabric_send(
			n->edm, ready_ps, (uint16_t)from, (uint16_t)to,
			bth ? net_inner_bytes(frame, bth) : frame->len_bytes,
			(uintptr_t)t);
		ASSERT(!rc); /* attach has checked the ports */
	}
	turn_set(n);
}

/* The fabric is behind it: what is left arrives now. */
static void cross(struct sim_fabric *f, struct sim_frame *frame,
		  struct sim_port *from, struct sim_port *to)
{
	sim_net_arrive(f->net, frame, sim_now_ps(sim_net_sim(f->net)));
}

static void destroy(struct sim_fabric *f)
{
	struct net *n = of_fabric(f);

	if (f->net)
		sim_cancel(sim_net_sim(f->net), &n->turn);
	edm_fabric_destroy(n->edm);
	for (size_t i = 0; i < (size_t)n->ports * n->ports; i++) {
		while (n->lane[i].first) {
			struct trip *t = n->lane[i].first;

			n->lane[i].first = t->next;
			free(t);
		}
		while (n->lane[i].answers) {
			struct answer *a = n->lane[i].answers;

			n->lane[i].answers = a->next;
			free(a);
		}
	}
	free(n->lane);
	free(n);
}

static const struct sim_fabric_ops ops = {
	.attach = attach, .send = send, .cross = cross, .destroy = destroy};

int edm_net_plug(struct sim_net *net, const struct edm_config *c)
{
	struct net *n =
		calloc(1, sizeof(*n) + c->nodes * sizeof(n->ready_ps[0]));
	const struct edm_fabric_calls calls = {.sent = on_sent,
					       .delivered = on_delivered,
					       .lost = on_lost,
					       .asked = on_asked,
					       .part = on_part,
					       .owner = n};
	int rc;

	if (!n)
		return -ENOMEM;
	n->fabric.ops = &ops;
	n->ports = c->nodes;
	n->has_reads = c->proto == EDM_PROTO_EDM;
	sim_event_init(&n->turn, turn_take);
	n->lane = calloc((size_t)c->nodes * c->nodes, sizeof(*n->lane));
	rc = n->lane ? edm_fabric_create(c, &calls, &n->edm) : -ENOMEM;
	if (rc) {
		free(n->lane);
		free(n);
		return rc;
	}
	return sim_net_set_fabric(net, &n->fabric);
}
