/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the raw port, and the filters that say whose frame it is. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "raw.h"
#include "socket_option.h"
#include "udp.h"

static uint32_t word(const uint8_t b[4])
{
	be32 v;

	memcpy(&v, b, sizeof(v));
	return be32_get(v);
}

/*
 * RoCEv2 to our address, and to a queue pair of our slot or a special one.
 * Addresses are compared by their last four bytes; the NIC compares the rest.
 * Whatever does not match jumps to the last instruction.
 */
static int attach_filter(const struct os_host *h, const struct raw_port *r)
{
	const uint32_t type = r->ipv4 ? ETH_P_IP : ETH_P_IPV6;
	const uint32_t ip = WIRE_ETH_BYTES;
	const uint32_t udp = ip + (r->ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, type, 0, 13),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ip + (r->ipv4 ? 9 : 6)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 11),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, udp - 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, word(h->gid_ip.ip + 12), 0,
			 9),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, udp + 2),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WIRE_UDP_PORT, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, udp + WIRE_UDP_BYTES + 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, WIRE_QPN_MASK),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, NIC_QPN_INDEX_BITS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, h->slot, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = {.len = ARRAY_LEN(code), .filter = code};

	return setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog)) < 0
		       ? -errno
		       : 0;
}

/* Somebody must own the UDP port, or the kernel tells the sender that nobody
 * does. What arrives there is not kept. */
static int open_sink(const struct os_host *h, struct raw_port *r)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog prog = {.len = 1, .filter = &none};
	union udp_addr own;
	int fd;

	udp_addr_set(&own, h->gid_ip.ip, WIRE_UDP_PORT);
	fd = socket(own.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r->sink_fd = fd;
	if (os_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1) ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) <
		    0 ||
	    bind(fd, &own.sa, udp_addr_len(&own)) < 0)
		return error_set(-errno,
				 "cannot reserve UDP port 4791 of nic.address: "
				 "%s",
				 strerror(errno));
	r->probe_fd = socket(own.sa.sa_family,
			     SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return r->probe_fd < 0 ? -errno : 0;
}

static int read_interface(const char *name, struct raw_port *r)
{
	struct ifreq req = {0};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (ioctl(r->fd, SIOCGIFINDEX, &req) < 0)
		return error_set(-ENODEV,
				 "nic.port names interface %s: there "
				 "is none",
				 name);
	r->ifindex = req.ifr_ifindex;
	if (ioctl(r->fd, SIOCGIFHWADDR, &req) < 0)
		return -errno;
	memcpy(r->mac, req.ifr_hwaddr.sa_data, 6);
	if (ioctl(r->fd, SIOCGIFMTU, &req) < 0)
		return -errno;
	r->mtu_bytes = (uint32_t)req.ifr_mtu;
	return 0;
}

int raw_socket_open(struct os_host *h, struct raw_port *r)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET};
	int err;

	/* Protocol 0: nothing is received before the filter is there. */
	r->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (r->fd < 0)
		return error_set(-errno, "the raw port needs root "
					 "(CAP_NET_RAW)");
	err = read_interface(h->cfg.interface, r);
	if (!err)
		err = open_sink(h, r);
	if (!err)
		err = attach_filter(h, r);
	if (!err)
		err = os_socket_set(r->fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (err)
		return err;
	(void)os_socket_set(r->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	os_socket_buffer(r->fd, SO_RCVBUFFORCE, SO_RCVBUF, RAW_SOCKET_BYTES);
	sa.sll_protocol = htons(r->ipv4 ? ETH_P_IP : ETH_P_IPV6);
	sa.sll_ifindex = r->ifindex;
	if (bind(r->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return 0;
}
