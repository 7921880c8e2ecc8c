/* SPDX-License-Identifier: Apache-2.0 */
/* The play of the ordered index: its world, its clients, its end. */
#include "tree_play.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "index/tree.h"
#include "play_client.h"
#include "rig/tor_sword.h"
#include "rig/walker.h"
#include "sim/fiber.h"

enum {
	HOSTS_MAX = 3,
	CLIENTS_MAX = 6,
	KEYS = 32,
	KEY_MAX = 8,
	OPS = 60,
	FAILURE_MS = 12,
	DEADLINE_MS = 200,
	VALUE_MAX = 3000,
	RESTARTS_MAX = 3,
	WALK_NODES_MAX = 1000,
};

struct tp_client {
	struct play_client base;
	struct tree_locals *locals;
	struct tree_client *tree;
	struct rig_walker walker;
	struct tree_walker walks;
	unsigned cut_conn; /* that will be cut, or was */
};

struct tp {
	struct play_run run;
	struct tree_play_counts *n;
	const char *sword_options;
	struct rig_host *node;
	struct rig_sword sword;
	struct tree_geometry g;
	struct rig_host *host[HOSTS_MAX];
	struct tree_locals *locals[HOSTS_MAX];
	struct walk_program *program[TREE_WALKS]; /* NULL: nodes too large */
	struct rng walk_rand; /* of its own: runs without walks stay the same */
	struct tp_client client[CLIENTS_MAX];
	bool may_cut;
	uint32_t grow_of; /* of so many changes all but one are puts */
	struct play_store store;
};

static struct tp *tp_of(const struct tp_client *c)
{
	return (struct tp *)c->base.run;
}

static void tell_switch(struct play_client *c, struct rig_conn *conn,
			bool is_new)
{
	struct tp *p = (struct tp *)c->run;

	/* A switch that was just restarted knows nobody yet: the connection is
	 * one that does not work. */
	if (is_new)
		(void)!rig_sword_conn(&p->sword, conn->host, conn->link, "");
	else
		rig_sword_end(&p->sword, conn->host, conn->link);
}

/* ---- dying and sleeping ------------------------------------------------- */

/* A connection ends, in the middle of whatever goes over it, also of a WRITE of
 * several packets. */
static void cutter(void *arg)
{
	struct tp_client *c = arg;
	struct tp *p = tp_of(c);
	struct rig_conn *conn = &p->store.conns.at[c->cut_conn];

	sim_fiber_sleep_ps(p->run.sim,
			   sim_rand_range(&c->base.rand, 0, 40000) * SIM_NS);
	if (!conn->link)
		return;
	p->n->cuts++;
	if (play_store_fence(&p->run, conn))
		play_fail(&p->run, "a connection cannot be cut");
}

static bool is_structural(int point)
{
	return point == TREE_POINT_LEFT || point == TREE_POINT_RIGHT ||
	       point == TREE_POINT_NODE;
}

static void maybe_cut(struct tp_client *c, int point)
{
	if (sim_rand_below(&c->base.rand, is_structural(point) ? 12 : 400) ||
	    c->cut_conn == c->base.conn)
		return;
	c->cut_conn = c->base.conn;
	if (sim_fiber_spawn(c->base.run->sim, "cutter", cutter, c))
		play_fail(c->base.run, "no memory for a fiber");
}

static bool crash(void *ctx, int point)
{
	struct tp_client *c = ctx;

	/* Not any more when the index is checked. */
	if (tp_of(c)->may_cut && c->base.run->running)
		maybe_cut(c, point);
	return play_client_crash(c, point);
}

static struct tree_client *tree_of(const struct play_client *c)
{
	return ((const struct tp_client *)c)->tree;
}

static bool is_crashed(const struct play_client *c)
{
	return tree_client_is_crashed(tree_of(c));
}

/* ---- walks -------------------------------------------------------------- */

