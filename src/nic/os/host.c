/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a NIC host. Its env is in host_env.c, its NIC thread in
 * nic_thread.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "cable.h"
#include "fault_guard.h"
#include "os_priv.h"
#include "pcap.h"
#include "raw.h"
#include "slot.h"
#include "udp.h"
#include "uplink.h"

/* ---- addresses ---------------------------------------------------------- */

/* All NICs of one host have one locally administered MAC. */
static void make_mac(const uint8_t a[4], uint8_t mac[6])
{
	const uint8_t m[6] = {0x02, 0xa9, a[0], a[1], a[2], a[3]};

	memcpy(mac, m, sizeof(m));
}

/* EUI-64 of the MAC. */
static void make_eui(const uint8_t mac[6], uint8_t eui[8])
{
	const uint8_t e[8] = {mac[0] ^ 0x02, mac[1], mac[2], 0xff,
			      0xfe,	     mac[3], mac[4], mac[5]};

	memcpy(eui, e, sizeof(e));
}

uint64_t host_guid(const uint8_t address[4])
{
	uint8_t mac[6], eui[8];
	uint64_t guid = 0;

	make_mac(address, mac);
	make_eui(mac, eui);
	for (unsigned i = 0; i < sizeof(eui); i++)
		guid = guid << 8 | eui[i];
	return guid;
}

void host_gids(const uint8_t a[4], struct env_addr *link, struct env_addr *ip)
{
	*link = (struct env_addr){.ip = {0xfe, 0x80}};
	*ip = (struct env_addr){
		.ip = {[10] = 0xff, 0xff, a[0], a[1], a[2], a[3]},
	};
	make_mac(a, link->mac);
	make_mac(a, ip->mac);
	make_eui(link->mac, link->ip + 8);
}

static void make_gids(struct os_host *h)
{
	static const uint8_t none[16];

	host_gids(h->cfg.address, &h->gid_link, &h->gid_ip);
	if (memcmp(h->cfg.address6, none, 16))
		memcpy(h->gid_ip.ip, h->cfg.address6, 16);
}

/* ---- open --------------------------------------------------------------- */

void os_config_init(struct os_config *cfg)
{
	*cfg = (struct os_config){
		.rack = "default",
		.address = {127, 0, 0, 1},
		.ring_bytes = OS_RING_BYTES,
		.idle_turns = OS_IDLE_TURNS,
		.watch_unmap = true,
	};
}

static int check_config(struct os_config *cfg)
{
	uint32_t r = cfg->ring_bytes ? cfg->ring_bytes : OS_RING_BYTES;

	if (r < OS_RING_BYTES_MIN || r > OS_RING_BYTES_MAX || (r & (r - 1)))
		return error_set(-EINVAL,
				 "nic.ring_bytes is %u: it must be a power of "
				 "two from %d to %d",
				 r, OS_RING_BYTES_MIN, OS_RING_BYTES_MAX);
	if (!memchr(cfg->rack, '\0', sizeof(cfg->rack)) || !cfg->rack[0] ||
	    strchr(cfg->rack, '/'))
		return error_set(-EINVAL,
				 "the rack's name must have 1 to %d "
				 "characters and no slash",
				 OS_RACK_NAME_MAX - 1);
	cfg->ring_bytes = r;
	return 0;
}

static int watch_fd(struct os_host *h, int fd, void *mark)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = mark};

	return epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static int open_nic(struct os_host *h)
{
	struct nic_config cfg = {
		.slot = h->slot,
		.own_is_near = h->cfg.port != OS_PORT_UDP &&
			       h->cfg.port != OS_PORT_SWITCH,
		.gid_count = 2,
		.gids = {h->gid_link, h->gid_ip},
		.node_guid = host_guid(h->cfg.address),
		.mtu = h->cfg.mtu,
		.counters = h->cfg.nic_counters,
	};

	return nic_create(&h->env, &cfg, &h->base.nic);
}

static bool is_loopback(const struct os_host *h)
{
	return wire_is_ipv4(h->gid_ip.ip) && h->cfg.address[0] == 127;
}

/*
 * On an address that others can reach, datagrams may come before we know of
 * anybody; on loopback the port waits for its first path.
 */
