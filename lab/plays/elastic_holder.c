/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of the store, and the turns in which its messages travel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_store_priv.h"

enum {
	TURNS = 5000,
	PATIENCE = 14,
	FORGET_PPM = 20000, /* per step of a move */
	NAP_TURNS = 120,
};

/* In the first there are many moves at a time, which are left and taken up
 * again; in the second a few that take long, while keys change. */
static const struct es_mood moods[] = {
	{.mover = 2,
	 .nap_ppm = 100000,
	 .list_nap_ppm = 100000,
	 .leave_ppm = 300000,
	 .resumes = true},
	{.mover = 8,
	 .nap_ppm = 10000,
	 .list_nap_ppm = 900000,
	 .leave_ppm = FORGET_PPM},
};

/* ---- operations ---------------------------------------------------------- */

static void begin_op(struct es *s, struct es_client *c, struct es_op *o)
{
	static const enum block_opcode ops[] = {
		BLOCK_KV_GET, BLOCK_KV_GET,    BLOCK_KV_PUT,
		BLOCK_KV_PUT, BLOCK_KV_DELETE,
	};
	struct rng *r = &s->run->rand;

	*o = (struct es_op){
		.key = sim_rand_below(r, ES_KEYS),
		.opcode = ops[sim_rand_below(r, ARRAY_LEN(ops))],
		.expect = BLOCK_KV_ANY,
		.id = ++s->ids,
		.number = (int64_t)sim_rand_below(r, 100) - 20,
	};
	/* Several on one key have an order. */
	if (o > c->op && sim_rand_below(r, 2))
		o->key = o[-1].key;
	if (o->key % 2 && o->opcode != BLOCK_KV_GET)
		o->opcode = BLOCK_KV_ADD;
	if (o->opcode == BLOCK_KV_PUT && sim_rand_below(r, 3) == 0)
		o->expect = sim_rand_below(r, 3) ? s->key[o->key].version : 0;
	if (o->opcode != BLOCK_KV_GET)
		o->sequence = ++c->sequence;
	s->n->ops++;
}

static void begin_ops(struct es *s, struct es_client *c)
{
	struct rng *r = &s->run->rand;

	c->ops = sim_rand_below(r, 2) ? 1 : sim_rand_range(r, 2, ES_GROUP);
	c->is_alone = false;
	for (unsigned i = 0; i < c->ops; i++)
		begin_op(s, c, &c->op[i]);
}

static void add_op(struct es_ask *a, const struct es_op *o, unsigned op,
		   uint32_t *used)
{
	uint8_t *out = a->bytes + *used, name[8];
	uint32_t key_bytes = es_key_name(o->key, name), value_bytes = 0;
	struct block_kv_wire head;

	memcpy(out + sizeof(head), name, key_bytes);
	if (o->opcode == BLOCK_KV_ADD) {
		le64 word = le64_put((uint64_t)o->number);

		value_bytes = sizeof(word);
		memcpy(out + sizeof(head) + key_bytes, &word, sizeof(word));
	} else if (o->opcode == BLOCK_KV_PUT) {
		value_bytes = es_value(o->id, out + sizeof(head) + key_bytes);
	}
	head = (struct block_kv_wire){
		.version = be64_put(o->expect),
		.key_bytes = be32_put(key_bytes),
		.value_bytes = be32_put(value_bytes),
	};
	memcpy(out, &head, sizeof(head));
	a->part[a->count++] = (struct es_part){
		.opcode = o->opcode,
		.sequence = o->sequence,
		.arg = block_kv_slot(block_kv_hash(name, key_bytes)),
		.length = (uint32_t)sizeof(head) + key_bytes + value_bytes,
		.at = *used,
		.op = op,
	};
	*used += a->part[a->count - 1].length;
}

/* Some of what has no answer yet, as if the others were at other nodes: all of
 * a key, or none. Or the one that was refused, by itself. */
static void ask_ops(struct es *s, struct es_client *c)
{
	uint64_t some = sim_rand_below(&s->run->rand, 4)
				? UINT64_MAX
				: sim_rand_below(&s->run->rand, 1u << ES_KEYS);
	uint32_t used = 0;

	c->ask.block = c->at;
	c->ask.generation = s->block[c->at].block.generation;
	c->ask.count = 0;
	for (unsigned i = 0; i < c->ops; i++) {
		if (c->op[i].is_done)
			continue;
		if (!c->ask.count || (!c->is_alone && some >> c->op[i].key & 1))
			add_op(&c->ask, &c->op[i], i, &used);
	}
}

static bool has_ops(const struct es_client *c)
{
	for (unsigned i = 0; i < c->ops; i++)
		if (!c->op[i].is_done)
			return true;
	return false;
}

/* All answers up to there have come. */
static uint64_t acknowledged(const struct es_client *c)
{
	for (unsigned i = 0; i < c->ops; i++)
		if (!c->op[i].is_done && c->op[i].sequence)
			return c->op[i].sequence - 1;
	return c->sequence;
}

