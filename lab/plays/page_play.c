/* SPDX-License-Identifier: Apache-2.0 */
/* The play "page": its world, the death of a client, the accounts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "page_accounts.h"
#include "page_play_priv.h"

enum {
	CQ_DEPTH = 256,
	PFRAMES = PP_CLIENTS * PP_PAGES,
	PFRAMES_SCARCE = PP_PAGES,
	RECV_DEPTH = 64,
	KILL_NS_MAX = 100000000,
};

#define LIMIT_PS  (200ull * SIM_MS)
#define SETTLE_PS (20ull * SIM_MS)

/* ---- the world ---------------------------------------------------------- */

static int add_chain(struct pp_client *c, enum page_chain kind)
{
	struct rig_pair_options o = {
		.cq = c->cq,
		.send_depth = RECV_DEPTH,
		.recv_depth = RECV_DEPTH,
		.max_sge = 2,
	};
	int err = pframe_chain_create(c->space, c->node_pd, kind, 0,
				      &c->chain[kind]);

	if (err)
		return err;
	o.far_qp = pframe_chain_qp(c->chain[kind]);
	err = rig_pair_open(c->host, c->p->node, &o, &c->pair[kind]);
	return err ? err : pframe_chain_start(c->chain[kind]);
}

static int add_client(struct pp *p, unsigned i)
{
	struct pp_client *c = &p->client[i];
	struct pframe_space_options o = {.entries = PP_PAGES,
					 .depth = PP_DEPTH};
	int err = rig_host_add(p->run.stage, "client", &c->host);

	c->p = p;
	c->index = i;
	sim_rand_init(&c->rand, p->run.opt->seed, 100 + i);
	if (!err)
		err = rig_region_create(c->host,
					PP_DEPTH * sizeof(struct pp_slot),
					false, &c->slots);
	if (err)
		return err;
	c->cq = rig_cq_create(c->host, CQ_DEPTH);
	c->node_pd = ibv_alloc_pd(p->node->context);
	if (!c->cq || !c->node_pd)
		return -ENOMEM;
	o.pd = c->node_pd;
	err = pframe_space_create(p->pool, &o, &c->space);
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT && !err; k++)
		err = add_chain(c, k);
	return err;
}

static int start_clients(struct pp *p)
{
	int err = 0;

	for (unsigned i = 0; i < PP_CLIENTS && !err; i++)
		err = rig_host_spawn(p->client[i].host, "client",
				     i == 0 && p->opt->lies ? pp_liar_main
							    : pp_client_main,
				     &p->client[i]);
	return err;
}