static void walk_pause(void *ctx)
{
	struct tp_client *c = ctx;

	sim_fiber_sleep_ps(c->base.run->sim,
			   sim_rand_range(&tp_of(c)->walk_rand, 0, 30000) *
				   SIM_NS);
}

static int walk_run(void *ctx, enum tree_walk walk, uint64_t start, void *pad,
		    size_t pad_bytes, size_t send_bytes, uint32_t *trips)
{
	struct tp_client *c = ctx;

	memset((uint8_t *)pad + send_bytes, 0, pad_bytes - send_bytes);
	c->walker = (struct rig_walker){.region = tp_of(c)->store.region,
					.iterations = WALK_NODES_MAX,
					.between = walk_pause,
					.ctx = c};
	*trips = 1;
	return rig_walker_run(&c->walker, tp_of(c)->program[walk], start, pad);
}

/* Where nodes are small enough. */
static int make_programs(struct tp *p)
{
	int err = 0;

	for (unsigned i = 0; i < TREE_WALKS && !err; i++) {
		struct walk_build *b = NULL;
		struct walk_image image;

		if (tree_program_make(&p->g, (enum tree_walk)i, &b, &image))
			continue;
		err = walk_program_open(&image, NULL, &p->program[i]);
		walk_build_destroy(b);
	}
	return err;
}

/* ---- clients ------------------------------------------------------------ */

static int create(struct play_client *client, struct kit_remote *remote,
		  const void *config)
{
	struct tp_client *c = (struct tp_client *)client;
	int err = tree_client_create(remote, &tp_of(c)->g, config, &c->tree);

	if (err)
		c->tree = NULL;
	return err;
}

static int open_tree(struct play_client *client)
{
	struct tp_client *c = (struct tp_client *)client;
	bool can_walk = tp_of(c)->program[TREE_WALK_SUM] != NULL;
	struct tree_config cfg = {
		.deadline_ms = DEADLINE_MS,
		.cache_nodes = sim_rand_below(&client->rand, 2) ? 64 : 1,
		.locals = c->locals,
		.walker = can_walk ? &c->walks : NULL,
		.walks_gets =
			can_walk && sim_rand_below(&tp_of(c)->walk_rand, 2),
		.crash = crash,
		.ctx = c};

	c->walks = (struct tree_walker){.run = walk_run, .ctx = c};
	return play_store_open(client, create, &cfg);
}

