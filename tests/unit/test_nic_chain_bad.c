/* SPDX-License-Identifier: Apache-2.0 */
/* Chains that are wrong, go too far or never end, and who notices. */
#include "chain_rig.h"

static const struct rig_shape shape = {
	.work_blocks = 16,
	.work_flags = NIC_CHAIN_ORDERED,
	.plain_cq = true,
};

/* ---- requests that cannot be executed ----------------------------------- */

struct bad {
	const char *what;
	void (*put)(struct rig *r, union aqdv_wqe *w);
	enum ibv_wc_status status;
	enum nic_counter counted;
};

static void put_good(struct rig *r, union aqdv_wqe *w)
{
	rig_rdma(r, w, AQDV_WQE_READ, RIG_HEAP, RIG_HEAP + 8, 8);
}

static void put_zeros(struct rig *r, union aqdv_wqe *w)
{
	memset(w, 0, sizeof(*w));
}

static void put_ones(struct rig *r, union aqdv_wqe *w)
{
	memset(w, 0xff, sizeof(*w));
}

static void put_opcode(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->ctrl.opmod_idx_opcode = htobe32(0x1f);
}

static void put_short(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->ctrl.qpn_ds = htobe32(1);
}

/* Reaches behind what is enabled. */
static void put_long(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->ctrl.qpn_ds = htobe32(12);
}

static void put_huge(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.data[0].byte_count = htobe32(0x7fffffff);
}

static void put_inline_read(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.data[0].byte_count = htobe32(8 | AQDV_WQE_INLINE);
}

static void put_inline_long(struct rig *r, union aqdv_wqe *w)
{
	rig_rdma(r, w, AQDV_WQE_WRITE, RIG_HEAP, RIG_HEAP + 8, 8);
	w->rdma.data[0].byte_count = htobe32(64 | AQDV_WQE_INLINE);
}

static void put_amo_length(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_amo(w, AQDV_WQE_FAA, 0, rig_at(r, RIG_HEAP), r->back.key,
			 1, 0, rig_at(r, RIG_HEAP + 8), r->back.key);
	w->amo.data.byte_count = htobe32(4);
}

static void put_lkey(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.data[0].lkey = htobe32(r->back.key ^ 0x100);
}

static void put_local_bounds(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.data[0].addr = htobe64(rig_at(r, END_BYTES - 4));
}

static void put_local_null(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.data[0].addr = 0;
}

static void put_rkey(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.raddr.rkey = htobe32(r->back.key ^ 0x100);
}

static void put_remote_bounds(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.raddr.addr = htobe64(rig_at(r, END_BYTES - 4));
}

static void put_remote_null(struct rig *r, union aqdv_wqe *w)
{
	put_good(r, w);
	w->rdma.raddr.addr = 0;
}

static void put_misaligned(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_amo(w, AQDV_WQE_FAA, 0, rig_at(r, RIG_HEAP + 4),
			 r->back.key, 1, 0, rig_at(r, RIG_HEAP + 8),
			 r->back.key);
}

static void put_unknown_cq(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_WAIT, r->trigger_no + (1u << 16), 0, 0);
}

static void put_plain_cq(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_WAIT, 0, 0, 0);
}

static void put_unknown_qp(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_SEND_ENABLE, 0xfffff0, 1, 0);
}

static void put_plain_qp(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_SEND_ENABLE, nic_qp_number(r->back.qp),
			   1, 0);
}

static void put_far_ahead(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_SEND_ENABLE, nic_qp_number(r->work.qp),
			   2 + 16 + 1, 0);
}

static void put_no_recvs(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_RECV_ENABLE, nic_qp_number(r->work.qp),
			   1, 0);
}

static void put_short_wait(struct rig *r, union aqdv_wqe *w)
{
	aqdv_wqe_put_order(w, AQDV_WQE_WAIT, r->trigger_no, 0, 0);
	w->ctrl.qpn_ds = htobe32(1);
}

