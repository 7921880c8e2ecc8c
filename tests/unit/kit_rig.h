/* SPDX-License-Identifier: Apache-2.0 */
/* Far memory and remotes to it on the looped host, without a rack. */
#ifndef AQ_TEST_KIT_RIG_H
#define AQ_TEST_KIT_RIG_H

#include "verbs_pair.h"

#include <aquifer/aqdv.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/verbs_api.h"
#include "kit/kit.h"

enum {
	RIG_CLIENTS = 16,
	RIG_DEPTH = 256,
};

struct rig_end {
	struct client_link link;
	struct ibv_qp *far_qp;
	struct ibv_cq *far_cq;
	bool is_open;
};

struct kit_rig {
	struct pair pair; /* device and domain */
	uint8_t *main;
	uint8_t *locks;
	struct ibv_mr *main_mr;
	struct ibv_mr *lock_mr;
	unsigned ends;
	struct rig_end end[RIG_CLIENTS];
	unsigned fences;
};

static uint64_t rig_now_ns(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void rig_relax(void *ctx)
{
	sched_yield();
}

static const struct client_clock rig_clock = {.now_ns = rig_now_ns,
					      .relax = rig_relax};

static struct ibv_qp *rig_qp(struct kit_rig *r, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = RIG_DEPTH,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(r->pair.pd, &attr);
	struct side s = {.qp = qp};

	assert_non_null(qp);
	side_init(&s);
	return qp;
}

static int rig_fence(void *ctx, const char *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct kit_rig *r = ctx;
	unsigned i = (unsigned)atoi(conn + 1);

	assert_true(conn[0] == 'q' && i < r->ends);
	r->fences++;
	return ibv_modify_qp(r->end[i].far_qp, &err, IBV_QP_STATE);
}

static int rig_is_alive(void *ctx, const char *conn)
{
	struct kit_rig *r = ctx;

	return r->end[atoi(conn + 1)].is_open;
}

static int rig_open(struct kit_rig *r, struct kit_remote *remote)
{
	struct rig_end *e = &r->end[r->ends];

	assert_true(r->ends < RIG_CLIENTS);
	e->link.verbs = client_verbs_choose();
	e->link.context = r->pair.ctx;
	e->link.pd = r->pair.pd;
	e->link.cq = ibv_create_cq(r->pair.ctx, RIG_DEPTH, NULL, NULL, 0);
	e->far_cq = ibv_create_cq(r->pair.ctx, 16, NULL, NULL, 0);
	e->link.qp = rig_qp(r, e->link.cq);
	e->far_qp = rig_qp(r, e->far_cq);
	pair_to(&r->pair, e->link.qp, e->far_qp->qp_num, IBV_MTU_1024);
	pair_to(&r->pair, e->far_qp, e->link.qp->qp_num, IBV_MTU_1024);
	e->link.has_masked_atomics = true;
	e->link.clock = &rig_clock;
	e->is_open = true;
	snprintf(remote->conn, sizeof(remote->conn), "q%u", r->ends++);
	remote->link = &e->link;
	return 0;
}

static void rig_close(void *ctx, struct kit_remote *remote)
{
	struct kit_rig *r = ctx;
	struct rig_end *e = &r->end[atoi(remote->conn + 1)];

	(void)ibv_destroy_qp(e->link.qp);
	(void)ibv_destroy_qp(e->far_qp);
	(void)ibv_destroy_cq(e->link.cq);
	(void)ibv_destroy_cq(e->far_cq);
	e->is_open = false;
}

static int rig_renew(void *ctx, struct kit_remote *remote)
{
	rig_close(ctx, remote);
	return rig_open(ctx, remote);
}

static struct kit_remote rig_remote(struct kit_rig *r)
{
	struct kit_remote remote = {.addr = (uintptr_t)r->main,
				    .rkey = r->main_mr->rkey,
				    .lock_addr = (uintptr_t)r->locks,
				    .lock_rkey = r->lock_mr->rkey,
				    .fence = rig_fence,
				    .is_alive = rig_is_alive,
				    .renew = rig_renew,
				    .close = rig_close,
				    .ctx = r};

	assert_int_equal(rig_open(r, &remote), 0);
	return remote;
}

static inline void kit_rig_make(struct kit_rig *r, size_t main_bytes,
				size_t lock_bytes)
{
	memset(r, 0, sizeof(*r));
	pair_open(&r->pair);
	r->pair.pd = ibv_alloc_pd(r->pair.ctx);
	assert_non_null(r->pair.pd);
	r->main = aligned_alloc(4096, align_up(main_bytes, 4096));
	r->locks = aligned_alloc(4096, align_up(lock_bytes, 4096));
	memset(r->main, 0, main_bytes);
	memset(r->locks, 0, lock_bytes);
	r->main_mr = ibv_reg_mr(r->pair.pd, r->main, main_bytes, PAIR_ACCESS);
	r->lock_mr = ibv_reg_mr(r->pair.pd, r->locks, lock_bytes, PAIR_ACCESS);
	assert_non_null(r->main_mr);
	assert_non_null(r->lock_mr);
}

static inline void kit_rig_break(struct kit_rig *r)
{
	(void)ibv_dereg_mr(r->main_mr);
	(void)ibv_dereg_mr(r->lock_mr);
	free(r->main);
	free(r->locks);
	assert_int_equal(ibv_dealloc_pd(r->pair.pd), 0);
	pair_close(&r->pair);
}

#endif
