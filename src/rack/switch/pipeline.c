/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through the programs, and what they send instead. */
#include <string.h>

#include "own_address.h"
#include "tor_priv.h"

/* ---- what leaves -------------------------------------------------------- */

static uint64_t sum_bytes(uint64_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2)
		sum += (uint32_t)p[0] << 8 | p[1];
	return n ? sum + ((uint32_t)p[0] << 8) : sum;
}

/* UDP over IPv6 must have a checksum (RFC 8200), which the ICRC leaves out.
 * Over IPv4 zero says that there is none. */
static void put_udp6_checksum(uint8_t *frame, size_t len_bytes)
{
	uint8_t *ip = frame + WIRE_ETH_BYTES;
	uint8_t *udp = ip + WIRE_IP6_BYTES;
	size_t udp_bytes = len_bytes - WIRE_ETH_BYTES - WIRE_IP6_BYTES;
	uint64_t sum = 17 + udp_bytes;

	udp[6] = udp[7] = 0;
	sum = sum_bytes(sum, ip + 8, 32);
	sum = sum_bytes(sum, udp, udp_bytes);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	if (sum == 0)
		sum = 0xffff;
	udp[6] = (uint8_t)(sum >> 8);
	udp[7] = (uint8_t)sum;
}

static void leave_anew(struct tor *t, struct tor_port *in, struct tor_port *out,
		       const struct wire_pkt *wire)
{
	size_t len_bytes = wire_build(wire, t->tx);

	count(t, TOR_C_rewritten);
	if (!wire_is_ipv4(wire->dst_ip))
		put_udp6_checksum(t->tx, len_bytes);
	tor_forward(t, in, out, t->tx, len_bytes, NULL);
}

static void leave(struct tor *t, const struct tor_pkt *pkt)
{
	if (pkt->changed)
		leave_anew(t, pkt->in, pkt->out, &pkt->wire);
	else
		tor_forward(t, pkt->in, pkt->out, pkt->frame, pkt->len_bytes,
			    pkt->hint);
}

/* The programs that see packets of ends, and then the end. */
static void run_own(struct tor *t, struct tor_pkt *pkt)
{
	unsigned until = pkt->end ? pkt->end->self->index : t->program_count;

	while (pkt->next < until) {
		struct tor_instance *p = &t->programs[pkt->next++];
		enum tor_verdict v;

		if (!p->program->sees_ends)
			continue;
		v = p->program->packet(p->state, pkt);
		if (v == TOR_PASS)
			continue;
		if (v == TOR_DROP)
			count(t, TOR_C_program_drops);
		return;
	}
	if (pkt->end) {
		pkt->end->packet(pkt->end, &pkt->wire);
		return;
	}
	if (t->address_count)
		own_address_fill(t, &pkt->wire);
	leave(t, pkt);
}

HOT void tor_run(struct tor *t, struct tor_pkt *pkt)
{
	if (UNLIKELY(pkt->own)) {
		run_own(t, pkt);
		return;
	}
	while (pkt->next < t->program_count) {
		struct tor_instance *p = &t->programs[pkt->next++];
		enum tor_verdict v;

		if (!p->program->packet ||
		    (!pkt->roce && !p->program->wants_all))
			continue;
		v = p->program->packet(p->state, pkt);
		if (v == TOR_PASS)
			continue;
		if (v == TOR_DROP)
			count(t, TOR_C_program_drops);
		return;
	}
	leave(t, pkt);
}

/* ---- what programs send ------------------------------------------------- */

/* Whether what a program sends again is for an end of the switch, or from one.
 * What came from a port is from none, whatever it says. */
static void find_end(const struct tor *t, struct tor_pkt *pkt)
{
	pkt->end = pkt->roce ? tor_end_find(t, &pkt->wire) : NULL;
	pkt->own = pkt->end ||
		   (!pkt->in && pkt->roce && tor_is_own(t, pkt->wire.src_ip));
}

