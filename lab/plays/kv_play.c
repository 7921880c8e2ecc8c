/* SPDX-License-Identifier: Apache-2.0 */
/* The play "kv": its world, its clients, its end. */
#include "kv_play_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "figures/commands.h"

enum {
	OPS = 40,
	FAILURE_MS = 20,
	DEADLINE_MS = 3000,
	RESIZE_ONE_OF = 40, /* operations */
	SEVERAL = 4,	    /* operations of one client under way */
	UNIT_ONE_OF = 4,    /* operations */
	UNIT_KEYS = 3,
	PAIR_READS = 8,
};

static struct aq_kv_client *kv_of(const struct play_client *c)
{
	return ((const struct kp_client *)c)->kv;
}

static const char *point_name(unsigned point)
{
	return point < KV_POINT_COUNT ? kv_point_name((enum kv_point)point)
				      : NULL;
}

static bool is_crashed(const struct play_client *c)
{
	return kv_client_is_crashed(kv_of(c));
}

static bool crash(void *client, int point)
{
	struct kp_client *c = client;

	kp_of(c)->pair_left |= c->in_pair && c->base.countdown == 1;
	return play_client_crash(client, point);
}

static int open_kv(struct play_client *client)
{
	struct kp_client *c = (struct kp_client *)client;
	struct kv_client_config cfg = {
		.options = {.deadline_ms = DEADLINE_MS, .depth = SEVERAL},
		.crash = crash,
		.now_ms = kp_now_ms,
		.ctx = c,
		.split_writes = kp_of(c)->split,
		.rng_seed = rng_u64(&c->base.rand) | 1};
	struct kv_world world = kv_cluster_world(&c->place);
	int err = -EAGAIN;

	sim_rand_init(&c->place.walk_rand, cfg.rng_seed, 81);
	if (sim_rand_below(&c->place.walk_rand, 2))
		cfg.options.flags |= AQ_KV_WALK;
	c->place.is_dead = false;
	for (int i = 0; i < PLAY_OPEN_TRIES && err; i++)
		err = kv_client_open(&world, &cfg, &c->kv);
	return err;
}

static void close_kv(struct play_client *client)
{
	struct kp_client *c = (struct kp_client *)client;
	struct kv_play_counts *n = kp_of(c)->n;
	struct aq_kv_stats s;

	aq_kv_client_stats(c->kv, &s);
	n->fenced += s.fenced;
	n->repairs += s.repairs;
	n->rows_mended += s.rows_mended;
	n->doubles_mended += s.doubles_mended;
	n->walks += s.walks;
	n->torn += s.reads_torn;
	n->second += s.searches_second;
	if (s.entries_lost)
		play_fail(client->run, "an entry was lost in a repair");
	c->place.is_dead = kv_client_is_crashed(c->kv);
	kv_client_destroy(c->kv);
}

/* ---- operations --------------------------------------------------------- */

static size_t value_bytes(const struct play_run *r, uint64_t id)
{
	return id % 3 ? 8 : 30 + id % (KP_VALUE_MAX - 30);
}

static int get(struct play_client *c, unsigned key, uint8_t *buf, size_t *len)
{
	return aq_kv_get(kv_of(c), &key, sizeof(key), buf, KP_VALUE_MAX, len);
}

static int put(struct play_client *c, unsigned key, const uint8_t *value,
	       size_t len)
{
	return aq_kv_put(kv_of(c), &key, sizeof(key), value, len, NULL);
}

static int del(struct play_client *c, unsigned key)
{
	return aq_kv_del(kv_of(c), &key, sizeof(key));
}

static void do_get(struct kp_client *c, uint32_t key)
{
	uint64_t id = play_get(&c->base, key);

	if (id)
		c->seen[key] = id;
}

