/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending. Frames are built in an arena as they stand on the wire; what leaves
 * is their UDP payload, and the kernel writes the headers in front of it again.
 * Neighbours of one size to one process leave as one GSO send, whose segments
 * the kernel numbers 0, 1, 2 ... in the IP identification: their ICRCs are
 * patched for it (wire_id_delta).
 *
 * What is too long for its way leaves in IP fragments. It has the largest size
 * that both ends agreed on, so it cannot be made smaller, and a socket at the
 * other end notices nothing; hardware may not take it. Who asks for the path's
 * MTU before it connects (aqdv_query_path_mtu, as rdma_cm does) has none.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#include "base/error.h"
#include "udp.h"

enum {
	USUAL_TTL = 64, /* what the kernel writes if it is told nothing */
};

static uint8_t tos_of(const uint8_t *frame, bool ipv4)
{
	const uint8_t *ip = frame + WIRE_ETH_BYTES;
	unsigned class6 = (unsigned)ip[0] << 4 | ip[1] >> 4;

	return (uint8_t)(ipv4 ? ip[1] : class6);
}

static uint8_t ttl_of(const uint8_t *frame, bool ipv4)
{
	return frame[WIRE_ETH_BYTES + (ipv4 ? 8 : 7)];
}

HOT uint8_t *udp_tx_begin(struct env_path *path, size_t max_bytes)
{
	struct udp_port *u = path->host->udp;
	struct udp_tx *tx = &u->tx;

	if (UNLIKELY(tx->count == UDP_TX_FRAMES ||
		     tx->used + max_bytes > UDP_TX_BYTES)) {
		udp_tx_flush(u);
		if (tx->count == UDP_TX_FRAMES ||
		    tx->used + max_bytes > UDP_TX_BYTES)
			return NULL;
	}
	return tx->arena + tx->used;
}

HOT void udp_tx_end(struct env_path *path, size_t len_bytes)
{
	struct udp_port *u = path->host->udp;
	struct udp_tx *tx = &u->tx;

	tx->frames[tx->count++] = (struct udp_frame){
		.to = container_of(path, struct udp_path, path),
		.at = (uint32_t)tx->used,
		.len = (uint16_t)(len_bytes - wire_outer_bytes(u->ipv4)),
		.tos = tos_of(tx->arena + tx->used, u->ipv4),
		.ttl = ttl_of(tx->arena + tx->used, u->ipv4),
	};
	tx->used += align_up(len_bytes, 64);
	if (UNLIKELY(tx->used >= UDP_TX_EAGER))
		udp_tx_flush(u);
}

void udp_tx_forget(struct udp_port *u, const struct udp_path *path)
{
	for (unsigned i = u->tx.done; i < u->tx.count; i++)
		if (u->tx.frames[i].to == path)
			u->tx.frames[i].to = NULL;
}

/* Makes the frame's ICRC that of another identification. */
static void set_id(struct udp_port *u, struct udp_frame *f, uint16_t id)
{
	size_t ip_bytes = WIRE_IP4_BYTES + WIRE_UDP_BYTES + (size_t)f->len;
	uint8_t *at = u->tx.arena + f->at + WIRE_ETH_BYTES + ip_bytes -
		      WIRE_ICRC_BYTES;
	uint32_t delta;
	le32 icrc;

	if (!u->ipv4 || f->id == id)
		return;
	delta = wire_id_delta(&u->ids, ip_bytes, id ^ f->id);
	memcpy(&icrc, at, sizeof(icrc));
	icrc = le32_put(le32_get(icrc) ^ delta);
	memcpy(at, &icrc, sizeof(icrc));
	f->id = id;
}

/* How many frames from `first` on one send may carry. */
static unsigned run_length(const struct udp_tx *tx, unsigned first)
{
	const struct udp_frame *f = &tx->frames[first];
	size_t bytes = f->len;
	unsigned n = 1;

	if (!tx->gso || f->to->no_gso)
		return 1;
	while (first + n < tx->count && n < UDP_SEGS_MAX) {
		const struct udp_frame *g = &tx->frames[first + n];

		if (g->to != f->to || g->tos != f->tos || g->ttl != f->ttl ||
		    g->len > f->len || bytes + g->len > UDP_GSO_BYTES)
			break;
		bytes += g->len;
		n++;
		if (g->len < f->len)
			break; /* only the last may be shorter */
	}
	return n;
}

