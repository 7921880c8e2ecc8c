/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped NIC code on simulated hosts with the cost model: closed-loop
 * clients must reach the rate that the model alone predicts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "figures/model_drive.h"
#include "sim/fiber.h"
#include "sim/model_host.h"

enum {
	QPS_MAX = 64,
	DEPTH_MAX = 16,
	LINES = 1024,
	BUFFER_BYTES = LINES * 64,
	SPAN_US = 100,
};

struct client {
	struct world *w;
	struct nic_cq *cq;
	struct nic_qp *qp;
	uint64_t done;
	uint64_t rng;
};

struct end {
	struct model_host *model;
	struct sim_host *host;
	struct nic_host *nh;
	struct nic_pd *pd;
	struct nic_mr *mr;
	struct nic_dm *dm;
	struct nic_cq *cq; /* of the server's queue pairs: never used */
	struct nic_qp *qp[QPS_MAX];
	uint8_t *memory;
	struct env_addr addr;
};

struct world {
	struct sim *sim;
	struct sim_rack *rack;
	struct end a, b; /* clients, memory */
	struct client clients[QPS_MAX];
	enum ibv_wr_opcode opcode;
	uint32_t qps, depth, lines, bytes;
	uint64_t start_ps, stop_ps;
	bool in_device;
};

static void end_open(struct world *w, struct end *e, unsigned index)
{
	const struct nic_provider *p = sim_rack_provider(w->rack);
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct nic_mr_attr attr = {.length = BUFFER_BYTES, .access = access};

	e->memory = aligned_alloc(4096, BUFFER_BYTES);
	assert_non_null(e->memory);
	memset(e->memory, 0, BUFFER_BYTES);
	assert_int_equal(p->open(p->ctx, index, NULL, &e->nh), 0);
	e->addr = nic_get_config(e->nh->nic)->gids[0];
	assert_int_equal(nic_pd_create(e->nh->nic, &e->pd), 0);
	if (w->in_device && e == &w->b) {
		assert_int_equal(
			nic_dm_alloc(e->nh->nic, BUFFER_BYTES, 12, &e->dm), 0);
		assert_int_equal(nic_mr_reg_dm(e->pd, e->dm, 0, BUFFER_BYTES,
					       access | IBV_ACCESS_ZERO_BASED,
					       &e->mr),
				 0);
		assert_int_equal(sim_model_host_add_device_key(
					 e->model, nic_mr_key(e->mr)),
				 0);
	} else {
		attr.addr = e->memory;
		attr.iova = (uintptr_t)e->memory;
		assert_int_equal(nic_mr_reg(e->pd, &attr, &e->mr), 0);
	}
	assert_int_equal(nic_cq_create(e->nh->nic, 16, NULL, &e->cq), 0);
}

static void host_make(struct world *w, struct end *e, uint64_t seed)
{
	struct sim_host_config cfg = {0};

	assert_int_equal(sim_model_host_create(w->sim, &model_connectx5, seed,
					       &e->model),
			 0);
	sim_model_host_config(e->model, &cfg);
	assert_int_equal(sim_host_add(w->rack, &cfg, &e->host), 0);
}

