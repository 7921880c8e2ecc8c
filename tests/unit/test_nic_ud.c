/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams: what arrives, what is dropped and counted, address handles. */
#include <errno.h>
#include <string.h>

#include "core/qp_priv.h"
#include "nic_pair.h"

enum {
	QKEY = 0x1234,
	UD_RECV_BYTES = WIRE_GRH_BYTES + 4096,
};

static void ud_connect(struct end *e)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	assert_int_equal(nic_qp_modify(e->qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	qp_to(e->qp, IBV_QPS_RTR);
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = END_PSN;
	assert_int_equal(nic_qp_modify(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN),
			 0);
}

static void ud_init(struct conn *c)
{
	unsigned i;

	memset(c, 0, sizeof(*c));
	pair_init(&c->p);
	for (i = 0; i < 2; i++) {
		end_init(&c->e[i], c->p.side[i].nic, IBV_QPT_UD);
		ud_connect(&c->e[i]);
	}
}

static struct ibv_ah_attr ah_attr(const struct end *to, uint8_t gid)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.sgid_index = gid;
	attr.grh.traffic_class = 0x20;
	attr.grh.hop_limit = 33;
	memcpy(attr.grh.dgid.raw, nic_get_config(to->nic)->gids[gid].ip, 16);
	return attr;
}

static struct nic_ah *ah_to(struct end *e, const struct end *to, uint8_t gid)
{
	struct ibv_ah_attr attr = ah_attr(to, gid);
	struct nic_ah *ah;

	assert_int_equal(nic_ah_create(e->pd, &attr, &ah), 0);
	return ah;
}

struct datagram {
	uint32_t len;
	uint32_t qkey;
	uint32_t qpn;
	bool imm;
};

static int post_dg(struct end *e, struct nic_ah *ah, uint64_t wr_id,
		   const struct datagram *d)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem, .length = d->len, .lkey = e->key};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = d->imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0xabcd1234),
		.wr.ud = {.remote_qpn = d->qpn, .remote_qkey = d->qkey},
	};
	struct nic_send_extra extra = {.ah = ah};

	return nic_qp_post_send(e->qp, &wr, &extra);
}

static int send_dg(struct end *e, struct nic_ah *ah, uint64_t wr_id,
		   const struct datagram *d)
{
	int err = post_dg(e, ah, wr_id, d);

	if (!err)
		nic_qp_kick(e->qp);
	return err;
}

static struct datagram to(const struct end *e, uint32_t len)
{
	return (struct datagram){
		.len = len, .qkey = QKEY, .qpn = nic_qp_number(e->qp)};
}

static void check_grh(const struct conn *c, unsigned gid, const uint8_t *grh)
{
	static const uint8_t zero[20];
	const uint8_t *src = nic_get_config(c->e[0].nic)->gids[gid].ip;
	const uint8_t *dst = nic_get_config(c->e[1].nic)->gids[gid].ip;

	if (gid == 0) {
		assert_memory_equal(grh, zero, 20);
		assert_int_equal(grh[20], 0x45);
		assert_int_equal(grh[21], 0x20);
		assert_int_equal(grh[28], 33);
		assert_memory_equal(grh + 32, src + 12, 4);
		assert_memory_equal(grh + 36, dst + 12, 4);
	} else {
		assert_int_equal(grh[0], 0x62);
		assert_int_equal(grh[7], 33);
		assert_memory_equal(grh + 8, src, 16);
		assert_memory_equal(grh + 24, dst, 16);
	}
}

