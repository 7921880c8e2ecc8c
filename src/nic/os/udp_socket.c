/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of the UDP port. It is never connected: an unconnected socket that
 * forbids fragmentation sends IP identification 0, which the ICRC covers; a
 * connected one counts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "socket_option.h"
#include "udp.h"

enum {
	HEADERS_MAX =
		80, /* what MTUs are reduced by, as the kernel's rxe does */
};

void udp_addr_set(union udp_addr *a, const uint8_t ip[16], uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (wire_is_ipv4(ip)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(port);
		memcpy(&a->v4.sin_addr, ip + 12, 4);
	} else {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(port);
		memcpy(&a->v6.sin6_addr, ip, 16);
	}
}

socklen_t udp_addr_len(const union udp_addr *a)
{
	return a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

uint32_t udp_payload_of_mtu(uint32_t mtu_bytes)
{
	uint32_t payload = WIRE_MTU_MAX;

	while (payload > 256 && payload + HEADERS_MAX > mtu_bytes)
		payload /= 2;
	return payload;
}

/* The kernel knows the way's MTU only for a connected socket: one is made for
 * the question. */
uint32_t udp_socket_mtu(const union udp_addr *to)
{
	bool ipv4 = to->sa.sa_family == AF_INET;
	int fd = socket(to->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(int);
	int mtu = 0;

	if (fd < 0)
		return 0;
	if (connect(fd, &to->sa, udp_addr_len(to)) < 0 ||
	    getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
		       ipv4 ? IP_MTU : IPV6_MTU, &mtu, &len) < 0)
		mtu = 0;
	close(fd);
	return (uint32_t)mtu;
}

static bool same_address(const struct sockaddr *sa, const union udp_addr *a)
{
	const union udp_addr *b = (const void *)sa;

	if (!sa || sa->sa_family != a->sa.sa_family)
		return false;
	if (sa->sa_family == AF_INET)
		return (ntohl(a->v4.sin_addr.s_addr) >> 24 == 127 &&
			ntohl(b->v4.sin_addr.s_addr) >> 24 == 127) ||
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16) == 0;
}

/* Of the interface that has our address; its number goes to *index. */
static uint32_t interface_mtu(int fd, const union udp_addr *own,
			      unsigned *index)
{
	struct ifaddrs *all, *i;
	struct ifreq req;
	uint32_t mtu = 0;

	*index = 0;
	if (getifaddrs(&all) < 0)
		return 0;
	for (i = all; i && !mtu; i = i->ifa_next) {
		if (!same_address(i->ifa_addr, own))
			continue;
		memset(&req, 0, sizeof(req));
		strncpy(req.ifr_name, i->ifa_name, sizeof(req.ifr_name) - 1);
		*index = if_nametoindex(i->ifa_name);
		if (ioctl(fd, SIOCGIFMTU, &req) == 0)
			mtu = (uint32_t)req.ifr_mtu;
	}
	freeifaddrs(all);
	return mtu;
}

/*
 * What may be on the way to a socket: the peer's is like ours. The kernel
 * charges more for a packet than its bytes, up to four times for small ones.
 */
static uint32_t window_of_buffer(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len) < 0)
		bytes = 0;
	return u32_min((uint32_t)bytes / 4, UDP_WINDOW_MAX) | 1;
}

void udp_socket_set_gro(struct udp_port *u, bool on)
{
	(void)os_socket_set(u->fd, IPPROTO_UDP, UDP_GRO, on);
	u->rx.gro = on;
	u->rx.lone = 0;
}

/* Nobody marks packets there. */
static bool is_loopback(const struct os_host *h)
{
	return wire_is_ipv4(h->gid_ip.ip) && h->cfg.address[0] == 127;
}

int udp_socket_set_pieces(const struct udp_port *u, int fd, bool on)
{
	if (u->ipv4)
		return os_socket_set(fd, IPPROTO_IP, IP_MTU_DISCOVER,
				     on ? IP_PMTUDISC_DONT : IP_PMTUDISC_DO);
	return os_socket_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			     on ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_DO);
}

