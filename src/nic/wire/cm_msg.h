/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the InfiniBand communication manager (IBA vol. 1, chapter 12):
 * management datagrams of 256 bytes that travel between queue pairs 1. Also the
 * header with which they carry IP addresses and ports (annex A11). Parse and
 * build are inverses on everything but reserved bits.
 */
#ifndef AQ_CM_MSG_H
#define AQ_CM_MSG_H

#include "base/base.h"

enum {
	WIRE_MAD_BYTES = 256,
	WIRE_GSI_QPN = 1,
	WIRE_CM_PRIVATE_MAX = 224,
	WIRE_CM_ARI_MAX = 72,
	WIRE_CM_IP_BYTES = 36, /* in front of the private data of requests */
	/* The bits above it are the slot of the process, so that a receiver for
	 * the machine knows the process of an answer. */
	WIRE_CM_ID_BITS = 22,
};

#define WIRE_GSI_QKEY 0x80010000u

enum wire_cm_kind {
	WIRE_CM_REQ = 0x10,
	WIRE_CM_MRA,
	WIRE_CM_REJ,
	WIRE_CM_REP,
	WIRE_CM_RTU,
	WIRE_CM_DREQ,
	WIRE_CM_DREP,
	WIRE_CM_SIDR_REQ,
	WIRE_CM_SIDR_REP,
};

/* Which message is rejected, or will take longer to answer. */
enum wire_cm_about {
	WIRE_CM_ABOUT_REQ = 0,
	WIRE_CM_ABOUT_REP = 1,
	WIRE_CM_ABOUT_OTHER = 2,
};

enum wire_cm_reason {
	WIRE_CM_REJ_NO_QP = 1,
	WIRE_CM_REJ_NO_RESOURCES = 3,
	WIRE_CM_REJ_TIMEOUT = 4,
	WIRE_CM_REJ_UNKNOWN_ID = 6,
	WIRE_CM_REJ_SERVICE_ID = 8,
	WIRE_CM_REJ_STALE = 10,
	WIRE_CM_REJ_MTU = 26, /* the largest possible one beside it */
	WIRE_CM_REJ_CONSUMER = 28,
	WIRE_CM_REJ_VENDOR_OPTION = 35,
};

enum wire_cm_sidr_status {
	WIRE_CM_SIDR_OK = 0,
	WIRE_CM_SIDR_UNSUPPORTED = 1, /* no process listens */
	WIRE_CM_SIDR_REJECT = 2,
};

/* The path of a request. The alternate path is not used. */
struct wire_cm_path {
	uint16_t slid;
	uint16_t dlid;
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint32_t flow_label;
	uint8_t rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	bool subnet_local;
	uint8_t ack_timeout;
};

/* One message in host form; only the members of its kind are meaningful, the
 * others are zero after parsing. */
struct wire_cm_msg {
	uint16_t kind;
	uint64_t tid;
	uint32_t local_id;  /* of the sender; SIDR: the request's number */
	uint32_t remote_id; /* of the receiver */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qpn;
	uint32_t qkey;
	uint32_t psn;
	uint16_t pkey;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t transport; /* 0: RC */
	bool flow_control;
	bool srq;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t mtu;		/* as enum ibv_mtu */
	uint8_t remote_timeout; /* 4.096 us * 2^n, here and below */
	uint8_t local_timeout;
	uint8_t max_retries;
	struct wire_cm_path path;
	uint8_t ack_delay;
	uint8_t failover;
	uint8_t about;		 /* MRA, REJ */
	uint8_t service_timeout; /* MRA */
	uint16_t reason;	 /* REJ */
	uint8_t ari_len;
	uint8_t ari[WIRE_CM_ARI_MAX];
	/* Enhanced connection establishment, in REQ and REP (IBA A19). */
	uint32_t ece_vendor; /* 24 bits */
	uint32_t ece_options;
	uint8_t status; /* SIDR REP */
	uint8_t private_len;
	uint8_t private_data[WIRE_CM_PRIVATE_MAX];
};

/* -EBADMSG: not 256 bytes, not a CM message, or of a kind not listed above. */
int wire_cm_parse(const uint8_t *mad, size_t len_bytes,
		  struct wire_cm_msg *msg) MUST_CHECK;

/* Private data beyond private_len is zero. Longer private data than the kind
 * has room for is a bug of the caller. */
void wire_cm_build(const struct wire_cm_msg *msg, uint8_t mad[WIRE_MAD_BYTES]);

/* Bytes of private data that a kind carries; 0 for what is no kind. */
uint8_t wire_cm_private_bytes(uint16_t kind);

/* Addresses are IPv4-mapped or IPv6. */
struct wire_cm_ip {
	uint16_t port; /* of the sender */
	uint8_t src[16];
	uint8_t dst[16];
};

/* -EBADMSG: another version, or an IP version that is neither 4 nor 6. */
int wire_cm_ip_parse(const uint8_t bytes[WIRE_CM_IP_BYTES],
		     struct wire_cm_ip *ip) MUST_CHECK;
void wire_cm_ip_build(const struct wire_cm_ip *ip,
		      uint8_t bytes[WIRE_CM_IP_BYTES]);

#endif
