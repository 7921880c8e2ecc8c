/* SPDX-License-Identifier: Apache-2.0 */
/* The node of the play "elastic": shipped blocks, messages that are built and
 * parsed, and a model that executes the same changes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_play_priv.h"

/* ---- values -------------------------------------------------------------- */

uint32_t ep_length(uint32_t id)
{
	return 8 + id * 37 % (EP_VALUE_MAX - 8);
}

void ep_fill(uint32_t id, uint32_t length, uint8_t *out)
{
	memcpy(out, &id, 4);
	memcpy(out + 4, &length, 4);
	for (uint32_t i = 8; i < length; i++)
		out[i] = (uint8_t)(id + i);
}

bool ep_is_value(uint32_t id, uint32_t length, const uint8_t *bytes)
{
	uint8_t want[EP_VALUE_MAX];

	if (length != ep_length(id))
		return false;
	ep_fill(id, length, want);
	return memcmp(want, bytes, length) == 0;
}

/* ---- blocks -------------------------------------------------------------- */

int ep_grow(struct ep *p, unsigned object)
{
	struct ep_object *o = &p->object[object];
	struct blk_options options = {
		.kind = o->kind,
		.size_bytes = EP_BLOCK_BYTES,
		.generation = o->blocks + 1,
		.bound = o->kind == BLOCK_QUEUE ? p->bound : 0,
		.is_first = o->blocks == 0,
	};
	struct ep_block *b;

	if (o->blocks == EP_BLOCKS)
		return -ENOSPC;
	b = calloc(1, sizeof(*b));
	if (!b || blk_init(&b->block, &options, b->mem)) {
		free(b);
		return -ENOMEM;
	}
	o->block[o->blocks++] = b;
	p->n->grown++;
	return 0;
}

static uint8_t *session_of(unsigned client, unsigned life,
			   uint8_t id[BLOCK_SESSION_BYTES])
{
	memset(id, 0, BLOCK_SESSION_BYTES);
	memcpy(id, &client, 4);
	memcpy(id + 4, &life, 4);
	return id;
}

/* As the node gets it: from the bytes of a message. */
static void request_of(struct ep *p, const struct ep_way *w, uint8_t *buf,
		       struct block_message *m, struct block_op *ops,
		       struct blk_request *r)
{
	uint8_t value[EP_VALUE_MAX];
	struct block_op op = {.opcode = w->ask.opcode,
			      .sequence = w->ask.sequence,
			      .arg = w->ask.arg,
			      .length = w->ask.length};
	struct block_message out = {.acked = w->ask.acked};
	struct block_writer writer;
	size_t bytes;

	(void)session_of(w->client, w->life, out.session);
	if (w->ask.id && w->ask.length <= EP_INSIDE) {
		ep_fill(w->ask.id, w->ask.length, value);
		op.value = value;
	}
	block_message_begin(&writer, buf, BLOCK_MESSAGE_MAX);
	if (block_message_add(&writer, &op))
		play_fail(&p->run, "a message has no room");
	bytes = block_message_end(&writer, &out);
	if (block_message_parse(buf, bytes, m, ops))
		play_fail(&p->run, "a message cannot be read again");
	*r = (struct blk_request){
		.session = m->session,
		.acked = m->acked,
		.opcode = ops[0].opcode,
		.sequence = ops[0].sequence,
		.arg = ops[0].arg,
		.length = ops[0].length,
		.value = ops[0].value,
		.inside_room = BLOCK_INSIDE_MAX,
	};
}

/* ---- the model ----------------------------------------------------------- */

static uint32_t oldest(const struct ep *p, const struct ep_block *b)
{
	for (unsigned i = 0; i < b->count; i++)
		if (p->fate[b->id[i]] == EP_READY)
			return b->id[i];
	return 0;
}

/* The room of a queue's items is used again. */
static void add_value(struct ep *p, struct ep_block *b, uint32_t id)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < b->count; i++)
		if (p->fate[b->id[i]] != EP_GONE)
			b->id[kept++] = b->id[i];
	b->count = kept;
	b->id[b->count++] = id;
}

/* The same in the model: what was executed must have been right. */
static void model(struct ep *p, struct ep_block *b, const struct ep_way *w,
		  const struct blk_answer *a)
{
	uint32_t id;

	p->n->executed++;
	switch ((int)w->ask.opcode) {
	case BLOCK_PUT:
	case BLOCK_APPEND:
		if (p->fate[w->ask.id] != EP_NOT_THERE)
			play_fail(&p->run, "value %u is there twice",
				  w->ask.id);
		p->fate[w->ask.id] = EP_READY;
		add_value(p, b, w->ask.id);
		p->in += w->ask.opcode == BLOCK_PUT;
		if (p->in > p->bound)
			play_fail(&p->run, "%llu items, and the bound is %llu",
				  (unsigned long long)p->in,
				  (unsigned long long)p->bound);
		break;
	case BLOCK_GET:
		memcpy(&id, a->data, 4);
		if (id != oldest(p, b))
			play_fail(&p->run, "item %u before item %u", id,
				  oldest(p, b));
		else
			p->fate[id] =
				(uint8_t)(w->ask.arg ? EP_PARKED + w->client
						     : EP_GONE);
		p->in -= !w->ask.arg;
		if (!w->ask.arg) {
			p->client[w->client].got_id = id;
			p->client[w->client].got_sequence = w->ask.sequence;
		}
		break;
	case BLOCK_ACK:
		id = p->client[w->client].parked_id;
		if (p->fate[id] != EP_PARKED + w->client)
			play_fail(&p->run, "item %u is not its consumer's", id);
		p->fate[id] = EP_GONE;
		p->in--;
		break;
	default:
		break;
	}
}