int udp_socket_set_sending(struct udp_port *u, int fd)
{
	int err = udp_socket_set_pieces(u, fd, false);

	if (u->ipv4) {
		(void)os_socket_set(fd, IPPROTO_IP, IP_TOS, WIRE_ECT0);
	} else {
		if (!err)
			err = os_socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		(void)os_socket_set(fd, IPPROTO_IPV6, IPV6_TCLASS, WIRE_ECT0);
	}
	os_socket_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, UDP_SOCKET_BYTES);
	return err;
}

static int set_options(struct udp_port *u)
{
	int fd = u->fd, err;

	err = os_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (!err)
		err = udp_socket_set_sending(u, fd);
	if (err)
		return err;
	/* Marks, large buffers and batches are worth having, not needed. */
	u->has_marks = !is_loopback(u->path.host);
	if (u->ipv4)
		(void)os_socket_set(fd, IPPROTO_IP, IP_RECVTOS, u->has_marks);
	else
		(void)os_socket_set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	/* RoCE needs no UDP checksum, and the kernel's rxe sends 0. */
	if (!u->ipv4)
		(void)os_socket_set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	os_socket_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, UDP_SOCKET_BYTES);
	udp_socket_set_gro(u, true);
	/* Known to the kernel, and not set for all sends. */
	u->tx.gso = os_socket_set(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
	return 0;
}

/* Somebody else has the port. If it is somebody whom we do not trust, that is
 * no network any more: -EACCES. What is not in the kernel's table is no
 * process. */
static int explain_in_use(const struct os_host *h, const char *address)
{
	FILE *f = fopen(wire_is_ipv4(h->gid_ip.ip) ? "/proc/net/udp"
						   : "/proc/net/udp6",
			"re");
	int err = -EADDRINUSE;
	unsigned port, uid = 0;
	char line[512];

	while (f && err != -EACCES && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*d: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %u",
			   &port, &uid) == 2 &&
		    port == WIRE_UDP_PORT && !trust_peer(&h->trust, uid))
			err = -EACCES;
	}
	if (f)
		fclose(f);
	if (err == -EACCES)
		return error_set(err,
				 "UDP port 4791 of %s is in use by a process "
				 "of user %u, who is not trusted; end it (ss "
				 "-ulpn sport = 4791), or set nic.port = cable "
				 "to do without other hosts",
				 address, uid);
	return error_set(err,
			 "UDP port 4791 of %s is in use by another user or "
			 "another RoCE implementation",
			 address);
}

static int explain_bind(const struct os_host *h, int err,
			const union udp_addr *own)
{
	char text[INET6_ADDRSTRLEN] = "?";

	(void)inet_ntop(own->sa.sa_family,
			own->sa.sa_family == AF_INET
				? (const void *)&own->v4.sin_addr
				: (const void *)&own->v6.sin6_addr,
			text, sizeof(text));
	if (err == -EADDRINUSE)
		return explain_in_use(h, text);
	if (err == -EADDRNOTAVAIL)
		return error_set(err,
				 "nic.address is %s: no interface of this "
				 "machine has it",
				 text);
	return error_set(err, "cannot bind UDP port 4791 of %s: %s", text,
			 error_text(err));
}

int udp_socket_open(struct os_host *h, struct udp_port *u)
{
	union udp_addr own;
	unsigned index;
	int err;

	udp_addr_set(&own, h->gid_ip.ip, WIRE_UDP_PORT);
	u->fd = socket(own.sa.sa_family,
		       SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (u->fd < 0)
		return -errno;
	u->mtu_bytes = interface_mtu(u->fd, &own, &index);
	if (!u->ipv4 && own.v6.sin6_addr.s6_addr[0] == 0xfe)
		u->scope_id = own.v6.sin6_scope_id = index; /* link-local */
	/* On loopback there is one way. */
	u->lanes_per_peer = is_loopback(h) ? 1 : UDP_LANES_PER_PEER;
	err = set_options(u);
	if (err)
		return error_set(err, "UDP socket options: %s",
				 error_text(err));
	u->window_bytes = window_of_buffer(u->fd);
	if (bind(u->fd, &own.sa, udp_addr_len(&own)) < 0)
		return explain_bind(h, -errno, &own);
	return 0;
}