#define OP_ERR	 IBV_WC_LOC_QP_OP_ERR
#define PROT_ERR IBV_WC_LOC_PROT_ERR

static const struct bad bads[] = {
	{"zeros", put_zeros, OP_ERR, NIC_C_chain_faults},
	{"ones", put_ones, OP_ERR, NIC_C_chain_faults},
	{"opcode", put_opcode, OP_ERR, NIC_C_chain_faults},
	{"short", put_short, OP_ERR, NIC_C_chain_faults},
	{"long", put_long, OP_ERR, NIC_C_chain_faults},
	{"huge", put_huge, OP_ERR, NIC_C_chain_faults},
	{"inline READ", put_inline_read, OP_ERR, NIC_C_chain_faults},
	{"inline too long", put_inline_long, OP_ERR, NIC_C_chain_faults},
	{"length of atomic", put_amo_length, OP_ERR, NIC_C_chain_faults},
	{"lkey", put_lkey, PROT_ERR, NIC_C_local_protection},
	{"local bounds", put_local_bounds, PROT_ERR, NIC_C_local_protection},
	{"local null", put_local_null, PROT_ERR, NIC_C_local_protection},
	{"rkey", put_rkey, IBV_WC_REM_ACCESS_ERR, NIC_C_deny_key},
	{"remote bounds", put_remote_bounds, IBV_WC_REM_ACCESS_ERR,
	 NIC_C_deny_bounds},
	{"remote null", put_remote_null, IBV_WC_REM_ACCESS_ERR,
	 NIC_C_deny_bounds},
	{"misaligned", put_misaligned, IBV_WC_REM_INV_REQ_ERR,
	 NIC_C_deny_align},
	{"unknown CQ", put_unknown_cq, PROT_ERR, NIC_C_chain_faults},
	{"CQ that does not count", put_plain_cq, PROT_ERR, NIC_C_chain_faults},
	{"unknown QP", put_unknown_qp, PROT_ERR, NIC_C_chain_faults},
	{"QP that is not managed", put_plain_qp, PROT_ERR, NIC_C_chain_faults},
	{"too far ahead", put_far_ahead, OP_ERR, NIC_C_chain_faults},
	{"no managed receives", put_no_recvs, OP_ERR, NIC_C_chain_faults},
	{"short WAIT", put_short_wait, OP_ERR, NIC_C_chain_faults},
};

/* The connection of client and node has nothing to do with it. */
static void expect_others_work(struct rig *r)
{
	assert_int_equal(
		post(&r->client, &r->front, IBV_WR_RDMA_READ, 1, 64, 64), 0);
	pair_run(&r->p);
	expect_cqe(r->client.scq, 1, IBV_WC_SUCCESS);
}

static void refuses(void **state)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(bads); i++) {
		const struct bad *b = &bads[i];
		struct rig r;

		rig_init(&r, &shape);
		rig_connect(&r);
		put_good(&r, rig_work(&r, 0));
		rig_set_word(&r, RIG_HEAP, 5);
		b->put(&r, rig_work(&r, 1));
		put_good(&r, rig_work(&r, 2));
		rig_enable(&r, &r.work, 2);
		expect_cqe(r.done, 0, IBV_WC_SUCCESS);
		expect_cqe(r.done, 1, b->status);
		expect_no_cqe(r.done);
		assert_int_equal(nic_qp_state(r.work.qp), IBV_QPS_ERR);
		assert_int_equal(counter(&r.back, NIC_C_chain_faults), 1);
		assert_true(counter(&r.back, b->counted) > 0);
		assert_int_equal(rig_word(&r, RIG_HEAP), 5);
		expect_others_work(&r);
		rig_release(&r);
	}
}

