/* SPDX-License-Identifier: Apache-2.0 */
/* The play "hostile": its world, the node's part, the accounts. */
#include "hostile_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"
#include "page_accounts.h"

enum {
	TENANTS = HP_HONEST + 1,
	/* Everybody's pages, and one page frame more: what one gives back
	 * another gets soon. */
	PFRAMES = HP_HONEST * HP_PAGES + HP_SPACES * HP_FOE_PAGES + 1,
	FAULT_PPM = 4000,
};

#define LIMIT_PS  (1000ull * SIM_MS)
#define SETTLE_PS (20ull * SIM_MS)
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- connections -------------------------------------------------------- */

bool hp_qp_is_broken(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !qp || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

int hp_conn_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		 struct ibv_pd *pd, struct rig_pair *out)
{
	struct rig_pair_options o = {
		.cq = cq, .far_pd = pd, .send_depth = HP_QUEUE};

	return rig_pair_open(host, p->node, &o, out);
}

int hp_guest_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		  struct pframe_space *space, struct pframe_guest **guest,
		  struct rig_pair *out)
{
	struct rig_pair_options o = {.cq = cq,
				     .send_depth = HP_QUEUE,
				     .recv_depth = HP_QUEUE,
				     .max_sge = 2};
	int err = pframe_guest_create(p->server, space, guest);

	if (err)
		return err;
	o.far_qp = pframe_guest_qp(*guest);
	err = rig_pair_open(host, p->node, &o, out);
	return err ? err : pframe_guest_arm(*guest);
}

int hp_chains_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		   struct pframe_space *space, struct ibv_pd *pd,
		   struct pframe_chain **chain, struct rig_pair *pair)
{
	struct rig_pair_options o = {.cq = cq,
				     .send_depth = HP_QUEUE,
				     .recv_depth = HP_QUEUE,
				     .max_sge = 2};
	int err = 0;

	for (unsigned k = 0; k < PAGE_CHAIN_COUNT && !err; k++) {
		err = pframe_chain_create(space, pd, k, 0, &chain[k]);
		if (err)
			break;
		o.far_qp = pframe_chain_qp(chain[k]);
		err = rig_pair_open(host, p->node, &o, &pair[k]);
		if (!err)
			err = pframe_chain_start(chain[k]);
	}
	return err;
}

/* The one that gives back ends before the one that loads. */
void hp_chains_close(struct pframe_chain **chain, struct rig_pair *pair)
{
	for (unsigned k = PAGE_CHAIN_COUNT; k-- > 0;) {
		if (chain[k])
			pframe_chain_destroy(chain[k]);
		chain[k] = NULL;
		rig_pair_close(&pair[k]);
	}
}

/* ---- the world ---------------------------------------------------------- */

static int add_tenant(struct hp *p, unsigned place, struct hp_tenant *t)
{
	t->mem = p->ground + place * HP_REGION_BYTES;
	t->pd = ibv_alloc_pd(p->node->context);
	if (!t->pd)
		return -ENOMEM;
	t->mr = ibv_reg_mr(t->pd, t->mem, HP_REGION_BYTES, ACCESS);
	return t->mr ? 0 : -ENOMEM;
}

/* The hostile one's region is in the middle: it has neighbours. */
static int add_tenants(struct hp *p)
{
	int err = add_tenant(p, 1, &p->foe.tenant);

	p->foe.p = p;
	for (unsigned i = 0; i < HP_HONEST && !err; i++) {
		struct hp_client *c = &p->client[i];

		c->p = p;
		c->index = i;
		c->way = (enum hp_way)i;
		err = add_tenant(p, i ? i + 1 : 0, &c->tenant);
		if (!err)
			err = hp_client_open(c);
	}
	return err ? err : hp_foe_open(&p->foe);
}

static void serve(void *arg)
{
	struct hp *p = arg;

	for (;;) {
		if (pframe_server_step(p->server) == 0)
			client_clock_relax(&p->node->clock);
	}
}

