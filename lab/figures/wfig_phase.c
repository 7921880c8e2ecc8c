/* SPDX-License-Identifier: Apache-2.0 */
/* The stage of a run: a client, memory nodes with their kind of hardware. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/model.h"
#include "wfig_costs.h"
#include "wfig_priv.h"

enum {
	WARM_OPS = 3000, /* of the cache */
	CQ_DEPTH = 2 * WFIG_THREADS_MAX,
};

/* ---- hosts -------------------------------------------------------------- */

bool wfig_has_walker(enum wfig_system system)
{
	return system != WFIG_READS && system != WFIG_CACHE;
}

bool wfig_is_accelerator(enum wfig_system system)
{
	return system == WFIG_WALK || system == WFIG_SWITCH;
}

/* A board with its own network stack and memory, no bus between. */
static struct model_params accelerator_params(void)
{
	struct model_params p = model_connectx5;

	p.nic_rx_ps = p.nic_tx_ps = wfig_costs.net_ps;
	p.pcie_read_ps = p.pcie_post_ps = 0;
	p.pcie_ps_per_byte = wfig_costs.bus_ps_per_byte;
	p.pcie_tlp_bytes = 0;
	p.qp_host_ps = p.line_read_host_ps = 0;
	p.read_engine_ps = p.message_ps;
	p.stall_every_ps = 0;
	return p;
}

static struct wfig_pipes_config accelerator(const struct wfig_config *c,
					    uint32_t pad_bytes)
{
	const struct wfig_costs *k = &wfig_costs;
	uint32_t logic = wfig_or_else(c->logic, k->logic_pipes);
	uint32_t memory = wfig_or_else(c->memory, k->memory_pipes);

	return (struct wfig_pipes_config){
		/* One for each pipeline, as published. */
		.spaces = c->logic ? logic + memory : (uint32_t)k->spaces,
		.memory = memory,
		.logic = logic,
		.sched_ps = k->sched_ps,
		.load_ps = k->load_ps,
		.hold_ps = c->is_serial ? k->load_ps
					: k->load_bytes * k->pipe_ps_per_byte,
		.bus_ps = k->load_bytes * k->bus_ps_per_byte,
		.step_ps = c->step_ps ? c->step_ps : k->step_ps,
		/* Out and in again, and twice the packet on a link. */
		.hop_ps = 2 * k->net_ps + 2 * model_connectx5.cable_ps +
			  model_connectx5.switch_ps +
			  2 * (pad_bytes + AQDV_WALK_OVERHEAD_BYTES) *
				  model_connectx5.link_ps_per_byte,
	};
}

static struct wfig_pipes_config server(uint64_t cores, uint64_t request_ps,
				       uint64_t dram_ps, uint64_t step_ps)
{
	const uint32_t n = (uint32_t)cores;

	return (struct wfig_pipes_config){
		.spaces = n,
		.memory = n,
		.logic = n,
		.request_ps = request_ps,
		.load_ps = dram_ps,
		.hold_ps = dram_ps,
		.bus_ps = wfig_costs.load_bytes * wfig_costs.bus_ps_per_byte,
		.step_ps = step_ps,
	};
}

static struct wfig_pipes_config pipes_of(const struct wfig_config *c,
					 uint32_t pad_bytes)
{
	const struct wfig_costs *k = &wfig_costs;

	if (c->system == WFIG_RPC)
		return server(k->rpc_cores, k->rpc_ps, k->dram_ps,
			      k->cpu_step_ps);
	if (c->system == WFIG_RPC_ARM)
		return server(k->arm_cores, k->arm_rpc_ps, k->arm_dram_ps,
			      k->arm_step_ps);
	return accelerator(c, pad_bytes);
}

