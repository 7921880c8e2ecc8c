/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes for page stores on the looped host, without a rack. */
#ifndef AQ_TEST_PAGE_RIG_H
#define AQ_TEST_PAGE_RIG_H

#include "verbs_pair.h"

#include <errno.h>
#include <stdlib.h>

#include "link.h"
#include "page_priv.h"
#include "verbs_api.h"

enum {
	RIG_NODES = 8,
	RIG_DEPTH = 256,
};

struct rig_node {
	bool is_down;
	bool is_used;
	struct client_link link;
	struct ibv_qp *far_qp;
	struct ibv_cq *far_cq;
	uint8_t *memory;
	uint64_t bytes;
	struct ibv_mr *mr;
};

struct rig {
	struct pair pair;
	uint32_t nodes;
	struct rig_node node[RIG_NODES];
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

/* Impatient: who talks to a dead node finds out within milliseconds. */
static void rig_to(struct rig *r, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
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

	assert_int_equal(
		ibv_query_gid(r->pair.ctx, 1, 1, &attr.ah_attr.grh.dgid), 0);
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

static struct ibv_qp *rig_qp(struct rig *r, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = RIG_DEPTH,
						.max_recv_wr = RIG_DEPTH,
						.max_send_sge = 2,
						.max_recv_sge = 1}};
	struct side s = {.qp = ibv_create_qp(r->pair.pd, &attr)};

	assert_non_null(s.qp);
	side_init(&s);
	return s.qp;
}

static int rig_open(void *ctx, uint32_t node, const struct page_wish *wish,
		    struct page_grant *out)
{
	struct rig *r = ctx;
	struct rig_node *n = &r->node[node];
	uint64_t bytes = align_up(wish->index_count * wish->shard_bytes, 4096);

	if (n->is_down || n->is_used)
		return -EHOSTDOWN;
	n->link.verbs = client_verbs_choose();
	n->link.context = r->pair.ctx;
	n->link.pd = r->pair.pd;
	n->link.cq = ibv_create_cq(r->pair.ctx, 2 * RIG_DEPTH, NULL, NULL, 0);
	n->far_cq = ibv_create_cq(r->pair.ctx, 16, NULL, NULL, 0);
	n->link.qp = rig_qp(r, n->link.cq);
	n->far_qp = rig_qp(r, n->far_cq);
	rig_to(r, n->link.qp, n->far_qp->qp_num);
	rig_to(r, n->far_qp, n->link.qp->qp_num);
	n->link.clock = &rig_clock;
	n->memory = aligned_alloc(4096, bytes);
	n->bytes = bytes;
	memset(n->memory, 0xee, bytes);
	n->mr = ibv_reg_mr(r->pair.pd, n->memory, bytes, PAIR_ACCESS);
	assert_non_null(n->mr);
	n->is_used = true;
	*out = (struct page_grant){.link = {&n->link},
				   .addr = (uintptr_t)n->memory,
				   .rkey = n->mr->rkey};
	(void)snprintf(out->node_name, sizeof(out->node_name), "m%u", node);
	return 0;
}

static void rig_close(void *ctx, struct page_grant *g)
{
	struct rig_node *n;

	if (!g)
		return;
	n = container_of(g->link[0], struct rig_node, link);
	(void)ibv_destroy_qp(n->link.qp);
	(void)ibv_destroy_qp(n->far_qp);
	(void)ibv_destroy_cq(n->link.cq);
	(void)ibv_destroy_cq(n->far_cq);
	(void)ibv_dereg_mr(n->mr);
	free(n->memory);
	n->is_used = false;
}

static uint32_t rig_node_count(void *ctx)
{
	return ((struct rig *)ctx)->nodes;
}

static void rig_make(struct rig *r, uint32_t nodes)
{
	memset(r, 0, sizeof(*r));
	pair_open(&r->pair);
	r->pair.pd = ibv_alloc_pd(r->pair.ctx);
	r->nodes = nodes;
}

static void rig_break(struct rig *r)
{
	assert_int_equal(ibv_dealloc_pd(r->pair.pd), 0);
	pair_close(&r->pair);
}

static void rig_kill(struct rig *r, uint32_t node)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	r->node[node].is_down = true;
	assert_int_equal(
		ibv_modify_qp(r->node[node].far_qp, &err, IBV_QP_STATE), 0);
}

static struct page_store *rig_store(struct rig *r,
				    const struct page_store_options *o)
{
	struct page_wiring w = {.open = rig_open,
				.close = rig_close,
				.node_count = rig_node_count,
				.ctx = r};
	struct page_store *s = NULL;

	assert_int_equal(page_store_create("test", o, &w, &s), 0);
	return s;
}

/* Different for every page and version. */
static void rig_fill(uint8_t *buf, uint32_t bytes, uint64_t page,
		     uint64_t version)
{
	uint64_t x = page * 0x9e3779b97f4a7c15ull + version;

	for (uint32_t i = 0; i + 8 <= bytes; i += 8) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		memcpy(buf + i, &x, 8);
	}
}

#endif
