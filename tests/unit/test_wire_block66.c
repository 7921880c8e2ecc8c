/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 66-bit blocks: known blocks of the standard, every type there and back, what
 * must be refused, and the properties that the maps of memory blocks claim.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "edm/block66.h"

#define IDLE8                                                  \
	{                                                      \
		0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07 \
	}

/* Written down from clause 49, not computed by our code. */
static const struct known {
	struct wire_xgmii chars;
	struct wire_block block;
} known[] = {
	{{IDLE8, 0xff}, {0x000000000000001e, WIRE_SYNC_CONTROL}},
	/* Preamble and start frame delimiter. */
	{{{0xfb, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5}, 0x01},
	 {0xd555555555555578, WIRE_SYNC_CONTROL}},
	{{{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07}, 0x00},
	 {0x0706050403020100, WIRE_SYNC_DATA}},
	{{{0xfd, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07}, 0xff},
	 {0x0000000000000087, WIRE_SYNC_CONTROL}},
	{{{0xa1, 0xfd, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07}, 0xfe},
	 {0x000000000000a199, WIRE_SYNC_CONTROL}},
	{{{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0xfd}, 0x80},
	 {0x77665544332211ff, WIRE_SYNC_CONTROL}},
	{{{0x07, 0x07, 0x07, 0x07, 0xfb, 0x55, 0x55, 0x55}, 0x1f},
	 {0x5555550000000033, WIRE_SYNC_CONTROL}},
	/* Local fault: a sequence ordered set in each half. */
	{{{0x9c, 0x00, 0x00, 0x01, 0x9c, 0x00, 0x00, 0x01}, 0x11},
	 {0x0100000001000055, WIRE_SYNC_CONTROL}},
	{{{0x9c, 0x00, 0x00, 0x02, 0x07, 0x07, 0x07, 0x07}, 0xf1},
	 {0x000000000200004b, WIRE_SYNC_CONTROL}},
	/* Eight error characters: 0x1e eight times in seven bits. */
	{{{0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe}, 0xff},
	 {0x3c78f1e3c78f1e1e, WIRE_SYNC_CONTROL}},
};

static void known_blocks(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		struct wire_block b = {0};
		struct wire_xgmii x;

		assert_int_equal(wire_block_encode(&known[i].chars, &b), 0);
		assert_int_equal(b.sync, known[i].block.sync);
		assert_true(b.payload == known[i].block.payload);
		assert_int_equal(wire_block_decode(&b, &x), 0);
		assert_memory_equal(&x, &known[i].chars, sizeof(x));
	}
}

static const uint8_t standard_types[WIRE_BLOCK_TYPES] = {
	0x1e, 0x2d, 0x33, 0x66, 0x55, 0x78, 0x4b, 0x87,
	0x99, 0xaa, 0xb4, 0xcc, 0xd2, 0xe1, 0xff,
};

/* The places of each type, an independent statement of table 49-5. */
static const char *const standard_chars[WIRE_BLOCK_TYPES] = {
	"CCCCCCCC", "CCCCODDD", "CCCCSDDD", "ODDDSDDD", "ODDDODDD",
	"SDDDDDDD", "ODDDCCCC", "TCCCCCCC", "DTCCCCCC", "DDTCCCCC",
	"DDDTCCCC", "DDDDTCCC", "DDDDDTCC", "DDDDDDTC", "DDDDDDDT",
};

static struct wire_xgmii random_chars(struct rng *r, const char *places)
{
	static const uint8_t control[] = {0x07, 0x06, 0xfe, 0x1c, 0x3c,
					  0x7c, 0xbc, 0xdc, 0xf7};
	struct wire_xgmii x = {{0}, 0};

	for (unsigned i = 0; i < 8; i++) {
		x.control |= (uint8_t)((places[i] != 'D') << i);
		switch (places[i]) {
		case 'D':
			x.character[i] = (uint8_t)rng_u64(r);
			break;
		case 'C':
			x.character[i] =
				control[rng_below(r, ARRAY_LEN(control))];
			break;
		case 'O':
			x.character[i] = rng_below(r, 2) ? 0x9c : 0x5c;
			break;
		default:
			x.character[i] = places[i] == 'S' ? 0xfb : 0xfd;
			break;
		}
	}
	return x;
}

