/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page server on the looped host, tenants with a space each, and clients that
 * ask as they like: with or without a receive for the answer, one-sided with
 * any key that they ever had. For tests and for the fuzzer, so without cmocka.
 *
 * Every byte that a tenant stores says whose it is (rig_fill): the number of
 * the tenant in the upper half, anything in the lower one.
 */
#ifndef AQ_TEST_GUEST_RIG_H
#define AQ_TEST_GUEST_RIG_H

#define LOOP_CLOCK_NS rig_clock_ns
static unsigned long long rig_clock_ns = 1000000000;

#include "verbs_loop.h"

#include "pageframe/pframe_priv.h"
#include "pageframe/pframe_server.h"
#include "verbs/verbs.h"
#include "wire/page_wire.h"

enum {
	RIG_BYTES = 64, /* of a page */
	RIG_PAGES = 4,	/* of a space */
	RIG_DEPTH = 4,
	RIG_TENANTS = 2,
	RIG_CONNS = 3, /* of a tenant: guests, and one with all rights */
	RIG_PLAIN = RIG_CONNS - 1,
	RIG_QUEUE = 64,
	RIG_ROUNDS = 12,
	RIG_ROUND_NS = 20000, /* an RNR timer is shorter */
};

struct rig_conn {
	struct pframe_guest *guest;
	struct ibv_qp *near, *far;
	uint8_t *buf; /* requests, pages to store, and what is answered */
	struct ibv_mr *mr;
	uint32_t sent;	   /* requests, to place them in turn */
	uint32_t expected; /* receives posted and not used */
	uint32_t answers;
	uint32_t last;	  /* immediate value of the last answer */
	uint32_t done;	  /* own requests that completed */
	uint32_t refused; /* ... with an error */
	bool is_broken;
};

struct rig_tenant {
	struct ibv_pd *pd;
	struct pframe_space *space;
	struct rig_conn conn[RIG_CONNS];
};

struct rig {
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd; /* the clients' own memory */
	struct ibv_cq *cq; /* the clients' */
	struct pframe_pool *pool;
	struct pframe_server *server;
	struct rig_tenant tenant[RIG_TENANTS];
};

/* Places in a connection's memory, for each request in turn. */
enum {
	RIG_REQUEST = 0,
	RIG_PAGE = sizeof(struct page_request),
	RIG_ANSWER = RIG_PAGE + RIG_BYTES,
	RIG_STRIDE = RIG_ANSWER + RIG_BYTES,
	RIG_TURNS = 16,
};

static inline void rig_fill(uint8_t *page, unsigned tenant, unsigned value)
{
	memset(page, (int)((tenant + 1) << 4 | (value & 0xf)), RIG_BYTES);
}

/* Whether no byte is another tenant's. */
static inline bool rig_is_own(const uint8_t *page, unsigned tenant)
{
	for (unsigned i = 0; i < RIG_BYTES; i++)
		if (page[i] && page[i] >> 4 != (int)tenant + 1)
			return false;
	return true;
}

static inline void rig_start(struct rig *r, uint64_t pframes)
{
	int err;

	memset(r, 0, sizeof(*r));
	verbs_set_provider(loop_provider());
	r->list = ibv_get_device_list(NULL);
	r->ctx = ibv_open_device(r->list[0]);
	ASSERT(r->ctx);
	r->pd = ibv_alloc_pd(r->ctx);
	r->cq = ibv_create_cq(r->ctx, 8 * RIG_QUEUE, NULL, NULL, 0);
	err = pframe_pool_create(pframes * RIG_BYTES, RIG_BYTES, &r->pool);
	ASSERT(!err);
	err = pframe_server_create(r->ctx, &r->server);
	ASSERT(!err);
}

static inline int rig_space(struct rig *r, unsigned tenant, bool is_pieces)
{
	struct rig_tenant *t = &r->tenant[tenant];
	struct pframe_space_options o = {.entries = RIG_PAGES,
					 .depth = RIG_DEPTH,
					 .is_pieces = is_pieces};

	if (!t->pd)
		t->pd = ibv_alloc_pd(r->ctx);
	o.pd = t->pd;
	return pframe_space_create(r->pool, &o, &t->space);
}