/* A domain of its own has neither the memory nor the queues of others. */
static void keeps_domains_apart(void **state)
{
	static uint8_t ring[16 * RIG_BLOCK] __attribute__((aligned(64)));
	struct nic_mr_attr mr = {
		.addr = ring,
		.iova = (uintptr_t)ring,
		.length = sizeof(ring),
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	struct nic_chain_attr chain = {
		.sq_addr = (uintptr_t)ring,
		.sq_blocks = 16,
	};
	struct end other = {0};
	struct nic_mr *own;
	struct nic_pd *pd;
	struct rig r;

	rig_init(&r, &shape);
	rig_connect(&r);
	assert_int_equal(nic_pd_create(r.back.nic, &pd), 0);
	assert_int_equal(nic_mr_reg(pd, &mr, &own), 0);
	chain.sq_lkey = r.back.key;
	{
		struct nic_qp_attr attr = {
			.type = IBV_QPT_RC,
			.send_cq = r.done,
			.recv_cq = r.done,
			.chain = &chain,
			.owner = &other.qp_o,
		};
		struct nic_qp_attr to = attr;

		assert_int_equal(nic_qp_create(pd, &attr, &other.qp), -EACCES);
		chain.sq_lkey = nic_mr_key(own);
		assert_int_equal(nic_qp_create(pd, &to, &other.qp), 0);
	}
	other.nic = r.back.nic;
	end_connect(&other, &r.back, IBV_MTU_4096);
	aqdv_wqe_put_order((union aqdv_wqe *)ring, AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r.work.qp), 1, 0);
	put_good(&r, rig_work(&r, 0));
	rig_enable(&r, &other, 1);
	expect_cqe(r.done, 0, IBV_WC_LOC_PROT_ERR);
	expect_no_cqe(r.done);
	assert_int_equal(nic_qp_state(r.work.qp), IBV_QPS_RTS);
	nic_qp_destroy(other.qp);
	assert_int_equal(nic_mr_dereg(own), 0);
	assert_int_equal(nic_pd_destroy(pd), 0);
	rig_release(&r);
}

