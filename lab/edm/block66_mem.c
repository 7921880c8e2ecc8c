/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EDM's memory blocks: their numbers in each map, the 40-bit head, payload and
 * check sums.
 *
 * Bits of a block with a head, counted behind the type (and behind the four
 * bits that replace it in WIRE_MAP_CLAUSE49): 0-8 node, 9-16 id, 17-32 size,
 * 33-35 operation, 36 unit of the size, 37 last chunk, 38-39 class, 40 and up
 * payload or check sum.
 */
#include "block66.h"

#include <string.h>

enum {
	HEAD_BITS = 8 * WIRE_MEM_HEAD_BYTES,
	ID_BIT = 9,
	SIZE_BIT = 17,
	OP_BIT = 33,
	UNIT_BIT = 36,
	LAST_BIT = 37,
	CLASS_BIT = 38,
	SUB_BITS = 4,
	SUB_TYPE = 0x00, /* the type that WIRE_MAP_CLAUSE49 has to itself */
	FIRST_KIND = WIRE_BLOCK_MEM_START,
	KINDS = WIRE_BLOCK_MEM_GRANT - FIRST_KIND + 1,
};

/* Kind of every block type of clause 82, and those of clause 49 beside it. */
#define TYPES_82                              \
	[WIRE_TYPE_IDLE] = WIRE_BLOCK_IDLE,   \
	[WIRE_TYPE_START] = WIRE_BLOCK_START, \
	[WIRE_TYPE_O_C] = WIRE_BLOCK_ORDERED, \
	[WIRE_TYPE_TERM_0] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_1] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_2] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_3] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_4] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_5] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_6] = WIRE_BLOCK_TERM, \
	[WIRE_TYPE_TERM_7] = WIRE_BLOCK_TERM
#define TYPES_49                                        \
	TYPES_82, [WIRE_TYPE_C_O] = WIRE_BLOCK_ORDERED, \
		  [WIRE_TYPE_O_O] = WIRE_BLOCK_ORDERED, \
		  [WIRE_TYPE_C_S] = WIRE_BLOCK_START,   \
		  [WIRE_TYPE_O_S] = WIRE_BLOCK_START

/* Types without a row are 0, which no type has as its kind. */
static const uint8_t kind_of_type[WIRE_MAP_COUNT][256] = {
	[WIRE_MAP_COSET] =
		{TYPES_49, [0x2e] = WIRE_BLOCK_MEM_START,
		 [0x30] = WIRE_BLOCK_MEM_END, [0x48] = WIRE_BLOCK_MEM_SINGLE,
		 [0x56] = WIRE_BLOCK_MEM_NOTIFY, [0x65] = WIRE_BLOCK_MEM_GRANT,
		 [0x7b] = WIRE_BLOCK_MEM_DATA},
	[WIRE_MAP_CLAUSE82] =
		{TYPES_82, [0x00] = WIRE_BLOCK_MEM_START,
		 [0x33] = WIRE_BLOCK_MEM_END, [0x55] = WIRE_BLOCK_MEM_SINGLE,
		 [0x66] = WIRE_BLOCK_MEM_NOTIFY, [0x2d] = WIRE_BLOCK_MEM_GRANT},
	[WIRE_MAP_CLAUSE49] = {TYPES_49},
};

static const uint8_t type_of_kind[WIRE_MAP_COUNT][KINDS] = {
	[WIRE_MAP_COSET] = {0x2e, 0x30, 0x48, 0x7b, 0x56, 0x65},
	[WIRE_MAP_CLAUSE82] = {0x00, 0x33, 0x55, 0x33, 0x66, 0x2d},
};

/* What stands behind SUB_TYPE: six words of the [4,3] parity code, so that a
 * single wrong bit gives no other kind. */
static const uint8_t sub_of_kind[KINDS] = {0x3, 0x5, 0x6, 0x9, 0xa, 0xc};

static enum wire_block_kind kind_of_sub(uint64_t sub)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (sub_of_kind[i] == sub)
			return (enum wire_block_kind)(FIRST_KIND + i);
	return WIRE_BLOCK_BAD_TYPE;
}