static void do_cas(struct kp_client *c, uint32_t key)
{
	uint64_t id = ++c->base.run->next_value;
	uint8_t was[KP_VALUE_MAX], value[KP_VALUE_MAX];
	size_t was_len = play_value_make(c->base.run, c->seen[key], was);
	size_t len = play_value_make(c->base.run, id, value);
	int64_t op = play_invoke(&c->base, key, LIN_CAS, c->seen[key], id);
	bool swapped = false;
	int err = aq_kv_cas(c->kv, &key, sizeof(key), was, was_len, value, len,
			    &swapped);

	kp_of(c)->n->swaps++;
	if (err == -ENOENT)
		play_return(&c->base, op, LIN_OK, LIN_NO);
	else
		play_return(&c->base, op, play_ended(&c->base, err),
			    swapped ? LIN_YES : LIN_NO);
}

/* ---- several at once ---------------------------------------------------- */

/* One of them. */
struct piece {
	struct aq_kv_op op;
	int64_t lin;
	uint32_t key;
	uint8_t value[KP_VALUE_MAX];
	/* Of a modification: only if the value is this one. */
	uint8_t was[KP_VALUE_MAX];
	size_t was_len, len;
	bool is_swapped;
	bool is_told;
};

static int swap_fn(struct aq_kv_change *ch, void *user)
{
	struct piece *s = user;

	s->is_swapped = ch->value && ch->value_len == s->was_len &&
			memcmp(ch->value, s->was, s->was_len) == 0;
	if (!s->is_swapped)
		return 0;
	ch->verdict = AQ_KV_STORE;
	ch->new_value = s->value;
	ch->new_value_len = s->len;
	return 0;
}

static void start_piece(struct kp_client *c, struct piece *s)
{
	static const enum aq_kv_kind kinds[] = {AQ_KV_OP_GET,	 AQ_KV_OP_PUT,
						AQ_KV_OP_PUT,	 AQ_KV_OP_PUT,
						AQ_KV_OP_MODIFY, AQ_KV_OP_DEL};
	static const enum lin_call calls[] = {[AQ_KV_OP_GET] = LIN_READ,
					      [AQ_KV_OP_PUT] = LIN_WRITE,
					      [AQ_KV_OP_MODIFY] = LIN_CAS,
					      [AQ_KV_OP_DEL] = LIN_DELETE};
	enum aq_kv_kind kind =
		kinds[sim_rand_below(&c->base.rand, ARRAY_LEN(kinds))];
	uint64_t id = 0, was = 0;

	s->key = sim_rand_below(&c->base.rand, KP_KEYS);
	if (kind == AQ_KV_OP_MODIFY && !c->seen[s->key])
		kind = AQ_KV_OP_GET;
	s->op = (struct aq_kv_op){.kind = kind,
				  .key = &s->key,
				  .key_len = sizeof(s->key),
				  .value = s->value,
				  .value_len = sizeof(s->value),
				  .fn = swap_fn,
				  .fn_user = s,
				  .user = s};
	if (kind == AQ_KV_OP_PUT || kind == AQ_KV_OP_MODIFY) {
		id = ++c->base.run->next_value;
		s->op.value_len = s->len =
			play_value_make(c->base.run, id, s->value);
	}
	if (kind == AQ_KV_OP_MODIFY) {
		was = c->seen[s->key];
		s->was_len = play_value_make(c->base.run, was, s->was);
	}
	s->lin = play_invoke(&c->base, s->key, calls[kind], was ? was : id,
			     was ? id : 0);
	s->is_told = s->is_swapped = false;
	if (aq_kv_submit(c->kv, &s->op)) {
		if (!kv_client_is_crashed(c->kv))
			play_fail(c->base.run, "nothing can be submitted: %s",
				  error_last());
		s->op.err = -ESHUTDOWN;
	}
}

static void end_piece(struct kp_client *c, struct piece *s)
{
	struct play_client *b = &c->base;
	int err = s->op.err;

	s->is_told = true;
	kp_of(c)->n->together++;
	if (s->op.kind == AQ_KV_OP_GET) {
		(void)play_return_read(b, s->lin, err, s->value, s->op.len);
	} else if (s->op.kind == AQ_KV_OP_MODIFY) {
		kp_of(c)->n->swaps++;
		play_return(b, s->lin, play_ended(b, err),
			    s->is_swapped ? LIN_YES : LIN_NO);
	} else if (s->op.kind == AQ_KV_OP_DEL) {
		play_return_del(b, s->lin, err);
	} else {
		play_return(b, s->lin, play_ended(b, err), LIN_SAID_NOTHING);
	}
}

