/* SPDX-License-Identifier: Apache-2.0 */
/* Memory windows: binding, what they open, and how they end. */
#include "nic_pair.h"

#define RR IBV_ACCESS_REMOTE_READ
#define RW IBV_ACCESS_REMOTE_WRITE
#define RA IBV_ACCESS_REMOTE_ATOMIC

enum {
	WINDOW_AT = 8192,
	WINDOW_BYTES = 1024,
};

/* The same 24 bits, another tag. */
static uint32_t next_tag(uint32_t key)
{
	return (key & 0xffffff00) | ((key + 1) & 0xff);
}

static enum ibv_wc_status run_local(struct conn *c, struct end *e,
				    const struct ibv_send_wr *wr,
				    const struct nic_send_extra *extra)
{
	const struct nic_cqe *cqe;
	enum ibv_wc_status status;

	assert_int_equal(nic_qp_post_send(e->qp, wr, extra), 0);
	nic_qp_kick(e->qp);
	pair_run(&c->p);
	cqe = nic_cq_peek(e->scq);
	assert_non_null(cqe);
	assert_int_equal(cqe->wr_id, wr->wr_id);
	assert_int_equal(cqe->opcode, wr->opcode == IBV_WR_BIND_MW
					      ? IBV_WC_BIND_MW
					      : IBV_WC_LOCAL_INV);
	status = (enum ibv_wc_status)cqe->status;
	nic_cq_pop(e->scq);
	return status;
}

struct binding {
	struct nic_mr *mr;
	uint64_t addr, length;
	unsigned access;
};

/* The usual window: in the middle of the end's own region. */
static struct binding middle(const struct end *e, unsigned access)
{
	return (struct binding){
		.mr = e->mr,
		.addr = (uintptr_t)e->mem + WINDOW_AT,
		.length = WINDOW_BYTES,
		.access = access,
	};
}

/* Through the send queue of `e`; a queue pair that failed is renewed. */
static enum ibv_wc_status bind(struct conn *c, struct end *e, struct nic_mw *mw,
			       uint32_t key, const struct binding *b)
{
	struct nic_send_extra extra = {.mw = mw, .bind_mr = b->mr};
	struct ibv_send_wr wr = {
		.wr_id = 31,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.rkey = key,
			    .bind_info = {.addr = b->addr,
					  .length = b->length,
					  .mw_access_flags = b->access}},
	};

	return run_local(c, e, &wr, &extra);
}

static enum ibv_wc_status invalidate(struct conn *c, struct end *e,
				     uint32_t key)
{
	struct ibv_send_wr wr = {
		.wr_id = 32,
		.opcode = IBV_WR_LOCAL_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	};

	return run_local(c, e, &wr, NULL);
}

/* The status of one operation on the window's first bytes. */
static enum ibv_wc_status touch(struct conn *c, enum ibv_wr_opcode opcode,
				uint32_t key)
{
	return remote_op(c, opcode, key, (uintptr_t)c->e[1].mem + WINDOW_AT, 8);
}

struct use {
	enum ibv_wr_opcode opcode;
	unsigned right;
	int64_t at;
	uint32_t len;
	bool inside;
};

static const struct use uses[] = {
	{IBV_WR_RDMA_READ, RR, 0, WINDOW_BYTES, true},
	{IBV_WR_RDMA_READ, RR, WINDOW_BYTES - 1, 1, true},
	{IBV_WR_RDMA_READ, RR, -1, 8, false},
	{IBV_WR_RDMA_READ, RR, WINDOW_BYTES - 4, 8, false},
	{IBV_WR_RDMA_WRITE, RW, 100, 300, true},
	{IBV_WR_RDMA_WRITE, RW, 0, WINDOW_BYTES + 1, false},
	{IBV_WR_RDMA_WRITE, RW, -8, 8, false},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, RA, 1016, 8, true},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, RA, 1024, 8, false},
	{IBV_WR_ATOMIC_CMP_AND_SWP, RA, 0, 8, true},
};

