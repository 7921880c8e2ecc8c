/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wire in one direction and the queue before it: one frame after the other,
 * each for as long as its bits take. With classes (sim_net_set_classes)
 * urgent frames go before everything else that waits; a frame that has begun is
 * not interrupted.
 */
#ifndef AQ_SIM_NET_WIRE_H
#define AQ_SIM_NET_WIRE_H

#include "net.h"

struct net_wire {
	uint64_t busy_ps; /* by frames that have begun, and urgent ones */
	/* The frame's last bit is on the wire at end_ps, now or later. */
	void (*sent)(struct sim_frame *frame, uint64_t end_ps);
	struct sim_event ev; /* the wire may be free for those that wait */
	struct sim_frame *first, *last; /* not urgent, in their order */
};

void net_wire_init(struct net_wire *w,
		   void (*sent)(struct sim_frame *frame, uint64_t end_ps));
/* Its port's link says how fast it is. It is there at ready_ps, now or later.
 */
void net_wire_send(struct net_wire *w, struct sim_frame *frame,
		   uint64_t ready_ps);

#endif
