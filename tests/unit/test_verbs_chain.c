/* SPDX-License-Identifier: Apache-2.0 */
/* Chains through the direct verbs: a queue pair connected to itself that takes
 * what another one receives. */
#include <aquifer/aqdv.h>
#include <errno.h>

#include "verbs_pair.h"

enum {
	BLOCKS = 4,
	RINGS_BYTES = 4096,
};

struct rig {
	struct pair p;
	union aqdv_wqe *ring;
	struct aqdv_wqe_data *recv;
	uint64_t *words; /* behind both */
	struct ibv_mr *mr;
	struct ibv_cq *counting, *plain;
	uint32_t number;
	struct ibv_qp *work;
};

static struct ibv_qp *make_qp(struct rig *r, struct ibv_cq *send_cq,
			      struct ibv_cq *recv_cq,
			      const struct aqdv_chain_attr *attr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.qp_type = IBV_QPT_RC,
	};

	return aqdv_create_chain_qp(r->p.pd, &init, attr);
}

static void connect_to(struct rig *r, struct ibv_qp *qp, uint32_t dest)
{
	struct side s = {.qp = qp};

	side_init(&s);
	side_connect(&r->p, &s, dest);
}

static void rig_open(struct rig *r)
{
	struct aqdv_chain_attr attr;

	memset(r, 0, sizeof(*r));
	pair_open(&r->p);
	pair_make(&r->p, IBV_QPT_RC, 0);
	r->ring = aligned_alloc(4096, RINGS_BYTES);
	memset(r->ring, 0, RINGS_BYTES);
	r->recv = (struct aqdv_wqe_data *)&r->ring[BLOCKS];
	r->words = (uint64_t *)&r->recv[BLOCKS];
	r->mr = ibv_reg_mr(r->p.pd, r->ring, RINGS_BYTES, PAIR_ACCESS);
	assert_non_null(r->mr);
	r->counting = ibv_create_cq(r->p.ctx, 4, NULL, NULL, 0);
	r->plain = ibv_create_cq(r->p.ctx, 4, NULL, NULL, 0);
	assert_int_equal(aqdv_count_cq(r->counting, &r->number), 0);
	attr = (struct aqdv_chain_attr){
		.flags = AQDV_CHAIN_ORDERED,
		.sq_addr = (uintptr_t)r->ring,
		.sq_lkey = r->mr->lkey,
		.sq_blocks = BLOCKS,
	};
	r->work = make_qp(r, r->plain, r->plain, &attr);
	assert_non_null(r->work);
	connect_to(r, r->work, r->work->qp_num);
}

static void rig_close(struct rig *r)
{
	assert_int_equal(ibv_destroy_qp(r->work), 0);
	side_break(&r->p.a);
	side_break(&r->p.b);
	assert_int_equal(ibv_destroy_cq(r->counting), 0);
	assert_int_equal(ibv_destroy_cq(r->plain), 0);
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(ibv_dealloc_pd(r->p.pd), 0);
	free(r->ring);
	pair_close(&r->p);
}

/* A message goes where the receive says, wakes the queue that waits for it, and
 * that adds it to a sum and enables the receive again. */
