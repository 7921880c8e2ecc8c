/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts as links of a switch, over a UDP socket: whole frames in VXLAN packets
 * (RFC 7348), so that nothing in a frame changes and its ICRC stays right; why
 * not RoCEv2's own datagrams is in decision 12. A host is a link from its
 * first packet on. That packet waits until the driver has the link.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "board_frame.h"
#include "board_priv.h"
#include "pages.h"
#include "wire/wire.h"

enum {
	BATCH = 32,
	VXLAN_PORT = 4789,
	VXLAN_BYTES = 8,
	VXLAN_HAS_VNI = 0x08, /* the one flag, in the first byte */
	VNI_MAX = 0xffffff,
	SLOT_BYTES = 65536,
	SOCKET_BYTES = 8 << 20,
	HOSTS_MAX = 256,
	STASH_MAX = 8, /* hosts that are new between two batches */
	STASH_BYTES = 9216,
};

#define SILENT_NS 300000000000ull /* as long as addresses are remembered */
#define LOOK_NS	  1000000000ull

union address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct udp_host {
	struct os_link link;
	struct udp_socket *socket;
	union address to; /* with the port that VXLAN packets go to */
	uint64_t heard_ns;
	unsigned tx_count;
	uint8_t *tx; /* BATCH slots */
	struct iovec iov[BATCH][2];
	struct mmsghdr msg[BATCH];
};

/* A host's first frame. */
struct stash {
	union address from;
	struct udp_host *host; /* NULL: not made yet */
	size_t len_bytes;
	uint8_t frame[STASH_BYTES];
};

struct udp_socket {
	struct os_link link; /* hidden; has the descriptor */
	uint16_t port;
	uint8_t header[VXLAN_BYTES]; /* of everything that leaves */
	struct udp_host *hosts[HOSTS_MAX];
	unsigned host_count;
	uint64_t look_ns;
	struct stash stash[STASH_MAX];
	unsigned stash_count;
	uint8_t *rx; /* BATCH slots */
	union address from[BATCH];
	struct iovec iov[BATCH];
	struct mmsghdr msg[BATCH];
};

static struct udp_socket *socket_of(struct os_link *l)
{
	return container_of(l, struct udp_socket, link);
}

static struct udp_host *host_of_link(struct os_link *l)
{
	return container_of(l, struct udp_host, link);
}

/* ---- hosts --------------------------------------------------------------- */

/* Of the host alone: its kernel sends from many ports. */
static bool same_host(const union address *a, const union address *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16) == 0;
}

static struct udp_host *find(struct udp_socket *u, const union address *from)
{
	for (unsigned i = 0; i < u->host_count; i++)
		if (same_host(&u->hosts[i]->to, from))
			return u->hosts[i];
	return NULL;
}

static const struct link_ops host_ops;

static void name_host(struct udp_host *h)
{
	char text[INET6_ADDRSTRLEN] = "";
	const size_t room = sizeof(h->link.name) - sizeof("udp-");
	size_t len;

	if (h->to.sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &h->to.v4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &h->to.v6.sin6_addr, text, sizeof(text));
	len = strlen(text);
	/* The end of a long address tells hosts apart, its start does not. */
	snprintf(h->link.name, sizeof(h->link.name), "udp-%s",
		 text + (len > room ? len - room : 0));
}

static int add_host(struct udp_socket *u, const union address *from,
		    struct udp_host **out)
{
	struct udp_host *h;
	int err;

