/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stamps of a NIC (see wire_stamp.h): small caches, indexed by opcode and
 * length. One is made when the same kind of frame came twice in a row without
 * one, so that traffic of many kinds does not pay for making them. They belong
 * to flows and not to queue pairs: a thousand connections between two processes
 * share one.
 */
#include "nic_priv.h"

enum {
	OPCODE_AT = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES,
};

static inline uint32_t place(uint32_t opcode, size_t len_bytes)
{
	return (opcode + (uint32_t)(len_bytes >> 4)) % STAMP_COUNT;
}

/* ---- flows -------------------------------------------------------------- */

uint32_t flow_number(struct stamps *st, const struct wire_pkt *out)
{
	struct flow f = {
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
	for (i = 0; i < FLOW_COUNT; i++)
		if (st->flow_numbers[i] &&
		    memcmp(&st->flows[i], &f, sizeof(f)) == 0)
			return st->flow_numbers[i];
	/* A number that was forgotten is never given out again. */
	if (st->flow_last == UINT32_MAX)
		return 0;
	i = ++st->flow_last % FLOW_COUNT;
	st->flows[i] = f;
	st->flow_numbers[i] = st->flow_last;
	return st->flow_last;
}

/* ---- sending ------------------------------------------------------------ */

STATIC_ASSERT(WIRE_MTU_MAX < 1 << 16, "a length fits its place in the key");

static inline uint64_t tx_key(const struct nic_qp *qp)
{
	const struct wire_pkt *out = &qp->out;

	return (uint64_t)qp->flow << 32 | (uint32_t)out->opcode << 24 |
	       (uint32_t)out->solicited << 16 | out->payload_len;
}

HOT const struct wire_stamp *stamp_for(struct nic_qp *qp)
{
	const struct tx_stamp *t =
		&qp->nic->stamps.tx[place(qp->out.opcode, qp->out.payload_len)];

	return t->key == tx_key(qp) && qp->flow ? &t->stamp : NULL;
}

void stamp_learn_tx(struct nic_qp *qp)
{
	struct tx_stamp *t =
		&qp->nic->stamps.tx[place(qp->out.opcode, qp->out.payload_len)];
	uint64_t key = tx_key(qp);

	if (qp->flow && t->wanted == key &&
	    wire_stamp_make(&t->stamp, &qp->out))
		t->key = key;
	t->wanted = key;
}

/* ---- receiving ---------------------------------------------------------- */

HOT const struct wire_pkt *stamp_parse(struct stamps *st, const uint8_t *frame,
				       size_t len_bytes)
{
	struct rx_stamp *r;

	if (UNLIKELY(len_bytes < WIRE_STAMP_FRAME_MIN))
		return NULL;
	r = &st->rx[place(frame[OPCODE_AT], len_bytes)];
	return wire_stamp_parse(&r->stamp, frame, len_bytes, &r->pkt) ? &r->pkt
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

void stamp_learn_rx(struct stamps *st, const struct wire_pkt *pkt,
		    const uint8_t *frame, size_t len_bytes)
{
	struct rx_stamp *r = &st->rx[place(pkt->opcode, len_bytes)];
	uint64_t key = rx_key(pkt);
	struct rx_stamp new;

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
	} else {
		r->refused = key;
	}
}
