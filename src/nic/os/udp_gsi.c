/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Management datagrams to the plain queue pair 1 are for the machine, not for
 * one of its processes. An answer carries the number of the one who asked, with
 * its slot on top; a request is handed in at the lease of its port.
 */
#include <string.h>
#include <unistd.h>

#include "base/lease.h"
#include "udp.h"
#include "wire/cm_msg.h"

enum {
	DETH_BYTES = 8,
	GSI_BYTES =
		WIRE_BTH_BYTES + DETH_BYTES + WIRE_MAD_BYTES + WIRE_ICRC_BYTES,
};

STATIC_ASSERT(NIC_SLOT_COUNT == 1 << (32 - WIRE_CM_ID_BITS),
	      "a slot fits above a number");

static bool is_request(const struct wire_cm_msg *m)
{
	return m->kind == WIRE_CM_REQ || m->kind == WIRE_CM_SIDR_REQ;
}

static bool peek(const uint8_t *payload, size_t len, struct wire_cm_msg *m)
{
	return len == GSI_BYTES && wire_peek_qpn(payload) == WIRE_GSI_QPN &&
	       wire_cm_parse(payload + WIRE_BTH_BYTES + DETH_BYTES,
			     WIRE_MAD_BYTES, m) == 0;
}

uint32_t udp_gsi_slot(const struct udp_port *u, const uint8_t *payload,
		      size_t len)
{
	uint32_t own = u->path.host->slot;
	struct wire_cm_msg m;
	uint32_t slot;

	if (!peek(payload, len, &m) || is_request(&m))
		return own;
	slot = (m.kind == WIRE_CM_SIDR_REP ? m.local_id : m.remote_id) >>
	       WIRE_CM_ID_BITS;
	/* 0: a rejection by somebody who never heard our number. */
	return slot ? slot : own;
}

bool udp_gsi_hand_in(struct udp_port *u, const uint8_t *frame,
		     size_t frame_bytes)
{
	struct os_host *h = u->path.host;
	struct lease_msg msg = {.kind = LEASE_MAD};
	struct lease_port port;
	struct wire_cm_msg m;
	struct wire_cm_ip ip;
	struct wire_pkt pkt;
	bool done;
	int fd;

	if (wire_parse(frame, frame_bytes, &pkt) != WIRE_OK ||
	    pkt.opcode != WIRE_UD_SEND_ONLY || pkt.dest_qpn != WIRE_GSI_QPN ||
	    pkt.qkey != WIRE_GSI_QKEY ||
	    wire_cm_parse(pkt.payload, pkt.payload_len, &m) ||
	    !is_request(&m) || m.service_id >> 32 ||
	    wire_cm_ip_parse(m.private_data, &ip))
		return false;
	port = (struct lease_port){.ps = (uint16_t)(m.service_id >> 16),
				   .port = (uint16_t)m.service_id};
	memcpy(port.ip, ip.dst, sizeof(port.ip));
	if (lease_connect(&h->sockets, &port, &fd))
		return false;
	msg.qpn = pkt.src_qpn;
	memcpy(msg.gid, pkt.src_ip, sizeof(msg.gid));
	memcpy(msg.local_gid, pkt.dst_ip, sizeof(msg.local_gid));
	memcpy(msg.mad, pkt.payload, sizeof(msg.mad));
	done = lease_send(fd, &msg) == 0;
	close(fd); /* what was sent is read all the same */
	if (done)
		h->stats->udp_handed_in++;
	return done;
}
