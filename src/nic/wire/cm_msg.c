/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and builds CM messages. Every layout is one struct of bytes, in the
 * order of the tables in IBA 12.6 and 12.11. */
#include "cm_msg.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire.h"

enum {
	MAD_VERSION = 1,
	MAD_CLASS_CM = 7,
	MAD_CLASS_VERSION = 2,
	MAD_METHOD_SEND = 3,
	IP_CM_VERSION = 0,
};

struct mad_hdr {
	uint8_t version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	be16 status;
	be16 class_specific;
	be64 tid;
	be16 attr;
	be16 reserved;
	be32 attr_mod;
};
STATIC_ASSERT(sizeof(struct mad_hdr) == 24, "IBA 13.4.2");

struct path_layout {
	be16 slid;
	be16 dlid;
	uint8_t sgid[16];
	uint8_t dgid[16];
	be32 flow_rate; /* flow label 20, reserved 6, rate 6 */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;	     /* 4, subnet local 1 */
	uint8_t ack_timeout; /* 5 */
};
STATIC_ASSERT(sizeof(struct path_layout) == 44, "IBA 12.6.5");

struct req_layout {
	be32 local_id;
	uint8_t reserved0;
	be24 vendor;
	be64 service_id;
	be64 ca_guid;
	uint8_t reserved1[4];
	be32 qkey;
	be24 qpn;
	uint8_t responder_resources;
	be24 local_eecn;
	uint8_t initiator_depth;
	be24 remote_eecn;
	uint8_t transport; /* remote timeout 5, type 2, flow control 1 */
	be24 psn;
	uint8_t retry; /* local timeout 5, retries 3 */
	be16 pkey;
	uint8_t mtu;	    /* 4, RDC 1, RNR retries 3 */
	uint8_t cm_retries; /* 4, SRQ 1, extended transport 3 */
	struct path_layout path;
	struct path_layout alternate;
	uint8_t private_data[92];
};
STATIC_ASSERT(sizeof(struct req_layout) == 232, "IBA 12.6.5");

struct mra_layout {
	be32 local_id;
	be32 remote_id;
	uint8_t about;	 /* 2 */
	uint8_t timeout; /* 5 */
	uint8_t private_data[222];
};
STATIC_ASSERT(sizeof(struct mra_layout) == 232, "IBA 12.6.6");

struct rej_layout {
	be32 local_id;
	be32 remote_id;
	uint8_t about;	 /* 2 */
	uint8_t ari_len; /* 7 */
	be16 reason;
	uint8_t ari[WIRE_CM_ARI_MAX];
	uint8_t private_data[148];
};
STATIC_ASSERT(sizeof(struct rej_layout) == 232, "IBA 12.6.7");

struct rep_layout {
	be32 local_id;
	be32 remote_id;
	be32 qkey;
	be24 qpn;
	uint8_t vendor_low;
	be24 eecn;
	uint8_t vendor_mid;
	be24 psn;
	uint8_t vendor_high;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t ack_delay; /* 5, failover 2, flow control 1 */
	uint8_t rnr_retry; /* 3, SRQ 1 */
	be64 ca_guid;
	uint8_t private_data[196];
};
STATIC_ASSERT(sizeof(struct rep_layout) == 232, "IBA 12.6.8");

/* RTU and DREP. */
struct pair_layout {
	be32 local_id;
	be32 remote_id;
	uint8_t private_data[224];
};
STATIC_ASSERT(sizeof(struct pair_layout) == 232, "IBA 12.6.9, 12.6.11");

struct dreq_layout {
	be32 local_id;
	be32 remote_id;
	be24 qpn;
	uint8_t reserved;
	uint8_t private_data[220];
};
STATIC_ASSERT(sizeof(struct dreq_layout) == 232, "IBA 12.6.10");

struct sidr_req_layout {
	be32 request_id;
	be16 pkey;
	uint8_t reserved[2];
	be64 service_id;
	uint8_t private_data[216];
};
STATIC_ASSERT(sizeof(struct sidr_req_layout) == 232, "IBA 12.11.1");

