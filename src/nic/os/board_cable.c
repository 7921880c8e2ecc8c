/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's end of a NIC's cable: the NIC connects, introduces itself and
 * brings the rings; see cable_hello.c for its side. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "board_priv.h"
#include "cable.h"
#include "pages.h"
#include "slot.h"

enum {
	/* Lines taken early to be written: those of the third record from
	 * here, if each has 64 bytes of payload. */
	TAKE_FROM = 6,
	TAKE_UNTIL = 9,
};

struct cable_link {
	struct os_link link;
	uint8_t *shared;
	size_t shared_bytes;
	struct ring_tx tx;
	struct ring_rx rx;
	struct bell_peer peer;
	struct ucred who; /* the process that connected */
	uint64_t since_ns;
	uint32_t slot;
	uint8_t ips[2][16];
	struct ring_nudge nudge;
};

static struct cable_link *cable_of_link(struct os_link *l)
{
	return container_of(l, struct cable_link, link);
}

/* ---- frames ------------------------------------------------------------- */

HOT static unsigned cable_link_poll(struct os_link *l, unsigned budget)
{
	struct cable_link *c = cable_of_link(l);
	const uint8_t *frame;
	size_t len_bytes;
	unsigned n = 0;

	while (n < budget && (frame = ring_peek(&c->rx, &len_bytes))) {
		ring_prefetch(&c->rx, n == 0);
		l->board->ops->input(l->board->ctx, l, frame, len_bytes, NULL);
		ring_release(&c->rx);
		n++;
	}
	ring_rx_publish(&c->rx);
	if (UNLIKELY(c->rx.broken || c->tx.broken)) {
		l->board->stats->broken_rings++;
		board_link_doom(l);
	}
	return n;
}

static bool cable_link_ready(struct os_link *l)
{
	struct cable_link *c = cable_of_link(l);

	return !c->rx.broken && ring_ready(&c->rx);
}

HOT static bool cable_link_tx(struct os_link *l, const uint8_t *frame,
			      size_t len_bytes, const void *hint)
{
	struct cable_link *c = cable_of_link(l);
	uint8_t *to;

	if (UNLIKELY(len_bytes > OS_FRAME_MAX))
		return false;
	to = ring_reserve(&c->tx, len_bytes);
	if (UNLIKELY(!to))
		return false;
	ring_copy(to, frame, len_bytes);
	ring_publish(&c->tx, len_bytes);
	return true;
}

HOT static uint8_t *cable_link_tx_begin(struct os_link *l, size_t len_bytes)
{
	return LIKELY(len_bytes <= OS_FRAME_MAX)
		       ? ring_reserve(&cable_of_link(l)->tx, len_bytes)
		       : NULL;
}

/*
 * Takes lines that will be written soon from the consumer's cache, so that they
 * are ours when they are: where cores share no cache that is half a microsecond
 * for each, and stores wait for one another. PREFETCH_RW only reads them,
 * unless gcc may use prefetchw; a processor that has none ignores it.
 */
HOT static void take_ahead(const struct ring_tx *tx)
{
	uint64_t mask = tx->size_bytes - 1;

	for (uint32_t i = TAKE_FROM; i < TAKE_UNTIL; i++) {
		uint8_t *line = tx->data + ((tx->pos + i * RING_UNIT) & mask);

#ifdef __x86_64__
		__asm__ volatile("prefetchw %0" : : "m"(*line));
#else
		PREFETCH_RW(line);
#endif
	}
}

HOT static void cable_link_tx_end(struct os_link *l, size_t len_bytes)
{
	struct cable_link *c = cable_of_link(l);

	ring_publish(&c->tx, len_bytes);
	take_ahead(&c->tx);
}

/* Once for a batch: the NIC sees the frames without it if it polls. */
HOT static void cable_link_flush(struct os_link *l)
{
	if (UNLIKELY(bell_ring(&cable_of_link(l)->peer, l->fd)))
		l->board->stats->wakes_sent++;
}

static void cable_link_nudge(struct os_link *l, uint64_t now_ns)
{
	struct cable_link *c = cable_of_link(l);

	if (ring_tx_all_read(&c->tx) || !ring_tx_refresh(&c->tx) ||
	    ring_tx_all_read(&c->tx) ||
	    !ring_nudge_is_due(&c->nudge, &c->tx, now_ns))
		return;
	l->board->stats->wakes_sent++;
	bell_send(l->fd);
}

/* ---- introductions ------------------------------------------------------ */

/* The connector has the first half of everything. */
static void attach(struct cable_link *c, uint8_t *shared, uint32_t ring_bytes)
{
	struct ring_ctl *ctl = (struct ring_ctl *)(void *)shared;
	uint8_t *ring = shared + CABLE_RINGS_AT;

	c->shared = shared;
	c->shared_bytes = cable_shared_bytes(ring_bytes);
	ring_tx_init(&c->tx, &ctl[1], ring + ring_bytes, ring_bytes);
	ring_rx_init(&c->rx, &ctl[0], ring, ring_bytes);
}

/* The addresses that are to lead to a NIC follow from its own. */
static bool claims_its_own(const struct cable_hello *h)
{
	static const uint8_t none[16];
	struct env_addr link, ip;

	host_gids(h->ip, &link, &ip);
	return (!memcmp(h->gids[0], none, 16) ||
		!memcmp(h->gids[0], link.ip, 16)) &&
	       /* Of an IPv6 address the last four bytes name its slots. */
	       !memcmp(h->gids[1] + 12, h->ip, 4);
}

