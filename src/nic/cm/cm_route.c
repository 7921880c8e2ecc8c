/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each message to its connection or listener, and turns what happens to
 * connections into events. */
#include <aquifer/aqdv.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm_priv.h"
#include "wire/wire.h"

/* ---- finding whom a message is for -------------------------------------- */

/* A connection that the peer began, by the number that the peer gave it. */
static struct cm_id *find_begun(const struct cm_addr *from, uint32_t number,
				uint16_t kind)
{
	for (struct list *n = cm.ids.next; n != &cm.ids; n = n->next) {
		struct cm_id *id = container_of(n, struct cm_id, ids);

		if (id->conn.remote_id == number && id->conn.req.kind == kind &&
		    id->conn.req.local_id == number &&
		    cm_addr_equal(&id->peer, from))
			return id;
	}
	return NULL;
}

static struct cm_id *find_listener(const struct lease_port *port)
{
	struct cm_id *any = NULL;

	for (struct list *n = cm.ids.next; n != &cm.ids; n = n->next) {
		struct cm_id *id = container_of(n, struct cm_id, ids);

		if (!id->listening || id->port.ps != port->ps ||
		    id->port.port != port->port)
			continue;
		if (!memcmp(id->port.ip, port->ip, sizeof(port->ip)))
			return id;
		if (lease_ip_is_any(id->port.ip))
			any = id;
	}
	return any;
}

struct cm_id *cm_id_by_number(uint32_t number)
{
	struct cm_id *id = cm.by_number[number & (CM_ID_MAX - 1)];

	return id && id->conn.local_id == number ? id : NULL;
}

/* ---- requests ----------------------------------------------------------- */

static void refuse(struct cm_device *dev, const struct cm_addr *from,
		   const struct wire_cm_msg *req, uint16_t reason)
{
	struct wire_cm_msg m;

	log_debug("cm", "a request for service %#llx is refused: %u",
		  (unsigned long long)req->service_id, reason);
	memset(&m, 0, sizeof(m));
	m.tid = req->tid;
	if (req->kind == WIRE_CM_SIDR_REQ) {
		m.kind = WIRE_CM_SIDR_REP;
		m.local_id = req->local_id;
		m.status = WIRE_CM_SIDR_UNSUPPORTED;
		m.service_id = req->service_id;
	} else {
		m.kind = WIRE_CM_REJ;
		m.remote_id = req->local_id;
		m.about = WIRE_CM_ABOUT_REQ;
		m.reason = reason;
	}
	if (reason == WIRE_CM_REJ_MTU) {
		m.ari_len = 1;
		m.ari[0] = cm_device_path_mtu(dev, &from->gid);
	}
	cm_gsi_send(dev, from, &m);
}

/* A REP cannot say that it wants less, and an end that used less on its own
 * would not understand the other. So who asks is told to ask again. */
static bool is_too_wide(const struct cm_device *dev, const struct cm_addr *from,
			const struct wire_cm_msg *req)
{
	return req->kind == WIRE_CM_REQ &&
	       req->mtu > cm_device_path_mtu(dev, &from->gid);
}

/* Of what the other side says; what it wants to start, we have to serve. */
static void fill_conn(struct rdma_conn_param *p, const struct wire_cm_msg *m,
		      uint8_t retry_count)
{
	p->responder_resources = m->initiator_depth;
	p->initiator_depth = m->responder_resources;
	p->flow_control = m->flow_control;
	p->retry_count = retry_count;
	p->rnr_retry_count = m->rnr_retry_count;
	p->srq = m->srq;
	p->qp_num = m->qpn;
}

static void request_event(struct cm_id *listener, struct cm_id *id,
			  const struct wire_cm_msg *req)
{
	struct cm_event *ev =
		cm_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

	if (!ev)
		return;
	cm_event_private(ev, req->private_data + WIRE_CM_IP_BYTES,
			 (uint8_t)(req->private_len - WIRE_CM_IP_BYTES));
	ev->pub.listen_id = &listener->pub;
	ev->owner = listener;
	if (!cm_id_is_datagram(id))
		fill_conn(&ev->pub.param.conn, req, req->retry_count);
	listener->pending++;
	cm_event_post(ev);
}