/* The other end of a loop decides what may be done to its memory. */
static void asks_the_other_end(void **state)
{
	struct ibv_qp_attr a = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct rig r;

	rig_init(&r, &shape);
	rig_connect(&r);
	assert_int_equal(nic_qp_modify(r.back.qp, &a, IBV_QP_ACCESS_FLAGS), 0);
	rig_rdma(&r, rig_work(&r, 0), AQDV_WQE_WRITE, RIG_HEAP, RIG_HEAP + 8,
		 8);
	put_good(&r, rig_work(&r, 1));
	rig_enable(&r, &r.work, 2);
	expect_cqe(r.done, 0, IBV_WC_SUCCESS);
	expect_cqe(r.done, 1, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(nic_qp_state(r.back.qp), IBV_QPS_ERR);
	assert_int_equal(counter(&r.back, NIC_C_deny_qp_access), 1);
	rig_release(&r);
}

/* The ring's key is taken back while requests wait in it. */
static void notices_lost_memory(void **state)
{
	static uint8_t ring[4 * RIG_BLOCK] __attribute__((aligned(64)));
	struct nic_mr_attr mr = {
		.addr = ring,
		.iova = (uintptr_t)ring,
		.length = sizeof(ring),
	};
	struct nic_chain_attr chain = {
		.sq_addr = (uintptr_t)ring,
		.sq_blocks = 4,
	};
	struct end extra;
	struct nic_mr *own;
	struct rig r;

	rig_init(&r, &shape);
	rig_connect(&r);
	assert_int_equal(nic_mr_reg(r.back.pd, &mr, &own), 0);
	chain.sq_lkey = nic_mr_key(own);
	rig_qp(&r, &extra, r.done, r.done, &chain);
	end_connect(&extra, &r.back, IBV_MTU_4096);
	aqdv_wqe_put_ctrl(&((union aqdv_wqe *)ring)[0].ctrl, AQDV_WQE_NOP, 1,
			  0);
	/* The NIC cannot write to this ring. */
	aqdv_wqe_put_order(&((union aqdv_wqe *)ring)[1], AQDV_WQE_WAIT,
			   r.trigger_no, 0, 1);
	rig_enable(&r, &extra, 1);
	expect_no_cqe(r.done);
	rig_enable(&r, &extra, 2);
	expect_cqe(r.done, 1, IBV_WC_LOC_PROT_ERR);
	qp_to(extra.qp, IBV_QPS_RESET);
	end_connect(&extra, &r.back, IBV_MTU_4096);
	assert_int_equal(nic_mr_dereg(own), 0);
	rig_enable(&r, &extra, 1);
	expect_cqe(r.done, 0, IBV_WC_LOC_PROT_ERR);
	nic_qp_destroy(extra.qp);
	expect_others_work(&r);
	rig_release(&r);
}

/* The same for receives: the client is told, and so is the owner. */
static void notices_lost_receives(void **state)
{
	static uint8_t ring[4 * 16] __attribute__((aligned(64)));
	struct nic_mr_attr mr = {
		.addr = ring,
		.iova = (uintptr_t)ring,
		.length = sizeof(ring),
	};
	struct nic_chain_attr chain = {
		.rq_addr = (uintptr_t)ring,
		.rq_entries = 4,
		.rq_segs = 1,
	};
	struct end extra;
	struct nic_mr *own;
	struct rig r;

	rig_init(&r, &shape);
	assert_int_equal(nic_mr_reg(r.back.pd, &mr, &own), 0);
	chain.rq_lkey = nic_mr_key(own);
	rig_qp(&r, &extra, r.done, r.done, &chain);
	end_connect(&extra, &r.client, IBV_MTU_4096);
	end_connect(&r.client, &extra, IBV_MTU_4096);
	aqdv_wqe_put_data((struct aqdv_wqe_data *)ring, rig_at(&r, RIG_HEAP), 8,
			  r.back.key);
	assert_int_equal(nic_qp_enable_recv(extra.qp, 2), 0);
	assert_int_equal(nic_qp_enable_recv(extra.qp, 5), -EINVAL);
	assert_int_equal(post_recv(&extra, 1, 0, 8), -EINVAL);
	assert_int_equal(post(&r.client, &extra, IBV_WR_SEND, 1, 0, 8), 0);
	pair_run(&r.p);
	expect_cqe(r.client.scq, 1, IBV_WC_SUCCESS);
	expect_cqe(r.done, 0, IBV_WC_SUCCESS);
	assert_int_equal(nic_mr_dereg(own), 0);
	assert_int_equal(post(&r.client, &extra, IBV_WR_SEND, 2, 0, 8), 0);
	pair_run(&r.p);
	expect_cqe(r.client.scq, 2, IBV_WC_REM_OP_ERR);
	expect_cqe(r.done, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(nic_qp_state(extra.qp), IBV_QPS_ERR);
	nic_qp_destroy(extra.qp);
	rig_release(&r);
}

static void refuses_attributes(void **state)
{
	static const struct nic_chain_attr table[] = {
		{0},
		{.sq_blocks = 16385},
		{.sq_blocks = 4, .sq_addr = 1 << 20 | 32},
		{.sq_blocks = 4, .flags = 4},
		{.sq_blocks = 4, .max_steps = NIC_COUNTER_COUNT << 20},
		{.rq_entries = 3, .rq_segs = 1},
		{.rq_entries = 4, .rq_segs = 3},
		{.rq_entries = 4, .rq_segs = 64},
		{.rq_entries = 4, .rq_segs = 1, .rq_dbr_addr = 2},
		{.rq_entries = 4, .rq_segs = 1, .flags = NIC_CHAIN_CYCLIC},
		{.sq_blocks = 4, .rq_dbr_addr = 4},
	};
	struct rig r;
	unsigned i;

	rig_init(&r, &shape);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct nic_qp_attr attr = {
			.type = IBV_QPT_RC,
			.send_cq = r.done,
			.recv_cq = r.done,
			.chain = &table[i],
			.owner = &r,
		};
		struct nic_qp *qp;

		assert_int_equal(nic_qp_create(r.back.pd, &attr, &qp), -EINVAL);
		attr.type = IBV_QPT_UD;
		assert_int_equal(nic_qp_create(r.back.pd, &attr, &qp), -EINVAL);
	}
	rig_release(&r);
}

/* ---- chains without end -------------------------------------------------- */

/* One that only repeats itself stops after the steps it was paid for, and lets
 * others have their turn meanwhile. */
static void stops_a_loop(void **state)
{
	struct rig_shape endless = shape;
	struct rig r;
	unsigned i;

	endless.work_flags = NIC_CHAIN_CYCLIC;
	endless.max_steps = 5000;
	rig_init(&r, &endless);
	for (i = 0; i < 16; i++)
		aqdv_wqe_put_ctrl(&rig_work(&r, i)->ctrl, AQDV_WQE_NOP, 1, 0);
	rig_connect(&r);
	assert_int_equal(post(&r.client, &r.front, IBV_WR_RDMA_READ, 1, 64, 64),
			 0);
	pair_deliver(&r.p);
	(void)nic_flush(r.back.nic);
	/* Far from its end, and the READ is answered. */
	assert_true(counter(&r.back, NIC_C_chain_steps) < 1000);
	assert_true(nic_has_chains(r.back.nic));
	pair_deliver(&r.p);
	expect_cqe(r.client.scq, 1, IBV_WC_SUCCESS);
	pair_run(&r.p);
	assert_int_equal(counter(&r.back, NIC_C_chain_steps), 5000);
	assert_int_equal(counter(&r.back, NIC_C_chain_runaways), 1);
	expect_cqe(r.done, 5000, IBV_WC_FATAL_ERR);
	assert_false(nic_has_chains(r.back.nic));
	expect_others_work(&r);
	rig_release(&r);
}

/* Two queues that enable each other for ever. */
static void stops_two_that_start_each_other(void **state)
{
	struct rig r;

	rig_init(&r, &(struct rig_shape){.work_blocks = 2,
					 .front_blocks = 2,
					 .plain_cq = true,
					 .max_steps = 300});
	rig_connect(&r);
	aqdv_wqe_put_order(rig_work(&r, 0), AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r.front.qp), 1, 2);
	aqdv_wqe_put_order(rig_work(&r, 1), AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r.front.qp), 2, 2);
	aqdv_wqe_put_order(rig_front(&r, 0), AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r.work.qp), 2, 2);
	aqdv_wqe_put_order(rig_front(&r, 1), AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r.work.qp), 3, 2);
	rig_enable(&r, &r.work, 1);
	assert_int_equal(counter(&r.back, NIC_C_chain_runaways), 1);
	assert_in_range(counter(&r.back, NIC_C_chain_steps), 300, 1300);
	rig_release(&r);
}

