/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers: their life, and binding, resolving and listening. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cm_priv.h"
#include "core/nic.h"
#include "wire/wire.h"

enum {
	PATH_RATE = IBV_RATE_100_GBPS,
};

#define NUMBER_MASK ((1u << WIRE_CM_ID_BITS) - 1)

/* ---- life --------------------------------------------------------------- */

static void on_timer(struct timer *t, uint64_t now_ns)
{
	struct cm_id *id = container_of(t, struct cm_id, timer);

	if (!id->peer.qpn && !id->asked && !timer_is_set(&id->ask_timer))
		cm_peer_ask(id);
	cm_conn_timeout(&id->conn, now_ns);
}

/* The low bits find the identifier, those above tell a new one from its
 * predecessor; the top is set when the device is known. */
static int choose_number(struct cm_id *id)
{
	for (uint32_t i = 0; i < CM_ID_MAX; i++) {
		uint32_t n = cm.next_number++;

		if (cm.by_number[n & (CM_ID_MAX - 1)])
			continue;
		n &= NUMBER_MASK;
		if (!n)
			continue;
		cm_conn_init(&id->conn, &cm_id_conn_ops, n);
		id->conn.probe_ns = cm.probe_ns;
		cm.by_number[n & (CM_ID_MAX - 1)] = id;
		return 0;
	}
	return -ENOMEM;
}

static uint32_t random_word(void)
{
	uint32_t v;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		v = (uint32_t)clock_mono_ns();
	return v;
}

struct cm_id *cm_id_new(struct cm_channel *channel, void *context,
			enum rdma_port_space ps)
{
	struct cm_id *id;

	if (!cm.next_number)
		cm.next_number = random_word();
	id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	if (choose_number(id)) {
		free(id);
		return NULL;
	}
	id->pub.channel = &channel->pub;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD
								   : IBV_QPT_RC;
	id->lease_fd = -1;
	id->ack_timeout = CM_ACK_TIMEOUT;
	/* Now: applications ask for it before they accept. */
	id->psn = random_word() & WIRE_PSN_MASK;
	timer_init(&id->timer, on_timer);
	list_append(&cm.ids, &id->ids);
	return id;
}

void cm_id_set_device(struct cm_id *id, struct cm_device *dev)
{
	struct cm_addr own;
	uint32_t n = id->conn.local_id;

	id->device = dev;
	id->pub.verbs = dev->verbs;
	id->pub.pd = dev->pd;
	id->pub.port_num = 1;
	id->pub.route.addr.addr.ibaddr.pkey = htons(0xffff);
	if (!dev->gsi)
		return;
	/* The process's slot on top, so that whoever receives a machine's
	 * messages can tell whose they are. */
	cm_gsi_addr(dev, &own);
	id->conn.local_id = (own.qpn >> NIC_QPN_INDEX_BITS) << WIRE_CM_ID_BITS |
			    (n & NUMBER_MASK);
}

static void give_port_back(struct cm_id *id)
{
	if (id->lease_fd < 0)
		return;
	if (id->listening)
		cm_watch_remove(&id->lease_watch);
	lease_release(&cm.sockets, &id->port, id->lease_fd);
	id->lease_fd = -1;
}

void cm_id_free(struct cm_id *id)
{
	cm_conn_close(&id->conn);
	cm_peer_forget(id);
	give_port_back(id);
	cm.by_number[id->conn.local_id & (CM_ID_MAX - 1)] = NULL;
	list_remove(&id->ids);
	free(id->ep_attr);
	if (id->sync)
		rdma_destroy_event_channel(id->pub.channel);
	free(id);
}

CM_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **out, void *context,
			     enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	struct cm_id *id = NULL;
	int err;

	if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP)
		return cm_fail(EPROTONOSUPPORT);
	if (!channel) {
		own = channel = rdma_create_event_channel();
		if (!own)
			return -1;
	}
	cm_lock();
	/* A machine without RDMA fails here, as without /dev/infiniband. */
	err = cm_devices_open();
	if (!err) {
		id = cm_id_new(to_channel(channel), context, ps);
		if (!id)
			err = -ENOMEM;
	}
	cm_unlock();
	if (err) {
		if (own)
			rdma_destroy_event_channel(own);
		return cm_fail(err);
	}
	id->sync = own != NULL;
	*out = &id->pub;
	return 0;
}

