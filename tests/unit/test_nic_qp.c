/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs and completion queues: states, limits, draining, flushing. */
#include "core/nic_limits.h"
#include "nic_pair.h"

enum {
	STATES = IBV_QPS_ERR + 1,
	/* Legal bits that this NIC has no support for. */
	UNSUPPORTED =
		IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT,
	ALL_BITS = IBV_QP_RATE_LIMIT * 2 - 1,
};

struct change {
	enum ibv_qp_state from, to;
	int need, may;
};

/* IBA table 91; to RESET and ERR is always possible and takes nothing. */
static const struct change rc_changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH},
	{IBV_QPS_RTR, IBV_QPS_RTS,
	 IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | UNSUPPORTED},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | UNSUPPORTED},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
		 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
		 IBV_QP_ALT_PATH | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		 IBV_QP_RNR_RETRY | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_PATH_MIG_STATE},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | UNSUPPORTED},
};

static const struct change ud_changes[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	 IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
	{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_QKEY},
};

static const struct change *find_change(enum ibv_qp_type type, unsigned from,
					unsigned to)
{
	const struct change *t = type == IBV_QPT_RC ? rc_changes : ud_changes;
	unsigned n = type == IBV_QPT_RC ? ARRAY_LEN(rc_changes)
					: ARRAY_LEN(ud_changes);
	unsigned i;

	for (i = 0; i < n; i++)
		if (t[i].from == from && t[i].to == to)
			return &t[i];
	return NULL;
}

/* Values that fit whatever the mask takes of them. */
static struct ibv_qp_attr good_values(const struct end *peer)
{
	struct ibv_qp_attr a = {
		.port_num = 1,
		.qkey = 5,
		.qp_access_flags = END_ACCESS & 0xf,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = nic_qp_number(peer->qp),
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 10,
		.retry_cnt = 3,
		.rnr_retry = 3,
	};

	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	memcpy(a.ah_attr.grh.dgid.raw, nic_get_config(peer->nic)->gids[0].ip,
	       16);
	return a;
}

static int change_to(struct nic_qp *qp, const struct end *peer,
		     enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr a = good_values(peer);

	a.qp_state = to;
	return nic_qp_modify(qp, &a, mask);
}

/* No call leads to SQE: a datagram that is longer than a packet does. */
static void fail_a_send(struct end *e, const struct end *peer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e->mem, .length = 4097, .lkey = e->key};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_qp_attr a = good_values(peer);
	struct nic_send_extra extra = {0};

	assert_int_equal(nic_ah_create(e->pd, &a.ah_attr, &extra.ah), 0);
	assert_int_equal(nic_qp_post_send(e->qp, &wr, &extra), 0);
	nic_qp_kick(e->qp);
	nic_ah_destroy(extra.ah);
	expect_cqe(e->scq, 0, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(nic_qp_state(e->qp), IBV_QPS_SQE);
}

/* From RESET step by step. */
static void bring_to(struct end *e, enum ibv_qp_type type,
		     enum ibv_qp_state state, const struct end *peer)
{
	static const enum ibv_qp_state steps[] = {IBV_QPS_RESET, IBV_QPS_INIT,
						  IBV_QPS_RTR, IBV_QPS_RTS,
						  IBV_QPS_SQD};
	unsigned i;

	qp_to(e->qp, IBV_QPS_RESET);
	if (state == IBV_QPS_ERR)
		qp_to(e->qp, IBV_QPS_ERR);
	if (state == IBV_QPS_SQE) {
		bring_to(e, type, IBV_QPS_RTS, peer);
		fail_a_send(e, peer);
	}
	for (i = 1; nic_qp_state(e->qp) != state; i++)
		assert_int_equal(
			change_to(e->qp, peer, steps[i],
				  IBV_QP_STATE | find_change(type, steps[i - 1],
							     steps[i])
							 ->need),
			0);
}

