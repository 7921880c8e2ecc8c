/* SPDX-License-Identifier: Apache-2.0 */
/* Looks into frames of RoCEv2, as little as needed. */
#include "net_roce.h"

#include <endian.h>
#include <string.h>

#include "edm_units.h"
#include "wire/wire.h"

enum {
	ETHER_IPV4 = 0x0800,
	ETHER_IPV6 = 0x86dd,
	ATOMIC_BYTES = 8,
};

const uint8_t *net_bth(const struct sim_frame *frame)
{
	const uint8_t *b = frame->bytes;
	uint32_t at;

	if (frame->len_bytes < 14)
		return NULL;
	switch (b[12] << 8 | b[13]) {
	case ETHER_IPV4:
		at = 14 + 20 + 8;
		break;
	case ETHER_IPV6:
		at = 14 + 40 + 8;
		break;
	default:
		return NULL;
	}
	/* The shortest one has an ICRC behind its header. */
	if (frame->len_bytes < at + NET_BTH_BYTES + 4 ||
	    (b[at - 6] << 8 | b[at - 5]) != WIRE_UDP_PORT)
		return NULL;
	return b + at;
}

uint32_t net_inner_bytes(const struct sim_frame *frame, const uint8_t *bth)
{
	return frame->len_bytes - (uint32_t)(bth - frame->bytes) - 4;
}

uint32_t net_psn(const uint8_t *bth)
{
	return (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
}

uint32_t net_answer_bytes(const struct sim_frame *frame, const uint8_t *bth,
			  uint32_t mtu_bytes)
{
	uint32_t len, word;

	switch (wire_opcodes[*bth].kind) {
	case WIRE_ATOMIC:
		return NET_BTH_BYTES + NET_AETH_BYTES + ATOMIC_BYTES;
	case WIRE_READ:
		/* RETH: address, key, length. */
		if (net_inner_bytes(frame, bth) < NET_BTH_BYTES + 16)
			return 0;
		memcpy(&word, bth + NET_BTH_BYTES + 12, sizeof(word));
		len = be32toh(word);
		if (len > EDM_MESSAGE_MAX / 2)
			return 0;
		return u32_max(len, 1) +
		       (len / mtu_bytes + 1) * (NET_BTH_BYTES + NET_AETH_BYTES);
	default:
		return 0;
	}
}
