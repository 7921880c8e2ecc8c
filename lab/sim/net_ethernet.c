/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default fabric: full-duplex Ethernet links and a switch that stores and
 * forwards. A port's wire to the switch and the one back are busy for as long
 * as a frame's bits take.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_fabric.h"
#include "net_wire.h"

struct wires {
	struct net_wire tx; /* to the switch */
	struct net_wire rx; /* and from it */
};

struct ethernet {
	struct sim_fabric fabric;
	struct wires **wires; /* by port */
	unsigned size, count;
};

static struct ethernet *of_fabric(struct sim_fabric *f)
{
	return container_of(f, struct ethernet, fabric);
}

static void left_port(struct sim_frame *f, uint64_t end_ps)
{
	sim_event_init(&f->ev, sim_frame_leave);
	sim_schedule_at(sim_net_sim(f->net), &f->ev, end_ps);
}

static void left_switch(struct sim_frame *f, uint64_t end_ps)
{
	sim_net_arrive(f->net, f, end_ps + sim_port_link(f->port)->latency_ps);
}

static int attach(struct sim_fabric *f, unsigned port)
{
	struct ethernet *e = of_fabric(f);
	struct wires *w;

	if (port < e->count)
		return 0;
	if (e->count == e->size) {
		unsigned size = e->size ? 2 * e->size : 16;
		struct wires **more =
			realloc(e->wires, size * sizeof(struct wires *));

		if (!more)
			return -ENOMEM;
		e->wires = more;
		e->size = size;
	}
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	net_wire_init(&w->tx, left_port);
	net_wire_init(&w->rx, left_switch);
	e->wires[e->count++] = w;
	return 0;
}

void sim_frame_leave(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct sim_port *from = f->port;

	sim_net_route(f->net, f);
	sim_port_sent(from);
}

static void send(struct sim_fabric *fabric, struct sim_frame *f,
		 struct sim_port *from, struct sim_port *to, uint64_t ready_ps)
{
	struct wires *w = of_fabric(fabric)->wires[sim_port_index(from)];

	net_wire_send(&w->tx, f, ready_ps);
}

/* Bytes that wait for the wire from the switch to the port. */
static uint64_t backlog_bytes(const struct sim_link *link,
			      const struct wires *w, uint64_t now_ps)
{
	uint64_t wait_ps = w->rx.busy_ps > now_ps ? w->rx.busy_ps - now_ps : 0;

	/* Some us of waiting at some Gb/s: no overflow in sight. */
	return wait_ps / 1000 * (link->bits_per_s / 1000000) / 8000;
}

static void at_switch(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct ethernet *e = of_fabric(sim_net_fabric(f->net));
	struct wires *w = e->wires[sim_port_index(f->port)];
	const struct sim_link *link = sim_port_link(f->port);
	uint64_t waiting = 0;

	if (link->switch_queue_bytes || link->switch_mark_bytes)
		waiting = backlog_bytes(link, w, sim_now_ps(sim));
	if (link->switch_queue_bytes &&
	    waiting + f->len_bytes > link->switch_queue_bytes) {
		sim_net_overflow(f->net, f);
		return;
	}
	if (link->switch_mark_bytes && waiting >= link->switch_mark_bytes)
		sim_net_mark(f->net, f);
	net_wire_send(&w->rx, f, sim_now_ps(sim));
}

static void cross(struct sim_fabric *fabric, struct sim_frame *f,
		  struct sim_port *from, struct sim_port *to)
{
	sim_event_init(&f->ev, at_switch);
	sim_schedule_in(sim_net_sim(fabric->net), &f->ev,
			sim_port_link(from)->latency_ps +
				sim_net_switch_ps(fabric->net));
}

static void destroy(struct sim_fabric *f)
{
	struct ethernet *e = of_fabric(f);

	for (unsigned i = 0; i < e->count; i++)
		free(e->wires[i]);
	free(e->wires);
	free(e);
}

int sim_ethernet_create(struct sim_fabric **out)
{
	static const struct sim_fabric_ops ops = {.attach = attach,
						  .send = send,
						  .cross = cross,
						  .destroy = destroy};
	struct ethernet *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->fabric.ops = &ops;
	*out = &e->fabric;
	return 0;
}

const struct sim_fabric_choice *sim_fabric_find(
	const struct sim_fabric_choice *list, const char *name)
{
	for (; list && list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

int sim_fabric_plug(const struct sim_fabric_choice *choice, struct sim_net *net,
		    uint32_t ports)
{
	return choice && choice->plug ? choice->plug(net, ports) : 0;
}