static int expected_result(enum ibv_qp_type type, unsigned from, unsigned to,
			   int mask)
{
	const struct change *t = find_change(type, from, to);

	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return mask ? -EINVAL : 0;
	if (!t || (mask & t->need) != t->need || (mask & ~(t->need | t->may)))
		return -EINVAL;
	return mask & UNSUPPORTED ? -EOPNOTSUPP : 0;
}

static void check_change(struct end *e, enum ibv_qp_type type, unsigned from,
			 unsigned to, int mask, const struct end *peer)
{
	int want = expected_result(type, from, to, mask);
	int got;

	bring_to(e, type, (enum ibv_qp_state)from, peer);
	got = change_to(e->qp, peer, (enum ibv_qp_state)to, mask);
	if (got != want)
		print_error("type %d, %u -> %u, mask %#x: %d, not %d\n", type,
			    from, to, (unsigned)mask, got, want);
	assert_int_equal(got, want);
	assert_int_equal(nic_qp_state(e->qp), want ? from : to);
}

/* Every pair of states, with the needed bits, without each of them, and with
 * each bit more. */
static void state_table_is_kept(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD};
	struct conn c;
	unsigned t, from, to, bit;

	conn_init(&c, IBV_MTU_256);
	for (t = 0; t < 2; t++) {
		struct end e;

		end_share(&e, &c.e[0], types[t]);
		for (from = 0; from < STATES; from++) {
			for (to = 0; to < STATES; to++) {
				const struct change *ch =
					find_change(types[t], from, to);
				int base = IBV_QP_STATE | (ch ? ch->need : 0);

				if (from == IBV_QPS_SQE &&
				    types[t] == IBV_QPT_RC)
					continue;
				check_change(&e, types[t], from, to, base,
					     &c.e[1]);
				for (bit = 1; bit < ALL_BITS; bit *= 2)
					if (bit != IBV_QP_STATE &&
					    bit != IBV_QP_CUR_STATE)
						check_change(&e, types[t], from,
							     to,
							     base ^ (int)bit,
							     &c.e[1]);
			}
		}
		nic_qp_destroy(e.qp);
	}
	conn_release(&c);
}

static void current_state_must_be_true(void **state)
{
	struct conn c;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
	unsigned s;

	conn_init(&c, IBV_MTU_256);
	for (s = 0; s < STATES; s++) {
		a.cur_qp_state = (enum ibv_qp_state)s;
		if (s != IBV_QPS_RTS)
			assert_int_equal(
				nic_qp_modify(c.e[0].qp, &a,
					      IBV_QP_STATE | IBV_QP_CUR_STATE),
				-EINVAL);
	}
	a.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(
		nic_qp_modify(c.e[0].qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE),
		0);
	a.qp_state = (enum ibv_qp_state)STATES;
	assert_int_equal(nic_qp_modify(c.e[0].qp, &a, IBV_QP_STATE), -EINVAL);
	a.qp_state = (enum ibv_qp_state) - 1;
	assert_int_equal(nic_qp_modify(c.e[0].qp, &a, IBV_QP_STATE), -EINVAL);
	conn_release(&c);
}

