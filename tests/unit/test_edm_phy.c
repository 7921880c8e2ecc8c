/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a link by themselves: scrambler, gaps, block lock, frames to
 * blocks and back, messages to blocks, and what the receiver refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "edm/phy_link.h"

#define ONES58 ((UINT64_C(1) << 58) - 1)

static void scrambler_vectors(void **state)
{
	static const uint64_t from_ones[] = {
		0x7bfff0800000001e, 0x85cff0fffff8401e, 0x85d84f0118079ee1};
	static const uint64_t from_zero[] = {
		0x78000f000000001e, 0x7a200f000007801e, 0x7a278f0110079e1e};
	static const uint64_t late[] = {0x03ffff800000001e, 0x1e, 0x1e};
	struct edm_scrambler a = edm_scrambler_from_register(ONES58);
	struct edm_scrambler b = {0}, d = {0}, good;

	good = a;
	for (int i = 0; i < 3; i++) {
		assert_true(edm_scramble(&a, 0x1e) == from_ones[i]);
		assert_true(edm_scramble(&b, 0x1e) == from_zero[i]);
		/* With another register, right after 58 bits. */
		assert_true(edm_descramble(&d, from_ones[i]) == late[i]);
		assert_true(edm_descramble(&good, from_ones[i]) == 0x1e);
	}
	assert_true(edm_scrambler_register(&a) == 0x379e01880f21ba1);
}

/* Bit by bit, as the standard draws it. */
static uint64_t slow_scramble(uint64_t *s, uint64_t in)
{
	uint64_t out = 0;

	for (int i = 0; i < 64; i++) {
		uint64_t y = (in >> i ^ *s >> 38 ^ *s >> 57) & 1;

		*s = (*s << 1 | y) & ONES58;
		out |= y << i;
	}
	return out;
}

static void scrambler_bit_by_bit(void **state)
{
	uint64_t reg = 0x123456789abcdef & ONES58;
	struct edm_scrambler fast = edm_scrambler_from_register(reg);
	struct edm_scrambler back = fast;
	struct rng r;

	rng_init(&r, 3);
	for (int i = 0; i < 10000; i++) {
		uint64_t in = rng_u64(&r);
		uint64_t line = edm_scramble(&fast, in);

		assert_true(line == slow_scramble(&reg, in));
		assert_true(edm_scrambler_register(&fast) == reg);
		assert_true(edm_descramble(&back, line) == in);
	}
}

/* One wrong bit on the line is three behind the descrambler, 39 and 58 bits
 * apart, and then it is over. */
static void scrambler_multiplies_errors(void **state)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		struct edm_scrambler tx = {7}, rx = {7};
		uint64_t error[3];
		unsigned wrong = 0;

		for (int i = 0; i < 3; i++) {
			uint64_t y = edm_scramble(&tx, 0xabcdef);

			y ^= i == 0 ? UINT64_C(1) << bit : 0;
			error[i] = edm_descramble(&rx, y) ^ 0xabcdef;
			wrong += (unsigned)__builtin_popcountll(error[i]);
		}
		assert_int_equal(wrong, 3);
		assert_true(error[0] >> bit & 1);
		assert_true(error[(bit + 39) / 64] >> (bit + 39) % 64 & 1);
		assert_true(error[(bit + 58) / 64] >> (bit + 58) % 64 & 1);
		if (bit == 5)
			assert_true(error[0] == 0x8000100000000020);
	}
}

/* The generator of the check sum has no factor in common with the scrambler's
 * polynomial: Euclid over GF(2) ends with 1. */
static unsigned degree(const uint64_t v)
{
	return 63 - (unsigned)__builtin_clzll(v);
}

static void crc_is_independent_of_scrambler(void **state)
{
	uint64_t a = UINT64_C(1) << 58 | UINT64_C(1) << 39 | 1;
	uint64_t b = 0x11021;

	while (b) {
		while (a && degree(a) >= degree(b))
			a ^= b << (degree(a) - degree(b));
		uint64_t t = a;

		a = b;
		b = t;
	}
	assert_true(a == 1);
}

