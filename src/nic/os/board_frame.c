/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of frames; what to do with frames is left to the links. */
#include "board_frame.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include "wire/wire.h"

enum {
	TCP_SUM_AT = 16,
	UDP_SUM_AT = 6,
};

bool frame_is_roce(const uint8_t *f, size_t len_bytes, bool *ipv4)
{
	const uint8_t *ip = f + WIRE_ETH_BYTES;

	if (len_bytes < WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES)
		return false;
	*ipv4 = frame_load16(f + 12) == ETH_P_IP;
	if (*ipv4)
		return ip[0] == 0x45 && ip[9] == IPPROTO_UDP &&
		       frame_load16(ip + WIRE_IP4_BYTES + 2) == WIRE_UDP_PORT;
	return frame_load16(f + 12) == ETH_P_IPV6 &&
	       len_bytes >= WIRE_ETH_BYTES + WIRE_IP6_BYTES + WIRE_UDP_BYTES &&
	       ip[6] == IPPROTO_UDP &&
	       frame_load16(ip + WIRE_IP6_BYTES + 2) == WIRE_UDP_PORT;
}

static uint64_t add(uint64_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2)
		sum += frame_load16(p);
	return n ? sum + ((uint32_t)p[0] << 8) : sum;
}

static uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void put(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

void frame_sum_finish(uint8_t *f, size_t len_bytes, size_t start, size_t offset)
{
	size_t at = start + offset;
	unsigned sum;

	if (at + 2 > len_bytes)
		return;
	sum = fold(add(0, f + start, len_bytes - start)) ^ 0xffffu;
	put(f + at, sum ? sum : 0xffff);
}

void frame_sum_udp6(uint8_t *f, size_t len_bytes)
{
	uint8_t *ip = f + WIRE_ETH_BYTES;
	size_t start = WIRE_ETH_BYTES + WIRE_IP6_BYTES;
	size_t udp_bytes = len_bytes - start;

	put(f + start + UDP_SUM_AT,
	    fold(add(IPPROTO_UDP + udp_bytes, ip + 8, 32)));
	frame_sum_finish(f, len_bytes, start, UDP_SUM_AT);
}

/* Where the transport begins, and the pseudo header's sum; 0: not one of
 * these. */
static size_t transport(const uint8_t *f, size_t len_bytes, uint8_t *proto,
			size_t *end, uint16_t *pseudo)
{
	const uint8_t *ip = f + WIRE_ETH_BYTES;
	size_t head = WIRE_IP4_BYTES, left = len_bytes - WIRE_ETH_BYTES;
	size_t bytes;

	if (len_bytes < WIRE_ETH_BYTES + WIRE_IP4_BYTES)
		return 0;
	if (frame_load16(f + 12) == ETH_P_IP && ip[0] == 0x45 &&
	    (frame_load16(ip + 6) & 0x3fff) == 0) { /* no fragment */
		bytes = frame_load16(ip + 2);
		*proto = ip[9];
	} else if (frame_load16(f + 12) == ETH_P_IPV6 &&
		   left >= WIRE_IP6_BYTES) {
		head = WIRE_IP6_BYTES;
		bytes = head + frame_load16(ip + 4);
		*proto = ip[6];
	} else {
		return 0;
	}
	if (bytes < head || bytes > left)
		return 0;
	bytes -= head;
	*pseudo =
		fold(head == WIRE_IP4_BYTES ? add(*proto + bytes, ip + 12, 8)
					    : add(*proto + bytes, ip + 8, 32));
	*end = WIRE_ETH_BYTES + head + bytes;
	return WIRE_ETH_BYTES + head;
}

void frame_mend(uint8_t *f, size_t len_bytes)
{
	uint8_t proto = 0;
	uint16_t pseudo = 0;
	size_t end = 0, at,
	       start = transport(f, len_bytes, &proto, &end, &pseudo);

	if (!start || (proto != IPPROTO_TCP && proto != IPPROTO_UDP))
		return;
	at = proto == IPPROTO_TCP ? TCP_SUM_AT : UDP_SUM_AT;
	if (start + at + 2 > end || frame_load16(f + start + at) != pseudo ||
	    fold(add(pseudo, f + start, end - start)) == 0xffff)
		return;
	frame_sum_finish(f, end, start, at);
}