static void arrives_with_its_header(void **state)
{
	static const uint32_t sizes[] = {0, 1, 3, 63, 1500, 4095, 4096};
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned gid, s, imm;

	ud_init(&c);
	for (s = 0; s < 4096; s++)
		a->mem[s] = (uint8_t)(s * 13 + (s >> 8));
	for (gid = 0; gid < 2; gid++) {
		struct nic_ah *ah = ah_to(a, b, (uint8_t)gid);

		for (s = 0; s < 2 * ARRAY_LEN(sizes); s++) {
			struct datagram d = to(b, sizes[s / 2]);
			struct nic_cqe cqe;

			imm = s % 2;
			d.imm = imm;
			memset(b->mem, 0x99, 8192);
			assert_int_equal(post_recv(b, s, 0, UD_RECV_BYTES), 0);
			assert_int_equal(send_dg(a, ah, s, &d), 0);
			pair_run(&c.p);
			cqe = expect_cqe(a->scq, s, IBV_WC_SUCCESS);
			assert_int_equal(cqe.opcode, IBV_WC_SEND);
			cqe = expect_cqe(b->rcq, s, IBV_WC_SUCCESS);
			assert_int_equal(cqe.opcode, IBV_WC_RECV);
			assert_int_equal(cqe.byte_len, 40 + d.len);
			assert_int_equal(cqe.src_qp, nic_qp_number(a->qp));
			assert_int_equal(cqe.wc_flags,
					 IBV_WC_GRH |
						 (imm ? IBV_WC_WITH_IMM : 0));
			if (imm)
				assert_int_equal(cqe.imm_or_key,
						 htobe32(0xabcd1234));
			check_grh(&c, gid, b->mem);
			assert_memory_equal(b->mem + 40, a->mem, d.len);
			assert_int_equal(b->mem[40 + d.len], 0x99);
		}
		nic_ah_destroy(ah);
	}
	/* One path per peer address, however many datagrams. */
	assert_int_equal(c.p.paths_opened, 2);
	conn_release(&c);
}

static void scatters_header_and_data(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_sge sge[4];
	struct ibv_recv_wr wr = {.wr_id = 4, .sg_list = sge, .num_sge = 4};
	static const uint32_t lens[] = {7, 0, 50, 43};
	struct datagram d;
	struct nic_ah *ah;
	unsigned i;

	ud_init(&c);
	memset(a->mem, 0x11, 60);
	ah = ah_to(a, b, 0);
	for (i = 0; i < 4; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)b->mem + i * 1000, lens[i],
					  b->key};
	assert_int_equal(nic_qp_post_recv(b->qp, &wr), 0);
	d = to(b, 60);
	assert_int_equal(send_dg(a, ah, 1, &d), 0);
	pair_run(&c.p);
	expect_cqe(b->rcq, 4, IBV_WC_SUCCESS);
	/* 7 bytes of header, 33 more and 17 of data, the rest of the data. */
	assert_int_equal(b->mem[2000 + 32], 2);
	assert_int_equal(b->mem[2000 + 33], 0x11);
	assert_int_equal(b->mem[2000 + 49], 0x11);
	assert_int_equal(b->mem[2000 + 50], 0);
	assert_int_equal(b->mem[3000 + 42], 0x11);
	assert_int_equal(b->mem[1000], 0);
	nic_ah_destroy(ah);
	conn_release(&c);
}

/* Dropped in silence: the sender's completion says only that it was sent. */
static void drops_are_counted(void **state)
{
	static const struct {
		const char *what;
		uint32_t qkey_xor, qpn_xor;
		bool recv;
		enum nic_counter counter;
	} table[] = {
		{"wrong queue key", 1, 0, true, NIC_C_drop_qkey},
		{"no receive", 0, 0, false, NIC_C_drop_no_recv},
		{"no such queue pair", 0, 1, true, NIC_C_drop_qpn},
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];
		struct datagram d;
		struct nic_ah *ah;

		ud_init(&c);
		d = to(b, 64);
		d.qkey ^= table[i].qkey_xor;
		d.qpn ^= table[i].qpn_xor;
		if (table[i].recv)
			assert_int_equal(post_recv(b, 2, 0, UD_RECV_BYTES), 0);
		ah = ah_to(a, b, 0);
		assert_int_equal(send_dg(a, ah, 1, &d), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
		expect_no_cqe(b->rcq);
		assert_int_equal(counter(b, table[i].counter), 1);
		assert_int_equal(nic_qp_state(b->qp), IBV_QPS_RTS);
		/* It goes on. */
		if (!table[i].recv)
			assert_int_equal(post_recv(b, 2, 0, UD_RECV_BYTES), 0);
		d = to(b, 64);
		assert_int_equal(send_dg(a, ah, 3, &d), 0);
		pair_run(&c.p);
		expect_cqe(b->rcq, 2, IBV_WC_SUCCESS);
		nic_ah_destroy(ah);
		conn_release(&c);
	}
}

