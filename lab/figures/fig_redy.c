/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of Redy, as the paper describes it: application threads hand requests
 * to I/O threads of their own machine, which batch them into messages; a thread
 * of the memory server executes a batch and answers with one message.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "fig_priv.h"
#include "sim/model.h"

enum {
	BATCH = 32,
	SLOTS = 4, /* batches under way */
};

struct batch {
	uint32_t count; /* 0: free */
	uint32_t place[BATCH];
};

struct fig_redy {
	/* From the application's thread to its I/O thread and back. */
	uint32_t asked[FIG_DEPTH_MAX], asked_count;
	uint32_t done[FIG_DEPTH_MAX], done_count;
	struct batch batch[SLOTS];
	uint32_t next_slot;
};

static struct rig_host *node_host(struct fig *fig)
{
	return fig->rig.node[0].host;
}

/* ---- the server --------------------------------------------------------- */

static void answer(struct fig_thread *t, uint32_t slot, uint32_t count)
{
	struct fig *fig = t->fig;
	const uint8_t *ask = fig_talk_slot(&t->talk, true, slot, true);
	uint8_t *out = fig_talk_slot(&t->talk, true, slot, false);
	uint32_t bytes = fig->cfg.bytes;
	uint64_t record;

	for (uint32_t i = 0; i < count; i++) {
		memcpy(&record, ask + i * sizeof(record), sizeof(record));
		memcpy(out + (size_t)i * bytes,
		       fig->rig.node[0].region->mem + record * bytes, bytes);
	}
	fig_talk_receive(&t->talk, true, slot);
	sim_fiber_sleep_ps(fig->sim, count * offload_costs.redy_server_ps);
	fig_talk_send(&t->talk, true, slot, count * bytes);
	sim_fiber_sleep_ps(fig->sim, model_connectx5.cpu_post_ps);
}

static void server_main(void *arg)
{
	struct fig_thread *t = arg;

	for (;;) {
		struct ibv_wc wc;

		if (ibv_poll_cq(t->talk.far_cq, 1, &wc) != 1)
			client_clock_relax(&node_host(t->fig)->clock);
		else if (wc.opcode == IBV_WC_RECV)
			answer(t, (uint32_t)wc.wr_id,
			       wc.byte_len / (uint32_t)sizeof(uint64_t));
	}
}

/* ---- the I/O thread ----------------------------------------------------- */

/* An I/O thread's own time; it shares cores as the others do. */
static void io_work(struct fig_thread *t, uint64_t ps)
{
	sim_fiber_sleep_ps(t->fig->sim, ps * 100 / t->fig->slow_percent);
}

static bool io_send(struct fig_thread *t)
{
	struct fig_redy *r = t->redy;
	uint32_t slot = r->next_slot;
	struct batch *b = &r->batch[slot];
	uint8_t *out = fig_talk_slot(&t->talk, false, slot, false);
	uint32_t n = u32_min(r->asked_count, BATCH);

	if (b->count || !n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		b->place[i] = r->asked[i];
		memcpy(out + i * sizeof(uint64_t),
		       &t->flight[r->asked[i]].record, sizeof(uint64_t));
	}
	b->count = n;
	r->asked_count -= n;
	memmove(r->asked, r->asked + n, r->asked_count * sizeof(*r->asked));
	r->next_slot = (slot + 1) % SLOTS;
	io_work(t, n * offload_costs.redy_io_ps / 2);
	fig_talk_receive(&t->talk, false, slot);
	fig_talk_send(&t->talk, false, slot, n * (uint32_t)sizeof(uint64_t));
	io_work(t, 2 * model_connectx5.cpu_post_ps);
	return true;
}

static void io_take(struct fig_thread *t, uint32_t slot)
{
	struct fig_redy *r = t->redy;
	struct batch *b = &r->batch[slot];
	const uint8_t *in = fig_talk_slot(&t->talk, false, slot, true);
	uint32_t bytes = t->fig->cfg.bytes;

	io_work(t, model_connectx5.cpu_poll_ps +
			   b->count * offload_costs.redy_io_ps / 2);
	for (uint32_t i = 0; i < b->count; i++) {
		memcpy(fig_buf(t, b->place[i]), in + (size_t)i * bytes, bytes);
		r->done[r->done_count++] = b->place[i];
	}
	b->count = 0;
}

static void io_main(void *arg)
{
	struct fig_thread *t = arg;

	for (;;) {
		bool moved = io_send(t);
		struct ibv_wc wc;

		while (ibv_poll_cq(t->talk.cq, 1, &wc) == 1) {
			if (wc.opcode != IBV_WC_RECV)
				continue;
			io_take(t, (uint32_t)wc.wr_id);
			moved = true;
		}
		if (!moved) /* it spins: looks again soon */
			sim_fiber_sleep_ps(t->fig->sim,
					   offload_costs.redy_hand_ps);
	}
}

/* ---- the application ---------------------------------------------------- */

int fig_redy_open(struct fig_thread *t)
{
	uint32_t bytes = BATCH * u32_max(t->fig->cfg.bytes, 8);
	int err;

	t->redy = calloc(1, sizeof(*t->redy));
	if (!t->redy)
		return -ENOMEM;
	err = fig_talk_open(t->fig, SLOTS, bytes, &t->talk);
	for (uint32_t i = 0; i < SLOTS && !err; i++)
		fig_talk_receive(&t->talk, true, i);
	if (!err)
		err = rig_host_spawn(node_host(t->fig), "server", server_main,
				     t);
	if (!err)
		err = rig_host_spawn(t->fig->host, "io", io_main, t);
	return err;
}

void fig_redy_issue(struct fig_thread *t, uint32_t place)
{
	fig_settle(t);
	t->redy->asked[t->redy->asked_count++] = place;
	fig_comm(t, offload_costs.redy_hand_ps);
}

void fig_redy_look(struct fig_thread *t)
{
	struct fig_redy *r = t->redy;

	fig_settle(t);
	fig_comm(t, offload_costs.ring_look_ps);
	for (uint32_t i = 0; i < r->done_count; i++)
		fig_complete(t, r->done[i], fig_buf(t, r->done[i]));
	r->done_count = 0;
}