static bool is_same_socket(const struct udp_path *a, const struct udp_path *b)
{
	return a == b || (b && a->lane.fd < 0 && b->lane.fd < 0);
}

static void add_control(struct msghdr *hdr, struct udp_control *space,
			int level, int type, const void *data, size_t len_bytes)
{
	struct cmsghdr *c = (void *)(space->bytes + hdr->msg_controllen);

	hdr->msg_control = space->bytes;
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len_bytes);
	memcpy(CMSG_DATA(c), data, len_bytes);
	hdr->msg_controllen += CMSG_SPACE(len_bytes);
}

/* Message `m` carries `n` frames from `first` on. A connected socket counts
 * its sends; any numbers the segments of one onwards. */
static void fill_message(struct udp_port *u, unsigned m, unsigned first,
			 unsigned n)
{
	struct udp_tx *tx = &u->tx;
	struct udp_frame *f = &tx->frames[first];
	struct msghdr *hdr = &tx->msgs[m].msg_hdr;
	const struct udp_lane *lane = &f->to->lane;
	unsigned id = lane->connected ? lane->next_id + m : 0;
	int tos = f->tos, ttl = f->ttl;

	*hdr = (struct msghdr){
		.msg_iov = &tx->iov[first],
		.msg_iovlen = n,
	};
	if (!lane->connected) {
		hdr->msg_name = &f->to->to;
		hdr->msg_namelen = udp_addr_len(&f->to->to);
	}
	tx->msg_frames[m] = n;
	for (unsigned i = 0; i < n; i++) {
		set_id(u, &f[i], (uint16_t)(id + i));
		tx->iov[first + i] = (struct iovec){
			.iov_base =
				tx->arena + f[i].at + wire_outer_bytes(u->ipv4),
			.iov_len = f[i].len,
		};
	}
	if (n > 1)
		add_control(hdr, &tx->control[m], IPPROTO_UDP, UDP_SEGMENT,
			    &f->len, sizeof(f->len));
	if (UNLIKELY(tos != WIRE_ECT0))
		add_control(hdr, &tx->control[m],
			    u->ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			    u->ipv4 ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos));
	if (UNLIKELY(ttl != USUAL_TTL))
		add_control(hdr, &tx->control[m],
			    u->ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
			    u->ipv4 ? IP_TTL : IPV6_HOPLIMIT, &ttl,
			    sizeof(ttl));
}

/* Messages for one call: they leave by one socket. None: there are no frames,
 * or the first is too long for its way. */
static unsigned fill_messages(struct udp_port *u)
{
	struct udp_tx *tx = &u->tx;
	unsigned at, m = 0;
	struct udp_path *to;

	while (tx->done < tx->count && !tx->frames[tx->done].to)
		tx->done++;
	at = tx->done;
	if (at == tx->count)
		return 0;
	to = tx->frames[at].to;
	if (UNLIKELY(tx->frames[at].len > to->room))
		return 0;
	if (UNLIKELY(to->lane.connected && !to->lane.id_known))
		udp_lane_learn(u, &to->lane);
	while (at < tx->count && m < UDP_TX_MSGS) {
		const struct udp_frame *f = &tx->frames[at];
		unsigned n;

		if (UNLIKELY(!is_same_socket(to, f->to) ||
			     f->len > f->to->room))
			break;
		n = run_length(tx, at);
		fill_message(u, m++, at, n);
		at += n;
	}
	return m;
}

/* One call into the kernel; returns how many messages it took. A lone packet
 * needs no header of a message, which saves it 0.1 us. */
