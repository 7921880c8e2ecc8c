/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stage: links that read, write and add; a host that is killed at a point
 * takes its fibers along and its peers get errors; the same seed, the same
 * trace; hardware costs time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "client/verbs_api.h"
#include "rig/stage.h"
#include "sim/fiber.h"

enum {
	REGION = 8192,
	OPS = 50,
};

struct play {
	struct rig_stage *stage;
	struct rig_host *client, *node;
	struct rig_region *region;
	struct client_link *link;
	uint8_t buf[64];
	struct ibv_mr *mr;
	unsigned done;
	unsigned kill_after; /* 0: never */
	bool kill_node;
	enum ibv_wc_status status;
	uint64_t start_ns, end_ns;
};

static enum ibv_wc_status one_op(struct play *p, enum ibv_wr_opcode opcode,
				 uint64_t offset)
{
	struct ibv_sge sge = {(uintptr_t)p->buf, 8, p->mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .sg_list = &sge,
				 .num_sge = 1};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = p->link->addr + offset;
		wr.wr.atomic.rkey = p->link->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = p->link->addr + offset;
		wr.wr.rdma.rkey = p->link->rkey;
	}
	if (ibv_post_send(p->link->qp, &wr, &bad))
		return IBV_WC_GENERAL_ERR;
	while (ibv_poll_cq(p->link->cq, 1, &wc) == 0)
		client_clock_relax(p->link->clock);
	return wc.status;
}

static void client_main(void *arg)
{
	struct play *p = arg;

	p->start_ns = client_clock_now_ns(p->link->clock);
	while (p->done < OPS) {
		p->status = one_op(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 0);
		if (p->status)
			break;
		if (p->kill_after && p->done == p->kill_after) {
			if (p->kill_node)
				rig_host_kill(p->node);
			else
				rig_host_kill(p->client);
		}
		p->done++;
		memset(p->buf, (int)p->done, 8);
		p->status = one_op(p, IBV_WR_RDMA_WRITE, 64);
		memset(p->buf, 0, 8);
		if (!p->status)
			p->status = one_op(p, IBV_WR_RDMA_READ, 64);
		if (p->status)
			break;
		if (p->buf[7] != (uint8_t)p->done)
			p->status = IBV_WC_GENERAL_ERR;
	}
	p->end_ns = client_clock_now_ns(p->link->clock);
}

static void play_open(struct play *p, uint64_t seed, bool hardware)
{
	struct rig_stage_config cfg = {
		.seed = seed,
		.hardware = hardware,
		.link = {.latency_ps = SIM_US,
			 .bits_per_s = 100000000000ull,
			 .faults = {.loss_ppm = hardware ? 0 : 30000,
				    .dup_ppm = hardware ? 0 : 30000}}};

	memset(p, 0, sizeof(*p));
	assert_int_equal(rig_stage_create(&cfg, &p->stage), 0);
	assert_int_equal(rig_host_add(p->stage, "client", &p->client), 0);
	assert_int_equal(rig_host_add(p->stage, "node", &p->node), 0);
	assert_int_equal(rig_region_create(p->node, REGION, false, &p->region),
			 0);
	assert_int_equal(rig_link_open(p->client, p->region, NULL, &p->link),
			 0);
	p->mr = p->link->verbs->reg_mr(p->link->pd, p->buf, sizeof(p->buf),
				       IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(p->mr);
	assert_int_equal(rig_host_spawn(p->client, "client", client_main, p),
			 0);
}

static void play_close(struct play *p)
{
	p->link->verbs->dereg_mr(p->mr);
	rig_stage_destroy(p->stage);
}

static enum sim_end run(struct play *p)
{
	struct sim *sim = rig_stage_sim(p->stage);

	return sim_run_until(sim, sim_now_ps(sim) + SIM_S);
}

static uint64_t counter(const struct play *p)
{
	uint64_t v;

	memcpy(&v, p->region->mem, sizeof(v));
	return v;
}

static void test_link(void **state)
{
	uint64_t hash[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct play p;

		play_open(&p, 5, false);
		assert_int_not_equal(run(&p), SIM_END_STUCK);
		assert_int_equal(p.status, IBV_WC_SUCCESS);
		assert_int_equal(p.done, OPS);
		assert_int_equal(counter(&p), OPS);
		hash[i] = sim_trace_hash(rig_stage_sim(p.stage));
		play_close(&p);
	}
	assert_true(hash[0] == hash[1]);
}

static void test_kill_client(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 6, false);
	p.kill_after = 10;
	assert_int_not_equal(run(&p), SIM_END_STUCK);
	assert_int_equal(p.done, 10);
	assert_int_equal(counter(&p), 11);
	assert_int_equal(p.end_ns, 0);
	assert_int_equal(sim_fiber_count(rig_stage_sim(p.stage)), 0);
	play_close(&p);
}

static void test_kill_node(void **state)
{
	struct play p;

	(void)state;
	play_open(&p, 7, false);
	p.kill_after = 10;
	p.kill_node = true;
	assert_int_not_equal(run(&p), SIM_END_STUCK);
	assert_int_equal(p.status, IBV_WC_RETRY_EXC_ERR);
	assert_true(p.end_ns > 0);
	play_close(&p);
}

/* Three round trips of some two microseconds each. */
static void test_hardware(void **state)
{
	struct rig_region *dm;
	struct client_link *link;
	struct play p;

	(void)state;
	play_open(&p, 8, true);
	assert_int_equal(rig_region_create(p.node, 4096, true, &dm), 0);
	assert_int_equal(rig_link_open(p.client, dm, NULL, &link), 0);
	assert_int_equal(link->addr, 0);
	assert_true(link->has_masked_atomics);
	assert_int_not_equal(run(&p), SIM_END_STUCK);
	assert_int_equal(p.done, OPS);
	assert_in_range((p.end_ns - p.start_ns) / OPS, 4500, 9000);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_kill_client),
		cmocka_unit_test(test_kill_node),
		cmocka_unit_test(test_hardware),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