	if (u->host_count == HOSTS_MAX)
		return -ENOSPC;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->link.ops = &host_ops;
	h->link.fd = -1;
	h->socket = u;
	h->to = *from;
	if (from->sa.sa_family == AF_INET)
		h->to.v4.sin_port = htons(u->port);
	else
		h->to.v6.sin6_port = htons(u->port);
	h->heard_ns = board_now(u->link.board);
	h->tx = pages_alloc((size_t)BATCH * SLOT_BYTES);
	name_host(h);
	err = h->tx ? board_link_add(u->link.board, &h->link) : -ENOMEM;
	if (err) {
		if (h->tx)
			pages_free(h->tx, (size_t)BATCH * SLOT_BYTES);
		free(h);
		return err;
	}
	for (unsigned i = 0; i < BATCH; i++) {
		h->iov[i][0] = (struct iovec){u->header, VXLAN_BYTES};
		h->iov[i][1].iov_base = h->tx + (size_t)i * SLOT_BYTES;
		h->msg[i].msg_hdr =
			(struct msghdr){.msg_name = &h->to,
					.msg_namelen = sizeof(h->to),
					.msg_iov = h->iov[i],
					.msg_iovlen = 2};
		if (h->to.sa.sa_family == AF_INET)
			h->msg[i].msg_hdr.msg_namelen = sizeof(h->to.v4);
	}
	u->hosts[u->host_count++] = h;
	err = board_link_up(&h->link);
	if (err)
		board_link_doom(&h->link);
	else
		u->link.board->stats->udp_hosts++;
	*out = h;
	return err;
}

/* ---- in ------------------------------------------------------------------ */

static void keep_first(struct udp_socket *u, const union address *from,
		       const uint8_t *frame, size_t len_bytes)
{
	struct stash *s = &u->stash[u->stash_count];

	if (u->stash_count == STASH_MAX || len_bytes > STASH_BYTES ||
	    u->host_count == HOSTS_MAX) {
		u->link.board->stats->udp_refused++;
		return;
	}
	s->from = *from;
	s->host = NULL;
	s->len_bytes = len_bytes;
	memcpy(s->frame, frame, len_bytes);
	u->stash_count++;
}

static void give(struct udp_host *h, uint8_t *frame, size_t len_bytes)
{
	struct os_board *b = h->link.board;
	bool ipv4;

	h->heard_ns = board_now(b);
	if (!frame_is_roce(frame, len_bytes, &ipv4))
		frame_mend(frame, len_bytes);
	else if (!ipv4)
		frame_sum_udp6(frame, len_bytes);
	else /* needs none, and a kernel may have left it unfinished */
		memset(frame + WIRE_ETH_BYTES + WIRE_IP4_BYTES + 6, 0, 2);
	b->ops->input(b->ctx, &h->link, frame, len_bytes, NULL);
}

/* First frames whose hosts are links by now. */
static unsigned give_stash(struct udp_socket *u)
{
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < u->stash_count; i++) {
		struct stash *s = &u->stash[i];

		if (!s->host) {
			if (kept != i)
				memcpy(&u->stash[kept], s, sizeof(*s));
			kept++;
			continue;
		}
		if (s->host->link.up)
			give(s->host, s->frame, s->len_bytes);
		n++;
	}
	u->stash_count = kept;
	return n;
}

static bool is_ours(const struct udp_socket *u, const uint8_t *p, size_t len)
{
	return len >= VXLAN_BYTES + WIRE_ETH_BYTES && (p[0] & VXLAN_HAS_VNI) &&
	       memcmp(p + 4, u->header + 4, 3) == 0;
}

static unsigned socket_poll(struct os_link *l, unsigned budget)
{
	struct udp_socket *u = socket_of(l);
	unsigned n = u->stash_count ? give_stash(u) : 0;
	int got;

	for (unsigned i = 0; i < BATCH; i++)
		u->msg[i].msg_hdr.msg_namelen = sizeof(u->from[i]);
	got = recvmmsg(l->fd, u->msg, (unsigned)u64_min(budget, BATCH),
		       MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++) {
		uint8_t *p = u->iov[i].iov_base;
		size_t len = u->msg[i].msg_len;
		struct udp_host *h;

		n++;
		if (!is_ours(u, p, len) ||
		    u->msg[i].msg_hdr.msg_flags & MSG_TRUNC) {
			l->board->stats->udp_refused++;
			continue;
		}
		h = find(u, &u->from[i]);
		if (h && h->link.up)
			give(h, p + VXLAN_BYTES, len - VXLAN_BYTES);
		else if (!h)
			keep_first(u, &u->from[i], p + VXLAN_BYTES,
				   len - VXLAN_BYTES);
	}
	return n;
}