HOT static int send_messages(struct udp_port *u, unsigned n)
{
	struct udp_tx *tx = &u->tx;
	const struct msghdr *hdr = &tx->msgs[0].msg_hdr;
	struct udp_lane *lane = &tx->frames[tx->done].to->lane;
	int fd = lane->fd < 0 ? u->fd : lane->fd;
	int sent;

	if (n == 1 && hdr->msg_iovlen == 1 && !hdr->msg_control)
		sent = sendto(fd, hdr->msg_iov->iov_base, hdr->msg_iov->iov_len,
			      MSG_DONTWAIT, hdr->msg_name, hdr->msg_namelen) < 0
			       ? -1
			       : 1;
	else if (n == 1)
		sent = sendmsg(fd, hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
	else
		sent = sendmmsg(fd, tx->msgs, n, MSG_DONTWAIT);
	if (LIKELY(sent > 0))
		lane->next_id = (uint16_t)(lane->next_id + sent);
	/* What was refused may have been counted or not. */
	if (UNLIKELY(sent < (int)n))
		lane->id_known = false;
	return sent;
}

static COLD void lost(struct udp_port *u, unsigned frames, int err)
{
	struct os_host *h = u->path.host;

	h->stats->udp_send_errors += frames;
	log_info_limited(&h->log_limit, host_now(h), "os", "UDP send: %s",
			 error_text(-err));
	u->tx.done += frames; /* as on any network */
}

/* The kernel found the first message too long, or a batch too much. */
static COLD void refit(struct udp_port *u)
{
	struct udp_tx *tx = &u->tx;
	const struct udp_frame *f = &tx->frames[tx->done];

	udp_path_learn(u, f->to);
	if (f->len > f->to->room)
		return;
	/* The way has room, so it was the batch. */
	if (tx->msg_frames[0] > 1)
		f->to->no_gso = true;
	else
		f->to->room = f->len - 1u;
}

/* The kernel refused the first message. True: try again now. */
static COLD bool refused(struct udp_port *u, int err)
{
	struct udp_tx *tx = &u->tx;
	unsigned n = tx->msg_frames[0];

	if (err == EAGAIN || err == ENOBUFS)
		return false;
	/* News of an earlier packet: nobody is there at present. */
	if (err == ECONNREFUSED && tx->news++ < UDP_TX_FRAMES)
		return true;
	tx->news = 0;
	if (err == EMSGSIZE ||
	    (n > 1 && (err == EINVAL || err == EIO || err == EOPNOTSUPP)))
		refit(u);
	else
		lost(u, n, err);
	return true;
}

/* The first frame leaves in IP fragments. False: not now. */
static COLD bool send_in_pieces(struct udp_port *u)
{
	struct os_host *h = u->path.host;
	struct udp_tx *tx = &u->tx;
	struct udp_frame *f = &tx->frames[tx->done];
	struct udp_path *to = f->to;
	int fd = to->lane.fd < 0 ? u->fd : to->lane.fd;
	int err = 0;

	if (host_now(h) >= to->room_until_ns)
		udp_path_learn(u, to);
	if (f->len <= to->room)
		return true;
	fill_message(u, 0, tx->done, 1);
	/* Nobody can tell which identification the fragments will have, and no
	 * socket shows it. The lane's own may be used up or not. */
	set_id(u, f, 0);
	to->lane.id_known = !to->lane.connected;
	err = udp_socket_set_pieces(u, fd, true);
	if (!err && sendmsg(fd, &tx->msgs[0].msg_hdr, MSG_DONTWAIT) < 0)
		err = -errno;
	/* What was just possible is possible again. */
	(void)!udp_socket_set_pieces(u, fd, false);
	if (err == -ECONNREFUSED && tx->news++ < UDP_TX_FRAMES)
		return true;
	tx->news = 0;
	if (err == -EAGAIN || err == -ENOBUFS)
		return false;
	if (err) {
		lost(u, 1, -err);
		return true;
	}
	h->stats->udp_too_big++;
	log_warn_limited(&h->log_limit, host_now(h), "os",
			 "packets of %u bytes leave in fragments, %u fit: a "
			 "path MTU of %u or less would be better",
			 f->len, to->room, udp_payload_of_mtu(to->room));
	tx->done++;
	h->stats->udp_sends++;
	return true;
}

HOT void udp_tx_flush(struct udp_port *u)
{
	struct udp_tx *tx = &u->tx;

	while (tx->done < tx->count) {
		unsigned n = fill_messages(u);
		int sent;

		if (UNLIKELY(!n)) {
			if (tx->done < tx->count && !send_in_pieces(u))
				return;
			continue;
		}
		sent = send_messages(u, n);
		if (UNLIKELY(sent < 0)) {
			if (!refused(u, errno))
				return;
			continue;
		}
		for (int m = 0; m < sent; m++)
			tx->done += tx->msg_frames[m];
		u->path.host->stats->udp_sends += (unsigned)sent;
	}
	tx->used = 0;
	tx->count = tx->done = tx->news = 0;
}
