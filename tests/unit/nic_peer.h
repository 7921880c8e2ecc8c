/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile or broken peer: packets made by hand against either end of a
 * connection, and the counters that they reach. */
#ifndef AQ_TEST_NIC_PEER_H
#define AQ_TEST_NIC_PEER_H

#include "nic_pair.h"

enum {
	MTU = 256,
	CANARY = 0x5a,
};

static uint64_t reached[NIC_COUNTER_COUNT];
static const uint8_t payload[WIRE_MTU_MAX];

static inline void begin(struct conn *c)
{
	conn_init(c, IBV_MTU_256);
	memset(c->e[1].mem, CANARY, END_BYTES);
}

static inline void done(struct conn *c)
{
	unsigned i;

	for (i = 0; i < NIC_COUNTER_COUNT; i++)
		reached[i] += counter(&c->e[0], i) + counter(&c->e[1], i);
	conn_release(c);
}

static inline void assert_untouched(const struct end *e)
{
	unsigned i;

	for (i = 0; i < END_BYTES; i++)
		assert_int_equal(e->mem[i], CANARY);
}

/* From end 0 to end 1, with `len` bytes of payload. */
static inline struct wire_pkt request(const struct conn *c, uint8_t opcode,
				      uint32_t psn_off, uint32_t len)
{
	struct wire_pkt pkt =
		packet(&c->e[0], &c->e[1], opcode, END_PSN + psn_off);

	pkt.payload = payload;
	pkt.payload_len = len;
	pkt.dma_len = len;
	return pkt;
}

static inline void send_request(struct conn *c, uint8_t opcode,
				uint32_t psn_off, uint32_t len)
{
	struct wire_pkt pkt = request(c, opcode, psn_off, len);

	inject(&c->e[1], &pkt);
}

/* Back from end 1 to end 0, for the request with number END_PSN + off. */
static inline struct wire_pkt response(const struct conn *c, uint8_t opcode,
				       uint32_t psn_off, uint32_t len)
{
	struct wire_pkt pkt =
		packet(&c->e[1], &c->e[0], opcode, END_PSN + psn_off);

	pkt.payload = payload;
	pkt.payload_len = len;
	return pkt;
}

static inline void send_response(struct conn *c, uint8_t opcode,
				 uint32_t psn_off, uint32_t len)
{
	struct wire_pkt pkt = response(c, opcode, psn_off, len);

	inject(&c->e[0], &pkt);
}

static inline void send_ack(struct conn *c, uint8_t syndrome, uint32_t psn_off)
{
	struct wire_pkt pkt = response(c, WIRE_RC_ACK, psn_off, 0);

	pkt.syndrome = syndrome;
	inject(&c->e[0], &pkt);
}

#endif