static void do_several(struct kp_client *c)
{
	struct piece piece[SEVERAL];
	struct aq_kv_op *done[SEVERAL];
	unsigned i, count = sim_rand_range(&c->base.rand, 2, SEVERAL), told = 0;
	int n = 1;

	for (i = 0; i < count; i++)
		start_piece(c, &piece[i]);
	while (told < count && n > 0) {
		n = aq_kv_poll(c->kv, done, SEVERAL, true);
		for (int k = 0; k < n; k++, told++)
			end_piece(c, done[k]->user);
	}
	if (n <= 0 && !kv_client_is_crashed(c->kv))
		play_fail(c->base.run, "nothing can be polled: %d, %s", n,
			  error_last());
	/* What a dead client was not told. */
	for (i = 0; i < count; i++) {
		if (piece[i].is_told)
			continue;
		piece[i].op.err = -ESHUTDOWN;
		end_piece(c, &piece[i]);
	}
}

/* ---- units -------------------------------------------------------------- */

/* New values of a few keys; each is a write in its key's history. */
struct unit {
	unsigned count;
	uint32_t key[UNIT_KEYS];
	uint8_t value[UNIT_KEYS][KP_VALUE_MAX];
	size_t len[UNIT_KEYS];
};

static int unit_fn(struct aq_kv_change *ch, void *user)
{
	const struct unit *u = user;

	for (unsigned i = 0; i < u->count; i++) {
		ch[i].verdict = AQ_KV_STORE;
		ch[i].new_value = u->value[i];
		ch[i].new_value_len = u->len[i];
		ch[i].expire_at_ms = 0;
	}
	return 0;
}

static void do_unit(struct kp_client *c)
{
	struct unit u = {.count = UNIT_KEYS};
	struct aq_kv_key keys[UNIT_KEYS];
	uint32_t first = sim_rand_below(&c->base.rand, KP_KEYS);
	int64_t op[UNIT_KEYS];
	enum lin_type ended;
	unsigned i;
	int err;

	for (i = 0; i < UNIT_KEYS; i++) {
		uint64_t id = ++c->base.run->next_value;

		u.key[i] = (first + 3 * i) % KP_KEYS;
		u.len[i] = play_value_make(c->base.run, id, u.value[i]);
		keys[i] = (struct aq_kv_key){&u.key[i], sizeof(u.key[i])};
		op[i] = play_invoke(&c->base, u.key[i], LIN_WRITE, id, 0);
	}
	err = aq_kv_unit(c->kv, keys, UNIT_KEYS, unit_fn, &u);
	kp_of(c)->n->units += !err;
	ended = err == -EXDEV ? LIN_FAIL : play_ended(&c->base, err);
	for (i = 0; i < UNIT_KEYS; i++)
		play_return(&c->base, op[i], ended, LIN_SAID_NOTHING);
}

/* The same number in both keys, one more each time. */
struct pair {
	uint64_t number[2]; /* what there was */
	uint8_t value[KP_VALUE_MAX];
	size_t len;
};

static uint64_t number_of(const void *value, size_t len)
{
	uint64_t n = 0;

	if (value && len >= sizeof(n))
		memcpy(&n, value, sizeof(n));
	return n;
}

static int pair_fn(struct aq_kv_change *ch, void *user)
{
	struct pair *p = user;
	uint64_t next;

	for (unsigned i = 0; i < 2; i++) {
		p->number[i] = number_of(ch[i].value, ch[i].value_len);
		ch[i].verdict = AQ_KV_STORE;
		ch[i].new_value = p->value;
		ch[i].expire_at_ms = 0;
	}
	next = p->number[0] + 1;
	memset(p->value, 0, sizeof(p->value));
	memcpy(p->value, &next, sizeof(next));
	/* In the index, or beside it; not always both alike. */
	ch[0].new_value_len = next % 3 ? sizeof(next) : KP_VALUE_MAX;
	ch[1].new_value_len = next % 4 ? sizeof(next) : KP_VALUE_MAX / 2;
	return 0;
}