static void gap_average_is_twelve(void **state)
{
	for (uint32_t align = 4; align <= 8; align += 4) {
		struct rng r;

		rng_init(&r, align);
		for (uint32_t fixed = 0; fixed <= 8; fixed++) {
			struct edm_gap g = {.align = align};
			uint64_t sum = 0;
			uint32_t n = 80000, lane = 0;

			for (uint32_t i = 0; i < n; i++) {
				uint32_t gap;

				/* 8: lengths at random. */
				lane = fixed < 8 ? fixed
						 : (uint32_t)rng_below(&r, 8);
				gap = edm_gap_next(&g, lane);
				assert_int_equal((lane + gap) % align, 0);
				assert_in_range(gap, 13 - align, 11 + align);
				assert_true(edm_gap_account(&g, gap));
				sum += gap;
			}
			/* What is owed never exceeds align - 1 in all. */
			assert_in_range(sum, UINT64_C(12) * n - align,
					UINT64_C(12) * n);
		}
	}
}

static void gap_too_short_is_seen(void **state)
{
	struct edm_gap g = {.align = 8};

	assert_true(edm_gap_account(&g, 5));
	assert_false(edm_gap_account(&g, 11));
	assert_true(edm_gap_account(&g, 100));
	assert_int_equal(g.deficit, 0);
}

static void lock_gained_and_lost(void **state)
{
	struct edm_lock l = {0};

	for (int i = 0; i < 63; i++)
		edm_lock_feed(&l, WIRE_SYNC_DATA);
	assert_false(l.locked);
	edm_lock_feed(&l, 3);
	for (int i = 0; i < 64; i++)
		edm_lock_feed(&l, WIRE_SYNC_CONTROL);
	assert_true(l.locked);
	/* Fifteen of 64 are borne, sixteen are not. */
	for (int i = 0; i < 64; i++)
		edm_lock_feed(&l, i < 15 ? 0 : WIRE_SYNC_DATA);
	assert_true(l.locked);
	for (int i = 0; i < 16; i++)
		edm_lock_feed(&l, 0);
	assert_false(l.locked);
	assert_int_equal(l.lost, 1);
}

/* A source of equal frames, and a sink that compares. */
struct frames {
	uint8_t frame[EDM_FRAME_MAX];
	uint32_t len_bytes, left;
	uint64_t got;
};

static const uint8_t *frames_next(void *owner, uint32_t *len_bytes)
{
	struct frames *f = owner;

	if (!f->left)
		return NULL;
	f->left--;
	*len_bytes = f->len_bytes;
	return f->frame;
}

static void frames_got(void *owner, const uint8_t *frame, uint32_t len_bytes)
{
	struct frames *f = owner;

	assert_int_equal(len_bytes, u32_max(f->len_bytes, EDM_FRAME_MIN));
	assert_memory_equal(frame, f->frame, f->len_bytes);
	f->got++;
}

/* The frame 00..3b of 64 bytes with its FCS, written down by hand, and the same
 * on the line from a register of ones. */
static void frame_vector(void **state)
{
	static const uint64_t blocks[] = {
		0xd555555555555578, 0x0706050403020100, 0x0f0e0d0c0b0a0908,
		0x1716151413121110, 0x1f1e1d1c1b1a1918, 0x2726252423222120,
		0x2f2e2d2c2b2a2928, 0x3736353433323130, 0xb0ec7fee3b3a3938,
		0x0000000000000087};
	static const uint64_t line[] = {0x9c0016d555555578, 0xd7697a91565c3eff,
					0x1b4b048dfaee3158, 0x0a8cad0b817bef28,
					0x2b8d9dad73497364, 0x676139475021d254,
					0x71b54d7a86f60dc9, 0xe15ac239038f5444,
					0x39e56096725518e8, 0xc8687b1eab791fdd};
	struct edm_scrambler s = edm_scrambler_from_register(ONES58);
	struct edm_mac_tx *m = calloc(1, sizeof(*m));
	struct frames f = {.len_bytes = 60, .left = 1};
	struct wire_block b;

	assert_non_null(m);
	for (uint8_t i = 0; i < 60; i++)
		f.frame[i] = i;
	edm_mac_tx_init(m, 8, frames_next, &f);
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
		edm_mac_tx_step(m, &b);
		assert_true(b.payload == blocks[i]);
		assert_int_equal(b.sync, i == 0 || i == 9 ? WIRE_SYNC_CONTROL
							  : WIRE_SYNC_DATA);
		assert_true(edm_scramble(&s, b.payload) == line[i]);
	}
	assert_int_equal(edm_frame_blocks(60), 10);
	assert_int_equal(edm_frame_blocks(1514), 191);
	assert_int_equal(edm_frame_blocks(9014), EDM_FRAME_BLOCKS_MAX);
	free(m);
}

/* Back to back, every length and both alignments: blocks per frame come out of
 * 8 + length + 12 characters. */
