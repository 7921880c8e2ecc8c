/* SPDX-License-Identifier: Apache-2.0 */
/* A client that moves slots between blocks, step by step, with the rules of
 * far/elastic; it may stop after any of them, and another one goes on. */
#include <string.h>

#include "elastic_store_priv.h"

enum {
	HEAD = sizeof(struct block_kv_batch_wire),
};

static void remember(struct es_client *c)
{
	c->old = (struct es_ends){
		.from = c->from,
		.to = c->to,
		.from_generation = c->from_generation,
		.to_generation = c->to_generation,
		.token = c->token,
	};
}

/* A thread of the client that was stopped for long goes on. */
static void resume(struct es_client *c)
{
	c->from = c->old.from;
	c->to = c->old.to;
	c->from_generation = c->old.from_generation;
	c->to_generation = c->old.to_generation;
	c->token = c->old.token;
	c->part = 0;
	c->step = ES_EXPORT;
}

void es_mover_begin(struct es *s, struct es_client *c, unsigned block)
{
	if (c->old.token && s->mood->resumes &&
	    sim_rand_below(&s->run->rand, 3) == 0) {
		resume(c);
		return;
	}
	c->step = ES_LOOK;
	c->from = block;
	c->from_generation = s->block[block].block.generation;
}

static void tell(struct es_client *c, enum block_opcode opcode, unsigned block,
		 uint64_t generation, uint64_t low)
{
	c->ask.block = block;
	c->ask.generation = generation;
	c->ask.count = 1;
	c->ask.part[0] = (struct es_part){.opcode = opcode,
					  .arg = (uint64_t)c->token << 32 |
						 (uint32_t)low};
}

static void tell_end(struct es_client *c, enum block_opcode opcode,
		     unsigned block, uint64_t generation, unsigned other,
		     uint64_t other_generation)
{
	struct block_kv_end_wire w = {
		.number = be64_put(other),
		.generation = be64_put(other_generation),
		.token = be32_put(c->token),
		.is_bottom = be16_put(c->is_bottom),
		.is_all = be16_put(c->is_all),
	};

	tell(c, opcode, block, generation, 0);
	c->ask.part[0].length = sizeof(w);
	memcpy(c->ask.bytes, &w, sizeof(w));
}

/* ---- lists --------------------------------------------------------------- */

/* Reads records up to that one, as they are by now. */
static void load_records(struct es *s, struct es_client *c, uint32_t end)
{
	const uint8_t *mem = s->block[c->from].mem;
	uint32_t head =
		HEAD + be32_get(c->head.answers) *
			       (uint32_t)sizeof(struct block_kv_answer_wire);

	for (; c->loaded < end; c->loaded++) {
		struct block_kv_listed_wire w;
		uint32_t size;

		memcpy(&w, c->list + head + c->loaded * sizeof(w), sizeof(w));
		size = be32_get(w.size);
		ASSERT(size <= sizeof(c->carried) - c->carried_bytes);
		memcpy(c->carried + c->carried_bytes,
		       mem + 8ull * be32_get(w.at8), size);
		c->carried_bytes += size;
	}
}

/* One half is read now and the other one later, when the block may be
 * compacted, or another one. */
static void heard_list(struct es *s, struct es_client *c,
		       const struct block_result *r)
{
	memcpy(c->list, r->data, r->length);
	c->loaded = 0;
	c->carried_bytes =
		HEAD + be32_get(c->head.answers) *
			       (uint32_t)sizeof(struct block_kv_answer_wire);
	memcpy(c->carried, c->list, c->carried_bytes);
	load_records(s, c, be32_get(c->head.records) / 2);
	s->n->listed++;
}

/* False: records have moved since the list was made. */
static bool is_loaded(struct es *s, struct es_client *c)
{
	const struct block_head *block = (const void *)s->block[c->from].mem;

	load_records(s, c, be32_get(c->head.records));
	/* The key of a block that was given back is void. */
	return s->block[c->from].block.generation == c->from_generation &&
	       be64_get(block->moves) == be64_get(c->head.room[1]);
}

/* ---- messages ------------------------------------------------------------ */

