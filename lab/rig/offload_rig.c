/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, applications and engines on the stage; one engine after another. */
#include "offload_rig.h"

#include "base/plant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "gatherer.h"
#include "sim/fiber.h"
#include "tor_cow.h"

enum {
	PAGE = 4096,
	ENGINE_CQ_DEPTH = 65536,
	SLEEP_MAX_NS = 20000, /* of an engine without work */
};

int rig_init(struct rig *rig, struct rig_stage *stage, uint32_t nodes,
	     uint32_t rails, uint64_t region_bytes, uint32_t stripe_shift)
{
	char name[RIG_NAME_MAX];
	int err = 0;

	memset(rig, 0, sizeof(*rig));
	rig->stage = stage;
	rig->region_bytes = region_bytes;
	rig->stripe_shift = stripe_shift;
	rig->mtu = IBV_MTU_4096;
	ASSERT(nodes && nodes <= RIG_NODES_MAX &&
	       region_bytes % ((uint64_t)nodes << stripe_shift) == 0);
	for (uint32_t i = 0; i < nodes && !err; i++) {
		struct rig_node *n = &rig->node[i];

		snprintf(name, sizeof(name), "node%u", i);
		if (i % rails)
			n->host = rig->node[i - 1].host;
		else
			err = rig_host_add(stage, name, &n->host);
		if (!err)
			err = rig_region_create(n->host, region_bytes / nodes,
						false, &n->region);
		rig->node_count += !err;
	}
	return err;
}

int rig_gather(struct rig *rig)
{
	int err = 0;

	for (uint32_t i = 0; i < rig->node_count && !err; i++) {
		struct rig_node *n = &rig->node[i];
		const struct aqdv_place place = {
			.index = i,
			.count = rig->node_count,
			.shift = rig->node_count > 1 ? rig->stripe_shift : 0};

		err = aqdv_set_place(n->region->mr, &place);
		if (!err)
			err = rig_gatherer_open(n->host, &n->gatherer);
	}
	return err;
}

uint32_t rig_node_of(const struct rig *rig, uint64_t offset)
{
	return (uint32_t)((offset >> rig->stripe_shift) % rig->node_count);
}

uint8_t *rig_byte(struct rig *rig, uint64_t offset)
{
	uint64_t stripe = offset >> rig->stripe_shift;
	uint64_t inside = offset & ((1ull << rig->stripe_shift) - 1);

	return rig->node[stripe % rig->node_count].region->mem +
	       (stripe / rig->node_count << rig->stripe_shift) + inside;
}

/* ---- applications ------------------------------------------------------- */

int rig_app_open(struct rig *rig, struct rig_host *host, uint64_t entries,
		 uint64_t wdata_bytes, uint64_t rdata_bytes,
		 struct rig_app **out)
{
	struct rig_app *a = calloc(1, sizeof(*a));
	uint64_t whole;
	int err;

	if (!a)
		return -ENOMEM;
	ASSERT(rig->app_count < RIG_APPS_MAX);
	rig->app[rig->app_count++] = a;
	a->rig = rig;
	a->host = host;
	err = offload_map_make(entries, wdata_bytes, rdata_bytes, &a->map);
	if (err)
		return err;
	whole = align_up(a->map.total_bytes, PAGE);
	a->memory = aligned_alloc(PAGE, whole);
	if (!a->memory)
		return -ENOMEM;
	memset(a->memory, 0, whole);
	err = offload_ring_init(&a->ring, &a->map, a->memory, host->name);
	if (err)
		return err;
	a->mr = ibv_reg_mr(host->pd, a->memory, a->map.total_bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE);
	if (!a->mr)
		return -ENOMEM;
	err = offload_ring_add(&a->ring, rig->region_bytes, false);
	if (err < 0)
		return err;
	*out = a;
	return 0;
}

static void app_close(struct rig_app *a)
{
	if (a->mr)
		(void)ibv_dereg_mr(a->mr);
	offload_ring_release(&a->ring);
	free(a->memory);
	free(a);
}

/* ---- engines ------------------------------------------------------------ */

static void engine_main(void *arg)
{
	struct rig_engine *e = arg;
	struct sim *sim = rig_stage_sim(e->rig->stage);

	while (!e->stop) {
		unsigned work = offload_engine_step(e->engine);
		uint64_t cost_ps = e->cost_ps ? e->cost_ps(e, work) : 0;
		uint64_t next_ns, now_ns;

		if (work)
			e->work_ps += cost_ps;
		rig_host_work_ps(e->host, cost_ps);
		if (work) {
			if (!cost_ps)
				sim_fiber_yield(sim);
			continue;
		}
		next_ns = offload_engine_next_ns(e->engine);
		now_ns = sim_now_ns(sim);
		if (!next_ns)
			client_clock_relax(&e->host->clock);
		else /* sessions may be added meanwhile */
			sim_fiber_sleep_ns(sim,
					   next_ns > now_ns
						   ? u64_min(next_ns - now_ns,
							     SLEEP_MAX_NS)
						   : 1);
	}
}

