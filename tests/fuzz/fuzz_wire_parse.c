/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire_parse on any frame. What it accepts can be built again, and the result
 * parses to the same packet and gives the same text.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "wire/wire.h"

enum {
	IP_AT = WIRE_ETH_BYTES,
	BTH_END_4 = WIRE_IP4_BYTES + WIRE_UDP_BYTES + WIRE_BTH_BYTES,
	BTH_END_6 = WIRE_IP6_BYTES + WIRE_UDP_BYTES + WIRE_BTH_BYTES,
};

static void check_rebuild(const struct wire_pkt *pkt)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt first;
	struct wire_pkt again = {0};
	size_t n = wire_build(pkt, frame);

	ASSERT(n <= WIRE_FRAME_MAX);
	ASSERT(wire_parse(frame, n, &again) == WIRE_OK);
	ASSERT(!memcmp(again.payload, pkt->payload, pkt->payload_len));
	memcpy(&first, pkt, sizeof(first));
	first.payload = again.payload = NULL;
	ASSERT(!memcmp(&first, &again, sizeof(first)));
}

static enum wire_error check(const uint8_t *frame, size_t len_bytes)
{
	struct wire_pkt pkt = {0};
	enum wire_error e = wire_parse(frame, len_bytes, &pkt);

	ASSERT(e <= WIRE_E_PAYLOAD);
	if (e != WIRE_OK)
		return e;
	ASSERT(wire_opcodes[pkt.opcode].name);
	ASSERT(pkt.payload >= frame &&
	       pkt.payload + pkt.payload_len + pkt.pad + WIRE_ICRC_BYTES <=
		       frame + len_bytes);
	check_rebuild(&pkt);
	return e;
}

static void seal_ip4(uint8_t *ip)
{
	uint32_t sum = 0;
	size_t i;

	ip[10] = ip[11] = 0;
	for (i = 0; i < WIRE_IP4_BYTES; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

/* Makes the checksums right, which no mutation finds by itself. */
static void seal(uint8_t *frame, size_t len_bytes)
{
	uint8_t *ip = frame + IP_AT;
	size_t ip_bytes;
	bool ipv4;
	le32 icrc;

	if (len_bytes < IP_AT + BTH_END_4 + WIRE_ICRC_BYTES)
		return;
	ipv4 = ip[0] >> 4 == 4;
	if (ipv4) {
		seal_ip4(ip);
		ip_bytes = (size_t)(ip[2] << 8 | ip[3]);
	} else {
		ip_bytes = WIRE_IP6_BYTES + (size_t)(ip[4] << 8 | ip[5]);
	}
	if (ip_bytes > len_bytes - IP_AT ||
	    ip_bytes < (ipv4 ? BTH_END_4 : BTH_END_6) + sizeof(icrc))
		return;
	ip_bytes -= sizeof(icrc);
	icrc = le32_put(wire_icrc(ip, ip_bytes));
	memcpy(ip + ip_bytes, &icrc, sizeof(icrc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	uint8_t *frame;

	(void)check(data, len_bytes); /* any verdict is fine */
	frame = malloc(len_bytes ? len_bytes : 1);
	ASSERT(frame);
	if (len_bytes)
		memcpy(frame, data, len_bytes);
	seal(frame, len_bytes);
	(void)check(frame, len_bytes); /* any verdict is fine */
	free(frame);
	return 0;
}