/* Waits until every event given to the application was acknowledged. */
CM_EXPORT int rdma_destroy_id(struct rdma_cm_id *pub)
{
	struct cm_id *id = to_id(pub);

	if (pub->event) {
		(void)rdma_ack_cm_event(pub->event); /* it is one of ours */
		pub->event = NULL;
	}
	cm_lock();
	id->listening = false;
	cm_events_drop(id);
	while (id->acked != id->delivered)
		pthread_cond_wait(&cm.acked, &cm.mutex);
	cm_events_drop(id);
	cm_id_free(id);
	cm_unlock();
	return 0;
}

CM_EXPORT int rdma_migrate_id(struct rdma_cm_id *pub,
			      struct rdma_event_channel *channel)
{
	struct cm_id *id = to_id(pub);
	struct rdma_event_channel *old = NULL;
	bool sync = !channel;

	if (id->sync && !channel)
		return cm_fail(EINVAL);
	if (!channel) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	if (id->sync && pub->event) {
		(void)rdma_ack_cm_event(pub->event); /* it is one of ours */
		pub->event = NULL;
	}
	cm_lock();
	cm_events_move(id, to_channel(channel));
	if (id->sync)
		old = pub->channel;
	pub->channel = channel;
	id->sync = sync;
	/* Nobody may still look at an event of the old channel. */
	while (id->acked != id->delivered)
		pthread_cond_wait(&cm.acked, &cm.mutex);
	cm_unlock();
	if (old)
		rdma_destroy_event_channel(old);
	return 0;
}

/* ---- binding ------------------------------------------------------------ */

static int use_device(struct cm_id *id, const uint8_t ip[16])
{
	struct cm_device *dev = cm_device_find(ip);
	int err;

	if (!dev)
		return -ENODEV;
	err = cm_gsi_open(dev);
	if (err)
		return err;
	cm.by_number[id->conn.local_id & (CM_ID_MAX - 1)] = id;
	cm_id_set_device(id, dev);
	return 0;
}

static int bind_locked(struct cm_id *id, const struct sockaddr *sa)
{
	struct lease_port port = {.ps = (uint16_t)id->pub.ps};
	int err = cm_ip_read(sa, port.ip, &port.port);

	if (err)
		return err;
	if (id->bound)
		return -EINVAL;
	if (!lease_ip_is_any(port.ip) && !cm_device_find(port.ip))
		return -ENODEV;
	err = lease_bind(&cm.sockets, &port, &id->lease_fd);
	if (err)
		return err;
	id->port = port;
	id->bound = true;
	/* At the wildcard the device follows from the request or the route. */
	if (!lease_ip_is_any(port.ip)) {
		err = use_device(id, port.ip);
		if (err) {
			give_port_back(id);
			id->bound = false;
			return err;
		}
		id->pub.route.addr.addr.ibaddr.sgid = id->device->gid;
	}
	memcpy(&id->pub.route.addr.src_storage, sa,
	       sa->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					: sizeof(struct sockaddr_in6));
	/* The same place in both families. */
	id->pub.route.addr.src_sin.sin_port = htons(port.port);
	return 0;
}

CM_EXPORT int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
	int err;

	cm_lock();
	err = bind_locked(to_id(pub), addr);
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

CM_EXPORT int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct cm_id *id = to_id(pub);
	int err = 0;

	cm_lock();
	if (!id->bound)
		err = bind_locked(id, (struct sockaddr *)&any);
	/* At the wildcard a request may come to any device. */
	for (unsigned i = 0; i < cm.device_count && !err && !id->device; i++)
		err = cm_gsi_open(cm.devices[i]);
	if (!err && !id->listening) {
		id->backlog = backlog > 0 && backlog < CM_BACKLOG_MAX
				      ? (unsigned)backlog
				      : CM_BACKLOG_MAX;
		id->lease_watch = (struct cm_watch){.fd = id->lease_fd,
						    .ready = cm_peer_accept};
		if (listen(id->lease_fd, CM_LEASE_BACKLOG) < 0)
			err = -errno;
		if (!err)
			err = cm_watch_add(&id->lease_watch);
		id->listening = !err;
	}
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

/* ---- resolving ---------------------------------------------------------- */

static uint16_t any_port(void)
{
	static const uint16_t first = 32768, count = 28232;

	/* Nobody can connect to it, so nobody has to be kept from it. */
	return (uint16_t)(first + cm.next_number++ % count);
}