static void values_out_of_range_are_refused(void **state)
{
	struct conn c;
	struct end e;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	end_share(&e, &c.e[0], IBV_QPT_RC);
	for (i = 0; i < 18; i++) {
		struct ibv_qp_attr a = good_values(&c.e[1]);
		enum ibv_qp_state from = i < 3	  ? IBV_QPS_RESET
					 : i < 14 ? IBV_QPS_INIT
						  : IBV_QPS_RTR;

		switch (i) {
		case 0:
			a.port_num = 0;
			break;
		case 1:
			a.port_num = 2;
			break;
		case 2:
			a.pkey_index = 1;
			break;
		case 3:
			a.path_mtu = (enum ibv_mtu)0;
			break;
		case 4:
			a.path_mtu = (enum ibv_mtu)(IBV_MTU_4096 + 1);
			break;
		case 5:
			a.dest_qp_num = 1u << 24;
			break;
		case 6:
			a.max_dest_rd_atomic = NIC_RD_ATOMIC_MAX + 1;
			break;
		case 7:
			a.min_rnr_timer = 32;
			break;
		case 8:
			a.ah_attr.grh.dgid.raw[10] ^= 1; /* no IPv4 any more */
			break;
		case 9:
			a.ah_attr.port_num = 0;
			break;
		case 10:
			a.ah_attr.grh.sgid_index = NIC_GID_MAX;
			break;
		case 11:
			a.ah_attr.grh.sgid_index = 1; /* the other family */
			break;
		case 12:
			a.dest_qp_num = 9u << NIC_QPN_INDEX_BITS;
			break;
		case 13:
			a.ah_attr.port_num = 2;
			break;
		case 14:
			a.timeout = 32;
			break;
		case 15:
			a.retry_cnt = 8;
			break;
		case 16:
			a.rnr_retry = 8;
			break;
		default:
			a.max_rd_atomic = NIC_RD_ATOMIC_MAX + 1;
			break;
		}
		bring_to(&e, IBV_QPT_RC, from, &c.e[1]);
		a.qp_state = (enum ibv_qp_state)(from + 1);
		assert_int_equal(
			nic_qp_modify(e.qp, &a,
				      IBV_QP_STATE | find_change(IBV_QPT_RC,
								 from, from + 1)
							     ->need),
			i == 12 ? -EHOSTUNREACH : -EINVAL);
		assert_int_equal(nic_qp_state(e.qp), from);
	}
	nic_qp_destroy(e.qp);
	conn_release(&c);
}

/* Rights without a name used to be taken; those of regions mean nothing to a
 * queue pair, but programs pass them. */
static void unknown_rights_are_refused(void **state)
{
	struct conn c;
	unsigned bit;

	conn_init(&c, IBV_MTU_256);
	for (bit = 0; bit < 32; bit++) {
		bool known = (1u << bit) <= IBV_ACCESS_HUGETLB ||
			     ((1u << bit) & IBV_ACCESS_OPTIONAL_RANGE);
		struct ibv_qp_attr a = {.qp_access_flags = 1u << bit};

		assert_int_equal(
			nic_qp_modify(c.e[0].qp, &a, IBV_QP_ACCESS_FLAGS),
			known ? 0 : -EINVAL);
	}
	conn_release(&c);
}

/* Queues keep their size, and the device does not claim otherwise. */
static void sizes_of_queues_stay(void **state)
{
	struct ibv_qp_attr a = {.cap = {.max_send_wr = 8, .max_recv_wr = 8}};
	struct ibv_device_attr dev;
	struct conn c;

	conn_init(&c, IBV_MTU_256);
	nic_query_device(c.e[0].nic, &dev);
	assert_false(dev.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR);
	assert_int_equal(nic_qp_modify(c.e[0].qp, &a, IBV_QP_CAP), -EINVAL);
	conn_release(&c);
}

/* Ready to receive from `peer`, and no more. */
static void end_to_rtr(struct end *e, const struct end *peer)
{
	struct ibv_qp_attr a = good_values(peer);

	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(nic_qp_modify(e->qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	a.qp_state = IBV_QPS_RTR;
	a.rq_psn = END_PSN;
	assert_int_equal(
		nic_qp_modify(e->qp, &a, IBV_QP_STATE | rc_changes[2].need), 0);
}

/* The first packet of a peer may come before the message of a connection
 * manager that says it is ready: the owner is told, once. */
static void the_first_packet_is_told_once(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned life, i;

	conn_init(&c, IBV_MTU_1024);
	for (life = 0; life < 2; life++) {
		struct wire_pkt pkt = packet(a, b, WIRE_RC_WRITE_ONLY, 0);

		qp_to(a->qp, IBV_QPS_RESET);
		qp_to(b->qp, IBV_QPS_RESET);
		end_connect(a, b, IBV_MTU_1024);
		end_to_rtr(b, a);
		pkt.src_ip[15] ^= 8; /* of somebody else */
		inject(b, &pkt);
		expect_no_event(&b->qp_o);
		for (i = 0; i < 3; i++) {
			assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, i, 0, 8),
					 0);
			pair_run(&c.p);
			expect_cqe(a->scq, i, IBV_WC_SUCCESS);
			if (i == 0)
				expect_event(&b->qp_o, IBV_EVENT_COMM_EST);
			expect_no_event(&b->qp_o);
		}
	}
	/* Who is ready to send has no use for it. */
	conn_restart(&c);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 9, 0, 8), 0);
	pair_run(&c.p);
	expect_no_event(&b->qp_o);
	conn_release(&c);
}

