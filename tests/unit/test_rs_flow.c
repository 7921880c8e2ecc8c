/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, tables and flow control of rsockets: tables of good and bad input,
 * and two ends that talk at random, whose bytes are all checked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rsocket/rs_dgram_wire.h"
#include "rsocket/rs_flow.h"
#include "rsocket/rs_limits.h"

/* ---- messages ------------------------------------------------------------ */

static void words_of_a_peer_are_known_or_refused(void **state)
{
	static const struct {
		uint32_t word;
		int err;
		enum rs_op op;
		uint32_t value;
	} rows[] = {
		{0x00000001, 0, RS_OP_DATA, 1},
		{0x1fffffff, 0, RS_OP_DATA, 0x1fffffff},
		{0x00000000, -EBADMSG, 0, 0},
		{0x20000001, -EBADMSG, 0, 0},
		{0x40000001, -EBADMSG, 0, 0},
		{0x60000001, -EBADMSG, 0, 0},
		{0x80000000, 0, RS_OP_CREDIT, 0},
		{0x8000ffff, 0, RS_OP_CREDIT, 0xffff},
		{0xa0000000, -EBADMSG, 0, 0},
		{0xc0000003, 0, RS_OP_IOMAP, 3},
		{0xe0000000, 0, RS_OP_CTRL, RS_CTRL_DISCONNECT},
		{0xe0000001, 0, RS_OP_CTRL, RS_CTRL_KEEPALIVE},
		{0xe0000002, 0, RS_OP_CTRL, RS_CTRL_SHUTDOWN},
		{0xe0000003, -EBADMSG, 0, 0},
		{0xffffffff, -EBADMSG, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rs_msg m = {0};

		assert_int_equal(rs_msg_parse(rows[i].word, &m), rows[i].err);
		if (rows[i].err)
			continue;
		assert_int_equal(m.op, rows[i].op);
		assert_int_equal(m.value, rows[i].value);
		assert_int_equal(rs_msg_build(m.op, m.value), rows[i].word);
	}
}

/* ---- the private data ---------------------------------------------------- */

static const struct rs_hello good_hello = {
	.credits = 384,
	.iomap_count = 3,
	.slots = {.addr = 0x1122334455667788, .key = 0x99aabbcc, .length = 2},
	.buf = {.addr = 0x7f0000001000, .key = 0x01020304, .length = 65536},
};

static void the_hello_has_its_fields_where_the_document_says(void **state)
{
	uint8_t b[RS_HELLO_BYTES];
	struct rs_hello h;

	rs_hello_build(&good_hello, b);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[2] << 8 | b[3], 384);
	assert_int_equal(b[7], 3);
	assert_int_equal(b[8], 0x11);
	assert_int_equal(b[15], 0x88);
	assert_int_equal(b[16], 0x99);
	assert_int_equal(b[23], 2);
	assert_int_equal(b[37], 1); /* 65536 */
	assert_int_equal(rs_hello_parse(b, sizeof(b), &h), 0);
	assert_int_equal(h.credits, 384);
	assert_int_equal(h.iomap_count, 3);
	assert_memory_equal(&h.slots, &good_hello.slots, sizeof(h.slots));
	assert_memory_equal(&h.buf, &good_hello.buf, sizeof(h.buf));
}

static void a_bad_hello_is_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t bytes[8];
		unsigned count;
		int err;
	} rows[] = {
		{0, {0}, 1, -EPROTONOSUPPORT},
		{0, {2}, 1, -EPROTONOSUPPORT},
		{2, {0, 0}, 2, -EBADMSG},	 /* credits */
		{20, {0, 0, 0, 1}, 4, -EBADMSG}, /* slots */
		{36, {0, 0, 0, 0}, 4, -EBADMSG}, /* buffer */
		{8, {255, 255, 255, 255, 255, 255, 255, 255}, 8, -EBADMSG},
		{24, {255, 255, 255, 255, 255, 255, 0, 1}, 8, -EBADMSG},
		{20, {255, 255, 255, 255}, 4, 0}, /* many entries */
	};
	uint8_t b[RS_HELLO_BYTES];
	struct rs_hello h;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		rs_hello_build(&good_hello, b);
		memcpy(b + rows[i].at, rows[i].bytes, rows[i].count);
		assert_int_equal(rs_hello_parse(b, sizeof(b), &h), rows[i].err);
	}
	rs_hello_build(&good_hello, b);
	for (size_t n = 0; n < sizeof(b); n++)
		assert_int_equal(rs_hello_parse(b, n, &h), -EBADMSG);
	b[1] = 0; /* the sender knows no mappings */
	assert_int_equal(rs_hello_parse(b, sizeof(b), &h), 0);
	assert_int_equal(h.iomap_count, 0);
	assert_int_equal(rs_scale_parse(128), 128);
	assert_int_equal(rs_scale_parse(129), 256);
	assert_int_equal(rs_scale_parse(255), 127 * 256);
}

