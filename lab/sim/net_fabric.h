/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What carries frames from port to port: a switch of Ethernet unless another
 * fabric is given to the network. A fabric decides about time alone; loss,
 * duplicates, corruption, late frames and cut paths are the network's, and so
 * the same over every fabric. One thread, the simulation's.
 *
 * The path of a frame: the network calls send; the fabric calls sim_port_sent
 * when the frame has left its port, and sim_net_route where faults may strike
 * it; the network calls cross for what is left (and for a copy, when it was
 * doubled); the fabric says when that arrives with sim_net_arrive.
 */
#ifndef AQ_SIM_NET_FABRIC_H
#define AQ_SIM_NET_FABRIC_H

#include "net.h"

struct sim_fabric;

struct sim_fabric_ops {
	/* The port with this number is new. 0, or -errno to refuse it. */
	int (*attach)(struct sim_fabric *fabric, unsigned port);
	/* A frame is ready at ready_ps, now or later. `to` is NULL when no port
	 * has its address: it leaves, and is lost when it is routed. Frames
	 * between two ports must arrive in the order of these calls. */
	void (*send)(struct sim_fabric *fabric, struct sim_frame *frame,
		     struct sim_port *from, struct sim_port *to,
		     uint64_t ready_ps);
	void (*cross)(struct sim_fabric *fabric, struct sim_frame *frame,
		      struct sim_port *from, struct sim_port *to);
	void (*destroy)(struct sim_fabric *fabric);
};

/* The first member of every fabric. */
struct sim_fabric {
	const struct sim_fabric_ops *ops;
	struct sim_net *net; /* set by sim_net_set_fabric */
};

/* Call it before the first port. The network owns it then, also on an error. */
int sim_net_set_fabric(struct sim_net *net,
		       struct sim_fabric *fabric) MUST_CHECK;
struct sim_fabric *sim_net_fabric(struct sim_net *net);
/* Ethernet: store and forward, one switch. What a network has from the start;
 * reads the links of the ports. */
int sim_ethernet_create(struct sim_fabric **out) MUST_CHECK;

/* A fabric that a play can use; lists end with a NULL name. */
struct sim_fabric_choice {
	const char *name;
	/* Gives it to a network for at most `ports` ports. NULL: nothing to
	 * do, Ethernet. */
	int (*plug)(struct sim_net *net, uint32_t ports);
	/* The links of Ethernet, for plays that do not ask for their own. */
	struct sim_link link;
	uint64_t switch_ps;
};

/* NULL: none has this name. */
const struct sim_fabric_choice *sim_fabric_find(
	const struct sim_fabric_choice *list, const char *name);
/* `choice` may be NULL, which is Ethernet. */
int sim_fabric_plug(const struct sim_fabric_choice *choice, struct sim_net *net,
		    uint32_t ports) MUST_CHECK;

/* ---- for fabrics -------------------------------------------------------- */

const struct sim_link *sim_port_link(const struct sim_port *port);
uint64_t sim_net_switch_ps(const struct sim_net *net);

/* One more frame may be queued there. */
void sim_port_sent(struct sim_port *port);
void sim_net_route(struct sim_net *net, struct sim_frame *frame);
/* Of a frame's event: the frame has left its port, now. */
void sim_frame_leave(struct sim *sim, struct sim_event *ev);
/* Its last bit is at the port it goes to at at_ps, now or later. */
void sim_net_arrive(struct sim_net *net, struct sim_frame *frame,
		    uint64_t at_ps);
/* The fabric has lost it. */
void sim_net_lose(struct sim_net *net, struct sim_frame *frame);
/* The same, because a queue was full. */
void sim_net_overflow(struct sim_net *net, struct sim_frame *frame);
/* The path is congested: marks the frame, if its sender allows (RFC 3168). */
void sim_net_mark(struct sim_net *net, struct sim_frame *frame);

#endif