static void mac_there_and_back(void **state)
{
	struct edm_mac_tx *tx = calloc(1, sizeof(*tx));
	struct edm_mac_rx *rx = calloc(1, sizeof(*rx));
	struct frames f = {.len_bytes = 0};
	struct rng r;

	assert_non_null(tx);
	assert_non_null(rx);
	rng_init(&r, 5);
	for (uint32_t n = 14; n < 200; n++) {
		uint32_t align = n % 2 ? 4 : 8, count = 64;
		uint64_t blocks = 0, chars;

		rng_fill(&r, f.frame, n);
		f.len_bytes = n;
		f.left = count;
		f.got = 0;
		edm_mac_tx_init(tx, align, frames_next, &f);
		edm_mac_rx_init(rx, align, frames_got, &f);
		while (f.got < count) {
			struct wire_block b;

			edm_mac_tx_step(tx, &b);
			edm_mac_rx_step(rx, &b);
			assert_in_range(++blocks, 1, 10000);
		}
		assert_int_equal(rx->stats.short_gaps, 0);
		assert_int_equal(tx->gap_count, count - 1);
		assert_in_range(tx->gap_sum, 12 * (count - 1) - align,
				12 * (count - 1));
		chars = count * (8 + u32_max(n, 60) + 4 + 12);
		assert_in_range(blocks, chars / 8 - 3, chars / 8 + 1);
	}
	free(tx);
	free(rx);
}

static void mac_refuses(void **state)
{
	struct edm_mac_rx *rx = calloc(1, sizeof(*rx));
	struct wire_block start = {0xd555555555555578, WIRE_SYNC_CONTROL};
	struct wire_block data = {0, WIRE_SYNC_DATA};
	struct wire_block term = {0x87, WIRE_SYNC_CONTROL};
	struct wire_block idle = wire_block_idle();
	struct wire_block bad = {0x01, WIRE_SYNC_CONTROL};
	struct frames f = {.len_bytes = 0};

	assert_non_null(rx);
	edm_mac_rx_init(rx, 8, frames_got, &f);
	edm_mac_rx_step(rx, &start);
	edm_mac_rx_step(rx, &term);
	assert_int_equal(rx->stats.bad_length, 1);
	edm_mac_rx_step(rx, &term);
	assert_int_equal(rx->stats.bad_order, 1);
	edm_mac_rx_step(rx, &idle);
	edm_mac_rx_step(rx, &start);
	edm_mac_rx_step(rx, &idle);
	assert_int_equal(rx->stats.bad_order, 2);
	edm_mac_rx_step(rx, &start);
	edm_mac_rx_step(rx, &bad);
	assert_int_equal(rx->stats.bad_order, 3);
	edm_mac_rx_step(rx, &start);
	for (int i = 0; i < 8; i++)
		edm_mac_rx_step(rx, &data);
	edm_mac_rx_step(rx, &term);
	assert_int_equal(rx->stats.bad_fcs, 1);
	edm_mac_rx_step(rx, &start);
	for (int i = 0; i < 2000; i++)
		edm_mac_rx_step(rx, &data);
	assert_int_equal(rx->stats.bad_length, 2);
	/* The start behind the bad block, and the one after a gap of 8 while
	 * nothing was left to borrow. */
	assert_int_equal(rx->stats.short_gaps, 2);
	assert_int_equal(f.got, 0);
	free(rx);
}

static void message_blocks(void **state)
{
	static const struct {
		uint32_t bytes, data, control;
	} known[] = {
		{0, 1, 1},     {2, 1, 2},     {8, 2, 3},
		{24, 4, 5},    {64, 9, 11},   {72, 10, 12},
		{108, 15, 17}, {256, 33, 38}, {264, 34, 39},
	};
	struct edm_phy_config c = {.start_align = 8};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		c.md = EDM_MD_DATA;
		assert_int_equal(edm_msg_blocks(&c, known[i].bytes),
				 known[i].data);
		c.md = EDM_MD_CONTROL;
		assert_int_equal(edm_msg_blocks(&c, known[i].bytes),
				 known[i].control);
	}
	for (uint32_t n = 0; n <= EDM_MSG_BYTES_MAX; n++) {
		for (int md = 0; md < 2; md++) {
			c = (struct edm_phy_config){.md = md, .start_align = 8};
			assert_int_equal(edm_msg_blocks(&c, n),
					 edm_blocks(c.md, n));
			c.crc = true;
			c.map = WIRE_MAP_CLAUSE49;
			assert_in_range(edm_msg_blocks(&c, n), 1,
					EDM_MSG_BLOCKS_MAX);
		}
	}
}