static void tables_are_written_in_the_byte_order_of_their_owner(void **state)
{
	const struct rs_iomap m = {
		.offset = 0x0102030405060708,
		.sge = {.addr = 0x1112131415161718,
			.key = 0x21222324,
			.length = 0x31323334},
	};
	uint8_t b[RS_IOMAP_BYTES];
	struct rs_iomap again;

	rs_iomap_build(&m, true, b);
	assert_int_equal(b[0], 1);
	assert_int_equal(b[8], 0x11);
	assert_int_equal(b[16], 0x21);
	assert_int_equal(b[20], 0x31);
	rs_iomap_build(&m, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, b);
	rs_iomap_parse(b, &again);
	assert_memory_equal(&m, &again, sizeof(m));
}

/* ---- receiving ----------------------------------------------------------- */

static void a_peer_cannot_write_more_than_was_granted(void **state)
{
	struct rs_update u;
	struct rs_rx rx;

	rs_rx_init(&rx, 1024, 16);
	assert_int_equal(rs_rx_data(&rx, 0), -EBADMSG);
	assert_int_equal(rs_rx_data(&rx, 513), -EBADMSG);
	assert_int_equal(rs_rx_data(&rx, UINT32_MAX), -EBADMSG);
	assert_int_equal(rs_rx_data(&rx, 512), 0);
	assert_int_equal(rs_rx_data(&rx, 1), -EBADMSG);
	assert_true(rs_rx_due(&rx, &u));
	assert_true(u.grants);
	assert_int_equal(u.offset, 512);
	rs_rx_told(&rx, &u);
	assert_int_equal(rs_rx_data(&rx, 512), 0);
	assert_int_equal(rs_rx_data(&rx, 1), -EBADMSG);
	/* Full: nothing can be granted before something is read. */
	assert_false(rs_rx_due(&rx, &u) && u.grants);
	rs_rx_consume(&rx, 511);
	assert_false(rs_rx_due(&rx, &u) && u.grants);
	rs_rx_consume(&rx, 1);
	assert_true(rs_rx_due(&rx, &u) && u.grants);
	assert_int_equal(u.offset, 0);
}