static int add_node(struct wfig_phase *p, uint32_t i)
{
	const struct wfig_data *d = p->data;
	const struct model_params board = accelerator_params();
	const struct aqdv_place place = {.space = 1,
					 .index = i,
					 .count = d->cfg.nodes,
					 .shift = d->shift};
	const struct wfig_pipes_config pipes =
		pipes_of(p->cfg, d->program->image.pad_bytes);
	int err = rig_host_add_model(
		p->stage, "node",
		wfig_is_accelerator(p->cfg->system) ? &board : &model_connectx5,
		&p->node[i]);

	if (!err)
		err = rig_region_create(p->node[i], d->piece_bytes, false,
					&p->region[i]);
	if (err)
		return err;
	memcpy(p->region[i]->mem, d->piece[i], d->piece_bytes);
	if (!wfig_has_walker(p->cfg->system))
		return 0;
	err = aqdv_set_place(p->region[i]->mr, &place);
	if (!err)
		err = wfig_pipes_open(p->node[i], d, i, &pipes, &p->pipes[i]);
	if (!err)
		wfig_pipes_memory(p->pipes[i], p->region[i]->mem);
	return err;
}

static int add_client(struct wfig_phase *p, uint32_t i)
{
	const struct rig_pair_options options = {
		.cq = p->cq,
		.rd_atomic = 1,
		.send_depth = 2, /* a node, and the walk that links it */
		.walk_pad = wfig_has_walker(p->cfg->system)
				    ? p->data->counted->image.pad_bytes
				    : 0};
	struct wfig_client *c = &p->client[i];
	size_t bytes = WFIG_PAD_MAX + wfig_costs.object_bytes;
	int err = 0;

	c->phase = p;
	c->index = i;
	sim_rand_init(&c->rand, p->cfg->seed, 1000 + i);
	c->buf = calloc(1, bytes);
	if (!c->buf)
		return -ENOMEM;
	c->mr = ibv_reg_mr(p->host->pd, c->buf, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!c->mr)
		return -ENOMEM;
	for (uint32_t n = 0; !err && n < p->data->cfg.nodes; n++)
		err = rig_pair_open(p->host, p->node[n], &options, &c->pair[n]);
	return err;
}

/* ---- a run -------------------------------------------------------------- */

int wfig_phase_open(struct wfig_phase *p)
{
	const struct rig_stage_config stage = {.seed = p->cfg->seed,
					       .hardware = true};
	const uint32_t nodes = p->data->cfg.nodes;
	int err = rig_stage_create(&stage, &p->stage);

	if (err)
		return err;
	p->sim = rig_stage_sim(p->stage);
	err = rig_host_add(p->stage, "client", &p->host);
	for (uint32_t i = 0; !err && i < nodes; i++)
		err = add_node(p, i);
	for (uint32_t i = 0; !err && p->cfg->system == WFIG_SWITCH && i < nodes;
	     i++)
		wfig_pipes_join(p->pipes[i], p->pipes, nodes);
	if (!err) {
		p->cq = rig_cq_create(p->host, CQ_DEPTH);
		err = p->cq ? 0 : -ENOMEM;
	}
	for (uint32_t i = 0; !err && i < p->threads; i++)
		err = add_client(p, i);
	if (!err && p->cfg->system == WFIG_CACHE) {
		err = wfig_cache_create(
			p,
			wfig_or_else(p->cfg->cache_ppm, wfig_costs.cache_ppm),
			&p->cache);
		if (!err)
			wfig_cache_warm(p->cache, WARM_OPS, p->cfg->seed);
	}
	return err;
}

void wfig_phase_close(struct wfig_phase *p)
{
	if (p->stage)
		sim_fiber_kill_all(p->sim);
	for (uint32_t i = 0; i < p->threads; i++) {
		struct wfig_client *c = &p->client[i];

		for (uint32_t n = 0; n < WFIG_NODES_MAX; n++)
			if (c->pair[n].near)
				rig_pair_close(&c->pair[n]);
		if (c->mr)
			(void)ibv_dereg_mr(c->mr);
		free(c->buf);
	}
	if (p->cq)
		(void)ibv_destroy_cq(p->cq);
	rig_stage_destroy(p->stage);
	for (uint32_t i = 0; i < WFIG_NODES_MAX; i++)
		wfig_pipes_close(p->pipes[i]);
	wfig_cache_destroy(p->cache);
}

int wfig_phase_spawn(struct wfig_phase *p)
{
	int err = rig_host_spawn(p->host, "poll", wfig_client_poll, p);

	p->left = p->threads;
	for (uint32_t i = 0; !err && i < p->threads; i++)
		err = rig_host_spawn(p->host, "thread", wfig_client_thread,
				     &p->client[i]);
	return err;
}
