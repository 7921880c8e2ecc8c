/* SPDX-License-Identifier: Apache-2.0 */
/* The play "kv": its world, its clients, its end. */
#include "kv_play.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_town.h"
#include "sim/fiber.h"
#include "sim/lin.h"

enum {
	CLIENTS_MAX = 6,
	KEYS = 10,
	OPS = 40,
	FAILURE_MS = 20,
	DEADLINE_MS = 3000,
	VALUE_MAX = 400,
	RETRIES = 4,	    /* of opening a client */
	RESIZE_ONE_OF = 40, /* operations */
	SEVERAL = 4,	    /* operations of one client under way */
};

STATIC_ASSERT((int)KV_POINT_COUNT <= (int)KV_PLAY_POINTS, "places to die");

#define LIMIT_PS (60ull * 1000 * SIM_MS)

struct kp;

struct kp_client {
	struct kp *p;
	unsigned index;
	struct kv_town_visitor visitor;
	struct sim_rand rand;
	struct aq_kv_client *kv;
	unsigned countdown; /* requests until it happens; 0: never */
	bool sleeps;
	uint64_t seen[KEYS]; /* last value, for compare and swap */
};

struct kp {
	const struct kv_play_options *opt;
	struct kv_play_result *res;
	struct sim_rand rand;
	struct scenario_stage *stage;
	struct kv_town *town;
	struct kv_geometry g;
	struct lin_history *history;
	struct kp_client client[CLIENTS_MAX];
	unsigned client_count;
	unsigned running;
	bool split;
	uint64_t next_value;
};

static void fail(struct kp *p, const char *fmt, ...)
{
	va_list ap;

	if (p->res->violations++)
		return;
	va_start(ap, fmt);
	vsnprintf(p->res->first, sizeof(p->res->first), fmt, ap);
	va_end(ap);
}

static uint64_t now_ns(const struct kp *p)
{
	return sim_now_ns(scenario_stage_sim(p->stage));
}

/* ---- dying and sleeping ------------------------------------------------- */

static bool crash(void *ctx, int point)
{
	struct kp_client *c = ctx;
	uint64_t end;

	if (!c->countdown || --c->countdown)
		return false;
	if (!c->sleeps) {
		c->p->res->counts.deaths++;
		c->p->res->died_at[point]++;
		return true;
	}
	c->p->res->counts.sleeps++;
	end = now_ns(c->p) + 5ull * FAILURE_MS * 1000000;
	while (now_ns(c->p) < end)
		client_clock_relax(&c->visitor.host->clock);
	return false;
}

static int open_kv(struct kp_client *c)
{
	struct kv_client_config cfg = {
		.options = {.deadline_ms = DEADLINE_MS, .depth = SEVERAL},
		.crash = crash,
		.ctx = c,
		.split_writes = c->p->split,
		.rng_seed = sim_rand_u64(&c->rand) | 1};
	struct kv_world world = kv_town_world(&c->visitor);
	int err = 0, i;

	c->visitor.is_dead = false;
	for (i = 0; i < RETRIES; i++) {
		err = kv_client_open(&world, &cfg, &c->kv);
		if (!err)
			return 0;
		c->kv = NULL;
	}
	return err;
}

static void add_stats(struct kp_client *c)
{
	struct kv_play_counts *n = &c->p->res->counts;
	struct aq_kv_stats s;

	aq_kv_client_stats(c->kv, &s);
	n->fenced += s.fenced;
	n->repairs += s.repairs;
	n->rows_mended += s.rows_mended;
	n->doubles_mended += s.doubles_mended;
	n->torn += s.reads_torn;
	n->second += s.searches_second;
	if (s.entries_lost)
		fail(c->p, "an entry was lost in a repair");
}

static void close_kv(struct kp_client *c)
{
	if (!c->kv)
		return;
	add_stats(c);
	c->visitor.is_dead = kv_client_is_crashed(c->kv);
	kv_client_destroy(c->kv);
	c->kv = NULL;
}

/* ---- operations --------------------------------------------------------- */

static size_t make_value(uint64_t id, uint8_t out[VALUE_MAX])
{
	size_t len = id % 3 ? 8 : 30 + id % (VALUE_MAX - 30), i;

	memcpy(out, &id, 8);
	for (i = 8; i < len; i++)
		out[i] = (uint8_t)(id * 31 + i);
	return len;
}

