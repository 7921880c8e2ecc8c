/* SPDX-License-Identifier: Apache-2.0 */
/* How packets of an end leave: by a port that is remembered, and made of what
 * those before them had in common. */
#include <string.h>

#include "tor_priv.h"

/* How long a port is remembered. */
#define ROUTE_NS 1000000000ull

static bool is_known(const struct tor *t, const struct tor_route *route)
{
	return route->out && route->epoch == t->epoch &&
	       t->now_ns < route->until_ns;
}

static bool look_up(struct tor *t, struct tor_route *route,
		    const struct wire_pkt *w)
{
	struct tor_port *out = tor_is_own(t, w->dst_ip)
				       ? NULL
				       : tor_port_of(t, w->dst_ip, w->dest_qpn);

	*route = (struct tor_route){.out = out,
				    .epoch = t->epoch,
				    .until_ns = t->now_ns + ROUTE_NS};
	if (out)
		route->flow = wire_stamps_flow(&out->stamps, w);
	return out;
}

/* Builds the frame where it leaves. */
HOT static void send(struct tor_port *port, const struct wire_stamp *stamp,
		     const struct wire_pkt *wire)
{
	/* Not a copy of it: what was stored in small pieces is not at hand in
	 * large ones for a while. */
	struct wire_vary v = wire_vary_of(wire);
	struct tor *t = port->tor;
	uint8_t *frame;

	/* The payload is a frame's, or the switch's own. */
	v.is_frame = true;

	if (UNLIKELY(!port->up || !port->ops->tx_begin)) {
		tor_forward(t, NULL, port, t->tx,
			    wire_stamp_build(stamp, &v, t->tx), NULL);
		return;
	}
	count(t, TOR_C_forwarded);
	frame = port->ops->tx_begin(port->ctx, stamp->frame_len);
	if (UNLIKELY(!frame)) {
		port->counters[TOR_P_tx_full]++;
		return;
	}
	(void)wire_stamp_build(stamp, &v, frame); /* frame_len */
	port->ops->tx_end(port->ctx, stamp->frame_len);
	tor_port_sent(port, stamp->frame_len);
}

HOT bool tor_route_leave(struct tor *t, struct tor_route *route,
			 const struct wire_pkt *wire)
{
	const struct wire_stamp *stamp;

	if (UNLIKELY(!is_known(t, route) && !look_up(t, route, wire)))
		return false;
	stamp = wire_stamps_find(&route->out->stamps, route->flow, wire->opcode,
				 wire->solicited, wire->payload_len);
	if (UNLIKELY(!stamp))
		return false;
	count(t, TOR_C_rewritten);
	send(route->out, stamp, wire);
	return true;
}

void tor_route_learn(struct tor_route *route, const struct wire_pkt *wire)
{
	if (route->out)
		wire_stamps_learn_tx(&route->out->stamps, route->flow, wire);
}