/* A queue that waits for its own completions. */
static void stops_one_that_waits_for_itself(void **state)
{
	struct rig r;

	rig_init(&r, &(struct rig_shape){.work_blocks = 2,
					 .work_flags = NIC_CHAIN_CYCLIC,
					 .max_steps = 300});
	put_good(&r, rig_work(&r, 0));
	aqdv_wqe_put_order(rig_work(&r, 1), AQDV_WQE_WAIT, r.done_no, 1, 1);
	rig_connect(&r);
	pair_run(&r.p);
	assert_int_equal(counter(&r.back, NIC_C_chain_runaways), 1);
	assert_in_range(counter(&r.back, NIC_C_chain_steps), 300, 600);
	assert_int_equal(nic_cq_peek(r.done)->status, IBV_WC_FATAL_ERR);
	rig_release(&r);
}

/* One that is paid for one message does not live on it for ever. */
static void one_message_pays_once(void **state)
{
	struct rig r;

	rig_init(&r, &(struct rig_shape){.work_blocks = 1,
					 .work_flags = NIC_CHAIN_CYCLIC,
					 .max_steps = 300});
	aqdv_wqe_put_order(rig_work(&r, 0), AQDV_WQE_WAIT, r.trigger_no, 1, 0);
	rig_connect(&r);
	assert_int_equal(post_recv(&r.front, 1, RIG_HEAP, 64), 0);
	assert_int_equal(post(&r.client, &r.front, IBV_WR_SEND, 1, 0, 8), 0);
	pair_run(&r.p);
	assert_int_equal(counter(&r.back, NIC_C_chain_runaways), 1);
	assert_int_equal(counter(&r.back, NIC_C_chain_steps), 600);
	rig_release(&r);
}