static void creation_is_validated(void **state)
{
	struct conn c;
	struct end *a = &c.e[0];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 9; i++) {
		struct nic_qp_attr attr = {
			.type = IBV_QPT_RC,
			.send_cq = a->scq,
			.recv_cq = a->rcq,
			.cap = {1, 1, 1, 1, 0},
			.owner = a,
		};
		struct nic_qp *qp;

		attr.type = i == 0 ? IBV_QPT_UC : attr.type;
		attr.type = i == 1 ? (enum ibv_qp_type)99 : attr.type;
		attr.send_cq = i == 2 ? NULL : a->scq;
		attr.recv_cq = i == 3 ? NULL : a->rcq;
		attr.cap.max_send_wr = i == 4 ? NIC_QP_WR_MAX + 1 : 1;
		attr.cap.max_recv_wr = i == 5 ? NIC_QP_WR_MAX + 1 : 1;
		attr.cap.max_send_sge = i == 6 ? NIC_SGE_MAX + 1 : 1;
		attr.cap.max_recv_sge = i == 7 ? NIC_SGE_MAX + 1 : 1;
		attr.cap.max_inline_data = i == 8 ? NIC_INLINE_MAX + 1 : 0;
		assert_int_equal(nic_qp_create(a->pd, &attr, &qp),
				 i < 2 ? -EOPNOTSUPP : -EINVAL);
	}
	assert_int_equal(nic_cq_destroy(a->scq), -EBUSY);
	conn_release(&c);
}

static void posts_follow_the_state(void **state)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} table[] = {
		{IBV_QPS_RESET, -EINVAL, -EINVAL},
		{IBV_QPS_INIT, -EINVAL, 0},
		{IBV_QPS_RTR, -EINVAL, 0},
		{IBV_QPS_RTS, 0, 0},
		{IBV_QPS_SQD, 0, 0},
		{IBV_QPS_ERR, 0, 0},
	};
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		bring_to(a, IBV_QPT_RC, table[i].state, b);
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 8),
				 table[i].send);
		assert_int_equal(post_recv(a, 2, 0, 8), table[i].recv);
		if (table[i].state == IBV_QPS_ERR) {
			expect_cqe(a->scq, 1, IBV_WC_WR_FLUSH_ERR);
			expect_cqe(a->rcq, 2, IBV_WC_WR_FLUSH_ERR);
		}
		expect_no_cqe(a->scq);
		expect_no_cqe(a->rcq);
	}
	c.p.tail = c.p.head;
	conn_release(&c);
}

static void an_overflow_ends_the_queue_pair(void **state)
{
	struct conn c;
	struct end e, *a = &c.e[0], *b = &c.e[1], base;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	base = *a;
	assert_int_equal(nic_cq_create(a->nic, 4, &base.scq_o, &base.scq), 0);
	end_share(&e, &base, IBV_QPT_RC);
	end_connect(&e, b, IBV_MTU_256);
	qp_to(b->qp, IBV_QPS_RESET);
	end_connect(b, &e, IBV_MTU_256);
	for (i = 0; i < 7; i++)
		assert_int_equal(post(&e, b, IBV_WR_RDMA_WRITE, i, 0, 8), 0);
	pair_run(&c.p);
	expect_event(&base.scq_o, IBV_EVENT_CQ_ERR);
	expect_no_event(&base.scq_o); /* once */
	expect_event(&e.qp_o, IBV_EVENT_QP_FATAL);
	expect_no_event(&e.qp_o);
	assert_int_equal(nic_qp_state(e.qp), IBV_QPS_ERR);
	assert_int_equal(counter(a, NIC_C_cq_overflows), 3);
	assert_int_equal(nic_outstanding(a->nic), 0);
	for (i = 0; i < 4; i++)
		expect_cqe(e.scq, i, IBV_WC_SUCCESS);
	expect_no_cqe(e.scq);
	nic_qp_destroy(e.qp);
	assert_int_equal(nic_cq_destroy(e.scq), 0);
	conn_release(&c);
}

