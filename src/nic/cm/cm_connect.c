/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, accepting, rejecting, disconnecting. */
#include <string.h>

#include "base/clock.h"
#include "cm_priv.h"
#include "wire/wire.h"

/* ---- parameters --------------------------------------------------------- */

static uint8_t limit(uint8_t wanted, int most)
{
	if (most > 255)
		most = 255;
	return wanted > most ? (uint8_t)most : wanted;
}

static uint64_t device_guid(const struct cm_device *dev)
{
	return be64toh(dev->attr.node_guid);
}

/* The queue pair of the id, or the one that the application names. */
static void fill_side(struct cm_id *id, const struct rdma_conn_param *p,
		      struct wire_cm_msg *m)
{
	m->psn = id->psn;
	m->qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	m->srq = id->pub.qp ? id->pub.qp->srq != NULL : p->srq != 0;
	m->flow_control = p->flow_control != 0;
	m->rnr_retry_count = p->rnr_retry_count & 7;
	m->ca_guid = device_guid(id->device);
	m->ece_vendor = id->local_ece.vendor_id & 0xffffff;
	m->ece_options = id->local_ece.options;
	m->responder_resources =
		limit(p->responder_resources, id->device->attr.max_qp_rd_atom);
	m->initiator_depth =
		limit(p->initiator_depth, id->device->attr.max_qp_init_rd_atom);
}

static int fill_private(struct wire_cm_msg *m, unsigned skip, const void *data,
			uint8_t len_bytes)
{
	if (skip + len_bytes > wire_cm_private_bytes(m->kind))
		return -EINVAL;
	if (len_bytes && !data)
		return -EINVAL;
	if (len_bytes)
		memcpy(m->private_data + skip, data, len_bytes);
	m->private_len = (uint8_t)(skip + len_bytes);
	return 0;
}

static int fill_request(struct cm_id *id, const struct rdma_conn_param *p,
			struct wire_cm_msg *m)
{
	struct wire_cm_ip ip = {.port = id->port.port};

	memset(m, 0, sizeof(*m));
	m->kind = cm_id_is_datagram(id) ? WIRE_CM_SIDR_REQ : WIRE_CM_REQ;
	m->service_id = (uint64_t)id->pub.ps << 16 | id->dst_port;
	m->pkey = 0xffff;
	memcpy(ip.src, id->port.ip, sizeof(ip.src));
	memcpy(ip.dst, id->dst_ip, sizeof(ip.dst));
	wire_cm_ip_build(&ip, m->private_data);
	if (m->kind == WIRE_CM_REQ) {
		fill_side(id, p, m);
		m->retry_count = p->retry_count & 7;
		m->mtu = cm_device_path_mtu(
			id->device, &id->pub.route.addr.addr.ibaddr.dgid);
		m->remote_timeout = CM_RESPONSE_TIMEOUT;
		m->local_timeout = CM_RESPONSE_TIMEOUT;
		m->max_retries = 15;
		m->path = (struct wire_cm_path){
			.slid = 0xffff, /* RoCE has no local identifiers */
			.dlid = 0xffff,
			.traffic_class = id->tos,
			.rate = IBV_RATE_100_GBPS,
			.hop_limit = CM_HOP_LIMIT,
			.ack_timeout = id->ack_timeout,
		};
		memcpy(m->path.sgid, id->device->gid.raw, 16);
		memcpy(m->path.dgid, id->pub.route.addr.addr.ibaddr.dgid.raw,
		       16);
	}
	return fill_private(m, WIRE_CM_IP_BYTES, p->private_data,
			    p->private_data_len);
}

/* ---- the side that asks ------------------------------------------------- */

static int connect_locked(struct cm_id *id, const struct rdma_conn_param *p)
{
	struct wire_cm_msg req;
	int err;

	if (!id->device || !id->pub.route.addr.dst_addr.sa_family)
		return -EINVAL;
	err = fill_request(id, p, &req);
	if (err)
		return err;
	err = cm_conn_connect(&id->conn, &req, clock_mono_ns());
	if (!err)
		cm_peer_ask(id);
	return err;
}

CM_EXPORT int rdma_connect(struct rdma_cm_id *pub,
			   struct rdma_conn_param *conn_param)
{
	struct cm_id *id = to_id(pub);
	struct rdma_conn_param p = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 7,
		.rnr_retry_count = CM_RNR_FOREVER,
	};
	bool sync = id->sync;
	int err;

	if (conn_param)
		p = *conn_param;
	if (id->ep_private_len && !p.private_data_len) {
		p.private_data = id->ep_private;
		p.private_data_len = id->ep_private_len;
	}
	cm_lock();
	err = connect_locked(id, &p);
	cm_unlock();
	return cm_complete(id, sync, err);
}

