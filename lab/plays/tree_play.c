/* SPDX-License-Identifier: Apache-2.0 */
/* The play of the ordered index: its world, its clients, its end. */
#include "tree_play.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "index/tree.h"
#include "rig/stage.h"
#include "rig/tor_sword.h"
#include "sim/fiber.h"
#include "sim/lin.h"

enum {
	HOSTS_MAX = 3,
	CLIENTS_MAX = 6,
	CONNS_MAX = 512,
	KEYS = 32,
	KEY_MAX = 8,
	OPS = 60,
	FAILURE_MS = 12,
	DEADLINE_MS = 200,
	VALUE_MAX = 3000,
	RETRIES = 4, /* of opening a client */
	RESTARTS_MAX = 3,
};

#define LIMIT_PS (60ull * 1000 * SIM_MS)

struct tp;

struct tp_client {
	struct tp *p;
	unsigned index;
	struct scenario_host *host;
	struct tree_locals *locals;
	struct sim_rand rand;
	struct tree_client *tree;
	unsigned countdown; /* requests until it happens; 0: never */
	bool sleeps;
	bool may_cut;
	unsigned conn;	   /* its own */
	unsigned cut_conn; /* that will be cut, or was */
};

/* A connection by number; link is NULL when it was given back. */
struct tp_conn {
	struct client_link *link;
	struct scenario_host *host;
	bool is_dead;
};

struct tp {
	const struct tree_play_options *opt;
	struct tree_play_result *res;
	struct sim_rand rand;
	struct scenario_stage *stage;
	struct scenario_host *node;
	struct scenario_region *region, *lock_region;
	struct scenario_sword sword;
	struct tree_geometry g;
	struct lin_history *history;
	struct scenario_host *host[HOSTS_MAX];
	struct tree_locals *locals[HOSTS_MAX];
	struct tp_client client[CLIENTS_MAX];
	unsigned host_count, client_count;
	unsigned running;
	bool may_cut;
	uint32_t grow_of; /* of so many changes all but one are puts */
	uint64_t next_value;
	struct tp_conn conn[CONNS_MAX];
	unsigned conn_count;
};