static inline void rig_connect(struct rig *r, struct ibv_qp *qp, uint32_t dest,
			       unsigned rights)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = rights};
	int err = ibv_modify_qp(qp, &a,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS);

	ASSERT(!err);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	(void)ibv_query_gid(r->ctx, 1, 1, &a.ah_attr.grh.dgid);
	err = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	ASSERT(!err);
	a.qp_state = IBV_QPS_RTS;
	err = ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC);
	ASSERT(!err);
}

static inline struct ibv_qp *rig_qp(struct rig *r, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.send_cq = r->cq,
					.recv_cq = r->cq,
					.cap = {.max_send_wr = RIG_QUEUE,
						.max_recv_wr = RIG_QUEUE,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	return ibv_create_qp(pd, &init);
}

/* A guest, or the one that may use keys (RIG_PLAIN). */
static inline int rig_open(struct rig *r, unsigned tenant, unsigned at)
{
	struct rig_tenant *t = &r->tenant[tenant];
	struct rig_conn *c = &t->conn[at];
	int err = 0;

	if (at == RIG_PLAIN)
		c->far = rig_qp(r, t->pd);
	else
		err = pframe_guest_create(r->server, t->space, &c->guest);
	if (err)
		return err;
	if (c->guest)
		c->far = pframe_guest_qp(c->guest);
	c->near = rig_qp(r, r->pd);
	c->buf = calloc(RIG_TURNS, RIG_STRIDE);
	c->mr = ibv_reg_mr(r->pd, c->buf, RIG_TURNS * RIG_STRIDE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	rig_connect(r, c->near, c->far->qp_num, IBV_ACCESS_REMOTE_WRITE);
	rig_connect(r, c->far, c->near->qp_num,
		    at == RIG_PLAIN
			    ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
			    : 0);
	return c->guest ? pframe_guest_arm(c->guest) : 0;
}

static inline void rig_close(struct rig *r, unsigned tenant, unsigned at)
{
	struct rig_conn *c = &r->tenant[tenant].conn[at];

	if (!c->near)
		return;
	(void)ibv_destroy_qp(c->near);
	if (c->guest)
		pframe_guest_destroy(c->guest);
	else
		(void)ibv_destroy_qp(c->far);
	(void)ibv_dereg_mr(c->mr);
	free(c->buf);
	*c = (struct rig_conn){0};
}

static inline void rig_end_space(struct rig *r, unsigned tenant)
{
	struct rig_tenant *t = &r->tenant[tenant];

	for (unsigned i = 0; i < RIG_CONNS; i++)
		rig_close(r, tenant, i);
	if (t->space)
		pframe_space_destroy(t->space);
	t->space = NULL;
}

static inline void rig_stop(struct rig *r)
{
	int err;

	for (unsigned i = 0; i < RIG_TENANTS; i++) {
		rig_end_space(r, i);
		err = r->tenant[i].pd ? ibv_dealloc_pd(r->tenant[i].pd) : 0;
		ASSERT(!err); /* no key is left */
	}
	pframe_server_destroy(r->server);
	(void)ibv_destroy_cq(r->cq);
	(void)ibv_dealloc_pd(r->pd);
	pframe_pool_destroy(r->pool);
	(void)ibv_close_device(r->ctx);
	ibv_free_device_list(r->list);
}

/* ---- time passes --------------------------------------------------------- */

static inline struct rig_conn *rig_conn_of(struct rig *r, uint32_t qpn)
{
	for (unsigned t = 0; t < RIG_TENANTS; t++)
		for (unsigned i = 0; i < RIG_CONNS; i++) {
			struct rig_conn *c = &r->tenant[t].conn[i];

			if (c->near && c->near->qp_num == qpn)
				return c;
		}
	return NULL;
}

static inline void rig_take(struct rig *r, const struct ibv_wc *wc)
{
	struct rig_conn *c = rig_conn_of(r, wc->qp_num);

	if (!c)
		return;
	if (wc->status) {
		c->refused++;
		c->is_broken = true;
	} else if (wc->opcode & IBV_WC_RECV) {
		c->expected--;
		c->answers++;
		c->last = be32toh(wc->imm_data);
	} else {
		c->done++;
	}
}

static inline void rig_run(struct rig *r)
{
	struct ibv_wc wc[8];

	for (unsigned i = 0; i < RIG_ROUNDS; i++) {
		int n;

		rig_clock_ns += RIG_ROUND_NS;
		while ((n = ibv_poll_cq(r->cq, 8, wc)) > 0)
			for (int k = 0; k < n; k++)
				rig_take(r, &wc[k]);
		(void)pframe_server_step(r->server);
	}
}

/* ---- what clients do ----------------------------------------------------- */

static inline void rig_receive(struct rig_conn *c)
{
	struct ibv_recv_wr *bad, wr = {0};

	if (c->near && c->expected < RIG_QUEUE / 2 &&
	    ibv_post_recv(c->near, &wr, &bad) == 0)
		c->expected++;
}

/* Where the page or the piece that the next request asks for will be. */
static inline uint8_t *rig_answer(struct rig_conn *c)
{
	return c->buf + c->sent % RIG_TURNS * RIG_STRIDE + RIG_ANSWER;
}

/* A store sends the page that was filled with `byte`. */
static inline void rig_ask(struct rig_conn *c, enum page_wire_kind kind,
			   uint64_t index, const uint8_t *page)
{
	uint8_t *at = c->buf + c->sent % RIG_TURNS * RIG_STRIDE;
	struct page_request *q = (struct page_request *)at;
	struct ibv_sge sge = {.addr = (uintptr_t)at,
			      .length = RIG_PAGE + (page ? RIG_BYTES : 0),
			      .lkey = c->mr->lkey};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .send_flags = IBV_SEND_SIGNALED};

	*q = (struct page_request){
		.kind = be32_put(kind),
		.tag = be32_put(c->sent & 0xffff),
		.index = be64_put(index),
		.buf = be64_put((uintptr_t)at + RIG_ANSWER),
		.rkey = be32_put(c->mr->rkey),
		.length = be32_put(RIG_BYTES),
	};
	if (page)
		memcpy(at + RIG_PAGE, page, RIG_BYTES);
	memset(at + RIG_ANSWER, 0, RIG_BYTES);
	if (ibv_post_send(c->near, &wr, &bad) == 0)
		c->sent++;
}

/* With a receive, until it is answered: enum page_wire_end, or -1. */
static inline int rig_call(struct rig *r, unsigned tenant, unsigned at,
			   enum page_wire_kind kind, uint64_t index,
			   const uint8_t *page)
{
	struct rig_conn *c = &r->tenant[tenant].conn[at];
	uint32_t before = c->answers;

	rig_receive(c);
	rig_ask(c, kind, index, page);
	rig_run(r);
	return c->answers == before ? -1 : (int)(c->last >> PAGE_WIRE_TAG_BITS);
}

/* One-sided by a key; 0, or what was refused. */
static inline int rig_use(struct rig *r, unsigned tenant,
			  enum ibv_wr_opcode opcode, uint8_t *page,
			  uint64_t addr, uint32_t rkey)
{
	struct rig_conn *c = &r->tenant[tenant].conn[RIG_PLAIN];
	uint32_t done = c->done;
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf + RIG_ANSWER,
			      .length = RIG_BYTES,
			      .lkey = c->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.opcode = opcode,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	memcpy(c->buf + RIG_ANSWER, page, RIG_BYTES);
	if (ibv_post_send(c->near, &wr, &bad))
		return -EIO;
	rig_run(r);
	memcpy(page, c->buf + RIG_ANSWER, RIG_BYTES);
	return c->done == done ? -EACCES : 0;
}

#endif
