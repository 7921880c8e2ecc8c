/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a cable and its way of being a port. Introductions are in
 * cable_hello.c, direct mappings in grant.c (given) and direct.c (taken).
 */
#include "cable.h"
#include "base/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "pages.h"
#include "slot.h"
#include "wire/wire.h"

enum {
	FORESIGHT = 8, /* frames whose memory is fetched ahead */
};

/*
 * Only the NIC thread takes a cable down, because only it may hold events that
 * point to one. Others leave it a note.
 */
static void doom(struct cable *c)
{
	if (c->doomed)
		return;
	c->doomed = true;
	nic_thread_kick(c->path.host);
}

/* ---- the port ----------------------------------------------------------- */

HOT static uint8_t *cable_tx_begin(struct env_path *path, size_t max_bytes)
{
	struct cable *c = cable_of(path);
	uint8_t *frame = ring_reserve(&c->tx, max_bytes);

	if (UNLIKELY(!frame)) {
		if (c->tx.broken)
			doom(c);
		return NULL;
	}
	/* A small frame is built here and copied: see ring_publish_copy. */
	c->small_frame = max_bytes <= CABLE_SMALL_BYTES;
	return c->small_frame ? path->host->scratch + RING_HEADER_BYTES : frame;
}

/* Not looked at before its end: written in place. */
HOT static uint8_t *cable_tx_begin_exact(struct env_path *path,
					 size_t len_bytes)
{
	struct cable *c = cable_of(path);
	uint8_t *frame = ring_reserve(&c->tx, len_bytes);

	c->small_frame = false;
	if (UNLIKELY(!frame && c->tx.broken))
		doom(c);
	return frame;
}

/* In a turn, whose frames are mostly answers to the peer's own, once. */
static COLD void wake_peer(struct cable *c)
{
	struct os_host *h = c->path.host;

	if (!h->in_turn) {
		bell_send(c->sock);
		h->stats->wakes_sent++;
		return;
	}
	h->has_woken = true;
	if (bell_ring_once(&c->peer, c->sock))
		h->stats->wakes_sent++;
	else
		h->stats->wakes_put_off++;
}

/*
 * At the end of a turn: a peer that is woken by the first of many answers only
 * dozes again before the last one comes. So one that says at every look that it
 * dozes anew costs one system call for each turn.
 */
static COLD void rouse_peer(struct cable *c, uint64_t pos)
{
	struct os_host *h = c->path.host;

	if (h->in_turn) {
		h->has_woken = true;
		c->owes_rouse = true;
		c->rouse_pos = pos;
		return;
	}
	ring_rouse(&c->tx, pos);
	h->stats->rouses_sent++;
}

void cable_settle(struct os_host *h)
{
	h->has_woken = false;
	for (struct cable *c = h->cables; c; c = c->next) {
		if (c->peer.is_rung && bell_settle(&c->peer, c->sock))
			h->stats->wakes_sent++;
		if (c->owes_rouse) {
			c->owes_rouse = false;
			rouse_peer(c, c->rouse_pos);
		}
	}
}

HOT static void cable_tx_end(struct env_path *path, size_t len_bytes)
{
	struct cable *c = cable_of(path);
	uint64_t pos = c->tx.pos;

	if (c->small_frame)
		ring_publish_copy(&c->tx, path->host->scratch, len_bytes);
	else
		ring_publish(&c->tx, len_bytes);
	if (UNLIKELY(!c->peer.page))
		return;
	if (UNLIKELY(bell_must_ring(&c->peer)))
		wake_peer(c);
	if (UNLIKELY(bell_must_rouse(&c->peer)))
		rouse_peer(c, pos);
}

/* The memory of several frames at once: misses overlap only if they lie close
 * together in time. */
HOT static void foretell(struct cable *c, size_t len_bytes)
{
	for (uint32_t i = 1; i <= FORESIGHT; i++) {
		const uint8_t *frame = ring_peek_ahead(&c->rx, len_bytes, i);

		if (!frame)
			return;
		nic_foretell(c->path.host->base.nic, frame, len_bytes);
	}
}

/* The switch stands for a network. Only processes of one user can share a port,
 * and so receive for each other. A slot that is ours cannot be a peer's. */
static uint32_t cable_from(struct env_path *path)
{
	const struct cable *c = cable_of(path);

	if (path->host->uplink)
		return NIC_FROM_NET;
	if (c->slot == path->host->slot)
		return NIC_FROM_UNKNOWN;
	return c->slot |
	       (c->uid == path->host->trust.self ? NIC_FROM_FORWARDS : 0);
}