enum wire_block_kind wire_block_kind(enum wire_mem_map map,
				     const struct wire_block *b)
{
	uint8_t type = (uint8_t)b->payload;

	if (b->sync == WIRE_SYNC_DATA)
		return WIRE_BLOCK_DATA;
	if (b->sync != WIRE_SYNC_CONTROL)
		return WIRE_BLOCK_BAD_SYNC;
	if (map == WIRE_MAP_CLAUSE49 && type == SUB_TYPE)
		return kind_of_sub(b->payload >> 8 & 0xf);
	if (!kind_of_type[map][type])
		return WIRE_BLOCK_BAD_TYPE;
	return (enum wire_block_kind)kind_of_type[map][type];
}

static bool is_mem(enum wire_block_kind kind)
{
	return kind >= WIRE_BLOCK_MEM_START && kind <= WIRE_BLOCK_MEM_GRANT;
}

static bool has_head(enum wire_block_kind kind)
{
	return kind != WIRE_BLOCK_MEM_END && kind != WIRE_BLOCK_MEM_DATA;
}

uint8_t wire_mem_type(enum wire_mem_map map, enum wire_block_kind kind)
{
	ASSERT(is_mem(kind));
	return type_of_kind[map][kind - FIRST_KIND];
}

/* Bits before the head or the payload. */
static unsigned body_bit(enum wire_mem_map map)
{
	return map == WIRE_MAP_CLAUSE49 ? 8 + SUB_BITS : 8;
}

uint32_t wire_mem_tail_bytes(enum wire_mem_map map)
{
	return (64 - HEAD_BITS - body_bit(map)) / 8;
}

uint32_t wire_mem_room(enum wire_mem_map map, enum wire_block_kind kind)
{
	switch ((int)kind) {
	case WIRE_BLOCK_MEM_START:
	case WIRE_BLOCK_MEM_SINGLE:
		return wire_mem_tail_bytes(map);
	case WIRE_BLOCK_MEM_END:
	case WIRE_BLOCK_MEM_DATA:
		return (64 - body_bit(map)) / 8;
	case WIRE_BLOCK_DATA:
		return 8;
	default:
		return 0;
	}
}

enum wire_block_error wire_mem_head_pack(const struct wire_mem_head *head,
					 uint64_t *bits)
{
	uint32_t size = head->size_bytes;
	uint64_t unit = size > UINT16_MAX;

	if (unit) {
		if (size % WIRE_MEM_SIZE_UNIT || size > WIRE_MEM_SIZE_MAX)
			return WIRE_BLOCK_E_FIELD;
		size /= WIRE_MEM_SIZE_UNIT;
	}
	if (head->node >= WIRE_MEM_NODES || head->op >= WIRE_MEM_OPS ||
	    head->class >= WIRE_MEM_CLASSES)
		return WIRE_BLOCK_E_FIELD;
	*bits = (uint64_t)head->node | (uint64_t)head->id << ID_BIT |
		(uint64_t)size << SIZE_BIT | (uint64_t)head->op << OP_BIT |
		unit << UNIT_BIT | (uint64_t)head->last << LAST_BIT |
		(uint64_t)head->class << CLASS_BIT;
	return WIRE_BLOCK_OK;
}

static enum wire_block_error head_unpack(uint64_t bits,
					 struct wire_mem_head *head)
{
	uint32_t size = (uint32_t)(bits >> SIZE_BIT & 0xffff);

	if (bits >> UNIT_BIT & 1) {
		size *= WIRE_MEM_SIZE_UNIT;
		/* One size has one encoding. */
		if (size <= UINT16_MAX)
			return WIRE_BLOCK_E_FIELD;
	}
	*head = (struct wire_mem_head){
		.size_bytes = size,
		.node = (uint16_t)(bits & 0x1ff),
		.id = (uint8_t)(bits >> ID_BIT),
		.op = (uint8_t)(bits >> OP_BIT & 0x7),
		.class = (uint8_t)(bits >> CLASS_BIT & 0x3),
		.last = bits >> LAST_BIT & 1,
	};
	return head->op < WIRE_MEM_OPS ? WIRE_BLOCK_OK : WIRE_BLOCK_E_FIELD;
}

static uint64_t bytes_get(const uint8_t *p, uint32_t n)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