static int choose_source(struct cm_id *id, const struct sockaddr *src)
{
	uint8_t ip[16];
	uint16_t port = 0;
	int err;

	if (src && !id->bound) {
		err = cm_ip_read(src, ip, &port);
		if (err)
			return err;
		if (!lease_ip_is_any(ip) || port)
			return bind_locked(id, src);
	}
	if (id->bound && !lease_ip_is_any(id->port.ip))
		return 0;
	err = cm_ip_source(id->dst_ip, ip);
	if (err)
		return err;
	err = use_device(id, ip);
	if (err)
		return err;
	if (!id->bound) {
		id->port.ps = (uint16_t)id->pub.ps;
		id->port.port = any_port();
		id->bound = true;
	}
	memcpy(id->port.ip, ip, sizeof(ip));
	cm_ip_write(ip, id->port.port, &id->pub.route.addr.src_storage);
	id->pub.route.addr.addr.ibaddr.sgid = id->device->gid;
	return 0;
}

static int resolve_locked(struct cm_id *id, const struct sockaddr *src,
			  const struct sockaddr *dst)
{
	union ibv_gid *dgid = &id->pub.route.addr.addr.ibaddr.dgid;
	struct cm_event *ev;
	int err = cm_ip_read(dst, id->dst_ip, &id->dst_port);

	if (err)
		return err;
	if (lease_ip_is_any(id->dst_ip)) {
		/* Everywhere means here. */
		static const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127,
						     0,		  0,	1};

		memcpy(id->dst_ip, loopback, sizeof(loopback));
	}
	err = choose_source(id, src);
	if (err)
		return err;
	id->dst_local = cm_ip_is_local(id->dst_ip);
	memcpy(&id->pub.route.addr.dst_storage, dst,
	       dst->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
	if (id->dst_local)
		*dgid = id->device->gid;
	else
		memcpy(dgid->raw, id->dst_ip, sizeof(id->dst_ip));
	ev = cm_event_new(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	if (!ev)
		return -ENOMEM;
	cm_event_post(ev);
	return 0;
}

CM_EXPORT int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src,
				struct sockaddr *dst, int timeout_ms)
{
	struct cm_id *id = to_id(pub);
	bool sync = id->sync;
	int err;

	if (!dst)
		return cm_fail(EINVAL);
	cm_lock();
	err = resolve_locked(id, src, dst);
	cm_unlock();
	return cm_complete(id, sync, err);
}

static void fill_path(struct cm_id *id)
{
	struct rdma_ib_addr *a = &id->pub.route.addr.addr.ibaddr;

	id->path_rec = (struct ibv_sa_path_rec){
		.dgid = a->dgid,
		.sgid = a->sgid,
		.hop_limit = CM_HOP_LIMIT,
		.traffic_class = id->tos,
		.reversible = 1,
		.numb_path = 1,
		.pkey = htons(0xffff),
		.mtu_selector = 2, /* exactly */
		.mtu = cm_device_path_mtu(id->device, &a->dgid),
		.rate_selector = 2,
		.rate = PATH_RATE,
		.packet_life_time_selector = 2,
		.packet_life_time = (uint8_t)(id->ack_timeout - 1),
	};
	id->pub.route.path_rec = &id->path_rec;
	id->pub.route.num_paths = 1;
}

CM_EXPORT int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
	struct cm_id *id = to_id(pub);
	bool sync = id->sync;
	struct cm_event *ev;
	int err = 0;

	cm_lock();
	if (!id->device || !id->pub.route.addr.dst_addr.sa_family) {
		err = -EINVAL;
	} else {
		fill_path(id);
		ev = cm_event_new(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
		if (ev)
			cm_event_post(ev);
		else
			err = -ENOMEM;
	}
	cm_unlock();
	return cm_complete(id, sync, err);
}

/* ---- small questions ---------------------------------------------------- */

CM_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return id->route.addr.src_sin.sin_port;
}

CM_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return id->route.addr.dst_sin.sin_port;
}

CM_EXPORT int rdma_set_option(struct rdma_cm_id *pub, int level, int optname,
			      void *optval, size_t optlen)
{
	struct cm_id *id = to_id(pub);

	if (level != RDMA_OPTION_ID)
		return cm_fail(ENOSYS);
	switch (optname) {
	case RDMA_OPTION_ID_TOS:
		if (optlen != sizeof(uint8_t))
			return cm_fail(EINVAL);
		id->tos = *(uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (optlen != sizeof(uint8_t) || *(uint8_t *)optval > 31)
			return cm_fail(EINVAL);
		id->ack_timeout = *(uint8_t *)optval;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR: /* leases end with their owner */
	case RDMA_OPTION_ID_AFONLY:
		return optlen == sizeof(int) ? 0 : cm_fail(EINVAL);
	default:
		return cm_fail(ENOSYS);
	}
}