HOT static unsigned cable_poll(struct env_path *path, unsigned budget)
{
	struct cable *c = cable_of(path);
	uint32_t from = cable_from(path);
	const uint8_t *frame;
	size_t len_bytes;
	unsigned n = 0;

	while (n < budget && (frame = ring_peek(&c->rx, &len_bytes))) {
		if (n % FORESIGHT == 0)
			foretell(c, len_bytes);
		host_input(path->host, frame, len_bytes, from);
		ring_release(&c->rx);
		n++;
	}
	ring_rx_publish(&c->rx);
	if (UNLIKELY(c->rx.broken))
		doom(c);
	return n;
}

static uint32_t cable_path_from(struct env_path *path)
{
	return cable_from(path) & NIC_FROM_MASK;
}

static bool cable_ready(struct env_path *path)
{
	struct cable *c = cable_of(path);

	return !c->rx.broken && ring_ready(&c->rx);
}

/* A switch does not rouse. */
static bool cable_doze(struct env_path *path, struct doze_word *out)
{
	struct cable *c = cable_of(path);

	return c->state == CABLE_UP && c->slot && ring_doze_word(&c->rx, out);
}

static bool cable_unread(struct env_path *path)
{
	struct cable *c = cable_of(path);

	return !ring_tx_all_read(&c->tx) && ring_tx_refresh(&c->tx) &&
	       !ring_tx_all_read(&c->tx);
}

static uint64_t cable_turns(struct env_path *path)
{
	return bell_peer_turns(&cable_of(path)->peer);
}

enum env_peer cable_peer(const struct cable *c, uint64_t since_turns,
			 bool has_read)
{
	if (c->doomed || c->tx.broken)
		return ENV_PEER_RUNS;
	/* Who has not introduced itself yet lives, as its socket says. */
	if (!c->peer.page || since_turns == 0)
		return ENV_PEER_STALLED;
	return bell_had_time(&c->peer, since_turns, has_read)
		       ? ENV_PEER_RUNS
		       : ENV_PEER_STALLED;
}

static enum env_peer cable_path_peer(struct env_path *path,
				     uint64_t since_turns)
{
	return cable_unread(path)
		       ? ENV_PEER_STALLED
		       : cable_peer(cable_of(path), since_turns, true);
}

static void cable_nudge(struct env_path *path, uint64_t now_ns)
{
	struct cable *c = cable_of(path);

	if (!c->peer.page || !cable_unread(path) ||
	    !ring_nudge_is_due(&c->nudge, &c->tx, now_ns))
		return;
	path->host->stats->nudges_sent++;
	bell_send(c->sock);
}

static bool cable_is_at(struct env_path *path, uint32_t place)
{
	return bell_is_at(&cable_of(path)->peer, place);
}

static const struct env_direct *cable_direct_find(struct env_path *path,
						  uint32_t local_qpn,
						  uint32_t remote_qpn,
						  uint32_t rkey)
{
	return direct_find(cable_of(path), local_qpn, remote_qpn, rkey);
}

/* There is one way only, so nothing to spread over; and connections with equal
 * headers share the NIC's stamps. */
static uint16_t cable_src_port(struct env_path *path)
{
	return WIRE_UDP_PORT;
}

static const struct port_ops cable_port = {
	.src_port = cable_src_port,
	.tx_begin = cable_tx_begin,
	.tx_end = cable_tx_end,
	.tx_begin_exact = cable_tx_begin_exact,
	.from = cable_path_from,
	.poll = cable_poll,
	.ready = cable_ready,
	.doze = cable_doze,
	.nudge = cable_nudge,
	.is_at = cable_is_at,
	.turns = cable_turns,
	.peer = cable_path_peer,
	.direct_find = cable_direct_find,
};

/* ---- a cable whose peer is gone ----------------------------------------- */

static uint8_t *down_tx_begin(struct env_path *path, size_t max_bytes)
{
	return path->host->scratch;
}

static void down_tx_end(struct env_path *path, size_t len_bytes)
{
}

static void down_unused(struct env_path *path)
{
	cable_free(cable_of(path));
}

static const struct port_ops down_port = {
	.tx_begin = down_tx_begin,
	.tx_end = down_tx_end,
	.unused = down_unused,
};

/* ---- life --------------------------------------------------------------- */

static struct cable *cable_new(struct os_host *h, int sock, bool connector)
{
	struct cable *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->path = (struct env_path){.port = &cable_port, .host = h};
	c->sock = sock;
	c->connector = connector;
	c->state = connector ? CABLE_WAITING : CABLE_PENDING;
	c->next = h->cables;
	h->cables = c;
	return c;
}

