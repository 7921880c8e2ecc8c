/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a NIC whose cable leads to a switch process (nic.port =
 * switch:NAME): one cable for all destinations, and no direct mappings, because
 * they would pass the switch by. When the switch ends, frames are lost as on
 * any network, and the cable is made anew as soon as a switch of that name is
 * there again; queue pairs notice only lost packets.
 */
#include "uplink.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "cable.h"
#include "slot.h"
#include "wire/wire.h"

enum {
	/* Of one queue pair. Rings have a megabyte, and several queue pairs
	 * share the way to one NIC. */
	UPLINK_WINDOW_BYTES = 256 << 10,
};

#define UPLINK_RETRY_NS 20000000ull

static struct uplink *uplink_of(struct env_path *path)
{
	return container_of(path, struct uplink, path);
}

static int connect_cable(struct uplink *u)
{
	struct os_host *h = u->path.host;
	int sock, err;

	u->retry_ns = host_now(h) + UPLINK_RETRY_NS;
	err = slot_switch_connect(&h->sockets, h->cfg.interface, &sock);
	if (!err)
		err = cable_connect(h, sock, 0, &u->cable);
	if (!err)
		u->cable->path.users++;
	return err;
}

/* The cable, or NULL: it is down and cannot be made yet. */
static struct cable *current(struct uplink *u)
{
	struct os_host *h = u->path.host;

	if (LIKELY(u->cable && u->cable->state != CABLE_DOWN))
		return u->cable;
	if (u->cable) {
		struct env_path *old = &u->cable->path;

		u->cable = NULL;
		if (--old->users == 0 && old->port->unused)
			old->port->unused(old);
	}
	if (host_now(h) >= u->retry_ns && connect_cable(u) == 0)
		return u->cable;
	return NULL;
}

static uint8_t *uplink_tx_begin(struct env_path *path, size_t max_bytes)
{
	struct cable *c = current(uplink_of(path));

	/* NULL from the ring: it is full, the NIC tries again. */
	return c ? c->path.port->tx_begin(&c->path, max_bytes)
		 : path->host->scratch;
}

static uint8_t *uplink_tx_begin_exact(struct env_path *path, size_t len_bytes)
{
	struct cable *c = current(uplink_of(path));

	return c ? c->path.port->tx_begin_exact(&c->path, len_bytes)
		 : path->host->scratch;
}

static void uplink_tx_end(struct env_path *path, size_t len_bytes)
{
	struct uplink *u = uplink_of(path);

	if (u->cable && u->cable->state != CABLE_DOWN)
		u->cable->path.port->tx_end(&u->cable->path, len_bytes);
}

/* The cable is polled by itself; here a lost one is made anew. The NIC thread
 * comes by at least every OS_SLEEP_MAX_NS. */
static unsigned uplink_poll(struct env_path *path, unsigned budget)
{
	(void)current(uplink_of(path));
	return 0;
}

static bool uplink_ready(struct env_path *path)
{
	return false;
}

static uint64_t uplink_turns(struct env_path *path)
{
	struct uplink *u = uplink_of(path);

	return u->cable ? bell_peer_turns(&u->cable->peer) : 0;
}

/* Whether the switch does not run (decision 6). Whether the NIC behind it does,
 * nobody can tell. */
static enum env_peer uplink_peer(struct env_path *path, uint64_t since_turns)
{
	struct uplink *u = uplink_of(path);
	bool stalled =
		u->cable && u->cable->state != CABLE_DOWN &&
		u->cable->path.port->peer(&u->cable->path, since_turns) ==
			ENV_PEER_STALLED;

	return stalled ? ENV_PEER_STALLED : ENV_PEER_UNKNOWN;
}

/* As on a cable: with equal headers connections share the NIC's stamps. Who
 * wants the ways behind the switch spread has NICs there. */
static uint16_t uplink_src_port(struct env_path *path)
{
	return WIRE_UDP_PORT;
}

static uint32_t uplink_window(struct env_path *path)
{
	return UPLINK_WINDOW_BYTES;
}

static const struct port_ops uplink_port = {
	.window_bytes = uplink_window,
	.src_port = uplink_src_port,
	.tx_begin = uplink_tx_begin,
	.tx_begin_exact = uplink_tx_begin_exact,
	.tx_end = uplink_tx_end,
	.poll = uplink_poll,
	.ready = uplink_ready,
	.turns = uplink_turns,
	.peer = uplink_peer,
};

int uplink_open(struct os_host *h, struct uplink **out)
{
	struct uplink *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->path = (struct env_path){.port = &uplink_port, .host = h};
	err = connect_cable(u);
	if (err) {
		free(u);
		return error_set(err,
				 "no switch '%s' in rack %s; start it with "
				 "'aquifer switch --name %s'",
				 h->cfg.interface, h->cfg.rack,
				 h->cfg.interface);
	}
	host_poll_add(h, &u->path);
	*out = u;
	return 0;
}

void uplink_close(struct uplink *u)
{
	free(u); /* the cable is the host's */
}