static void check_uses(enum ibv_mw_type type, unsigned rights, bool zero_based)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct binding m;
	struct nic_mw *mw;
	uint64_t base;
	unsigned u;

	conn_init(&c, IBV_MTU_256);
	m = middle(b, rights | (zero_based ? IBV_ACCESS_ZERO_BASED : 0));
	base = zero_based ? 0 : m.addr;
	assert_int_equal(nic_mw_alloc(b->pd, type, &mw), 0);
	for (u = 0; u < ARRAY_LEN(uses); u++) {
		uint32_t key = next_tag(nic_mw_key(mw));
		bool ok = uses[u].inside && (rights & uses[u].right);

		assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
		assert_int_equal(nic_mw_key(mw), key);
		assert_int_equal(remote_op(&c, uses[u].opcode, key,
					   base + (uint64_t)uses[u].at,
					   uses[u].len),
				 ok ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
		/* A failure ended it already, with the queue pair. */
		if (type == IBV_MW_TYPE_2 && ok)
			assert_int_equal(invalidate(&c, b, key),
					 IBV_WC_SUCCESS);
	}
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

/* Narrower than the region in rights and in bounds. */
static void grants_exactly_what_was_bound(void **state)
{
	static const unsigned rights[] = {0, RR, RW, RA, RR | RW, RR | RW | RA};
	unsigned r;

	for (r = 0; r < ARRAY_LEN(rights); r++) {
		check_uses(IBV_MW_TYPE_1, rights[r], false);
		check_uses(IBV_MW_TYPE_2, rights[r], false);
		check_uses(IBV_MW_TYPE_2, rights[r], true);
	}
}

static void unbound_windows_open_nothing(void **state)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct nic_mw *mw;

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(nic_mw_alloc(b->pd, (enum ibv_mw_type)3, &mw),
			 -EINVAL);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, nic_mw_key(mw)),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_key), 1);
	assert_int_equal(nic_pd_destroy(b->pd), -EBUSY);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

static void bad_bindings_change_nothing(void **state)
{
	enum what {
		NO_BIND_RIGHT,
		NO_LOCAL_WRITE,
		OTHER_PD,
		NO_REGION,
		BEFORE,
		BEHIND,
		TOO_LONG,
		WRAPS,
		WRONG_INDEX,
		STRANGE_ACCESS,
		FOREIGN_WINDOW,
		KINDS,
	};
	unsigned w, t;

	for (t = 0; t < 2; t++) {
		for (w = 0; w < KINDS; w++) {
			struct conn c;
			struct end *b = &c.e[1];
			struct nic_pd *pd;
			struct nic_mr *mr;
			struct nic_mw *mw;
			struct binding m;
			struct nic_mr_attr attr = {.length = END_BYTES,
						   .access = END_ACCESS};
			uint32_t key, old;

			conn_init(&c, IBV_MTU_256);
			attr.addr = b->mem;
			attr.iova = (uintptr_t)b->mem;
			m = middle(b, RR | RW);
			assert_int_equal(nic_pd_create(b->nic, &pd), 0);
			if (w == NO_BIND_RIGHT)
				attr.access &= ~IBV_ACCESS_MW_BIND;
			if (w == NO_LOCAL_WRITE)
				attr.access = RR | IBV_ACCESS_MW_BIND;
			assert_int_equal(nic_mr_reg(w == OTHER_PD ? pd : b->pd,
						    &attr, &mr),
					 0);
			assert_int_equal(
				nic_mw_alloc(w == FOREIGN_WINDOW ? pd : b->pd,
					     t ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1,
					     &mw),
				0);
			old = nic_mw_key(mw);
			key = next_tag(old);
			m.mr = w == NO_REGION ? NULL : mr;
			if (w == BEFORE)
				m.addr = attr.iova - 1;
			if (w == BEHIND)
				m.addr = attr.iova + END_BYTES;
			if (w == TOO_LONG)
				m.length = END_BYTES;
			if (w == WRAPS)
				m.length = UINT64_MAX;
			if (w == WRONG_INDEX)
				key ^= 0x100;
			if (w == STRANGE_ACCESS)
				m.access |= IBV_ACCESS_ON_DEMAND;
			assert_int_equal(bind(&c, b, mw, key, &m),
					 IBV_WC_MW_BIND_ERR);
			assert_int_equal(nic_qp_state(b->qp), IBV_QPS_ERR);
			assert_int_equal(nic_mw_key(mw), old);
			conn_restart(&c);
			assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key),
					 IBV_WC_REM_ACCESS_ERR);
			assert_int_equal(nic_mr_dereg(mr), 0);
			assert_int_equal(nic_mw_dealloc(mw), 0);
			assert_int_equal(nic_pd_destroy(pd), 0);
			conn_release(&c);
		}
	}
}