static void unlink_cable(struct cable *c)
{
	struct cable **p = &c->path.host->cables;

	while (*p != c)
		p = &(*p)->next;
	*p = c->next;
}

void cable_free(struct cable *c)
{
	struct os_host *h = c->path.host;

	unlink_cable(c);
	if (c->slot && h->by_slot[c->slot] == c)
		h->by_slot[c->slot] = NULL;
	direct_table_release(c);
	grant_handed_release(c);
	bell_peer_release(&c->peer);
	pages_free(c->shared, c->shared_bytes);
	if (c->sock >= 0)
		close(c->sock);
	free(c);
}

static int watch(struct os_host *h, struct cable *c)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};

	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, c->sock, &ev) < 0)
		return -errno;
	return 0;
}

int cable_connect(struct os_host *h, int sock, uint32_t slot,
		  struct cable **out)
{
	struct cable *c;
	struct ucred cred;
	int err;

	if (h->polled_count == ARRAY_LEN(h->polled)) {
		close(sock);
		return -EMFILE;
	}
	err = cable_check_peer(sock, &h->trust, &cred);
	if (err) {
		h->stats->refused_peer++;
		close(sock);
		return err;
	}
	c = cable_new(h, sock, true);
	if (!c) {
		close(sock);
		return -ENOMEM;
	}
	err = cable_hello_send(c);
	if (!err)
		err = watch(h, c);
	if (err) {
		cable_free(c);
		return err;
	}
	c->slot = slot;
	c->uid = cred.uid;
	c->pid = cred.pid;
	if (slot)
		h->by_slot[slot] = c;
	host_poll_add(h, &c->path);
	h->stats->connects++;
	*out = c;
	return 0;
}

int cable_open(struct os_host *h, uint32_t slot, struct cable **out)
{
	struct cable *c = h->by_slot[slot];
	int sock, err;

	if (!c) {
		/* Maybe it called us already. */
		cable_accept_all(h);
		c = h->by_slot[slot];
	}
	if (c && !c->doomed) {
		*out = c;
		return 0;
	}
	if (h->polled_count == ARRAY_LEN(h->polled))
		return -EMFILE;
	err = slot_connect(&h->sockets, h->cfg.address, slot, &sock);
	return err ? err : cable_connect(h, sock, slot, out);
}

/* The introduction came: the cable carries frames from here on. */
static int become_up(struct cable *c)
{
	struct os_host *h = c->path.host;

	if (c->state == CABLE_WAITING) {
		c->state = CABLE_UP;
		return 0;
	}
	if (h->polled_count == ARRAY_LEN(h->polled))
		return -EMFILE;
	h->pending_count--;
	c->state = CABLE_UP;
	/* Two that called each other at once have two cables: each sends over
	 * its own and reads both. */
	if (c->slot && !h->by_slot[c->slot])
		h->by_slot[c->slot] = c;
	host_poll_add(h, &c->path);
	h->stats->accepts++;
	return 0;
}

static int handle(struct cable *c, const struct cable_msg *msg,
		  struct cable_fds *fds)
{
	int err;

	switch ((enum cable_msg_type)msg->type) {
	case CABLE_HELLO:
		if (c->state != CABLE_PENDING)
			return -EBADMSG;
		err = cable_hello_receive(c, msg, fds);
		return err ? err : become_up(c);
	case CABLE_WELCOME:
		if (c->state != CABLE_WAITING)
			return -EBADMSG;
		err = cable_welcome_receive(c, msg, fds);
		return err ? err : become_up(c);
	case CABLE_MAP_REQ:
		return c->state == CABLE_UP ? grant_request(c, msg) : -EBADMSG;
	case CABLE_MAP_REP:
		return c->state == CABLE_UP ? direct_reply(c, msg, fds)
					    : -EBADMSG;
	case CABLE_RING:
		c->path.host->nic_thread.rung = true;
		return c->state == CABLE_UP ? 0 : -EBADMSG;
	case CABLE_REFUSE:
		return -ECONNREFUSED;
	}
	return -EBADMSG;
}

/* The messages that are there; an error ends the cable. A peer that sends
 * without end is heard again in the next round. */
static int receive(struct cable *c)
{
	struct os_host *h = c->path.host;

	for (unsigned i = 0; i < OS_MESSAGE_BATCH; i++) {
		struct cable_msg msg;
		struct cable_fds fds;
		int err = cable_msg_recv(c->sock, &msg, &fds);

		if (err == -EAGAIN)
			return 0;
		if (err == -EPROTONOSUPPORT)
			cable_refuse_version(c, &msg);
		if (err)
			return err;
		err = handle(c, &msg, &fds);
		cable_fds_close(&fds);
		if (err) {
			log_warn_limited(&h->log_limit, host_now(h), "os",
					 "cable to slot %u closed: %s", c->slot,
					 error_text(err));
			return err;
		}
	}
	return 0;
}

