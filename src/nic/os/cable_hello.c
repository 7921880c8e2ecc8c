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
#include "slot.h"

/* Sets up this side's view of the shared memory. */
static void attach(struct cable *c, uint8_t *shared, uint32_t ring_bytes)
{
	struct ring_ctl *ctl = (struct ring_ctl *)(void *)shared;
	uint8_t *ring = shared + CABLE_RINGS_AT;
	uint8_t *words = shared + CABLE_WORDS_AT;
	unsigned out = c->connector ? 0 : 1;

	c->shared = shared;
	c->shared_bytes = cable_shared_bytes(ring_bytes);
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

int cable_check_peer(int sock, const struct trust *trust, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, cred, &len) < 0)
		return -errno;
	return trust_peer(trust, cred->uid) ? 0 : -EACCES;
}

int cable_hello_send(struct cable *c)
{
	struct os_host *h = c->path.host;
	size_t bytes = cable_shared_bytes(h->cfg.ring_bytes);
	struct cable_msg msg;
	uint8_t *shared;
	int fds[2];
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
	err = cable_msg_send(c->sock, &msg, fds, 2);
	/* On failure the mapping goes with the cable. */
out_close:
	close(fd);
	return err;
}

int cable_hello_check(const struct cable_hello *hello,
		      const struct cable_fds *fds)
{
	uint32_t r = hello->ring_bytes;

	if (fds->count != 2 || r < OS_RING_BYTES_MIN || r > OS_RING_BYTES_MAX ||
	    (r & (r - 1)) || hello->slot < OS_SLOT_FIRST ||
	    hello->slot >= OS_SLOT_COUNT)
		return -EBADMSG;
	return pages_check_sealed(fds->fd[0], cable_shared_bytes(r));
}

/* What we send to a slot goes to the cable that has it, and what comes from
 * there is taken for its NIC's: it must be the caller's. */
static int check_slot(struct cable *c, uint32_t slot)
{
	struct os_host *h = c->path.host;
	struct ucred who = {.pid = c->pid, .uid = c->uid};

	if (slot_is_of(&h->sockets, h->cfg.address, slot, &who))
		return 0;
	h->stats->refused_slot++;
	return -EACCES;
}

int cable_hello_receive(struct cable *c, const struct cable_msg *msg,
			struct cable_fds *fds)
{
	struct os_host *h = c->path.host;
	struct cable_msg reply;
	uint8_t *shared;
	int err;

	err = cable_hello_check(&msg->hello, fds);
	if (!err && memcmp(msg->hello.ip, h->cfg.address, 4))
		err = -EBADMSG;
	if (!err)
		err = check_slot(c, msg->hello.slot);
	if (!err)
		err = bell_peer_init(&c->peer, fds->fd[1]);
	if (err) {
		h->stats->refused_hello++;
		return err;
	}
	shared = pages_map(fds->fd[0],
			   cable_shared_bytes(msg->hello.ring_bytes), true);
	if (!shared)
		return -errno;
	attach(c, shared, msg->hello.ring_bytes);
	learn_flags(c, msg->hello.flags);
	c->slot = msg->hello.slot;

	cable_msg_init(&reply, CABLE_WELCOME);
	fill_hello(h, &reply.hello);
	return cable_msg_send(c->sock, &reply, &h->bell.page_fd, 1);
}

int cable_welcome_receive(struct cable *c, const struct cable_msg *msg,
			  struct cable_fds *fds)
{
	int err;

	if (fds->count != 1 || msg->hello.slot != c->slot)
		return -EBADMSG;
	err = bell_peer_init(&c->peer, fds->fd[0]);
	if (err)
		return err;
	learn_flags(c, msg->hello.flags);
	bell_send(c->sock);
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
