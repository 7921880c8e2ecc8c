/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Congestion: several queue pairs send through one bottleneck. It must stay
 * busy, and they must share it, whether the switch marks frames, only loses
 * them, or some are lost at random; also when some come later than others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fiber.h"
#include "sim/rack.h"
#include "verbs/verbs.h"

enum {
	FLOWS = 4,
	DEPTH = 8,
	MESSAGE = 16 << 10,
	MEM = DEPTH * MESSAGE,
};

#define LINK_BITS UINT64_C(10000000000)
#define WARM_PS	  (40 * SIM_MS)
#define END_PS	  (160 * SIM_MS)
#define ACCESS	  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct flow {
	struct world *w;
	struct sim_host *from;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct ibv_qp *far; /* the server's end */
	uint8_t *mem;
	uint64_t start_ps;
	uint64_t bytes; /* done after the warm-up */
};

struct world {
	struct sim *sim;
	struct sim_rack *rack;
	unsigned host_count;
	struct sim_host *host[FLOWS + 1]; /* 0: the server */
	struct ibv_context *ctx;	  /* the server's */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct flow flow[FLOWS];
	uint64_t start_ps;
	bool over;
};

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
					.sq_sig_all = 1,
					.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = DEPTH,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void join(struct ibv_qp *qp, struct ibv_context *to, uint32_t qpn)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = ACCESS};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qpn,
				  .max_dest_rd_atomic = 1,
				  .min_rnr_timer = 5,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .max_rd_atomic = 1};

	assert_int_equal(ibv_query_gid(to, 1, 0, &rtr.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(qp, &init,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(ibv_modify_qp(qp, &rtr,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	assert_int_equal(
		ibv_modify_qp(qp, &rts,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void post(struct flow *f)
{
	struct ibv_sge sge = {.addr = (uintptr_t)f->mem,
			      .length = MESSAGE,
			      .lkey = f->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE},
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)f->w->mem;
	wr.wr.rdma.rkey = f->w->mr->rkey;
	assert_int_equal(ibv_post_send(f->qp, &wr, &bad), 0);
}

/* Writes as fast as it is let, until the world is over. */
static void stream(void *arg)
{
	struct flow *f = arg;
	struct sim *sim = f->w->sim;
	unsigned out = 0;
	struct ibv_wc wc;

	if (f->start_ps)
		sim_fiber_sleep_ps(sim, f->start_ps);
	for (;;) {
		while (out < DEPTH && !f->w->over) {
			post(f);
			out++;
		}
		if (!out)
			break;
		if (ibv_poll_cq(f->cq, 1, &wc) == 0) {
			env_relax(sim_host_env(f->from));
			continue;
		}
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		out--;
		if (!f->w->over && sim_now_ps(sim) > f->w->start_ps + WARM_PS)
			f->bytes += MESSAGE;
	}
}

static void flow_open(struct world *w, struct flow *f, struct ibv_device *dev)
{
	f->w = w;
	f->ctx = ibv_open_device(dev);
	assert_non_null(f->ctx);
	f->pd = ibv_alloc_pd(f->ctx);
	f->cq = ibv_create_cq(f->ctx, DEPTH, NULL, NULL, 0);
	f->mem = calloc(1, MEM);
	f->mr = ibv_reg_mr(f->pd, f->mem, MEM, ACCESS);
	assert_true(f->pd && f->cq && f->mem && f->mr);
	f->qp = make_qp(f->pd, f->cq);
	f->far = make_qp(w->pd, w->cq);
	join(f->qp, w->ctx, f->far->qp_num);
	join(f->far, f->ctx, f->qp->qp_num);
}

/* With `together`, all queue pairs are of one host. */
static void world_open(struct world *w, const struct sim_link *link,
		       bool together)
{
	struct sim_host_config cfg = {.link = *link};
	struct ibv_device **list;

	memset(w, 0, sizeof(*w));
	assert_int_equal(sim_create(1, &w->sim), 0);
	assert_int_equal(sim_rack_create(w->sim, &w->rack), 0);
	w->host_count = together ? 2 : FLOWS + 1;
	for (unsigned i = 0; i < w->host_count; i++)
		assert_int_equal(sim_host_add(w->rack, &cfg, &w->host[i]), 0);
	verbs_set_provider(sim_rack_provider(w->rack));
	list = ibv_get_device_list(NULL);
	w->ctx = ibv_open_device(list[0]);
	w->pd = ibv_alloc_pd(w->ctx);
	w->cq = ibv_create_cq(w->ctx, 16, NULL, NULL, 0);
	w->mem = calloc(1, MESSAGE);
	w->mr = ibv_reg_mr(w->pd, w->mem, MESSAGE, ACCESS);
	assert_true(w->pd && w->cq && w->mem && w->mr);
	for (unsigned i = 0; i < FLOWS; i++) {
		unsigned from = together ? 1 : i + 1;

		w->flow[i].from = w->host[from];
		flow_open(w, &w->flow[i], list[from]);
	}
	ibv_free_device_list(list);
}

static void world_close(struct world *w)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow *f = &w->flow[i];

		assert_int_equal(ibv_destroy_qp(f->qp), 0);
		assert_int_equal(ibv_destroy_qp(f->far), 0);
		assert_int_equal(ibv_destroy_cq(f->cq), 0);
		assert_int_equal(ibv_dereg_mr(f->mr), 0);
		assert_int_equal(ibv_dealloc_pd(f->pd), 0);
		assert_int_equal(ibv_close_device(f->ctx), 0);
		free(f->mem);
	}
	assert_int_equal(ibv_destroy_cq(w->cq), 0);
	assert_int_equal(ibv_dereg_mr(w->mr), 0);
	assert_int_equal(ibv_dealloc_pd(w->pd), 0);
	assert_int_equal(ibv_close_device(w->ctx), 0);
	free(w->mem);
	verbs_set_provider(NULL);
	sim_rack_destroy(w->rack);
	sim_destroy(w->sim);
}

/* Jain's index: 1 when all have the same, 1/n when one has everything. */
static double fairness(const struct world *w)
{
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		double v = (double)w->flow[i].bytes;

		sum += v;
		squares += v * v;
	}
	return sum * sum / (FLOWS * squares);
}

/* The part of the bottleneck that carried payload. */
static double goodput(const struct world *w)
{
	double bytes = 0;

	for (unsigned i = 0; i < FLOWS; i++)
		bytes += (double)w->flow[i].bytes;
	return bytes * 8 /
	       ((double)LINK_BITS * (double)(END_PS - WARM_PS) / 1e12);
}

static void run(const char *name, const struct sim_link *link, bool together,
		uint64_t stagger_ps, double share_min, double fair_min)
{
	static struct world w;
	const struct sim_net_stats *st;

	world_open(&w, link, together);
	w.start_ps = sim_now_ps(w.sim);
	for (unsigned i = 0; i < FLOWS; i++) {
		w.flow[i].start_ps = i * stagger_ps;
		assert_int_equal(
			sim_fiber_spawn(w.sim, "stream", stream, &w.flow[i]),
			0);
	}
	(void)sim_run_until(w.sim, w.start_ps + END_PS);
	w.over = true;
	assert_int_equal(sim_run_until(w.sim, UINT64_MAX), SIM_END_EMPTY);
	st = sim_net_stats(sim_rack_net(w.rack));
	print_message("%-22s goodput %.3f, fairness %.3f; %llu marked, %llu "
		      "lost in the switch\n",
		      name, goodput(&w), fairness(&w),
		      (unsigned long long)st->marked,
		      (unsigned long long)st->switch_full);
	assert_true(goodput(&w) >= share_min);
	assert_true(fairness(&w) >= fair_min);
	world_close(&w);
}

static const struct sim_link marking = {.latency_ps = 5 * SIM_US,
					.bits_per_s = LINK_BITS,
					.queue_frames = 64,
					.switch_queue_bytes = 200 << 10,
					.switch_mark_bytes = 40 << 10};

static void test_marks(void **state)
{
	run("marks", &marking, false, 0, 0.7, 0.9);
	/* Here the host's own queue is the bottleneck. The first queue pair in
	 * the NIC's list once took all of it. */
	run("marks, one host", &marking, true, 0, 0.7, 0.9);
}

static void test_latecomers(void **state)
{
	run("marks, latecomers", &marking, false, 10 * SIM_MS, 0.7, 0.9);
}

/* A switch that says nothing, has a short queue and loses what does not fit:
 * without marks, rare loss is not taken for congestion (congestion.c), and
 * each loss costs a window. Half of the wire is what that leaves. */
static void test_overflow(void **state)
{
	struct sim_link link = marking;

	link.switch_mark_bytes = 0;
	run("overflow", &link, false, 0, 0.4, 0.7);
}

static void test_random_loss(void **state)
{
	struct sim_link link = marking;

	link.faults.loss_ppm = 10000;
	run("marks, 1 % loss", &link, false, 0, 0.4, 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_latecomers),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_random_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