/* What docs/kv.md says of two copies: the first one was lost after a client
 * had left a unit between the two. */
static bool may_be_half(const struct kp *p)
{
	return p->g.copy_count > 1 && p->pair_left && p->n->nodes_killed;
}

static void change_pair(struct kp_client *c)
{
	static const uint32_t first = KP_PAIR_FIRST, second = KP_PAIR_SECOND;
	struct aq_kv_key keys[] = {{&first, sizeof(first)},
				   {&second, sizeof(second)}};
	struct pair p = {0};
	int err;

	c->in_pair = true;
	err = aq_kv_unit(c->kv, keys, 2, pair_fn, &p);
	c->in_pair = false;
	kp_of(c)->n->units += !err;
	kp_of(c)->pair_left |= err && err != -EXDEV;
	if (err != -EXDEV)
		(void)play_ended(&c->base, err);
	if (p.number[0] != p.number[1] && !may_be_half(kp_of(c)))
		play_fail(c->base.run,
			  "half of a unit under the locks: %" PRIu64
			  " and %" PRIu64,
			  p.number[0], p.number[1]);
}

/* One key after the other, again and again: what is read later is not older. */
static void read_pair(struct kp_client *c)
{
	uint32_t turn = sim_rand_below(&c->base.rand, 2);
	uint64_t before = 0, now;

	for (uint32_t i = 0; i < PAIR_READS; i++) {
		uint32_t key = i % 2 == turn ? KP_PAIR_FIRST : KP_PAIR_SECOND;
		uint8_t value[KP_VALUE_MAX];
		size_t len = 0;
		int err = aq_kv_get(c->kv, &key, sizeof(key), value,
				    KP_VALUE_MAX, &len);

		if (err && err != -ENOENT) {
			(void)play_ended(&c->base, err);
			return;
		}
		now = err ? 0 : number_of(value, len);
		if (now < before && !may_be_half(kp_of(c)))
			play_fail(c->base.run,
				  "half of a unit: %" PRIu64 " after %" PRIu64,
				  now, before);
		before = now;
	}
}

static void do_units(struct kp_client *c)
{
	uint32_t what = sim_rand_below(&c->base.rand, 4);

	if (what == 0)
		do_unit(c);
	else if (what == 1)
		read_pair(c);
	else
		change_pair(c);
}

/* Another size, or a second copy again. It may die anywhere. */
static void do_resize(struct kp_client *c)
{
	uint32_t shards = sim_rand_range(&c->base.rand, 1, 3);
	struct aq_kv_options o = {
		.capacity =
			shards * sim_rand_range(&c->base.rand, 4 * KP_KEYS, 80),
		.shards = shards};
	bool healed;
	int err;

	c->base.sleeps = sim_rand_below(&c->base.rand, 4) == 0;
	c->base.countdown = sim_rand_below(&c->base.rand, 3)
				    ? sim_rand_range(&c->base.rand, 1, 300)
				    : 0;
	/* Several may want to make the same copy. */
	err = sim_rand_below(&c->base.rand, 3) ? aq_kv_resize(c->kv, &o)
					       : aq_kv_heal(c->kv, &healed);
	kp_of(c)->n->resizes += !err;
	kp_of(c)->n->resizes_left += err == -ESHUTDOWN;
	if (err && err != -EBUSY && err != -ESHUTDOWN && err != -ETIMEDOUT &&
	    err != -ESTALE && err != -ENOSPC && err != -EHOSTDOWN &&
	    err != -EEXIST)
		play_fail(c->base.run, "a resize failed: %d, %s", err,
			  error_last());
}

static void step(struct play_client *client)
{
	struct kp_client *c = (struct kp_client *)client;
	uint32_t key = sim_rand_below(&c->base.rand, KP_KEYS);

	if (kp_of(c)->leaves &&
	    sim_rand_below(&c->base.rand, RESIZE_ONE_OF) == 0) {
		do_resize(c);
		return;
	}
	if (sim_rand_below(&c->base.rand, UNIT_ONE_OF) == 0) {
		play_client_arm(&c->base, 25, 24);
		do_units(c);
		return;
	}
	play_client_arm(&c->base, 12, 18);
	switch (sim_rand_below(&c->base.rand, 12)) {
	case 0:
	case 1:
	case 2:
		do_get(c, key);
		break;
	case 3:
	case 4:
	case 5:
		play_put(client, key);
		break;
	case 6:
		play_del(client, key);
		break;
	case 7:
		do_several(c);
		break;
	case 8:
	case 9:
		kp_number_step(c);
		break;
	case 10:
		kp_mortal_step(c);
		break;
	default:
		do_cas(c, key);
	}
}

