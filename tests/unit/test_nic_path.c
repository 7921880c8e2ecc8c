/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet is believed by the way it came, and not by the address in it: all
 * NICs of a host share its addresses, and anybody can write them.
 */
#include "chain_rig.h"
#include "core/nic_limits.h"
#include "nic_peer.h"

enum {
	OTHER_SLOT = 77,
};

/* Ways by which nothing of end 0, which is at a cable, can come. */
static const uint32_t wrong_ways[] = {
	NIC_FROM_UNKNOWN,
	NIC_FROM_NET,
	NIC_FROM_NOBODY,
	OTHER_SLOT,
	OTHER_SLOT | NIC_FROM_FORWARDS,
	2, /* its own */
};

static void near_begin(struct conn *c)
{
	conn_init_as(c, IBV_MTU_256, true);
	memset(c->e[1].mem, CANARY, END_BYTES);
}

/* A WRITE that is right in all but its way; then one with a wrong key, which
 * would cost the connection its life. */
static void the_peer_has_one_way(void **state)
{
	struct wire_pkt pkt;
	struct conn c;

	near_begin(&c);
	for (unsigned i = 0; i < ARRAY_LEN(wrong_ways); i++) {
		pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
		inject_from(&c.e[1], &pkt, wrong_ways[i]);
		pkt.rkey ^= 0x100;
		inject_from(&c.e[1], &pkt, wrong_ways[i]);
		pkt = response(&c, WIRE_RC_ACK, 0, 0);
		pkt.syndrome = WIRE_NAK_ACCESS;
		inject_from(&c.e[0], &pkt,
			    wrong_ways[i] == 2 ? 1 : wrong_ways[i]);
		assert_int_equal(counter(&c.e[1], NIC_C_drop_path), 2 * i + 2);
		assert_int_equal(counter(&c.e[0], NIC_C_drop_path), i + 1);
	}
	(void)nic_flush(c.e[1].nic);
	assert_int_equal(c.p.head, c.p.tail);
	assert_untouched(&c.e[1]);
	assert_int_equal(counter(&c.e[1], NIC_C_deny_key), 0);
	assert_int_equal(nic_qp_state(c.e[1].qp), IBV_QPS_RTS);
	/* The same by the cable, also if its peer receives for all. */
	pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
	inject_from(&c.e[1], &pkt, 1);
	pkt = request(&c, WIRE_RC_WRITE_ONLY, 1, 64);
	pkt.va += 64;
	inject_from(&c.e[1], &pkt, 1 | NIC_FROM_FORWARDS);
	assert_int_equal(c.e[1].mem[0], 0);
	assert_int_equal(c.e[1].mem[127], 0);
	done(&c);
}

/* Frames that are parsed by stamp are asked as well. */
static void stamps_know_the_way(void **state)
{
	struct conn c;
	struct wire_pkt pkt;
	uint32_t i;

	near_begin(&c);
	for (i = 0; i < 8; i++) {
		pkt = request(&c, WIRE_RC_WRITE_ONLY, i, 64);
		inject_from(&c.e[1], &pkt, 1);
	}
	assert_int_equal(c.e[1].mem[0], 0);
	memset(c.e[1].mem, CANARY, END_BYTES);
	pkt = request(&c, WIRE_RC_WRITE_ONLY, i, 64);
	inject_from(&c.e[1], &pkt, OTHER_SLOT);
	inject_from(&c.e[1], &pkt, NIC_FROM_NET);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_path), 2);
	assert_untouched(&c.e[1]);
	inject_from(&c.e[1], &pkt, 1);
	assert_int_equal(c.e[1].mem[0], 0);
	done(&c);
}

/* A peer on the network: from there, or from a process of this host that
 * received its packet, and from no other cable. */
static void the_network_may_be_forwarded(void **state)
{
	struct wire_pkt pkt;
	struct conn c;

	begin(&c);
	pkt = request(&c, WIRE_RC_WRITE_ONLY, 0, 64);
	inject_from(&c.e[1], &pkt, OTHER_SLOT);
	inject_from(&c.e[1], &pkt, 1);
	inject_from(&c.e[1], &pkt, NIC_FROM_UNKNOWN);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_path), 3);
	assert_untouched(&c.e[1]);
	inject_from(&c.e[1], &pkt, OTHER_SLOT | NIC_FROM_FORWARDS);
	assert_int_equal(c.e[1].mem[0], 0);
	pkt = request(&c, WIRE_RC_WRITE_ONLY, 1, 64);
	pkt.va += 64;
	inject_from(&c.e[1], &pkt, NIC_FROM_NET);
	assert_int_equal(c.e[1].mem[64], 0);
	assert_int_equal(counter(&c.e[1], NIC_C_drop_path), 3);
	done(&c);
}

/* ---- datagrams ----------------------------------------------------------- */