static int open_port(struct os_host *h)
{
	int err = 0;

	if (h->cfg.port == OS_PORT_RAW) {
		err = raw_open(h, &h->raw);
		if (!err)
			nic_lower_mtu(h->base.nic,
				      udp_payload_of_mtu(h->raw->mtu_bytes));
		return err;
	}
	if (h->cfg.port == OS_PORT_SWITCH)
		return uplink_open(h, &h->uplink);
	if (h->cfg.port == OS_PORT_UDP ||
	    (h->cfg.port == OS_PORT_AUTO && !is_loopback(h)))
		err = host_udp_open(h);
	/* Where nothing leads to others, or root has the port, cables will do.
	 * But a port that a stranger has taken is no network: what comes for
	 * us goes to them, and we would only seem to be up. */
	if (h->cfg.port == OS_PORT_AUTO && err != -EACCES)
		err = 0;
	return err;
}

int host_udp_open(struct os_host *h)
{
	int err;

	if (h->udp || h->udp_tried)
		return h->udp ? 0 : -ENETUNREACH;
	h->udp_tried = true;
	err = udp_open(h, &h->udp);
	if (err) {
		log_warn("os", "no way to other hosts: %s",
			 error_last_code() == err ? error_last()
						  : error_text(err));
		return err;
	}
	if (h->udp->mtu_bytes)
		nic_lower_mtu(h->base.nic,
			      udp_payload_of_mtu(h->udp->mtu_bytes));
	return 0;
}

static int open_sockets(struct os_host *h)
{
	uint32_t start;
	int err;

	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (h->epoll_fd < 0)
		return -errno;
	h->nic_thread.kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h->nic_thread.kick_fd < 0)
		return -errno;
	entropy_get(&h->entropy, &start, sizeof(start));
	err = trust_load(&h->trust);
	if (!err)
		err = rack_sockets_open(h->cfg.rack, &h->sockets);
	if (!err)
		err = slot_lease(&h->sockets, h->cfg.address, start, &h->slot,
				 &h->listen_fd);
	if (err == -EUSERS)
		return error_set(err, "all %d slots of rack %s are taken",
				 OS_SLOT_COUNT - OS_SLOT_FIRST, h->cfg.rack);
	if (!err)
		err = watch_fd(h, h->listen_fd, &h->listen_fd);
	if (!err)
		err = watch_fd(h, h->nic_thread.kick_fd, &h->nic_thread);
	return err;
}

/* Gives everything back but the NIC and its thread. */
static void host_free(struct os_host *h)
{
	while (h->cables)
		cable_free(h->cables);
	loop_destroy(h->loop);
	udp_close(h->udp);
	raw_close(h->raw);
	uplink_close(h->uplink);
	grant_table_release(h);
	pcap_destroy(h->pcap);
	if (h->listen_fd >= 0)
		slot_release(&h->sockets, h->cfg.address, h->slot,
			     h->listen_fd);
	rack_sockets_close(&h->sockets);
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	if (h->nic_thread.kick_fd >= 0)
		close(h->nic_thread.kick_fd);
	if (h->bell.page)
		bell_release(&h->bell);
	free(h->scratch);
	free(h);
}

static void host_close(struct nic_host *host)
{
	struct os_host *h = host_of(host);
	void (*closed)(unsigned) = h->closed;
	unsigned place = h->place;

	if (h->forgotten || (h->put && !h->put(place)))
		return;
	nic_thread_stop(h);
	unmap_release(&h->unmap);
	nic_destroy(h->base.nic);
	host_free(h);
	if (closed)
		closed(place);
}

static const struct nic_host_ops host_ops = {
	.drive = nic_thread_drive,
	.leave = nic_thread_leave,
	.doze = nic_thread_doze_driver,
	.grant_alloc = grant_alloc,
	.grant_free = grant_free,
	.grant_used = grant_used,
	.grant_private = grant_private,
	.memory_watch = unmap_watch,
	.memory_unwatch = unmap_unwatch,
	.close = host_close,
};

