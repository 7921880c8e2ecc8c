/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interface as a link of a switch: every frame in, any frame out, in
 * batches. The kernel hands frames over before offloads were done; packets of
 * RoCE are finished here (split, checksummed), others are passed on with what
 * is left to do as their hint, which the next interface's kernel understands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
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
#include "socket_option.h"
#include "wire/wire.h"

enum {
	BATCH = 32,
	HEADROOM = 64,
	SLOT_BYTES = 65536 + 2 * HEADROOM,
	SOCKET_BYTES = 8 << 20,
	GSO_UDP_L4 = 5, /* older headers do not have it */
};

struct raw_link {
	struct os_link link;
	uint8_t *rx; /* BATCH slots */
	uint8_t *tx;
	struct virtio_net_hdr rx_hdr[BATCH];
	struct virtio_net_hdr tx_hdr[BATCH];
	struct iovec rx_iov[BATCH][2];
	struct iovec tx_iov[BATCH][2];
	struct mmsghdr rx_msg[BATCH];
	struct mmsghdr tx_msg[BATCH];
	unsigned tx_count;
};

static struct raw_link *raw_of_link(struct os_link *l)
{
	return container_of(l, struct raw_link, link);
}

/* ---- in ----------------------------------------------------------------- */

static void read_outer(const uint8_t *f, bool ipv4, struct wire_outer *o)
{
	const uint8_t *ip = f + WIRE_ETH_BYTES;
	const uint8_t *udp = ip + (ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES);

	*o = (struct wire_outer){.src_port = (uint16_t)frame_load16(udp)};
	memcpy(o->dst_mac, f, 6);
	memcpy(o->src_mac, f + 6, 6);
	if (!ipv4) {
		memcpy(o->src_ip, ip + 8, 16);
		memcpy(o->dst_ip, ip + 24, 16);
		o->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
		o->ttl = ip[7];
		return;
	}
	o->src_ip[10] = o->src_ip[11] = 0xff;
	o->dst_ip[10] = o->dst_ip[11] = 0xff;
	memcpy(o->src_ip + 12, ip + 12, 4);
	memcpy(o->dst_ip + 12, ip + 16, 4);
	o->tos = ip[1];
	o->ttl = ip[8];
	o->ip_id = (uint16_t)frame_load16(ip + 4);
}

/* A batch that the sender's kernel left in one piece; on a wire it would be
 * packets, with identifications that count up. */
static unsigned split(struct raw_link *r, uint8_t *f, size_t len_bytes,
		      bool ipv4, size_t segment)
{
	struct os_board *b = r->link.board;
	size_t head = wire_outer_bytes(ipv4), at = head;
	struct wire_outer outer;
	unsigned n = 0;

	read_outer(f, ipv4, &outer);
	b->stats->split++;
	while (at < len_bytes) {
		size_t len = u64_min(segment, len_bytes - at);
		uint8_t *one = wire_wrap(&outer, f + at, len);

		if (!ipv4)
			frame_sum_udp6(one, head + len);
		b->ops->input(b->ctx, &r->link, one, head + len, NULL);
		outer.ip_id++;
		at += len;
		n++;
	}
	return n;
}