/* ---- the end ------------------------------------------------------------ */

static void check_health(struct kp_client *c)
{
	struct aq_kv_health h;
	int err = aq_kv_get_health(c->kv, &h);

	if (err || h.shards_lost || h.shards_single || h.is_growing)
		play_fail(
			c->base.run,
			"in the end: %d, %u parts lost, %u single, growing: %d",
			err, h.shards_lost, h.shards_single, h.is_growing);
}

static int check(struct play_client *client)
{
	struct kp_client *c = (struct kp_client *)client;
	struct aq_kv_report r;
	bool healed;
	int err = aq_kv_repair(c->kv);

	/* What was begun is ended, and copies that were lost are made. */
	if (!err && kp_of(c)->leaves)
		err = aq_kv_heal(c->kv, &healed);
	if (!err && kp_of(c)->leaves)
		err = aq_kv_repair(c->kv);
	if (!err && kp_of(c)->leaves)
		check_health(c);
	if (!err)
		err = aq_kv_check(c->kv, &r);
	if (err)
		return err;
	if (r.bad_rows || r.bad_entries || r.duplicates || r.locks_held ||
	    r.bad_extents || r.leaked_extents || r.shared_extents)
		play_fail(client->run,
			  "the table: %" PRIu64 " bad rows, %" PRIu64
			  " bad entries, %" PRIu64 " double, %" PRIu64
			  " locks, extents: %" PRIu64 " bad, %" PRIu64
			  " leaked, %" PRIu64 " shared",
			  r.bad_rows, r.bad_entries, r.duplicates, r.locks_held,
			  r.bad_extents, r.leaked_extents, r.shared_extents);
	else if (r.clients != 1)
		play_fail(client->run, "%" PRIu64 " clients are left",
			  r.clients);
	return 0;
}

/* One node dies at some time, where there are two copies. */
static void kill_node(struct play_run *r)
{
	struct kp *p = (struct kp *)r;
	uint64_t at;

	if (!p->leaves || p->g.copy_count < 2 || !sim_rand_below(&r->rand, 2))
		return;
	at = play_now_ns(r) + 1000 * sim_rand_range(&r->rand, 100, 60000);
	while (r->running && play_now_ns(r) < at)
		client_clock_relax(&r->client[0]->host->clock);
	if (!r->running)
		return;
	kv_cluster_kill(&p->cluster,
			sim_rand_below(&r->rand, p->cluster.node_count));
	p->n->nodes_killed++;
}

/* ---- the world ---------------------------------------------------------- */

/* Small: keys collide, paths are needed, locks are shared. */
static int make_geometry(struct kp *p)
{
	struct aq_kv_options o = {
		.capacity = sim_rand_range(&p->run.rand, KP_ALL_KEYS, 26),
		.entries_per_row = sim_rand_range(&p->run.rand, 1, 4),
		.entry_bytes = 32,
		.extent_bytes = 1 << 20,
		.chunk_bytes = 65536,
		.clients = (p->leaves ? 5 : 2) * KP_CLIENTS_MAX,
		.rows_per_lock = 1u << sim_rand_below(&p->run.rand, 4),
		.hash = sim_rand_below(&p->run.rand, 3),
		.failure_ms = FAILURE_MS,
		.flags = sim_rand_below(&p->run.rand, 4) ? 0 : AQ_KV_WORD_LOCKS,
		.seed = rng_u64(&p->run.rand) | 1};

	if (p->leaves) {
		o.shards = sim_rand_range(&p->run.rand, 1, 3);
		o.capacity = o.shards *
			     sim_rand_range(&p->run.rand, 3 * KP_KEYS, 80);
		o.copies = sim_rand_range(&p->run.rand, 1, 2);
	}
	p->split = sim_rand_below(&p->run.rand, 2);
	return kv_geometry_make(&o, &p->g);
}

