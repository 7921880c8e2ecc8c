/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarding: learning, flooding, claims, full tables, ports that come and go,
 * and frames that are none. */
#include "tor_rig.h"

#include "base/json_out.h"

static struct wire_pkt write_to(uint8_t from, uint8_t to)
{
	static const uint8_t payload[64] = {1, 2, 3};
	struct wire_pkt pkt = {.opcode = WIRE_RC_WRITE_ONLY,
			       .dest_qpn = 0x4011,
			       .psn = 7,
			       .dma_len = 64,
			       .payload = payload,
			       .payload_len = 64};

	rig_addresses(&pkt, from, to);
	return pkt;
}

static void floods_then_learns(void **state)
{
	struct rig *r = rig_create(4, 24);
	struct wire_pkt a = write_to(1, 2), b = write_to(2, 1);

	rig_send(r, 0, &a);
	assert_int_equal(r->ports[0].got, 0);
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(r->ports[i].got, 1);
	assert_int_equal(tor_counter(r->tor, TOR_C_flooded), 1);
	rig_clear(r);
	rig_send(r, 1, &b);
	rig_send(r, 0, &a);
	assert_int_equal(r->ports[0].got, 1);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(r->ports[2].got, 0);
	assert_int_equal(rig_got(r, 0, 0).psn, 7);
	assert_int_equal(r->ports[0].flushes, 1);
	/* To where it came from: dropped. */
	rig_send(r, 1, &a);
	assert_int_equal(tor_counter(r->tor, TOR_C_same_port), 1);
	/* Host 1 was last seen at port 1, so it moved. */
	assert_true(tor_counter(r->tor, TOR_C_moved) > 0);
	rig_destroy(r);
}

static void knows_an_ip_without_its_mac(void **state)
{
	struct rig *r = rig_create(3, 24);
	struct wire_pkt a = write_to(1, 2);

	rig_introduce(r, 3);
	memset(a.dst_mac, 0x66, 6);
	rig_send(r, 0, &a);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(r->ports[2].got, 0);
	rig_destroy(r);
}

static void forgets_what_is_old(void **state)
{
	struct rig *r = rig_create(3, 24);
	struct wire_pkt a = write_to(1, 2);

	rig_introduce(r, 3);
	r->now_ns += TOR_FDB_AGE_NS + 1;
	rig_send(r, 0, &a);
	assert_int_equal(r->ports[2].got, 1);
	rig_destroy(r);
}

static void claims_beat_learning(void **state)
{
	struct rig *r = rig_create(4, 14);
	struct wire_pkt pkt = write_to(1, 9);

	assert_int_equal(tor_port_claim(r->ports[1].port, pkt.dst_ip, 1), 0);
	assert_int_equal(tor_port_claim(r->ports[2].port, pkt.dst_ip, 2), 0);
	assert_int_equal(tor_port_claim(r->ports[2].port, pkt.dst_ip, 2), 0);
	assert_int_equal(tor_port_claim(r->ports[3].port, pkt.dst_ip, 2),
			 -EEXIST);
	pkt.dest_qpn = 1 << 14 | 5;
	rig_send(r, 0, &pkt);
	pkt.dest_qpn = 2 << 14 | 5;
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(r->ports[2].got, 1);
	assert_int_equal(r->ports[3].got, 0);
	rig_clear(r);
	rig_send(r, 2, &pkt); /* to itself */
	assert_int_equal(r->ports[2].got, 1);
	pkt.dest_qpn = 3 << 14 | 5;
	rig_send(r, 0, &pkt);
	assert_int_equal(tor_counter(r->tor, TOR_C_no_slot), 1);
	/* The address is free again when both are gone. */
	tor_port_remove(r->ports[1].port);
	tor_port_remove(r->ports[2].port);
	rig_clear(r);
	rig_send(r, 0, &pkt);
	assert_int_equal(r->ports[3].got, 1);
	rig_destroy(r);
}

static void ports_flap(void **state)
{
	struct rig *r = rig_create(3, 24);
	struct wire_pkt a = write_to(1, 2), b = write_to(2, 1);

	rig_introduce(r, 3);
	tor_port_set_up(r->ports[1].port, false);
	rig_send(r, 0, &a);
	rig_send(r, 1, &b);
	assert_int_equal(r->ports[0].got + r->ports[1].got, 0);
	assert_int_equal(tor_port_counter(r->ports[1].port, TOR_P_tx_down), 1);
	assert_int_equal(tor_port_counter(r->ports[1].port, TOR_P_rx_down), 1);
	tor_port_set_up(r->ports[1].port, true);
	r->ports[1].full = true;
	rig_send(r, 0, &a);
	assert_int_equal(tor_port_counter(r->ports[1].port, TOR_P_tx_full), 1);
	r->ports[1].full = false;
	for (unsigned i = 0; i < 1000; i++) {
		tor_port_remove(r->ports[1].port);
		rig_add_port(r, 1);
		rig_clear(r);
		rig_send(r, 0, &a); /* unknown again */
		assert_int_equal(r->ports[1].got, 1);
		rig_send(r, 1, &b);
	}
	rig_destroy(r);
}