static void a_peer_cannot_send_more_messages_than_it_has_credits(void **state)
{
	struct rs_update u;
	struct rs_rx rx;

	rs_rx_init(&rx, 1 << 20, 16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(rs_rx_data(&rx, 1), 0);
	assert_int_equal(rs_rx_data(&rx, 1), -EBADMSG);
	assert_true(rs_rx_due(&rx, &u));
	rs_rx_told(&rx, &u);
	for (int i = 0; i < 16; i++)
		assert_int_equal(rs_rx_data(&rx, 1), 0);
	assert_int_equal(rs_rx_data(&rx, 1), -EBADMSG);
}

/* ---- sending ------------------------------------------------------------- */

static void put_slot(rs_slot *slots, unsigned i, const struct rs_sge *sge)
{
	uint64_t words[2];

	rs_sge_build(sge, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
		     (uint8_t *)words);
	atomic_store(&slots[i][0], words[0]);
	atomic_store(&slots[i][1], words[1]);
}

static void credits_never_go_back(void **state)
{
	static const struct {
		uint16_t limit;
		uint32_t value;
		int err;
		uint16_t after;
	} rows[] = {
		{384, 384, 0, 384},
		{384, 576, 0, 576},
		{384, 383, -EBADMSG, 384},
		{384, 0, -EBADMSG, 384},
		{65500, 65536 + 100, 0, 100}, /* with the carry */
		{65500, 100, 0, 100},
		{0, 0x20000, -EBADMSG, 0},
		{0, RS_VALUE_MAX, -EBADMSG, 0},
		{0, 32767, 0, 32767},
		{0, 32768, -EBADMSG, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct rs_tx tx = {.limit = rows[i].limit};

		assert_int_equal(rs_tx_credit(&tx, rows[i].value), rows[i].err);
		assert_int_equal(tx.limit, rows[i].after);
	}
}

static void room_is_what_peer_queue_and_ring_have(void **state)
{
	rs_slot slots[RS_SLOTS];
	struct rs_hello peer = good_hello;
	struct rs_sge to, bad = {.addr = UINT64_MAX - 5, .length = 100};
	struct rs_tx tx;

	peer.credits = 2;
	peer.buf.length = 100;
	rs_tx_init(&tx, 4096, RS_CTRL_QUEUE + 3, slots);
	assert_int_equal(rs_tx_room(&tx), 0); /* not connected */
	rs_tx_start(&tx, &peer);
	assert_int_equal(rs_tx_room(&tx), 100);
	rs_tx_data(&tx, 60, &to);
	rs_tx_posted(&tx, 60);
	assert_int_equal(to.addr, peer.buf.addr);
	assert_int_equal(rs_tx_room(&tx), 40);
	rs_tx_data(&tx, 40, &to);
	rs_tx_posted(&tx, 40);
	assert_int_equal(to.addr, peer.buf.addr + 60);
	assert_int_equal(rs_tx_room(&tx), 0); /* no credit, no buffer */
	assert_int_equal(rs_tx_credit(&tx, 4), 0);
	assert_int_equal(rs_tx_room(&tx), 0); /* no buffer */
	put_slot(slots, 1, &peer.buf);
	assert_int_equal(rs_tx_room(&tx), 0); /* not said yet */
	put_slot(slots, 1, &bad);
	assert_int_equal(rs_tx_credit(&tx, 4), 0);
	assert_int_equal(rs_tx_room(&tx), 0); /* it would wrap */
	put_slot(slots, 1, &peer.buf);
	assert_int_equal(rs_tx_room(&tx), 100);
	rs_tx_data(&tx, 1, &to);
	rs_tx_posted(&tx, 1);
	assert_int_equal(rs_tx_room(&tx), 0); /* the rest is for control */
	assert_true(rs_tx_room_ctrl(&tx));
	rs_tx_completed(&tx, 60);
	assert_int_equal(rs_tx_room(&tx), 99);
	/* A huge buffer of the peer is no reason for a huge message. */
	peer.buf.length = UINT32_MAX;
	tx.target.length = 0;
	put_slot(slots, 0, &peer.buf);
	assert_int_equal(rs_tx_room(&tx), 4096 - 41);
}

/* ---- both ends ----------------------------------------------------------- */

enum {
	RING = 512,
	SENT = 200000,
};

static uint8_t byte_at(uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8));
}

/* Messages and updates arrive in order, but later: each side learns of them
 * when the dice say so. */
