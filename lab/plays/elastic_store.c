/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of the store: shipped blocks, and the model beside them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "block/blk_order.h"
#include "elastic_store_priv.h"

uint32_t es_key_name(unsigned key, uint8_t out[8])
{
	return (uint32_t)snprintf((char *)out, 8, "k%u", key);
}

/* Mostly small; some are larger than a batch. */
uint32_t es_value(uint32_t id, uint8_t *out)
{
	uint32_t length = 8 + id * 37 % (id % 5 ? 60 : ES_VALUE_MAX - 8);

	memcpy(out, &id, sizeof(id));
	for (uint32_t i = sizeof(id); i < length; i++)
		out[i] = (uint8_t)(id * 3 + i);
	return length;
}

int es_renew(struct es *s, unsigned block)
{
	struct es_block *b = &s->block[block];
	struct blk_options options = {
		.kind = BLOCK_EKV,
		.size_bytes = ES_BYTES,
		.generation = ++s->generations,
		.is_first = s->generations == 1,
	};

	if (b->block.mem) {
		es_watcher_ended(s, &b->block);
		blk_release(&b->block);
	}
	memset(b->mem, 0, sizeof(b->mem));
	return blk_init(&b->block, &options, b->mem);
}

/* ---- the model ----------------------------------------------------------- */

static void model_put(struct es *s, const struct es_op *o, struct es_key *k,
		      const struct blk_answer *a)
{
	uint64_t version = a->value;

	if (o->opcode == BLOCK_KV_ADD) {
		k->number = k->is_there ? k->number + o->number : o->number;
		if ((int64_t)a->value != k->number)
			play_fail(s->run, "key %u is %lld, and not %lld",
				  o->key, (long long)a->value,
				  (long long)k->number);
		k->is_there = true;
		return;
	}
	if (o->opcode == BLOCK_KV_DELETE) {
		if (!k->is_there || version != k->version)
			play_fail(s->run, "key %u was not what was deleted",
				  o->key);
		k->is_there = false;
		return;
	}
	if (version <= k->top)
		play_fail(s->run, "key %u has a version again", o->key);
	if (o->expect != BLOCK_KV_ANY &&
	    o->expect != (k->is_there ? k->version : 0))
		play_fail(s->run, "key %u had another version", o->key);
	k->is_there = true;
	k->id = o->id;
	k->version = version;
	k->top = version;
}

static void model_get(struct es *s, const struct es_op *o,
		      const struct es_key *k, const struct blk_answer *a)
{
	uint8_t want[ES_VALUE_MAX];
	uint32_t length;
	le64 word;

	if ((a->status == BLOCK_OK) != k->is_there) {
		play_fail(s->run, "key %u is %s", o->key,
			  k->is_there ? "lost" : "there again");
		return;
	}
	if (!k->is_there)
		return;
	if (o->key % 2) {
		word = le64_put((uint64_t)k->number);
		memcpy(want, &word, sizeof(word));
		length = sizeof(word);
	} else {
		length = es_value(k->id, want);
	}
	if (a->length != length || memcmp(a->data, want, length) != 0 ||
	    (o->key % 2 == 0 && a->value != k->version))
		play_fail(s->run, "key %u has an old value", o->key);
}