int rig_engine_open(struct rig *rig, const char *name, struct rig_host *host,
		    const struct offload_engine_config *config,
		    struct rig_engine **out)
{
	struct offload_engine_config c = *config;
	struct rig_engine *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return -ENOMEM;
	ASSERT(rig->engine_count < RIG_ENGINES_MAX);
	rig->engine[rig->engine_count++] = e;
	e->rig = rig;
	e->host = host;
	err = host ? 0 : rig_host_add(rig->stage, name, &e->host);
	if (err)
		return err;
	e->cq = rig_cq_create(e->host, ENGINE_CQ_DEPTH);
	if (!e->cq)
		return -ENOMEM;
	c.clock = &e->host->clock;
	c.verbs = client_verbs_choose();
	c.pd = e->host->pd;
	c.cq = e->cq;
	c.cq_depth = ENGINE_CQ_DEPTH;
	c.post_walk = rig->node[0].gatherer ? rig_gatherer_post : NULL;
	c.counters = e->counters;
	err = offload_engine_create(&c, &e->engine);
	if (!err)
		err = rig_host_spawn(e->host, name, engine_main, e);
	if (!err)
		*out = e;
	return err;
}

int rig_engine_open_switch(struct rig *rig, struct rig_engine **out)
{
	struct rig_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	ASSERT(rig->engine_count < RIG_ENGINES_MAX);
	rig->engine[rig->engine_count++] = e;
	e->rig = rig;
	*out = e;
	return 0;
}

bool rig_engine_is_dead(const struct rig_engine *e)
{
	return e->host ? e->host->killed : e->is_gone;
}

/* What the switch served it serves no more. */
static void switch_is_new(void *ctx)
{
	struct rig *rig = ctx;

	for (uint32_t i = 0; i < rig->engine_count; i++)
		rig->engine[i]->is_gone |= !rig->engine[i]->host;
}

void rig_engine_kill(struct rig_engine *e)
{
	if (e->host) {
		rig_host_kill(e->host);
		return;
	}
	ASSERT(rig_tor_restart(e->rig->tor) == 0);
	switch_is_new(e->rig);
}

void rig_engine_kill_at(struct rig_engine *e, uint64_t at, unsigned when)
{
	struct rig_tor *tor = e->rig->tor;

	if (e->host) {
		e->host->meter.kill_at = e->host->meter.doorbells + at;
		e->host->meter.kill_when = when;
		return;
	}
	rig_tor_restart_at(tor, rig_tor_frames(tor) + at, when, switch_is_new,
			   e->rig);
}

static void engine_close(struct rig_engine *e)
{
	if (e->engine)
		offload_engine_destroy(e->engine);
	if (e->cq)
		(void)ibv_destroy_cq(e->cq);
	free(e);
}

/* ---- sessions ----------------------------------------------------------- */

static void end_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	(void)ibv_modify_qp(qp, &attr, IBV_QP_STATE); /* from any state */
}

static uint32_t expected_psn(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {0};

	ASSERT(ibv_query_qp(qp, &attr, IBV_QP_RQ_PSN, &init) == 0);
	return attr.rq_psn;
}

/* What nodes and application do to an engine that is to be no more. */
static void session_end(struct rig_session *s)
{
	struct rig *rig = s->app->rig;

	if (!PLANTED(late_ring))
		end_qp(s->ring.far_qp);
	/* One that looks on does no harm, so it may. */
	for (uint32_t i = 0; i < rig->node_count; i++) {
		if (s->node_down[i])
			continue;
		if (!PLANTED(no_fence)) {
			end_qp(s->read[i].far_qp);
			end_qp(s->write[i].far_qp);
		}
		s->final_psn[i] = PLANTED(old_final)
					  ? s->write[i].near_psn
					  : expected_psn(s->write[i].far_qp);
		s->has_final[i] = !rig->node[i].host->killed;
	}
}

/*
 * The session that the rings show as the last that wrote at node i: one that
 * was ended before it said where it begins has executed nothing there, and its
 * own predecessor's number counts.
 */
static const struct rig_session *last_writer(const struct rig_app *a,
					     uint32_t i)
{
	const struct offload_preamble *p = a->memory;
	uint32_t epoch = p->red.node[OFFLOAD_NODES_MAX - 1 - i].epoch;

	for (uint32_t k = 0; k < a->rig->session_count; k++) {
		const struct rig_session *s = a->rig->session[k];

		if (s->app == a && s->epoch == epoch)
			return s;
	}
	return NULL;
}

struct offload_final rig_session_final(const struct rig_session *s, uint32_t i)
{
	const struct rig_session *before = last_writer(s->app, i);

	if (!before || !before->has_final[i])
		return (struct offload_final){0};
	return (struct offload_final){true, before->epoch,
				      before->final_psn[i]};
}