enum wire_block_error wire_mem_encode(enum wire_mem_map map,
				      enum wire_block_kind kind,
				      const struct wire_mem_head *head,
				      const uint8_t *payload,
				      struct wire_block *b)
{
	unsigned bit = body_bit(map);
	enum wire_block_error e;
	uint64_t v, bits;

	if (!is_mem(kind))
		return WIRE_BLOCK_E_NO_MEM;
	v = type_of_kind[map][kind - FIRST_KIND];
	if (map == WIRE_MAP_CLAUSE49)
		v |= (uint64_t)sub_of_kind[kind - FIRST_KIND] << 8;
	if (has_head(kind)) {
		e = wire_mem_head_pack(head, &bits);
		if (e != WIRE_BLOCK_OK)
			return e;
		v |= bits << bit;
		v |= bytes_get(payload, wire_mem_tail_bytes(map))
		     << (bit + HEAD_BITS);
	} else {
		v |= bytes_get(payload, wire_mem_room(map, kind)) << bit;
	}
	*b = (struct wire_block){v, WIRE_SYNC_CONTROL};
	return WIRE_BLOCK_OK;
}

enum wire_block_error wire_mem_decode(enum wire_mem_map map,
				      const struct wire_block *b,
				      enum wire_block_kind *kind,
				      struct wire_mem_head *head,
				      uint8_t payload[8])
{
	enum wire_block_kind k = wire_block_kind(map, b);
	uint64_t body = b->payload >> body_bit(map);
	struct wire_mem_head h = {0};
	enum wire_block_error e;
	uint32_t n;

	if (k == WIRE_BLOCK_BAD_SYNC)
		return WIRE_BLOCK_E_SYNC;
	if (k == WIRE_BLOCK_BAD_TYPE)
		return WIRE_BLOCK_E_TYPE;
	if (!is_mem(k))
		return WIRE_BLOCK_E_NO_MEM;
	n = wire_mem_room(map, k);
	if (has_head(k)) {
		e = head_unpack(body, &h);
		if (e != WIRE_BLOCK_OK)
			return e;
		body >>= HEAD_BITS;
		n = wire_mem_tail_bytes(map);
	}
	/* Bits that make no whole byte are sent as zero. */
	if (n < 8 && body >> 8 * n)
		return WIRE_BLOCK_E_FIELD;
	memset(payload, 0, 8);
	for (uint32_t i = 0; i < n; i++)
		payload[i] = (uint8_t)(body >> 8 * i);
	*kind = k;
	*head = h;
	return WIRE_BLOCK_OK;
}

/* Four bits at a time: small enough to stand here, fast enough for a model. */
static const uint16_t crc16_nibble[16] = {
	0x0000, 0x1081, 0x2102, 0x3183, 0x4204, 0x5285, 0x6306, 0x7387,
	0x8408, 0x9489, 0xa50a, 0xb58b, 0xc60c, 0xd68d, 0xe70e, 0xf78f,
};

static uint16_t crc16_byte(uint16_t crc, uint8_t byte)
{
	crc = (uint16_t)(crc >> 4 ^ crc16_nibble[(crc ^ byte) & 0xf]);
	return (uint16_t)(crc >> 4 ^ crc16_nibble[(crc ^ byte >> 4) & 0xf]);
}

uint16_t wire_mem_crc16(uint64_t head_bits, const uint8_t *payload,
			uint32_t len_bytes)
{
	uint16_t crc = 0xffff;

	for (unsigned i = 0; i < WIRE_MEM_HEAD_BYTES; i++)
		crc = crc16_byte(crc, (uint8_t)(head_bits >> 8 * i));
	for (uint32_t i = 0; i < len_bytes; i++)
		crc = crc16_byte(crc, payload[i]);
	return (uint16_t)~crc;
}

uint8_t wire_mem_crc8(uint64_t head_bits)
{
	uint8_t crc = 0xff;

	for (unsigned i = 0; i < HEAD_BITS; i++) {
		bool one = (crc ^ (head_bits >> i)) & 1;

		crc = (uint8_t)(crc >> 1 ^ (one ? 0xe0 : 0));
	}
	return (uint8_t)~crc;
}