/* The value's number; a torn or foreign one is a violation. */
static uint64_t read_value(struct kp_client *c, const uint8_t *v, size_t len)
{
	uint8_t want[VALUE_MAX];
	uint64_t id = 0;

	if (len >= 8)
		memcpy(&id, v, 8);
	if (len < 8 || make_value(id, want) != len || memcmp(v, want, len) != 0)
		fail(c->p, "a value is torn or foreign");
	return id;
}

static int64_t invoke(struct kp_client *c, uint64_t key, enum lin_call call,
		      uint64_t a, uint64_t b)
{
	int64_t op = lin_invoke(c->p->history, c->index, lin_int(key), call,
				lin_int(a), lin_int(b), now_ns(c->p));

	if (op < 0)
		fail(c->p, "the history is full");
	return op;
}

/* How an operation that changes something ended. */
static void end_change(struct kp_client *c, int64_t op, int err,
		       enum lin_said said)
{
	struct kv_play_counts *n = &c->p->res->counts;
	enum lin_type type = LIN_OK;

	switch (err) {
	case 0:
		break;
	case -ENOENT:
		said = LIN_NO;
		break;
	case -ENOSPC:
		n->full++;
		type = LIN_FAIL;
		break;
	case -ESTALE:
		n->stale++;
		type = LIN_INFO;
		break;
	case -ETIMEDOUT:
		n->timeouts++;
		type = LIN_INFO;
		break;
	case -ESHUTDOWN:
	case -EHOSTDOWN:
		type = LIN_INFO;
		break;
	default:
		fail(c->p, "an operation failed: %d, %s", err, error_last());
		type = LIN_INFO;
	}
	lin_return(c->p->history, op, type, said, lin_nil(), now_ns(c->p));
}

static void do_get(struct kp_client *c, uint32_t key)
{
	uint8_t buf[VALUE_MAX];
	int64_t op = invoke(c, key, LIN_READ, 0, 0);
	size_t len = 0;
	int err = aq_kv_get(c->kv, &key, sizeof(key), buf, sizeof(buf), &len);

	if (err && err != -ENOENT) {
		end_change(c, op, err, LIN_SAID_NOTHING);
		return;
	}
	c->p->res->counts.gets++;
	c->p->res->counts.misses += err != 0;
	if (!err)
		c->seen[key] = read_value(c, buf, len);
	lin_return_got(c->p->history, op,
		       err ? lin_nil() : lin_int(c->seen[key]), now_ns(c->p));
}

static void do_put(struct kp_client *c, uint32_t key)
{
	uint64_t id = ++c->p->next_value;
	uint8_t value[VALUE_MAX];
	size_t len = make_value(id, value);
	int64_t op = invoke(c, key, LIN_WRITE, id, 0);

	c->p->res->counts.puts++;
	end_change(c, op, aq_kv_put(c->kv, &key, sizeof(key), value, len, NULL),
		   LIN_SAID_NOTHING);
}

static void do_del(struct kp_client *c, uint32_t key)
{
	int64_t op = invoke(c, key, LIN_DELETE, 0, 0);

	c->p->res->counts.deletes++;
	end_change(c, op, aq_kv_del(c->kv, &key, sizeof(key)), LIN_YES);
}

static void do_cas(struct kp_client *c, uint32_t key)
{
	uint64_t id = ++c->p->next_value;
	uint8_t was[VALUE_MAX], value[VALUE_MAX];
	size_t was_len = make_value(c->seen[key], was);
	size_t len = make_value(id, value);
	int64_t op = invoke(c, key, LIN_CAS, c->seen[key], id);
	bool swapped = false;
	int err = aq_kv_cas(c->kv, &key, sizeof(key), was, was_len, value, len,
			    &swapped);

	c->p->res->counts.swaps++;
	end_change(c, op, err, swapped ? LIN_YES : LIN_NO);
}

/* ---- several at once ---------------------------------------------------- */

/* One of them. */
struct piece {
	struct aq_kv_op op;
	int64_t lin;
	uint32_t key;
	uint8_t value[VALUE_MAX];
	bool is_told;
};