static int open_world(struct play_run *run)
{
	struct pp *p = (struct pp *)run;
	struct rig_stage_config cfg = {0};
	struct rng *r = &run->rand;
	uint64_t pframes;
	int err;

	p->opt = (const struct page_play_options *)run->opt;
	p->n = (struct page_play_counts *)run->res->count;
	pframes = p->opt->scarce ? PFRAMES_SCARCE : PFRAMES;
	sim_rand_init(r, run->opt->seed, 55);
	cfg.link.latency_ps = sim_rand_range(r, 300, 2000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.chain_ps = sim_rand_range(r, 50, 300) * SIM_NS;
	if (p->opt->faults)
		cfg.link.faults = play_draw_faults(r, 20000, 20000, 20000, 0);
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	/* Messages say addresses, which are others in each run. */
	sim_net_hide_payload(run->net);
	err = pframe_pool_create(pframes * PP_PAGE_BYTES, PP_PAGE_BYTES,
				 &p->pool);
	if (!err)
		err = rig_host_add(run->stage, "node", &p->node);
	for (unsigned i = 0; i < PP_CLIENTS && !err; i++)
		err = add_client(p, i);
	return err ? err : start_clients(p);
}

/* ---- the node's part ---------------------------------------------------- */

/* As after a missing heartbeat. */
static void take_back(struct pp *p, struct pp_client *c)
{
	if (!c->space)
		return;
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
		if (pframe_chain_is_broken(c->chain[k]))
			p->n->broken++;
	if (nic_has_chains(sim_host_nic(p->node->sim_host)))
		p->n->cut++;
	pframe_space_destroy(c->space);
	c->space = NULL;
	(void)pframe_pool_mend(p->pool);
}

static void kill_first(struct pp *p)
{
	struct sim *sim = p->run.sim;
	uint64_t now = sim_now_ps(sim);

	(void)sim_run_until(sim, now + p->opt->kill_ns * SIM_NS);
	if (!p->opt->lies)
		rig_host_kill(p->client[0].host);
	(void)sim_run_until(sim, now + (p->opt->kill_ns + p->opt->notice_ns) *
						 SIM_NS);
	take_back(p, &p->client[0]);
}

/* The others come to their end, or are stopped by an empty queue. */
static void play_on(struct pp *p)
{
	struct sim *sim = p->run.sim;
	uint64_t end = sim_now_ps(sim) + LIMIT_PS;
	bool all = false;

	while (!all && sim_now_ps(sim) < end) {
		(void)sim_run_until(sim, sim_now_ps(sim) + SIM_MS);
		(void)pframe_pool_mend(p->pool);
		all = true;
		for (unsigned i = 0; i < PP_CLIENTS; i++)
			all = all && (p->client[i].done || !p->client[i].space);
	}
	(void)sim_run_until(sim, sim_now_ps(sim) + SETTLE_PS);
	for (unsigned i = 0; i < PP_CLIENTS && !p->opt->scarce; i++)
		if (p->client[i].space && !p->opt->lies &&
		    (!p->client[i].done || p->client[i].stopped))
			play_fail(&p->run, "client %u did not finish", i);
}

/* ---- the accounts ------------------------------------------------------- */

/* Every page frame once, and of each client who came to its end the right
 * ones. */
static void check_accounts(struct pp *p)
{
	struct pframe_space *spaces[PP_CLIENTS];

	for (unsigned i = 0; i < PP_CLIENTS; i++) {
		struct pp_client *c = &p->client[i];

		spaces[i] = c->space;
		for (uint32_t k = 0; c->space && k < PP_PAGES; k++) {
			bool is_there = pframe_space_find(c->space, k) != 0;

			if (!p->opt->lies && !c->stopped && c->done &&
			    is_there != !!c->version[k])
				play_fail(&p->run, "client %u: page %u is %s",
					  i, k,
					  is_there ? "still there" : "gone");
		}
	}
	page_accounts_check(&p->run, p->pool, spaces, PP_CLIENTS, PP_PAGES,
			    PP_PAGE_BYTES);
}

/* What the last client stored must be there, whatever the first one did. */
static void check_contents(struct pp *p)
{
	struct pp_client *c = &p->client[PP_CLIENTS - 1];

	for (uint32_t k = 0; c->space && k < PP_PAGES; k++) {
		const uint8_t *pframe =
			(const uint8_t *)(uintptr_t)pframe_space_find(c->space,
								      k);

		if (pframe && c->version[k] && !c->stopped &&
		    !pp_page_is(c, k, pframe))
			play_fail(&p->run,
				  "page %u was changed by somebody else", k);
	}
}

static void perform(struct play_run *r)
{
	struct pp *p = (struct pp *)r;

	if (p->opt->kill_ns)
		kill_first(p);
	play_on(p);
	/* A client that is stopped leaves chains in the middle. */
	for (unsigned i = 0; i < PP_CLIENTS; i++)
		if (p->client[i].stopped || !p->client[i].done ||
		    (i == 0 && p->opt->lies))
			take_back(p, &p->client[i]);
	check_contents(p);
	check_accounts(p);
	p->n->chain_steps =
		sim_host_counter(p->node->sim_host, NIC_C_chain_steps);
}

static void close_world(struct play_run *r)
{
	struct pp *p = (struct pp *)r;

	for (unsigned i = 0; i < PP_CLIENTS; i++) {
		struct pp_client *c = &p->client[i];

		take_back(p, c);
		for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
			if (c->pair[k].near_qp) {
				c->pair[k].far_qp = NULL;
				rig_pair_close(&c->pair[k]);
			}
		if (c->cq)
			(void)ibv_destroy_cq(c->cq);
		if (c->node_pd)
			(void)ibv_dealloc_pd(c->node_pd);
	}
	/* The pool's memory is the node's until its NIC is gone. */
	rig_stage_destroy(r->stage);
	r->stage = NULL;
	if (p->pool)
		pframe_pool_destroy(p->pool);
}

/* ---- the table ---------------------------------------------------------- */

#define ARGS struct page_play_options

static const struct opt options[] = {
	PLAY_OPTION_FABRIC,
	OPT_FLAG(ARGS, faults, "faults",
		 "the network loses, doubles and reorders"),
	OPT_U64(ARGS, kill_ns, "kill-ns", "N", 1, KILL_NS_MAX,
		"the first client dies then"),
	OPT_U64(ARGS, notice_ns, "notice-ns", "N", 1, KILL_NS_MAX,
		"and the node notices so much later"),
	OPT_FLAG(ARGS, lies, "lies", "the first client sends nonsense"),
	OPT_FLAG(ARGS, scarce, "scarce",
		 "there are fewer page frames than pages are stored"),
	OPT_END,
};

static const enum plant bugs[] = {PLANT_none};
static const struct play_count counts[] = {PAGE_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play page_play = {
	.name = "page",
	.summary = "pages by chains in a node's NIC, clients that die or lie",
	.about = "Two clients store, load and invalidate pages by chains. In "
		 "the end every page frame must be in exactly one place, and "
		 "what a "
		 "client stored must be there.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct page_play_options),
	.world_bytes = sizeof(struct pp),
	.open = open_world,
	.perform = perform,
	.close = close_world,
};
