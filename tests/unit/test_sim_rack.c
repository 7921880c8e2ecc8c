/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated hosts as verbs devices: programs that wait in fibers or outside,
 * on a CQ or on memory; a host that crashes; a model that delays frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fiber.h"
#include "sim/rack.h"
#include "verbs/verbs.h"

enum {
	BYTES = 10000,
};

#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

struct side {
	struct sim_host *host;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	uint8_t mem[BYTES];
};

struct world {
	struct sim *sim;
	struct sim_rack *rack;
	struct side side[2];
	bool done;
	enum ibv_wc_status status;
};

static uint64_t model_delay(void *ctx, struct sim_host *host,
			    const uint8_t *frame, size_t len_bytes)
{
	struct world *w = ctx;

	return sim_now_ps(w->sim) + 10 * SIM_US;
}

static void side_open(struct world *w, unsigned i, struct ibv_device *dev)
{
	struct side *s = &w->side[i];
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = 4,
						.max_recv_wr = 4,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	s->ctx = ibv_open_device(dev);
	assert_non_null(s->ctx);
	s->pd = ibv_alloc_pd(s->ctx);
	s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
	s->mr = ibv_reg_mr(s->pd, s->mem, BYTES, ACCESS);
	assert_true(s->pd && s->cq && s->mr);
	attr.send_cq = s->cq;
	attr.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &attr);
	assert_non_null(s->qp);
	assert_int_equal(ibv_query_gid(s->ctx, 1, 0, &s->gid), 0);
}

static void side_connect(struct side *s, const struct side *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ACCESS};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 5,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 10,
				  .retry_cnt = 3,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	assert_int_equal(ibv_modify_qp(s->qp, &init,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_modify_qp(s->qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(
		ibv_modify_qp(s->qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void world_open(struct world *w, bool with_model)
{
	struct sim_host_config cfg = {.link = {.latency_ps = SIM_US,
					       .bits_per_s = 100000000000ull,
					       .queue_frames = 2}};
	struct ibv_device **list;
	int count;

	memset(w, 0, sizeof(*w));
	assert_int_equal(sim_create(1, &w->sim), 0);
	assert_int_equal(sim_rack_create(w->sim, &w->rack), 0);
	if (with_model)
		cfg.model = (struct sim_host_model){.ctx = w,
						    .rx_ready_ps = model_delay,
						    .tx_ready_ps = model_delay};
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(sim_host_add(w->rack, &cfg, &w->side[i].host),
				 0);
	verbs_set_provider(sim_rack_provider(w->rack));
	list = ibv_get_device_list(&count);
	assert_int_equal(count, 2);
	assert_string_equal(ibv_get_device_name(list[1]), "sim1");
	for (unsigned i = 0; i < 2; i++)
		side_open(w, i, list[i]);
	ibv_free_device_list(list);
	side_connect(&w->side[0], &w->side[1]);
	side_connect(&w->side[1], &w->side[0]);
}

static void world_close(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &w->side[i];

		assert_int_equal(ibv_destroy_qp(s->qp), 0);
		assert_int_equal(ibv_destroy_cq(s->cq), 0);
		assert_int_equal(ibv_dereg_mr(s->mr), 0);
		assert_int_equal(ibv_dealloc_pd(s->pd), 0);
		assert_int_equal(ibv_close_device(s->ctx), 0);
	}
	verbs_set_provider(NULL);
	sim_rack_destroy(w->rack);
	sim_destroy(w->sim);
}

static enum ibv_wc_status transfer(struct world *w, enum ibv_wr_opcode opcode)
{
	struct side *a = &w->side[0], *b = &w->side[1];
	struct ibv_sge sge = {.addr = (uintptr_t)a->mem,
			      .length = BYTES,
			      .lkey = a->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode},
			   *bad;
	struct ibv_wc wc;
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)b->mem;
	wr.wr.rdma.rkey = b->mr->rkey;
	assert_int_equal(ibv_post_send(a->qp, &wr, &bad), 0);
	while ((n = ibv_poll_cq(a->cq, 1, &wc)) == 0)
		env_relax(sim_host_env(a->host));
	assert_int_equal(n, 1);
	return wc.status;
}

static void test_without_fibers(void **state)
{
	static struct world w;

	world_open(&w, false);
	memset(w.side[1].mem, 7, BYTES);
	assert_int_equal(transfer(&w, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	assert_memory_equal(w.side[0].mem, w.side[1].mem, BYTES);
	assert_true(sim_net_stats(sim_rack_net(w.rack))->queue_full > 0);
	world_close(&w);
}

static void writer(void *arg)
{
	struct world *w = arg;

	sim_fiber_sleep_ns(w->sim, 5000000);
	w->status = transfer(w, IBV_WR_RDMA_WRITE);
}

/* Waits on memory that a peer writes; never calls verbs. */
static void watcher(void *arg)
{
	struct world *w = arg;

	while (w->side[1].mem[BYTES - 1] != 9)
		env_relax(sim_host_env(w->side[1].host));
	w->done = true;
}

static void test_memory_poller(void **state)
{
	static struct world w;

	world_open(&w, false);
	memset(w.side[0].mem, 9, BYTES);
	assert_int_equal(sim_fiber_spawn(w.sim, "watcher", watcher, &w), 0);
	assert_int_equal(sim_fiber_spawn(w.sim, "writer", writer, &w), 0);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_true(w.done);
	assert_int_equal(w.status, IBV_WC_SUCCESS);
	/* Five milliseconds of waiting cost few events. */
	assert_true(sim_event_count(w.sim) < 200);
	world_close(&w);
}

static void test_stuck(void **state)
{
	static struct world w;
	char report[200];

	world_open(&w, false);
	assert_int_equal(sim_fiber_spawn(w.sim, "watcher", watcher, &w), 0);
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_STUCK);
	sim_fiber_report(w.sim, report, sizeof(report));
	assert_non_null(strstr(report, "watcher waits for its NIC"));
	world_close(&w);
}

static void test_crash(void **state)
{
	static struct world w;

	world_open(&w, false);
	sim_host_crash(w.side[1].host);
	assert_int_equal(transfer(&w, IBV_WR_RDMA_READ), IBV_WC_RETRY_EXC_ERR);
	assert_true(sim_host_counter(w.side[0].host, NIC_C_timeouts) >= 4);
	world_close(&w);
}

static void test_path_down(void **state)
{
	static struct world w;
	uint64_t start_ps;

	world_open(&w, false);
	start_ps = sim_now_ps(w.sim);
	sim_host_path_down(w.side[0].host, w.side[1].host);
	assert_int_equal(transfer(&w, IBV_WR_RDMA_READ), IBV_WC_RETRY_EXC_ERR);
	/* After the timer and its retries, not for ever. */
	assert_true(sim_now_ps(w.sim) - start_ps < 10000 * SIM_MS);
	world_close(&w);
}

static void test_model_delays(void **state)
{
	static struct world w;
	uint64_t start_ps;

	world_open(&w, true);
	start_ps = sim_now_ps(w.sim);
	assert_int_equal(transfer(&w, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	/* Request and acknowledgement, sent and received: 10 us each. */
	assert_true(sim_now_ps(w.sim) - start_ps > 40 * SIM_US);
	assert_true(sim_now_ps(w.sim) - start_ps < 200 * SIM_US);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_fibers),
		cmocka_unit_test(test_memory_poller),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_path_down),
		cmocka_unit_test(test_model_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
