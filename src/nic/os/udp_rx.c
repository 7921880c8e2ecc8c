/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving. The kernel may hand over several datagrams of one size in one
 * piece (GRO). Each becomes a whole frame in place: its headers overwrite the
 * end of the one before, which was dealt with already.
 *
 * A socket does not show the IP identification, which the ICRC covers. Some
 * sockets count messages, others begin each with 0, and both number the
 * segments of a message onwards: what should come next is tried first. If it is
 * wrong, the ICRC itself says which identification there must have been. Then
 * 16 bits of the check are spent on knowing it: counted as weak unless it is a
 * small one, or near the one before.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "cable.h"
#include "udp.h"

void udp_rx_init(struct udp_port *u)
{
	const struct os_host *h = u->path.host;

	u->outer.ttl = 64;
	memcpy(u->outer.dst_ip, h->gid_ip.ip, 16);
	memcpy(u->outer.dst_mac, h->gid_ip.mac, 6);
}

bool udp_rx_ready(struct env_path *path)
{
	struct udp_port *u = udp_of(path);
	int bytes = 0;

	return u->rx.len || (ioctl(u->fd, FIONREAD, &bytes) == 0 && bytes > 0);
}

/* ---- one frame ----------------------------------------------------------- */

/* Finds the identification that the ICRC was computed with. */
static bool find_id(struct udp_port *u, uint8_t *payload, size_t len,
		    uint16_t *id)
{
	size_t ip_bytes = WIRE_IP4_BYTES + WIRE_UDP_BYTES + len;
	uint8_t *frame;
	le32 icrc;
	uint32_t own;

	u->outer.ip_id = 0;
	frame = wire_wrap(&u->outer, payload, len);
	own = wire_icrc(frame + WIRE_ETH_BYTES, ip_bytes - WIRE_ICRC_BYTES);
	memcpy(&icrc, payload + len - WIRE_ICRC_BYTES, sizeof(icrc));
	return wire_id_solve(&u->ids, ip_bytes, le32_get(icrc) ^ own, id);
}

/* A frame whose ICRC is right, if any identification makes it so. */
static uint8_t *repair(struct udp_port *u, uint8_t *payload, size_t len,
		       bool *intact)
{
	struct udp_rx *rx = &u->rx;
	uint16_t id = 0;

	*intact = find_id(u, payload, len, &id);
	u->outer.ip_id = id;
	if (*intact) {
		if (id >= UDP_ID_NEAR &&
		    (uint16_t)(id - rx->next_id + UDP_ID_NEAR) >=
			    2 * UDP_ID_NEAR)
			u->path.host->stats->icrc_weak++;
		rx->next_id = id;
	}
	return wire_wrap(&u->outer, payload, len);
}

/*
 * Whoever has our address is at a cable and sends nothing here. Passed on, such
 * a packet would come by a cable of ours, and so look like one that we sent.
 */
static COLD bool is_forged(struct udp_port *u)
{
	struct os_host *h = u->path.host;

	if (h->cfg.port == OS_PORT_UDP ||
	    memcmp(u->outer.src_ip, h->gid_ip.ip, 16))
		return false;
	h->stats->udp_forged++;
	return true;
}

/* For another process of this host. It must be intact: the cables are not for
 * everybody's garbage. */
static COLD void forward(struct udp_port *u, uint32_t slot, uint8_t *payload,
			 size_t len)
{
	struct os_host *h = u->path.host;
	size_t frame_bytes = wire_outer_bytes(u->ipv4) + len;
	uint64_t now_ns = host_now(h);
	struct env_path *path;
	struct cable *c;
	uint8_t *frame, *to;
	bool intact = true;

	if (frame_bytes > OS_FRAME_MAX || now_ns < u->refused_until_ns[slot]) {
		h->stats->udp_no_slot++;
		return;
	}
	if (u->ipv4)
		frame = repair(u, payload, len, &intact);
	else
		frame = wire_wrap(&u->outer, payload, len);
	if (!intact) {
		host_input(h, frame, frame_bytes, NIC_FROM_NET); /* counts it */
		return;
	}
	if (cable_open(h, slot, &c)) {
		u->refused_until_ns[slot] = now_ns + UDP_REFUSED_NS;
		h->stats->udp_no_slot++;
		return;
	}
	path = &c->path;
	to = path->port->tx_begin(path, frame_bytes);
	if (!to)
		return; /* a full path loses frames, like a network */
	memcpy(to, frame, frame_bytes);
	path->port->tx_end(path, frame_bytes);
	h->stats->udp_forwarded++;
	udp_steer_forwarded(u, now_ns);
}