static void every_type_round_trip(void **state)
{
	struct rng r;

	rng_init(&r, 1);
	for (unsigned t = 0; t < WIRE_BLOCK_TYPES; t++) {
		for (unsigned n = 0; n < 2000; n++) {
			struct wire_xgmii x =
				random_chars(&r, standard_chars[t]);
			struct wire_xgmii y;
			struct wire_block b;

			assert_int_equal(wire_block_encode(&x, &b), 0);
			assert_int_equal(b.sync, WIRE_SYNC_CONTROL);
			assert_int_equal(b.payload & 0xff, standard_types[t]);
			assert_int_equal(wire_block_decode(&b, &y), 0);
			assert_memory_equal(&x, &y, sizeof(x));
		}
	}
}

static void invalid_blocks_refused(void **state)
{
	struct wire_xgmii x;
	struct wire_block b = {0x1e, 0};
	unsigned known_types = 0;

	assert_int_equal(wire_block_decode(&b, &x), WIRE_BLOCK_E_SYNC);
	b.sync = 3;
	assert_int_equal(wire_block_decode(&b, &x), WIRE_BLOCK_E_SYNC);
	for (unsigned type = 0; type < 256; type++) {
		enum wire_block_error e;

		b = (struct wire_block){type, WIRE_SYNC_CONTROL};
		e = wire_block_decode(&b, &x);
		known_types += e == WIRE_BLOCK_OK;
		assert_true(e == WIRE_BLOCK_OK || e == WIRE_BLOCK_E_TYPE);
		assert_true((e == WIRE_BLOCK_OK) ==
			    !!memchr(standard_types, (int)type,
				     sizeof(standard_types)));
	}
	assert_int_equal(known_types, WIRE_BLOCK_TYPES);
	/* A control code and an O code without a meaning. */
	b = (struct wire_block){0x1e | 0x01 << 8, WIRE_SYNC_CONTROL};
	assert_int_equal(wire_block_decode(&b, &x), WIRE_BLOCK_E_CODE);
	b = (struct wire_block){0x4b | UINT64_C(0x7) << 32, WIRE_SYNC_CONTROL};
	assert_int_equal(wire_block_decode(&b, &x), WIRE_BLOCK_E_CODE);
}

static void invalid_characters_refused(void **state)
{
	static const struct wire_xgmii bad[] = {
		{{0x07, 0x07, 0xfb, 0x07, 0x07, 0x07, 0x07, 0x07}, 0xff},
		{{0xfb, 0x55, 0x55, 0x55, 0xfd, 0x07, 0x07, 0x07}, 0xf1},
		{{0x00, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07}, 0xff},
		{{0x00, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07, 0x07}, 0xfe},
		{{0xfd, 0x07, 0x07, 0x07, 0xfb, 0x55, 0x55, 0x55}, 0x1f},
	};
	struct wire_block b = {42, 7};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(wire_block_encode(&bad[i], &b),
				 WIRE_BLOCK_E_CHARS);
		assert_int_equal(b.payload, 42);
	}
}

static const enum wire_block_kind mem_kinds[] = {
	WIRE_BLOCK_MEM_START, WIRE_BLOCK_MEM_END,    WIRE_BLOCK_MEM_SINGLE,
	WIRE_BLOCK_MEM_DATA,  WIRE_BLOCK_MEM_NOTIFY, WIRE_BLOCK_MEM_GRANT,
};

static bool kind_has_head(enum wire_block_kind k)
{
	return k != WIRE_BLOCK_MEM_END && k != WIRE_BLOCK_MEM_DATA;
}

