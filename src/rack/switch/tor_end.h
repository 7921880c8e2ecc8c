/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that end in the switch itself. Their packets come to an address
 * of the switch (tor_own_add) and are given to the program that has the end,
 * before any program sees them; what an end sends is seen by no program
 * either. So programs that have ends can run together, in any order. Programs
 * that stand for the wire (`sees_ends`: faults) are the exception: they see
 * what they would see if ends were programs in the place of their owner.
 *
 * A packet for an end counts only if it came by the port that its peer is at:
 * where its NIC is plugged in, or else where its address was known when the end
 * was made, or came from first. So another port's host cannot speak for the
 * peer, whatever it writes into a packet; behind one port hosts are not told
 * apart. Nor does anything pass that comes from a port and says that it is from
 * an address of the switch, except datagrams, which are left to programs.
 *
 * What such a connection says is the business of end_tx.h (the switch asks) and
 * end_rx.h (it is asked); one connection may have both.
 */
#ifndef AQ_TOR_END_H
#define AQ_TOR_END_H

#include "tor_program.h"

struct tor_end {
	/* Set by the owner before tor_end_add(). */
	struct tor_instance *self;
	uint8_t own_ip[16], peer_ip[16];
	uint32_t own_qpn, peer_qpn;
	void (*packet)(struct tor_end *e, const struct wire_pkt *w);

	bool is_added;
	/* Where the peer was found first; NULL: not yet, or it went away. */
	struct tor_port *port;
	struct tor_end *next; /* of its bucket */
};

/* -EEXIST: another end has that number towards that peer; -ENOSPC: too many
 * addresses. The address of the end becomes one of the switch. */
int tor_end_add(struct tor_end *e) MUST_CHECK;
/* One that was not added is left alone. */
void tor_end_remove(struct tor_end *e);

/* Where packets of an end leave: remembered until anything in the forwarding
 * table changes, or a while passes. Zeroed at first. */
struct tor_route {
	struct tor_port *out;
	uint64_t epoch;
	uint64_t until_ns;
	uint32_t flow; /* among the port's stamps */
};

/* Sends a packet of an end. `route` is of one whose packets have all the same
 * headers up to the opcode, or NULL. */
void tor_emit_end(struct tor_instance *self, struct tor_route *route,
		  const struct wire_pkt *wire);

#endif
