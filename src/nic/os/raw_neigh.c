/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Neighbours. The kernel resolves addresses (ARP, neighbour discovery) and
 * tells what it knows over netlink; a datagram to the discard port makes it
 * ask. Destinations behind a router are not resolved: the raw port is for one
 * link.
 */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"
#include "udp.h"

enum {
	DISCARD_PORT = 9,
	REPLY_BYTES = 1024,
};

struct question {
	struct nlmsghdr head;
	struct ndmsg body;
	struct rtattr attr;
	uint8_t address[16];
};

/* Valid states: the kernel would use the entry itself. */
static bool is_usable(uint16_t state)
{
	return state & (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE |
			NUD_PERMANENT | NUD_NOARP);
}

static bool read_reply(const struct nlmsghdr *head, size_t len, uint8_t mac[6])
{
	const struct ndmsg *body = NLMSG_DATA(head);
	const struct rtattr *a;
	long left;

	if (!NLMSG_OK(head, len) || head->nlmsg_type != RTM_NEWNEIGH ||
	    !is_usable(body->ndm_state))
		return false;
	left = (long)head->nlmsg_len - (long)NLMSG_LENGTH(sizeof(*body));
	for (a = (const void *)((const uint8_t *)body +
				NLMSG_ALIGN(sizeof(*body)));
	     RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == NDA_LLADDR && RTA_PAYLOAD(a) == 6) {
			memcpy(mac, RTA_DATA(a), 6);
			return true;
		}
	}
	return false;
}

/* One entry, by address (Linux 5.0 and later). */
static bool ask_kernel(const struct raw_port *r, const uint8_t ip[16],
		       uint8_t mac[6])
{
	size_t bytes = r->ipv4 ? 4 : 16;
	struct question q = {
		.head = {.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(q.body)) +
						 RTA_LENGTH(bytes)),
			 .nlmsg_type = RTM_GETNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.ndm_family = r->ipv4 ? AF_INET : AF_INET6,
			 .ndm_ifindex = r->ifindex},
		.attr = {.rta_len = (uint16_t)RTA_LENGTH(bytes),
			 .rta_type = NDA_DST},
	};
	union {
		struct nlmsghdr head;
		uint8_t bytes[REPLY_BYTES];
	} reply;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd < 0)
		return false;
	memcpy(q.address, r->ipv4 ? ip + 12 : ip, bytes);
	/* The kernel answers within the call that asks. */
	if (send(fd, &q, q.head.nlmsg_len, 0) == (ssize_t)q.head.nlmsg_len)
		n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
	close(fd);
	return n > 0 && read_reply(&reply.head, (size_t)n, mac);
}

bool raw_neigh_find(struct raw_port *r, const uint8_t ip[16], uint8_t mac[6])
{
	union udp_addr to;

	if (ask_kernel(r, ip, mac))
		return true;
	udp_addr_set(&to, ip, DISCARD_PORT);
	/* What it returns says nothing about the neighbour. */
	(void)!sendto(r->probe_fd, "", 0, 0, &to.sa, udp_addr_len(&to));
	return false;
}