static void emit(struct tor_instance *self, struct tor_port *in,
		 const struct wire_pkt *wire, bool own)
{
	struct tor *t = self->tor;
	struct tor_pkt pkt;

	if (t->depth >= TOR_DEPTH_MAX) {
		count(t, TOR_C_loops);
		return;
	}
	/* Field by field: clearing it first costs more than the rest. */
	pkt.tor = t;
	pkt.in = in;
	pkt.out = NULL;
	pkt.frame = NULL;
	pkt.len_bytes = 0;
	pkt.hint = NULL;
	pkt.roce = pkt.changed = true;
	pkt.own = own;
	pkt.end = NULL;
	pkt.next = (uint8_t)(self->index + 1);
	pkt.depth = 0;
	pkt.wire = *wire;
	/* It sends again what it has seen. */
	if (self->program->sees_ends)
		find_end(t, &pkt);
	count(t, TOR_C_program_frames);
	t->depth++;
	tor_run(t, &pkt);
	t->depth--;
}

void tor_emit(struct tor_instance *self, struct tor_port *in,
	      const struct wire_pkt *wire)
{
	emit(self, in, wire, false);
}

/* Whether anybody looks at what an end of this program sends. */
static bool is_end_seen(const struct tor_instance *self)
{
	const struct tor *t = self->tor;
	bool is_seen = self->program->sees_ends || t->address_count;

	for (unsigned i = self->index + 1u; i < t->program_count; i++)
		is_seen |= t->programs[i].program->sees_ends;
	return is_seen;
}

HOT void tor_emit_end(struct tor_instance *self, struct tor_route *route,
		      const struct wire_pkt *wire)
{
	if (UNLIKELY(is_end_seen(self))) {
		emit(self, NULL, wire, true);
		return;
	}
	/* A packet with its extensions is some 300 bytes: no copy of it. */
	count(self->tor, TOR_C_program_frames);
	if (LIKELY(route && tor_route_leave(self->tor, route, wire)))
		return;
	leave_anew(self->tor, NULL, NULL, wire);
	if (route)
		tor_route_learn(route, wire);
}

static void parse(struct tor *t, struct tor_pkt *pkt)
{
	enum wire_error e = wire_parse(pkt->frame, pkt->len_bytes, &pkt->wire);

	pkt->roce = e == WIRE_OK;
	if (!pkt->in)
		return;
	if (pkt->roce)
		pkt->in->counters[TOR_P_rx_roce]++;
	else if (e != WIRE_E_NOT_ROCE)
		pkt->in->counters[TOR_P_rx_damaged]++;
}

void tor_emit_frame(struct tor_instance *self, struct tor_port *in,
		    const uint8_t *frame, size_t len_bytes)
{
	struct tor *t = self->tor;
	struct tor_pkt pkt = {
		.tor = t,
		.in = in,
		.frame = frame,
		.len_bytes = len_bytes,
		.next = (uint8_t)(self->index + 1),
	};

	if (t->depth >= TOR_DEPTH_MAX || len_bytes < WIRE_ETH_BYTES) {
		count(t, TOR_C_loops);
		return;
	}
	count(t, TOR_C_program_frames);
	if (pkt.next < t->program_count || t->end_count)
		pkt.roce = wire_parse(frame, len_bytes, &pkt.wire) == WIRE_OK;
	find_end(t, &pkt);
	t->depth++;
	tor_run(t, &pkt);
	t->depth--;
}

/* Both addresses of an IPv4 packet; 0: it is none. */
HOT static uint64_t peek_ips(const uint8_t *frame, size_t len_bytes)
{
	uint64_t ips = 0;

	if (LIKELY(len_bytes >= WIRE_ETH_BYTES + WIRE_IP4_BYTES &&
		   frame[12] == 0x08 && frame[13] == 0x00))
		memcpy(&ips, frame + WIRE_ETH_BYTES + 12, sizeof(ips));
	return ips;
}

/* Whether nobody wanted the last one between the same addresses. */
HOT static bool is_known(const struct tor_port *port, uint64_t ips)
{
	return LIKELY(ips && ips == port->pass_ips &&
		      port->pass_epoch == port->tor->wants_epoch);
}

/* By addresses alone, whether any program has to see it. The frame is a copy:
 * its sender must not make another one of it meanwhile. */