static void start_piece(struct kp_client *c, struct piece *s)
{
	static const enum aq_kv_kind kinds[] = {AQ_KV_OP_GET, AQ_KV_OP_PUT,
						AQ_KV_OP_PUT, AQ_KV_OP_PUT,
						AQ_KV_OP_DEL};
	enum aq_kv_kind kind =
		kinds[sim_rand_below(&c->rand, ARRAY_LEN(kinds))];
	uint64_t id = 0;

	s->key = sim_rand_below(&c->rand, KEYS);
	s->op = (struct aq_kv_op){.kind = kind,
				  .key = &s->key,
				  .key_len = sizeof(s->key),
				  .value = s->value,
				  .value_len = sizeof(s->value),
				  .user = s};
	if (kind == AQ_KV_OP_PUT) {
		id = ++c->p->next_value;
		s->op.value_len = make_value(id, s->value);
	}
	s->lin = invoke(c, s->key,
			kind == AQ_KV_OP_GET   ? LIN_READ
			: kind == AQ_KV_OP_PUT ? LIN_WRITE
					       : LIN_DELETE,
			id, 0);
	s->is_told = false;
	if (aq_kv_submit(c->kv, &s->op)) {
		if (!kv_client_is_crashed(c->kv))
			fail(c->p, "nothing can be submitted: %s",
			     error_last());
		s->op.err = -ESHUTDOWN;
	}
}

static void end_piece(struct kp_client *c, struct piece *s)
{
	struct kv_play_counts *n = &c->p->res->counts;
	int err = s->op.err;

	s->is_told = true;
	n->together++;
	if (s->op.kind == AQ_KV_OP_GET && (!err || err == -ENOENT))
		lin_return_got(
			c->p->history, s->lin,
			err ? lin_nil()
			    : lin_int(read_value(c, s->value, s->op.len)),
			now_ns(c->p));
	else
		end_change(c, s->lin, err,
			   s->op.kind == AQ_KV_OP_DEL ? LIN_YES
						      : LIN_SAID_NOTHING);
}

static void do_several(struct kp_client *c)
{
	struct piece piece[SEVERAL];
	struct aq_kv_op *done[SEVERAL];
	unsigned i, count = sim_rand_range(&c->rand, 2, SEVERAL), told = 0;
	int n = 1;

	for (i = 0; i < count; i++)
		start_piece(c, &piece[i]);
	while (told < count && n > 0) {
		n = aq_kv_poll(c->kv, done, SEVERAL, true);
		for (int k = 0; k < n; k++, told++)
			end_piece(c, done[k]->user);
	}
	if (n <= 0 && !kv_client_is_crashed(c->kv))
		fail(c->p, "nothing can be polled: %d, %s", n, error_last());
	/* What a dead client was not told. */
	for (i = 0; i < count; i++) {
		if (piece[i].is_told)
			continue;
		piece[i].op.err = -ESHUTDOWN;
		end_piece(c, &piece[i]);
	}
}

static void come_back(struct kp_client *c)
{
	c->countdown = 0;
	if (!kv_client_is_crashed(c->kv))
		return;
	close_kv(c);
	if (open_kv(c))
		fail(c->p, "a client cannot come back: %s", error_last());
}

/* Another size, or a second copy again. It may die anywhere. */
static void do_resize(struct kp_client *c)
{
	uint32_t shards = sim_rand_range(&c->rand, 1, 3);
	struct aq_kv_options o = {
		.capacity = shards * sim_rand_range(&c->rand, 4 * KEYS, 80),
		.shards = shards};
	int err;

	c->sleeps = sim_rand_below(&c->rand, 4) == 0;
	c->countdown = sim_rand_below(&c->rand, 3)
			       ? sim_rand_range(&c->rand, 1, 300)
			       : 0;
	err = aq_kv_resize(c->kv, &o);
	c->p->res->counts.resizes += !err;
	c->p->res->counts.resizes_left += err == -ESHUTDOWN;
	if (err && err != -EBUSY && err != -ESHUTDOWN && err != -ETIMEDOUT &&
	    err != -ESTALE && err != -ENOSPC && err != -EHOSTDOWN &&
	    err != -EEXIST)
		fail(c->p, "a resize failed: %d, %s", err, error_last());
}

static void step(struct kp_client *c)
{
	uint32_t key = sim_rand_below(&c->rand, KEYS);

	c->countdown = 0;
	if (c->p->opt->leaves && sim_rand_below(&c->rand, RESIZE_ONE_OF) == 0) {
		do_resize(c);
		come_back(c);
		return;
	}
	if (sim_rand_below(&c->rand, 100) < 12) {
		c->countdown = sim_rand_range(&c->rand, 1, 18);
		c->sleeps = sim_rand_below(&c->rand, 3) == 0;
	}
	switch (sim_rand_below(&c->rand, 9)) {
	case 0:
	case 1:
	case 2:
		do_get(c, key);
		break;
	case 3:
	case 4:
	case 5:
		do_put(c, key);
		break;
	case 6:
		do_del(c, key);
		break;
	case 7:
		do_several(c);
		break;
	default:
		do_cas(c, key);
	}
	come_back(c);
}