static void settings_refused(void **state)
{
	struct edm_phy_config c = {.start_align = 5};
	struct wire_mem_head h = {.op = WIRE_MEM_RRES, .size_bytes = 2049};
	struct wire_block out[EDM_MSG_BLOCKS_MAX];

	assert_int_not_equal(edm_phy_config_check(&c), 0);
	c.start_align = 4;
	assert_int_equal(edm_phy_config_check(&c), 0);
	c.map = WIRE_MAP_CLAUSE82;
	assert_int_not_equal(edm_phy_config_check(&c), 0);
	assert_true(edm_msg_encode(&c, &h, NULL, out) < 0);
	h.size_bytes = 0;
	h.node = WIRE_MEM_NODES;
	assert_true(edm_msg_encode(&c, &h, NULL, out) < 0);
	assert_true(edm_ctl_encode(&c, WIRE_BLOCK_MEM_NOTIFY, &h, out) < 0);
}

/* A receiver alone, fed block by block. */
struct lone {
	struct edm_phy_rx rx;
	unsigned messages, controls;
};

static void lone_message(void *owner, const struct wire_mem_head *head,
			 const uint8_t *payload, uint32_t len_bytes)
{
	((struct lone *)owner)->messages++;
}

static void lone_control(void *owner, enum wire_block_kind kind,
			 const struct wire_mem_head *head)
{
	((struct lone *)owner)->controls++;
}

static struct lone *lone_new(const struct edm_phy_config *c)
{
	struct lone *l = calloc(1, sizeof(*l));
	struct edm_rx_sink sink = {lone_message, lone_control, l};

	assert_non_null(l);
	assert_int_equal(edm_phy_rx_init(&l->rx, c, &sink), 0);
	return l;
}

static void feed(struct lone *l, struct wire_block b)
{
	struct wire_block out;

	edm_phy_rx_step(&l->rx, &b, &out);
}

static void receiver_refuses(void **state)
{
	struct edm_phy_config c = {.start_align = 8};
	struct lone *l = lone_new(&c);
	struct wire_mem_head h = {.op = WIRE_MEM_RRES, .size_bytes = 20};
	struct wire_block b[EDM_MSG_BLOCKS_MAX];
	struct wire_block bad = {0x1e, 3}, term = {0x87, WIRE_SYNC_CONTROL};
	uint8_t payload[20] = {1, 2, 3};

	/* MS, MD, MD, MT */
	assert_int_equal(edm_msg_encode(&c, &h, payload, b), 4);
	feed(l, b[3]); /* end without start */
	assert_int_equal(l->rx.stats.bad_order, 1);
	feed(l, b[0]);
	feed(l, b[0]); /* start inside a message */
	assert_int_equal(l->rx.stats.bad_order, 2);
	feed(l, b[1]);
	feed(l, b[3]); /* ends too early */
	assert_int_equal(l->rx.stats.bad_order, 3);
	feed(l, b[0]);
	feed(l, b[1]);
	feed(l, b[2]);
	feed(l, b[2]); /* does not end */
	assert_int_equal(l->rx.stats.bad_order, 4);
	feed(l, b[0]);
	feed(l, bad); /* a lost block of the message */
	feed(l, b[2]);
	feed(l, b[3]);
	assert_int_equal(l->rx.stats.bad_order, 5);
	assert_int_equal(l->rx.stats.bad_sync, 1);
	feed(l, b[0]);
	feed(l, wire_block_idle()); /* idle inside a message */
	assert_int_equal(l->rx.stats.bad_order, 6);
	b[3].payload |= UINT64_C(1) << 63; /* behind the payload's end */
	for (int i = 0; i < 4; i++)
		feed(l, b[i]);
	assert_int_equal(l->rx.stats.bad_pad, 1);
	feed(l, b[1]); /* data that belongs to nothing */
	feed(l, term);
	assert_int_equal(l->rx.stats.stray_blocks, 2);
	assert_int_equal(l->messages, 0);
	b[3].payload &= ~(UINT64_C(1) << 63);
	for (int i = 0; i < 4; i++)
		feed(l, b[i]);
	assert_int_equal(l->messages, 1);
	free(l);
}

/* One request may stand inside a message; nothing else may, and what is wrong
 * with the request does not spoil the message around it. */