HOT static bool is_wanted(struct tor_port *port, const uint8_t *frame,
			  size_t len_bytes)
{
	const struct tor *t = port->tor;
	uint64_t ips = peek_ips(frame, len_bytes);
	struct addresses a;

	if (is_known(port, ips))
		return false;
	tor_read_addresses(t, frame, len_bytes, &a);
	if (a.has_ip && t->own_count && tor_is_own(t, a.src_ip))
		return true;
	for (unsigned i = 0; i < t->program_count; i++) {
		const struct tor_instance *p = &t->programs[i];

		if (p->program->wants_all ||
		    (a.roce && p->program->packet &&
		     (!p->program->wants ||
		      p->program->wants(p->state, a.src_ip, a.dst_ip))))
			return true;
	}
	if (a.roce && t->own_count && tor_is_own(t, a.dst_ip))
		return true;
	/* Others between these addresses are not wanted if RoCE is not. */
	if (a.roce) {
		port->pass_ips = ips;
		port->pass_epoch = t->wants_epoch;
	}
	return false;
}

/* Whether it says that the switch has sent it. */
static bool is_from_us(const struct tor *t, const struct tor_pkt *pkt)
{
	struct addresses a;

	if (!t->own_count)
		return false;
	if (pkt->roce)
		return wire_opcodes[pkt->wire.opcode].transport == WIRE_RC &&
		       tor_is_own(t, pkt->wire.src_ip);
	tor_read_addresses(t, pkt->frame, pkt->len_bytes, &a);
	return a.has_ip && tor_is_own(t, a.src_ip);
}

static bool is_forged(const struct tor *t, const struct tor_pkt *pkt)
{
	return pkt->end ? !tor_end_is_peer_at(pkt->end, pkt->in)
			: is_from_us(t, pkt);
}

/* A packet for an end, like those before it, that no program sees first. False:
 * it is something else. Its headers are read once; of its payload an owner must
 * not believe that it stays as it is. */
HOT static bool is_taken_by_end(struct tor_port *port, const uint8_t *frame,
				size_t len_bytes)
{
	struct wire_rx_stamp *stamp =
		wire_stamps_parse(&port->stamps, frame, len_bytes);
	struct tor_end *e = stamp ? tor_end_find(port->tor, &stamp->pkt) : NULL;

	if (!e)
		return false;
	port->counters[TOR_P_rx_roce]++;
	if (LIKELY(tor_end_is_peer_at(e, port)))
		e->packet(e, &stamp->pkt);
	else
		count(port->tor, TOR_C_forged);
	return true;
}

HOT void tor_run_input(struct tor_port *port, const uint8_t *frame,
		       size_t len_bytes, const void *hint)
{
	struct tor *t = port->tor;
	bool is_whole = !hint && len_bytes <= TOR_FRAME_MAX;
	struct tor_pkt pkt;

	/* A frame with a hint is not finished: its checksum, or that it is
	 * several, is left to hardware that is not there. Never RoCE: drivers
	 * finish that. */
	if (LIKELY(is_whole)) {
		/* Where programs only have ends, there is nobody to be passed
		 * by with a frame that becomes another one meanwhile: what is
		 * for an end of the switch is not forwarded. */
		if (!t->is_watched &&
		    is_known(port, peek_ips(frame, len_bytes))) {
			tor_forward(t, port, NULL, frame, len_bytes, NULL);
			return;
		}
		if (t->end_count && !t->sees_ends &&
		    is_taken_by_end(port, frame, len_bytes))
			return;
		memcpy(t->rx, frame, len_bytes);
		if (LIKELY(!is_wanted(port, t->rx, len_bytes))) {
			tor_forward(t, port, NULL, t->rx, len_bytes, NULL);
			return;
		}
	}
	pkt.tor = t;
	pkt.in = port;
	pkt.out = NULL;
	pkt.frame = is_whole ? t->rx : frame;
	pkt.len_bytes = len_bytes;
	pkt.hint = hint;
	pkt.roce = pkt.changed = false;
	pkt.next = pkt.depth = 0;
	if (is_whole)
		parse(t, &pkt);
	pkt.end = pkt.roce ? tor_end_find(t, &pkt.wire) : NULL;
	pkt.own = pkt.end;
	if (UNLIKELY(is_forged(t, &pkt))) {
		count(t, TOR_C_forged);
		return;
	}
	if (pkt.end)
		wire_stamps_learn_rx(&port->stamps, &pkt.wire, pkt.frame,
				     len_bytes);
	tor_run(t, &pkt);
}