static void close_tree(struct play_client *client)
{
	struct tp_client *c = (struct tp_client *)client;
	struct tree_play_counts *n = tp_of(c)->n;
	const struct tree_stats *s = tree_client_stats(c->tree);

	n->walks += s->walks;
	n->walks_short += s->walks_short;
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

static size_t value_bytes(const struct play_run *r, uint64_t id)
{
	return 8 + id % (((const struct tp *)r)->g.value_max - 7);
}

/* ---- operations --------------------------------------------------------- */

static int get(struct play_client *c, unsigned key, uint8_t *buf, size_t *len)
{
	char name[KEY_MAX];

	return tree_get(tree_of(c), name, make_key(key, name), buf, VALUE_MAX,
			len);
}

static int put(struct play_client *c, unsigned key, const uint8_t *value,
	       size_t len)
{
	char name[KEY_MAX];

	return tree_put(tree_of(c), name, make_key(key, name), value, len);
}

static int del(struct play_client *c, unsigned key)
{
	char name[KEY_MAX];

	return tree_del(tree_of(c), name, make_key(key, name));
}

/* What a scan saw. */
struct sight {
	struct play_run *run;
	struct tree_play_counts *n;
	int last;
	struct lin_value got[KEYS];
};

static int see(void *user, const void *bytes, size_t key_len, const void *value,
	       size_t len)
{
	struct sight *s = user;
	unsigned key = read_key(bytes, key_len);

	if (key >= KEYS) {
		play_fail(s->run, "a scan found a foreign key");
		return 0;
	}
	if ((int)key <= s->last)
		play_fail(s->run, "a scan found key %u after %d", key, s->last);
	s->last = (int)key;
	s->got[key] = lin_int(play_value_read(s->run, value, len));
	s->n->pairs++;
	return 0;
}

/* One read of each key in the range, all as long as the scan. */
static void do_scan(struct tp_client *c, unsigned from, unsigned to)
{
	struct sight s = {
		.run = c->base.run, .n = tp_of(c)->n, .last = (int)from - 1};
	char low[KEY_MAX], high[KEY_MAX];
	struct tree_range range = {.from = low,
				   .from_len = make_key(from, low),
				   .to = to < KEYS ? high : NULL,
				   .to_len = make_key(to, high)};
	int64_t op[KEYS];
	enum lin_type type;
	int err;

	for (unsigned i = from; i < to; i++)
		op[i] = play_invoke(&c->base, i, LIN_READ, 0, 0);
	err = tree_scan(c->tree, &range, see, &s);
	if (s.last >= (int)to)
		play_fail(c->base.run, "a scan went beyond its end");
	type = play_ended(&c->base, err);
	tp_of(c)->n->scans++;
	for (unsigned i = from; i < to; i++)
		lin_return(c->base.run->history, op[i], type, LIN_YES, s.got[i],
			   play_now_ns(c->base.run));
}

/* The sum of a range with one key that may be there is a read of that key. */
static void do_sum(struct tp_client *c, unsigned key)
{
	int64_t op = play_invoke(&c->base, key, LIN_READ, 0, 0);
	char low[KEY_MAX], high[KEY_MAX];
	struct tree_range range = {.from = low,
				   .from_len = make_key(key, low),
				   .to = high,
				   .to_len = make_key(key + 1, high)};
	struct tree_reduced got = {0};
	int err = tree_reduce(c->tree, &range, false, &got);

	if (!err && (got.count > 1 || got.sum_high ||
		     got.sum != (uint64_t)got.min || got.min != got.max))
		play_fail(c->base.run, "a sum of one key is that of others");
	if (!err && !got.count)
		err = -ENOENT;
	tp_of(c)->n->sums++;
	(void)play_return_read(&c->base, op, err, (const uint8_t *)&got.sum,
			       sizeof(got.sum));
}

static void step(struct play_client *client)
{
	struct tp_client *c = (struct tp_client *)client;
	struct rng *r = &client->rand;
	unsigned key = sim_rand_below(r, KEYS);
	unsigned to = key + 1 + sim_rand_below(r, KEYS - key);

	play_client_arm(client, 8, 12);
	switch (sim_rand_below(r, 8)) {
	case 0:
	case 1:
		if (tp_of(c)->g.value_max == TREE_NUMBER_BYTES &&
		    sim_rand_below(&tp_of(c)->walk_rand, 2))
			do_sum(c, key);
		else
			(void)play_get(client, key);
		break;
	case 2:
		do_scan(c, key, to);
		break;
	default:
		if (sim_rand_below(r, tp_of(c)->grow_of))
			play_put(client, key);
		else
			play_del(client, key);
	}
}

/* ---- the switch --------------------------------------------------------- */

/* As a node does: it ends its connections, of whose operations the old switch
 * may have held some, before it declares itself to the next one. */
static int declare_again(struct tp *p)
{
	for (unsigned i = 0; i < p->store.conns.count; i++)
		if (play_store_fence(&p->run, &p->store.conns.at[i]))
			return -EIO;
	return rig_sword_declare(&p->sword);
}

static void restarter(void *arg)
{
	struct tp *p = arg;
	unsigned n = sim_rand_below(&p->run.rand, RESTARTS_MAX + 1);

	while (n-- && p->run.running) {
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_range(&p->run.rand, 200, 20000) *
					   SIM_US);
		p->n->replaced += rig_tor_count(p->sword.tor, "replaced");
		p->n->restarts++;
		if (rig_sword_restart(&p->sword))
			play_fail(&p->run,
				  "the switch cannot be started again");
		sim_fiber_sleep_ps(p->run.sim,
				   sim_rand_range(&p->run.rand, 1, 500) *
					   SIM_US);
		if (declare_again(p))
			play_fail(&p->run, "declaring again: %s", error_last());
	}
}