static void the_top_bit_asks_for_the_own_queue_key(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct datagram d;
	struct nic_ah *ah;

	ud_init(&c);
	ah = ah_to(a, b, 0);
	d = to(b, 8);
	d.qkey = 0x80000000;
	assert_int_equal(post_recv(b, 2, 0, UD_RECV_BYTES), 0);
	assert_int_equal(send_dg(a, ah, 1, &d), 0);
	pair_run(&c.p);
	expect_cqe(b->rcq, 2, IBV_WC_SUCCESS);
	nic_ah_destroy(ah);
	conn_release(&c);
}

static void a_receive_that_is_not_ours_fails(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct end bad;
	struct datagram d;
	struct nic_ah *ah;

	ud_init(&c);
	ah = ah_to(a, b, 0);
	bad = *b;
	bad.key ^= 0x100;
	memset(b->mem, 0x77, 256);
	assert_int_equal(post_recv(&bad, 2, 0, UD_RECV_BYTES), 0);
	assert_int_equal(post_recv(b, 3, 0, UD_RECV_BYTES), 0);
	d = to(b, 100);
	assert_int_equal(send_dg(a, ah, 1, &d), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 2, IBV_WC_LOC_PROT_ERR);
	expect_cqe(b->rcq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(b->mem[0], 0x77);
	nic_ah_destroy(ah);
	conn_release(&c);
}

/* Anybody may send one: it must cost the receiver nothing. The receive is still
 * there for a datagram that fits. */
static void a_datagram_that_is_too_long_is_dropped(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct datagram d;
	struct nic_ah *ah;
	uint32_t i;

	ud_init(&c);
	ah = ah_to(a, b, 0);
	memset(b->mem, 0x77, 256);
	assert_int_equal(post_recv(b, 2, 0, WIRE_GRH_BYTES + 99), 0);
	assert_int_equal(post_recv(b, 3, 0, UD_RECV_BYTES), 0);
	for (i = 1; i <= 3; i++) {
		d = to(b, 100);
		assert_int_equal(send_dg(a, ah, i, &d), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		expect_no_cqe(b->rcq);
		assert_int_equal(b->mem[0], 0x77);
		assert_int_equal(counter(b, NIC_C_drop_ud_length), i);
	}
	assert_int_equal(nic_qp_state(b->qp), IBV_QPS_RTS);
	d = to(b, 99);
	assert_int_equal(send_dg(a, ah, 4, &d), 0);
	d = to(b, 100);
	assert_int_equal(send_dg(a, ah, 5, &d), 0);
	pair_run(&c.p);
	expect_cqe(b->rcq, 2, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 3, IBV_WC_SUCCESS);
	nic_ah_destroy(ah);
	conn_release(&c);
}

/* It used to end the queue pair, with all its receives. */
static void a_failed_send_leaves_receives_alone(void **state)
{
	static const enum ibv_qp_state next[] = {IBV_QPS_RTS, IBV_QPS_ERR};
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_ah *there, *back;
	struct datagram good, bad, answer;
	unsigned i;

	ud_init(&c);
	there = ah_to(a, b, 0);
	back = ah_to(b, a, 0);
	good = to(b, 8);
	bad = to(b, 4097);
	answer = to(a, 8);
	for (i = 0; i < 2; i++) {
		assert_int_equal(post_recv(a, 7, 0, UD_RECV_BYTES), 0);
		assert_int_equal(post_recv(a, 8, 0, UD_RECV_BYTES), 0);
		assert_int_equal(post_recv(b, 9, 0, UD_RECV_BYTES), 0);
		assert_int_equal(post_dg(a, there, 1, &good), 0);
		assert_int_equal(post_dg(a, there, 2, &bad), 0);
		assert_int_equal(send_dg(a, there, 3, &good), 0);
		assert_int_equal(nic_qp_state(a->qp), IBV_QPS_SQE);
		assert_int_equal(send_dg(a, there, 4, &good), 0);
		expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
		expect_cqe(a->scq, 2, IBV_WC_LOC_LEN_ERR);
		expect_cqe(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
		expect_cqe(a->scq, 4, IBV_WC_WR_FLUSH_ERR);
		expect_no_cqe(a->rcq);
		assert_int_equal(send_dg(b, back, 5, &answer), 0);
		pair_run(&c.p);
		expect_cqe(b->scq, 5, IBV_WC_SUCCESS);
		expect_cqe(a->rcq, 7, IBV_WC_SUCCESS);
		expect_cqe(b->rcq, 9, IBV_WC_SUCCESS);
		qp_to(a->qp, next[i]);
		if (next[i] == IBV_QPS_ERR) {
			expect_cqe(a->rcq, 8, IBV_WC_WR_FLUSH_ERR);
			break;
		}
		assert_int_equal(post_recv(b, 9, 0, UD_RECV_BYTES), 0);
		assert_int_equal(send_dg(a, there, 6, &good), 0);
		assert_int_equal(send_dg(b, back, 7, &answer), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, 6, IBV_WC_SUCCESS);
		expect_cqe(b->scq, 7, IBV_WC_SUCCESS);
		expect_cqe(b->rcq, 9, IBV_WC_SUCCESS);
		expect_cqe(a->rcq, 8, IBV_WC_SUCCESS);
	}
	expect_no_event(&a->qp_o);
	nic_ah_destroy(there);
	nic_ah_destroy(back);
	conn_release(&c);
}

static void requests_that_cannot_be_sent(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ};
	struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV};
	struct nic_send_extra extra;
	struct datagram d;
	struct end bad;

	ud_init(&c);
	extra = (struct nic_send_extra){.ah = ah_to(a, b, 0)};
	assert_int_equal(nic_qp_post_send(a->qp, &write, &extra), -EINVAL);
	assert_int_equal(nic_qp_post_send(a->qp, &read, &extra), -EINVAL);
	assert_int_equal(nic_qp_post_send(a->qp, &inv, &extra), -EINVAL);
	d = to(b, 8);
	assert_int_equal(send_dg(a, NULL, 1, &d), -EINVAL);
	/* Longer than a packet. */
	d = to(b, 4097);
	assert_int_equal(send_dg(a, extra.ah, 1, &d), 0);
	expect_cqe(a->scq, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(nic_qp_state(a->qp), IBV_QPS_SQE);
	qp_to(a->qp, IBV_QPS_RTS);
	/* Out of memory that is not ours. */
	bad = *a;
	bad.key ^= 0x100;
	d = to(b, 8);
	assert_int_equal(send_dg(&bad, extra.ah, 2, &d), 0);
	expect_cqe(a->scq, 2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(c.p.head, c.p.tail);
	nic_ah_destroy(extra.ah);
	conn_release(&c);
}

/* The handle may go as soon as the request is posted. */
static void address_handles_live_while_queued(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_ah *ah;
	struct datagram d;
	unsigned i;

	ud_init(&c);
	d = to(b, 16);
	c.p.capacity = 0;
	for (i = 0; i < 3; i++) {
		ah = ah_to(a, b, (uint8_t)(i % 2));
		assert_int_equal(post_recv(b, i, i * 5000, UD_RECV_BYTES), 0);
		assert_int_equal(send_dg(a, ah, i, &d), 0);
		nic_ah_destroy(ah);
	}
	expect_no_cqe(a->scq);
	assert_true(nic_flush(a->nic));
	assert_true(counter(a, NIC_C_tx_stalls) > 0);
	c.p.capacity = 1;
	pair_run(&c.p);
	for (i = 0; i < 3; i++) {
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		expect_cqe(b->rcq, i, IBV_WC_SUCCESS);
		check_grh(&c, i % 2, b->mem + i * 5000);
	}
	/* Flushed, forgotten and taken back ones let go of it too: the leak
	 * checker watches. */
	c.p.capacity = 0;
	for (i = 0; i < 3; i++) {
		ah = ah_to(a, b, 0);
		assert_int_equal(send_dg(a, ah, i, &d), 0);
		assert_int_equal(post_dg(a, ah, i, &d), 0);
		nic_ah_destroy(ah);
		if (i == 0)
			qp_to(a->qp, IBV_QPS_ERR);
		else
			nic_qp_unpost(a->qp, 1);
		qp_to(a->qp, IBV_QPS_RESET);
		ud_connect(a);
	}
	assert_int_equal(nic_outstanding(a->nic), 0);
	conn_release(&c);
}

static void address_handles_are_validated(void **state)
{
	struct conn c;
	struct ibv_ah_attr good, bad;
	struct nic_ah *ah;

	ud_init(&c);
	good = ah_attr(&c.e[1], 0);
	bad = good;
	bad.is_global = 0;
	assert_int_equal(nic_ah_create(c.e[0].pd, &bad, &ah), -EINVAL);
	bad = good;
	bad.port_num = 2;
	assert_int_equal(nic_ah_create(c.e[0].pd, &bad, &ah), -EINVAL);
	bad = good;
	bad.grh.sgid_index = 2;
	assert_int_equal(nic_ah_create(c.e[0].pd, &bad, &ah), -EINVAL);
	bad = good;
	bad.grh.sgid_index = 1; /* an IPv6 source for an IPv4 destination */
	assert_int_equal(nic_ah_create(c.e[0].pd, &bad, &ah), -EINVAL);
	assert_int_equal(nic_ah_create(c.e[0].pd, &good, &ah), 0);
	assert_int_equal(nic_pd_destroy(c.e[0].pd), -EBUSY);
	nic_ah_destroy(ah);
	conn_release(&c);
}

static void packets_for_another_address_are_dropped(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct wire_pkt pkt;

	ud_init(&c);
	assert_int_equal(post_recv(b, 1, 0, UD_RECV_BYTES), 0);
	pkt = packet(a, b, WIRE_UD_SEND_ONLY, 0);
	pkt.qkey = QKEY;
	pkt.dst_ip[15] = 99;
	inject(b, &pkt);
	assert_int_equal(counter(b, NIC_C_drop_dst_ip), 1);
	expect_no_cqe(b->rcq);
	pkt.dst_ip[15] = 2;
	inject(b, &pkt);
	expect_cqe(b->rcq, 1, IBV_WC_SUCCESS);
	conn_release(&c);
}

/* More peers than paths are kept for; and one that cannot be reached. */
static void paths_are_bounded(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_ah_attr attr;
	struct datagram d;
	struct nic_ah *ah;
	unsigned i;

	ud_init(&c);
	attr = ah_attr(b, 0);
	for (i = 0; i < NIC_UD_PATH_MAX + 100; i++) {
		attr.grh.dgid.raw[14] = (uint8_t)(i >> 8);
		attr.grh.dgid.raw[15] = (uint8_t)i;
		assert_int_equal(nic_ah_create(a->pd, &attr, &ah), 0);
		d = to(b, 1);
		assert_int_equal(send_dg(a, ah, i, &d), 0);
		c.p.tail = c.p.head;
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		nic_ah_destroy(ah);
		assert_true(c.p.paths_open <= NIC_UD_PATH_MAX);
	}
	assert_int_equal(c.p.paths_opened, NIC_UD_PATH_MAX + 100);
	ah = ah_to(a, b, 0);
	d.qpn = 7u << NIC_QPN_INDEX_BITS; /* no such NIC */
	assert_int_equal(send_dg(a, ah, 500, &d), 0);
	expect_cqe(a->scq, 500, IBV_WC_SUCCESS);
	assert_int_equal(c.p.tail, c.p.head);
	nic_path_down(a->nic, (struct env_path *)&c.p.side[1]);
	assert_int_equal(c.p.paths_open, 0);
	nic_ah_destroy(ah);
	conn_release(&c);
}

/* Queue pair 1: one per NIC, of a fixed number, reached by the plain number
 * too, and never given to anybody else. */
static void management_has_its_own(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_qp_attr attr = {
		.type = IBV_QPT_UD, .is_gsi = true, .owner = b};
	struct nic_qp *ordinary, *second;
	struct nic_cqe cqe;
	struct nic_ah *ah;
	unsigned i;

	ud_init(&c);
	ordinary = b->qp;
	attr.send_cq = b->scq;
	attr.recv_cq = b->rcq;
	attr.cap.max_recv_wr = attr.cap.max_send_wr = 4;
	attr.cap.max_recv_sge = attr.cap.max_send_sge = 1;
	assert_int_not_equal(nic_qp_number(ordinary) & (NIC_QP_MAX - 1), 1);
	assert_int_equal(nic_qp_create(b->pd, &attr, &b->qp), 0);
	assert_int_equal(nic_qp_create(b->pd, &attr, &second), -EBUSY);
	attr.type = IBV_QPT_RC;
	assert_int_equal(nic_qp_create(b->pd, &attr, &second), -EINVAL);
	assert_int_equal(nic_qp_number(b->qp),
			 nic_get_config(b->nic)->slot << NIC_QPN_INDEX_BITS |
				 NIC_GSI_INDEX);
	ud_connect(b);
	ah = ah_to(a, b, 0);
	for (i = 0; i < 2; i++) {
		struct datagram d = to(b, 1024);

		if (i)
			d.qpn = NIC_GSI_INDEX;
		assert_int_equal(post_recv(b, i, 0, WIRE_GRH_BYTES + 256), 0);
		/* Its queue key is public: anybody may send too much. */
		assert_int_equal(send_dg(a, ah, 8, &d), 0);
		pair_run(&c.p);
		(void)expect_cqe(a->scq, 8, IBV_WC_SUCCESS);
		expect_no_cqe(b->rcq);
		assert_int_equal(nic_qp_state(b->qp), IBV_QPS_RTS);
		d.len = 256;
		assert_int_equal(send_dg(a, ah, i, &d), 0);
		pair_run(&c.p);
		cqe = expect_cqe(b->rcq, i, IBV_WC_SUCCESS);
		assert_int_equal(cqe.src_qp, nic_qp_number(a->qp));
		(void)expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	}
	nic_ah_destroy(ah);
	nic_qp_destroy(ordinary);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrives_with_its_header),
		cmocka_unit_test(scatters_header_and_data),
		cmocka_unit_test(drops_are_counted),
		cmocka_unit_test(the_top_bit_asks_for_the_own_queue_key),
		cmocka_unit_test(a_receive_that_is_not_ours_fails),
		cmocka_unit_test(a_datagram_that_is_too_long_is_dropped),
		cmocka_unit_test(requests_that_cannot_be_sent),
		cmocka_unit_test(a_failed_send_leaves_receives_alone),
		cmocka_unit_test(address_handles_live_while_queued),
		cmocka_unit_test(address_handles_are_validated),
		cmocka_unit_test(packets_for_another_address_are_dropped),
		cmocka_unit_test(paths_are_bounded),
		cmocka_unit_test(management_has_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