static void memory_round_trip(void **state)
{
	struct rng r;

	rng_init(&r, 2);
	for (unsigned n = 0; n < 60000; n++) {
		enum wire_mem_map map = n % WIRE_MAP_COUNT;
		enum wire_block_kind k = mem_kinds[n / 3 % 6], got;
		struct wire_mem_head h = {0}, back;
		uint8_t in[8] = {0}, out[8];
		struct wire_block b;
		uint32_t len = kind_has_head(k) ? wire_mem_tail_bytes(map)
						: wire_mem_room(map, k);

		rng_fill(&r, in, len);
		if (kind_has_head(k)) {
			h.node = (uint16_t)rng_below(&r, WIRE_MEM_NODES);
			h.id = (uint8_t)rng_u64(&r);
			h.op = (uint8_t)rng_below(&r, WIRE_MEM_OPS);
			h.class = (uint8_t)rng_below(&r, WIRE_MEM_CLASSES);
			h.last = rng_below(&r, 2);
			h.size_bytes = (uint32_t)rng_below(&r, 65536);
			if (rng_below(&r, 2))
				h.size_bytes = 64 * (uint32_t)rng_between(
							    &r, 1024, 65535);
		}
		assert_int_equal(wire_mem_encode(map, k, &h, in, &b), 0);
		assert_int_equal(wire_mem_decode(map, &b, &got, &back, out), 0);
		if (map == WIRE_MAP_CLAUSE82 && k == WIRE_BLOCK_MEM_DATA)
			k = WIRE_BLOCK_MEM_END; /* shares its number */
		assert_int_equal(got, k);
		assert_memory_equal(in, out, 8);
		assert_int_equal(back.size_bytes, h.size_bytes);
		assert_int_equal(back.node, h.node);
		assert_int_equal(back.id, h.id);
		assert_int_equal(back.op, h.op);
		assert_int_equal(back.class, h.class);
		assert_int_equal(back.last, h.last);
	}
}

static void memory_fields_checked(void **state)
{
	static const struct wire_mem_head bad[] = {
		{.node = WIRE_MEM_NODES},
		{.op = WIRE_MEM_OPS},
		{.class = WIRE_MEM_CLASSES},
		{.size_bytes = 65537},
		{.size_bytes = WIRE_MEM_SIZE_MAX + WIRE_MEM_SIZE_UNIT},
	};
	struct wire_mem_head h = {.size_bytes = WIRE_MEM_SIZE_MAX};
	uint8_t data[8] = {0};
	enum wire_block_kind k;
	struct wire_block b;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(wire_mem_encode(WIRE_MAP_COSET,
						 WIRE_BLOCK_MEM_START, &bad[i],
						 data, &b),
				 WIRE_BLOCK_E_FIELD);
	assert_int_equal(wire_mem_encode(WIRE_MAP_COSET, WIRE_BLOCK_MEM_START,
					 &h, data, &b),
			 WIRE_BLOCK_OK);
	assert_int_equal(
		wire_mem_encode(WIRE_MAP_COSET, WIRE_BLOCK_IDLE, &h, data, &b),
		WIRE_BLOCK_E_NO_MEM);
	b = wire_block_idle();
	assert_int_equal(wire_mem_decode(WIRE_MAP_COSET, &b, &k, &h, data),
			 WIRE_BLOCK_E_NO_MEM);
	/* Operation 7; and a small size written in large units. */
	b = (struct wire_block){0x2e | UINT64_C(7) << 41, WIRE_SYNC_CONTROL};
	assert_int_equal(wire_mem_decode(WIRE_MAP_COSET, &b, &k, &h, data),
			 WIRE_BLOCK_E_FIELD);
	b = (struct wire_block){0x2e | UINT64_C(1) << 25 | UINT64_C(1) << 44,
				WIRE_SYNC_CONTROL};
	assert_int_equal(wire_mem_decode(WIRE_MAP_COSET, &b, &k, &h, data),
			 WIRE_BLOCK_E_FIELD);
}