static void type_1_is_rebound_and_unbound(void **state)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct binding m;
	struct nic_mw *mw;
	uint32_t first, second;

	conn_init(&c, IBV_MTU_256);
	m = middle(b, RR);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_1, &mw), 0);
	first = next_tag(nic_mw_key(mw));
	second = next_tag(first);
	assert_int_equal(bind(&c, b, mw, first, &m), IBV_WC_SUCCESS);
	assert_int_equal(nic_mr_dereg(b->mr), -EBUSY);
	assert_int_equal(
		nic_mr_rereg(b->mr, IBV_REREG_MR_CHANGE_PD, b->pd, NULL),
		-EBUSY);
	m.access = RW;
	assert_int_equal(bind(&c, b, mw, second, &m), IBV_WC_SUCCESS);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, first),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(touch(&c, IBV_WR_RDMA_WRITE, second), IBV_WC_SUCCESS);
	/* Only windows of type 2 are invalidated. */
	assert_int_equal(invalidate(&c, b, second), IBV_WC_MW_BIND_ERR);
	conn_restart(&c);
	assert_int_equal(touch(&c, IBV_WR_RDMA_WRITE, second), IBV_WC_SUCCESS);
	m.length = 0;
	assert_int_equal(bind(&c, b, mw, first, &m), IBV_WC_SUCCESS);
	assert_int_equal(touch(&c, IBV_WR_RDMA_WRITE, first),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c); /* the region is free again */
}

static void type_2_is_invalidated_before_it_is_rebound(void **state)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct binding m;
	struct nic_mw *mw;
	uint32_t key;

	conn_init(&c, IBV_MTU_256);
	m = middle(b, RR);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
	key = next_tag(nic_mw_key(mw));
	assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key), IBV_WC_SUCCESS);
	assert_int_equal(invalidate(&c, b, key), IBV_WC_SUCCESS);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(bind(&c, b, mw, next_tag(key), &m), IBV_WC_SUCCESS);
	assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_MW_BIND_ERR);
	conn_restart(&c);
	m.length = 0;
	assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_MW_BIND_ERR);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

static void only_windows_are_invalidated(void **state)
{
	struct conn c;
	struct end *b = &c.e[1];
	struct nic_mw *mw;

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(invalidate(&c, b, b->key), IBV_WC_MW_BIND_ERR);
	conn_restart(&c);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, b->key), IBV_WC_SUCCESS);
	assert_int_equal(invalidate(&c, b, 0), IBV_WC_MW_BIND_ERR);
	conn_restart(&c);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
	assert_int_equal(invalidate(&c, b, nic_mw_key(mw)), IBV_WC_MW_BIND_ERR);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

/* A second connection over the same region and domain. */
static void type_2_belongs_to_its_queue_pair(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct end a2, b2, window;
	struct binding m;
	struct nic_mw *mw;
	uint32_t key;

	conn_init(&c, IBV_MTU_256);
	end_share(&a2, a, IBV_QPT_RC);
	end_share(&b2, b, IBV_QPT_RC);
	end_connect(&a2, &b2, IBV_MTU_256);
	end_connect(&b2, &a2, IBV_MTU_256);
	m = middle(b, RR);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
	key = next_tag(nic_mw_key(mw));
	assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
	window = b2;
	window.key = key;
	assert_int_equal(post(&a2, &window, IBV_WR_RDMA_READ, 1, WINDOW_AT, 8),
			 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(b, NIC_C_deny_pd), 1);
	/* The other queue pair may not end it either. */
	qp_to(b2.qp, IBV_QPS_RESET);
	end_connect(&b2, &a2, IBV_MTU_256);
	assert_int_equal(invalidate(&c, &b2, key), IBV_WC_MW_BIND_ERR);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key), IBV_WC_SUCCESS);
	nic_qp_destroy(a2.qp);
	nic_qp_destroy(b2.qp);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

/* A queue pair at the same address used to inherit the windows of the one that
 * was destroyed. */