static void table_is_bounded(void **state)
{
	struct rig *r = rig_create(2, 24);
	struct wire_pkt pkt = write_to(1, 2);

	for (uint32_t i = 0; i < 3 * TOR_FDB_ENTRIES; i++) {
		pkt.src_mac[2] = (uint8_t)(i >> 16);
		pkt.src_mac[3] = (uint8_t)(i >> 8);
		pkt.src_mac[4] = (uint8_t)i;
		if (i % 1024 == 0)
			rig_clear(r);
		r->now_ns++;
		rig_send(r, 0, &pkt);
	}
	assert_true(tor_counter(r->tor, TOR_C_evicted) > TOR_FDB_ENTRIES);
	rig_destroy(r);
}

/* A remembered way is not used when the table says otherwise: an address moves,
 * is claimed, or its port goes. */
static void remembered_ways_end(void **state)
{
	struct rig *r = rig_create(4, 14);
	struct wire_pkt to2 = write_to(1, 2), from2 = write_to(2, 1);

	rig_introduce(r, 4);
	for (unsigned i = 0; i < 3; i++)
		rig_send(r, 0, &to2);
	assert_int_equal(r->ports[1].got, 3);
	rig_send(r, 2, &from2); /* host 2 is at port 2 now */
	rig_clear(r);
	rig_send(r, 0, &to2);
	assert_int_equal(r->ports[1].got, 0);
	assert_int_equal(r->ports[2].got, 1);
	assert_int_equal(tor_port_claim(r->ports[3].port, to2.dst_ip,
					to2.dest_qpn >> 14),
			 0);
	rig_send(r, 0, &to2);
	assert_int_equal(r->ports[3].got, 1);
	tor_port_remove(r->ports[3].port);
	rig_clear(r);
	rig_send(r, 0, &to2);
	assert_int_equal(r->ports[2].got, 1);
	tor_port_remove(r->ports[2].port);
	rig_clear(r);
	rig_send(r, 0, &to2); /* nobody knows: to all */
	assert_int_equal(r->ports[1].got, 1);
	rig_destroy(r);
}

/* 10,000 connections of 200 hosts at once, while ports come and go: every frame
 * is forwarded, flooded, or counted with the reason why not. */
static void ten_thousand_connections(void **state)
{
	struct rig *r = rig_create(8, 24);
	uint64_t known = 0;

	rig_introduce(r, 8);
	for (uint32_t i = 0; i < 30000; i++) {
		uint8_t from = (uint8_t)(i % 200 + 1);
		struct wire_pkt pkt =
			write_to(from, (uint8_t)(i / 200 % 200 + 1));
		struct rig_port *flaps = &r->ports[i / 1000 % 8];

		pkt.dest_qpn = i % 10000 + 2;
		if (i % 1000 == 999) {
			known += tor_port_counter(flaps->port, TOR_P_rx_down);
			tor_port_remove(flaps->port);
			rig_add_port(r, i / 1000 % 8);
		}
		tor_port_set_up(r->ports[3].port, i % 700 > 50);
		rig_send(r, from % 8, &pkt);
		rig_clear(r);
	}
	for (unsigned i = 0; i < 8; i++)
		known += tor_port_counter(r->ports[i].port, TOR_P_rx_down);
	assert_true(known > 0);
	assert_true(tor_counter(r->tor, TOR_C_same_port) > 0);
	assert_true(tor_counter(r->tor, TOR_C_forwarded) > 15000);
	known += tor_counter(r->tor, TOR_C_forwarded) +
		 tor_counter(r->tor, TOR_C_flooded) +
		 tor_counter(r->tor, TOR_C_same_port);
	assert_int_equal(tor_counter(r->tor, TOR_C_frames), 30000 + 8);
	assert_int_equal(known, 30000 + 8);
	rig_destroy(r);
}

static void port_limit(void **state)
{
	struct rig *r = rig_create(1, 24);
	struct tor_port_config cfg = {
		.name = "x", .ops = &rig_port_ops, .ctx = &r->ports[1]};
	struct tor_port *p;

	for (unsigned i = 1; i < TOR_PORT_MAX; i++)
		assert_int_equal(tor_port_add(r->tor, &cfg, &p), 0);
	assert_int_equal(tor_port_add(r->tor, &cfg, &p), -ENOSPC);
	rig_destroy(r);
}

