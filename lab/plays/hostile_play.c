/* SPDX-License-Identifier: Apache-2.0 */
/* The play "hostile": its world, the node's part, the accounts. */
#include "hostile_play.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "hostile_play_priv.h"
#include "sim/fiber.h"

enum {
	TENANTS = HP_HONEST + 1,
	/* Everybody's pages, and one frame more: what one gives back another
	 * gets soon. */
	FRAMES = HP_HONEST * HP_PAGES + HP_SPACES * HP_FOE_PAGES + 1,
	FAULT_PPM = 4000,
};

#define LIMIT_PS  (1000ull * SIM_MS)
#define SETTLE_PS (20ull * SIM_MS)
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

void hp_fail(struct hp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

/* ---- bugs --------------------------------------------------------------- */

const enum plant hostile_play_bugs[] = {
	PLANT_any_domain,    PLANT_any_right, PLANT_past_end,
	PLANT_no_guard,	     PLANT_any_path,  PLANT_skip_duplicate_check,
	PLANT_any_inner,     PLANT_keys_stay, PLANT_leave_early,
	PLANT_not_cleared,   PLANT_no_budget, PLANT_reexecute_atomic,
	PLANT_beats_in_turn, PLANT_none,
};

/* ---- connections -------------------------------------------------------- */

bool hp_qp_is_broken(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !qp || ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_SQE;
}

int hp_lane_open(struct hp *p, struct scenario_host *host, struct ibv_cq *cq,
		 struct ibv_pd *pd, struct scenario_pair *out)
{
	struct scenario_pair_options o = {
		.cq = cq, .far_pd = pd, .send_depth = HP_QUEUE};

	return scenario_pair_open(host, p->node, &o, out);
}

int hp_guest_open(struct hp *p, struct scenario_host *host, struct ibv_cq *cq,
		  struct frame_space *space, struct frame_guest **guest,
		  struct scenario_pair *out)
{
	struct scenario_pair_options o = {.cq = cq,
					  .send_depth = HP_QUEUE,
					  .recv_depth = HP_QUEUE,
					  .max_sge = 2};
	int err = frame_guest_create(p->server, space, guest);

	if (err)
		return err;
	o.far_qp = frame_guest_qp(*guest);
	err = scenario_pair_open(host, p->node, &o, out);
	return err ? err : frame_guest_arm(*guest);
}

int hp_chains_open(struct hp *p, struct scenario_host *host, struct ibv_cq *cq,
		   struct frame_space *space, struct ibv_pd *pd,
		   struct frame_chain **chain, struct scenario_pair *pair)
{
	struct scenario_pair_options o = {.cq = cq,
					  .send_depth = HP_QUEUE,
					  .recv_depth = HP_QUEUE,
					  .max_sge = 2};
	int err = 0;

	for (unsigned k = 0; k < PAGE_CHAIN_COUNT && !err; k++) {
		err = frame_chain_create(space, pd, k, 0, &chain[k]);
		if (err)
			break;
		o.far_qp = frame_chain_qp(chain[k]);
		err = scenario_pair_open(host, p->node, &o, &pair[k]);
		if (!err)
			err = frame_chain_start(chain[k]);
	}
	return err;
}

/* The one that gives back ends before the one that loads. */
void hp_chains_close(struct frame_chain **chain, struct scenario_pair *pair)
{
	for (unsigned k = PAGE_CHAIN_COUNT; k-- > 0;) {
		if (chain[k])
			frame_chain_destroy(chain[k]);
		chain[k] = NULL;
		scenario_pair_close(&pair[k]);
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
		if (frame_server_step(p->server) == 0)
			client_clock_relax(&p->node->clock);
	}
}

static int make_world(struct hp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .trace = p->opt->trace,
					    .knows_senders = true};
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 77);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	cfg.chain_ps = sim_rand_range(r, 50, 300) * SIM_NS;
	if (sim_rand_below(r, 2)) {
		cfg.link.faults.loss_ppm = sim_rand_below(r, FAULT_PPM);
		cfg.link.faults.dup_ppm = sim_rand_below(r, FAULT_PPM);
		cfg.link.faults.reorder_ppm = sim_rand_below(r, FAULT_PPM);
		cfg.link.faults.reorder_max_ps = 20 * SIM_US;
	}
	err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	sim_net_hide_payload(scenario_stage_net(p->stage));
	sim_net_set_tap(scenario_stage_net(p->stage), hp_wire_tap, &p->foe);
	p->ground = aligned_alloc(4096, (size_t)TENANTS * HP_REGION_BYTES);
	if (!p->ground)
		return -ENOMEM;
	memset(p->ground, 0, (size_t)TENANTS * HP_REGION_BYTES);
	err = frame_pool_create((uint64_t)FRAMES * HP_PAGE_BYTES, HP_PAGE_BYTES,
				&p->pool);
	if (!err)
		if (!err)
			err = scenario_host_add(p->stage, "node", &p->node);
	if (!err) {
		/* The node's queues are made by its own rooms: nothing for the
		 * meter. */
		p->node->context->ops.post_send = p->node->post_send;
		p->node->context->ops.poll_cq = p->node->poll_cq;
		err = frame_server_create(p->node->context, &p->server);
	}
	if (!err)
		err = add_tenants(p);
	return err ? err
		   : scenario_host_spawn(p->node, "page server", serve, p);
}

/* ---- the play ----------------------------------------------------------- */

static int start(struct hp *p)
{
	int err = scenario_host_spawn(p->foe.host, "foe", hp_foe_main, &p->foe);

	for (unsigned i = 0; i < HP_HONEST && !err; i++)
		err = scenario_host_spawn(p->client[i].host, "tenant",
					  hp_client_main, &p->client[i]);
	return err;
}

