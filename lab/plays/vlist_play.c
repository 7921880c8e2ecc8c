/* SPDX-License-Identifier: Apache-2.0 */
/* The play "index": its world, its clients, its end. */
#include "vlist_play.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "index/vlist.h"
#include "rig/stage.h"
#include "rig/tor_steer.h"
#include "sim/fiber.h"
#include "sim/lin.h"

enum {
	CLIENTS_MAX = 6,
	CONNS_MAX = 512,
	KEYS = 4,
	OPS = 40,
	OPS_ABSENT = 160,
	FAILURE_MS = 12,
	DEADLINE_MS = 150,
	VALUE_MAX = 64,
	RETRIES = 4, /* of opening a client */
	RESTARTS_MAX = 3,
	ABSENCES = 40,
	FEW_CLIENTS = 2,
	VERSIONS_FEW = 32,
	FRAMES_MAX = 1 << 19, /* 20 times what is usual */
};

/* What a seed is about. */
enum vp_mood {
	VP_ROUGH, /* everything goes wrong */
	/* Nothing is lost and nobody dies; only some connections pass the
	 * switch by. Then nothing may fail. */
	VP_CALM,
	/* Again and again the switch is told of no connection for a while, and
	 * keeps what it knew. Memory is so small that it is used again in the
	 * meantime. */
	VP_ABSENT,
};

#define LIMIT_PS (10ull * 1000 * SIM_MS)

struct vp;

struct vp_client {
	struct vp *p;
	unsigned index;
	struct scenario_host *host;
	struct sim_rand rand;
	struct vlist_client *store;
	unsigned countdown; /* requests until it happens; 0: never */
	bool sleeps;
};

/* A connection by number; link is NULL when it was given back. */
struct vp_conn {
	struct client_link *link;
	struct scenario_host *host;
	bool is_dead;
	bool is_known; /* to the switch */
};

struct vp {
	const struct vlist_play_options *opt;
	struct vlist_play_result *res;
	struct sim_rand rand;
	struct scenario_stage *stage;
	struct scenario_host *node;
	struct scenario_region *region;
	struct scenario_steer steer;
	struct vlist_geometry g;
	struct lin_history *history;
	struct vp_client client[CLIENTS_MAX];
	unsigned client_count;
	unsigned running;
	uint32_t bypass_of; /* one connection of so many; 0: none */
	enum vp_mood mood;
	uint64_t next_value;
	struct vp_conn conn[CONNS_MAX];
	unsigned conn_count;
};