/* Every prefix of a frame, with and without a program that parses. */
static void short_frames(void **state)
{
	struct rig *r = rig_create(3, 14);
	struct wire_pkt pkt = write_to(1, 2);
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = wire_build(&pkt, frame);

	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t n = 0; n <= len; n++)
			rig_input(r, 0, frame, n);
		rig_clear(r);
		assert_int_equal(tor_program_add(r->tor, "fault", ""), 0);
	}
	assert_int_equal(tor_counter(r->tor, TOR_C_short_frames), 28);
	assert_int_equal(tor_port_counter(r->ports[0].port, TOR_P_rx_roce), 1);
	assert_true(tor_port_counter(r->ports[0].port, TOR_P_rx_damaged) > 50);
	rig_destroy(r);
}

/* A program that has nothing to do with a packet costs it no parsing, and a
 * damaged one passes as it would without; told of its server, all are seen. */
static void only_what_is_wanted_is_parsed(void **state)
{
	struct rig *r = rig_create(2, 24);
	struct wire_pkt pkt = write_to(1, 2);
	struct tor_port *in = r->ports[0].port;

	assert_int_equal(tor_program_add(r->tor, "swordbox", ""), 0);
	rig_send(r, 0, &pkt); /* closed: nothing passes unseen */
	assert_int_equal(tor_port_counter(in, TOR_P_rx_roce), 1);
	assert_int_equal(r->ports[1].got, 0);
	assert_int_equal(tor_control(r->tor, "swordbox ready", NULL), 0);
	rig_send(r, 0, &pkt);
	assert_int_equal(tor_port_counter(in, TOR_P_rx_roce), 1);
	assert_int_equal(r->ports[1].got, 1);
	assert_int_equal(tor_control(r->tor,
				     "swordbox server ip=10.0.0.2 qpn=9 psn=0 "
				     "own_ip=10.0.0.77 own_qpn=8",
				     NULL),
			 0);
	rig_send(r, 0, &pkt); /* not of a declared connection */
	assert_int_equal(tor_port_counter(in, TOR_P_rx_roce), 2);
	assert_int_equal(r->ports[1].got, 1);
	rig_destroy(r);
}

static void hints_need_a_port_that_knows(void **state)
{
	struct rig *r = rig_create(2, 24);
	struct wire_pkt pkt = write_to(1, 2);
	uint8_t frame[WIRE_FRAME_MAX];
	size_t len = wire_build(&pkt, frame);

	tor_begin(r->tor);
	tor_input(r->ports[0].port, frame, len, "hint");
	tor_end(r->tor);
	assert_int_equal(r->ports[1].got, 0);
	assert_int_equal(tor_port_counter(r->ports[1].port, TOR_P_tx_hint), 1);
	rig_destroy(r);
}

/* All of it is valid JSON with the right names. */
static void reports(void **state)
{
	struct rig *r = rig_create(2, 24);
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	struct json_out out;

	assert_int_equal(tor_program_add_text(r->tor, "fault:loss=1%"), 0);
	assert_int_equal(tor_program_add_text(r->tor, "nonsense"), -EINVAL);
	json_out_init(&out, f);
	json_out_object(&out, NULL);
	tor_report(r->tor, &out);
	tor_report_resources(r->tor, &out);
	assert_int_equal(tor_control(r->tor, "fault show", &out), 0);
	assert_int_equal(tor_control(r->tor, "fault dance", &out), -EINVAL);
	assert_int_equal(tor_control(r->tor, "other show", &out), -ENOENT);
	json_out_close(&out);
	assert_int_equal(json_out_end(&out), 0);
	fclose(f);
	assert_non_null(strstr(text, "\"held frames\""));
	assert_non_null(strstr(text, "\"rx_frames\""));
	free(text);
	rig_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floods_then_learns),
		cmocka_unit_test(knows_an_ip_without_its_mac),
		cmocka_unit_test(forgets_what_is_old),
		cmocka_unit_test(claims_beat_learning),
		cmocka_unit_test(ports_flap),
		cmocka_unit_test(table_is_bounded),
		cmocka_unit_test(remembered_ways_end),
		cmocka_unit_test(ten_thousand_connections),
		cmocka_unit_test(port_limit),
		cmocka_unit_test(short_frames),
		cmocka_unit_test(only_what_is_wanted_is_parsed),
		cmocka_unit_test(hints_need_a_port_that_knows),
		cmocka_unit_test(reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