/* What a block says about a key is true now. */
static void model(struct es *s, struct es_client *c, unsigned which,
		  bool was_done, const struct blk_answer *a)
{
	struct es_op *o = &c->op[which];
	struct es_key *k = &s->key[o->key];

	if (o->opcode == BLOCK_KV_GET) {
		if (a->status == BLOCK_OK || a->status == BLOCK_NO_KEY)
			model_get(s, o, k, a);
		return;
	}
	if (a->status == BLOCK_NO_KEY && k->is_there)
		play_fail(s->run, "key %u is lost", o->key);
	if (a->status == BLOCK_VERSION &&
	    a->value != (k->is_there ? k->version : 0))
		play_fail(s->run, "key %u has an old version", o->key);
	if (a->status != BLOCK_OK)
		return;
	if (was_done) {
		s->n->repeated++;
		if (!o->was_executed || a->value != o->executed)
			play_fail(s->run, "a repetition has another answer");
		return;
	}
	if (o->was_executed) {
		play_fail(s->run, "a change of key %u was made twice", o->key);
		return;
	}
	/* What a client sends together happens in that order. */
	for (unsigned i = which + 1; i < c->ops; i++)
		if (c->op[i].key == o->key && c->op[i].was_executed)
			play_fail(s->run, "a change of key %u came too late",
				  o->key);
	s->n->executed++;
	o->was_executed = true;
	o->executed = a->value;
	es_watcher_executed(s, o->key,
			    o->opcode == BLOCK_KV_ADD	   ? BLOCK_EVENT_ADD
			    : o->opcode == BLOCK_KV_DELETE ? BLOCK_EVENT_DELETE
							   : BLOCK_EVENT_SET,
			    a->value);
	model_put(s, o, k, a);
}

/* ---- messages ------------------------------------------------------------ */

static void session_of(const struct es_way *w, uint8_t id[BLOCK_SESSION_BYTES])
{
	uint32_t mixed = (w->client * 2654435761u) ^ (w->life * 40503u);

	memset(id, 0, BLOCK_SESSION_BYTES);
	memcpy(id, &mixed, sizeof(mixed));
	memcpy(id + 4, &w->client, sizeof(w->client));
	memcpy(id + 8, &w->life, sizeof(w->life));
}

static bool was_done(struct blk_block *b, const struct blk_request *r)
{
	uint32_t at;

	return r->sequence && !blk_session_find(b, r->session, false, &at) &&
	       blk_session_done(&b->session[at], r->sequence) &&
	       r->sequence > b->session[at].acked;
}

static void execute(struct es *s, struct es_way *w, unsigned at,
		    struct blk_answer *a)
{
	struct blk_block *b = &s->block[w->ask.block].block;
	const struct es_part *p = &w->ask.part[at];
	uint8_t id[BLOCK_SESSION_BYTES], *place;
	const uint8_t *value = w->ask.bytes + p->at;
	struct blk_request r = {
		.session = id,
		.opcode = p->opcode,
		.sequence = p->sequence,
		.acked = w->ask.acked,
		.arg = p->arg,
		.length = p->length,
		.value = p->length > ES_INSIDE ? NULL : value,
		.inside_room = BLOCK_REPLY_MAX - 100,
		.buffer_bytes = ES_BYTES,
	};
	bool done;

	session_of(w, id);
	done = was_done(b, &r);
	place = blk_begin(b, &r, a);
	if (place) {
		s->n->fetched++;
		memcpy(place, value, r.length);
		blk_finish(b, &r, a);
	}
	if (p->opcode >= BLOCK_KV_GET && p->opcode <= BLOCK_KV_ADD)
		model(s, &s->client[w->client], p->op, done, a);
}

void es_arrive(struct es *s, struct es_way *w)
{
	const struct blk_block *b = &s->block[w->ask.block].block;
	struct blk_order order = {0};

	w->is_answer = true;
	w->delay = sim_rand_range(&s->run->rand, 1, 4);
	for (unsigned i = 0; i < w->ask.count; i++) {
		struct blk_answer a = {.status = BLOCK_STALE};
		struct block_op op = {.opcode = w->ask.part[i].opcode,
				      .arg = w->ask.part[i].arg};

		if (!blk_order_may(&order, &op)) {
			a.status = BLOCK_LATER;
		} else {
			if (b->generation == w->ask.generation)
				execute(s, w, i, &a);
			blk_order_note(&order, &op, a.status);
		}
		s->n->grouped += i > 0;
		s->n->behind += i > 0 && a.status == BLOCK_LATER;
		w->result[i] = (struct block_result){.status = a.status,
						     .length = a.length,
						     .value = a.value};
		if (a.data && a.length <= sizeof(w->data)) {
			memcpy(w->data, a.data, a.length);
			w->result[i].data = w->data;
		}
	}
	if (sim_rand_chance(&s->run->rand, 100000)) {
		w->is_used = false;
		s->n->lost++;
	}
}