static void fail(struct vp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

static uint64_t now_ns(const struct vp *p)
{
	return sim_now_ns(scenario_stage_sim(p->stage));
}

/* ---- connections -------------------------------------------------------- */

static int port_fence(void *ctx, const char *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct vp_client *c = ctx;
	struct vp *p = c->p;
	unsigned i = (unsigned)atoi(conn);

	if (i >= p->conn_count || !p->conn[i].link)
		return 0;
	scenario_steer_end(&p->steer, p->node, p->conn[i].host,
			   p->conn[i].link);
	return -ibv_modify_qp(scenario_link_far_qp(p->conn[i].link), &err,
			      IBV_QP_STATE);
}

static int port_is_alive(void *ctx, const char *conn)
{
	struct vp_client *c = ctx;
	unsigned i = (unsigned)atoi(conn);

	return i < c->p->conn_count && c->p->conn[i].link &&
	       !c->p->conn[i].is_dead;
}

static int port_open(struct vp_client *c, struct kit_port *port)
{
	struct client_link_options o = {.rights = CLIENT_LINK_ALL};
	struct vp *p = c->p;
	struct vp_conn *conn = &p->conn[p->conn_count];
	int err;

	if (p->conn_count == CONNS_MAX)
		return error_set(-EMFILE, "the play has no connection left");
	err = scenario_link_open(c->host, p->region, &o, &port->link);
	if (err)
		return err;
	snprintf(port->conn, sizeof(port->conn), "%u", p->conn_count++);
	*conn = (struct vp_conn){.link = port->link, .host = c->host};
	conn->is_known =
		!p->bypass_of || sim_rand_below(&c->rand, p->bypass_of) != 0;
	p->res->counts.bypasses += !conn->is_known;
	if (conn->is_known)
		scenario_steer_fresh(&p->steer, p->node, c->host, port->link);
	port->addr = p->region->addr;
	port->size_bytes = p->region->size_bytes;
	port->rkey = p->region->rkey;
	return 0;
}

static void port_close(void *ctx, struct kit_port *port)
{
	struct vp_client *c = ctx;
	struct vp_conn *conn = &c->p->conn[atoi(port->conn)];

	/* The far end of a dead client's stays, until it is fenced or the
	 * play ends: what it has sent may still arrive. */
	conn->is_dead = true;
	if (!c->store || !vlist_client_is_crashed(c->store)) {
		scenario_steer_end(&c->p->steer, c->p->node, c->host,
				   port->link);
		scenario_link_close(port->link);
		conn->link = NULL;
	}
}

static int port_renew(void *ctx, struct kit_port *port)
{
	port_close(ctx, port);
	return port_open(ctx, port);
}

/* ---- dying and sleeping ------------------------------------------------- */

static bool crash(void *ctx, int point)
{
	struct vp_client *c = ctx;
	uint64_t end;

	if (!c->countdown || --c->countdown)
		return false;
	if (!c->sleeps) {
		c->p->res->counts.deaths++;
		return true;
	}
	c->p->res->counts.sleeps++;
	end = now_ns(c->p) + 5ull * FAILURE_MS * 1000000;
	while (now_ns(c->p) < end)
		client_clock_relax(&c->host->clock);
	return false;
}

static int open_store(struct vp_client *c)
{
	struct vlist_config cfg = {.deadline_ms = DEADLINE_MS,
				   .collect_every =
					   sim_rand_range(&c->rand, 1, 6),
				   .cache_keys = 2,
				   .no_steer = sim_rand_below(&c->rand, 8) == 0,
				   .crash = crash,
				   .ctx = c};
	struct kit_port port = {.fence = port_fence,
				.is_alive = port_is_alive,
				.renew = port_renew,
				.close = port_close,
				.ctx = c};
	int err = 0;

	for (unsigned i = 0; i < RETRIES; i++) {
		err = port_open(c, &port);
		if (err)
			return err;
		err = vlist_client_create(&port, &c->p->g, &cfg, &c->store);
		if (!err)
			return 0;
		c->store = NULL;
		port_close(c, &port);
	}
	return err;
}

static void close_store(struct vp_client *c)
{
	struct vlist_play_counts *n = &c->p->res->counts;
	const struct vlist_stats *s;

	if (!c->store)
		return;
	s = vlist_client_stats(c->store);
	n->chases += s->chases;
	n->steered_reads += s->steered_reads;
	n->steered_appends += s->steered_appends;
	n->unvouched += s->unvouched;
	n->verified += s->verified;
	n->abandoned += s->abandoned;
	n->unknown += s->unknown;
	n->fenced += s->fenced;
	n->collected += s->collected;
	n->adopted += s->adopted;
	n->appends_failed += s->appends - s->appends_first;
	vlist_client_destroy(c->store);
	c->store = NULL;
}

/* ---- operations --------------------------------------------------------- */

static size_t make_value(uint64_t id, uint8_t out[VALUE_MAX])
{
	size_t len = 8 + id % (VALUE_MAX - 8);

	memcpy(out, &id, 8);
	for (size_t i = 8; i < len; i++)
		out[i] = (uint8_t)(id * 31 + i);
	return len;
}

/* The value's number; a torn or foreign one is a violation. */
static uint64_t read_value(struct vp_client *c, const uint8_t *v, size_t len)
{
	uint8_t want[VALUE_MAX];
	uint64_t id = 0;

	if (len >= 8)
		memcpy(&id, v, 8);
	if (len < 8 || make_value(id, want) != len || memcmp(v, want, len) != 0)
		fail(c->p, "a value is torn or foreign");
	return id;
}

static int64_t invoke(struct vp_client *c, uint64_t key, enum lin_call call,
		      uint64_t a)
{
	int64_t op = lin_invoke(c->p->history, c->index, lin_int(key), call,
				lin_int(a), lin_int(0), now_ns(c->p));

	if (op < 0)
		fail(c->p, "the history is full");
	return op;
}

static void end(struct vp_client *c, int64_t op, int err)
{
	struct vlist_play_counts *n = &c->p->res->counts;
	enum lin_type type = LIN_INFO;

	switch (err) {
	case 0:
		type = LIN_OK;
		break;
	case -ENOSPC:
		n->full++;
		type = LIN_FAIL;
		break;
	case -ETIMEDOUT:
		n->timeouts++;
		break;
	case -ESTALE:
		n->stale++;
		break;
	case -ESHUTDOWN:
		break;
	default:
		fail(c->p, "an operation failed: %d, %s", err, error_last());
	}
	lin_return(c->p->history, op, type, LIN_SAID_NOTHING, lin_nil(),
		   now_ns(c->p));
	if (err && err != -ENOSPC && c->p->mood == VP_CALM)
		sim_stop(scenario_stage_sim(c->p->stage)); /* enough is seen */
}

static void do_get(struct vp_client *c, uint64_t key)
{
	int64_t op = invoke(c, key, LIN_READ, 0);
	uint8_t buf[VALUE_MAX];
	size_t len = 0;
	int err = vlist_get(c->store, key, buf, sizeof(buf), &len);

	if (err && err != -ENOENT) {
		end(c, op, err);
		return;
	}
	c->p->res->counts.gets++;
	c->p->res->counts.misses += err != 0;
	lin_return_got(c->p->history, op,
		       err ? lin_nil() : lin_int(read_value(c, buf, len)),
		       now_ns(c->p));
}

static void do_put(struct vp_client *c, uint64_t key)
{
	uint64_t id = ++c->p->next_value;
	uint8_t value[VALUE_MAX];
	size_t len = make_value(id, value);
	int64_t op = invoke(c, key, LIN_WRITE, id);

	c->p->res->counts.puts++;
	end(c, op, vlist_put(c->store, key, value, len));
}

static void do_del(struct vp_client *c, uint64_t key)
{
	int64_t op = invoke(c, key, LIN_DELETE, 0);

	c->p->res->counts.deletes++;
	end(c, op, vlist_del(c->store, key));
}

static void step(struct vp_client *c)
{
	uint64_t key = sim_rand_below(&c->rand, KEYS);

	if (sim_rand_below(&c->rand, 2))
		key = 0; /* one is hot */
	c->countdown = 0;
	if (c->p->mood == VP_ROUGH && sim_rand_below(&c->rand, 100) < 8) {
		c->countdown = sim_rand_range(&c->rand, 1, 6);
		c->sleeps = sim_rand_below(&c->rand, 3) == 0;
	}
	switch (sim_rand_below(&c->rand, 8)) {
	case 0:
	case 1:
	case 2:
		do_get(c, key);
		break;
	case 3:
		do_del(c, key);
		break;
	default:
		do_put(c, key);
	}
	c->countdown = 0;
	if (vlist_client_is_crashed(c->store)) {
		close_store(c);
		if (open_store(c))
			fail(c->p, "a client cannot come back: %s",
			     error_last());
	}
}

static void client_main(void *arg)
{
	struct vp_client *c = arg;
	unsigned ops = c->p->mood == VP_ABSENT ? OPS_ABSENT : OPS;

	if (open_store(c))
		fail(c->p, "a client cannot start: %s", error_last());
	for (unsigned i = 0; i < ops && c->store; i++)
		step(c);
	close_store(c);
	c->p->running--;
}

/* ---- what goes wrong ----------------------------------------------------- */

/* A switch that has forgotten everything, and is told of some connections. */
static void restart(struct vp *p)
{
	if (scenario_steer_restart(&p->steer)) {
		fail(p, "the switch cannot be started again");
		return;
	}
	p->res->counts.restarts++;
	for (unsigned i = 0; i < p->conn_count; i++)
		if (p->conn[i].link && p->conn[i].is_known)
			scenario_steer_conn(&p->steer, p->node, p->conn[i].host,
					    p->conn[i].link);
}

/* All connections are from now on none of the switch's business, or are. */
static void tell_all(struct vp *p, bool is_known)
{
	for (unsigned i = 0; i < p->conn_count; i++) {
		struct vp_conn *c = &p->conn[i];

		if (!c->link || c->is_dead || c->is_known == is_known)
			continue;
		c->is_known = is_known;
		if (is_known)
			scenario_steer_conn(&p->steer, p->node, c->host,
					    c->link);
		else
			scenario_steer_end(&p->steer, p->node, c->host,
					   c->link);
		p->res->counts.absences += !is_known;
	}
}

static void pause_us(struct vp *p, uint32_t from, uint32_t to)
{
	sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
			   sim_rand_range(&p->rand, from, to) * SIM_US);
}

