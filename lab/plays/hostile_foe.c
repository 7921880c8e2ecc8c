/* SPDX-License-Identifier: Apache-2.0 */
/* The hostile tenant of the play "hostile": its temper, and its connections. */
#include <errno.h>
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"
#include "sim/fiber.h"

enum {
	CQ_DEPTH = 1024,
	OPENS = 60,
	PAUSE_NS = 20000,
	SLEEP_US = 3000,
	FLOOD_MIN = 50,
	FLOOD_MAX = 400,
};

/* ---- what it does ------------------------------------------------------- */

static void flood(struct hp_foe *f);
static void rest(struct hp_foe *f);

/* Its temper is a weight for each: 0 to `most`, in one seed of `rarity`. */
static const struct {
	void (*act)(struct hp_foe *f);
	uint8_t most;
	uint8_t rarity;
	bool floods;
} acts[] = {
	{hp_ask_own, 4, 1, true},     {hp_ask_beyond, 4, 2, false},
	{hp_ask_guess, 4, 4, false},  {hp_ask_page, 9, 1, true},
	{hp_ask_piece, 9, 1, true},   {hp_ask_chain, 6, 1, true},
	{hp_ask_receive, 4, 1, true}, {hp_wire_forge, 4, 2, true},
	{hp_wire_replay, 4, 1, true}, {hp_wire_sweep, 1, 6, false},
	{flood, 1, 2, false},	      {rest, 1, 2, false},
};

STATIC_ASSERT(ARRAY_LEN(acts) <= sizeof(((struct hp_foe *)0)->weight),
	      "a weight for each act");

static void flood(struct hp_foe *f)
{
	unsigned which = sim_rand_below(&f->rand, ARRAY_LEN(acts));
	unsigned n = sim_rand_range(&f->rand, FLOOD_MIN, FLOOD_MAX);

	if (!acts[which].floods)
		return;
	f->p->n->floods++;
	while (n--)
		acts[which].act(f);
}

static void rest(struct hp_foe *f)
{
	sim_fiber_sleep_ps(f->p->run.sim,
			   sim_rand_below(&f->rand, SLEEP_US) * SIM_US);
}

static void choose_temper(struct hp_foe *f)
{
	for (unsigned i = 0; i < ARRAY_LEN(acts); i++)
		if (sim_rand_below(&f->rand, acts[i].rarity) == 0)
			f->weight[i] = (uint8_t)sim_rand_range(&f->rand, 0,
							       acts[i].most);
}

static void act(struct hp_foe *f)
{
	uint32_t all = 0, dice;

	for (unsigned i = 0; i < ARRAY_LEN(acts); i++)
		all += f->weight[i];
	if (!all) {
		rest(f);
		return;
	}
	dice = sim_rand_below(&f->rand, all);
	for (unsigned i = 0; i < ARRAY_LEN(acts); i++) {
		if (dice < f->weight[i]) {
			acts[i].act(f);
			return;
		}
		dice -= f->weight[i];
	}
}

/* ---- its connections ---------------------------------------------------- */

static void guest_close(struct hp_guest *g)
{
	if (g->guest)
		pframe_guest_destroy(g->guest);
	rig_pair_close(&g->pair);
	*g = (struct hp_guest){0};
}

static bool has_broken_chain(struct hp_foe *f)
{
	for (unsigned k = 0; k < PAGE_CHAIN_COUNT; k++)
		if (!f->chain[k] || pframe_chain_is_broken(f->chain[k]) ||
		    hp_qp_is_broken(f->pair[k].near_qp))
			return true;
	return false;
}

static void count_open(struct hp_foe *f)
{
	f->opens--;
	f->p->n->opened++;
}

static int open_again(struct hp_foe *f)
{
	int err = 0;

	for (unsigned i = 0; i < HP_CONNS && !err; i++)
		if (f->opens && (hp_qp_is_broken(f->conn[i].near_qp) ||
				 hp_qp_is_broken(f->conn[i].far_qp))) {
			rig_pair_close(&f->conn[i]);
			err = hp_conn_open(f->p, f->host, f->cq, f->tenant.pd,
					   &f->conn[i]);
			count_open(f);
		}
	for (unsigned i = 0; i < HP_BY_CHAINS * HP_GUESTS && !err; i++) {
		struct hp_guest *g = &f->guest[i / HP_GUESTS][i % HP_GUESTS];

		if (f->opens && (!g->guest || hp_qp_is_broken(g->pair.far_qp) ||
				 hp_qp_is_broken(g->pair.near_qp))) {
			guest_close(g);
			err = hp_guest_open(f->p, f->host, f->cq,
					    f->space[i / HP_GUESTS], &g->guest,
					    &g->pair);
			count_open(f);
		}
	}
	if (f->opens && !err && has_broken_chain(f)) {
		hp_chains_close(f->chain, f->pair);
		memset(f->chain_withheld, 0, sizeof(f->chain_withheld));
		err = hp_chains_open(f->p, f->host, f->cq,
				     f->space[HP_BY_CHAINS], f->chain_pd,
				     f->chain, f->pair);
		count_open(f);
	}
	return err;
}

