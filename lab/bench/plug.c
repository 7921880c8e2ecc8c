/* SPDX-License-Identifier: Apache-2.0 */
/* A cable's connector for frames alone; see os/cable_hello.c for the NIC's. */
#include "plug.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "os/cable.h"
#include "os/pages.h"
#include "os/slot.h"

enum {
	WELCOME_MS = 1000,
};

struct plug {
	int sock;
	struct rack_sockets sockets;
	uint8_t ip[4];
	uint32_t slot;
	int slot_fd;	  /* -1: none */
	struct bell bell; /* never asleep */
	struct bell_peer peer;
	uint8_t *shared;
	size_t shared_bytes;
	struct ring_tx tx;
	struct ring_rx rx;
};

static int say_hello(struct plug *p, const uint8_t ip[16])
{
	struct cable_msg msg;
	struct ring_ctl *ctl;
	int fds[2];
	int err;

	p->shared_bytes = cable_shared_bytes(OS_RING_BYTES);
	fds[0] = pages_memfd("aquifer-plug", p->shared_bytes);
	if (fds[0] < 0)
		return fds[0];
	err = pages_seal_size(fds[0]);
	if (!err) {
		p->shared = pages_map(fds[0], p->shared_bytes, true);
		err = p->shared ? 0 : -errno;
	}
	if (!err) {
		uint8_t *ring = p->shared + CABLE_RINGS_AT;

		ctl = (struct ring_ctl *)(void *)p->shared;
		ring_tx_init(&p->tx, &ctl[0], ring, OS_RING_BYTES);
		ring_rx_init(&p->rx, &ctl[1], ring + OS_RING_BYTES,
			     OS_RING_BYTES);
		p->tx.exchange = true;
		cable_msg_init(&msg, CABLE_HELLO);
		msg.hello = (struct cable_hello){
			.slot = p->slot,
			.ring_bytes = OS_RING_BYTES,
			.flags = p->bell.has_barrier ? CABLE_HAS_BARRIER : 0,
		};
		memcpy(msg.hello.ip, p->ip, sizeof(p->ip));
		memcpy(msg.hello.gids[1], ip, 16);
		fds[1] = p->bell.page_fd;
		err = cable_msg_send(p->sock, &msg, fds, 2);
	}
	close(fds[0]);
	return err;
}

static int await_welcome(struct plug *p)
{
	struct pollfd fd = {.fd = p->sock, .events = POLLIN};
	struct cable_msg msg;
	struct cable_fds fds;
	int err;

	if (poll(&fd, 1, WELCOME_MS) != 1)
		return error_set(-ETIMEDOUT, "the switch does not answer");
	err = cable_msg_recv(p->sock, &msg, &fds);
	if (err)
		return err;
	if (msg.type != CABLE_WELCOME || fds.count != 1)
		err = -EBADMSG;
	else
		err = bell_peer_init(&p->peer, fds.fd[0]);
	cable_fds_close(&fds);
	if (err)
		return err;
	p->tx.exchange =
		!(p->bell.has_barrier && (msg.hello.flags & CABLE_HAS_BARRIER));
	return 0;
}

static int connect_switch(struct plug *p, const char *rack, const char *name)
{
	struct trust trust;
	struct ucred cred;
	int err = trust_load(&trust);

	if (!err)
		err = rack_sockets_open(rack, &p->sockets);
	if (err)
		return err;
	err = slot_take(&p->sockets, p->ip, p->slot, &p->slot_fd);
	if (err)
		return error_set(err, "slot %u of rack %s cannot be taken",
				 p->slot, rack);
	err = slot_switch_connect(&p->sockets, name, &p->sock);
	if (err)
		return error_set(err, "no switch '%s' in rack %s", name, rack);
	err = cable_check_peer(p->sock, &trust, &cred);
	return err ? error_set(err,
			       "switch '%s' is user %u's, who is not "
			       "trusted (rack.user)",
			       name, (unsigned)cred.uid)
		   : 0;
}

int plug_open(const char *rack, const char *name, uint32_t slot,
	      const uint8_t ip[16], struct plug **out)
{
	struct plug *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->sock = p->slot_fd = p->sockets.dir_fd = -1;
	p->slot = slot;
	memcpy(p->ip, ip + 12, sizeof(p->ip));
	err = bell_init(&p->bell);
	if (err) {
		free(p);
		return err;
	}
	err = connect_switch(p, rack, name);
	if (!err)
		err = say_hello(p, ip);
	if (!err)
		err = await_welcome(p);
	if (err) {
		plug_close(p);
		return err;
	}
	*out = p;
	return 0;
}

void plug_close(struct plug *p)
{
	if (!p)
		return;
	bell_peer_release(&p->peer);
	if (p->shared)
		pages_free(p->shared, p->shared_bytes);
	if (p->sock >= 0)
		close(p->sock);
	if (p->slot_fd >= 0)
		slot_release(&p->sockets, p->ip, p->slot, p->slot_fd);
	rack_sockets_close(&p->sockets);
	bell_release(&p->bell);
	free(p);
}

HOT bool plug_tx(struct plug *p, const uint8_t *frame, size_t len_bytes)
{
	uint8_t *to = ring_reserve(&p->tx, len_bytes);

	if (!to)
		return false;
	ring_copy(to, frame, len_bytes);
	ring_publish(&p->tx, len_bytes);
	return true;
}

void plug_flush(struct plug *p)
{
	(void)bell_ring(&p->peer, p->sock);
}

HOT const uint8_t *plug_rx(struct plug *p, size_t *len_bytes)
{
	return ring_peek(&p->rx, len_bytes);
}

HOT void plug_next(struct plug *p)
{
	ring_release(&p->rx);
}

void plug_done(struct plug *p)
{
	ring_rx_publish(&p->rx);
}
