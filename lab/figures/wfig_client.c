/* SPDX-License-Identifier: Apache-2.0 */
/* What the client's threads do: requests, one after the other. */
#include <aquifer/aqdv.h>
#include <string.h>

#include "sim/model.h"
#include "wfig_costs.h"
#include "wfig_count.h"
#include "wfig_priv.h"

enum {
	RESULT = AQDV_WALK_RESULT_BYTES,
	ITERATIONS = 256,	/* of one request, as nodes allow by default */
	NODE_AT = WFIG_PAD_MAX, /* of the buffer: a node that is written */
};

void wfig_sleep(struct wfig_client *c, uint64_t ps)
{
	if (ps)
		sim_fiber_sleep_ps(c->phase->sim, ps);
}

/* ---- the network -------------------------------------------------------- */

static bool await(struct wfig_client *c)
{
	c->phase->trips++;
	c->is_waiting = true;
	while (c->is_waiting)
		(void)sim_wait_for(c->phase->sim, &c->wait, UINT64_MAX, false,
				   "its answer"); /* either way: look */
	return !c->failed;
}

bool wfig_read(struct wfig_client *c, uint32_t node, uint64_t local,
	       uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf,
			      .length = bytes,
			      .lkey = c->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = c->index,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = c->phase->region[node]->addr + local,
			    .rkey = c->phase->region[node]->rkey}};
	struct ibv_send_wr *bad;

	return ibv_post_send(c->pair[node].near_qp, &wr, &bad) == 0 && await(c);
}

/* The pad is in the buffer, behind the place of the result. */
static bool walk(struct wfig_client *c, const struct walk_program *program,
		 uint64_t at, uint32_t send_bytes,
		 struct aqdv_walk_result *result)
{
	const struct wfig_data *d = c->phase->data;
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf,
			      .length = RESULT + program->image.pad_bytes,
			      .lkey = c->mr->lkey};
	struct aqdv_walk_wr wr = {.wr_id = c->index,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .at = at,
				  .program = program->image.hash,
				  .iterations = ITERATIONS,
				  .send_bytes = send_bytes};
	struct aqdv_walk_wr *bad;
	uint64_t local;
	uint32_t node = wfig_data_node(d, at, &local);

	wr.rkey = c->phase->region[node]->rkey;
	wfig_sleep(c, wfig_costs.client_ps);
	if (aqdv_post_walk(c->pair[node].near_qp, &wr, &bad) || !await(c))
		return false;
	memcpy(result, c->buf, sizeof(*result));
	return true;
}

/* ---- ways to traverse --------------------------------------------------- */

/* Beside the memory; from node to node by this client. */
static bool go_there(struct wfig_client *c)
{
	struct aqdv_walk_result result = {.at = c->ask.start};
	uint32_t send_bytes = c->ask.send_bytes;

	memcpy(c->buf + RESULT, c->ask.pad, send_bytes);
	do {
		if (!walk(c, c->phase->data->program, result.at, send_bytes,
			  &result))
			return false;
		send_bytes = c->ask.pad_bytes;
	} while (result.status == AQDV_WALK_ELSEWHERE ||
		 result.status == AQDV_WALK_MORE);
	memcpy(c->ask.pad, c->buf + RESULT, c->ask.pad_bytes);
	return result.status == AQDV_WALK_DONE;
}

/* Posts a WRITE of the node; what follows on the queue pair comes after it. */
static bool write_node(struct wfig_client *c, uint64_t local,
		       const struct wfig_chain_node *node)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf + NODE_AT,
			      .length = sizeof(*node),
			      .lkey = c->mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = c->phase->region[0]->addr + local,
			    .rkey = c->phase->region[0]->rkey}};
	struct ibv_send_wr *bad;

	memcpy(c->buf + NODE_AT, node, sizeof(*node));
	return ibv_post_send(c->pair[0].near_qp, &wr, &bad) == 0;
}

/* Adds a node to the chain of the key. One piece: an offset is a place. */
static bool append(struct wfig_client *c, uint64_t key)
{
	struct wfig_phase *p = c->phase;
	const struct wfig_data *d = p->data;
	uint64_t at = d->spare + p->added * wfig_costs.load_bytes;
	struct wfig_chain_node node = {.key = ycsb_key(d->count + p->added)};
	struct aqdv_walk_result result;

	/* Who allocates answers as fast as memory is read. */
	for (uint64_t i = 0;
	     p->cfg->change == WFIG_ALLOCATE && i < wfig_costs.allocate_trips;
	     i++) {
		wfig_sleep(c, wfig_costs.client_ps);
		if (!wfig_read(c, 0, at, sizeof(at)))
			return false;
	}
	p->added++;
	memcpy(c->buf + RESULT, &at, sizeof(at));
	return write_node(c, at, &node) &&
	       walk(c, d->append, wfig_data_chain(d, key), sizeof(at),
		    &result) &&
	       result.status == AQDV_WALK_DONE;
}