static int start(struct hp *p)
{
	int err = rig_host_spawn(p->node, "page server", serve, p);

	if (!err)
		err = rig_host_spawn(p->foe.host, "foe", hp_foe_main, &p->foe);
	for (unsigned i = 0; i < HP_HONEST && !err; i++)
		err = rig_host_spawn(p->client[i].host, "tenant",
				     hp_client_main, &p->client[i]);
	return err;
}

static int open_world(struct play_run *run)
{
	struct hp *p = (struct hp *)run;
	struct rig_stage_config cfg = {.knows_senders = true};
	struct rng *r = &run->rand;
	int err;

	p->n = (struct hostile_play_counts *)run->res->count;
	sim_rand_init(r, run->opt->seed, 77);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.chain_ps = sim_rand_range(r, 50, 300) * SIM_NS;
	if (sim_rand_below(r, 2))
		cfg.link.faults =
			play_draw_faults(r, FAULT_PPM, FAULT_PPM, FAULT_PPM, 0);
	err = play_stage_open(run, &cfg);
	if (err)
		return err;
	sim_net_hide_payload(p->run.net);
	sim_net_set_tap(p->run.net, hp_wire_tap, &p->foe);
	p->ground = aligned_alloc(4096, (size_t)TENANTS * HP_REGION_BYTES);
	if (!p->ground)
		return -ENOMEM;
	memset(p->ground, 0, (size_t)TENANTS * HP_REGION_BYTES);
	err = pframe_pool_create((uint64_t)PFRAMES * HP_PAGE_BYTES,
				 HP_PAGE_BYTES, &p->pool);
	if (!err)
		err = rig_host_add(p->run.stage, "node", &p->node);
	if (!err) {
		/* The node's queues are made by its own rooms: nothing for the
		 * meter. */
		p->node->context->ops.post_send = p->node->post_send;
		p->node->context->ops.poll_cq = p->node->poll_cq;
		err = pframe_server_create(p->node->context, &p->server);
	}
	if (!err)
		err = add_tenants(p);
	return err ? err : start(p);
}

/* ---- the play ----------------------------------------------------------- */

static bool is_over(const struct hp *p)
{
	for (unsigned i = 0; i < HP_HONEST; i++)
		if (!p->client[i].done)
			return false;
	return true;
}

/* In some plays the hostile one dies, and the node notices later, as by a
 * missing heartbeat. */
static void perform_foe(struct hp *p)
{
	struct sim *sim = p->run.sim;
	uint64_t death =
		sim_rand_below(&p->run.rand, 4)
			? UINT64_MAX
			: sim_rand_range(&p->run.rand, 50, 3000) * SIM_US;
	uint64_t notice =
		death == UINT64_MAX
			? death
			: death + sim_rand_range(&p->run.rand, 1, 500) * SIM_US;

	while (!is_over(p) && sim_now_ps(sim) < LIMIT_PS) {
		(void)sim_run_until(sim, sim_now_ps(sim) + 50 * SIM_US);
		(void)pframe_pool_mend(p->pool);
		if (sim_now_ps(sim) >= death && !p->foe.host->killed) {
			rig_host_kill(p->foe.host);
			p->n->deaths++;
		}
		if (sim_now_ps(sim) >= notice && !p->foe.is_gone)
			hp_foe_take_back(&p->foe);
	}
	if (!is_over(p))
		play_fail(&p->run, "those who work have not finished");
	rig_host_kill(p->foe.host);
	(void)sim_run_until(sim, sim_now_ps(sim) + SETTLE_PS);
}

/* ---- the accounts ------------------------------------------------------- */

/* Every page frame once: the tables of those who work, and the queue. */
static void check_accounts(struct hp *p)
{
	struct pframe_space *spaces[HP_HONEST];

	(void)pframe_pool_mend(p->pool);
	for (unsigned i = 0; i < HP_HONEST; i++)
		spaces[i] = p->client[i].space;
	page_accounts_check(&p->run, p->pool, spaces, HP_HONEST, HP_PAGES,
			    HP_PAGE_BYTES);
}