static void resizing_keeps_what_is_in(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_cq *cq;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(nic_cq_create(a->nic, 0, NULL, &cq), -EINVAL);
	assert_int_equal(nic_cq_create(a->nic, NIC_CQE_MAX + 1, NULL, &cq),
			 -EINVAL);
	assert_int_equal(nic_cq_size(a->scq), 256);
	/* Not at the start of the ring. */
	for (i = 0; i < 250; i++) {
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, i, 0, 8), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 20; i++)
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, i, 0, 8), 0);
	pair_run(&c.p);
	assert_int_equal(nic_cq_resize(a->scq, 0), -EINVAL);
	assert_int_equal(nic_cq_resize(a->scq, 19), -EINVAL);
	assert_int_equal(nic_cq_resize(a->scq, NIC_CQE_MAX + 1), -EINVAL);
	assert_int_equal(nic_cq_resize(a->scq, 20), 0);
	assert_int_equal(nic_cq_size(a->scq), 20);
	for (i = 0; i < 5; i++)
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	assert_int_equal(nic_cq_resize(a->scq, 1000), 0);
	for (i = 5; i < 20; i++)
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	expect_no_cqe(a->scq);
	conn_release(&c);
}

static void drain(struct nic_qp *qp, bool notify)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD,
				.en_sqd_async_notify = notify};

	assert_int_equal(
		nic_qp_modify(qp, &a,
			      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
}

/* The event must not come while a message is half sent, nor while one that was
 * sent waits for its answer, nor after a restart that begins from the oldest
 * again. */
static void draining_finishes_what_was_begun(void **state)
{
	enum {
		HALF_SENT,
		SENT,
		RESTARTED,
		CASES,
	};
	unsigned i;

	for (i = 0; i < CASES; i++) {
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];
		struct ibv_qp_attr q;
		uint32_t n = i == HALF_SENT ? 256 * 100 : 512;

		conn_init(&c, IBV_MTU_256);
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, n), 0);
		if (i == RESTARTED) {
			c.p.tail = c.p.head;
			c.p.now_ns += 10000000;
			nic_tick(a->nic);
		}
		drain(a->qp, true);
		expect_no_event(&a->qp_o);
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 2, 0, 8), 0);
		nic_qp_query(a->qp, &q);
		assert_true(q.sq_draining);
		pair_run(&c.p);
		expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
		expect_no_cqe(a->scq); /* nothing new begins */
		expect_event(&a->qp_o, IBV_EVENT_SQ_DRAINED);
		expect_no_event(&a->qp_o);
		nic_qp_query(a->qp, &q);
		assert_false(q.sq_draining);
		assert_int_equal(q.qp_state, IBV_QPS_SQD);
		/* It still answers its peer. */
		assert_int_equal(post(b, a, IBV_WR_RDMA_READ, 3, 0, 8), 0);
		pair_run(&c.p);
		expect_cqe(b->scq, 3, IBV_WC_SUCCESS);
		qp_to(a->qp, IBV_QPS_RTS);
		pair_run(&c.p);
		expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
		conn_release(&c);
	}
}

static void draining_tells_who_asked(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	conn_init(&c, IBV_MTU_256);
	drain(a->qp, true); /* nothing to drain: at once */
	expect_event(&a->qp_o, IBV_EVENT_SQ_DRAINED);
	qp_to(a->qp, IBV_QPS_RTS);
	/* A wish that was not granted yet ends with the draining. */
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
	drain(a->qp, true);
	qp_to(a->qp, IBV_QPS_RTS);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 2, 0, 8), 0);
	qp_to(a->qp, IBV_QPS_SQD);
	pair_run(&c.p);
	expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
	expect_no_event(&a->qp_o);
	conn_release(&c);
}