/* Slot 0 has the special queue pairs, which every NIC has. */
static COLD void deliver_special(struct udp_port *u, uint8_t *payload,
				 size_t len)
{
	struct os_host *h = u->path.host;
	size_t frame_bytes = wire_outer_bytes(u->ipv4) + len;
	uint32_t slot = udp_gsi_slot(u, payload, len);
	bool intact = true;
	uint8_t *frame;

	if (udp_hail(u, payload, len) || is_forged(u))
		return;
	if (slot != h->slot) {
		forward(u, slot, payload, len);
		return;
	}
	if (u->ipv4)
		frame = repair(u, payload, len, &intact);
	else
		frame = wire_wrap(&u->outer, payload, len);
	if (!intact || !udp_gsi_hand_in(u, frame, frame_bytes))
		host_input(h, frame, frame_bytes, NIC_FROM_NET);
}

HOT static void deliver(struct udp_port *u, uint8_t *payload, size_t len)
{
	struct os_host *h = u->path.host;
	size_t frame_bytes = wire_outer_bytes(u->ipv4) + len;
	uint32_t slot;
	uint8_t *frame;
	bool intact;

	if (UNLIKELY(len < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)) {
		h->stats->udp_short++;
		return;
	}
	if (UNLIKELY(h->cfg.loss_ppm &&
		     rng_chance_ppm(&u->rng, h->cfg.loss_ppm))) {
		h->stats->udp_fault_drops++;
		return;
	}
	slot = wire_peek_qpn(payload) >> NIC_QPN_INDEX_BITS;
	if (UNLIKELY(slot == 0)) {
		deliver_special(u, payload, len);
		return;
	}
	if (UNLIKELY(slot != h->slot)) {
		if (!is_forged(u))
			forward(u, slot, payload, len);
		return;
	}
	u->outer.ip_id = u->rx.next_id;
	frame = wire_wrap(&u->outer, payload, len);
	if (LIKELY(u->ipv4 && !h->pcap)) {
		if (LIKELY(nic_input_if_intact(h->base.nic, frame, frame_bytes,
					       NIC_FROM_NET)))
			return;
	}
	if (u->ipv4)
		frame = repair(u, payload, len, &intact);
	host_input(h, frame, frame_bytes, NIC_FROM_NET);
}

/* ---- messages ---------------------------------------------------------- */

/* What the kernel says beside a message. */
static void read_control(struct udp_port *u, struct msghdr *hdr)
{
	struct cmsghdr *c;

	u->outer.tos = 0;
	u->rx.segment = (uint32_t)u->rx.len;
	for (c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		int value = 0;

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			if (value > 0)
				u->rx.segment = (uint32_t)value;
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_TOS) {
			u->outer.tos = *CMSG_DATA(c);
		} else if (c->cmsg_level == IPPROTO_IPV6 &&
			   c->cmsg_type == IPV6_TCLASS) {
			memcpy(&value, CMSG_DATA(c), sizeof(value));
			u->outer.tos = (uint8_t)value;
		}
	}
}

static void read_source(struct udp_port *u, const union udp_addr *from)
{
	struct wire_outer *o = &u->outer;

	if (u->ipv4) {
		memset(o->src_ip, 0, 10);
		o->src_ip[10] = o->src_ip[11] = 0xff;
		memcpy(o->src_ip + 12, &from->v4.sin_addr, 4);
		o->src_port = ntohs(from->v4.sin_port);
	} else {
		memcpy(o->src_ip, &from->v6.sin6_addr, 16);
		o->src_port = ntohs(from->v6.sin6_port);
	}
	o->src_mac[0] = 0x02;
	o->src_mac[1] = 0xa9;
	memcpy(o->src_mac + 2, o->src_ip + 12, 4);
}