void hp_foe_look(struct hp_foe *f)
{
	const struct hp_foe_desk *d = (const void *)f->desk->mem;

	for (unsigned i = 0; i < sizeof(d->in); i++)
		if (d->in[i] & HP_TELLTALE) {
			play_fail(&f->p->run,
				  "the hostile tenant has read a byte of "
				  "somebody else");
			return;
		}
}

void hp_foe_main(void *arg)
{
	struct hp_foe *f = arg;
	struct sim *sim = f->p->run.sim;

	for (;;) {
		if (open_again(f)) {
			play_fail(&f->p->run,
				  "the hostile tenant cannot connect");
			return;
		}
		act(f);
		f->p->n->acts++;
		hp_ask_poll(f);
		hp_foe_look(f);
		sim_fiber_sleep_ns(sim, sim_rand_below(&f->rand, PAUSE_NS));
	}
}

/* ---- life --------------------------------------------------------------- */

static int open_spaces(struct hp_foe *f)
{
	struct pframe_space_options o = {.budget = HP_FOE_PAGES,
					 .depth = HP_DEPTH};
	int err = 0;

	for (unsigned i = 0; i < HP_SPACES && !err; i++) {
		o.pd = i == HP_BY_CHAINS ? f->chain_pd : f->tenant.pd;
		o.is_pieces = i == HP_BY_PIECES;
		/* Chains do not count: the table bounds them. */
		o.entries = i == HP_BY_CHAINS ? HP_FOE_PAGES : HP_FOE_ENTRIES;
		err = pframe_space_create(f->p->pool, &o, &f->space[i]);
	}
	return err;
}

int hp_foe_open(struct hp_foe *f)
{
	struct hp_foe_desk *d;
	int err = rig_host_add(f->p->run.stage, "foe", &f->host);

	sim_rand_init(&f->rand, f->p->run.opt->seed, 200);
	sim_rand_init(&f->tape_rand, f->p->run.opt->seed, 201);
	choose_temper(f);
	f->opens = OPENS;
	if (!err)
		err = rig_region_create(f->host, sizeof(*d), false, &f->desk);
	if (err)
		return err;
	d = (struct hp_foe_desk *)f->desk->mem;
	for (unsigned i = 0; i < sizeof(d->out); i++)
		d->out[i] = (uint8_t)sim_rand_below(&f->rand, HP_TELLTALE);
	f->cq = rig_cq_create(f->host, CQ_DEPTH);
	f->chain_pd = ibv_alloc_pd(f->p->node->context);
	/* A part of somebody's region that it may read. */
	f->grant_mr = ibv_reg_mr(f->tenant.pd, f->p->client[0].tenant.mem,
				 HP_GRANT_BYTES, IBV_ACCESS_REMOTE_READ);
	if (!f->cq || !f->chain_pd || !f->grant_mr)
		return -ENOMEM;
	err = open_spaces(f);
	return err ? err : open_again(f);
}

void hp_foe_take_back(struct hp_foe *f)
{
	f->is_gone = true;
	for (unsigned i = 0; i < HP_CONNS; i++)
		rig_pair_close(&f->conn[i]);
	for (unsigned i = 0; i < HP_SPACES * HP_GUESTS; i++)
		guest_close(&f->guest[i / HP_GUESTS][i % HP_GUESTS]);
	hp_chains_close(f->chain, f->pair);
	for (unsigned i = 0; i < HP_SPACES; i++)
		if (f->space[i])
			pframe_space_destroy(f->space[i]);
	memset(f->space, 0, sizeof(f->space));
	if (f->grant_mr)
		(void)ibv_dereg_mr(f->grant_mr);
	if (f->chain_pd)
		(void)ibv_dealloc_pd(f->chain_pd);
	if (f->cq)
		(void)ibv_destroy_cq(f->cq);
	f->grant_mr = NULL;
	f->chain_pd = NULL;
	f->cq = NULL;
}