static void test_messages_start_a_chain(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct aqdv_chain_attr attr;
	struct rig r;
	struct ibv_qp *front;
	uint32_t count;
	uint64_t i;

	rig_open(&r);
	attr = (struct aqdv_chain_attr){
		.rq_addr = (uintptr_t)r.recv,
		.rq_lkey = r.mr->lkey,
		.rq_entries = 1,
		.rq_segs = 1,
	};
	front = make_qp(&r, r.plain, r.counting, &attr);
	assert_non_null(front);
	assert_int_equal(ibv_destroy_qp(r.p.b.qp), 0);
	r.p.b.qp = front;
	connect_to(&r, front, r.p.a.qp->qp_num);
	{
		struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

		assert_int_equal(ibv_modify_qp(r.p.a.qp, &reset, IBV_QP_STATE),
				 0);
		connect_to(&r, r.p.a.qp, front->qp_num);
	}
	aqdv_wqe_put_order(&r.ring[0], AQDV_WQE_WAIT, r.number, 1, 1);
	aqdv_wqe_put_amo(&r.ring[1], AQDV_WQE_FAA, 0, (uintptr_t)r.words,
			 r.mr->rkey, 0, 0, (uintptr_t)(r.words + 1),
			 r.mr->lkey);
	aqdv_wqe_put_order(&r.ring[2], AQDV_WQE_RECV_ENABLE, front->qp_num, 2,
			   1);
	aqdv_wqe_put_order(&r.ring[3], AQDV_WQE_SEND_ENABLE, r.work->qp_num, 8,
			   4);
	aqdv_wqe_put_data(r.recv, (uintptr_t)&r.ring[1].amo.atomic.swap_add, 8,
			  r.mr->lkey);
	assert_int_equal(aqdv_enable_recv(front, 1), 0);
	assert_int_equal(aqdv_enable_send(r.work, 4), 0);
	for (i = 1; i <= 100; i++) {
		*(uint64_t *)(void *)r.p.a.buf = htobe64(i);
		assert_int_equal(side_post(&r.p.a, &wr, 0, 8), 0);
		assert_int_equal(pair_wait(r.p.a.cq).status, IBV_WC_SUCCESS);
	}
	assert_int_equal(r.words[0], 5050);
	assert_int_equal(aqdv_cq_count(r.counting, &count), 0);
	assert_int_equal(count, 100);
	/* Nobody posts to a managed queue. */
	assert_int_not_equal(side_post(&r.p.b, &wr, 0, 8), 0);
	rig_close(&r);
}

static void test_failures_can_be_polled(void **state)
{
	struct rig r;
	struct ibv_wc wc;

	rig_open(&r);
	aqdv_wqe_put_rdma(&r.ring[0], AQDV_WQE_READ, 0, 0, r.mr->rkey,
			  (uintptr_t)r.words, r.mr->lkey, 8);
	assert_int_equal(aqdv_enable_send(r.work, 1), 0);
	wc = pair_wait(r.plain);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.wr_id, 0);
	assert_int_equal(wc.qp_num, r.work->qp_num);
	rig_close(&r);
}

static void test_wrong_calls(void **state)
{
	struct aqdv_chain_attr attr = {0};
	struct ibv_context foreign = {0};
	struct ibv_qp foreign_qp = {.context = &foreign};
	struct ibv_cq foreign_cq = {.context = &foreign};
	struct ibv_pd foreign_pd = {.context = &foreign};
	struct ibv_qp_init_attr init = {0};
	struct rig r;
	uint32_t n;

	rig_open(&r);
	assert_null(make_qp(&r, r.plain, r.plain, &attr));
	assert_int_equal(errno, EINVAL);
	attr = (struct aqdv_chain_attr){
		.sq_addr = (uintptr_t)r.ring,
		.sq_lkey = r.mr->lkey ^ 0x100,
		.sq_blocks = 4,
	};
	assert_null(make_qp(&r, r.plain, r.plain, &attr));
	assert_int_equal(errno, EACCES);
	attr.comp_mask = 1;
	assert_null(make_qp(&r, r.plain, r.plain, &attr));
	assert_null(make_qp(&r, r.plain, r.plain, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(aqdv_create_chain_qp(&foreign_pd, &init, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(aqdv_enable_send(&foreign_qp, 1), -EOPNOTSUPP);
	assert_int_equal(aqdv_enable_recv(NULL, 1), -EINVAL);
	assert_int_equal(aqdv_count_cq(&foreign_cq, &n), -EOPNOTSUPP);
	assert_int_equal(aqdv_cq_count(&foreign_cq, &n), -EOPNOTSUPP);
	assert_int_equal(aqdv_count_cq(NULL, &n), -EINVAL);
	/* It is in use. */
	assert_int_equal(aqdv_count_cq(r.plain, &n), -EBUSY);
	assert_int_equal(aqdv_enable_send(r.p.a.qp, 1), -EINVAL);
	assert_int_equal(aqdv_enable_recv(r.work, 1), -EINVAL);
	assert_int_equal(aqdv_enable_send(r.work, 5), -EINVAL);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_start_a_chain),
		cmocka_unit_test(test_failures_can_be_polled),
		cmocka_unit_test(test_wrong_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