static void datagrams_begin(struct conn *c, struct end *u, bool near)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	conn_init_as(c, IBV_MTU_256, near);
	end_share(u, &c->e[1], IBV_QPT_UD);
	assert_int_equal(nic_qp_modify(u->qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	qp_to(u->qp, IBV_QPS_RTR);
}

static void expect_datagram(struct end *u, const struct wire_pkt *pkt,
			    uint32_t from, bool taken)
{
	uint64_t drops = counter(u, NIC_C_drop_path);

	if (taken)
		assert_int_equal(post_recv(u, 1, 0, 256), 0);
	inject_from(u, pkt, from);
	assert_int_equal(counter(u, NIC_C_drop_path), drops + !taken);
	if (taken)
		expect_cqe(u->rcq, 1, IBV_WC_SUCCESS);
}

/* Who sends management for another process of this host is not heard. */
static void a_datagram_names_its_sender(void **state)
{
	struct wire_pkt pkt;
	struct conn c;
	struct end u;

	datagrams_begin(&c, &u, true);
	pkt = packet(&c.e[0], &u, WIRE_UD_SEND_ONLY, 0);
	for (unsigned i = 0; i < ARRAY_LEN(wrong_ways); i++)
		expect_datagram(&u, &pkt, wrong_ways[i], false);
	expect_datagram(&u, &pkt, 1, true);
	/* Of another host. */
	pkt.src_ip[15] = 99;
	expect_datagram(&u, &pkt, 1, false);
	expect_datagram(&u, &pkt, NIC_FROM_UNKNOWN, false);
	expect_datagram(&u, &pkt, NIC_FROM_NET, true);
	expect_datagram(&u, &pkt, OTHER_SLOT | NIC_FROM_FORWARDS, true);
	nic_qp_destroy(u.qp);
	done(&c);
	/* Where there are no cables, or not for this, our own come from the
	 * network, too. */
	datagrams_begin(&c, &u, false);
	pkt = packet(&c.e[1], &u, WIRE_UD_SEND_ONLY, 0);
	expect_datagram(&u, &pkt, NIC_FROM_NET, true);
	expect_datagram(&u, &pkt, OTHER_SLOT | NIC_FROM_FORWARDS, true);
	expect_datagram(&u, &pkt, OTHER_SLOT, false);
	nic_qp_destroy(u.qp);
	done(&c);
}

/* ---- chains -------------------------------------------------------------- */

/* A queue of a chain that works on its own NIC: every number, packet number and
 * way is tried with a request that would end it, and with one that would write.
 */
static void inner_queues_take_no_packets(void **state)
{
	static const struct rig_shape shape = {
		.work_blocks = 32,
		.work_flags = NIC_CHAIN_ORDERED,
	};
	static const uint32_t ways[] = {NIC_FROM_NET, 1, OTHER_SLOT,
					OTHER_SLOT | NIC_FROM_FORWARDS,
					NIC_FROM_UNKNOWN};
	struct rig r;

	rig_init(&r, &shape);
	rig_connect(&r);
	qp_to(r.work.qp, IBV_QPS_RESET);
	end_connect(&r.work, &r.work, IBV_MTU_4096);
	for (uint32_t i = 0; i < ARRAY_LEN(ways) * NIC_QP_MAX; i++) {
		struct wire_pkt pkt =
			packet(&r.back, &r.work, WIRE_RC_WRITE_ONLY, END_PSN);

		pkt.dest_qpn = 2 << NIC_QPN_INDEX_BITS | i % NIC_QP_MAX;
		if (pkt.dest_qpn != nic_qp_number(r.work.qp) && i % 64)
			continue;
		pkt.va = rig_at(&r, RIG_HEAP);
		pkt.rkey = r.back.key;
		pkt.payload = payload;
		pkt.payload_len = pkt.dma_len = 8;
		inject_from(&r.work, &pkt, ways[i / NIC_QP_MAX]);
		pkt.rkey ^= 0x100;
		inject_from(&r.work, &pkt, ways[i / NIC_QP_MAX]);
	}
	assert_int_equal(counter(&r.work, NIC_C_drop_path),
			 2 * ARRAY_LEN(ways));
	assert_int_equal(counter(&r.work, NIC_C_deny_key), 0);
	assert_int_equal(nic_qp_state(r.work.qp), IBV_QPS_RTS);
	/* And it works. */
	rig_set_word(&r, RIG_HEAP + 0x80, 77);
	rig_rdma(&r, rig_work(&r, 0), AQDV_WQE_WRITE, RIG_HEAP + 0x100,
		 RIG_HEAP + 0x80, 8);
	rig_enable(&r, &r.work, 1);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x100), 77);
	rig_release(&r);
}

static uint32_t room; /* for a packet's payload on the way to 10.0.0.2 */

static uint32_t payload_bytes(struct env *env, const struct env_addr *dst)
{
	return dst->ip[15] == 2 ? room : 0;
}

/* What is known of one way changes nothing for another, nor for the port. */
static void a_path_has_its_mtu(void **state)
{
	static const uint32_t rooms[] = {0, 100, 256, 1023, 1024, 9000};
	static const enum ibv_mtu want[] = {IBV_MTU_4096, IBV_MTU_256,
					    IBV_MTU_256,  IBV_MTU_512,
					    IBV_MTU_1024, IBV_MTU_4096};
	uint8_t ip[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
	struct env_ops ops = pair_env_ops;
	struct ibv_port_attr port;
	struct conn c;

	conn_init(&c, IBV_MTU_4096);
	assert_int_equal(nic_path_mtu(c.e[0].nic, ip), IBV_MTU_4096);
	ops.addr_payload_bytes = payload_bytes;
	c.p.side[0].env.ops = &ops;
	for (unsigned i = 0; i < ARRAY_LEN(rooms); i++) {
		room = rooms[i];
		ip[15] = 2;
		assert_int_equal(nic_path_mtu(c.e[0].nic, ip), want[i]);
		ip[15] = 3;
		assert_int_equal(nic_path_mtu(c.e[0].nic, ip), IBV_MTU_4096);
		nic_query_port(c.e[0].nic, &port);
		assert_int_equal(port.active_mtu, IBV_MTU_4096);
	}
	/* The interface itself is for all of them. */
	nic_lower_mtu(c.e[0].nic, 1024);
	assert_int_equal(nic_path_mtu(c.e[0].nic, ip), IBV_MTU_1024);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_peer_has_one_way),
		cmocka_unit_test(stamps_know_the_way),
		cmocka_unit_test(the_network_may_be_forwarded),
		cmocka_unit_test(a_datagram_names_its_sender),
		cmocka_unit_test(inner_queues_take_no_packets),
		cmocka_unit_test(a_path_has_its_mtu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
