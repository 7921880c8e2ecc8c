/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between application and server; the two-sided way to read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "fig_priv.h"
#include "sim/model.h"

/* ---- talking ------------------------------------------------------------ */

int fig_talk_open(struct fig *fig, uint32_t slots, uint32_t slot_bytes,
		  struct fig_talk *k)
{
	struct rig_host *near = fig->host, *far = fig->rig.node[0].host;
	size_t bytes = align_up(2ull * slots * slot_bytes, 4096);
	struct rig_pair_options o = {.send_depth = 2 * slots,
				     .recv_depth = 2 * slots};

	k->slots = slots;
	k->slot_bytes = slot_bytes;
	k->cq = rig_cq_create(near, 4 * slots);
	k->far_cq = rig_cq_create(far, 4 * slots);
	k->mem = aligned_alloc(4096, bytes);
	k->far_mem = aligned_alloc(4096, bytes);
	if (!k->cq || !k->far_cq || !k->mem || !k->far_mem)
		return -ENOMEM;
	memset(k->mem, 0, bytes);
	memset(k->far_mem, 0, bytes);
	k->mr = ibv_reg_mr(near->pd, k->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	k->far_mr =
		ibv_reg_mr(far->pd, k->far_mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!k->mr || !k->far_mr)
		return -ENOMEM;
	o.cq = k->cq;
	o.far_cq = k->far_cq;
	return rig_pair_open(near, far, &o, &k->pair);
}

void fig_talk_close(struct fig_talk *k)
{
	rig_pair_close(&k->pair);
	if (k->mr)
		(void)ibv_dereg_mr(k->mr);
	if (k->far_mr)
		(void)ibv_dereg_mr(k->far_mr);
	if (k->cq)
		(void)ibv_destroy_cq(k->cq);
	if (k->far_cq)
		(void)ibv_destroy_cq(k->far_cq);
	free(k->mem);
	free(k->far_mem);
}

void fig_talk_send(struct fig_talk *k, bool far, uint32_t slot,
		   uint32_t len_bytes)
{
	struct ibv_sge sge = {(uintptr_t)fig_talk_slot(k, far, slot, false),
			      len_bytes, (far ? k->far_mr : k->mr)->lkey};
	/* Unsignalled ones would fill the queue for ever. */
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	ASSERT(ibv_post_send(far ? k->pair.far_qp : k->pair.near_qp, &wr,
			     &bad) == 0);
}

void fig_talk_receive(struct fig_talk *k, bool far, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)fig_talk_slot(k, far, slot, true),
			      k->slot_bytes, (far ? k->far_mr : k->mr)->lkey};
	struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;

	ASSERT(ibv_post_recv(far ? k->pair.far_qp : k->pair.near_qp, &wr,
			     &bad) == 0);
}

/* ---- one request, one answer -------------------------------------------- */

/* A message over TCP costs each end its part of the stack. */
static uint64_t stack_ps(const struct fig *fig)
{
	return fig->cfg.device == FIG_BLOCKING ? offload_costs.tcp_message_ps
					       : 0;
}

static void ask_server(void *arg)
{
	struct fig_thread *t = arg;
	struct fig *fig = t->fig;
	struct fig_talk *k = &t->talk;
	struct rig_region *r = fig->rig.node[0].region;

	for (;;) {
		struct ibv_wc wc;
		uint64_t record;

		if (ibv_poll_cq(k->far_cq, 1, &wc) != 1) {
			client_clock_relax(&fig->rig.node[0].host->clock);
			continue;
		}
		if (wc.opcode != IBV_WC_RECV)
			continue;
		memcpy(&record, fig_talk_slot(k, true, 0, true),
		       sizeof(record));
		fig_talk_receive(k, true, 0);
		sim_fiber_sleep_ps(fig->sim,
				   offload_costs.server_ps + 2 * stack_ps(fig));
		memcpy(fig_talk_slot(k, true, 0, false),
		       r->mem + record * fig->cfg.bytes, fig->cfg.bytes);
		fig_talk_send(k, true, 0, fig->cfg.bytes);
		sim_fiber_sleep_ps(fig->sim, model_connectx5.cpu_post_ps);
	}
}

int fig_ask_open(struct fig_thread *t)
{
	int err = fig_talk_open(t->fig, 1, u32_max(t->fig->cfg.bytes, 8),
				&t->talk);

	if (err)
		return err;
	fig_talk_receive(&t->talk, true, 0);
	return rig_host_spawn(t->fig->rig.node[0].host, "server", ask_server,
			      t);
}

void fig_ask_issue(struct fig_thread *t, uint32_t place)
{
	struct fig_talk *k = &t->talk;
	bool answered = false;

	memcpy(fig_talk_slot(k, false, 0, false), &t->flight[place].record,
	       sizeof(uint64_t));
	fig_settle(t);
	fig_talk_receive(k, false, 0);
	fig_talk_send(k, false, 0, sizeof(uint64_t));
	fig_comm(t, 2 * model_connectx5.cpu_post_ps + stack_ps(t->fig));
	while (!answered) {
		struct ibv_wc wc;

		fig_settle(t);
		while (ibv_poll_cq(k->cq, 1, &wc) == 1) {
			fig_comm(t, model_connectx5.cpu_poll_ps);
			answered |= wc.opcode == IBV_WC_RECV;
		}
		if (!answered)
			fig_wait(t);
	}
	if (t->fig->cfg.device == FIG_BLOCKING)
		fig_comm(t, stack_ps(t->fig) + offload_costs.thread_switch_ps);
	fig_complete(t, place, fig_talk_slot(k, false, 0, true));
}
