/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stamps of a NIC, or of a switch's port (see wire_stamp.h): small caches,
 * indexed by opcode and length. One is made when the same kind of frame came
 * twice in a row without one, so that traffic of many kinds does not pay for
 * making them. They belong to flows and not to queue pairs: a thousand
 * connections between two processes share one.
 */
#include "wire_stamps.h"

#include <string.h>

enum {
	OPCODE_AT = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES,
};

/* ---- flows -------------------------------------------------------------- */

uint32_t wire_stamps_flow(struct wire_stamps *st, const struct wire_pkt *out)
{
	struct wire_flow f = {
		.ip_id = out->ip_id,
		.src_port = out->src_port,
		.pkey = out->pkey,
		.tos = out->tos,
		.ttl = out->ttl,
		.mig_req = out->mig_req,
	};
	uint32_t i;

	memcpy(f.dst_mac, out->dst_mac, sizeof(f.dst_mac));
	memcpy(f.src_mac, out->src_mac, sizeof(f.src_mac));
	memcpy(f.src_ip, out->src_ip, sizeof(f.src_ip));
	memcpy(f.dst_ip, out->dst_ip, sizeof(f.dst_ip));
	for (i = 0; i < WIRE_FLOW_COUNT; i++)
		if (st->flow_numbers[i] &&
		    memcmp(&st->flows[i], &f, sizeof(f)) == 0)
			return st->flow_numbers[i];
	/* A number that was forgotten is never given out again. */
	if (st->flow_last == UINT32_MAX)
		return 0;
	i = ++st->flow_last % WIRE_FLOW_COUNT;
	st->flows[i] = f;
	st->flow_numbers[i] = st->flow_last;
	return st->flow_last;
}

/* ---- sending ------------------------------------------------------------ */

void wire_stamps_learn_tx(struct wire_stamps *st, uint32_t flow,
			  const struct wire_pkt *out)
{
	struct wire_tx_stamp *t =
		&st->tx[wire_stamps_place(out->opcode, out->payload_len)];
	uint64_t key = wire_stamps_key(flow, out->opcode, out->solicited,
				       out->payload_len);

	if (flow && t->wanted == key && wire_stamp_make(&t->stamp, out))
		t->key = key;
	t->wanted = key;
}

/* ---- receiving ---------------------------------------------------------- */

HOT struct wire_rx_stamp *wire_stamps_parse(struct wire_stamps *st,
					    const uint8_t *frame,
					    size_t len_bytes)
{
	struct wire_rx_stamp *r;

	if (UNLIKELY(len_bytes < WIRE_STAMP_FRAME_MIN))
		return NULL;
	r = &st->rx[wire_stamps_place(frame[OPCODE_AT], len_bytes)];
	return wire_stamp_parse(&r->stamp, frame, len_bytes, &r->pkt) ? r
								      : NULL;
}

/* Something that differs between flows; whether it really is the same flow is
 * for wire_stamp_parse to find out. Not 0. */
static uint64_t rx_key(const struct wire_pkt *pkt)
{
	uint32_t peer;

	memcpy(&peer, pkt->src_ip + 12, sizeof(peer));
	return (uint64_t)peer << 32 |
	       (uint32_t)(pkt->opcode ^ pkt->src_port) << 16 |
	       pkt->payload_len | 1u << 15;
}

void wire_stamps_learn_rx(struct wire_stamps *st, const struct wire_pkt *pkt,
			  const uint8_t *frame, size_t len_bytes)
{
	struct wire_rx_stamp *r =
		&st->rx[wire_stamps_place(pkt->opcode, len_bytes)];
	uint64_t key = rx_key(pkt);
	struct wire_rx_stamp new;

	if (r->wanted != key || r->refused == key) {
		r->wanted = key;
		return;
	}
	new.pkt = *pkt;
	/* Made from what was parsed, because a peer could change the frame in
	 * between; whether it is like the frame shows now. */
	if (wire_stamp_make(&new.stamp, pkt) &&
	    wire_stamp_parse(&new.stamp, frame, len_bytes, &new.pkt)) {
		r->stamp = new.stamp;
		r->pkt = *pkt;
		r->flow = 0;
		r->is_response =
			wire_opcodes[pkt->opcode].flags & WIRE_OP_RESPONSE;
	} else {
		r->refused = key;
	}
}