static void windows_end_with_their_queue_pair(void **state)
{
	unsigned destroy;

	for (destroy = 0; destroy < 2; destroy++) {
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];
		struct binding m;
		struct nic_mw *mw;
		uint32_t key;

		conn_init(&c, IBV_MTU_256);
		m = middle(b, RR);
		assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
		key = next_tag(nic_mw_key(mw));
		assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
		if (destroy) {
			nic_qp_destroy(b->qp);
			end_add_qp(b, IBV_QPT_RC);
			end_connect(b, a, IBV_MTU_256);
			qp_to(a->qp, IBV_QPS_RESET);
			end_connect(a, b, IBV_MTU_256);
		} else {
			conn_restart(&c);
		}
		assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key),
				 IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(counter(b, NIC_C_deny_key), 1);
		assert_int_equal(nic_mr_dereg(b->mr), 0);
		assert_int_equal(nic_mw_dealloc(mw), 0);
		assert_int_equal(
			nic_mr_reg(b->pd,
				   &(struct nic_mr_attr){.addr = b->mem,
							 .length = 1},
				   &b->mr),
			0);
		conn_release(&c);
	}
}

static void send_with_invalidate(struct conn *c, uint32_t key)
{
	struct end *a = &c->e[0];
	struct ibv_sge sge = {.addr = (uintptr_t)a->mem, 600, a->key};
	struct ibv_send_wr wr = {
		.wr_id = 40,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	};

	assert_int_equal(nic_qp_post_send(a->qp, &wr, NULL), 0);
	nic_qp_kick(a->qp);
	pair_run(&c->p);
}

static void peers_can_end_a_window(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct binding m;
	struct nic_mw *mw;
	struct nic_cqe cqe;
	uint32_t key;

	conn_init(&c, IBV_MTU_256);
	m = middle(b, RR);
	memset(a->mem, 0x33, 600);
	assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_2, &mw), 0);
	key = next_tag(nic_mw_key(mw));
	assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(b, 9, 0, 1024), 0);
	send_with_invalidate(&c, key);
	expect_cqe(a->scq, 40, IBV_WC_SUCCESS);
	cqe = expect_cqe(b->rcq, 9, IBV_WC_SUCCESS);
	assert_int_equal(cqe.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(cqe.imm_or_key, key);
	assert_int_equal(cqe.byte_len, 600);
	assert_memory_equal(a->mem, b->mem, 600);
	assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	conn_release(&c);
}

static void peers_cannot_end_anything_else(void **state)
{
	unsigned w;

	for (w = 0; w < 3; w++) {
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];
		struct binding m;
		struct nic_mw *mw;
		uint32_t key;

		conn_init(&c, IBV_MTU_256);
		m = middle(b, RR);
		assert_int_equal(nic_mw_alloc(b->pd, IBV_MW_TYPE_1, &mw), 0);
		key = next_tag(nic_mw_key(mw));
		assert_int_equal(bind(&c, b, mw, key, &m), IBV_WC_SUCCESS);
		assert_int_equal(post_recv(b, 9, 0, 1024), 0);
		/* The region's own key, a window of type 1, no key at all. */
		send_with_invalidate(&c, w == 0	  ? b->key
					 : w == 1 ? key
						  : b->key ^ 0x5500);
		expect_cqe(a->scq, 40, IBV_WC_REM_ACCESS_ERR);
		expect_cqe(b->rcq, 9, IBV_WC_LOC_QP_OP_ERR);
		expect_event(&b->qp_o, IBV_EVENT_QP_ACCESS_ERR);
		assert_int_equal(nic_qp_state(b->qp), IBV_QPS_ERR);
		conn_restart(&c);
		assert_int_equal(touch(&c, IBV_WR_RDMA_READ, b->key),
				 IBV_WC_SUCCESS);
		assert_int_equal(touch(&c, IBV_WR_RDMA_READ, key),
				 IBV_WC_SUCCESS);
		assert_int_equal(nic_mw_dealloc(mw), 0);
		conn_release(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_exactly_what_was_bound),
		cmocka_unit_test(unbound_windows_open_nothing),
		cmocka_unit_test(bad_bindings_change_nothing),
		cmocka_unit_test(type_1_is_rebound_and_unbound),
		cmocka_unit_test(type_2_is_invalidated_before_it_is_rebound),
		cmocka_unit_test(only_windows_are_invalidated),
		cmocka_unit_test(type_2_belongs_to_its_queue_pair),
		cmocka_unit_test(windows_end_with_their_queue_pair),
		cmocka_unit_test(peers_can_end_a_window),
		cmocka_unit_test(peers_cannot_end_anything_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
