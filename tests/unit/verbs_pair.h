/* SPDX-License-Identifier: Apache-2.0 */
/* Two connected queue pairs on the looped host, with memory and a CQ each. */
#ifndef AQ_TEST_VERBS_PAIR_H
#define AQ_TEST_VERBS_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "verbs/verbs.h"
#include "verbs_loop.h"

enum {
	PAIR_BYTES = 65536,
	PAIR_DEPTH = 16,
	PAIR_POLLS = 100000,
	PAIR_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		      IBV_ACCESS_MW_BIND,
};

struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

struct pair {
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct side a;
	struct side b;
};

static inline struct ibv_context *pair_open(struct pair *p)
{
	verbs_set_provider(loop_provider());
	p->list = ibv_get_device_list(NULL);
	assert_non_null(p->list);
	assert_non_null(p->list[0]);
	p->ctx = ibv_open_device(p->list[0]);
	assert_non_null(p->ctx);
	return p->ctx;
}

static inline void pair_close(struct pair *p)
{
	assert_int_equal(ibv_close_device(p->ctx), 0);
	ibv_free_device_list(p->list);
}

static inline void side_make(struct pair *p, struct side *s,
			     enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.srq = p->srq,
		.pd = p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
	};

	if (ops) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = ops;
	}
	if (!s->cq)
		s->cq = ibv_create_cq(p->ctx, 4 * PAIR_DEPTH, s, p->channel, 0);
	assert_non_null(s->cq);
	attr.send_cq = s->cq;
	attr.recv_cq = s->cq;
	s->qp = ibv_create_qp_ex(p->ctx, &attr);
	assert_non_null(s->qp);
	s->buf = calloc(1, PAIR_BYTES);
	s->mr = ibv_reg_mr(p->pd, s->buf, PAIR_BYTES, PAIR_ACCESS);
	assert_non_null(s->mr);
}

static inline void side_init(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x1234,
		.qp_access_flags = PAIR_ACCESS & 0xf,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= s->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY
					     : IBV_QP_ACCESS_FLAGS;
	assert_int_equal(ibv_modify_qp(s->qp, &attr, mask), 0);
}

static inline void side_connect(struct pair *p, struct side *s, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 7,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
	};
	int mask = IBV_QP_STATE;

	if (s->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(ibv_query_gid(p->ctx, 1, 1, &attr.ah_attr.grh.dgid),
			 0);
	assert_int_equal(ibv_modify_qp(s->qp, &attr, mask), 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 7;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (s->qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(ibv_modify_qp(s->qp, &attr, mask), 0);
	assert_int_equal(s->qp->state, IBV_QPS_RTS);
}

static inline void pair_make(struct pair *p, enum ibv_qp_type type,
			     uint64_t ops)
{
	p->pd = ibv_alloc_pd(p->ctx);
	assert_non_null(p->pd);
	side_make(p, &p->a, type, ops);
	side_make(p, &p->b, type, ops);
	side_init(&p->a);
	side_init(&p->b);
	side_connect(p, &p->a, p->b.qp->qp_num);
	side_connect(p, &p->b, p->a.qp->qp_num);
}

static inline void side_break(struct side *s)
{
	assert_int_equal(ibv_destroy_qp(s->qp), 0);
	assert_int_equal(ibv_dereg_mr(s->mr), 0);
	assert_int_equal(ibv_destroy_cq(s->cq), 0);
	free(s->buf);
	*s = (struct side){0};
}

static inline void pair_break(struct pair *p)
{
	side_break(&p->a);
	side_break(&p->b);
	assert_int_equal(ibv_dealloc_pd(p->pd), 0);
}

/* The next completion; its status is the caller's to check. */
static inline struct ibv_wc pair_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc = {0};
	int i, n = 0;

	for (i = 0; i < PAIR_POLLS && n == 0; i++)
		n = ibv_poll_cq(cq, 1, &wc);
	assert_int_equal(n, 1);
	return wc;
}

static inline void side_recv(struct side *s, uint64_t wr_id, size_t offset,
			     uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + offset,
			      .length = length,
			      .lkey = s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad = NULL;

	if (s->qp->srq)
		assert_int_equal(ibv_post_srq_recv(s->qp->srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(s->qp, &wr, &bad), 0);
}

/* A signaled request from s's buffer; rdma and atomic fields are the caller's.
 * Returns what ibv_post_send does. */
static inline int side_post(struct side *s, struct ibv_send_wr *wr,
			    size_t offset, uint32_t length)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + offset,
			      .length = length,
			      .lkey = s->mr->lkey};
	struct ibv_send_wr *bad = NULL;
	int rc;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(s->qp, wr, &bad);
	if (rc)
		assert_ptr_equal(bad, wr);
	return rc;
}

/* To another queue pair of this device. Impatient: who talks to a dead end
 * finds out within milliseconds. */
static inline void pair_to(const struct pair *p, struct ibv_qp *qp,
			   uint32_t dest, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
		.timeout = 8,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.max_rd_atomic = 16,
	};

	assert_int_equal(ibv_query_gid(p->ctx, 1, 1, &attr.ah_attr.grh.dgid),
			 0);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

#endif