void es_mover_ask(struct es *s, struct es_client *c)
{
	uint64_t batch = c->batch & (BLOCK_KV_HAS - 1);
	bool wants_list = sim_rand_below(&s->run->rand, 2);

	if (c->step == ES_IMPORT && c->has_list && !is_loaded(s, c)) {
		s->n->moved++;
		wants_list = false;
		c->step = ES_EXPORT;
	}
	switch (c->step) {
	case ES_LOOK:
	case ES_REST_AT:
		tell(c, BLOCK_KV_LOOK, c->from, c->from_generation, 0);
		break;
	case ES_REST:
		tell(c, BLOCK_KV_LOOK, c->to, c->to_generation, 0);
		break;
	case ES_BIND:
		tell_end(c, BLOCK_KV_BIND, c->to, c->to_generation, c->from,
			 c->from_generation);
		break;
	case ES_START:
		tell_end(c, BLOCK_KV_START, c->from, c->from_generation, c->to,
			 c->to_generation);
		break;
	case ES_EXPORT:
		tell_end(c, BLOCK_KV_EXPORT, c->from, c->from_generation, c->to,
			 c->to_generation);
		c->ask.part[0].arg = c->part | (wants_list ? BLOCK_KV_LIST : 0);
		break;
	case ES_IMPORT:
		tell(c, BLOCK_KV_IMPORT, c->to, c->to_generation, batch);
		c->ask.part[0].length = c->carried_bytes;
		memcpy(c->ask.bytes, c->carried, c->carried_bytes);
		break;
	case ES_SETTLE:
		tell_end(c, BLOCK_KV_SETTLE, c->from, c->from_generation, c->to,
			 c->to_generation);
		c->ask.part[0].arg = batch | (c->has ? BLOCK_KV_HAS : 0);
		break;
	case ES_UNBIND:
		tell(c, BLOCK_KV_UNBIND, c->to, c->to_generation,
		     c->decided & (BLOCK_KV_HAS - 1));
		break;
	case ES_SEAL:
		tell(c, BLOCK_SEAL, c->from, c->from_generation, 0);
		break;
	case ES_NONE:
	default:
		break;
	}
}

/* ---- answers ------------------------------------------------------------- */

static bool is_current(const struct es *s, uint64_t number, uint64_t generation)
{
	return number < ES_BLOCKS &&
	       s->block[number].block.generation == generation;
}

/* Something new: half of it to any other block, or all to a neighbour. */
static void choose(struct es *s, struct es_client *c,
		   const struct block_kv_look_wire *l)
{
	uint32_t lo = be32_get(l->lo), hi = be32_get(l->hi);

	c->step = ES_NONE;
	if (lo == hi) {
		if (sim_rand_below(&s->run->rand, 2))
			c->step = ES_SEAL;
		return;
	}
	c->to = sim_rand_below(&s->run->rand, ES_BLOCKS);
	if (c->to == c->from)
		return;
	c->to_generation = s->block[c->to].block.generation;
	c->is_all = sim_rand_below(&s->run->rand, 2);
	c->is_bottom = sim_rand_below(&s->run->rand, 2);
	c->token = 0;
	c->step = ES_BIND;
}

static void heard_look(struct es *s, struct es_client *c,
		       const struct block_kv_look_wire *l)
{
	uint64_t to = be64_get(l->to.generation);
	uint64_t from = be64_get(l->from.generation);

	/* A target that is gone takes nothing, and the move is over. */
	if (to) {
		c->to = (unsigned)be64_get(l->to.number);
		c->to_generation = to;
		c->token = be32_get(l->to.token);
		c->part = 0;
		c->step = ES_EXPORT;
		s->n->helped++;
	} else if (from) {
		c->to = c->from;
		c->to_generation = c->from_generation;
		c->step = ES_REST;
	} else {
		choose(s, c, l);
	}
}

static void heard_rest(struct es *s, struct es_client *c,
		       const struct block_kv_look_wire *l)
{
	uint64_t from = be64_get(l->from.generation);

	c->step = ES_NONE;
	if (!from)
		return;
	c->token = be32_get(l->from.token);
	c->decided = be64_get(l->decided);
	c->from = (unsigned)be64_get(l->from.number);
	c->from_generation = from;
	c->step = is_current(s, be64_get(l->from.number), from) ? ES_REST_AT
								: ES_UNBIND;
}