static void on_request(struct cm_device *dev, const struct cm_addr *from,
		       const struct wire_cm_msg *req)
{
	struct lease_port port = {
		.ps = (uint16_t)(req->service_id >> 16),
		.port = (uint16_t)req->service_id,
	};
	struct cm_id *listener, *id;
	struct wire_cm_ip ip;

	if (req->service_id >> 32 || wire_cm_ip_parse(req->private_data, &ip)) {
		refuse(dev, from, req, WIRE_CM_REJ_SERVICE_ID);
		return;
	}
	memcpy(port.ip, ip.dst, sizeof(port.ip));
	listener = find_listener(&port);
	if (!listener) {
		refuse(dev, from, req, WIRE_CM_REJ_SERVICE_ID);
		return;
	}
	if (listener->pending >= listener->backlog)
		return; /* the peer asks again */
	if (is_too_wide(dev, from, req)) {
		refuse(dev, from, req, WIRE_CM_REJ_MTU);
		return;
	}
	id = cm_id_new(to_channel(listener->pub.channel), listener->pub.context,
		       listener->pub.ps);
	if (!id) {
		refuse(dev, from, req, WIRE_CM_REJ_NO_RESOURCES);
		return;
	}
	cm_id_set_device(id, dev);
	id->listener = listener;
	id->peer = *from;
	id->port = port;
	memcpy(id->dst_ip, ip.src, sizeof(id->dst_ip));
	id->dst_port = ip.port;
	id->pub.qp_type = cm_id_is_datagram(id) ? IBV_QPT_UD : IBV_QPT_RC;
	cm_ip_write(ip.dst, port.port, &id->pub.route.addr.src_storage);
	cm_ip_write(ip.src, ip.port, &id->pub.route.addr.dst_storage);
	id->pub.route.addr.addr.ibaddr.sgid = dev->gid;
	id->pub.route.addr.addr.ibaddr.dgid = from->gid;
	id->remote_ece.vendor_id = req->ece_vendor;
	id->remote_ece.options = req->ece_options;
	cm_conn_take(&id->conn, req);
	request_event(listener, id, req);
}

void cm_route_input(struct cm_device *dev, const struct cm_addr *from,
		    const struct wire_cm_msg *msg)
{
	struct wire_cm_msg answer;
	struct cm_id *id;

	if (msg->kind == WIRE_CM_REQ || msg->kind == WIRE_CM_SIDR_REQ) {
		id = find_begun(from, msg->local_id, msg->kind);
		if (!id) {
			on_request(dev, from, msg);
			return;
		}
	} else if (msg->kind == WIRE_CM_SIDR_REP) {
		id = cm_id_by_number(msg->local_id);
	} else if (msg->kind == WIRE_CM_REJ && msg->remote_id == 0) {
		/* Its sender never heard our number. */
		id = find_begun(from, msg->local_id, WIRE_CM_REQ);
	} else {
		id = cm_id_by_number(msg->remote_id);
	}
	/* Only the peer itself has a say. One on another machine is first
	 * spoken to by the number that every machine has. */
	if (id && memcmp(&id->peer.gid, &from->gid, sizeof(from->gid)))
		return;
	if (id && id->peer.qpn == WIRE_GSI_QPN)
		id->peer.qpn = from->qpn;
	if (id && id->peer.qpn == from->qpn)
		cm_conn_input(&id->conn, msg, clock_mono_ns());
	else if (!id && cm_stray_answer(msg, &answer))
		cm_gsi_send(dev, from, &answer);
}

/* ---- what connections say ----------------------------------------------- */

static struct cm_id *of_conn(struct cm_conn *c)
{
	return container_of(c, struct cm_id, conn);
}

static void conn_send(struct cm_conn *c, const struct wire_cm_msg *msg)
{
	struct cm_id *id = of_conn(c);

	if (!id->device)
		return;
	if (id->peer.qpn)
		cm_gsi_send(id->device, &id->peer, msg);
}

static bool conn_is_silent(struct cm_conn *c)
{
	struct cm_id *id = of_conn(c);

	return !cm_peer_is_watched(&id->peer) &&
	       aqdv_probe_peer(id->device->verbs, c->local.qpn) == 1;
}

static void conn_set_timer(struct cm_conn *c, uint64_t deadline_ns)
{
	cm_timer_set(&of_conn(c)->timer, deadline_ns);
}

static void fill_ud(struct cm_id *id, struct rdma_ud_param *p,
		    const struct wire_cm_msg *m)
{
	p->qp_num = m->qpn;
	p->qkey = m->qkey;
	p->ah_attr = cm_ah_attr(id);
}

static void conn_happened(struct cm_conn *c, enum cm_happening what, int status,
			  const struct wire_cm_msg *msg)
{
	static const enum rdma_cm_event_type types[] = {
		[CM_RESPONSE] = RDMA_CM_EVENT_CONNECT_RESPONSE,
		[CM_CONNECTED] = RDMA_CM_EVENT_ESTABLISHED,
		[CM_REFUSED] = RDMA_CM_EVENT_REJECTED,
		[CM_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
		[CM_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
		[CM_RESTED] = RDMA_CM_EVENT_TIMEWAIT_EXIT,
	};
	struct cm_id *id = of_conn(c);
	struct cm_event *ev = cm_event_new(id, types[what], status);

	if (!ev)
		return;
	if (msg)
		cm_event_private(ev, msg->private_data, msg->private_len);
	if (msg && msg->kind == WIRE_CM_REP) {
		fill_conn(&ev->pub.param.conn, msg, id->conn.req.retry_count);
		id->remote_ece.vendor_id = msg->ece_vendor;
		id->remote_ece.options = msg->ece_options;
	}
	if (msg && msg->kind == WIRE_CM_SIDR_REP && what == CM_CONNECTED)
		fill_ud(id, &ev->pub.param.ud, msg);
	cm_event_post(ev);
}

const struct cm_conn_ops cm_id_conn_ops = {
	.send = conn_send,
	.happened = conn_happened,
	.is_silent = conn_is_silent,
	.set_timer = conn_set_timer,
};
