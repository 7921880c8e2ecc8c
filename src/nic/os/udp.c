/* SPDX-License-Identifier: Apache-2.0 */
/* The UDP port's life, its paths, and when its datagrams wake the NIC. */
#include "udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cable.h"
#include "pages.h"

/* ---- paths ------------------------------------------------------------- */

static void path_unused(struct env_path *path)
{
	struct udp_path *p = container_of(path, struct udp_path, path);
	struct udp_port *u = path->host->udp;
	struct udp_path **at = &u->paths;

	udp_tx_flush(u);
	udp_tx_forget(u, p);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	udp_lane_close(u, &p->lane);
	free(p);
}

static uint16_t path_src_port(struct env_path *path)
{
	return container_of(path, struct udp_path, path)->lane.port;
}

static uint32_t path_window(struct env_path *path)
{
	return path->host->udp->window_bytes;
}

/* A peer of this very host has a bell, too: that of a cable which carries no
 * frames of this path. */
static bool is_near(const struct udp_path *p)
{
	return memcmp(p->ip, p->path.host->gid_ip.ip, 16) == 0 &&
	       p->slot >= OS_SLOT_FIRST && p->slot < OS_SLOT_COUNT;
}

static uint64_t path_turns(struct env_path *path)
{
	const struct udp_path *p = container_of(path, struct udp_path, path);
	const struct cable *c = path->host->by_slot[p->slot];

	return is_near(p) && c ? bell_peer_turns(&c->peer) : 0;
}

/* Makes that cable: only who waits in vain comes here. A process that is gone
 * has no socket any more. */
static enum env_peer path_peer(struct env_path *path, uint64_t since_turns)
{
	const struct udp_path *p = container_of(path, struct udp_path, path);
	struct cable *c;
	int err;

	if (!is_near(p))
		return ENV_PEER_UNKNOWN;
	err = cable_open(path->host, p->slot, &c);
	if (err == -ECONNREFUSED)
		return ENV_PEER_RUNS;
	return err ? ENV_PEER_UNKNOWN : cable_peer(c, since_turns, false);
}

static const struct port_ops path_port = {
	.window_bytes = path_window,
	.src_port = path_src_port,
	.turns = path_turns,
	.peer = path_peer,
	.tx_begin = udp_tx_begin,
	.tx_end = udp_tx_end,
	.unused = path_unused,
};

/*
 * The way may be narrower than our own interface. That is kept with the path,
 * and says nothing about others. The kernel has the table of what routers and
 * routes say of destinations, which it bounds and lets age.
 */
void udp_path_learn(struct udp_port *u, struct udp_path *p)
{
	uint32_t headers =
		(u->ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES) + WIRE_UDP_BYTES;
	uint32_t mtu = udp_socket_mtu(&p->to);

	p->room = mtu > headers ? mtu - headers : UINT16_MAX;
	p->room_until_ns = host_now(u->path.host) + UDP_ROOM_NS;
}

static uint32_t mix(uint32_t a, uint32_t b)
{
	return (a ^ b) * 2654435761u >> 7 ^ b;
}

static struct udp_path *path_new(struct udp_port *u, const uint8_t ip[16],
				 uint32_t slot, uint32_t number)
{
	struct udp_path *p = calloc(1, sizeof(*p));
	uint32_t hash = mix(u->path.host->slot, slot);

	if (!p)
		return NULL;
	p->path = (struct env_path){.port = &path_port, .host = u->path.host};
	memcpy(p->ip, ip, 16);
	p->slot = slot;
	p->number = number;
	udp_addr_set(&p->to, ip, WIRE_UDP_PORT);
	if (!u->ipv4)
		p->to.v6.sin6_scope_id = u->scope_id;
	for (unsigned i = 12; i < 16; i++)
		hash = mix(hash, ip[i]);
	udp_lane_open(u, &p->lane, &p->to, mix(hash, number));
	p->next = u->paths;
	u->paths = p;
	udp_path_learn(u, p);
	return p;
}

int udp_path_open(struct udp_port *u, const uint8_t ip[16], uint32_t qpn,
		  struct env_path **out)
{
	struct os_host *h = u->path.host;
	uint32_t slot = qpn >> NIC_QPN_INDEX_BITS;
	uint32_t number = mix(qpn, slot) % u->lanes_per_peer;
	struct udp_path *p;

	if (wire_is_ipv4(ip) != u->ipv4) {
		*out = &h->void_path;
		return 0;
	}
	for (p = u->paths; p; p = p->next)
		if (p->slot == slot && p->number == number &&
		    memcmp(p->ip, ip, 16) == 0)
			break;
	if (!p)
		p = path_new(u, ip, slot, number);
	if (!p)
		return -ENOMEM;
	watch_start(&u->watch);
	*out = &p->path;
	return 0;
}

/* ---- the port ------------------------------------------------------------ */

static const struct port_ops udp_port_ops = {
	.poll = udp_rx_poll,
	.ready = udp_rx_ready,
};

int udp_open(struct os_host *h, struct udp_port **out)
{
	struct udp_port *u = calloc(1, sizeof(*u));
	uint64_t seed;
	int err = -ENOMEM;

	if (!u)
		return -ENOMEM;
	u->path = (struct env_path){.port = &udp_port_ops, .host = h};
	u->fd = u->steer.fd = -1;
	u->ipv4 = wire_is_ipv4(h->gid_ip.ip);
	wire_id_table_init(&u->ids);
	entropy_get(&h->entropy, &seed, sizeof(seed));
	rng_init(&u->rng, seed);
	u->tx.arena = pages_alloc(UDP_TX_BYTES);
	u->rx.bytes = pages_alloc(UDP_HEADROOM + UDP_RX_BYTES);
	if (!u->tx.arena || !u->rx.bytes)
		goto err_close;
	err = udp_socket_open(h, u);
	if (err)
		goto err_close;
	udp_rx_init(u);
	err = watch_open(&u->watch, &u->path, u->fd);
	if (err)
		goto err_close;
	*out = u;
	return 0;

err_close:
	udp_close(u);
	return err;
}

void udp_close(struct udp_port *u)
{
	if (!u)
		return;
	while (u->paths) {
		struct udp_path *p = u->paths;

		u->paths = p->next;
		udp_lane_close(u, &p->lane);
		free(p);
	}
	udp_steer_stop(u);
	if (u->fd >= 0)
		close(u->fd);
	if (u->tx.arena)
		pages_free(u->tx.arena, UDP_TX_BYTES);
	if (u->rx.bytes)
		pages_free(u->rx.bytes, UDP_HEADROOM + UDP_RX_BYTES);
	free(u);
}