static struct os_host *host_new(const struct os_config *cfg)
{
	struct os_host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->scratch = malloc(OS_FRAME_MAX);
	if (!h->scratch) {
		free(h);
		return NULL;
	}
	h->cfg = *cfg;
	h->stats = cfg->stats ? cfg->stats : &h->own_stats;
	h->base.ops = &host_ops;
	h->base.env = &h->env;
	h->env.ops = &host_env_ops;
	h->void_path = (struct env_path){.port = &void_port, .host = h};
	h->epoll_fd = h->listen_fd = h->nic_thread.kick_fd = -1;
	h->sockets.dir_fd = -1;
	unmap_init(&h->unmap);
	lock_init(&h->base.lock);
	return h;
}

int os_host_open(const struct os_config *cfg, struct nic_host **out)
{
	struct os_config checked = *cfg;
	struct os_host *h;
	int err = check_config(&checked);

	if (err)
		return err;
	err = fault_guard_install();
	if (err)
		return err;
	h = host_new(&checked);
	if (!h)
		return -ENOMEM;
	os_clock_init(&h->clock);
	make_gids(h);
	err = bell_init(&h->bell);
	if (err) {
		h->bell.page = NULL;
		goto err_free;
	}
	if (cfg->pcap_path && (err = pcap_create(cfg->pcap_path, &h->pcap))) {
		error_set(err, "cannot capture into %s", cfg->pcap_path);
		goto err_free;
	}
	err = open_sockets(h);
	if (err)
		goto err_free;
	err = open_nic(h);
	if (err)
		goto err_free;
	err = open_port(h);
	if (err)
		goto err_nic;
	err = nic_thread_start(h);
	if (err)
		goto err_nic;
	*out = &h->base;
	return 0;

err_nic:
	nic_destroy(h->base.nic);
err_free:
	host_free(h);
	return err;
}

void os_host_stats(struct nic_host *host, struct os_stats *out)
{
	lock_take(&host->lock);
	*out = *host_of(host)->stats;
	lock_drop(&host->lock);
}

/* ---- fork --------------------------------------------------------------- */

static void forget_drive(struct nic_host *host)
{
}

static const struct nic_host_ops forgotten_ops = {
	.drive = forget_drive,
	.leave = forget_drive,
	.grant_alloc = grant_alloc,
	.grant_free = grant_free,
	.grant_used = grant_used,
	.grant_private = grant_private,
	.close = host_close,
};

void host_forget(struct os_host *h)
{
	/* No NIC thread runs here. The parent's cables and slot must end with
	 * the parent: nothing may be held open, nothing shared be written. */
	h->forgotten = true;
	h->base.ops = &forgotten_ops;
	lock_init(&h->base.lock);
	unmap_forget(&h->unmap);
	for (struct cable *c = h->cables; c; c = c->next) {
		c->path.port = &void_port;
		bell_peer_release(&c->peer);
		if (c->sock >= 0)
			close(c->sock);
		c->sock = -1;
	}
	if (h->loop) {
		struct env_path *unused;

		/* Its bell is the parent's. */
		if (loop_open(h, &unused) == 0)
			unused->port = &void_port;
	}
	if (h->udp) {
		for (struct udp_path *u = h->udp->paths; u; u = u->next) {
			u->path.port = &void_port;
			udp_lane_close(h->udp, &u->lane);
		}
		udp_steer_stop(h->udp);
		close(h->udp->fd);
		h->udp->fd = -1;
		h->udp->tx.count = h->udp->tx.done = 0;
	}
	if (h->raw) {
		for (struct raw_path *r = h->raw->paths; r; r = r->next)
			r->path.port = &void_port;
		close(h->raw->fd);
		close(h->raw->sink_fd);
		h->raw->fd = h->raw->sink_fd = -1;
	}
	if (h->uplink)
		h->uplink->path.port = &void_port;
	pcap_destroy(h->pcap);
	h->pcap = NULL;
	h->polled_count = 0;
	h->handed_count = 0; /* taking back is the parent's */
	close(h->listen_fd); /* its name stays the parent's */
	rack_sockets_close(&h->sockets);
	close(h->epoll_fd);
	close(h->nic_thread.kick_fd);
	close(h->bell.page_fd);
	h->listen_fd = h->epoll_fd = -1;
	h->nic_thread.kick_fd = h->bell.page_fd = -1;
}