/* What was left undone may be in the middle: it hung on another one. */
static void heard_op(struct es *s, struct es_client *c, struct es_op *o,
		     const struct block_result *r)
{
	switch ((int)r->status) {
	case BLOCK_OK:
	case BLOCK_NO_KEY:
	case BLOCK_VERSION:
		if (r->status == BLOCK_OK && o->sequence && !o->was_executed)
			play_fail(s->run, "an answer for nothing");
		if (r->status != BLOCK_OK && o->was_executed)
			play_fail(s->run,
				  "a change of key %u is refused, and "
				  "was made",
				  o->key);
		o->is_done = true;
		return;
	case BLOCK_MOVED:
	case BLOCK_STALE:
		if (r->status == BLOCK_STALE &&
		    c->ask.generation == s->block[c->at].block.generation)
			play_fail(s->run, "a change is too old");
		c->at = (c->at + 1) % ES_BLOCKS;
		break;
	case BLOCK_FROZEN:
	case BLOCK_NO_ROOM:
		/* Somebody has to move something. */
		if (sim_rand_below(&s->run->rand, 3) == 0)
			es_mover_begin(s, c, c->at);
		break;
	case BLOCK_LATER:
		return;
	case BLOCK_BUSY: /* too many sessions */
		break;
	default:
		play_fail(s->run, "an operation is answered: %s",
			  block_status_text(r->status));
	}
	c->is_alone = true;
}

static void heard_ops(struct es *s, struct es_client *c, const struct es_way *w)
{
	c->is_alone = false;
	for (unsigned i = 0; i < w->ask.count; i++)
		heard_op(s, c, &c->op[w->ask.part[i].op], &w->result[i]);
}

/* ---- clients ------------------------------------------------------------- */

static void send(struct es *s, struct es_client *c)
{
	struct es_way *w = NULL;

	for (unsigned i = 0; i < ES_WAYS && !w; i++)
		w = s->way[i].is_used ? NULL : &s->way[i];
	c->patience = sim_rand_range(&s->run->rand, 1, PATIENCE);
	if (!w || sim_rand_chance(&s->run->rand, 100000)) {
		s->n->lost++;
		return;
	}
	*w = (struct es_way){.is_used = true,
			     .delay = sim_rand_range(&s->run->rand, 1, 8),
			     .client = c->index,
			     .life = c->life,
			     .conn = c->conn[c->ask.block],
			     .tag = c->tag,
			     .ask = c->ask};
}

/* The same over another connection, so that the first message does not come any
 * more; at another block, where the slot may have moved. */
static void try_again(struct es *s, struct es_client *c)
{
	c->conn[c->ask.block]++;
	if (c->step == ES_NONE && sim_rand_below(&s->run->rand, 3) == 0) {
		c->tag++;
		c->at = sim_rand_below(&s->run->rand, ES_BLOCKS);
		c->ask.block = c->at;
		c->ask.generation = s->block[c->at].block.generation;
	}
	send(s, c);
}

static void die(struct es *s, struct es_client *c)
{
	unsigned index = c->index, life = c->life;

	s->n->deaths++;
	*c = (struct es_client){.index = index, .life = life + 1};
}

/* Sessions of the dead end, also those that came with slots. */
static void bury(struct es *s)
{
	for (unsigned i = 0; i < ES_BLOCKS; i++) {
		struct blk_block *b = &s->block[i].block;

		for (uint32_t k = 0; k < b->session_room; k++) {
			unsigned client, life;

			memcpy(&client, b->session[k].id + 4, sizeof(client));
			memcpy(&life, b->session[k].id + 8, sizeof(life));
			if (b->session[k].is_used &&
			    s->client[client].life != life)
				blk_leave(b, b->session[k].id);
		}
	}
}

/* A mover may forget what it was at, or go on when others have. */
static bool may_go_on(struct es *s, struct es_client *c)
{
	bool tidies = c->step == ES_REST || c->step == ES_REST_AT ||
		      c->step == ES_UNBIND;
	bool has_list = c->step == ES_IMPORT && c->has_list;
	struct rng *r = &s->run->rand;

	if (c->step == ES_NONE)
		return true;
	if (sim_rand_chance(r, tidies ? s->mood->leave_ppm : FORGET_PPM)) {
		c->step = ES_NONE;
		return true;
	}
	if (!sim_rand_chance(r, has_list ? s->mood->list_nap_ppm
					 : s->mood->nap_ppm))
		return true;
	c->nap = sim_rand_below(r, NAP_TURNS);
	s->n->stopped++;
	return false;
}

static void live(struct es *s, struct es_client *c)
{
	struct rng *r = &s->run->rand;

	if (sim_rand_chance(r, 2000)) {
		die(s, c);
		return;
	}
	if (c->nap) {
		c->nap--;
		return;
	}
	if (c->is_waiting) {
		if (!c->patience || !--c->patience)
			try_again(s, c);
		return;
	}
	if (!may_go_on(s, c))
		return;
	if (c->step == ES_NONE && !has_ops(c)) {
		/* Some do hardly anything else. */
		if (sim_rand_below(r, c->index % 2 ? 8 : s->mood->mover) == 0)
			es_mover_begin(s, c, sim_rand_below(r, ES_BLOCKS));
		else
			begin_ops(s, c);
	}
	if (c->step != ES_NONE)
		es_mover_ask(s, c);
	else
		ask_ops(s, c);
	c->ask.acked = acknowledged(c);
	c->is_waiting = true;
	c->tag++;
	send(s, c);
}

