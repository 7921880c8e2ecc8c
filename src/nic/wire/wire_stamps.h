/* SPDX-License-Identifier: Apache-2.0 */
/* The frames that are sent and received most, kept ready (stamps.c). */
#ifndef AQ_WIRE_STAMPS_H
#define AQ_WIRE_STAMPS_H

#include "wire_stamp.h"

enum {
	WIRE_STAMP_COUNT = 16,
	WIRE_FLOW_COUNT = 16,
};

struct wire_tx_stamp {
	uint64_t key;	 /* flow, opcode and length; 0: none */
	uint64_t wanted; /* key of the last frame without a stamp */
	struct wire_stamp stamp;
};

struct wire_rx_stamp {
	struct wire_stamp stamp;
	/* For the owner: the flow of a queue pair that these can be for; 0:
	 * none found yet. */
	uint32_t flow;
	bool is_response;
	struct wire_pkt pkt; /* the last packet parsed with this stamp */
	uint64_t wanted;     /* key of the last frame without a stamp */
	uint64_t refused;    /* parsed, but built in another way than ours */
};

/* What all packets of a flow share. */
struct wire_flow {
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
STATIC_ASSERT(sizeof(struct wire_flow) == 54, "compared as bytes: no padding");

struct wire_stamps {
	CACHE_ALIGNED struct wire_tx_stamp tx[WIRE_STAMP_COUNT];
	struct wire_rx_stamp rx[WIRE_STAMP_COUNT];
	struct wire_flow flows[WIRE_FLOW_COUNT];
	uint32_t flow_numbers[WIRE_FLOW_COUNT]; /* 0: unused */
	uint32_t flow_last;			/* number given out */
};

/* Who has equal numbers sends under the same headers; 0 has none. */
uint32_t wire_stamps_flow(struct wire_stamps *st, const struct wire_pkt *out);
/* The packet was built without a stamp: the next one like it may get one. */
void wire_stamps_learn_tx(struct wire_stamps *st, uint32_t flow,
			  const struct wire_pkt *out);
/* What wire_parse would make of the frame; NULL: call wire_parse. Valid until
 * the next call. */
struct wire_rx_stamp *wire_stamps_parse(struct wire_stamps *st,
					const uint8_t *frame, size_t len_bytes);

/* Where stamps for this opcode and length are. */
static inline uint32_t wire_stamps_place(uint32_t opcode, size_t len_bytes)
{
	return (opcode + (uint32_t)(len_bytes >> 4)) % WIRE_STAMP_COUNT;
}

STATIC_ASSERT(WIRE_MTU_MAX < 1 << 16, "a length fits its place in the key");

static inline uint64_t wire_stamps_key(uint32_t flow, uint8_t opcode,
				       bool solicited, uint32_t payload_len)
{
	return (uint64_t)flow << 32 | (uint32_t)opcode << 24 |
	       (uint32_t)solicited << 16 | payload_len;
}

/* The stamp for packets that are sent, or NULL. */
static inline const struct wire_stamp *wire_stamps_find(
	const struct wire_stamps *st, uint32_t flow, uint8_t opcode,
	bool solicited, uint32_t payload_len)
{
	const struct wire_tx_stamp *t =
		&st->tx[wire_stamps_place(opcode, payload_len)];

	return t->key == wire_stamps_key(flow, opcode, solicited,
					 payload_len) &&
			       flow
		       ? &t->stamp
		       : NULL;
}
/* The frame was parsed without a stamp. */
void wire_stamps_learn_rx(struct wire_stamps *st, const struct wire_pkt *pkt,
			  const uint8_t *frame, size_t len_bytes);

#endif
