/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames as messages of a simulated fabric. The fabric has an event queue of
 * its own; one event in the simulator's queue stands for its earliest.
 */
#include "edm_net.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "edm_fabric.h"

struct net {
	struct sim_fabric fabric;
	struct edm_fabric *edm;
	struct sim_event turn; /* of the fabric's earliest event */
	uint32_t ports;
	uint64_t ready_ps[]; /* by port: frames leave in the order they came */
};

static struct net *of_fabric(struct sim_fabric *f)
{
	return container_of(f, struct net, fabric);
}

static struct sim_frame *of_tag(uint64_t tag)
{
	return (struct sim_frame *)(uintptr_t)tag;
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

static void on_sent(void *owner, uint64_t tag)
{
	sim_port_sent(of_tag(tag)->port);
}

static void on_delivered(void *owner, uint64_t tag)
{
	struct net *n = owner;

	sim_net_route(n->fabric.net, of_tag(tag));
}

static void on_lost(void *owner, uint64_t tag)
{
	struct net *n = owner;

	sim_net_lose(n->fabric.net, of_tag(tag));
}

static int attach(struct sim_fabric *f, unsigned port)
{
	struct net *n = of_fabric(f);

	return port < n->ports
		       ? 0
		       : error_set(-ENOSPC, "this fabric was made for %u ports",
				   n->ports);
}

static void send(struct sim_fabric *f, struct sim_frame *frame,
		 struct sim_port *from, struct sim_port *to, uint64_t ready_ps)
{
	struct net *n = of_fabric(f);
	unsigned src = sim_port_index(from);
	int rc;

	/* A later frame that is ready sooner would overtake. */
	ready_ps = u64_max(ready_ps, n->ready_ps[src]);
	n->ready_ps[src] = ready_ps;
	if (!to || to == from) {
		/* Frames to nobody and to oneself do not pass the fabric. */
		sim_event_init(&frame->ev, sim_frame_leave);
		sim_schedule_at(sim_net_sim(f->net), &frame->ev, ready_ps);
		return;
	}
	rc = edm_fabric_send(n->edm, ready_ps, (uint16_t)src,
			     (uint16_t)sim_port_index(to), frame->len_bytes,
			     (uintptr_t)frame);
	ASSERT(!rc); /* attach has checked the ports */
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
					       .owner = n};
	int rc;

	if (!n)
		return -ENOMEM;
	n->fabric.ops = &ops;
	n->ports = c->nodes;
	sim_event_init(&n->turn, turn_take);
	rc = edm_fabric_create(c, &calls, &n->edm);
	if (rc) {
		free(n);
		return rc;
	}
	return sim_net_set_fabric(net, &n->fabric);
}

void edm_net_config(enum edm_proto proto, uint32_t ports, struct edm_config *c)
{
	edm_config_init(c);
	c->nodes = u32_max(ports, 2);
	c->proto = proto;
	c->framing = EDM_FRAMING_WIRE;
	/* In turns, frames of one sender would overtake each other. */
	c->cxl_fifo = true;
}

static int plug(struct sim_net *net, enum edm_proto proto, uint32_t ports)
{
	struct edm_config c;

	edm_net_config(proto, ports, &c);
	return edm_net_plug(net, &c);
}

static int plug_edm(struct sim_net *net, uint32_t ports)
{
	return plug(net, EDM_PROTO_EDM, ports);
}

static int plug_cxl(struct sim_net *net, uint32_t ports)
{
	return plug(net, EDM_PROTO_CXL, ports);
}

const struct sim_fabric_choice edm_net_choices[] = {
	/* Raw Ethernet of Table 1: MAC, PCS and transceiver at both ends of a
	 * cable; forwarding in the switch. */
	{.name = "ethernet",
	 .link = {.latency_ps = 78720, .bits_per_s = 100000000000},
	 .switch_ps = 400000},
	{.name = "edm", .plug = plug_edm},
	{.name = "cxl", .plug = plug_cxl},
	{.name = NULL},
};
