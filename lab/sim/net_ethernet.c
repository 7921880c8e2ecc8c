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

#define PS_PER_S 1000000000000ull

struct wires {
	uint64_t tx_busy_ps; /* to the switch: taken until then */
	uint64_t rx_busy_ps; /* and from it */
};

struct ethernet {
	struct sim_fabric fabric;
	struct wires *wires; /* by port */
	unsigned size;
};

static struct ethernet *of_fabric(struct sim_fabric *f)
{
	return container_of(f, struct ethernet, fabric);
}

static int attach(struct sim_fabric *f, unsigned port)
{
	struct ethernet *e = of_fabric(f);
	unsigned size = e->size ? 2 * e->size : 16;
	struct wires *more;

	if (port < e->size)
		return 0;
	more = realloc(e->wires, size * sizeof(*more));
	if (!more)
		return -ENOMEM;
	for (unsigned i = e->size; i < size; i++)
		more[i] = (struct wires){0};
	e->wires = more;
	e->size = size;
	return 0;
}

static uint64_t wire_ps(const struct sim_link *link, uint32_t len_bytes)
{
	/* Preamble, start, FCS and gap take 24 byte times on Ethernet. */
	return link->bits_per_s
		       ? (len_bytes + 24ull) * 8 * PS_PER_S / link->bits_per_s
		       : 0;
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
	struct wires *w = &of_fabric(fabric)->wires[sim_port_index(from)];
	uint64_t start_ps = u64_max(ready_ps, w->tx_busy_ps);

	w->tx_busy_ps = start_ps + wire_ps(sim_port_link(from), f->len_bytes);
	sim_event_init(&f->ev, sim_frame_leave);
	sim_schedule_at(sim_net_sim(fabric->net), &f->ev, w->tx_busy_ps);
}

/* Bytes that wait for the wire from the switch to the port. */
static uint64_t backlog_bytes(const struct sim_link *link,
			      const struct wires *w, uint64_t now_ps)
{
	uint64_t wait_ps = w->rx_busy_ps > now_ps ? w->rx_busy_ps - now_ps : 0;

	/* Some us of waiting at some Gb/s: no overflow in sight. */
	return wait_ps / 1000 * (link->bits_per_s / 1000000) / 8000;
}

static void at_switch(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct ethernet *e = of_fabric(sim_net_fabric(f->net));
	struct wires *w = &e->wires[sim_port_index(f->port)];
	const struct sim_link *link = sim_port_link(f->port);
	uint64_t start_ps = u64_max(sim_now_ps(sim), w->rx_busy_ps);
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
	w->rx_busy_ps = start_ps + wire_ps(link, f->len_bytes);
	sim_net_arrive(f->net, f, w->rx_busy_ps + link->latency_ps);
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