struct sidr_rep_layout {
	be32 request_id;
	uint8_t status;
	uint8_t info_len;
	uint8_t reserved0[2];
	be24 qpn;
	uint8_t reserved1;
	be64 service_id;
	be32 qkey;
	uint8_t info[WIRE_CM_ARI_MAX];
	uint8_t private_data[136];
};
STATIC_ASSERT(sizeof(struct sidr_rep_layout) == 232, "IBA 12.11.2");

union body {
	struct req_layout req;
	struct mra_layout mra;
	struct rej_layout rej;
	struct rep_layout rep;
	struct pair_layout pair;
	struct dreq_layout dreq;
	struct sidr_req_layout sidr_req;
	struct sidr_rep_layout sidr_rep;
};

struct mad {
	struct mad_hdr hdr;
	union body body;
};
STATIC_ASSERT(sizeof(struct mad) == WIRE_MAD_BYTES, "a management datagram");

/* Where the private data of each kind is: one table for both directions. */
static const struct {
	uint8_t offset;
	uint8_t bytes;
} places[] = {
#define PLACE(kind, member)                                          \
	[WIRE_CM_##kind - WIRE_CM_REQ] = {                           \
		offsetof(struct mad, body.member.private_data),      \
		sizeof(((struct mad *)0)->body.member.private_data), \
	}
	PLACE(REQ, req),   PLACE(MRA, mra),	      PLACE(REJ, rej),
	PLACE(REP, rep),   PLACE(RTU, pair),	      PLACE(DREQ, dreq),
	PLACE(DREP, pair), PLACE(SIDR_REQ, sidr_req), PLACE(SIDR_REP, sidr_rep),
#undef PLACE
};

uint8_t wire_cm_private_bytes(uint16_t kind)
{
	if (kind < WIRE_CM_REQ || kind > WIRE_CM_SIDR_REP)
		return 0;
	return places[kind - WIRE_CM_REQ].bytes;
}

/* ---- parse -------------------------------------------------------------- */

static void parse_path(const struct path_layout *p, struct wire_cm_path *path)
{
	uint32_t flow_rate = be32_get(p->flow_rate);

	path->slid = be16_get(p->slid);
	path->dlid = be16_get(p->dlid);
	memcpy(path->sgid, p->sgid, sizeof(path->sgid));
	memcpy(path->dgid, p->dgid, sizeof(path->dgid));
	path->flow_label = flow_rate >> 12;
	path->rate = flow_rate & 0x3f;
	path->traffic_class = p->traffic_class;
	path->hop_limit = p->hop_limit;
	path->sl = p->sl >> 4;
	path->subnet_local = p->sl & 0x08;
	path->ack_timeout = p->ack_timeout >> 3;
}

static void parse_req(const struct req_layout *r, struct wire_cm_msg *m)
{
	m->local_id = be32_get(r->local_id);
	m->service_id = be64_get(r->service_id);
	m->ca_guid = be64_get(r->ca_guid);
	m->qkey = be32_get(r->qkey);
	m->qpn = be24_get(r->qpn);
	m->responder_resources = r->responder_resources;
	m->initiator_depth = r->initiator_depth;
	m->remote_timeout = r->transport >> 3;
	m->transport = r->transport >> 1 & 3;
	m->flow_control = r->transport & 1;
	m->psn = be24_get(r->psn);
	m->local_timeout = r->retry >> 3;
	m->retry_count = r->retry & 7;
	m->pkey = be16_get(r->pkey);
	m->mtu = r->mtu >> 4;
	m->rnr_retry_count = r->mtu & 7;
	m->max_retries = r->cm_retries >> 4;
	m->srq = r->cm_retries & 8;
	m->ece_vendor = be24_get(r->vendor);
	parse_path(&r->path, &m->path);
}