static void heard_rest_at(struct es_client *c,
			  const struct block_kv_look_wire *l)
{
	c->part = 0;
	c->step = be64_get(l->to.generation) == c->to_generation &&
				  be32_get(l->to.token) == c->token
			  ? ES_EXPORT
			  : ES_UNBIND;
}

static void heard_export(struct es *s, struct es_client *c,
			 const struct block_result *r)
{
	if (r->status == BLOCK_STALE) {
		c->step = ES_REST; /* somebody has ended it */
		return;
	}
	if (r->status != BLOCK_OK || !r->data) {
		if (r->status != BLOCK_LATER)
			play_fail(s->run, "slots do not leave: %s",
				  block_status_text(r->status));
		c->step = ES_NONE;
		return;
	}
	c->step = ES_IMPORT;
	c->carried_bytes = r->length;
	c->has_list = r->value == BLOCK_KV_LISTED;
	if (c->has_list) {
		memcpy(&c->head, r->data, sizeof(c->head));
		heard_list(s, c, r);
	} else if (r->value == BLOCK_KV_WHOLE) {
		memcpy(c->carried, r->data, r->length);
		memcpy(&c->head, r->data, sizeof(c->head));
	} else {
		memcpy(c->carried + HEAD, r->data, r->length);
		c->head.first = be32_put(c->part);
		c->head.answers = be32_put(0);
		c->head.records = be32_put(1);
		memcpy(c->carried, &c->head, sizeof(c->head));
		c->carried_bytes += HEAD;
		s->n->alone++;
	}
	c->batch = be64_get(c->head.number);
}

static void heard_import(struct es *s, struct es_client *c,
			 const struct block_result *r)
{
	if (r->status == BLOCK_OK && r->value != BLOCK_KV_DONE) {
		c->part = (uint32_t)r->value;
		c->step = ES_EXPORT;
		return;
	}
	if (r->status != BLOCK_OK && r->status != BLOCK_STALE &&
	    r->status != BLOCK_REFUSED)
		play_fail(s->run, "slots do not come: %s",
			  block_status_text(r->status));
	c->has = r->status == BLOCK_OK;
	s->n->batches += c->has;
	c->step = ES_SETTLE;
}

void es_mover_hear(struct es *s, struct es_client *c, const struct es_way *w)
{
	const struct block_result *r = &w->result[0];
	struct block_kv_look_wire look;

	memcpy(&look, w->data, sizeof(look));
	if (w->ask.part[0].opcode == BLOCK_KV_LOOK && r->status != BLOCK_OK) {
		/* It is another block now: its source is at rest for good. */
		c->step = c->step == ES_REST_AT ? ES_UNBIND : ES_NONE;
		return;
	}
	switch (c->step) {
	case ES_LOOK:
		heard_look(s, c, &look);
		break;
	case ES_REST:
		heard_rest(s, c, &look);
		break;
	case ES_REST_AT:
		heard_rest_at(c, &look);
		break;
	case ES_BIND:
		c->token = (uint32_t)r->value;
		c->step = r->status == BLOCK_OK ? ES_START : ES_NONE;
		break;
	case ES_START:
		c->part = 0;
		c->step = r->status == BLOCK_OK ? ES_EXPORT : ES_REST;
		if (!c->old.token || sim_rand_below(&s->run->rand, 3) == 0)
			remember(c);
		break;
	case ES_EXPORT:
		heard_export(s, c, r);
		break;
	case ES_IMPORT:
		heard_import(s, c, r);
		break;
	case ES_SETTLE:
		c->part = 0;
		c->step =
			r->status == BLOCK_OK && r->value ? ES_EXPORT : ES_REST;
		break;
	case ES_SEAL:
		if (r->status == BLOCK_OK &&
		    is_current(s, c->from, c->from_generation)) {
			s->n->renewed++;
			if (es_renew(s, c->from))
				play_fail(s->run, "no memory");
		}
		c->step = ES_NONE;
		break;
	case ES_UNBIND:
	case ES_NONE:
	default:
		c->step = ES_NONE;
		break;
	}
}
