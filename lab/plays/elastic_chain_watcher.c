/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches a block with copies: they ask whom the map calls the reader, are
 * sent elsewhere, sleep too long sometimes; what they were told must be what
 * was done, each once, or counted as lost. */
#include <stdlib.h>
#include <string.h>

#include "elastic_chain_priv.h"

enum {
	PATIENCE = 60,
	NAP_TURNS = 900,
	SLOW = 1, /* the one that sleeps */
};

static void look_at_map(const struct ec *w, struct ec_ear *e)
{
	struct ec_client c = {0};

	ec_map(w, &c);
	e->node = c.reader;
	e->generation = c.reader_generation;
}

void ec_ears_begin(struct ec *w)
{
	for (unsigned i = 0; i < EC_EARS; i++) {
		struct ec_ear *e = &w->ear[i];

		e->index = i;
		e->tail = (struct block_tail){
			.generation = 1, .is_started = true, .bytes = e->bytes};
		look_at_map(w, e);
	}
}

/* ---- asking -------------------------------------------------------------- */

static void ask(struct ec *w, struct ec_ear *e)
{
	struct ec_way *m = ec_way_new(w);

	e->patience = sim_rand_range(&w->run->rand, 10, PATIENCE);
	e->tag++;
	e->is_waiting = true;
	if (!m)
		return;
	m->is_watch = true;
	m->node = e->node;
	m->generation = e->generation;
	m->client = e->index;
	m->tag = e->tag;
	m->arg = e->tail.next;
	m->delay = sim_rand_range(&w->run->rand, 1, 4);
}

void ec_ear_step(struct ec *w, struct ec_ear *e)
{
	struct rng *r = &w->run->rand;

	if (e->nap && !w->is_calm) {
		e->nap--;
		return;
	}
	if (e->index == SLOW && sim_rand_chance(r, 3000))
		e->nap = sim_rand_below(r, NAP_TURNS);
	if (e->is_waiting && --e->patience)
		return;
	if (e->is_waiting && sim_rand_below(r, 3) == 0)
		look_at_map(w, e);
	ask(w, e);
}

/* ---- the node ------------------------------------------------------------ */

void ec_ear_answer(struct ec *w, struct ec_node *n, struct ec_way *m)
{
	bool has_some;

	m->is_answer = true;
	m->from = n->index;
	m->delay = sim_rand_range(&w->run->rand, 1, 4);
	m->length = 0;
	if (!n->has_block || n->generation != m->generation ||
	    !blk_chain_may_read(&n->chain, ec_now_ns(w, n)))
		return; /* elsewhere */
	m->bytes = malloc(EC_REPLY);
	if (m->bytes)
		m->length = blk_chain_watch(&n->chain, m->arg, UINT32_MAX,
					    m->bytes, EC_REPLY, &has_some);
}

/* ---- hearing ------------------------------------------------------------- */

static void note(struct ec *w, struct ec_ear *e, struct ec_told told)
{
	if (e->count == ARRAY_LEN(e->told)) {
		play_fail(w->run, "a chain tells more than was done");
		return;
	}
	e->told[e->count++] = told;
	w->n->events += told.what != 0;
	w->n->missed += told.what == 0;
}

static void listen(struct ec *w, struct ec_ear *e)
{
	struct block_tail *tails[] = {&e->tail};
	struct block_reader reader = {.tail = tails, .count = 1};
	struct block_told told;

	while (block_reader_next(&reader, &told) && !w->run->res->violations) {
		struct ec_told t = {.what = told.what, .value = told.value};

		if (told.what && told.inside >= 4)
			memcpy(&t.id, told.bytes, 4);
		for (uint64_t i = 0; !told.what && i < told.lost; i++)
			note(w, e, t);
		if (told.what)
			note(w, e, t);
	}
}

void ec_ear_hear(struct ec *w, struct ec_ear *e, const struct ec_way *m)
{
	if (!e->is_waiting || m->tag != e->tag)
		return;
	e->is_waiting = false;
	if (!m->length) {
		w->n->elsewhere++;
		e->is_waiting = true;
		e->patience = sim_rand_range(&w->run->rand, 5, PATIENCE);
		look_at_map(w, e);
		return;
	}
	if (block_tail_take(&e->tail, m->bytes, m->length))
		play_fail(w->run, "a chain tells events again");
	else
		listen(w, e);
}

/* ---- the end ------------------------------------------------------------- */

bool ec_ears_heard(const struct ec *w)
{
	struct ec_client c = {0};
	const struct ec_node *n;

	ec_map(w, &c);
	n = &w->node[c.reader];
	for (unsigned i = 0; i < EC_EARS; i++)
		if (!n->has_block || n->generation != c.reader_generation ||
		    w->ear[i].tail.next < n->block.watch.serial)
			return false;
	return true;
}

static bool is_change(const struct ec_op *op)
{
	return op->status == BLOCK_OK && op->opcode != BLOCK_STAT &&
	       op->opcode != BLOCK_KV_GET;
}

static bool is_event_of(const struct ec_told *t, const struct ec_op *op)
{
	switch ((int)op->opcode) {
	case BLOCK_APPEND:
		return t->what == BLOCK_EVENT_APPEND && t->value == op->value;
	case BLOCK_PUT:
		return t->what == BLOCK_EVENT_PUT && t->id == op->id;
	case BLOCK_KV_PUT:
		return t->what == BLOCK_EVENT_SET && t->value == op->value;
	default:
		return false;
	}
}

static void judge(struct ec *w, const struct ec_ear *e)
{
	unsigned changes = 0, missed = 0;

	for (unsigned i = 0; i < w->op_count; i++)
		changes += is_change(&w->op[i]);
	for (unsigned i = 0; i < e->count; i++)
		missed += !e->told[i].what;
	if (e->count != changes)
		play_fail(w->run, "a chain: %u changes, %u events, %u lost",
			  changes, e->count - missed, missed);
	for (unsigned i = 0; i < w->op_count; i++) {
		const struct ec_op *op = &w->op[i];
		unsigned seen = 0;

		if (!is_change(op) || op->opcode == BLOCK_GET ||
		    op->opcode == BLOCK_KV_ADD)
			continue;
		for (unsigned k = 0; k < e->count; k++)
			seen += is_event_of(&e->told[k], op);
		/* Versions of several keys may be the same. */
		if ((!seen && !missed) ||
		    (seen > 1 && op->opcode != BLOCK_KV_PUT))
			play_fail(w->run, "a change is told %u times", seen);
	}
}

/* Both were told the same things at the same place. */
static void compare(struct ec *w)
{
	const struct ec_ear *a = &w->ear[0], *b = &w->ear[SLOW];

	for (unsigned i = 0; i < a->count && i < b->count; i++)
		if (a->told[i].what && b->told[i].what &&
		    (a->told[i].what != b->told[i].what ||
		     a->told[i].value != b->told[i].value ||
		     a->told[i].id != b->told[i].id)) {
			play_fail(w->run, "event %u is told in two ways", i);
			return;
		}
}

void ec_judge_ears(struct ec *w)
{
	for (unsigned i = 0; i < EC_EARS; i++)
		judge(w, &w->ear[i]);
	compare(w);
}