/* The bytes of a node, here. */
static uint8_t *bring(struct wfig_client *c, uint64_t at, uint64_t *spent_ps)
{
	const struct wfig_data *d = c->phase->data;
	uint64_t local;
	uint32_t node = wfig_data_node(d, at, &local);

	if (c->phase->cache)
		return wfig_cache_get(c->phase->cache, c, node, local,
				      spent_ps);
	wfig_sleep(c, *spent_ps + wfig_costs.client_ps);
	*spent_ps = 0;
	return wfig_read(c, node, local, (uint32_t)wfig_costs.load_bytes)
		       ? c->buf
		       : NULL;
}

/* The same program, by this client. */
static bool go_here(struct wfig_client *c)
{
	const struct walk_program *program = c->phase->data->counted;
	uint64_t at = c->ask.start, spent_ps = 0;
	enum walk_step step;

	do {
		uint8_t *node = bring(c, at, &spent_ps);
		uint64_t cost = 0;

		if (!node)
			return false;
		step = wfig_count_step(program, node + program->image.load_lo,
				       c->ask.pad, &at, &cost);
		spent_ps += wfig_costs.dram_ps + cost * wfig_costs.cpu_step_ps;
	} while (step == WALK_STEP_NEXT);
	wfig_sleep(c, spent_ps);
	return step == WALK_STEP_DONE;
}

/* The object that a web request found; local bytes are part of its work. */
static bool get_object(struct wfig_client *c)
{
	const struct wfig_data *d = c->phase->data;
	uint64_t local, none = 0, value = c->ask.total;
	uint32_t node = wfig_data_object(d, value, &local);
	uint8_t *bytes;

	if (!c->phase->cache) {
		wfig_sleep(c, wfig_costs.client_ps);
		return wfig_read(c, node, local,
				 (uint32_t)wfig_costs.object_bytes) &&
		       wfig_data_object_is(c->buf, value);
	}
	for (uint64_t at = 0; at < wfig_costs.object_bytes;
	     at += wfig_costs.page_bytes) {
		bytes = wfig_cache_get(c->phase->cache, c, node, local + at,
				       &none);
		if (!bytes || (!at && !wfig_data_object_is(bytes, value)))
			return false;
	}
	return true;
}

/* ---- threads ------------------------------------------------------------ */

static void count(struct wfig_phase *p, uint64_t began, uint64_t traversed)
{
	uint64_t now = sim_now_ps(p->sim);

	if (p->latency_ps)
		p->latency_ps[p->ops] = now - began;
	p->ops++;
	p->traverse_ps += traversed - began;
	p->total_ps += now - began;
}

/* A key, of whose chain all is looked at or which is added to. */
static bool change(struct wfig_client *c)
{
	const struct wfig_phase *p = c->phase;
	uint64_t none = ycsb_key(UINT64_MAX);
	uint64_t key = sim_rand_below(&c->rand, (uint32_t)p->data->count);
	struct aq_walk_find *pad = (void *)c->ask.pad;

	if (p->cfg->change != WFIG_MISS)
		return append(c, key);
	memset(&c->ask, 0, sizeof(c->ask));
	memcpy(pad->key, &none, sizeof(none));
	c->ask.start = wfig_data_chain(p->data, key);
	c->ask.send_bytes = sizeof(*pad) + sizeof(none);
	c->ask.pad_bytes = p->data->program->image.pad_bytes;
	return go_there(c) && !pad->found;
}

static void request(struct wfig_client *c)
{
	struct wfig_phase *p = c->phase;
	enum wfig_system system = p->cfg->system;
	uint64_t began = sim_now_ps(p->sim), traversed;
	bool right;

	if (p->cfg->change) {
		right = change(c);
		traversed = sim_now_ps(p->sim);
	} else {
		wfig_data_ask(p->data, &c->rand, &c->ask);
		right = system == WFIG_READS || system == WFIG_CACHE
				? go_here(c)
				: go_there(c);
		right = right && wfig_data_check(p->data, &c->ask, c->ask.pad);
		traversed = sim_now_ps(p->sim);
		if (right && p->data->cfg.app == WFIG_WEB)
			right = get_object(c);
	}
	wfig_sleep(c, p->work_ps);
	p->wrong += !right;
	count(p, began, traversed);
}

void wfig_client_thread(void *arg)
{
	struct wfig_client *c = arg;
	struct wfig_phase *p = c->phase;

	for (uint32_t i = 0; !p->ops_max || i < p->ops_max; i++)
		request(c);
	if (--p->left == 0)
		sim_stop(p->sim);
}

/* Looks for all threads, since each would have to look at every answer. */
void wfig_client_poll(void *arg)
{
	struct wfig_phase *p = arg;
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(p->cq, 1, &wc);

		if (n == 0) {
			p->host->clock.relax(p->host->clock.ctx);
			continue;
		}
		if (n < 0)
			return;
		struct wfig_client *c = &p->client[wc.wr_id];

		c->failed = wc.status != IBV_WC_SUCCESS;
		c->is_waiting = false;
		sim_wait_notify(p->sim, &c->wait, 0);
	}
}
