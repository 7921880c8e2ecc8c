/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox's moved connections, packet by packet. */
#include "sword_rig.h"

static void send_write(struct rig *r, unsigned client, uint32_t psn,
		       const void *bytes, uint32_t len)
{
	struct wire_pkt pkt = request(client, WIRE_RC_WRITE_ONLY, psn);

	pkt.dma_len = pkt.payload_len = len;
	pkt.payload = bytes;
	rig_send(r, client - 1, &pkt);
}

static void send_read(struct rig *r, unsigned client, uint32_t psn)
{
	struct wire_pkt pkt = request(client, WIRE_RC_READ_REQ, psn);

	pkt.dma_len = 8;
	rig_send(r, client - 1, &pkt);
}

/* Two clients' requests become one connection's, in the order in which they
 * came, and one acknowledgement becomes two. */
static void moved_into_one(void **state)
{
	static const uint8_t bytes[16] = "fifteen bytes..";
	struct rig *r = make("", 0);
	struct wire_pkt w;

	move_conn(r, 1, 1000);
	move_conn(r, 2, 0xffffff);
	send_write(r, 1, 1000, bytes, 16);
	send_write(r, 2, 0xffffff, bytes, 16);
	send_read(r, 2, 0);
	assert_int_equal(r->ports[SERVER_PORT].got, 3);
	for (unsigned i = 0; i < 3; i++) {
		w = rig_got(r, SERVER_PORT, i);
		assert_int_equal(w.psn, (0xffffff + i) & 0xffffff);
		assert_int_equal(w.dest_qpn, SHARED_QPN);
	}
	assert_int_equal(w.opcode, WIRE_RC_READ_REQ);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_ACK, 0, WIRE_ACK_UNLIMITED, NULL);
	w = rig_got(r, 0, 0);
	assert_int_equal(w.opcode, WIRE_RC_ACK);
	assert_int_equal(w.psn, 1000);
	assert_int_equal(w.msn, 1);
	assert_int_equal(w.dest_qpn, 101);
	w = rig_got(r, 1, 0);
	assert_int_equal(w.psn, 0xffffff);
	assert_int_equal(w.dest_qpn, 102);
	rig_clear(r);
	send_reply(r, 0, WIRE_RC_READ_RESP_ONLY, 1, WIRE_ACK_UNLIMITED, bytes);
	w = rig_got(r, 1, 0);
	assert_int_equal(w.opcode, WIRE_RC_READ_RESP_ONLY);
	assert_int_equal(w.psn, 0);
	assert_int_equal(w.msn, 2);
	assert_memory_equal(w.payload, bytes, 8);
	/* What comes again: the WRITE is only answered, the READ made again. */
	rig_clear(r);
	send_write(r, 2, 0xffffff, bytes, 16);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	assert_int_equal(rig_got(r, 1, 0).psn, 0xffffff);
	send_read(r, 2, 0);
	assert_int_equal(at_server(r).psn, 2);
	rig_destroy(r);
}

/* A packet is missing: its client is told when all before it is done, and
 * nobody else hears of it. */
static void moved_with_gaps(void **state)
{
	static const uint8_t bytes[16] = {1};
	struct rig *r = make("", 0);
	struct wire_pkt w;

	move_conn(r, 1, 1000);
	move_conn(r, 2, 2000);
	send_write(r, 1, 1000, bytes, 16);
	send_write(r, 1, 1002, bytes, 16);
	assert_int_equal(r->ports[SERVER_PORT].got, 1);
	assert_int_equal(r->ports[0].got, 0);
	send_reply(r, 0, WIRE_RC_ACK, 0xffffff, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[0].got, 2);
	w = rig_got(r, 0, 1);
	assert_int_equal(w.syndrome, WIRE_NAK_PSN);
	assert_int_equal(w.psn, 1001);
	/* With nothing on the way, at once, and once. */
	rig_clear(r);
	send_write(r, 2, 2001, bytes, 16);
	send_write(r, 2, 2002, bytes, 16);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(rig_got(r, 1, 0).psn, 2000);
	rig_destroy(r);
}

/* Answers to many WRITEs behind a READ whose own was lost: it is sent again
 * once, and not once for each of them. */
static void moved_goes_back_once(void **state)
{
	static const uint8_t bytes[16] = {1};
	struct rig *r = make("", 0);

	move_conn(r, 1, 1000);
	send_read(r, 1, 1000);
	for (unsigned i = 1; i <= 8; i++)
		send_write(r, 1, 1000 + i, bytes, 16);
	rig_clear(r);
	for (uint32_t i = 0; i < 8; i++)
		send_reply(r, 0, WIRE_RC_ACK, i, WIRE_ACK_UNLIMITED, NULL);
	assert_int_equal(r->ports[SERVER_PORT].got, 9);
	rig_destroy(r);
}

/* Its region is gone: what was executed is answered again, but nothing is read
 * any more, whatever has the region's place now. */
static void moved_and_gone(void **state)
{
	static const uint8_t bytes[16] = {1};
	struct rig *r = make("", 0);

	move_conn(r, 1, 1000);
	send_write(r, 1, 1000, bytes, 16);
	send_read(r, 1, 1001);
	send_reply(r, 0, WIRE_RC_READ_RESP_ONLY, 0, WIRE_ACK_UNLIMITED, bytes);
	tell(r, 0, "swordbox gone server=10.0.0.%d rkey=%d", SERVER, RKEY);
	tell(r, 0, "swordbox region server=10.0.0.%d rkey=%d va=%llu len=8",
	     SERVER, RKEY + 1, VA + 4096);
	rig_clear(r);
	send_write(r, 1, 1000, bytes, 16);
	assert_int_equal(rig_got(r, 0, 0).syndrome, WIRE_ACK_UNLIMITED);
	send_read(r, 1, 1001);
	assert_int_equal(rig_got(r, 0, 1).syndrome, WIRE_NAK_ACCESS);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	rig_destroy(r);
}

/* What a server would end the connection for is refused here. */
static void moved_and_wrong(void **state)
{
	static const uint8_t bytes[1032] = {1};
	struct rig *r = make("", 0);
	struct wire_pkt pkt;

	move_conn(r, 1, 1000);
	pkt = request(1, WIRE_RC_READ_REQ, 1000);
	pkt.rkey++;
	pkt.dma_len = 8;
	rig_send(r, 0, &pkt);
	assert_int_equal(rig_got(r, 0, 0).syndrome, WIRE_NAK_ACCESS);
	pkt.rkey--;
	pkt.va += 60; /* half of it is outside */
	rig_send(r, 0, &pkt);
	assert_int_equal(rig_got(r, 0, 1).syndrome, WIRE_NAK_ACCESS);
	send_write(r, 1, 1000, bytes, sizeof(bytes));
	assert_int_equal(rig_got(r, 0, 2).syndrome, WIRE_NAK_INVALID);
	pkt = request(1, WIRE_RC_SEND_ONLY, 1000);
	rig_send(r, 0, &pkt);
	assert_int_equal(rig_got(r, 0, 3).syndrome, WIRE_NAK_INVALID);
	assert_int_equal(r->ports[SERVER_PORT].got, 0);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moved_into_one),
		cmocka_unit_test(moved_with_gaps),
		cmocka_unit_test(moved_goes_back_once),
		cmocka_unit_test(moved_and_gone),
		cmocka_unit_test(moved_and_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