static void parse_rep(const struct rep_layout *r, struct wire_cm_msg *m)
{
	m->local_id = be32_get(r->local_id);
	m->remote_id = be32_get(r->remote_id);
	m->qkey = be32_get(r->qkey);
	m->qpn = be24_get(r->qpn);
	m->psn = be24_get(r->psn);
	m->responder_resources = r->responder_resources;
	m->initiator_depth = r->initiator_depth;
	m->ack_delay = r->ack_delay >> 3;
	m->failover = r->ack_delay >> 1 & 3;
	m->flow_control = r->ack_delay & 1;
	m->rnr_retry_count = r->rnr_retry >> 5;
	m->srq = r->rnr_retry & 0x10;
	m->ca_guid = be64_get(r->ca_guid);
	m->ece_vendor = (uint32_t)r->vendor_high << 16 |
			(uint32_t)r->vendor_mid << 8 | r->vendor_low;
}

static int parse_rej(const struct rej_layout *r, struct wire_cm_msg *m)
{
	m->about = r->about >> 6;
	m->ari_len = r->ari_len >> 1;
	if (m->ari_len > WIRE_CM_ARI_MAX)
		return -EBADMSG;
	m->reason = be16_get(r->reason);
	memcpy(m->ari, r->ari, m->ari_len);
	return 0;
}

static int parse_sidr_rep(const struct sidr_rep_layout *r,
			  struct wire_cm_msg *m)
{
	m->local_id = be32_get(r->request_id);
	m->status = r->status;
	m->ari_len = r->info_len;
	if (m->ari_len > WIRE_CM_ARI_MAX)
		return -EBADMSG;
	memcpy(m->ari, r->info, m->ari_len);
	m->qpn = be24_get(r->qpn);
	m->service_id = be64_get(r->service_id);
	m->qkey = be32_get(r->qkey);
	return 0;
}

static int parse_body(const union body *b, struct wire_cm_msg *m)
{
	/* All but requests and SIDR begin with the two numbers. */
	m->local_id = be32_get(b->pair.local_id);
	m->remote_id = be32_get(b->pair.remote_id);
	switch ((enum wire_cm_kind)m->kind) {
	case WIRE_CM_REQ:
		m->remote_id = 0;
		parse_req(&b->req, m);
		return 0;
	case WIRE_CM_MRA:
		m->about = b->mra.about >> 6;
		m->service_timeout = b->mra.timeout >> 3;
		return 0;
	case WIRE_CM_REJ:
		return parse_rej(&b->rej, m);
	case WIRE_CM_REP:
		parse_rep(&b->rep, m);
		return 0;
	case WIRE_CM_RTU:
	case WIRE_CM_DREP:
		return 0;
	case WIRE_CM_DREQ:
		m->qpn = be24_get(b->dreq.qpn);
		return 0;
	case WIRE_CM_SIDR_REQ:
		m->remote_id = 0;
		m->pkey = be16_get(b->sidr_req.pkey);
		m->service_id = be64_get(b->sidr_req.service_id);
		return 0;
	case WIRE_CM_SIDR_REP:
		m->remote_id = 0;
		return parse_sidr_rep(&b->sidr_rep, m);
	}
	return -EBADMSG;
}

int wire_cm_parse(const uint8_t *mad, size_t len_bytes, struct wire_cm_msg *msg)
{
	struct wire_cm_msg m;
	struct mad copy;
	uint8_t bytes;
	int err;

	if (len_bytes != WIRE_MAD_BYTES)
		return -EBADMSG;
	memcpy(&copy, mad, sizeof(copy));
	if (copy.hdr.version != MAD_VERSION ||
	    copy.hdr.mgmt_class != MAD_CLASS_CM ||
	    copy.hdr.class_version != MAD_CLASS_VERSION ||
	    copy.hdr.method != MAD_METHOD_SEND)
		return -EBADMSG;
	memset(&m, 0, sizeof(m)); /* with its padding: callers may compare */
	m.kind = be16_get(copy.hdr.attr);
	m.tid = be64_get(copy.hdr.tid);
	bytes = wire_cm_private_bytes(m.kind);
	if (!bytes)
		return -EBADMSG;
	err = parse_body(&copy.body, &m);
	if (err)
		return err;
	if (m.kind == WIRE_CM_REQ || m.kind == WIRE_CM_REP)
		m.ece_options = be32_get(copy.hdr.attr_mod);
	m.private_len = bytes;
	memcpy(m.private_data,
	       (const uint8_t *)&copy + places[m.kind - WIRE_CM_REQ].offset,
	       bytes);
	memcpy(msg, &m, sizeof(m));
	return 0;
}