static void fail(struct tp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

static uint64_t now_ns(const struct tp *p)
{
	return sim_now_ns(scenario_stage_sim(p->stage));
}

/* ---- connections -------------------------------------------------------- */

static int port_fence(void *ctx, const char *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct tp_client *c = ctx;
	unsigned i = (unsigned)atoi(conn);

	if (i >= c->p->conn_count || !c->p->conn[i].link)
		return 0;
	scenario_sword_end(&c->p->sword, c->p->conn[i].host,
			   c->p->conn[i].link);
	return -ibv_modify_qp(scenario_link_far_qp(c->p->conn[i].link), &err,
			      IBV_QP_STATE);
}

static int port_is_alive(void *ctx, const char *conn)
{
	struct tp_client *c = ctx;
	unsigned i = (unsigned)atoi(conn);

	return i < c->p->conn_count && c->p->conn[i].link &&
	       !c->p->conn[i].is_dead;
}

static int port_open(struct tp_client *c, struct kit_port *port)
{
	struct client_link_options o = {.rights = CLIENT_LINK_ALL};
	struct tp *p = c->p;
	int err;

	if (p->conn_count == CONNS_MAX)
		return error_set(-EMFILE, "the play has no connection left");
	err = scenario_link_open(c->host, p->region, &o, &port->link);
	if (err)
		return err;
	/* A switch that was just restarted knows nobody yet: the connection is
	 * one that does not work. */
	(void)!scenario_sword_conn(&p->sword, c->host, port->link);
	snprintf(port->conn, sizeof(port->conn), "%u", p->conn_count);
	c->conn = p->conn_count;
	p->conn[p->conn_count++] =
		(struct tp_conn){.link = port->link, .host = c->host};
	port->addr = p->region->addr;
	port->size_bytes = p->region->size_bytes;
	port->rkey = p->region->rkey;
	port->lock_addr = p->lock_region->addr;
	port->lock_rkey = p->lock_region->rkey;
	return 0;
}

static void port_close(void *ctx, struct kit_port *port)
{
	struct tp_client *c = ctx;
	struct tp_conn *conn = &c->p->conn[atoi(port->conn)];

	/* The far end of a dead client's stays, until it is fenced or the
	 * play ends: what it has sent may still arrive. */
	conn->is_dead = true;
	if (conn->link && (!c->tree || !tree_client_is_crashed(c->tree))) {
		scenario_sword_end(&c->p->sword, c->host, port->link);
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

/* A connection ends, in the middle of whatever goes over it, also of a WRITE of
 * several packets. */
static void cutter(void *arg)
{
	struct tp_client *c = arg;
	struct tp *p = c->p;
	char conn[16];

	sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
			   sim_rand_range(&c->rand, 0, 40000) * SIM_NS);
	snprintf(conn, sizeof(conn), "%u", c->cut_conn);
	if (!p->conn[c->cut_conn].link)
		return;
	p->res->counts.cuts++;
	if (port_fence(c, conn))
		fail(p, "a connection cannot be cut");
}

static bool is_structural(int point)
{
	return point == TREE_POINT_LEFT || point == TREE_POINT_RIGHT ||
	       point == TREE_POINT_NODE;
}

static void maybe_cut(struct tp_client *c, int point)
{
	if (sim_rand_below(&c->rand, is_structural(point) ? 12 : 400) ||
	    c->cut_conn == c->conn)
		return;
	c->cut_conn = c->conn;
	if (sim_fiber_spawn(scenario_stage_sim(c->p->stage), "cutter", cutter,
			    c))
		fail(c->p, "no memory for a fiber");
}

static bool crash(void *ctx, int point)
{
	struct tp_client *c = ctx;
	uint64_t end;

	if (c->may_cut)
		maybe_cut(c, point);
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

static int open_tree(struct tp_client *c)
{
	struct tree_config cfg = {.deadline_ms = DEADLINE_MS,
				  .cache_nodes =
					  sim_rand_below(&c->rand, 2) ? 64 : 1,
				  .locals = c->locals,
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
		err = tree_client_create(&port, &c->p->g, &cfg, &c->tree);
		if (!err)
			return 0;
		c->tree = NULL;
		port_close(c, &port);
	}
	return err;
}

static void close_tree(struct tp_client *c)
{
	struct tree_play_counts *n = &c->p->res->counts;
	const struct tree_stats *s;

	if (!c->tree)
		return;
	s = tree_client_stats(c->tree);
	n->torn += s->torn;
	n->rights += s->rights;
	n->splits += s->splits;
	n->grown += s->grown;
	n->helped += s->helped;
	n->pruned += s->pruned;
	n->handed += s->handed;
	n->taken_over += s->taken_over;
	n->fenced += s->fenced;
	n->mended += s->mended;
	n->lost_entries += s->lost;
	n->adopted += s->adopted;
	n->reclaimed += s->reclaimed;
	tree_client_destroy(c->tree);
	c->tree = NULL;
}

/* ---- keys and values ---------------------------------------------------- */

/* In the order of their numbers; of different lengths, some the beginning of
 * the next. */
static size_t make_key(unsigned key, char out[KEY_MAX])
{
	return (size_t)snprintf(out, KEY_MAX, "%02u%s", key / 2,
				key % 2 ? "xyz" : "");
}

static unsigned read_key(const void *bytes, size_t len)
{
	char text[KEY_MAX] = {0}, again[KEY_MAX];
	unsigned key;

	if (len >= KEY_MAX)
		return KEYS;
	memcpy(text, bytes, len);
	key = 2 * (unsigned)strtoul(text, NULL, 10) + (len > 2);
	return make_key(key, again) == len && memcmp(again, text, len) == 0
		       ? key
		       : KEYS;
}

static size_t make_value(const struct tp *p, uint64_t id,
			 uint8_t out[VALUE_MAX])
{
	size_t len = 8 + id % (p->g.value_max - 7);

	memcpy(out, &id, 8);
	for (size_t i = 8; i < len; i++)
		out[i] = (uint8_t)(id * 31 + i);
	return len;
}

/* The value's number; a torn or foreign one is a violation. */
static uint64_t read_value(struct tp *p, const uint8_t *v, size_t len)
{
	uint8_t want[VALUE_MAX];
	uint64_t id = 0;

	if (len >= 8)
		memcpy(&id, v, 8);
	if (len < 8 || make_value(p, id, want) != len ||
	    memcmp(v, want, len) != 0)
		fail(p, "a value is torn or foreign");
	return id;
}

/* ---- operations --------------------------------------------------------- */

static int64_t invoke(struct tp_client *c, uint64_t key, enum lin_call call,
		      uint64_t a)
{
	int64_t op = lin_invoke(c->p->history, c->index, lin_int(key), call,
				lin_int(a), lin_int(0), now_ns(c->p));

	if (op < 0)
		fail(c->p, "the history is full");
	return op;
}

/* How an operation that says nothing about the value ended. */
static enum lin_type type_of(struct tp_client *c, int err)
{
	struct tree_play_counts *n = &c->p->res->counts;

	switch (err) {
	case 0:
		return LIN_OK;
	case -ENOSPC:
		n->full++;
		return LIN_FAIL;
	case -ETIMEDOUT:
		n->timeouts++;
		return LIN_INFO;
	case -ESTALE:
		n->stale++;
		return LIN_INFO;
	case -ESHUTDOWN:
		return LIN_INFO;
	default:
		fail(c->p, "an operation failed: %d, %s", err, error_last());
		return LIN_INFO;
	}
}

static void do_get(struct tp_client *c, unsigned key)
{
	int64_t op = invoke(c, key, LIN_READ, 0);
	uint8_t buf[VALUE_MAX];
	char name[KEY_MAX];
	size_t len = 0;
	int err = tree_get(c->tree, name, make_key(key, name), buf, sizeof(buf),
			   &len);

	if (err && err != -ENOENT) {
		lin_return(c->p->history, op, type_of(c, err), LIN_SAID_NOTHING,
			   lin_nil(), now_ns(c->p));
		return;
	}
	c->p->res->counts.gets++;
	c->p->res->counts.misses += err != 0;
	lin_return_got(c->p->history, op,
		       err ? lin_nil() : lin_int(read_value(c->p, buf, len)),
		       now_ns(c->p));
}

static void do_put(struct tp_client *c, unsigned key)
{
	uint64_t id = ++c->p->next_value;
	uint8_t value[VALUE_MAX];
	size_t len = make_value(c->p, id, value);
	int64_t op = invoke(c, key, LIN_WRITE, id);
	char name[KEY_MAX];
	int err = tree_put(c->tree, name, make_key(key, name), value, len);

	c->p->res->counts.puts++;
	lin_return(c->p->history, op, type_of(c, err), LIN_SAID_NOTHING,
		   lin_nil(), now_ns(c->p));
}

static void do_del(struct tp_client *c, unsigned key)
{
	int64_t op = invoke(c, key, LIN_DELETE, 0);
	char name[KEY_MAX];
	int err = tree_del(c->tree, name, make_key(key, name));

	c->p->res->counts.deletes++;
	if (err == -ENOENT)
		lin_return(c->p->history, op, LIN_OK, LIN_NO, lin_nil(),
			   now_ns(c->p));
	else
		lin_return(c->p->history, op, type_of(c, err),
			   err ? LIN_SAID_NOTHING : LIN_YES, lin_nil(),
			   now_ns(c->p));
}

/* What a scan saw. */
struct sight {
	struct tp *p;
	int last;
	struct lin_value got[KEYS];
};

static int see(void *user, const void *bytes, size_t key_len, const void *value,
	       size_t len)
{
	struct sight *s = user;
	unsigned key = read_key(bytes, key_len);

	if (key >= KEYS) {
		fail(s->p, "a scan found a foreign key");
		return 0;
	}
	if ((int)key <= s->last)
		fail(s->p, "a scan found key %u after %d", key, s->last);
	s->last = (int)key;
	s->got[key] = lin_int(read_value(s->p, value, len));
	s->p->res->counts.pairs++;
	return 0;
}

/* One read of each key in the range, all as long as the scan. */
static void do_scan(struct tp_client *c, unsigned from, unsigned to)
{
	struct sight s = {.p = c->p, .last = (int)from - 1};
	char low[KEY_MAX], high[KEY_MAX];
	struct tree_range range = {.from = low,
				   .from_len = make_key(from, low),
				   .to = to < KEYS ? high : NULL,
				   .to_len = make_key(to, high)};
	int64_t op[KEYS];
	enum lin_type type;
	int err;

	for (unsigned i = from; i < to; i++)
		op[i] = invoke(c, i, LIN_READ, 0);
	err = tree_scan(c->tree, &range, see, &s);
	if (s.last >= (int)to)
		fail(c->p, "a scan went beyond its end");
	type = type_of(c, err);
	c->p->res->counts.scans++;
	for (unsigned i = from; i < to; i++)
		lin_return(c->p->history, op[i], type, LIN_YES, s.got[i],
			   now_ns(c->p));
}

static void step(struct tp_client *c)
{
	unsigned key = sim_rand_below(&c->rand, KEYS);
	unsigned to = key + 1 + sim_rand_below(&c->rand, KEYS - key);

	c->countdown = 0;
	if (sim_rand_below(&c->rand, 100) < 8) {
		c->countdown = sim_rand_range(&c->rand, 1, 12);
		c->sleeps = sim_rand_below(&c->rand, 3) == 0;
	}
	switch (sim_rand_below(&c->rand, 8)) {
	case 0:
	case 1:
		do_get(c, key);
		break;
	case 2:
		do_scan(c, key, to);
		break;
	default:
		if (sim_rand_below(&c->rand, c->p->grow_of))
			do_put(c, key);
		else
			do_del(c, key);
	}
	c->countdown = 0;
	if (tree_client_is_crashed(c->tree)) {
		close_tree(c);
		if (open_tree(c))
			fail(c->p, "a client cannot come back: %s",
			     error_last());
	}
}

static void client_main(void *arg)
{
	struct tp_client *c = arg;

	if (open_tree(c))
		fail(c->p, "a client cannot start: %s", error_last());
	for (unsigned i = 0; i < OPS && c->tree; i++)
		step(c);
	close_tree(c);
	c->p->running--;
}

/* ---- the switch --------------------------------------------------------- */

/* As a node does: it ends its connections, of whose operations the old switch
 * may have held some, before it declares itself to the next one. */
static int declare_again(struct tp *p)
{
	for (unsigned i = 0; i < p->conn_count; i++) {
		char conn[16];

		snprintf(conn, sizeof(conn), "%u", i);
		if (port_fence(&p->client[0], conn))
			return -EIO;
	}
	return scenario_sword_declare(&p->sword);
}

static void restarter(void *arg)
{
	struct tp *p = arg;
	unsigned n = sim_rand_below(&p->rand, RESTARTS_MAX + 1);

	while (n-- && p->running) {
		sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
				   sim_rand_range(&p->rand, 200, 20000) *
					   SIM_US);
		p->res->counts.replaced += scenario_sword_replaced(&p->sword);
		p->res->counts.restarts++;
		if (scenario_sword_restart(&p->sword))
			fail(p, "the switch cannot be started again");
		sim_fiber_sleep_ps(scenario_stage_sim(p->stage),
				   sim_rand_range(&p->rand, 1, 500) * SIM_US);
		if (declare_again(p))
			fail(p, "declaring again: %s", error_last());
	}
}

/* ---- the end ------------------------------------------------------------ */

/* After one more visit of everything, which finishes what is unfinished, every
 * key can be changed. */
static void check_tree(struct tp_client *c)
{
	struct tree_report r;
	int err = open_tree(c);

	for (unsigned i = 0; i < KEYS && !err; i++)
		do_put(c, i);
	if (!err)
		do_scan(c, 0, KEYS);
	if (!err)
		err = tree_check(c->tree, &r);
	if (err) {
		fail(c->p, "the index cannot be checked: %s", error_last());
	} else {
		c->p->res->counts.keys += r.keys;
		c->p->res->counts.unnamed += r.unnamed;
		if (tree_report_is_bad(&r))
			fail(c->p,
			     "the index: %llu bad nodes, %llu entries, %llu "
			     "links, %llu children",
			     (unsigned long long)r.bad_nodes,
			     (unsigned long long)r.bad_entries,
			     (unsigned long long)r.bad_links,
			     (unsigned long long)r.bad_children);
	}
	close_tree(c);
}

static void ender(void *arg)
{
	struct tp *p = arg;

	while (p->running)
		client_clock_relax(&p->node->clock);
	p->client[0].countdown = 0;
	p->client[0].may_cut = false;
	check_tree(&p->client[0]);
	sim_stop(scenario_stage_sim(p->stage));
}

static void finish(struct tp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	struct tree_play_counts *n = &p->res->counts;
	const struct sim_net_stats *st =
		sim_net_stats(scenario_stage_net(p->stage));
	struct lin_result lin = {0};
	int err;

	if (p->running)
		fail(p, "%u clients have not finished", p->running);
	err = lin_check(p->history, LIN_MODEL_KV, NULL, &lin);
	if (err)
		fail(p, "the checker failed: %d", err);
	else if (lin.verdict == LIN_VIOLATED)
		fail(p, "not linearizable: %s", lin.text);
	else if (lin.verdict == LIN_UNKNOWN)
		fail(p, "the checker gave up");
	if (lin.verdict == LIN_VIOLATED && p->opt->trace)
		lin_show_key(p->history, lin.key, lin.op, 400, p->opt->trace);
	n->replaced += scenario_sword_replaced(&p->sword);
	n->checked = lin_history_op_count(p->history);
	n->steps = lin.steps;
	n->frames = st->sent;
	n->lost = st->lost;
	n->virtual_us = sim_now_ns(sim) / 1000;
	p->res->hash = sim_trace_hash(sim);
}

/* ---- the world ---------------------------------------------------------- */

static void starter(void *arg)
{
	struct tp *p = arg;
	struct tp_client maker = {.p = p, .host = p->host[0]};
	struct kit_port port = {0};
	int err = port_open(&maker, &port);

	if (!err) {
		err = tree_format(&port, &p->g);
		port_close(&maker, &port);
	}
	for (unsigned i = 0; i < p->client_count && !err; i++) {
		p->running++;
		err = scenario_host_spawn(p->client[i].host, "client",
					  client_main, &p->client[i]);
	}
	if (!err)
		err = scenario_host_spawn(p->node, "ender", ender, p);
	if (!err && p->opt->sword)
		err = sim_fiber_spawn(scenario_stage_sim(p->stage), "restarter",
				      restarter, p);
	if (err)
		fail(p, "the play cannot start: %d", err);
}

/* Four to eight entries in a leaf: of small nodes, or of large values in nodes
 * of several packets. Room for all keys, and seldom not. */
static int make_geometry(struct tp *p)
{
	bool is_large = sim_rand_below(&p->rand, 2) == 0;
	struct tree_options o = {
		.node_bytes = is_large ? sim_rand_range(&p->rand, 13, 16) * 1024
				       : sim_rand_range(&p->rand, 16, 22) * 16,
		.key_max = KEY_MAX,
		.value_max = is_large ? VALUE_MAX : 16,
		.clients = 2 * CLIENTS_MAX,
		.failure_ms = FAILURE_MS,
		.locks = sim_rand_range(&p->rand, 1, 16),
		.chunk_nodes = sim_rand_range(&p->rand, 1, 4)};

	o.size_bytes =
		(uint64_t)o.node_bytes * sim_rand_range(&p->rand, 14, 64);
	return tree_geometry_make(&o, &p->g);
}

static int make_clients(struct tp *p)
{
	int err = 0;

	p->host_count = sim_rand_range(&p->rand, 1, HOSTS_MAX);
	p->client_count = sim_rand_range(&p->rand, 2, CLIENTS_MAX);
	for (unsigned i = 0; i < p->host_count && !err; i++) {
		err = scenario_host_add(p->stage, "client", &p->host[i]);
		if (!err)
			err = tree_locals_create(&p->g, &p->locals[i]);
	}
	for (unsigned i = 0; i < p->client_count; i++) {
		struct tp_client *c = &p->client[i];

		*c = (struct tp_client){.p = p,
					.index = i,
					.host = p->host[i % p->host_count],
					.locals = p->locals[i % p->host_count],
					.may_cut = p->may_cut,
					.cut_conn = CONNS_MAX};
		sim_rand_init(&c->rand, p->opt->seed, 1000 + i);
	}
	return err;
}

static int make_world(struct tp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .trace = p->opt->trace};
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 79);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	/* On slow links a WRITE of several packets takes its time. */
	cfg.link.bits_per_s = 25000000000ull >> sim_rand_below(r, 6);
	if (sim_rand_below(r, 4)) {
		cfg.link.faults.loss_ppm = sim_rand_below(r, 40000);
		cfg.link.faults.dup_ppm = sim_rand_below(r, 10000);
		cfg.link.faults.reorder_ppm = sim_rand_below(r, 20000);
		cfg.link.faults.reorder_max_ps = 20 * SIM_US;
		cfg.link.faults.corrupt_ppm = sim_rand_below(r, 2000);
	}
	p->grow_of = sim_rand_range(r, 2, 3);
	p->may_cut = sim_rand_below(r, 2);
	err = scenario_stage_create(&cfg, &p->stage);
	if (!err)
		err = lin_history_create(&p->history);
	if (!err)
		err = make_geometry(p);
	if (!err)
		err = scenario_host_add(p->stage, "node", &p->node);
	if (!err)
		err = scenario_region_create(p->node, p->g.size_bytes, false,
					     &p->region);
	if (!err)
		err = scenario_region_create(p->node, p->g.lock_bytes, true,
					     &p->lock_region);
	if (!err)
		err = make_clients(p);
	if (!err && p->opt->sword)
		err = scenario_sword_create(
			&p->sword, scenario_stage_net(p->stage), p->node,
			p->lock_region, p->opt->sword);
	return err ? err
		   : scenario_host_spawn(p->host[0], "starter", starter, p);
}

const enum plant tree_play_bugs[] = {
	PLANT_tree_torn,  PLANT_tree_fences,  PLANT_tree_steal,
	PLANT_tree_early, PLANT_tree_no_lock, PLANT_none,
};

int tree_play_run(const struct tree_play_options *opt,
		  struct tree_play_result *res)
{
	struct tp *p = calloc(1, sizeof(*p));
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
	scenario_sword_destroy(&p->sword);
	if (p->stage)
		scenario_stage_destroy(p->stage);
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		tree_locals_destroy(p->locals[i]);
	lin_history_destroy(p->history);
	free(p);
	return err;
}