static int node_open(struct rig_session *s, uint32_t i,
		     struct offload_node_config *c)
{
	struct rig_host *near = s->engine->host;
	struct rig_host *far = s->app->rig->node[i].host;
	struct rig_pair_options o = {.cq = s->engine->cq,
				     .send_depth = OFFLOAD_NODE_DEPTH,
				     .mtu = s->app->rig->mtu};
	int err;

	c->final = rig_session_final(s, i);
	if (far->killed) {
		s->node_down[i] = true;
		c->err = -EHOSTDOWN;
		return 0;
	}
	err = rig_pair_open(near, far, &o, &s->write[i]);
	if (s->app->rig->node[i].gatherer) {
		o.walk_pad = AQDV_WALK_PAD_MAX;
		o.rd_atomic = OFFLOAD_GATHERS;
		c->gather_bytes = u32_min(AQDV_WALK_PAD_MAX,
					  s->write[i].mtu_bytes -
						  AQDV_WALK_OVERHEAD_BYTES);
	}
	if (!err)
		err = rig_pair_open(near, far, &o, &s->read[i]);
	c->read_qp = s->read[i].near_qp;
	c->write_qp = s->write[i].near_qp;
	c->write_psn = s->write[i].near_psn;
	c->mtu_bytes = s->write[i].mtu_bytes;
	return err;
}

void rig_region_describe(struct rig *rig, struct offload_region_config *c)
{
	c->size_bytes = rig->region_bytes;
	c->piece_count = rig->node_count;
	c->stripe_shift = rig->stripe_shift;
	for (uint32_t i = 0; i < rig->node_count; i++) {
		struct rig_region *r = rig->node[i].region;

		c->piece[i] = (struct offload_piece_config){
			.node = i,
			.read_rkey = r->rkey,
			.write_rkey = r->rkey,
			.addr = r->addr,
			.size_bytes = r->size_bytes};
	}
}

static int session_open(struct rig_session *s)
{
	struct rig_app *a = s->app;
	struct rig_pair_options o = {.cq = s->engine->cq,
				     .send_depth = OFFLOAD_RING_DEPTH,
				     .mtu = a->rig->mtu};
	struct offload_session_config *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->node_count = a->rig->node_count;
	c->region_count = 1;
	c->epoch = s->epoch;
	c->batch = a->rig->batch;
	c->flush_ns = a->rig->flush_ns;
	err = rig_pair_open(s->engine->host, a->host, &o, &s->ring);
	for (uint32_t i = 0; i < c->node_count && !err; i++)
		err = node_open(s, i, &c->node[i]);
	if (!err) {
		c->ring_qp = s->ring.near_qp;
		c->ring_addr = (uint64_t)(uintptr_t)a->memory;
		c->ring_bytes = a->map.total_bytes;
		c->ring_rkey = a->mr->rkey;
		rig_region_describe(a->rig, &c->region[0]);
		err = offload_session_add(s->engine->engine, c, &s->session);
	}
	free(c);
	return err;
}

static void session_remove(struct rig_session *s)
{
	if (!s->engine->host)
		rig_cow_close(s);
	rig_pair_close(&s->ring);
	for (uint32_t i = 0; i < RIG_NODES_MAX; i++) {
		rig_pair_close(&s->read[i]);
		rig_pair_close(&s->write[i]);
	}
	if (s->session)
		offload_session_remove(s->session);
	s->session = NULL;
}

int rig_attach(struct rig_engine *engine, struct rig_app *app)
{
	struct rig *rig = app->rig;
	struct rig_session *before = app->session;
	struct rig_session *s;

	if (rig->session_count == RIG_SESSIONS_MAX)
		return -ENOSPC;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	rig->session[rig->session_count++] = s;
	s->app = app;
	s->engine = engine;
	s->id = rig->session_count;
	s->epoch = ++app->epoch;
	if (before) {
		session_end(before);
		/* An engine that follows itself frees what it had. */
		if (before->engine == engine)
			session_remove(before);
	}
	app->session = s;
	return engine->host ? session_open(s) : rig_cow_open(s);
}

int rig_session_err(const struct rig_session *s)
{
	if (!s->engine->host)
		return rig_cow_err(s);
	return s->session ? offload_session_err(s->session) : -ENOENT;
}

void rig_release(struct rig *rig)
{
	if (!rig->stage)
		return;
	sim_fiber_kill_all(rig_stage_sim(rig->stage));
	for (uint32_t i = 0; i < rig->session_count; i++) {
		session_remove(rig->session[i]);
		free(rig->session[i]);
	}
	for (uint32_t i = 0; i < rig->engine_count; i++)
		engine_close(rig->engine[i]);
	for (uint32_t i = 0; i < rig->node_count; i++)
		rig_gatherer_close(rig->node[i].gatherer);
	for (uint32_t i = 0; i < rig->app_count; i++)
		app_close(rig->app[i]);
}