/* ---- build -------------------------------------------------------------- */

static void build_path(const struct wire_cm_path *path, struct path_layout *p)
{
	p->slid = be16_put(path->slid);
	p->dlid = be16_put(path->dlid);
	memcpy(p->sgid, path->sgid, sizeof(p->sgid));
	memcpy(p->dgid, path->dgid, sizeof(p->dgid));
	p->flow_rate = be32_put(path->flow_label << 12 | (path->rate & 0x3fu));
	p->traffic_class = path->traffic_class;
	p->hop_limit = path->hop_limit;
	p->sl = (uint8_t)(path->sl << 4 | (path->subnet_local ? 0x08 : 0));
	p->ack_timeout = (uint8_t)(path->ack_timeout << 3);
}

static void build_req(const struct wire_cm_msg *m, struct req_layout *r)
{
	r->local_id = be32_put(m->local_id);
	r->service_id = be64_put(m->service_id);
	r->ca_guid = be64_put(m->ca_guid);
	r->qkey = be32_put(m->qkey);
	r->qpn = be24_put(m->qpn);
	r->responder_resources = m->responder_resources;
	r->initiator_depth = m->initiator_depth;
	r->transport = (uint8_t)(m->remote_timeout << 3 |
				 (m->transport & 3) << 1 | m->flow_control);
	r->psn = be24_put(m->psn);
	r->retry = (uint8_t)(m->local_timeout << 3 | (m->retry_count & 7));
	r->pkey = be16_put(m->pkey);
	r->mtu = (uint8_t)(m->mtu << 4 | (m->rnr_retry_count & 7));
	r->cm_retries = (uint8_t)(m->max_retries << 4 | (m->srq ? 8 : 0));
	r->vendor = be24_put(m->ece_vendor);
	build_path(&m->path, &r->path);
}

static void build_rep(const struct wire_cm_msg *m, struct rep_layout *r)
{
	r->qkey = be32_put(m->qkey);
	r->qpn = be24_put(m->qpn);
	r->psn = be24_put(m->psn);
	r->responder_resources = m->responder_resources;
	r->initiator_depth = m->initiator_depth;
	r->ack_delay = (uint8_t)(m->ack_delay << 3 | (m->failover & 3) << 1 |
				 m->flow_control);
	r->rnr_retry = (uint8_t)(m->rnr_retry_count << 5 | (m->srq ? 0x10 : 0));
	r->ca_guid = be64_put(m->ca_guid);
	r->vendor_low = (uint8_t)m->ece_vendor;
	r->vendor_mid = (uint8_t)(m->ece_vendor >> 8);
	r->vendor_high = (uint8_t)(m->ece_vendor >> 16);
}

static void build_sidr_rep(const struct wire_cm_msg *m,
			   struct sidr_rep_layout *r)
{
	r->request_id = be32_put(m->local_id);
	r->status = m->status;
	r->info_len = m->ari_len;
	memcpy(r->info, m->ari, m->ari_len);
	r->qpn = be24_put(m->qpn);
	r->service_id = be64_put(m->service_id);
	r->qkey = be32_put(m->qkey);
}

