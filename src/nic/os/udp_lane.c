/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the sockets that packets leave by. Each has a source port of its own,
 * so that a network with several ways spreads them, and is connected to its
 * peer: the kernel then keeps the route, which saves a lookup per packet (0.3
 * of 3.2 us). Answers come to port 4791 as ever; nothing arrives here.
 *
 * A connected IPv4 socket does not send identification 0 as an unconnected one
 * does. It counts, one per send, from a number that the kernel draws and does
 * not tell. But the kernel gives back what it sends to who asks for transmit
 * times: one datagram to ourselves, which never leaves the machine, shows where
 * the counter stands. Where that is refused, the lane is not connected.
 */
#include <errno.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <unistd.h>

#include "socket_option.h"
#include "udp.h"

enum {
	PORT_FIRST = 0xc000, /* as the kernel's rxe and most hardware */
	PORT_COUNT = 0x4000,
	PORT_TRIES = 16,
	ECHO_PORT = 9, /* "discard": nobody listens, and nobody minds */
	ECHO_TRIES = 8,
	RECEIVE_BYTES = 4096, /* for what nobody should send */
};

/* Asks for transmit times, with the packets, or no longer. */
static int set_echo(int fd, bool on)
{
	return os_socket_set(
		fd, SOL_SOCKET, SO_TIMESTAMPING,
		on ? SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE : 0);
}

/* One packet that the kernel gave back, with its headers. */
static bool read_echo(int fd, uint16_t *id)
{
	uint8_t bytes[128];
	union {
		struct cmsghdr align;
		uint8_t bytes[256];
	} control;
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const uint8_t *ip;
	ssize_t n = recvmsg(fd, &hdr, MSG_ERRQUEUE | MSG_DONTWAIT);

	if (n < WIRE_IP4_BYTES + WIRE_UDP_BYTES)
		return false;
	/* Some link headers may stand in front; there is no payload. */
	ip = bytes + n - WIRE_IP4_BYTES - WIRE_UDP_BYTES;
	if (ip[0] != 0x45 || ip[9] != IPPROTO_UDP ||
	    (ip[22] << 8 | ip[23]) != ECHO_PORT)
		return false;
	*id = (uint16_t)(ip[4] << 8 | ip[5]);
	return true;
}

/* Learns which identification comes next. */
static bool learn_id(struct udp_port *u, struct udp_lane *lane)
{
	union udp_addr self;
	uint16_t id;
	bool found = false;

	udp_addr_set(&self, u->path.host->gid_ip.ip, ECHO_PORT);
	if (set_echo(lane->fd, true) < 0)
		return false;
	/* An error from before may be in the way of the first. */
	for (unsigned i = 0; i < ECHO_TRIES && !found; i++) {
		if (sendto(lane->fd, &self, 0, MSG_DONTWAIT, &self.sa,
			   udp_addr_len(&self)) < 0)
			continue;
		while (read_echo(lane->fd, &id))
			found = true;
	}
	(void)set_echo(lane->fd, false);
	lane->next_id = (uint16_t)(id + 1);
	return found;
}

/* From now on each packet names its destination and has identification 0. */
static void disconnect(struct udp_lane *lane)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	(void)connect(lane->fd, &none, sizeof(none));
	lane->connected = false;
	lane->next_id = 0;
	lane->id_known = true;
}

void udp_lane_learn(struct udp_port *u, struct udp_lane *lane)
{
	lane->id_known = !u->ipv4 || learn_id(u, lane);
	if (!lane->id_known)
		disconnect(lane);
}

/* The same ports for the same peer, if they are free: a hash decides. */
static bool bind_port(struct udp_port *u, struct udp_lane *lane, uint32_t hash)
{
	union udp_addr own;

	for (unsigned i = 0; i < PORT_TRIES; i++) {
		uint16_t port =
			(uint16_t)(PORT_FIRST + (hash + i) % PORT_COUNT);

		udp_addr_set(&own, u->path.host->gid_ip.ip, port);
		if (!u->ipv4)
			own.v6.sin6_scope_id = u->scope_id;
		if (bind(lane->fd, &own.sa, udp_addr_len(&own)) == 0) {
			lane->port = port;
			return true;
		}
		if (errno != EADDRINUSE)
			return false;
	}
	return false;
}

void udp_lane_open(struct udp_port *u, struct udp_lane *lane,
		   const union udp_addr *to, uint32_t hash)
{
	*lane = (struct udp_lane){.fd = -1, .port = WIRE_UDP_PORT};
	if (u->lane_count == UDP_LANES_MAX)
		return; /* the port's own socket sends, too */
	lane->fd = socket(to->sa.sa_family,
			  SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (lane->fd < 0)
		return;
	u->lane_count++;
	if (udp_socket_set_sending(u, lane->fd) || !bind_port(u, lane, hash)) {
		udp_lane_close(u, lane);
		return;
	}
	(void)os_socket_set(lane->fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BYTES);
	lane->connected = connect(lane->fd, &to->sa, udp_addr_len(to)) == 0;
	if (lane->connected)
		udp_lane_learn(u, lane);
}

void udp_lane_close(struct udp_port *u, struct udp_lane *lane)
{
	if (lane->fd < 0)
		return;
	close(lane->fd);
	u->lane_count--;
	*lane = (struct udp_lane){.fd = -1, .port = WIRE_UDP_PORT};
}