static uint64_t node_count(const struct hp *p, enum nic_counter from,
			   enum nic_counter to)
{
	uint64_t n = 0;

	for (unsigned c = from; c <= to; c++)
		n += sim_host_counter(p->node->sim_host, c);
	return n;
}

/* After eight guesses, new connections are not listened to for a second; those
 * that were there may be wrong once each. */
static void check_guard(struct hp *p)
{
	uint64_t s = sim_now_ps(p->run.sim) / SIM_S;
	uint64_t wrong = node_count(p, NIC_C_keys_guessed, NIC_C_keys_guessed);

	if (wrong > NIC_KEY_FAILURES * (s + 1) + HP_FOE_CONNECTIONS)
		play_fail(&p->run,
			  "%llu wrong keys were looked at within %llu s",
			  (unsigned long long)wrong, (unsigned long long)s + 1);
}

static void perform(struct play_run *r)
{
	struct hp *p = (struct hp *)r;

	perform_foe(p);
	hp_foe_look(&p->foe);
	if (!p->foe.is_gone)
		hp_foe_take_back(&p->foe);
	for (unsigned i = 0; i < HP_HONEST; i++)
		hp_client_check(&p->client[i]);
	if (!r->res->violations) /* else a chain may have one in its hands */
		check_accounts(p);
	check_guard(p);
	p->n->denied = node_count(p, NIC_C_deny_key, NIC_C_deny_length);
	p->n->dropped = node_count(p, NIC_C_drop_short, NIC_C_drop_multi);
}

static int second_act(struct play_run *r)
{
	return hp_heartbeat_run((struct hp *)r);
}

static void tenant_close(struct hp_tenant *t)
{
	if (t->mr)
		(void)ibv_dereg_mr(t->mr);
	if (t->pd)
		(void)ibv_dealloc_pd(t->pd);
}

static void close_world(struct play_run *r)
{
	struct hp *p = (struct hp *)r;

	hp_foe_take_back(&p->foe);
	for (unsigned i = 0; i < HP_HONEST; i++)
		if (p->client[i].host)
			hp_client_close(&p->client[i]);
	tenant_close(&p->foe.tenant);
	for (unsigned i = 0; i < HP_HONEST; i++)
		tenant_close(&p->client[i].tenant);
	if (p->server)
		pframe_server_destroy(p->server);
	/* The pool's memory is registered with the node's NIC until here. */
	rig_stage_destroy(r->stage);
	r->stage = NULL;
	if (p->pool)
		pframe_pool_destroy(p->pool);
	free(p->ground);
}

/* ---- the table ---------------------------------------------------------- */

static const enum plant bugs[] = {
	PLANT_any_domain,    PLANT_any_right, PLANT_past_end,
	PLANT_no_guard,	     PLANT_any_path,  PLANT_skip_duplicate_check,
	PLANT_any_inner,     PLANT_keys_stay, PLANT_leave_early,
	PLANT_not_cleared,   PLANT_no_budget, PLANT_reexecute_atomic,
	PLANT_beats_in_turn, PLANT_none,
};

static const struct play_count counts[] = {HOSTILE_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play hostile_play = {
	.name = "hostile",
	.summary = "one tenant does its worst, the others keep data and pace",
	.about = "Three tenants use regions and pages of a memory node, and a "
		 "fourth one lies, floods, replays, guesses and stops. The "
		 "others' data must stay theirs and right, and they must keep "
		 "going. Then nodes hang, and the others must still hear in "
		 "time that a client lives.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options_bytes = sizeof(struct play_options),
	.world_bytes = sizeof(struct hp),
	.open = open_world,
	.perform = perform,
	.judge = second_act,
	.close = close_world,
};