static void build_body(const struct wire_cm_msg *m, union body *b)
{
	b->pair.local_id = be32_put(m->local_id);
	b->pair.remote_id = be32_put(m->remote_id);
	switch ((enum wire_cm_kind)m->kind) {
	case WIRE_CM_REQ:
		memset(&b->pair, 0, 8);
		build_req(m, &b->req);
		break;
	case WIRE_CM_MRA:
		b->mra.about = (uint8_t)(m->about << 6);
		b->mra.timeout = (uint8_t)(m->service_timeout << 3);
		break;
	case WIRE_CM_REJ:
		b->rej.about = (uint8_t)(m->about << 6);
		b->rej.ari_len = (uint8_t)(m->ari_len << 1);
		b->rej.reason = be16_put(m->reason);
		memcpy(b->rej.ari, m->ari, m->ari_len);
		break;
	case WIRE_CM_REP:
		build_rep(m, &b->rep);
		break;
	case WIRE_CM_RTU:
	case WIRE_CM_DREP:
		break;
	case WIRE_CM_DREQ:
		b->dreq.qpn = be24_put(m->qpn);
		break;
	case WIRE_CM_SIDR_REQ:
		memset(&b->pair, 0, 8);
		b->sidr_req.request_id = be32_put(m->local_id);
		b->sidr_req.pkey = be16_put(m->pkey);
		b->sidr_req.service_id = be64_put(m->service_id);
		break;
	case WIRE_CM_SIDR_REP:
		memset(&b->pair, 0, 8);
		build_sidr_rep(m, &b->sidr_rep);
		break;
	}
}

void wire_cm_build(const struct wire_cm_msg *msg, uint8_t mad[WIRE_MAD_BYTES])
{
	struct mad out = {
		.hdr =
			{
				.version = MAD_VERSION,
				.mgmt_class = MAD_CLASS_CM,
				.class_version = MAD_CLASS_VERSION,
				.method = MAD_METHOD_SEND,
				.tid = be64_put(msg->tid),
				.attr = be16_put(msg->kind),
			},
	};

	ASSERT(wire_cm_private_bytes(msg->kind) >= msg->private_len);
	ASSERT(wire_cm_private_bytes(msg->kind) > 0);
	ASSERT(msg->ari_len <= WIRE_CM_ARI_MAX);
	if (msg->kind == WIRE_CM_REQ || msg->kind == WIRE_CM_REP)
		out.hdr.attr_mod = be32_put(msg->ece_options);
	build_body(msg, &out.body);
	memcpy((uint8_t *)&out + places[msg->kind - WIRE_CM_REQ].offset,
	       msg->private_data, msg->private_len);
	memcpy(mad, &out, sizeof(out));
}

/* ---- IP addresses in private data --------------------------------------- */

struct ip_layout {
	uint8_t version;
	uint8_t ip_version; /* 4, reserved 4 */
	be16 port;
	uint8_t src[16]; /* IPv4: in the last four bytes */
	uint8_t dst[16];
};
STATIC_ASSERT(sizeof(struct ip_layout) == WIRE_CM_IP_BYTES, "IBA A11");

static void ip4_map(uint8_t ip[16], const uint8_t bytes[16])
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, bytes + 12, 4);
}

int wire_cm_ip_parse(const uint8_t bytes[WIRE_CM_IP_BYTES],
		     struct wire_cm_ip *ip)
{
	struct ip_layout l;

	memcpy(&l, bytes, sizeof(l));
	if (l.version != IP_CM_VERSION)
		return -EBADMSG;
	if (l.ip_version >> 4 == 4) {
		ip4_map(ip->src, l.src);
		ip4_map(ip->dst, l.dst);
	} else if (l.ip_version >> 4 == 6) {
		memcpy(ip->src, l.src, sizeof(ip->src));
		memcpy(ip->dst, l.dst, sizeof(ip->dst));
	} else {
		return -EBADMSG;
	}
	ip->port = be16_get(l.port);
	return 0;
}

void wire_cm_ip_build(const struct wire_cm_ip *ip,
		      uint8_t bytes[WIRE_CM_IP_BYTES])
{
	bool ipv4 = wire_is_ipv4(ip->src) && wire_is_ipv4(ip->dst);
	struct ip_layout l = {
		.version = IP_CM_VERSION,
		.ip_version = ipv4 ? 0x40 : 0x60,
		.port = be16_put(ip->port),
	};

	if (ipv4) {
		memcpy(l.src + 12, ip->src + 12, 4);
		memcpy(l.dst + 12, ip->dst + 12, 4);
	} else {
		memcpy(l.src, ip->src, sizeof(l.src));
		memcpy(l.dst, ip->dst, sizeof(l.dst));
	}
	memcpy(bytes, &l, sizeof(l));
}