static int format(struct play_run *r, struct kit_remote *remote)
{
	struct kp *p = (struct kp *)r;
	struct kv_world world = kv_cluster_world(&p->client[0].place);

	return kv_replicas_make(&world, &p->g, KV_PHASE_STABLE, NULL);
}

static int make_hosts(struct kp *p)
{
	struct kv_cluster *t = &p->cluster;
	unsigned i, clients;
	int err = 0;

	t->node_count = p->leaves ? KV_CLUSTER_NODES : 1;
	for (i = 0; i < t->node_count && !err; i++)
		err = rig_host_add(p->run.stage, "node", &t->node[i]);
	clients = sim_rand_range(&p->run.rand, 2, KP_CLIENTS_MAX);
	for (i = 0; i < clients && !err; i++) {
		struct kp_client *c = &p->client[i];

		c->place.cluster = t;
		err = rig_host_add(p->run.stage, "client", &c->place.host);
		play_client_init(&p->run, &c->base, c->place.host);
	}
	return err;
}

static int open_world(struct play_run *r)
{
	struct kp *p = (struct kp *)r;
	struct rig_stage_config cfg = {0};
	int err;

	p->n = (struct kv_play_counts *)r->res->count;
	p->leaves = ((const struct kv_play_options *)r->opt)->leaves;
	r->ops = OPS;
	sim_rand_init(&r->rand, r->opt->seed, 77);
	cfg.link.latency_ps = sim_rand_range(&r->rand, 300, 3000) * SIM_NS;
	cfg.link.bits_per_s = 25000000000ull;
	if (sim_rand_below(&r->rand, 2))
		cfg.link.faults =
			play_draw_faults(&r->rand, 10000, 10000, 10000, 2000);
	err = make_geometry(p);
	if (!err)
		err = play_stage_open(r, &cfg);
	if (err)
		return err;
	err = make_hosts(p);
	return err ? err : play_clients_start(r);
}

/* ---- the table ---------------------------------------------------------- */

static int take_no_fence(void *to, const char *value)
{
	((struct play_options *)to)->bug = PLANT_kv_no_fence;
	return 0;
}

static const enum plant bugs[] = {
	PLANT_kv_terms,	    PLANT_kv_locks,	PLANT_kv_mirror,
	PLANT_kv_graves,    PLANT_kv_copied,	PLANT_kv_overtake,
	PLANT_kv_unit_open, PLANT_kv_unit_redo, PLANT_kv_no_fence,
	PLANT_none,
};

static const struct opt options[] = {
	PLAY_OPTION_FABRIC,
	OPT_FLAG(struct kv_play_options, leaves, "leaves",
		 "three nodes, shards and copies; clients also resize the "
		 "table and die over it, and nodes are killed"),
	OPT_CALL(take_no_fence, "no-fence", NULL,
		 "the old name of --bug no-fence"),
	OPT_END,
};

static const struct play_count counts[] = {KV_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play kv_play = {
	.name = "kv",
	.summary = "a key-value table whose clients die or sleep",
	.about = "Clients change and read keys of one table over a bad "
		 "network, and die or fall asleep before any of their "
		 "requests. The history must be linearizable, and every "
		 "invariant of the table must hold at the end.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options = options,
	.options_bytes = sizeof(struct kv_play_options),
	.figures = &kv_figures,
	.point_name = point_name,
	.world_bytes = sizeof(struct kp),
	.limit_ps = 60000 * SIM_MS,
	.has_history = true,
	.model = LIN_MODEL_KV,
	.moves = {.failure_ms = FAILURE_MS,
		  .value_bytes = value_bytes,
		  .open = open_kv,
		  .close = close_kv,
		  .is_crashed = is_crashed,
		  .step = step,
		  .get = get,
		  .put = put,
		  .del = del,
		  .del_tells = true,
		  .format = format,
		  .meanwhile = kill_node,
		  .check = check},
	.open = open_world,
};