static void director(void *arg)
{
	struct vp *p = arg;
	unsigned restarts = p->mood == VP_ROUGH
				    ? sim_rand_below(&p->rand, RESTARTS_MAX + 1)
				    : 0;
	unsigned absences = p->mood == VP_ABSENT ? ABSENCES : 0;

	while (restarts && restarts-- && p->running) {
		pause_us(p, 20, 1500);
		restart(p);
	}
	while (absences && absences-- && p->running) {
		pause_us(p, 20, 300);
		tell_all(p, false);
		pause_us(p, 100, 1500);
		tell_all(p, true);
	}
}

/* ---- the end ------------------------------------------------------------ */

static void check_store(struct vp_client *c)
{
	struct vlist_report r;
	int err = open_store(c);

	if (!err)
		err = vlist_check(c->store, &r);
	if (err)
		fail(c->p, "the store cannot be checked: %s", error_last());
	else if (r.bad_entries || r.bad_nodes || r.loops)
		fail(c->p,
		     "the store: %llu bad entries, %llu bad nodes, "
		     "%llu loops",
		     (unsigned long long)r.bad_entries,
		     (unsigned long long)r.bad_nodes,
		     (unsigned long long)r.loops);
	close_store(c);
}

static void ender(void *arg)
{
	struct vp *p = arg;
	const struct sim_net_stats *st =
		sim_net_stats(scenario_stage_net(p->stage));

	while (p->running) {
		client_clock_relax(&p->node->clock);
		if (st->sent > FRAMES_MAX) {
			fail(p, "clients go round in circles");
			sim_stop(scenario_stage_sim(p->stage));
		}
	}
	p->client[0].countdown = 0;
	check_store(&p->client[0]);
	sim_stop(scenario_stage_sim(p->stage));
}