/* ---- the end ------------------------------------------------------------ */

/* After one more visit of everything, which finishes what is unfinished, every
 * key can be changed. */
static int check(struct play_client *client)
{
	struct tp_client *c = (struct tp_client *)client;
	const struct tree_range all = {0};
	struct tree_reduced sum;
	struct tree_report r;
	int err;

	for (unsigned i = 0; i < KEYS; i++)
		play_put(client, i);
	do_scan(c, 0, KEYS);
	err = tree_reduce(c->tree, &all, true, &sum);
	if (!err)
		err = tree_check(c->tree, &r);
	if (err)
		return err;
	if (sum.count != r.keys)
		play_fail(client->run,
			  "%" PRIu64 " keys were counted of %" PRIu64,
			  sum.count, r.keys);
	tp_of(c)->n->keys += r.keys;
	tp_of(c)->n->unnamed += r.unnamed;
	if (tree_report_is_bad(&r))
		play_fail(client->run,
			  "the index: %" PRIu64 " bad nodes, %" PRIu64
			  " entries, %" PRIu64 " links, %" PRIu64 " children",
			  r.bad_nodes, r.bad_entries, r.bad_links,
			  r.bad_children);
	return 0;
}

static int judge(struct play_run *r)
{
	struct tp *p = (struct tp *)r;

	p->n->replaced += rig_tor_count(p->sword.tor, "replaced");
	return 0;
}

/* ---- the world ---------------------------------------------------------- */

static int format(struct play_run *r, struct kit_remote *remote)
{
	return tree_format(remote, &((struct tp *)r)->g);
}

/* Four to eight entries in a leaf: of small nodes, or of large values in nodes
 * of several packets. Room for all keys, and seldom not. */
static int make_geometry(struct tp *p)
{
	bool is_large = sim_rand_below(&p->run.rand, 2) == 0;
	struct tree_options o = {
		.node_bytes =
			is_large ? sim_rand_range(&p->run.rand, 13, 16) * 1024
				 : sim_rand_range(&p->run.rand, 16, 22) * 16,
		.key_max = KEY_MAX,
		.value_max = is_large ? VALUE_MAX
			     : sim_rand_below(&p->walk_rand, 2)
				     ? 16
				     : TREE_NUMBER_BYTES,
		.clients = 2 * CLIENTS_MAX,
		.failure_ms = FAILURE_MS,
		.locks = sim_rand_range(&p->run.rand, 1, 16),
		.chunk_nodes = sim_rand_range(&p->run.rand, 1, 4)};

	o.size_bytes =
		(uint64_t)o.node_bytes * sim_rand_range(&p->run.rand, 14, 64);
	return tree_geometry_make(&o, &p->g);
}

static int make_clients(struct tp *p)
{
	struct rng *r = &p->run.rand;
	unsigned hosts = sim_rand_range(r, 1, HOSTS_MAX);
	unsigned clients = sim_rand_range(r, 2, CLIENTS_MAX);
	int err = 0;

	for (unsigned i = 0; i < hosts && !err; i++) {
		err = rig_host_add(p->run.stage, "client", &p->host[i]);
		if (!err)
			err = tree_locals_create(&p->g, &p->locals[i]);
	}
	for (unsigned i = 0; i < clients; i++) {
		struct tp_client *c = &p->client[i];

		c->locals = p->locals[i % hosts];
		c->cut_conn = RIG_CONNS_MAX;
		play_client_init(&p->run, &c->base, p->host[i % hosts]);
	}
	return err;
}