static void every_byte_arrives_in_order(void **state)
{
	uint8_t ring[RING];
	rs_slot slots[RS_SLOTS];
	struct rs_hello hello = {
		.credits = 20,
		.slots = {.length = RS_SLOTS},
		.buf = {.addr = 0, .length = RING / 2},
	};
	uint32_t queue[4096], head = 0, tail = 0, slot = 1;
	uint32_t sent = 0, read = 0, idle = 0;
	struct rs_rx rx;
	struct rs_tx tx;

	srand(1);
	rs_rx_init(&rx, RING, hello.credits);
	rs_tx_init(&tx, RING, 1 << 20, slots);
	rs_tx_start(&tx, &hello);
	while (read < SENT) {
		struct rs_update u;
		struct rs_sge to;
		uint32_t n, offset, room = rs_tx_room(&tx);

		assert_true(idle++ < 1000);
		if (room && sent < SENT && rand() % 2) {
			n = 1 + (uint32_t)rand() % room;
			n = u32_min(n, SENT - sent);
			rs_tx_data(&tx, n, &to);
			rs_tx_posted(&tx, n);
			rs_tx_completed(&tx, n);
			assert_true(to.addr + n <= RING);
			for (uint32_t i = 0; i < n; i++)
				ring[to.addr + i] = byte_at(sent++);
			queue[tail++ % ARRAY_LEN(queue)] = n;
			idle = 0;
		}
		if (head != tail && rand() % 2)
			assert_int_equal(
				rs_rx_data(&rx,
					   queue[head++ % ARRAY_LEN(queue)]),
				0);
		n = rs_rx_view(&rx, 0, &offset);
		if (n && rand() % 2) {
			n = 1 + (uint32_t)rand() % n;
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(ring[offset + i],
						 byte_at(read++));
			rs_rx_consume(&rx, n);
		}
		if (rs_rx_due(&rx, &u) && rand() % 3 == 0) {
			struct rs_sge sge = {.addr = u.offset,
					     .length = u.length};

			if (u.grants) {
				put_slot(slots, slot, &sge);
				slot = (slot + 1) % RS_SLOTS;
			}
			assert_int_equal(rs_tx_credit(&tx, u.limit), 0);
			rs_rx_told(&rx, &u);
		}
	}
	assert_int_equal(sent, SENT);
}

/* ---- datagrams ----------------------------------------------------------- */

static void headers_of_datagrams_are_checked(void **state)
{
	struct rs_udp_header h = {
		.is_data = true,
		.qpn = 0x123456,
		.own = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}},
	};
	struct rs_udp_header again = {0};
	struct rs_name from = {.ip = {0xfe, 0x80, [15] = 1}, .port = 7174};
	struct rs_name heard;
	uint8_t b[RS_UDP_HEADER_MAX] = {0};

	assert_int_equal(rs_udp_build(&h, b), 16);
	assert_int_equal(b[0], 0x55);
	assert_int_equal(b[9] << 16 | b[10] << 8 | b[11], 0x123456);
	assert_int_equal(rs_udp_parse(b, 16, &again), 16);
	assert_true(again.is_data);
	assert_int_equal(again.qpn, h.qpn);
	assert_true(rs_name_equal(&again.own, &h.own));
	for (size_t n = 0; n < 16; n++)
		assert_int_equal(rs_udp_parse(b, n, &again), -EBADMSG);
	for (size_t at = 0; at < 8; at++) {
		uint8_t was = b[at];

		if (at == 7)
			continue; /* reserved */
		b[at] = 9;
		assert_int_equal(rs_udp_parse(b, 16, &again), -EBADMSG);
		b[at] = was;
	}
	memset(b + 9, 0, 3); /* number 0 is nobody's */
	assert_int_equal(rs_udp_parse(b, 16, &again), -EBADMSG);

	assert_int_equal(rs_ud_build(&from, b), 24);
	assert_int_equal(rs_ud_parse(b, sizeof(b), &heard), 24);
	assert_true(rs_name_equal(&from, &heard));
	for (size_t n = 0; n < 24; n++)
		assert_int_equal(rs_ud_parse(b, n, &heard), -EBADMSG);
	b[0] = 4; /* but as long as the other */
	assert_int_equal(rs_ud_parse(b, sizeof(b), &heard), -EBADMSG);
	b[0] = 5;
	assert_int_equal(rs_ud_parse(b, sizeof(b), &heard), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_a_peer_are_known_or_refused),
		cmocka_unit_test(
			the_hello_has_its_fields_where_the_document_says),
		cmocka_unit_test(a_bad_hello_is_refused),
		cmocka_unit_test(
			tables_are_written_in_the_byte_order_of_their_owner),
		cmocka_unit_test(a_peer_cannot_write_more_than_was_granted),
		cmocka_unit_test(
			a_peer_cannot_send_more_messages_than_it_has_credits),
		cmocka_unit_test(credits_never_go_back),
		cmocka_unit_test(room_is_what_peer_queue_and_ring_have),
		cmocka_unit_test(every_byte_arrives_in_order),
		cmocka_unit_test(headers_of_datagrams_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