static void finish(struct vp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	struct vlist_play_counts *n = &p->res->counts;
	const struct sim_net_stats *st =
		sim_net_stats(scenario_stage_net(p->stage));
	struct lin_result lin = {0};
	int err;

	if (p->running)
		fail(p, "%u clients have not finished", p->running);
	if (p->mood == VP_CALM && n->timeouts + n->stale + n->fenced)
		fail(p, "nothing was lost, and operations failed");
	err = lin_check(p->history, LIN_MODEL_KV, NULL, &lin);
	if (err)
		fail(p, "the checker failed: %d", err);
	else if (lin.verdict == LIN_VIOLATED)
		fail(p, "not linearizable: %s", lin.text);
	else if (lin.verdict == LIN_UNKNOWN)
		fail(p, "the checker gave up");
	if (lin.verdict == LIN_VIOLATED && p->opt->trace)
		lin_show_key(p->history, lin.key, lin.op, 400, p->opt->trace);
	n->checked = lin_history_op_count(p->history);
	n->steps = lin.steps;
	n->frames = st->sent;
	n->lost = st->lost;
	n->sent_again = scenario_steer_count(&p->steer, "sent_again");
	n->held = scenario_steer_count(&p->steer, "held");
	n->other_uses = scenario_steer_count(&p->steer, "other_uses");
	n->virtual_us = sim_now_ns(sim) / 1000;
	p->res->hash = sim_trace_hash(sim);
}

/* ---- the world ---------------------------------------------------------- */

static int make_store(struct vp *p)
{
	struct vp_client maker = {.p = p, .host = p->client[0].host};
	struct kit_port port = {0};
	int err;

	sim_rand_init(&maker.rand, p->opt->seed, 999);
	err = port_open(&maker, &port);
	if (err)
		return err;
	err = vlist_format(&port, &p->g);
	port_close(&maker, &port);
	return err;
}