static void qp_connect(struct nic_qp *qp, uint32_t peer_qpn,
		       const struct env_addr *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_ATOMIC};

	assert_int_equal(nic_qp_modify(qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_4096;
	attr.dest_qp_num = peer_qpn;
	attr.rq_psn = 7;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.hop_limit = 64;
	memcpy(attr.ah_attr.grh.dgid.raw, peer->ip, 16);
	assert_int_equal(nic_qp_modify(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 7;
	attr.timeout = 14;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 16;
	assert_int_equal(
		nic_qp_modify(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static void pair_make(struct world *w, uint32_t i)
{
	struct client *c = &w->clients[i];
	struct nic_qp_attr attr = {.type = IBV_QPT_RC,
				   .cap = {.max_send_wr = 2 * DEPTH_MAX,
					   .max_recv_wr = 1,
					   .max_send_sge = 1,
					   .max_recv_sge = 1,
					   .max_inline_data = 64},
				   .sq_sig_all = true};

	c->w = w;
	c->rng = i + 1;
	assert_int_equal(
		nic_cq_create(w->a.nh->nic, 2 * DEPTH_MAX, NULL, &c->cq), 0);
	attr.owner = c;
	attr.send_cq = attr.recv_cq = c->cq;
	assert_int_equal(nic_qp_create(w->a.pd, &attr, &c->qp), 0);
	attr.send_cq = attr.recv_cq = w->b.cq;
	assert_int_equal(nic_qp_create(w->b.pd, &attr, &w->b.qp[i]), 0);
	qp_connect(c->qp, nic_qp_number(w->b.qp[i]), &w->b.addr);
	qp_connect(w->b.qp[i], nic_qp_number(c->qp), &w->a.addr);
}

static void client_post(struct client *c)
{
	struct world *w = c->w;
	uint64_t base = w->in_device ? 0 : (uintptr_t)w->b.memory;
	struct ibv_sge sge = {.addr = (uintptr_t)w->a.memory,
			      .length = w->bytes,
			      .lkey = nic_mr_key(w->a.mr)};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = w->opcode};
	uint64_t addr;

	c->rng = c->rng * 6364136223846793005ull + 1442695040888963407ull;
	addr = base + (c->rng >> 33) % w->lines * 64;
	if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = nic_mr_key(w->b.mr);
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = nic_mr_key(w->b.mr);
	}
	assert_int_equal(nic_qp_post_send(c->qp, &wr, NULL), 0);
	nic_qp_kick(c->qp);
}

static void client_run(void *arg)
{
	struct client *c = arg;
	struct world *w = c->w;
	uint32_t out = 0;

	/* Threads do not start in step. */
	sim_fiber_sleep_ns(w->sim, c->rng * 997 % 3000);
	while (sim_now_ps(w->sim) < w->stop_ps || out) {
		const struct nic_cqe *cqe;

		while (out < w->depth && sim_now_ps(w->sim) < w->stop_ps) {
			client_post(c);
			out++;
		}
		cqe = nic_cq_peek(c->cq);
		if (!cqe) {
			env_relax(w->a.nh->env);
			continue;
		}
		assert_int_equal(cqe->status, IBV_WC_SUCCESS);
		nic_cq_pop(c->cq);
		out--;
		if (sim_now_ps(w->sim) >= w->start_ps &&
		    sim_now_ps(w->sim) < w->stop_ps)
			c->done++;
	}
}

static void end_close(struct end *e)
{
	assert_int_equal(nic_cq_destroy(e->cq), 0);
	assert_int_equal(nic_mr_dereg(e->mr), 0);
	if (e->dm)
		assert_int_equal(nic_dm_free(e->dm), 0);
	assert_int_equal(nic_pd_destroy(e->pd), 0);
	e->nh->ops->close(e->nh);
	free(e->memory);
}

static double fabric_mops(struct world *w)
{
	uint64_t done = 0;

	assert_int_equal(sim_create(1, &w->sim), 0);
	assert_int_equal(sim_rack_create(w->sim, &w->rack), 0);
	sim_net_set_switch_ps(sim_rack_net(w->rack), model_connectx5.switch_ps);
	host_make(w, &w->a, 1);
	host_make(w, &w->b, 2);
	end_open(w, &w->a, 0);
	end_open(w, &w->b, 1);
	w->start_ps = sim_now_ps(w->sim) + SPAN_US * SIM_US;
	w->stop_ps = w->start_ps + SPAN_US * SIM_US;
	for (uint32_t i = 0; i < w->qps; i++) {
		pair_make(w, i);
		assert_int_equal(sim_fiber_spawn(w->sim, "client", client_run,
						 &w->clients[i]),
				 0);
	}
	assert_int_not_equal(sim_run_until(w->sim, w->stop_ps + 10 * SIM_MS),
			     SIM_END_STUCK);
	assert_int_equal(sim_fiber_count(w->sim), 0);
	/* The model kept the frames of each queue pair in order. */
	assert_int_equal(sim_host_counter(w->a.host, NIC_C_drop_multi), 0);
	assert_int_equal(sim_host_counter(w->b.host, NIC_C_drop_psn), 0);
	assert_int_equal(sim_host_counter(w->a.host, NIC_C_retries), 0);
	for (uint32_t i = 0; i < w->qps; i++) {
		done += w->clients[i].done;
		nic_qp_destroy(w->clients[i].qp);
		nic_qp_destroy(w->b.qp[i]);
		assert_int_equal(nic_cq_destroy(w->clients[i].cq), 0);
	}
	end_close(&w->a);
	end_close(&w->b);
	sim_rack_destroy(w->rack);
	sim_model_host_destroy(w->a.model);
	sim_model_host_destroy(w->b.model);
	sim_destroy(w->sim);
	return (double)done / SPAN_US;
}

static const struct scenario {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum model_kind kind;
	uint32_t qps, depth, lines, bytes;
	bool in_device;
	double tolerance;
} scenarios[] = {
	{"READ, 1 x 1", IBV_WR_RDMA_READ, MODEL_READ, 1, 1, LINES, 8, false,
	 0.05},
	{"READ, 24 x 1", IBV_WR_RDMA_READ, MODEL_READ, 24, 1, LINES, 8, false,
	 0.05},
	{"READ, 24 x 4", IBV_WR_RDMA_READ, MODEL_READ, 24, 4, LINES, 8, false,
	 0.05},
	{"READ of 4 KiB, 16 x 2", IBV_WR_RDMA_READ, MODEL_READ, 16, 2, 960,
	 4096, false, 0.05},
	{"READ of 16 KiB, 8 x 4", IBV_WR_RDMA_READ, MODEL_READ, 8, 4, 768,
	 16384, false, 0.05},
	{"WRITE of 16 KiB, 8 x 4", IBV_WR_RDMA_WRITE, MODEL_WRITE, 8, 4, 768,
	 16384, false, 0.05},
	{"WRITE, 24 x 2", IBV_WR_RDMA_WRITE, MODEL_WRITE, 24, 2, LINES, 8,
	 false, 0.05},
	{"CAS on one host address, 8 x 2", IBV_WR_ATOMIC_CMP_AND_SWP, MODEL_CAS,
	 8, 2, 1, 8, false, 0.05},
	{"CAS on one device address, 16 x 4", IBV_WR_ATOMIC_CMP_AND_SWP,
	 MODEL_CAS, 16, 4, 1, 8, true, 0.05},
};

static void test_fabric_reaches_model(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		struct world *w = calloc(1, sizeof(*w));
		struct drive_config config = {.params = &model_connectx5,
					      .kind = s->kind,
					      .bytes = s->bytes,
					      .qps = s->qps,
					      .depth = s->depth,
					      .addrs = s->lines,
					      .in_device = s->in_device,
					      .span_ps = SPAN_US * SIM_US,
					      .seed = 1};
		struct drive_result model = {0};
		double fabric;

		assert_non_null(w);
		w->opcode = s->opcode;
		w->qps = s->qps;
		w->depth = s->depth;
		w->lines = s->lines;
		w->bytes = s->bytes;
		w->in_device = s->in_device;
		assert_int_equal(drive_closed_loop(&config, &model), 0);
		fabric = fabric_mops(w);
		free(w);
		print_message("%-36s model %7.3f Mops, fabric %7.3f, x %.2f\n",
			      s->name, model.mops, fabric, fabric / model.mops);
		assert_true(fabric > model.mops * (1 - s->tolerance));
		assert_true(fabric < model.mops * (1 + s->tolerance));
	}
}

static void test_device_keys(void **state)
{
	struct model_host *mh = NULL;
	struct sim *sim = NULL;

	(void)state;
	assert_int_equal(sim_create(1, &sim), 0);
	assert_int_equal(sim_model_host_create(sim, &model_connectx5, 1, &mh),
			 0);
	for (uint32_t i = 0; i < MODEL_HOST_DEVICE_KEYS_MAX; i++)
		assert_int_equal(sim_model_host_add_device_key(mh, i), 0);
	assert_int_equal(sim_model_host_add_device_key(mh, 99), -ENOSPC);
	sim_model_host_destroy(mh);
	sim_destroy(sim);
}

/* Packets take their turns; one that is to leave room for RDMA takes none that
 * is to come. */
static void test_packet_limit(void **state)
{
	const unsigned count = 100;
	struct model_host *mh = NULL;
	struct sim *sim = NULL;
	uint64_t now_ps, at_ps = 0;

	assert_int_equal(sim_create(1, &sim), 0);
	now_ps = sim_now_ps(sim);
	assert_int_equal(sim_model_host_create(sim, &model_connectx5, 1, &mh),
			 0);
	for (unsigned i = 0; i < count; i++)
		assert_true(sim_model_host_take(mh, true, &at_ps));
	assert_int_equal(at_ps, now_ps);
	sim_model_host_limit(mh, 10000000);
	for (unsigned i = 0; i < count; i++)
		assert_true(sim_model_host_take(mh, false, &at_ps));
	/* The last of a hundred, each of which takes 100 ns. */
	assert_in_range(at_ps - now_ps, 9 * SIM_US, 10 * SIM_US);
	assert_false(sim_model_host_take(mh, true, &at_ps));
	assert_in_range(at_ps - now_ps, 1, SIM_US);
	sim_model_host_destroy(mh);
	sim_destroy(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fabric_reaches_model),
		cmocka_unit_test(test_device_keys),
		cmocka_unit_test(test_packet_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