static void client_main(void *arg)
{
	struct kp_client *c = arg;
	unsigned i;

	if (open_kv(c))
		fail(c->p, "a client cannot start: %s", error_last());
	for (i = 0; i < OPS && c->kv; i++)
		step(c);
	close_kv(c);
	c->p->running--;
}

static void check_health(struct kp_client *c)
{
	struct aq_kv_health h;
	int err = aq_kv_get_health(c->kv, &h);

	if (err || h.shards_lost || h.shards_single || h.is_growing)
		fail(c->p,
		     "in the end: %d, %u parts lost, %u single, growing: %d",
		     err, h.shards_lost, h.shards_single, h.is_growing);
}

/* ---- the end ------------------------------------------------------------ */

static void check_table(struct kp_client *c)
{
	struct aq_kv_report r;
	struct aq_kv_options same = {0};
	int err = open_kv(c);

	if (!err)
		err = aq_kv_repair(c->kv);
	/* What was begun is ended; and once more, for two copies. */
	if (!err && c->p->opt->leaves)
		err = aq_kv_resize(c->kv, &same);
	if (!err && c->p->opt->leaves)
		err = aq_kv_repair(c->kv);
	if (!err && c->p->opt->leaves)
		check_health(c);
	if (!err)
		err = aq_kv_check(c->kv, &r);
	if (err)
		fail(c->p, "the table cannot be checked: %s", error_last());
	else if (r.bad_rows || r.bad_entries || r.duplicates || r.locks_held ||
		 r.bad_extents || r.leaked_extents || r.shared_extents)
		fail(c->p,
		     "the table: %llu bad rows, %llu bad entries, %llu double, "
		     "%llu locks, extents: %llu bad, %llu leaked, %llu shared",
		     (unsigned long long)r.bad_rows,
		     (unsigned long long)r.bad_entries,
		     (unsigned long long)r.duplicates,
		     (unsigned long long)r.locks_held,
		     (unsigned long long)r.bad_extents,
		     (unsigned long long)r.leaked_extents,
		     (unsigned long long)r.shared_extents);
	else if (r.clients != 1)
		fail(c->p, "%llu clients are left",
		     (unsigned long long)r.clients);
	close_kv(c);
}

/* One node dies at some time, where there are two copies. */
static void killer(struct kp *p)
{
	uint64_t at = now_ns(p) + 1000 * sim_rand_range(&p->rand, 100, 60000);
	const struct client_clock *clock = &p->client[0].visitor.host->clock;

	while (p->running && now_ns(p) < at)
		client_clock_relax(clock);
	if (!p->running)
		return;
	kv_town_kill(p->town, sim_rand_below(&p->rand, p->town->node_count));
	p->res->counts.nodes_killed++;
}

static void director(void *arg)
{
	struct kp *p = arg;
	struct kp_client *c = &p->client[0];

	if (p->opt->leaves && p->g.copy_count > 1 &&
	    sim_rand_below(&p->rand, 2))
		killer(p);
	while (p->running)
		client_clock_relax(&c->visitor.host->clock);
	c->countdown = 0;
	check_table(c);
	sim_stop(scenario_stage_sim(p->stage));
}

static void finish(struct kp *p)
{
	struct sim *sim = scenario_stage_sim(p->stage);
	struct kv_play_counts *n = &p->res->counts;
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
	n->checked = lin_history_op_count(p->history);
	n->steps = lin.steps;
	n->frames = st->sent;
	n->lost = st->lost;
	n->virtual_us = sim_now_ns(sim) / 1000;
	p->res->hash = sim_trace_hash(sim);
}

/* ---- the world ---------------------------------------------------------- */

/* Small: keys collide, paths are needed, locks are shared. */
static int make_geometry(struct kp *p)
{
	struct aq_kv_options o = {
		.capacity = sim_rand_range(&p->rand, KEYS, 24),
		.entries_per_row = sim_rand_range(&p->rand, 1, 4),
		.entry_bytes = 32,
		.extent_bytes = 1 << 20,
		.chunk_bytes = 65536,
		.clients = (p->opt->leaves ? 5 : 2) * CLIENTS_MAX,
		.rows_per_lock = 1u << sim_rand_below(&p->rand, 4),
		.hash = sim_rand_below(&p->rand, 3),
		.failure_ms = FAILURE_MS,
		.flags = sim_rand_below(&p->rand, 4) ? 0 : AQ_KV_WORD_LOCKS,
		.seed = sim_rand_u64(&p->rand) | 1};

	if (p->opt->leaves) {
		o.shards = sim_rand_range(&p->rand, 1, 3);
		o.capacity = o.shards * sim_rand_range(&p->rand, 3 * KEYS, 80);
		o.copies = sim_rand_range(&p->rand, 1, 2);
	}
	p->split = sim_rand_below(&p->rand, 2);
	return kv_geometry_make(&o, &p->g);
}

