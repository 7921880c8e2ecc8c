/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that are sent and received most, kept ready (stamps.c). */
#ifndef AQ_NIC_STAMPS_H
#define AQ_NIC_STAMPS_H

#include "base/base.h"
#include "wire/wire.h"
#include "wire/wire_stamp.h"

struct nic_qp;

enum {
	STAMP_COUNT = 16,
	FLOW_COUNT = 16,
};

struct tx_stamp {
	uint64_t key;	 /* flow, opcode and length; 0: none */
	uint64_t wanted; /* key of the last frame without a stamp */
	struct wire_stamp stamp;
};

struct rx_stamp {
	struct wire_stamp stamp;
	/* The flow of a queue pair that these can be for; 0: none found yet. */
	uint32_t flow;
	bool is_response;
	struct wire_pkt pkt; /* the last packet parsed with this stamp */
	uint64_t wanted;     /* key of the last frame without a stamp */
	uint64_t refused;    /* parsed, but built in another way than ours */
};

/* What all packets of a flow share. */
struct flow {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
	uint16_t ip_id;
	uint16_t src_port;
	uint16_t pkey;
	uint8_t tos;
	uint8_t ttl;
	uint8_t mig_req;
	uint8_t reserved;
};
STATIC_ASSERT(sizeof(struct flow) == 54, "compared as bytes: no padding");

struct stamps {
	CACHE_ALIGNED struct tx_stamp tx[STAMP_COUNT];
	struct rx_stamp rx[STAMP_COUNT];
	struct flow flows[FLOW_COUNT];
	uint32_t flow_numbers[FLOW_COUNT]; /* 0: unused */
	uint32_t flow_last;		   /* number given out */
};

/* Queue pairs with equal numbers send under the same headers; 0 has none. */
uint32_t flow_number(struct stamps *st, const struct wire_pkt *out);
/* qp->out was built without a stamp: the next packet like it may get one. */
void stamp_learn_tx(struct nic_qp *qp);
/* What wire_parse would make of the frame; NULL: call wire_parse. Valid until
 * the next call. */
struct rx_stamp *stamp_parse(struct stamps *st, const uint8_t *frame,
			     size_t len_bytes);

/* Where stamps for this opcode and length are. */
static inline uint32_t stamp_place(uint32_t opcode, size_t len_bytes)
{
	return (opcode + (uint32_t)(len_bytes >> 4)) % STAMP_COUNT;
}

STATIC_ASSERT(WIRE_MTU_MAX < 1 << 16, "a length fits its place in the key");

static inline uint64_t stamp_key(uint32_t flow, uint8_t opcode, bool solicited,
				 uint32_t payload_len)
{
	return (uint64_t)flow << 32 | (uint32_t)opcode << 24 |
	       (uint32_t)solicited << 16 | payload_len;
}

/* The stamp for packets that are sent, or NULL. */
static inline const struct wire_stamp *stamp_for(const struct stamps *st,
						 uint32_t flow, uint8_t opcode,
						 bool solicited,
						 uint32_t payload_len)
{
	const struct tx_stamp *t = &st->tx[stamp_place(opcode, payload_len)];

	return t->key == stamp_key(flow, opcode, solicited, payload_len) && flow
		       ? &t->stamp
		       : NULL;
}
/* The frame was parsed without a stamp. */
void stamp_learn_rx(struct stamps *st, const struct wire_pkt *pkt,
		    const uint8_t *frame, size_t len_bytes);

#endif