static bool is_over(const struct hp *p)
{
	for (unsigned i = 0; i < HP_HONEST; i++)
		if (!p->client[i].done)
			return false;
	return true;
}

/* In some plays the hostile one dies, and the node notices later, as by a
 * missing heartbeat. */
static void play(struct hp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	uint64_t death = sim_rand_below(&p->rand, 4)
				 ? UINT64_MAX
				 : sim_rand_range(&p->rand, 50, 3000) * SIM_US;
	uint64_t notice =
		death == UINT64_MAX
			? death
			: death + sim_rand_range(&p->rand, 1, 500) * SIM_US;

	while (!is_over(p) && sim_now_ps(sim) < LIMIT_PS) {
		(void)sim_run_until(sim, sim_now_ps(sim) + 50 * SIM_US);
		(void)frame_pool_mend(p->pool);
		if (sim_now_ps(sim) >= death && !p->foe.host->killed) {
			scenario_host_kill(p->foe.host);
			p->res->counts.deaths++;
		}
		if (sim_now_ps(sim) >= notice && !p->foe.is_gone)
			hp_foe_take_back(&p->foe);
	}
	if (!is_over(p))
		hp_fail(p, "those who work have not finished");
	scenario_host_kill(p->foe.host);
	(void)sim_run_until(sim, sim_now_ps(sim) + SETTLE_PS);
}

/* ---- the accounts ------------------------------------------------------- */

static void mark(struct hp *p, uint8_t *seen, uint64_t frame, const char *where)
{
	uint64_t base = frame, i;

	if (!frame_pool_has(p->pool, frame)) {
		hp_fail(p, "%s holds what is no frame", where);
		return;
	}
	/* Frames stand one behind the other; the lowest is the first. */
	while (frame_pool_has(p->pool, base - HP_PAGE_BYTES))
		base -= HP_PAGE_BYTES;
	i = (frame - base) / HP_PAGE_BYTES;
	if (seen[i]++)
		hp_fail(p, "frame %llu is in two places, one is %s",
			(unsigned long long)i, where);
}

/* Every frame once: the tables of those who work, and the queue, which this
 * empties. */
static void check_accounts(struct hp *p)
{
	uint8_t seen[FRAMES] = {0};
	uint64_t frame;

	(void)frame_pool_mend(p->pool);
	for (unsigned i = 0; i < HP_HONEST; i++)
		for (unsigned k = 0; k < HP_PAGES; k++) {
			frame = frame_space_find(p->client[i].space, k);
			if (frame)
				mark(p, seen, frame, "a table");
		}
	while ((frame = frame_pool_pop(p->pool)) != 0)
		mark(p, seen, frame, "the queue");
	for (unsigned i = 0; i < FRAMES; i++)
		if (!seen[i])
			hp_fail(p, "frame %u is nowhere", i);
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
	uint64_t s = sim_now_ps(scenario_stage_sim(p->stage)) / SIM_S;
	uint64_t wrong = node_count(p, NIC_C_keys_guessed, NIC_C_keys_guessed);

	if (wrong > NIC_KEY_FAILURES * (s + 1) + HP_FOE_CONNECTIONS)
		hp_fail(p, "%llu wrong keys were looked at within %llu s",
			(unsigned long long)wrong, (unsigned long long)s + 1);
}

static void finish(struct hp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	const struct sim_net_stats *st =
		sim_net_stats(scenario_stage_net(p->stage));
	struct hostile_play_counts *n = &p->res->counts;

	hp_foe_look(&p->foe);
	if (!p->foe.is_gone)
		hp_foe_take_back(&p->foe);
	for (unsigned i = 0; i < HP_HONEST; i++)
		hp_client_check(&p->client[i]);
	if (!p->res->violations) /* else a chain may have one in its hands */
		check_accounts(p);
	check_guard(p);
	n->denied = node_count(p, NIC_C_deny_key, NIC_C_deny_length);
	n->dropped = node_count(p, NIC_C_drop_short, NIC_C_drop_multi);
	n->frames = st->sent;
	n->lost = st->lost;
	n->events = sim_event_count(sim);
	n->virtual_us = sim_now_ns(sim) / 1000;
	p->res->hash = sim_trace_hash(sim);
}

static void tenant_close(struct hp_tenant *t)
{
	if (t->mr)
		(void)ibv_dereg_mr(t->mr);
	if (t->pd)
		(void)ibv_dealloc_pd(t->pd);
}

static void close_world(struct hp *p)
{
	if (p->stage)
		sim_fiber_kill_all(scenario_stage_sim(p->stage));
	hp_foe_take_back(&p->foe);
	for (unsigned i = 0; i < HP_HONEST; i++)
		if (p->client[i].host)
			hp_client_close(&p->client[i]);
	tenant_close(&p->foe.tenant);
	for (unsigned i = 0; i < HP_HONEST; i++)
		tenant_close(&p->client[i].tenant);
	if (p->server)
		frame_server_destroy(p->server);
	if (p->stage)
		scenario_stage_destroy(p->stage);
	if (p->pool)
		frame_pool_destroy(p->pool);
	free(p->ground);
}

int hostile_play_run(const struct hostile_play_options *opt,
		     struct hostile_play_result *res)
{
	struct hp *p = calloc(1, sizeof(*p));
	int err;

	plant_set(opt->bug);
	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->opt = opt;
	p->res = res;
	err = make_world(p);
	if (!err)
		err = start(p);
	if (!err) {
		play(p);
		finish(p);
		err = hp_beat_run(p);
	}
	close_world(p);
	free(p);
	return err;
}
