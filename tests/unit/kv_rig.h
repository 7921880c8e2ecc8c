/* SPDX-License-Identifier: Apache-2.0 */
/* A table and its clients on the looped host, without a rack. */
#ifndef AQ_TEST_KV_RIG_H
#define AQ_TEST_KV_RIG_H

#include "verbs_pair.h"

#include <aquifer/aqdv.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/verbs_api.h"
#include "kv/kv.h"

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

struct rig {
	struct pair pair; /* device and domain */
	struct kv_geometry g;
	uint8_t *table;
	uint8_t *locks;
	struct ibv_mr *table_mr;
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

static const struct client_clock rig_clock = {rig_now_ns, rig_relax, NULL};

static struct ibv_qp *rig_qp(struct rig *r, struct ibv_cq *cq)
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
	struct rig *r = ctx;
	unsigned i = (unsigned)atoi(conn + 1);

	assert_true(conn[0] == 'q' && i < r->ends);
	r->fences++;
	return ibv_modify_qp(r->end[i].far_qp, &err, IBV_QP_STATE);
}

static int rig_is_alive(void *ctx, const char *conn)
{
	struct rig *r = ctx;

	return r->end[atoi(conn + 1)].is_open;
}

static int rig_open(struct rig *r, struct kv_port *port)
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
	snprintf(port->conn, sizeof(port->conn), "q%u", r->ends++);
	port->link = &e->link;
	return 0;
}

static void rig_close(void *ctx, struct kv_port *port)
{
	struct rig *r = ctx;
	struct rig_end *e = &r->end[atoi(port->conn + 1)];

	(void)ibv_destroy_qp(e->link.qp);
	(void)ibv_destroy_qp(e->far_qp);
	(void)ibv_destroy_cq(e->link.cq);
	(void)ibv_destroy_cq(e->far_cq);
	e->is_open = false;
}

static int rig_renew(void *ctx, struct kv_port *port)
{
	rig_close(ctx, port);
	return rig_open(ctx, port);
}

static struct kv_port rig_port(struct rig *r)
{
	struct kv_port port = {.addr = (uintptr_t)r->table,
			       .rkey = r->table_mr->rkey,
			       .lock_addr = (uintptr_t)r->locks,
			       .lock_rkey = r->lock_mr->rkey,
			       .fence = rig_fence,
			       .is_alive = rig_is_alive,
			       .renew = rig_renew,
			       .close = rig_close,
			       .ctx = r};

	assert_int_equal(rig_open(r, &port), 0);
	return port;
}

static void rig_make(struct rig *r, const struct aq_kv_options *o)
{
	struct kv_port port;
	struct kv_geometry again;

	memset(r, 0, sizeof(*r));
	assert_int_equal(kv_geometry_make(o, &r->g), 0);
	pair_open(&r->pair);
	r->pair.pd = ibv_alloc_pd(r->pair.ctx);
	assert_non_null(r->pair.pd);
	r->table = aligned_alloc(4096, align_up(r->g.size_bytes, 4096));
	r->locks = aligned_alloc(4096, align_up(r->g.lock_bytes, 4096));
	memset(r->table, 0, r->g.size_bytes);
	memset(r->locks, 0, r->g.lock_bytes);
	r->table_mr =
		ibv_reg_mr(r->pair.pd, r->table, r->g.size_bytes, PAIR_ACCESS);
	r->lock_mr =
		ibv_reg_mr(r->pair.pd, r->locks, r->g.lock_bytes, PAIR_ACCESS);
	assert_non_null(r->table_mr);
	assert_non_null(r->lock_mr);
	port = rig_port(r);
	assert_int_equal(kv_format(&port, &r->g, 0), 0);
	assert_int_equal(kv_probe(&port, r->g.size_bytes, &again), 0);
	assert_memory_equal(&again, &r->g, sizeof(again));
	rig_close(r, &port);
}

static struct aq_kv_client *rig_client(struct rig *r,
				       const struct kv_client_config *config)
{
	static const struct kv_client_config none = {.rng_seed = 1};
	struct kv_port port = rig_port(r);
	struct aq_kv_client *c = NULL;

	assert_int_equal(
		kv_client_create(&port, &r->g, config ? config : &none, &c), 0);
	return c;
}

static void rig_break(struct rig *r)
{
	(void)ibv_dereg_mr(r->table_mr);
	(void)ibv_dereg_mr(r->lock_mr);
	free(r->table);
	free(r->locks);
	assert_int_equal(ibv_dealloc_pd(r->pair.pd), 0);
	pair_close(&r->pair);
}

static void rig_check_with(struct aq_kv_client *c, uint64_t used)
{
	struct aq_kv_report p;

	assert_int_equal(aq_kv_check(c, &p), 0);
	assert_int_equal(p.bad_rows, 0);
	assert_int_equal(p.bad_entries, 0);
	assert_int_equal(p.duplicates, 0);
	assert_int_equal(p.locks_held, 0);
	assert_int_equal(p.bad_extents, 0);
	assert_int_equal(p.leaked_extents, 0);
	assert_int_equal(p.shared_extents, 0);
	if (used != UINT64_MAX)
		assert_int_equal(p.used, used);
}

#endif
