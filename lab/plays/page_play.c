/* SPDX-License-Identifier: Apache-2.0 */
/* The play "page": its world, the death of a client, the accounts. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "page_play_priv.h"

enum {
	CQ_DEPTH = 256,
	FRAMES = PP_CLIENTS * PP_PAGES,
	FRAMES_SCARCE = PP_PAGES,
	RECV_DEPTH = 64,
};

#define LIMIT_PS  (200ull * SIM_MS)
#define SETTLE_PS (20ull * SIM_MS)

void pp_fail(struct pp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

/* ---- the world ---------------------------------------------------------- */

static int add_chain(struct pp_client *c, enum page_chain kind)
{
	struct scenario_pair_options o = {
		.cq = c->cq,
		.send_depth = RECV_DEPTH,
		.recv_depth = RECV_DEPTH,
		.max_sge = 2,
	};
	int err = frame_chain_create(c->space, c->node_pd, kind, 0,
				     &c->chain[kind]);

	if (err)
		return err;
	o.far_qp = frame_chain_qp(c->chain[kind]);
	err = scenario_pair_open(c->host, c->p->node, &o, &c->pair[kind]);
	return err ? err : frame_chain_start(c->chain[kind]);
}

static int add_client(struct pp *p, unsigned i)
{
	struct pp_client *c = &p->client[i];
	struct frame_space_options o = {.entries = PP_PAGES, .depth = PP_DEPTH};
	int err = scenario_host_add(p->stage, "client", &c->host);

	c->p = p;
	c->index = i;
	sim_rand_init(&c->rand, p->opt->seed, 100 + i);
	if (!err)
		err = scenario_region_create(c->host,
					     PP_DEPTH * sizeof(struct pp_slot),
					     false, &c->slots);
	if (err)
		return err;
	c->cq = scenario_cq_create(c->host, CQ_DEPTH);
	c->node_pd = ibv_alloc_pd(p->node->context);
	if (!c->cq || !c->node_pd)
		return -ENOMEM;
	o.pd = c->node_pd;
	err = frame_space_create(p->pool, &o, &c->space);
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT && !err; k++)
		err = add_chain(c, k);
	return err;
}

static int make_world(struct pp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed};
	uint64_t frames = p->opt->scarce ? FRAMES_SCARCE : FRAMES;
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 55);
	cfg.link.latency_ps = sim_rand_range(r, 300, 2000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.chain_ps = sim_rand_range(r, 50, 300) * SIM_NS;
	if (p->opt->faults) {
		cfg.link.faults.loss_ppm = sim_rand_below(r, 20000);
		cfg.link.faults.dup_ppm = sim_rand_below(r, 20000);
		cfg.link.faults.reorder_ppm = sim_rand_below(r, 20000);
		cfg.link.faults.reorder_max_ps = 20 * SIM_US;
	}
	err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	sim_net_hide_addresses(scenario_stage_net(p->stage));
	err = frame_pool_create(frames * PP_PAGE_BYTES, PP_PAGE_BYTES,
				&p->pool);
	if (!err)
		err = scenario_host_add(p->stage, "node", &p->node);
	for (unsigned i = 0; i < PP_CLIENTS && !err; i++)
		err = add_client(p, i);
	return err;
}

static int start_clients(struct pp *p)
{
	int err = 0;

	for (unsigned i = 0; i < PP_CLIENTS && !err; i++)
		err = scenario_host_spawn(
			p->client[i].host, "client",
			i == 0 && p->opt->lies ? pp_liar_main : pp_client_main,
			&p->client[i]);
	return err;
}

/* ---- the node's part ---------------------------------------------------- */

/* As after a missing heartbeat. */
static void take_back(struct pp *p, struct pp_client *c)
{
	if (!c->space)
		return;
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
		if (frame_chain_is_broken(c->chain[k]))
			p->res->counts.broken++;
	if (nic_has_chains(sim_host_nic(p->node->sim_host)))
		p->res->counts.cut++;
	frame_space_destroy(c->space);
	c->space = NULL;
	(void)frame_pool_mend(p->pool);
}

static void kill_first(struct pp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	uint64_t now = sim_now_ps(sim);

	(void)sim_run_until(sim, now + p->opt->kill_ns * SIM_NS);
	if (!p->opt->lies)
		scenario_host_kill(p->client[0].host);
	(void)sim_run_until(sim, now + (p->opt->kill_ns + p->opt->notice_ns) *
						 SIM_NS);
	take_back(p, &p->client[0]);
}