static int open_world(struct play_run *run)
{
	struct tp *p = (struct tp *)run;
	struct rig_stage_config cfg = {0};
	struct rng *r = &run->rand;
	int err;

	p->n = (struct tree_play_counts *)run->res->count;
	p->sword_options = ((const struct tree_play_options *)run->opt)->sword;
	run->ops = OPS;
	run->store = &p->store;
	p->store.tell = tell_switch;
	run->trouble = p->sword_options ? restarter : NULL;
	sim_rand_init(r, run->opt->seed, 79);
	sim_rand_init(&p->walk_rand, run->opt->seed, 80);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	/* On slow links a WRITE of several packets takes its time. */
	cfg.link.bits_per_s = 25000000000ull >> sim_rand_below(r, 6);
	if (sim_rand_below(r, 4))
		cfg.link.faults =
			play_draw_faults(r, 40000, 10000, 20000, 2000);
	p->grow_of = sim_rand_range(r, 2, 3);
	p->may_cut = sim_rand_below(r, 2);
	err = play_stage_open(run, &cfg);
	if (!err)
		err = make_geometry(p);
	if (!err)
		err = make_programs(p);
	if (!err)
		err = rig_host_add(run->stage, "node", &p->node);
	if (!err)
		err = rig_region_create(p->node, p->g.size_bytes, false,
					&p->store.region);
	if (!err)
		err = rig_region_create(p->node, p->g.lock_bytes, true,
					&p->store.locks);
	if (!err)
		err = make_clients(p);
	if (!err && p->sword_options)
		err = rig_sword_create(&p->sword, run->net, p->node,
				       p->store.locks, p->sword_options);
	return err ? err : play_clients_start(run);
}

static void close_world(struct play_run *r)
{
	struct tp *p = (struct tp *)r;

	rig_sword_destroy(&p->sword);
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		tree_locals_destroy(p->locals[i]);
	for (unsigned i = 0; i < TREE_WALKS; i++)
		walk_program_close(p->program[i]);
}

/* ---- the table ---------------------------------------------------------- */

static const char *point_name(unsigned point)
{
	static const char *const names[] = {
#define NAME(name, help) help,
		TREE_POINTS(NAME)
#undef NAME
	};

	return point < ARRAY_LEN(names) ? names[point] : NULL;
}

static const enum plant bugs[] = {
	PLANT_tree_torn,  PLANT_tree_fences,  PLANT_tree_steal,
	PLANT_tree_early, PLANT_tree_no_lock, PLANT_early_answer, /* --switch */
	PLANT_none,
};

static const struct opt options[] = {
	OPT_TEXT(struct tree_play_options, sword, "switch", "OPTIONS",
		 "the program swordbox with these options, or '', replaces the "
		 "atomics on the locks, and is restarted now and then"),
	OPT_END,
};

static const struct play_count counts[] = {TREE_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play tree_play = {
	.name = "index",
	.kind = "tree",
	.summary = "an ordered index whose clients die, sleep and are cut off",
	.about = "Clients read, write, delete, scan and add up keys of an "
		 "ordered index over a bad network, some of it by walks beside "
		 "the memory; they die or sleep at any request. The "
		 "history must be linearizable, a scan as one read of each key "
		 "in its range, and the index whole.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct tree_play_options),
	.point_name = point_name,
	.world_bytes = sizeof(struct tp),
	.limit_ps = 60000 * SIM_MS,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.moves = {.failure_ms = FAILURE_MS,
		  .value_bytes = value_bytes,
		  .open = open_tree,
		  .close = close_tree,
		  .is_crashed = is_crashed,
		  .step = step,
		  .get = get,
		  .put = put,
		  .del = del,
		  .del_tells = true,
		  .format = format,
		  .check = check},
	.open = open_world,
	.judge = judge,
	.close = close_world,
};