static bool socket_ready(struct os_link *l)
{
	return socket_of(l)->stash_count > 0;
}

static void socket_tend(struct os_link *l, uint64_t now_ns)
{
	struct udp_socket *u = socket_of(l);

	for (unsigned i = 0; i < u->stash_count; i++) {
		struct stash *s = &u->stash[i];

		/* Several frames of one new host. */
		s->host = find(u, &s->from);
		if (!s->host && add_host(u, &s->from, &s->host)) {
			l->board->stats->udp_refused++;
			u->stash[i--] = u->stash[--u->stash_count];
		}
	}
	if (now_ns < u->look_ns)
		return;
	u->look_ns = now_ns + LOOK_NS;
	for (unsigned i = 0; i < u->host_count; i++) {
		struct udp_host *h = u->hosts[i];

		if (h->link.doomed || now_ns - h->heard_ns < SILENT_NS)
			continue;
		l->board->stats->udp_silent++;
		board_link_doom(&h->link);
	}
}

/* ---- out ----------------------------------------------------------------- */

static void host_flush(struct os_link *l)
{
	struct udp_host *h = host_of_link(l);
	unsigned done = 0;

	while (done < h->tx_count) {
		int n = sendmmsg(h->socket->link.fd, h->msg + done,
				 h->tx_count - done, MSG_DONTWAIT);

		/* The one that was refused is lost, as on any link. */
		if (n <= 0) {
			l->board->stats->udp_send_errors++;
			n = 1;
		}
		done += (unsigned)n;
	}
	h->tx_count = 0;
}

static bool host_tx(struct os_link *l, const uint8_t *frame, size_t len_bytes,
		    const void *hint)
{
	struct udp_host *h = host_of_link(l);
	struct iovec *to = &h->iov[h->tx_count][1];

	if (len_bytes > SLOT_BYTES - 256) /* with headers: no datagram */
		return false;
	memcpy(to->iov_base, frame, len_bytes);
	to->iov_len = len_bytes;
	if (++h->tx_count == BATCH)
		host_flush(l);
	return true;
}

static unsigned host_poll(struct os_link *l, unsigned budget)
{
	return 0; /* its socket has what it sends */
}

/* ---- life ---------------------------------------------------------------- */

static void host_free(struct os_link *l)
{
	struct udp_host *h = host_of_link(l);
	struct udp_socket *u = h->socket;

	for (unsigned i = 0; i < u->stash_count; i++)
		if (u->stash[i].host == h)
			u->stash[i--] = u->stash[--u->stash_count];
	for (unsigned i = 0; i < u->host_count; i++)
		if (u->hosts[i] == h)
			u->hosts[i] = u->hosts[--u->host_count];
	pages_free(h->tx, (size_t)BATCH * SLOT_BYTES);
	free(h);
}

/* An error of an earlier send is taken here, or it would wake us for ever. */
static void socket_event(struct os_link *l)
{
	int err;
	socklen_t len = sizeof(err);

	if (l->fd >= 0)
		(void)getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &len);
}

static void socket_free(struct os_link *l)
{
	struct udp_socket *u = socket_of(l);

	if (l->fd >= 0)
		close(l->fd);
	if (u->rx)
		pages_free(u->rx, (size_t)BATCH * SLOT_BYTES);
	free(u);
}

static const struct link_ops host_ops = {
	.poll = host_poll,
	.tx = host_tx,
	.flush = host_flush,
	.event = socket_event,
	.free = host_free,
};