/* Nine CQs are more than one queue may wait for. */
static void bounds_what_is_waited_for(void **state)
{
	struct nic_cq *cqs[9];
	struct owner o = {0};
	struct rig r;
	unsigned i;

	rig_init(&r, &shape);
	rig_connect(&r);
	for (i = 0; i < ARRAY_LEN(cqs); i++) {
		assert_int_equal(nic_cq_create(r.back.nic, 4, &o, &cqs[i]), 0);
		assert_int_equal(nic_cq_make_counting(cqs[i]), 0);
		aqdv_wqe_put_order(rig_work(&r, i), AQDV_WQE_WAIT,
				   nic_cq_number(cqs[i]), 0, 0);
	}
	rig_enable(&r, &r.work, 9);
	expect_cqe(r.done, 8, IBV_WC_LOC_QP_OP_ERR);
	for (i = 0; i < ARRAY_LEN(cqs); i++)
		assert_int_equal(nic_cq_destroy(cqs[i]), 0);
	rig_release(&r);
}

/* ---- anything at all ----------------------------------------------------- */

static void survives_noise(void **state)
{
	unsigned i, k;

	for (i = 0; i < 300; i++) {
		struct rig r;

		rig_init(&r, &(struct rig_shape){
				     .work_blocks = 8,
				     .front_blocks = 8,
				     .work_flags = NIC_CHAIN_CYCLIC,
				     .recvs = 4,
				     .recv_segs = 4,
				     .max_steps = 200,
			     });
		rng_init(&r.p.rng, i);
		for (k = 0; k < 8; k++) {
			union aqdv_wqe *w = rig_work(&r, k);

			put_good(&r, w);
			if (rng_below(&r.p.rng, 2))
				rng_fill(&r.p.rng, w, sizeof(*w));
			w->ctrl.opmod_idx_opcode =
				htobe32((uint32_t)rng_below(&r.p.rng, 0x20));
			w->ctrl.qpn_ds =
				htobe32((uint32_t)rng_below(&r.p.rng, 12));
			*rig_front(&r, 7 - k) = *w;
		}
		rig_connect(&r);
		(void)!nic_qp_enable_send(r.front.qp, 8);
		nic_qp_kick(r.front.qp);
		for (k = 0; k < 20; k++)
			pair_advance(&r.p, 20000000);
		rig_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),
		cmocka_unit_test(keeps_domains_apart),
		cmocka_unit_test(asks_the_other_end),
		cmocka_unit_test(notices_lost_memory),
		cmocka_unit_test(notices_lost_receives),
		cmocka_unit_test(refuses_attributes),
		cmocka_unit_test(stops_a_loop),
		cmocka_unit_test(stops_two_that_start_each_other),
		cmocka_unit_test(stops_one_that_waits_for_itself),
		cmocka_unit_test(one_message_pays_once),
		cmocka_unit_test(bounds_what_is_waited_for),
		cmocka_unit_test(survives_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
