/* SPDX-License-Identifier: Apache-2.0 */
/* The raw port's life, its paths, and frames in and out. */
#include "raw.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pages.h"

/* UDP segments in one frame; older headers do not have it. */
enum {
	GSO_UDP_L4 = 5,
};

static struct raw_port *raw_of(struct env_path *path)
{
	return container_of(path, struct raw_port, path);
}

/* ---- out ------------------------------------------------------------------
 */

static uint8_t *path_tx_begin(struct env_path *path, size_t max_bytes)
{
	return path->host->raw->tx;
}

/* Frames to a neighbour that is not known yet are lost, as on any network. */
static bool resolve(struct raw_port *r, struct raw_path *p)
{
	uint64_t now_ns;

	if (LIKELY(p->resolved))
		return true;
	now_ns = host_now(r->path.host);
	if (now_ns < p->resolve_ns)
		return false;
	p->resolve_ns = now_ns + RAW_RESOLVE_NS;
	p->resolved = raw_neigh_find(r, p->ip, p->mac);
	return p->resolved;
}

static void path_tx_end(struct env_path *path, size_t len_bytes)
{
	struct raw_path *p = container_of(path, struct raw_path, path);
	struct raw_port *r = path->host->raw;
	struct virtio_net_hdr none = {0};
	struct iovec iov[2] = {{&none, sizeof(none)}, {r->tx, len_bytes}};

	if (UNLIKELY(!resolve(r, p))) {
		path->host->stats->raw_unresolved++;
		return;
	}
	/* The NIC guesses; the link knows. The ICRC does not cover it. */
	memcpy(r->tx, p->mac, 6);
	memcpy(r->tx + 6, r->mac, 6);
	if (UNLIKELY(writev(r->fd, iov, 2) < 0))
		path->host->stats->raw_send_errors++;
}

static uint32_t path_window(struct env_path *path)
{
	return RAW_WINDOW_BYTES;
}

static void path_unused(struct env_path *path)
{
	struct raw_path *p = container_of(path, struct raw_path, path);
	struct raw_path **at = &path->host->raw->paths;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	free(p);
}

static const struct port_ops path_port = {
	.window_bytes = path_window,
	.tx_begin = path_tx_begin,
	.tx_end = path_tx_end,
	.unused = path_unused,
};

/* ---- in --------------------------------------------------------------------
 */

static void read_outer(const uint8_t *frame, bool ipv4, struct wire_outer *o)
{
	const uint8_t *ip = frame + WIRE_ETH_BYTES;
	const uint8_t *udp = ip + (ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES);

	*o = (struct wire_outer){0};
	memcpy(o->dst_mac, frame, 6);
	memcpy(o->src_mac, frame + 6, 6);
	if (ipv4) {
		o->src_ip[10] = o->src_ip[11] = 0xff;
		o->dst_ip[10] = o->dst_ip[11] = 0xff;
		memcpy(o->src_ip + 12, ip + 12, 4);
		memcpy(o->dst_ip + 12, ip + 16, 4);
		o->tos = ip[1];
		o->ttl = ip[8];
		o->ip_id = (uint16_t)(ip[4] << 8 | ip[5]);
	} else {
		memcpy(o->src_ip, ip + 8, 16);
		memcpy(o->dst_ip, ip + 24, 16);
		o->tos = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
		o->ttl = ip[7];
	}
	o->src_port = (uint16_t)(udp[0] << 8 | udp[1]);
}

/* The kernel hands batches over whole; on a wire they would be packets. */
static unsigned split(struct raw_port *r, uint8_t *frame, size_t len_bytes,
		      size_t segment)
{
	size_t head = wire_outer_bytes(r->ipv4), at = head;
	struct wire_outer outer;
	unsigned n = 0;

	read_outer(frame, r->ipv4, &outer);
	while (at < len_bytes) {
		size_t len = u64_min(segment, len_bytes - at);
		uint8_t *f = wire_wrap(&outer, frame + at, len);

		host_input(r->path.host, f, head + len, NIC_FROM_NET);
		outer.ip_id++;
		at += len;
		n++;
	}
	return n;
}

static unsigned raw_poll(struct env_path *path, unsigned budget)
{
	struct raw_port *r = raw_of(path);
	unsigned n = 0;

	while (n < budget) {
		struct virtio_net_hdr vnet;
		uint8_t *frame = r->rx + RAW_HEADROOM;
		struct iovec iov[2] = {{&vnet, sizeof(vnet)},
				       {frame, RAW_FRAME_MAX - RAW_HEADROOM}};
		ssize_t got = readv(r->fd, iov, 2);
		size_t len;

		if (got < (ssize_t)sizeof(vnet))
			break;
		len = (size_t)got - sizeof(vnet);
		if (vnet.gso_type == GSO_UDP_L4 && vnet.gso_size &&
		    len > wire_outer_bytes(r->ipv4)) {
			n += split(r, frame, len, vnet.gso_size);
			continue;
		}
		host_input(path->host, frame, len, NIC_FROM_NET);
		n++;
	}
	return n;
}

static bool raw_ready(struct env_path *path)
{
	int bytes = 0;

	return ioctl(raw_of(path)->fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

static const struct port_ops raw_port_ops = {
	.poll = raw_poll,
	.ready = raw_ready,
};

/* ---- life ------------------------------------------------------------------
 */

int raw_path_open(struct raw_port *r, const uint8_t ip[16],
		  struct env_path **out)
{
	struct os_host *h = r->path.host;
	struct raw_path *p;

	if (wire_is_ipv4(ip) != r->ipv4) {
		*out = &h->void_path;
		return 0;
	}
	for (p = r->paths; p; p = p->next)
		if (memcmp(p->ip, ip, 16) == 0)
			break;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->path = (struct env_path){.port = &path_port, .host = h};
		memcpy(p->ip, ip, 16);
		p->next = r->paths;
		r->paths = p;
		(void)resolve(r, p); /* or when the first frame leaves */
	}
	watch_start(&r->watch);
	*out = &p->path;
	return 0;
}

int raw_open(struct os_host *h, struct raw_port **out)
{
	struct raw_port *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->path = (struct env_path){.port = &raw_port_ops, .host = h};
	r->fd = r->sink_fd = r->probe_fd = -1;
	r->ipv4 = wire_is_ipv4(h->gid_ip.ip);
	r->rx = pages_alloc(RAW_FRAME_MAX);
	r->tx = pages_alloc(OS_FRAME_MAX);
	if (!r->rx || !r->tx)
		goto err_close;
	err = raw_socket_open(h, r);
	if (!err)
		err = watch_open(&r->watch, &r->path, r->fd);
	if (err)
		goto err_close;
	*out = r;
	return 0;

err_close:
	raw_close(r);
	return err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void raw_close(struct raw_port *r)
{
	if (!r)
		return;
	while (r->paths) {
		struct raw_path *p = r->paths;

		r->paths = p->next;
		free(p);
	}
	close_fd(r->fd);
	close_fd(r->sink_fd);
	close_fd(r->probe_fd);
	if (r->rx)
		pages_free(r->rx, RAW_FRAME_MAX);
	if (r->tx)
		pages_free(r->tx, OS_FRAME_MAX);
	free(r);
}