static const struct link_ops socket_ops = {
	.poll = socket_poll,
	.ready = socket_ready,
	.event = socket_event,
	.tend = socket_tend,
	.free = socket_free,
};

static int parse_number(const char *text, unsigned long max, uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || v == 0 || v > max)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

/* ADDRESS[:PORT][/VNI]; an IPv6 address with a port stands in brackets. */
static int parse(const char *text, union address *a, uint32_t *port,
		 uint32_t *vni)
{
	char copy[INET6_ADDRSTRLEN + 24], *address = copy, *mark;
	int err = 0;

	*port = VXLAN_PORT;
	*vni = 1;
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return -EINVAL;
	mark = strchr(copy, '/');
	if (mark) {
		*mark = '\0';
		err = parse_number(mark + 1, VNI_MAX, vni);
	}
	mark = copy[0] == '[' ? strchr(copy, ']') : NULL;
	if (mark) {
		address++;
		*mark++ = '\0';
	} else if (strchr(copy, ':') == strrchr(copy, ':')) {
		mark = strchr(copy, ':');
	}
	if (mark && *mark == ':') {
		*mark = '\0';
		err = err ? err : parse_number(mark + 1, UINT16_MAX, port);
	}
	memset(a, 0, sizeof(*a));
	if (!err && inet_pton(AF_INET, address, &a->v4.sin_addr) == 1) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons((uint16_t)*port);
		return 0;
	}
	if (!err && inet_pton(AF_INET6, address, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons((uint16_t)*port);
		return 0;
	}
	return -EINVAL;
}

static int open_udp(struct udp_socket *u, const union address *a,
		    const char *text)
{
	int size = SOCKET_BYTES, one = 1;
	socklen_t len =
		a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);

	u->link.fd = socket(a->sa.sa_family,
			    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (u->link.fd < 0)
		return -errno;
	(void)setsockopt(u->link.fd, IPPROTO_IPV6, IPV6_V6ONLY, &one,
			 sizeof(one)); /* or IPv4 hosts have two names */
	if (setsockopt(u->link.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
		       sizeof(size)) < 0)
		(void)setsockopt(u->link.fd, SOL_SOCKET, SO_RCVBUF, &size,
				 sizeof(size));
	if (bind(u->link.fd, &a->sa, len) < 0)
		return error_set(-errno, "udp:%s: %s", text, strerror(errno));
	return 0;
}

static int make_buffers(struct udp_socket *u)
{
	u->rx = pages_alloc((size_t)BATCH * SLOT_BYTES);
	if (!u->rx)
		return -ENOMEM;
	for (unsigned i = 0; i < BATCH; i++) {
		u->iov[i] = (struct iovec){u->rx + (size_t)i * SLOT_BYTES,
					   SLOT_BYTES};
		u->msg[i].msg_hdr = (struct msghdr){.msg_name = &u->from[i],
						    .msg_iov = &u->iov[i],
						    .msg_iovlen = 1};
	}
	return 0;
}

int os_board_add_udp(struct os_board *b, const char *text)
{
	struct udp_socket *u;
	union address a;
	uint32_t port, vni;
	int err = parse(text, &a, &port, &vni);

	if (err)
		return error_set(err,
				 "'udp:%.60s': a port of this kind is "
				 "udp:ADDRESS[:PORT][/VNI]",
				 text);
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->link.ops = &socket_ops;
	u->link.fd = -1;
	u->link.hidden = true;
	u->port = (uint16_t)port;
	u->header[0] = VXLAN_HAS_VNI;
	u->header[4] = (uint8_t)(vni >> 16);
	u->header[5] = (uint8_t)(vni >> 8);
	u->header[6] = (uint8_t)vni;
	snprintf(u->link.name, sizeof(u->link.name), "udp:%.26s", text);
	err = make_buffers(u);
	if (!err)
		err = open_udp(u, &a, text);
	if (!err)
		err = board_link_add(b, &u->link);
	if (err)
		socket_free(&u->link);
	return err;
}