static int check_claims(struct cable_link *c, const struct cable_hello *h)
{
	struct os_board *b = c->link.board;

	if (claims_its_own(h) &&
	    slot_is_of(&b->sockets, h->ip, h->slot, &c->who))
		return 0;
	b->stats->refused_slot++;
	return -EACCES;
}

static int welcome(struct cable_link *c)
{
	struct os_board *b = c->link.board;
	struct cable_msg reply;

	cable_msg_init(&reply, CABLE_WELCOME);
	reply.hello = (struct cable_hello){
		.flags = b->bell.has_barrier ? CABLE_HAS_BARRIER : 0};
	return cable_msg_send(c->link.fd, &reply, &b->bell.page_fd, 1);
}

static int hello(struct cable_link *c, const struct cable_hello *h,
		 struct cable_fds *fds)
{
	struct os_board *b = c->link.board;
	uint8_t *shared;
	int err;

	err = cable_hello_check(h, fds);
	if (!err)
		err = check_claims(c, h);
	if (!err)
		err = bell_peer_init(&c->peer, fds->fd[1]);
	if (err)
		return err;
	shared = pages_map(fds->fd[0], cable_shared_bytes(h->ring_bytes), true);
	if (!shared)
		return -errno;
	attach(c, shared, h->ring_bytes);
	c->tx.exchange =
		!(b->bell.has_barrier && (h->flags & CABLE_HAS_BARRIER));
	c->slot = h->slot;
	memcpy(c->ips, h->gids, sizeof(c->ips));
	snprintf(c->link.name, sizeof(c->link.name), "nic%u", h->slot);
	err = welcome(c);
	if (!err)
		err = board_link_up(&c->link);
	if (!err)
		b->stats->cables++;
	return err;
}

static int receive(struct cable_link *c)
{
	for (unsigned i = 0; i < OS_MESSAGE_BATCH; i++) {
		struct cable_msg msg, reply;
		struct cable_fds fds;
		int err = cable_msg_recv(c->link.fd, &msg, &fds);

		if (err == -EAGAIN)
			return 0;
		if (err == -EPROTONOSUPPORT && msg.type != CABLE_REFUSE) {
			cable_msg_init(&reply, CABLE_REFUSE);
			(void)!cable_msg_send(c->link.fd, &reply, NULL, 0);
		}
		if (err)
			return err;
		/* Mappings are not for switches: nothing else is said. */
		err = -EBADMSG;
		if (msg.type == CABLE_HELLO && !c->link.up)
			err = hello(c, &msg.hello, &fds);
		else if (msg.type == CABLE_RING && c->link.up)
			err = 0; /* we are awake */
		cable_fds_close(&fds);
		if (err)
			return err;
	}
	return 0;
}

static void cable_link_event(struct os_link *l)
{
	int err = receive(cable_of_link(l));

	if (!err || l->doomed)
		return;
	if (l->up)
		l->board->stats->hangups++;
	else
		l->board->stats->refused++;
	board_link_doom(l);
}

static void cable_link_free(struct os_link *l)
{
	struct cable_link *c = cable_of_link(l);

	bell_peer_release(&c->peer);
	if (c->shared)
		pages_free(c->shared, c->shared_bytes);
	close(l->fd);
	free(c);
}

/* Who connects and then says nothing takes a place of others. */
static void cable_link_tend(struct os_link *l, uint64_t now_ns)
{
	if (LIKELY(l->up) || l->doomed ||
	    now_ns - cable_of_link(l)->since_ns < OS_HELLO_NS)
		return;
	l->board->stats->silent++;
	board_link_doom(l);
}

static const struct link_ops cable_link_ops = {
	.poll = cable_link_poll,
	.ready = cable_link_ready,
	.tx = cable_link_tx,
	.tx_begin = cable_link_tx_begin,
	.tx_end = cable_link_tx_end,
	.flush = cable_link_flush,
	.nudge = cable_link_nudge,
	.event = cable_link_event,
	.tend = cable_link_tend,
	.free = cable_link_free,
};

/* Whether there is room for one more that has not introduced itself: as many as
 * a NIC lets wait (cable.c), of another user fewer. */
static bool may_wait(const struct os_board *b, uid_t uid)
{
	unsigned all = 0, own = 0;

	for (struct os_link *l = b->links; l; l = l->next) {
		if (l->ops != &cable_link_ops || l->up || l->doomed)
			continue;
		all++;
		own += cable_of_link(l)->who.uid == uid;
	}
	return all < OS_PENDING_MAX &&
	       (uid == b->trust.self || uid == 0 || own < OS_PENDING_OTHER);
}

int board_cable_accept(struct os_board *b, int sock)
{
	struct cable_link *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (!c)
		goto err_close;
	err = cable_check_peer(sock, &b->trust, &c->who);
	if (!err && !may_wait(b, c->who.uid))
		err = -EBUSY;
	if (err) {
		b->stats->refused++;
		free(c);
		goto err_close;
	}
	c->since_ns = board_now(b);
	c->link.ops = &cable_link_ops;
	c->link.fd = sock;
	err = board_link_add(b, &c->link);
	if (err) {
		free(c);
		goto err_close;
	}
	/* Its introduction is usually here already. */
	cable_link_event(&c->link);
	return 0;

err_close:
	close(sock);
	return err;
}

bool board_cable_claims(const struct os_link *l, uint8_t ips[2][16],
			uint32_t *slot)
{
	const struct cable_link *c;

	if (l->ops != &cable_link_ops)
		return false;
	c = (const struct cable_link *)(const void *)l;
	memcpy(ips, c->ips, sizeof(c->ips));
	*slot = c->slot;
	return true;
}