/* Whether there is room for one more that has not introduced itself; one user
 * of the rack must not take the room of all. */
static bool may_wait(const struct os_host *h, uid_t uid)
{
	unsigned n = 0;

	if (h->pending_count >= OS_PENDING_MAX)
		return false;
	if (uid == geteuid() || uid == 0 || !h->pending_count)
		return true;
	for (const struct cable *c = h->cables; c; c = c->next)
		n += c->state == CABLE_PENDING && c->uid == uid;
	return n < OS_PENDING_OTHER;
}

static struct cable *accept_one(struct os_host *h, int sock)
{
	struct cable *c = NULL;
	struct ucred cred;

	/* A NIC at a switch has no other way, for what passes it by is what
	 * its programs do not see. The switch itself comes to see who listens
	 * here, and says nothing. */
	if (h->uplink) {
		uint8_t byte;

		if (recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
			h->stats->refused_hello++;
	} else if (h->polled_count == ARRAY_LEN(h->polled)) {
		h->stats->refused_hello++;
	} else if (cable_check_peer(sock, &h->trust, &cred)) {
		h->stats->refused_peer++;
	} else if (!may_wait(h, cred.uid)) {
		h->stats->refused_hello++;
	} else {
		c = cable_new(h, sock, false);
	}
	if (!c) {
		close(sock);
		return NULL;
	}
	c->uid = cred.uid;
	c->pid = cred.pid;
	c->since_ns = host_now(h);
	h->pending_count++;
	return c;
}

void cable_accept_all(struct os_host *h)
{
	lock_assert_held(&h->base.lock);
	for (unsigned i = 0; i < OS_BACKLOG; i++) {
		struct cable *c;
		int sock = accept4(h->listen_fd, NULL, NULL,
				   SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (sock < 0)
			return;
		c = accept_one(h, sock);
		/* Its introduction is usually here already. */
		if (c && (watch(h, c) || receive(c)))
			doom(c);
	}
}

void cable_event(struct cable *c)
{
	if (receive(c))
		doom(c);
}

/* What the peer wrote before it died still counts. One lap is all there is. */
static void drain(struct cable *c)
{
	if (c->rx.data && c->state == CABLE_UP)
		(void)cable_poll(&c->path, c->rx.size_bytes / RING_UNIT);
}

static void cable_down(struct cable *c)
{
	struct os_host *h = c->path.host;

	ASSERT(c->state != CABLE_DOWN);
	c->path.users++; /* ours, while the NIC lets go */
	drain(c);
	/* Nobody could wait for this peer later. */
	if (c->has_reach)
		reach_revoke(h);
	if (c->state == CABLE_PENDING)
		h->pending_count--;
	else
		host_poll_remove(h, &c->path);
	if (c->tx.broken || c->rx.broken)
		h->stats->broken_rings++;
	else if (c->state == CABLE_UP)
		h->stats->hangups++;
	if (c->slot && h->by_slot[c->slot] == c)
		h->by_slot[c->slot] = NULL;
	c->state = CABLE_DOWN;
	c->path.port = &down_port;
	close(c->sock); /* leaves the epoll set by itself */
	c->sock = -1;
	nic_path_down(h->base.nic, &c->path);
	if (--c->path.users == 0)
		cable_free(c);
}

static struct cable *find_doomed(struct os_host *h)
{
	for (struct cable *c = h->cables; c; c = c->next)
		if (c->doomed && c->state != CABLE_DOWN)
			return c;
	return NULL;
}

/* Who connects and then says nothing must not be waited for. */
static void doom_silent(struct os_host *h)
{
	uint64_t now_ns = host_now(h);

	for (struct cable *c = h->cables; c; c = c->next) {
		if (c->state != CABLE_PENDING || c->doomed ||
		    now_ns - c->since_ns < OS_HELLO_NS)
			continue;
		h->stats->refused_silent++;
		doom(c);
	}
}

void cable_reap(struct os_host *h)
{
	struct cable *c;

	if (UNLIKELY(h->pending_count))
		doom_silent(h);
	while ((c = find_doomed(h))) {
		if (c->tx.broken || c->rx.broken)
			log_warn_limited(&h->log_limit, host_now(h), "os",
					 "cable to slot %u closed: impossible "
					 "ring contents",
					 c->slot);
		cable_down(c);
	}
}
