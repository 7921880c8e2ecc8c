/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns among tenants: one of them has one queue pair, another one many, both
 * READ as much as they can, and the node's port is the bottleneck. What a
 * tenant gets is counted: half of it, not a queue pair's share.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "client/verbs_api.h"
#include "rig/stage.h"
#include "sim/sim.h"

enum {
	MANY = 31, /* queue pairs of the greedy one */
	DEPTH = 8,
	BYTES = 4096,
	READS = 4000, /* until the count */
};

struct tenant {
	struct rig_host *host;
	struct rig_region *memory;
	struct ibv_cq *cq;
	struct ibv_pd *pd; /* at the node */
	struct ibv_mr *mr;
	struct rig_pair pair[MANY];
	unsigned pairs;
	uint64_t done;
};

struct world {
	struct rig_stage *stage;
	struct rig_host *node;
	struct tenant modest, greedy;
	uint8_t bytes[BYTES];
};

static void post(struct world *w, struct tenant *t, uint64_t pair)
{
	struct ibv_sge sge = {.addr = (uintptr_t)t->memory->mem,
			      .length = BYTES,
			      .lkey = t->memory->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = pair,
		      .sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_READ,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {.remote_addr = (uintptr_t)w->bytes,
				  .rkey = t->mr->rkey}};

	assert_int_equal(ibv_post_send(t->pair[pair].near_qp, &wr, &bad), 0);
}

static void tenant_open(struct world *w, struct tenant *t, unsigned pairs)
{
	struct rig_pair_options o = {.send_depth = DEPTH};

	assert_int_equal(rig_host_add(w->stage, "tenant", &t->host), 0);
	assert_int_equal(rig_region_create(t->host, BYTES, false, &t->memory),
			 0);
	o.cq = t->cq = rig_cq_create(t->host, MANY * DEPTH);
	o.far_pd = t->pd = ibv_alloc_pd(w->node->context);
	t->mr = ibv_reg_mr(t->pd, w->bytes, BYTES, IBV_ACCESS_REMOTE_READ);
	assert_true(o.cq && t->pd && t->mr);
	for (; t->pairs < pairs; t->pairs++) {
		assert_int_equal(
			rig_pair_open(t->host, w->node, &o, &t->pair[t->pairs]),
			0);
		for (unsigned i = 0; i < DEPTH; i++)
			post(w, t, t->pairs);
	}
}

static void tenant_close(struct tenant *t)
{
	for (unsigned i = 0; i < t->pairs; i++)
		rig_pair_close(&t->pair[i]);
	(void)ibv_dereg_mr(t->mr);
	(void)ibv_dealloc_pd(t->pd);
	(void)ibv_destroy_cq(t->cq);
}

static void take(struct world *w, struct tenant *t)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(t->cq, 1, &wc) == 1) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		t->done++;
		post(w, t, wc.wr_id);
	}
}

static void test_turns(void **state)
{
	struct rig_stage_config cfg = {.seed = 1};
	static struct world w;
	struct sim *sim;

	cfg.link.latency_ps = 300 * SIM_NS;
	cfg.link.bits_per_s = 10000000000ull;
	cfg.link.queue_frames = 8;
	assert_int_equal(rig_stage_create(&cfg, &w.stage), 0);
	assert_int_equal(rig_host_add(w.stage, "node", &w.node), 0);
	tenant_open(&w, &w.greedy, MANY);
	tenant_open(&w, &w.modest, 1);
	sim = rig_stage_sim(w.stage);
	while (w.greedy.done + w.modest.done < READS) {
		(void)sim_run_until(sim, sim_now_ps(sim) + SIM_US);
		take(&w, &w.greedy);
		take(&w, &w.modest);
	}
	print_message("%llu of %llu READs\n", (unsigned long long)w.modest.done,
		      (unsigned long long)(w.greedy.done + w.modest.done));
	/* By queue pairs it would have one in 32. */
	assert_in_range(w.modest.done, READS / 4, READS * 3 / 4);
	tenant_close(&w.greedy);
	tenant_close(&w.modest);
	rig_stage_destroy(w.stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