/* The flow that the message belongs to, and what it should be numbered by. */
static void find_flow(struct udp_port *u)
{
	const struct wire_outer *o = &u->outer;
	struct udp_flow *f =
		&u->flows[(o->src_port ^ o->src_ip[15]) % UDP_FLOWS];

	if (UNLIKELY(!f->used || f->port != o->src_port ||
		     memcmp(f->ip, o->src_ip, sizeof(f->ip)))) {
		*f = (struct udp_flow){.port = o->src_port, .used = true};
		memcpy(f->ip, o->src_ip, sizeof(f->ip));
	}
	u->rx.flow = f;
	u->rx.next_id = (uint16_t)(f->last_id + f->step);
}

/* The first segment of a message was numbered so. */
static void follow_flow(struct udp_flow *f, uint16_t id)
{
	f->step = id != f->last_id;
	f->last_id = id;
}

/* One message: on loopback recvmmsg moves no more packets than this (about
 * 0.65 M/s both), and GRO puts many packets into one. */
static bool receive(struct udp_port *u)
{
	struct udp_rx *rx = &u->rx;
	socklen_t from_len = sizeof(rx->from);
	struct iovec iov = {rx->bytes + UDP_HEADROOM, UDP_RX_BYTES};
	struct msghdr hdr = {
		.msg_name = &rx->from,
		.msg_namelen = sizeof(rx->from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &rx->control,
		.msg_controllen = sizeof(rx->control),
	};
	ssize_t n;

	if (rx->gro || u->has_marks) {
		n = recvmsg(u->fd, &hdr, MSG_DONTWAIT);
	} else {
		/* The kernel has nothing to say beside it: 0.1 us less. */
		n = recvfrom(u->fd, iov.iov_base, iov.iov_len, MSG_DONTWAIT,
			     &rx->from.sa, &from_len);
		hdr.msg_namelen = from_len;
		hdr.msg_controllen = 0;
	}
	if (n <= 0 || hdr.msg_namelen < (u->ipv4 ? sizeof(rx->from.v4)
						 : sizeof(rx->from.v6)))
		return false;
	rx->len = (size_t)n;
	rx->offset = 0;
	read_control(u, &hdr);
	read_source(u, &rx->from);
	find_flow(u);
	u->path.host->stats->udp_receives++;
	return true;
}

/* Hands up segments of the present message; returns how many. */
static unsigned hand_up(struct udp_port *u, unsigned budget)
{
	struct udp_rx *rx = &u->rx;
	uint8_t *bytes = rx->bytes + UDP_HEADROOM;
	unsigned n = 0;

	while (rx->offset < rx->len && n < budget) {
		size_t len = u64_min(rx->segment, rx->len - rx->offset);

		deliver(u, bytes + rx->offset, len);
		if (rx->offset == 0)
			follow_flow(rx->flow, rx->next_id);
		rx->next_id++;
		rx->offset += len;
		n++;
	}
	if (rx->offset == rx->len)
		rx->len = 0;
	return n;
}

/* GRO costs a lone packet 0.2 us on its way through the kernel: it is on only
 * while there is something to put together. */
static void watch_stream(struct udp_port *u, unsigned frames, unsigned messages)
{
	struct udp_rx *rx = &u->rx;

	if (frames > messages || messages > 1)
		rx->lone = 0;
	else
		rx->lone++;
	if (rx->gro ? rx->lone > UDP_LONE_MAX : messages > 1)
		udp_socket_set_gro(u, !rx->gro);
}

/*
 * Asking in vain costs half as much as a short message, and the answer to the
 * one that came has to wait for it. So a second message is asked for only when
 * messages come faster than polls: the last poll got one, too.
 */
HOT unsigned udp_rx_poll(struct env_path *path, unsigned budget)
{
	struct udp_port *u = udp_of(path);
	struct udp_rx *rx = &u->rx;
	unsigned n = 0, messages = 0;

	while (n < budget) {
		if (!rx->len) {
			if (messages == 1 && !rx->streaming)
				break;
			if (!receive(u))
				break;
			messages++;
		}
		n += hand_up(u, budget - n);
	}
	rx->streaming = n > 0;
	if (messages)
		watch_stream(u, n, messages);
	if (UNLIKELY(u->steer.fd >= 0 && n))
		udp_steer_tick(u);
	return n;
}