CM_EXPORT int rdma_establish(struct rdma_cm_id *pub)
{
	int err;

	if (pub->qp)
		return cm_fail(EINVAL);
	cm_lock();
	err = cm_conn_establish(&to_id(pub)->conn, clock_mono_ns());
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

/* ---- the side that is asked --------------------------------------------- */

static int accept_datagram(struct cm_id *id, const struct rdma_conn_param *p)
{
	struct wire_cm_msg rep;
	int err;

	memset(&rep, 0, sizeof(rep));
	rep.kind = WIRE_CM_SIDR_REP;
	rep.qpn = id->pub.qp ? id->pub.qp->qp_num : p->qp_num;
	rep.qkey = RDMA_UDP_QKEY;
	err = fill_private(&rep, 0, p->private_data, p->private_data_len);
	return err ? err : cm_conn_accept(&id->conn, &rep, clock_mono_ns());
}

static int accept_connection(struct cm_id *id, const struct rdma_conn_param *p)
{
	const struct cm_side *remote = &id->conn.remote;
	struct wire_cm_msg rep;
	int err;

	if (id->conn.state != CM_REQ_RCVD)
		return -EINVAL;
	memset(&rep, 0, sizeof(rep));
	rep.kind = WIRE_CM_REP;
	fill_side(id, p, &rep);
	/* No more than was asked for: the rest would be of no use. */
	if (p->responder_resources == RDMA_MAX_RESP_RES)
		rep.responder_resources =
			limit(rep.responder_resources, remote->initiator_depth);
	if (p->initiator_depth == RDMA_MAX_INIT_DEPTH)
		rep.initiator_depth =
			limit(rep.initiator_depth, remote->responder_resources);
	err = fill_private(&rep, 0, p->private_data, p->private_data_len);
	if (err)
		return err;
	if (id->pub.qp) {
		/* The queue pair must be able to take what follows the REP. */
		id->conn.local.qpn = rep.qpn;
		id->conn.local.responder_resources = rep.responder_resources;
		id->conn.local.initiator_depth = rep.initiator_depth;
		err = cm_qp_connect(id);
		if (err)
			return err;
	}
	return cm_conn_accept(&id->conn, &rep, clock_mono_ns());
}

CM_EXPORT int rdma_accept(struct rdma_cm_id *pub,
			  struct rdma_conn_param *conn_param)
{
	struct cm_id *id = to_id(pub);
	struct rdma_conn_param p = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.rnr_retry_count = CM_RNR_FOREVER,
	};
	bool waits = id->sync && !cm_id_is_datagram(id);
	int err;

	if (conn_param)
		p = *conn_param;
	cm_lock();
	if (!id->device)
		err = -EINVAL;
	else if (cm_id_is_datagram(id))
		err = accept_datagram(id, &p);
	else
		err = accept_connection(id, &p);
	cm_unlock();
	return cm_complete(id, waits, err);
}

CM_EXPORT int rdma_reject(struct rdma_cm_id *pub, const void *private_data,
			  uint8_t private_data_len)
{
	int err;

	cm_lock();
	err = cm_conn_reject(&to_id(pub)->conn, WIRE_CM_REJ_CONSUMER,
			     private_data, private_data_len);
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

CM_EXPORT int rdma_reject_ece(struct rdma_cm_id *pub, const void *private_data,
			      uint8_t private_data_len)
{
	int err;

	cm_lock();
	err = cm_conn_reject(&to_id(pub)->conn, WIRE_CM_REJ_VENDOR_OPTION,
			     private_data, private_data_len);
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

/* ---- both --------------------------------------------------------------- */

CM_EXPORT int rdma_disconnect(struct rdma_cm_id *pub)
{
	struct cm_id *id = to_id(pub);
	bool waits;
	int err;

	cm_lock();
	/* What is posted is flushed, whatever becomes of the messages. */
	err = cm_qp_error(id);
	if (!err)
		err = cm_conn_disconnect(&id->conn, clock_mono_ns());
	/* Who only answers, or comes late, has no event to wait for. */
	waits = id->sync && id->conn.state == CM_DREQ_SENT;
	cm_unlock();
	return cm_complete(id, waits, err);
}

CM_EXPORT int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
	int err = 0;

	if (event != IBV_EVENT_COMM_EST)
		return 0;
	cm_lock();
	err = cm_conn_notify(&to_id(pub)->conn, clock_mono_ns());
	cm_unlock();
	return err ? cm_fail(err) : 0;
}

/* ---- options of vendors, carried and not looked at ----------------------- */

CM_EXPORT int rdma_set_local_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!ece || ece->comp_mask)
		return cm_fail(EINVAL);
	to_id(pub)->local_ece = *ece;
	return 0;
}

CM_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *pub, struct ibv_ece *ece)
{
	if (!ece || pub->qp)
		return cm_fail(EINVAL);
	cm_lock();
	*ece = to_id(pub)->remote_ece;
	cm_unlock();
	return 0;
}