/* The others come to their end, or are stopped by an empty queue. */
static void play_on(struct pp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	uint64_t end = sim_now_ps(sim) + LIMIT_PS;
	bool all = false;

	while (!all && sim_now_ps(sim) < end) {
		(void)sim_run_until(sim, sim_now_ps(sim) + SIM_MS);
		(void)frame_pool_mend(p->pool);
		all = true;
		for (unsigned i = 0; i < PP_CLIENTS; i++)
			all = all && (p->client[i].done || !p->client[i].space);
	}
	(void)sim_run_until(sim, sim_now_ps(sim) + SETTLE_PS);
	for (unsigned i = 0; i < PP_CLIENTS && !p->opt->scarce; i++)
		if (p->client[i].space && !p->opt->lies &&
		    (!p->client[i].done || p->client[i].stopped))
			pp_fail(p, "client %u did not finish", i);
}

/* ---- the accounts ------------------------------------------------------- */

static void mark(struct pp *p, uint8_t *seen, uint64_t frame, const char *where)
{
	uint64_t base = 0, i;

	/* Frames stand one behind the other; the lowest is the first. */
	for (base = frame; frame_pool_has(p->pool, base - PP_PAGE_BYTES);)
		base -= PP_PAGE_BYTES;
	i = (frame - base) / PP_PAGE_BYTES;
	if (!frame_pool_has(p->pool, frame))
		pp_fail(p, "%s holds what is no frame", where);
	else if (seen[i]++)
		pp_fail(p, "frame %llu is in two places, one is %s",
			(unsigned long long)i, where);
}

/* Every frame once: first the tables, then the queue, which this empties. */
static void check_accounts(struct pp *p)
{
	uint8_t seen[FRAMES] = {0};
	uint64_t frame;

	for (unsigned i = 0; i < PP_CLIENTS; i++) {
		struct pp_client *c = &p->client[i];

		for (uint32_t k = 0; c->space && k < PP_PAGES; k++) {
			frame = frame_space_find(c->space, k);
			if (frame)
				mark(p, seen, frame, "a table");
			if (!p->opt->lies && !c->stopped && c->done &&
			    !!frame != !!c->version[k])
				pp_fail(p, "client %u: page %u is %s", i, k,
					frame ? "still there" : "gone");
		}
	}
	while ((frame = frame_pool_pop(p->pool)) != 0)
		mark(p, seen, frame, "the queue");
	for (uint64_t i = 0; i < frame_pool_count(p->pool); i++)
		if (!seen[i])
			pp_fail(p, "frame %llu is nowhere",
				(unsigned long long)i);
}

/* What the last client stored must be there, whatever the first one did. */
static void check_contents(struct pp *p)
{
	struct pp_client *c = &p->client[PP_CLIENTS - 1];

	for (uint32_t k = 0; c->space && k < PP_PAGES; k++) {
		const uint8_t *frame =
			(const uint8_t *)(uintptr_t)frame_space_find(c->space,
								     k);

		if (frame && c->version[k] && !c->stopped &&
		    !pp_page_is(c, k, frame))
			pp_fail(p, "page %u was changed by somebody else", k);
	}
}

static void finish(struct pp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	struct page_play_counts *n = &p->res->counts;

	n->steps = sim_host_counter(p->node->sim_host, NIC_C_chain_steps);
	n->lost = sim_net_stats(scenario_stage_net(p->stage))->lost;
	n->virtual_us = sim_now_ns(sim) / 1000;
}

static void close_world(struct pp *p)
{
	for (unsigned i = 0; i < PP_CLIENTS; i++) {
		struct pp_client *c = &p->client[i];

		take_back(p, c);
		for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
			if (c->pair[k].near_qp) {
				c->pair[k].far_qp = NULL;
				scenario_pair_close(&c->pair[k]);
			}
		if (c->cq)
			(void)ibv_destroy_cq(c->cq);
		if (c->node_pd)
			(void)ibv_dealloc_pd(c->node_pd);
	}
	if (p->stage)
		scenario_stage_destroy(p->stage);
	if (p->pool)
		frame_pool_destroy(p->pool);
}

int page_play_run(const struct page_play_options *opt,
		  struct page_play_result *res)
{
	struct pp *p = calloc(1, sizeof(*p));
	int err;

	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->opt = opt;
	p->res = res;
	err = make_world(p);
	if (!err)
		err = start_clients(p);
	if (!err) {
		if (opt->kill_ns)
			kill_first(p);
		play_on(p);
		/* A client that is stopped leaves chains in the middle. */
		for (unsigned i = 0; i < PP_CLIENTS; i++)
			if (p->client[i].stopped || !p->client[i].done ||
			    (i == 0 && opt->lies))
				take_back(p, &p->client[i]);
		check_contents(p);
		check_accounts(p);
		finish(p);
	}
	close_world(p);
	free(p);
	return err;
}