static void receiver_nests(void **state)
{
	struct edm_phy_config c = {.start_align = 8, .nest = true};
	struct lone *l = lone_new(&c);
	struct wire_mem_head h = {.op = WIRE_MEM_RRES, .size_bytes = 20};
	struct wire_mem_head ask = {.op = WIRE_MEM_RREQ, .size_bytes = 64};
	struct wire_block b[EDM_MSG_BLOCKS_MAX], q[EDM_MSG_BLOCKS_MAX];
	struct wire_block bad = {0x1e, 3};
	uint8_t payload[20] = {1, 2, 3};

	assert_int_equal(edm_msg_encode(&c, &h, payload, b), 4);
	assert_int_equal(edm_msg_encode(&c, &ask, payload, q), 2);
	for (int i = 0; i < 4; i++) {
		if (i == 1 || i == 3) {
			feed(l, q[0]);
			feed(l, q[1]);
		}
		feed(l, b[i]);
	}
	assert_int_equal(l->messages, 3);
	feed(l, b[0]);
	feed(l, q[0]);
	feed(l, bad); /* the end of the request */
	for (int i = 1; i < 4; i++)
		feed(l, b[i]);
	assert_int_equal(l->messages, 4);
	assert_int_equal(l->rx.stats.bad_order, 1);
	feed(l, b[0]);
	feed(l, q[0]);
	feed(l, q[0]); /* a request inside a request: all is lost */
	assert_int_equal(l->rx.stats.bad_order, 3);
	feed(l, q[1]);
	assert_int_equal(l->messages, 5);
	feed(l, b[1]);
	assert_int_equal(l->rx.stats.stray_blocks, 1);
	feed(l, b[0]);
	feed(l, q[0]);
	feed(l, wire_block_idle());
	assert_int_equal(l->rx.stats.bad_order, 5);
	assert_int_equal(l->messages, 5);
	free(l);
}

/* A frame that never ends must not fill the receiver. */
static void receiver_bounds_frames(void **state)
{
	struct edm_phy_config c = {.start_align = 8};
	struct lone *l = lone_new(&c);
	struct wire_block start = {0xd555555555555578, WIRE_SYNC_CONTROL};
	struct wire_block data = {0, WIRE_SYNC_DATA};

	for (int i = 0; i < 20; i++) {
		feed(l, start);
		for (int k = 0; k < 5000; k++)
			feed(l, data);
	}
	assert_int_equal(l->rx.stats.overflows, 20);
	assert_in_range(l->rx.stats.buffer_max, EDM_FRAME_BLOCKS_MAX,
			EDM_FRAME_BLOCKS_MAX + 1);
	feed(l, start);
	feed(l, start);
	assert_int_equal(l->rx.stats.frames_cut, 1);
	free(l);
}

/* Any blocks at all: nothing but counters may move beyond bounds. */
static void receiver_survives_noise(void **state)
{
	struct rng r;

	rng_init(&r, 9);
	for (unsigned k = 0; k < 24; k++) {
		struct edm_phy_config c = {.md = k & 1,
					   .map = k / 2 % WIRE_MAP_COUNT,
					   .crc = k / 6 % 2,
					   .nest = k / 12,
					   .start_align = 8};
		struct lone *l = lone_new(&c);

		for (int i = 0; i < 10000; i++) {
			struct wire_block b = {rng_u64(&r),
					       (uint8_t)rng_below(&r, 4)};
			struct wire_mem_head h = {
				.op = (uint8_t)rng_below(&r, WIRE_MEM_OPS),
				.size_bytes = (uint32_t)rng_below(&r, 40)};
			enum wire_block_kind kind = (enum wire_block_kind)(
				WIRE_BLOCK_MEM_START + rng_below(&r, 6));
			uint8_t bytes[8] = {0};

			if (rng_below(&r, 2)) {
				assert_int_equal(wire_mem_encode(c.map, kind,
								 &h, bytes, &b),
						 0);
				/* With one wrong bit now and then. */
				if (!rng_below(&r, 4))
					b.payload ^= UINT64_C(1)
						     << rng_below(&r, 64);
			}
			feed(l, b);
		}
		free(l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scrambler_vectors),
		cmocka_unit_test(scrambler_bit_by_bit),
		cmocka_unit_test(scrambler_multiplies_errors),
		cmocka_unit_test(crc_is_independent_of_scrambler),
		cmocka_unit_test(gap_average_is_twelve),
		cmocka_unit_test(gap_too_short_is_seen),
		cmocka_unit_test(lock_gained_and_lost),
		cmocka_unit_test(frame_vector),
		cmocka_unit_test(mac_there_and_back),
		cmocka_unit_test(mac_refuses),
		cmocka_unit_test(message_blocks),
		cmocka_unit_test(settings_refused),
		cmocka_unit_test(receiver_refuses),
		cmocka_unit_test(receiver_nests),
		cmocka_unit_test(receiver_bounds_frames),
		cmocka_unit_test(receiver_survives_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