static void answer(struct ep *p, struct ep_way *w, const struct blk_answer *a)
{
	w->is_answer = true;
	w->delay = sim_rand_range(&p->run.rand, 1, 4);
	w->result = (struct block_result){
		.status = a->status, .length = a->length, .value = a->value};
	w->id = 0;
	if (a->data) {
		memcpy(&w->id, a->data, 4);
		w->is_whole = w->id && w->id < p->values &&
			      ep_is_value(w->id, a->length, a->data);
	}
	if (sim_rand_chance(&p->run.rand, 150000)) {
		w->is_used = false;
		p->n->lost++;
	}
}

static void settle(struct ep *p, struct ep_block *b, struct ep_way *w,
		   uint64_t last, const struct blk_answer *a)
{
	bool is_change = w->ask.opcode != BLOCK_STAT;

	if (a->status == BLOCK_OK && is_change && w->ask.sequence > last)
		model(p, b, w, a);
	else if (a->status == BLOCK_OK && is_change)
		p->n->repeated++;
	answer(p, w, a);
	if (w->ask.opcode == BLOCK_GET && w->ask.arg && a->status == BLOCK_OK &&
	    p->fate[w->id] != EP_PARKED + w->client)
		play_fail(&p->run, "item %u is shown to who does not have it",
			  w->id);
	if (w->ask.opcode == BLOCK_STAT) {
		struct block_stat_wire s = {.flags = be32_put(b->block.flags)};

		b->block.kind->stat(&b->block, &s);
		w->result.value = b->block.kind->id == BLOCK_QUEUE
					  ? be64_get(s.items)
					  : be64_get(s.end);
	}
}

static uint64_t last_of(struct ep_block *b, const uint8_t *session)
{
	uint32_t at;

	return blk_session_find(&b->block, session, false, &at)
		       ? 0
		       : b->block.session[at].last;
}

/* ---- messages ------------------------------------------------------------ */

bool ep_arrive(struct ep *p, struct ep_way *w)
{
	struct ep_block *b = p->object[w->ask.object].block[w->ask.number];
	static uint8_t buf[BLOCK_MESSAGE_MAX];
	static struct block_op ops[BLOCK_OPS_MAX];
	struct block_message m;
	struct blk_request r;
	struct blk_answer a;
	uint64_t last;

	if (b->busy)
		return false;
	request_of(p, w, buf, &m, ops, &r);
	last = last_of(b, m.session);
	if (blk_begin(&b->block, &r, &a)) {
		b->busy = w->client + 1;
		return true;
	}
	settle(p, b, w, last, &a);
	return true;
}

void ep_fetched(struct ep *p, struct ep_way *w, bool is_there)
{
	struct ep_block *b = p->object[w->ask.object].block[w->ask.number];
	static uint8_t buf[BLOCK_MESSAGE_MAX];
	static struct block_op ops[BLOCK_OPS_MAX];
	struct block_message m;
	struct blk_request r;
	struct blk_answer a;
	uint64_t last;
	uint8_t *place;

	b->busy = 0;
	if (!is_there) {
		w->is_used = false;
		return;
	}
	p->n->fetched++;
	request_of(p, w, buf, &m, ops, &r);
	last = last_of(b, m.session);
	/* The same place: nothing has happened to the block. */
	place = blk_begin(&b->block, &r, &a);
	if (place) {
		ep_fill(w->ask.id, w->ask.length, place);
		blk_finish(&b->block, &r, &a);
	}
	settle(p, b, w, last, &a);
}

/* Items are what the model says; returns how many. */
static unsigned back(struct ep *p, unsigned client)
{
	unsigned n = 0;

	for (uint32_t i = 1; i < p->values; i++)
		if (p->fate[i] == EP_PARKED + client) {
			p->fate[i] = EP_READY;
			n++;
		}
	return n;
}

void ep_away(struct ep *p, struct ep_client *c)
{
	uint8_t id[BLOCK_SESSION_BYTES];

	(void)session_of(c->index, c->life, id);
	for (unsigned i = 0; i < p->object[1].blocks; i++)
		blk_give_back(&p->object[1].block[i]->block, id);
	c->is_back |=
		c->parked && p->fate[c->parked_id] == EP_PARKED + c->index;
	p->n->away += back(p, c->index);
}

void ep_bury(struct ep *p, unsigned client, unsigned life)
{
	uint8_t id[BLOCK_SESSION_BYTES];

	(void)session_of(client, life, id);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < p->object[k].blocks; i++)
			blk_leave(&p->object[k].block[i]->block, id);
	p->n->returned += back(p, client);
}