/* The layout, bit by bit: node at 8, id at 17, size at 25, and so on. */
static void memory_layout(void **state)
{
	static const struct wire_mem_head h = {
		.size_bytes = 0xabcd,
		.node = 0x155,
		.id = 0x5a,
		.op = WIRE_MEM_RRES,
		.class = 2,
		.last = true,
	};
	static const uint8_t tail[2] = {0x12, 0x34};
	struct wire_block b;

	assert_int_equal(wire_mem_encode(WIRE_MAP_COSET, WIRE_BLOCK_MEM_START,
					 &h, tail, &b),
			 0);
	assert_true(b.payload ==
		    (UINT64_C(0x2e) | UINT64_C(0x155) << 8 |
		     UINT64_C(0x5a) << 17 | UINT64_C(0xabcd) << 25 |
		     UINT64_C(3) << 41 | UINT64_C(0) << 44 | UINT64_C(1) << 45 |
		     UINT64_C(2) << 46 | UINT64_C(0x12) << 48 |
		     UINT64_C(0x34) << 56));
	assert_int_equal(wire_mem_room(WIRE_MAP_COSET, WIRE_BLOCK_MEM_START),
			 2);
	assert_int_equal(wire_mem_room(WIRE_MAP_COSET, WIRE_BLOCK_MEM_END), 7);
	assert_int_equal(wire_mem_room(WIRE_MAP_CLAUSE49, WIRE_BLOCK_MEM_END),
			 6);
	assert_int_equal(wire_mem_tail_bytes(WIRE_MAP_CLAUSE49), 1);
}

static unsigned distance(uint8_t a, uint8_t b)
{
	return (unsigned)__builtin_popcount((unsigned)(a ^ b));
}

/* The coset: four bits from each other, two from every standard type. */
static void coset_distances(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(mem_kinds); i++) {
		uint8_t a = wire_mem_type(WIRE_MAP_COSET, mem_kinds[i]);

		for (unsigned j = 0; j < i; j++)
			assert_true(distance(a, wire_mem_type(WIRE_MAP_COSET,
							      mem_kinds[j])) >=
				    4);
		for (unsigned j = 0; j < WIRE_BLOCK_TYPES; j++)
			assert_true(distance(a, standard_types[j]) >= 2);
	}
}

/* Every type that a map knows, found through the decoder; true when no two
 * share their low half. */
static bool survives_fec(enum wire_mem_map map, unsigned *types)
{
	unsigned seen = 0;
	bool distinct = true;

	*types = 0;
	for (unsigned type = 0; type < 256; type++) {
		/* 0x300: a valid second half for the map that has one. */
		struct wire_block b = {type | 0x300, WIRE_SYNC_CONTROL};

		if (wire_block_kind(map, &b) == WIRE_BLOCK_BAD_TYPE)
			continue;
		distinct = distinct && !(seen >> (type & 0xf) & 1);
		seen |= 1u << (type & 0xf);
		++*types;
	}
	return distinct;
}

static void maps_survive_fec_where_claimed(void **state)
{
	unsigned types;

	assert_true(survives_fec(WIRE_MAP_CLAUSE82, &types));
	assert_int_equal(types, 16); /* 11 of clause 82 and our 5 */
	assert_true(survives_fec(WIRE_MAP_CLAUSE49, &types));
	assert_int_equal(types, 16);
	assert_false(survives_fec(WIRE_MAP_COSET, &types));
	assert_int_equal(types, 21);
}

/* The published check value of CRC-16/X-25. */
static void check_sums(void **state)
{
	uint64_t head = 0;

	for (int i = 4; i >= 0; i--)
		head = head << 8 | (uint64_t)('1' + i);
	assert_int_equal(wire_mem_crc16(head, (const uint8_t *)"6789", 4),
			 0x906e);
	/* One wrong bit always shows. */
	for (unsigned i = 0; i < 40; i++)
		assert_int_not_equal(wire_mem_crc8(head),
				     wire_mem_crc8(head ^ UINT64_C(1) << i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_blocks),
		cmocka_unit_test(every_type_round_trip),
		cmocka_unit_test(invalid_blocks_refused),
		cmocka_unit_test(invalid_characters_refused),
		cmocka_unit_test(memory_round_trip),
		cmocka_unit_test(memory_fields_checked),
		cmocka_unit_test(memory_layout),
		cmocka_unit_test(coset_distances),
		cmocka_unit_test(maps_survive_fec_where_claimed),
		cmocka_unit_test(check_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