static void travel(struct es *s, struct es_way *w)
{
	struct es_client *c = &s->client[w->client];

	if (!w->is_used || --w->delay)
		return;
	if (c->life != w->life || c->conn[w->ask.block] != w->conn) {
		w->is_used = false;
		s->n->fenced += !w->is_answer;
	} else if (!w->is_answer) {
		es_arrive(s, w);
	} else {
		w->is_used = false;
		if (w->tag != c->tag)
			return;
		c->is_waiting = false;
		if (w->ask.part[0].opcode >= BLOCK_KV_GET &&
		    w->ask.part[0].opcode <= BLOCK_KV_ADD)
			heard_ops(s, c, w);
		else
			es_mover_hear(s, c, w);
	}
}

/* ---- judging ------------------------------------------------------------- */

/* No slot is served by two blocks. */
static void judge_slots(struct es *s)
{
	static uint8_t served[BLOCK_KV_SLOTS];

	memset(served, 0, sizeof(served));
	for (unsigned i = 0; i < ES_BLOCKS; i++) {
		const struct blk_ekv *e = &s->block[i].block.ekv;

		for (uint32_t slot = e->lo; slot < e->hi; slot++) {
			enum block_status unused;

			if (!blk_ekv_serves(&s->block[i].block, slot, &unused))
				continue;
			if (served[slot]++) {
				play_fail(s->run, "two blocks serve slot %u",
					  slot);
				return;
			}
		}
	}
}

/* Messages are not lost any more, and nobody dies. */
static void settle_all(struct es *s)
{
	struct es_client *c = &s->client[0];
	struct es_way w;

	for (unsigned i = 0; i < ES_CLIENTS; i++)
		die(s, &s->client[i]);
	for (unsigned i = 0; i < 4000; i++) {
		const struct blk_ekv *e = &s->block[i % ES_BLOCKS].block.ekv;

		if (c->step == ES_NONE &&
		    (e->in.generation || e->out.generation))
			es_mover_begin(s, c, i % ES_BLOCKS);
		if (c->step == ES_NONE)
			continue;
		es_mover_ask(s, c);
		w = (struct es_way){
			.is_used = true, .life = c->life, .ask = c->ask};
		es_arrive(s, &w);
		w.result[0].data = w.result[0].length ? w.data : NULL;
		es_mover_hear(s, c, &w);
		/* Nothing new is begun. */
		if (c->step == ES_BIND || c->step == ES_SEAL)
			c->step = ES_NONE;
	}
}

static void judge_end(struct es *s)
{
	uint64_t items = 0, slots = 0, keys = 0;

	settle_all(s);
	bury(s);
	for (unsigned i = 0; i < ES_BLOCKS; i++) {
		const struct blk_ekv *e = &s->block[i].block.ekv;

		if (e->in.generation || e->out.generation)
			play_fail(s->run, "a move does not end");
		items += e->items;
		slots += e->hi - e->lo;
	}
	for (unsigned i = 0; i < ES_KEYS; i++)
		keys += s->key[i].is_there;
	if (slots != BLOCK_KV_SLOTS)
		play_fail(s->run, "%llu slots are in some block",
			  (unsigned long long)slots);
	if (items != keys)
		play_fail(s->run, "%llu keys instead of %llu",
			  (unsigned long long)items, (unsigned long long)keys);
	s->n->keys += keys;
}

int es_play(struct play_run *run, struct elastic_play_counts *n)
{
	struct es *s = aligned_alloc(64, align_up(sizeof(*s), 64));
	int err = s ? 0 : -ENOMEM;

	if (err)
		return err;
	memset(s, 0, sizeof(*s));
	s->run = run;
	s->n = n;
	s->mood = &moods[sim_rand_below(&run->rand, ARRAY_LEN(moods))];
	for (unsigned i = 0; i < ES_BLOCKS && !err; i++)
		err = es_renew(s, i);
	for (unsigned i = 0; i < ES_CLIENTS; i++)
		s->client[i].index = i;
	for (unsigned t = 0; t < TURNS && !err && !run->res->violations; t++) {
		for (unsigned i = 0; i < ES_WAYS; i++)
			travel(s, &s->way[i]);
		for (unsigned i = 0; i < ES_CLIENTS; i++)
			live(s, &s->client[i]);
		if (t % 16 == 0)
			judge_slots(s);
		es_watcher_turn(s);
		bury(s);
	}
	if (!err && !run->res->violations)
		judge_end(s);
	es_watcher_end(s);
	for (unsigned i = 0; i < ES_BLOCKS; i++)
		if (s->block[i].block.mem)
			blk_release(&s->block[i].block);
	free(s);
	return err;
}