static int make_table(struct kp *p)
{
	struct kv_world world = kv_town_world(&p->client[0].visitor);

	return kv_replicas_make(&world, &p->g, KV_PHASE_STABLE);
}

static void starter(void *arg)
{
	struct kp *p = arg;
	unsigned i;
	int err = make_table(p);

	for (i = 0; i < p->client_count && !err; i++) {
		p->running++;
		err = scenario_host_spawn(p->client[i].visitor.host, "client",
					  client_main, &p->client[i]);
	}
	if (!err)
		err = scenario_host_spawn(p->client[0].visitor.host, "director",
					  director, p);
	if (err)
		fail(p, "the play cannot start: %d", err);
}

static int make_hosts(struct kp *p)
{
	struct kv_town *t = p->town;
	unsigned i;
	int err = 0;

	t->node_count = p->opt->leaves ? KV_TOWN_NODES : 1;
	for (i = 0; i < t->node_count && !err; i++)
		err = scenario_host_add(p->stage, "node", &t->node[i]);
	p->client_count = sim_rand_range(&p->rand, 2, CLIENTS_MAX);
	for (i = 0; i < p->client_count && !err; i++) {
		struct kp_client *c = &p->client[i];

		c->p = p;
		c->index = i;
		sim_rand_init(&c->rand, p->opt->seed, 1000 + i);
		c->visitor.town = t;
		err = scenario_host_add(p->stage, "client", &c->visitor.host);
	}
	return err;
}

static int make_world(struct kp *p)
{
	struct scenario_stage_config cfg = {.seed = p->opt->seed,
					    .fabric = p->opt->fabric,
					    .trace = p->opt->trace};
	struct sim_rand *r = &p->rand;
	int err;

	sim_rand_init(r, p->opt->seed, 77);
	cfg.link.latency_ps = sim_rand_range(r, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	if (sim_rand_below(r, 2)) {
		cfg.link.faults.loss_ppm = sim_rand_below(r, 10000);
		cfg.link.faults.dup_ppm = sim_rand_below(r, 10000);
		cfg.link.faults.reorder_ppm = sim_rand_below(r, 10000);
		cfg.link.faults.reorder_max_ps = 20 * SIM_US;
		cfg.link.faults.corrupt_ppm = sim_rand_below(r, 2000);
	}
	err = make_geometry(p);
	if (!err)
		err = scenario_stage_create(&cfg, &p->stage);
	if (err)
		return err;
	sim_net_hide_addresses(scenario_stage_net(p->stage));
	err = lin_history_create(&p->history);
	if (!err)
		err = make_hosts(p);
	return err ? err
		   : scenario_host_spawn(p->client[0].visitor.host, "starter",
					 starter, p);
}

const enum plant kv_play_bugs[] = {
	PLANT_kv_terms,	   PLANT_kv_locks,    PLANT_kv_mirror, PLANT_kv_graves,
	PLANT_kv_overtake, PLANT_kv_no_fence, PLANT_none,
};

int kv_play_run(const struct kv_play_options *opt, struct kv_play_result *res)
{
	struct kp *p = calloc(1, sizeof(*p));
	unsigned i;
	int err;

	plant_set(opt->bug);
	memset(res, 0, sizeof(*res));
	if (!p)
		return -ENOMEM;
	p->opt = opt;
	p->res = res;
	p->town = calloc(1, sizeof(*p->town));
	if (!p->town) {
		free(p);
		return -ENOMEM;
	}
	err = make_world(p);
	if (!err) {
		(void)sim_run_until(scenario_stage_sim(p->stage), LIMIT_PS);
		finish(p);
		/* A play that did not end has clients in its fibers' hands. */
		if (p->running)
			for (i = 0; i < p->client_count; i++)
				p->client[i].kv = NULL;
	}
	if (p->stage)
		scenario_stage_destroy(p->stage);
	lin_history_destroy(p->history);
	free(p->town);
	free(p);
	return err;
}
