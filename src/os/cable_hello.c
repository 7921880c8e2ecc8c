/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a cable comes up. The connector makes the rings and sends them with its
 * bell; frames can go into them at once. The acceptor checks who calls and what
 * it was given, maps it and answers with its own bell. The connector then rings
 * once unconditionally, for the frames it wrote before it knew the bell.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cable.h"
#include "pages.h"

static size_t shared_size(uint32_t ring_bytes)
{
	return (size_t)CABLE_RINGS_AT + 2 * (size_t)ring_bytes;
}

/* Sets up this side's view of the shared memory. */
static void attach(struct cable *c, uint8_t *shared, uint32_t ring_bytes)
{
	struct ring_ctl *ctl = (struct ring_ctl *)(void *)shared;
	uint8_t *ring = shared + CABLE_RINGS_AT;
	uint8_t *words = shared + CABLE_WORDS_AT;
	unsigned out = c->connector ? 0 : 1;

	c->shared = shared;
	c->shared_bytes = shared_size(ring_bytes);
	ring_tx_init(&c->tx, &ctl[out], ring + (size_t)out * ring_bytes,
		     ring_bytes);
	ring_rx_init(&c->rx, &ctl[!out], ring + (size_t)!out * ring_bytes,
		     ring_bytes);
	c->tx.exchange = true; /* until the peer says it need not be */
	c->words_own = (void *)(words + (size_t)out * CABLE_WORDS_BYTES);
	c->words_peer = (void *)(words + (size_t)!out * CABLE_WORDS_BYTES);
}

static void fill_hello(const struct os_host *h, struct cable_hello *hello)
{
	hello->slot = h->slot;
	hello->ring_bytes = h->cfg.ring_bytes;
	hello->flags = h->bell.has_barrier ? CABLE_HAS_BARRIER : 0;
	memcpy(hello->ip, h->cfg.address, sizeof(hello->ip));
	memcpy(hello->gids[0], h->gid_link.ip, 16);
	memcpy(hello->gids[1], h->gid_ip.ip, 16);
}

static void learn_flags(struct cable *c, uint32_t flags)
{
	c->tx.exchange = !(c->path.host->bell.has_barrier &&
			   (flags & CABLE_HAS_BARRIER));
}

int cable_check_peer(int sock, bool *same_user)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	uid_t me = geteuid();

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid != me && cred.uid != 0 && me != 0)
		return -EACCES;
	*same_user = cred.uid == me;
	return 0;
}

int cable_hello_send(struct cable *c)
{
	struct os_host *h = c->path.host;
	size_t bytes = shared_size(h->cfg.ring_bytes);
	struct cable_msg msg;
	uint8_t *shared;
	int fds[3];
	int fd, err;

	fd = pages_memfd("aquifer-cable", bytes);
	if (fd < 0)
		return fd;
	err = pages_seal_size(fd);
	if (err)
		goto out_close;
	shared = pages_map(fd, bytes, true);
	if (!shared) {
		err = -errno;
		goto out_close;
	}
	attach(c, shared, h->cfg.ring_bytes);
	cable_msg_init(&msg, CABLE_HELLO);
	fill_hello(h, &msg.hello);
	fds[0] = fd;
	fds[1] = h->bell.page_fd;
	fds[2] = h->bell.event_fd;
	err = cable_msg_send(c->sock, &msg, fds, 3);
	/* On failure the mapping goes with the cable. */
out_close:
	close(fd);
	return err;
}

static int check_hello(const struct cable_hello *hello,
		       const struct cable_fds *fds)
{
	uint32_t r = hello->ring_bytes;

	if (fds->count != 3 || r < OS_RING_BYTES_MIN || r > OS_RING_BYTES_MAX ||
	    (r & (r - 1)) || hello->slot < OS_SLOT_FIRST ||
	    hello->slot >= OS_SLOT_COUNT)
		return -EBADMSG;
	return pages_check_sealed(fds->fd[0], shared_size(r));
}

int cable_hello_receive(struct cable *c, const struct cable_msg *msg,
			struct cable_fds *fds)
{
	struct os_host *h = c->path.host;
	struct cable_msg reply;
	uint8_t *shared;
	bool same_user;
	int out[2];
	int err;

	err = cable_check_peer(c->sock, &same_user);
	if (err) {
		h->stats->refused_peer++;
		return err;
	}
	err = check_hello(&msg->hello, fds);
	if (!err)
		err = bell_peer_init(&c->peer, fds->fd[1], fds->fd[2]);
	if (err) {
		h->stats->refused_hello++;
		return err;
	}
	fds->fd[1] = fds->fd[2] = -1; /* the bell has them */
	shared =
		pages_map(fds->fd[0], shared_size(msg->hello.ring_bytes), true);
	if (!shared)
		return -errno;
	attach(c, shared, msg->hello.ring_bytes);
	learn_flags(c, msg->hello.flags);
	/* A process of another user may say what it likes: what we send to
	 * that slot goes to whoever leased it, over a cable of our own. */
	c->slot = same_user ? msg->hello.slot : 0;
	c->same_user = same_user;

	cable_msg_init(&reply, CABLE_WELCOME);
	fill_hello(h, &reply.hello);
	out[0] = h->bell.page_fd;
	out[1] = h->bell.event_fd;
	return cable_msg_send(c->sock, &reply, out, 2);
}

int cable_welcome_receive(struct cable *c, const struct cable_msg *msg,
			  struct cable_fds *fds)
{
	int err;

	if (fds->count != 2 || msg->hello.slot != c->slot)
		return -EBADMSG;
	err = bell_peer_init(&c->peer, fds->fd[0], fds->fd[1]);
	if (err)
		return err;
	fds->count = 0; /* the bell has them */
	learn_flags(c, msg->hello.flags);
	bell_kick(c->peer.event_fd);
	return 0;
}

void cable_refuse_version(struct cable *c, const struct cable_msg *msg)
{
	struct os_host *h = c->path.host;
	struct cable_msg reply;

	h->stats->refused_version++;
	log_warn_limited(&h->log_limit, host_now(h), "os",
			 "cable refused: the peer speaks version %u.%u, "
			 "this process %u.%u; run the same release in both",
			 msg->major, msg->minor, CABLE_MAJOR, CABLE_MINOR);
	if (msg->type == CABLE_REFUSE)
		return;
	cable_msg_init(&reply, CABLE_REFUSE);
	/* It may be gone already; then there is nobody to tell. */
	(void)!cable_msg_send(c->sock, &reply, NULL, 0);
}