static void starter(void *arg)
{
	struct vp *p = arg;
	int err = make_store(p);

	for (unsigned i = 0; i < p->client_count && !err; i++) {
		p->running++;
		err = scenario_host_spawn(p->client[i].host, "client",
					  client_main, &p->client[i]);
	}
	if (!err)
		err = scenario_host_spawn(p->node, "ender", ender, p);
	if (!err)
		err = sim_fiber_spawn(scenario_stage_sim(p->stage), "director",
				      director, p);
	if (err)
		fail(p, "the play cannot start: %d", err);
}

static int make_hosts(struct vp *p)
{
	uint32_t versions = p->mood == VP_ABSENT
				    ? VERSIONS_FEW
				    : sim_rand_range(&p->rand, 60, 200);
	struct vlist_options o = {.keys = 2 * KEYS,
				  .versions = versions,
				  .value_max = VALUE_MAX,
				  .clients = 2 * CLIENTS_MAX,
				  .failure_ms = FAILURE_MS,
				  .chunk_nodes =
					  sim_rand_range(&p->rand, 4, 8)};
	int err = vlist_geometry_make(&o, &p->g);

	if (!err)
		err = scenario_host_add(p->stage, "node", &p->node);
	if (!err)
		err = scenario_region_create(p->node, p->g.size_bytes, false,
					     &p->region);
	p->client_count = sim_rand_range(
		&p->rand, 2, p->mood == VP_ABSENT ? FEW_CLIENTS : CLIENTS_MAX);
	for (unsigned i = 0; i < p->client_count && !err; i++) {
		struct vp_client *c = &p->client[i];

		c->p = p;
		c->index = i;
		sim_rand_init(&c->rand, p->opt->seed, 1000 + i);
		err = scenario_host_add(p->stage, "client", &c->host);
	}
	return err;
}

static int make_world(struct vp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .trace = p->opt->trace};
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 78);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	p->mood = (enum vp_mood[]){VP_ROUGH, VP_ROUGH, VP_CALM,
				   VP_ABSENT}[p->opt->seed % 4];
	if (p->mood != VP_CALM && sim_rand_below(r, 4)) {
		cfg.link.faults.loss_ppm = sim_rand_below(r, 40000);
		cfg.link.faults.dup_ppm = sim_rand_below(r, 10000);
		cfg.link.faults.reorder_ppm = sim_rand_below(r, 20000);
		cfg.link.faults.reorder_max_ps = 20 * SIM_US;
		cfg.link.faults.corrupt_ppm = sim_rand_below(r, 2000);
	}
	p->bypass_of = p->mood == VP_CALM || sim_rand_below(r, 2) ? 3 : 0;
	err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	sim_net_hide_addresses(scenario_stage_net(p->stage));
	err = lin_history_create(&p->history);
	if (!err)
		err = make_hosts(p);
	if (!err)
		err = scenario_steer_create(
			&p->steer, scenario_stage_net(p->stage), p->node,
			p->region, &p->g, p->opt->steer ? "" : NULL);
	return err ? err
		   : scenario_host_spawn(p->client[0].host, "starter", starter,
					 p);
}

const enum plant vlist_play_bugs[] = {
	PLANT_vouch_appends, PLANT_vouch_reads, PLANT_no_break,
	PLANT_hide_next,     PLANT_other_use,	PLANT_commit_failed,
	PLANT_trust_all,     PLANT_none,
};

int vlist_play_run(const struct vlist_play_options *opt,
		   struct vlist_play_result *res)
{
	struct vp *p = calloc(1, sizeof(*p));
	int err;

	plant_set(opt->bug);
	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->opt = opt;
	p->res = res;
	err = make_world(p);
	if (!err) {
		(void)sim_run_until(scenario_stage_sim(p->stage), LIMIT_PS);
		finish(p);
	}
	/* Of those who were stopped in the middle. */
	if (p->stage)
		sim_fiber_kill_all(scenario_stage_sim(p->stage));
	for (unsigned i = 0; i < p->client_count; i++)
		vlist_client_abandon(p->client[i].store);
	scenario_steer_destroy(&p->steer);
	if (p->stage)
		scenario_stage_destroy(p->stage);
	lin_history_destroy(p->history);
	free(p);
	return err;
}