static void flushing_is_in_order(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 12; i++) /* more READs than may be outstanding */
		assert_int_equal(
			post(a, b, i % 3 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			     i, 0, 600),
			0);
	for (i = 0; i < 5; i++)
		assert_int_equal(post_recv(a, 100 + i, 0, 8), 0);
	qp_to(a->qp, IBV_QPS_ERR);
	assert_int_equal(post(a, b, IBV_WR_SEND, 12, 0, 8), 0);
	assert_int_equal(post_recv(a, 105, 0, 8), 0);
	for (i = 0; i <= 12; i++)
		expect_cqe(a->scq, i, IBV_WC_WR_FLUSH_ERR);
	for (i = 0; i <= 5; i++)
		expect_cqe(a->rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	expect_no_cqe(a->scq);
	expect_no_cqe(a->rcq);
	assert_int_equal(nic_outstanding(a->nic), 0);
	/* Answers that come late find nobody. */
	pair_run(&c.p);
	assert_true(counter(a, NIC_C_drop_qp_state) > 0);
	expect_no_cqe(a->scq);
	assert_int_equal(nic_next_deadline_ns(a->nic), UINT64_MAX);
	conn_release(&c);
}

static void numbers_are_unique_and_random(void **state)
{
	enum {
		LIVE = NIC_QP_MAX / 2,
		CHURN = 2000
	};
	static struct nic_qp *qps[LIVE];
	static uint8_t used[NIC_QP_MAX];
	struct nic_qp_attr attr = {.type = IBV_QPT_UD, .cap = {1, 1, 1, 1, 0}};
	struct conn c;
	struct end *a = &c.e[0];
	unsigned i, neighbours = 0;
	uint32_t last = 0, qpn;
	struct nic_qp *extra;

	conn_init(&c, IBV_MTU_256);
	attr.send_cq = a->scq;
	attr.recv_cq = a->rcq;
	attr.owner = &a->qp_o;
	nic_qp_destroy(a->qp);
	a->qp = NULL;
	for (i = 0; i < LIVE + CHURN; i++) {
		struct nic_qp **at = &qps[i % LIVE];

		if (i >= LIVE) {
			used[nic_qp_number(*at) & (NIC_QP_MAX - 1)] = 0;
			nic_qp_destroy(*at);
		}
		assert_int_equal(nic_qp_create(a->pd, &attr, at), 0);
		qpn = nic_qp_number(*at);
		assert_int_equal(qpn >> NIC_QPN_INDEX_BITS, 1);
		assert_false(used[qpn & (NIC_QP_MAX - 1)]++);
		neighbours += qpn == last + 1 || qpn == last - 1;
		last = qpn;
	}
	/* Two in sixteen thousand would be expected, per creation. */
	assert_in_range(neighbours, 0, 12);
	assert_int_equal(nic_qp_create(a->pd, &attr, &extra), -ENOMEM);
	for (i = 0; i < LIVE; i++)
		nic_qp_destroy(qps[i]);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_table_is_kept),
		cmocka_unit_test(current_state_must_be_true),
		cmocka_unit_test(values_out_of_range_are_refused),
		cmocka_unit_test(unknown_rights_are_refused),
		cmocka_unit_test(sizes_of_queues_stay),
		cmocka_unit_test(the_first_packet_is_told_once),
		cmocka_unit_test(creation_is_validated),
		cmocka_unit_test(posts_follow_the_state),
		cmocka_unit_test(an_overflow_ends_the_queue_pair),
		cmocka_unit_test(resizing_keeps_what_is_in),
		cmocka_unit_test(draining_finishes_what_was_begun),
		cmocka_unit_test(draining_tells_who_asked),
		cmocka_unit_test(flushing_is_in_order),
		cmocka_unit_test(numbers_are_unique_and_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