static unsigned take(struct raw_link *r, uint8_t *f, size_t len_bytes,
		     const struct virtio_net_hdr *h)
{
	struct os_board *b = r->link.board;
	unsigned gso = h->gso_type & ~(unsigned)VIRTIO_NET_HDR_GSO_ECN;
	bool ipv4;

	if (frame_is_roce(f, len_bytes, &ipv4)) {
		if (gso == GSO_UDP_L4 && h->gso_size)
			return split(r, f, len_bytes, ipv4, h->gso_size);
		if (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
			frame_sum_finish(f, len_bytes, h->csum_start,
					 h->csum_offset);
		b->ops->input(b->ctx, &r->link, f, len_bytes, NULL);
		return 1;
	}
	b->ops->input(b->ctx, &r->link, f, len_bytes,
		      gso || (h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) ? h
								      : NULL);
	return 1;
}

static unsigned raw_link_poll(struct os_link *l, unsigned budget)
{
	struct raw_link *r = raw_of_link(l);
	int got = recvmmsg(l->fd, r->rx_msg, (unsigned)u64_min(budget, BATCH),
			   MSG_DONTWAIT, NULL);
	unsigned n = 0;

	for (int i = 0; i < got; i++) {
		size_t len = r->rx_msg[i].msg_len;

		if (len < sizeof(struct virtio_net_hdr) ||
		    r->rx_msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			continue;
		n += take(r, r->rx_iov[i][1].iov_base,
			  len - sizeof(struct virtio_net_hdr), &r->rx_hdr[i]);
	}
	return n;
}

/* ---- out ---------------------------------------------------------------- */

static void raw_link_flush(struct os_link *l)
{
	struct raw_link *r = raw_of_link(l);
	unsigned done = 0;

	while (done < r->tx_count) {
		int n = sendmmsg(l->fd, r->tx_msg + done, r->tx_count - done,
				 MSG_DONTWAIT);

		/* The frame that was refused is lost, as on any link. */
		if (n <= 0) {
			l->board->stats->raw_send_errors++;
			n = 1;
		}
		done += (unsigned)n;
	}
	r->tx_count = 0;
}

static bool raw_link_tx(struct os_link *l, const uint8_t *frame,
			size_t len_bytes, const void *hint)
{
	struct raw_link *r = raw_of_link(l);
	unsigned i = r->tx_count;

	if (len_bytes > SLOT_BYTES)
		return false;
	r->tx_hdr[i] = (struct virtio_net_hdr){0};
	if (hint)
		memcpy(&r->tx_hdr[i], hint, sizeof(r->tx_hdr[i]));
	memcpy(r->tx_iov[i][1].iov_base, frame, len_bytes);
	r->tx_iov[i][1].iov_len = len_bytes;
	if (++r->tx_count == BATCH)
		raw_link_flush(l);
	return true;
}

/* ---- life --------------------------------------------------------------- */

/* Readable: poll finds it. An error (the interface is down) is taken here, or
 * the socket would wake us for ever. */
static void raw_link_event(struct os_link *l)
{
	int err;
	socklen_t len = sizeof(err);

	(void)getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &err, &len);
}

static void raw_link_free(struct os_link *l)
{
	struct raw_link *r = raw_of_link(l);

	if (l->fd >= 0)
		close(l->fd);
	if (r->rx)
		pages_free(r->rx, (size_t)BATCH * SLOT_BYTES);
	if (r->tx)
		pages_free(r->tx, (size_t)BATCH * SLOT_BYTES);
	free(r);
}

static const struct link_ops raw_link_ops = {
	.poll = raw_link_poll,
	.tx = raw_link_tx,
	.flush = raw_link_flush,
	.event = raw_link_event,
	.free = raw_link_free,
};

static int open_socket(struct raw_link *r, const char *interface)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return error_set(-errno, "a raw port needs root (CAP_NET_RAW)");
	r->link.fd = fd;
	sa.sll_ifindex = (int)if_nametoindex(interface);
	if (!sa.sll_ifindex)
		return error_set(-ENODEV, "there is no interface '%.32s'",
				 interface);
	all.mr_ifindex = sa.sll_ifindex;
	err = os_socket_set(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
	if (err)
		return err;
	(void)os_socket_set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	os_socket_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, SOCKET_BYTES);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
		       sizeof(all)) < 0)
		return error_set(-errno, "interface %s: %s", interface,
				 strerror(errno));
	return 0;
}

static int make_buffers(struct raw_link *r)
{
	r->rx = pages_alloc((size_t)BATCH * SLOT_BYTES);
	r->tx = pages_alloc((size_t)BATCH * SLOT_BYTES);
	if (!r->rx || !r->tx)
		return -ENOMEM;
	for (unsigned i = 0; i < BATCH; i++) {
		size_t at = (size_t)i * SLOT_BYTES;

		r->rx_iov[i][0] =
			(struct iovec){&r->rx_hdr[i], sizeof(r->rx_hdr[i])};
		r->rx_iov[i][1] = (struct iovec){r->rx + at + HEADROOM,
						 SLOT_BYTES - HEADROOM};
		r->tx_iov[i][0] =
			(struct iovec){&r->tx_hdr[i], sizeof(r->tx_hdr[i])};
		r->tx_iov[i][1] = (struct iovec){r->tx + at, 0};
		r->rx_msg[i].msg_hdr = (struct msghdr){.msg_iov = r->rx_iov[i],
						       .msg_iovlen = 2};
		r->tx_msg[i].msg_hdr = (struct msghdr){.msg_iov = r->tx_iov[i],
						       .msg_iovlen = 2};
	}
	return 0;
}

int os_board_add_raw(struct os_board *b, const char *interface)
{
	struct raw_link *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->link.ops = &raw_link_ops;
	r->link.fd = -1;
	r->link.takes_hints = true;
	snprintf(r->link.name, sizeof(r->link.name), "%s", interface);
	err = make_buffers(r);
	if (!err)
		err = open_socket(r, interface);
	if (!err)
		err = board_link_add(b, &r->link);
	if (err) {
		raw_link_free(&r->link);
		return err;
	}
	err = board_link_up(&r->link);
	if (err) {
		board_link_doom(&r->link);
		os_board_events(b);
	}
	return err;
}
