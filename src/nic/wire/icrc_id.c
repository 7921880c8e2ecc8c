/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the IPv4 identification does to an ICRC. A socket neither chooses the
 * identification nor shows it, but the ICRC covers it. CRC is linear: with the
 * 16 bits of the field as a polynomial v and n bytes behind it, the ICRC
 * differs from that of identification 0 by v * x^(16 + 8n) modulo the CRC's
 * polynomial. So a sender patches its ICRC with one multiplication, and a
 * receiver divides to find the one identification that explains what it
 * received, if any does.
 *
 * Registers are reflected, as in crc32_raw: bit 31 stands for x^0.
 */
#include "wire_priv.h"

#define CRC_POLY 0xedb88320u

static uint32_t times_x(uint32_t a)
{
	return a >> 1 ^ (CRC_POLY & -(a & 1));
}

static uint32_t over_x(uint32_t a)
{
	uint32_t top = a >> 31;

	return (a ^ (CRC_POLY & -top)) << 1 | top;
}

static uint32_t multiply(uint32_t a, uint32_t b)
{
	uint32_t sum = 0;

	for (; a; a <<= 1) {
		sum ^= b & -(a >> 31);
		b = times_x(b);
	}
	return sum;
}

void wire_id_table_init(struct wire_id_table *t)
{
	/* The identification stands at byte 4 and 5, the ICRC in the last four:
	 * a packet of 12 bytes would have two between them. */
	uint32_t power = UINT32_C(1) << 31, inverse = power;
	unsigned i;

	for (i = 0; i < 16 + 8 * 2; i++) {
		power = times_x(power);
		inverse = over_x(inverse);
	}
	/* The field's bits are the lower half of a register, from x^16 on. */
	for (i = 0; i < 16; i++)
		power = times_x(power);
	t->power[0] = t->power[1] = t->power[2] = 0;
	t->inverse[0] = t->inverse[1] = t->inverse[2] = 0;
	for (unsigned words = 3; words < WIRE_ID_WORDS; words++) {
		t->power[words] = power;
		t->inverse[words] = inverse;
		for (i = 0; i < 32; i++) {
			power = times_x(power);
			inverse = over_x(inverse);
		}
	}
}

HOT uint32_t wire_id_delta(const struct wire_id_table *t, size_t ip_bytes,
			   uint16_t id)
{
	uint32_t b, sum = 0;
	uint32_t v = (uint32_t)(id >> 8 | (id & 0xff) << 8);

	ASSERT(ip_bytes % 4 == 0 && ip_bytes / 4 < WIRE_ID_WORDS);
	/* multiply() without the upper half, which is zero. */
	b = t->power[ip_bytes / 4];
	for (v <<= 16; v; v <<= 1) {
		sum ^= b & -(v >> 31);
		b = times_x(b);
	}
	return sum;
}

bool wire_id_solve(const struct wire_id_table *t, size_t ip_bytes,
		   uint32_t delta, uint16_t *id)
{
	uint32_t v;

	if (ip_bytes % 4 || ip_bytes / 4 >= WIRE_ID_WORDS)
		return false;
	v = multiply(delta, t->inverse[ip_bytes / 4]);
	if (v >> 16)
		return false;
	*id = (uint16_t)(v >> 8 | (v & 0xff) << 8);
	return true;
}
