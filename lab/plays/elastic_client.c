/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the play "elastic": what it asks for next, and what it makes of
 * the answers; the rules are those of far/elastic. */
#include <string.h>

#include "elastic_play_priv.h"

enum {
	FILE_AT,
	QUEUE_AT,
};

static void begin(struct ep *p, struct ep_client *c)
{
	c->object = sim_rand_below(&p->run.rand, 3) ? QUEUE_AT : FILE_AT;
	c->puts = c->object == FILE_AT || sim_rand_below(&p->run.rand, 2);
	c->parks = sim_rand_below(&p->run.rand, 2);
	c->is_counting = false;
	c->id = 0;
	if (c->puts && p->values < EP_VALUES)
		c->id = p->values++;
	else
		c->puts = false;
	if (!c->puts)
		c->object = QUEUE_AT;
	p->n->ops++;
}

static bool is_idle(const struct ep_client *c)
{
	return !c->id && !c->is_counting && !c->parked && c->puts;
}

void ep_client_ask(struct ep *p, struct ep_client *c)
{
	struct ep_ask a = {.object = c->object};

	if (!c->parked && (is_idle(c) || (!c->puts && !c->is_counting))) {
		begin(p, c);
		a.object = c->object;
	}
	if (c->parked) {
		a.object = QUEUE_AT;
		a.opcode = BLOCK_ACK;
		a.number = c->parked_at;
		a.arg = c->parked;
	} else if (c->is_counting && c->count_at < c->tail[QUEUE_AT]) {
		a.opcode = BLOCK_STAT;
		a.number = c->count_at;
	} else if (c->is_counting) {
		a.opcode = BLOCK_CREDIT;
		a.number = c->tail[QUEUE_AT];
		a.arg = c->counted;
	} else if (c->puts) {
		a.opcode = c->object == FILE_AT ? BLOCK_APPEND : BLOCK_PUT;
		a.number = c->tail[c->object];
		a.arg = c->object == FILE_AT ? c->start : 0;
		a.id = c->id;
		a.length = ep_length(c->id);
	} else {
		a.opcode = BLOCK_GET;
		a.number = c->head;
		a.arg = c->parks;
	}
	a.acked = c->sequence;
	a.sequence = a.opcode == BLOCK_STAT ? 0 : ++c->sequence;
	c->ask = a;
	c->is_waiting = true;
}

/* ---- answers ------------------------------------------------------------- */

static void go_on(struct ep *p, struct ep_client *c)
{
	unsigned *at = &c->tail[c->object];

	if (*at + 1 == p->object[c->object].blocks && ep_grow(p, c->object)) {
		c->id = 0; /* no room: it gives up */
		return;
	}
	++*at;
}

static void count(struct ep_client *c)
{
	c->is_counting = true;
	c->count_at = 0;
	c->counted = 0;
}

static void heard_put(struct ep *p, struct ep_client *c,
		      const struct block_result *r)
{
	switch ((int)r->status) {
	case BLOCK_OK:
		p->was_answered[c->id] = true;
		p->offset[c->id] = c->start + r->value;
		c->id = 0;
		break;
	case BLOCK_SEALED:
		if (c->object == FILE_AT)
			c->start += r->value;
		go_on(p, c);
		break;
	case BLOCK_NO_CREDIT:
		count(c);
		break;
	case BLOCK_FULL:
		p->n->refused++;
		if (c->tail[QUEUE_AT] && sim_rand_below(&p->run.rand, 2))
			count(c);
		else
			c->id = 0; /* what is full may stay so */
		break;
	default:
		play_fail(&p->run, "a put is answered: %s",
			  block_status_text(r->status));
	}
}

static void heard_get(struct ep *p, struct ep_client *c, const struct ep_way *w)
{
	switch ((int)w->result.status) {
	case BLOCK_OK:
		if (!w->is_whole)
			play_fail(&p->run, "item %u is damaged", w->id);
		if (w->ask.arg) {
			c->parked = w->result.value;
			c->is_back = false;
			c->parked_at = w->ask.number;
		} else if (p->was_delivered[w->id]) {
			play_fail(&p->run, "item %u is delivered twice", w->id);
		} else {
			p->was_delivered[w->id] = true;
			p->n->items++;
		}
		c->parked_id = w->id;
		break;
	case BLOCK_DRAINED:
		if (c->head + 1 < p->object[QUEUE_AT].blocks)
			c->head++;
		break;
	case BLOCK_LATER: /* it has come back meanwhile */
	case BLOCK_EMPTY:
	case BLOCK_PARKED:
	case BLOCK_BUSY: /* many are parked */
		break;
	default:
		play_fail(&p->run, "a get is answered: %s",
			  block_status_text(w->result.status));
	}
}

static void heard_ack(struct ep *p, struct ep_client *c,
		      const struct block_result *r)
{
	if (r->status == BLOCK_STALE && c->is_back) {
		c->parked = 0;
		return;
	}
	if (r->status != BLOCK_OK)
		play_fail(&p->run, "an item cannot be acknowledged: %s",
			  block_status_text(r->status));
	if (p->was_delivered[c->parked_id])
		play_fail(&p->run, "item %u is delivered twice", c->parked_id);
	p->was_delivered[c->parked_id] = true;
	p->n->items++;
	c->parked = 0;
}

void ep_client_hear(struct ep *p, struct ep_client *c, const struct ep_way *w)
{
	c->is_waiting = false;
	/* A block of a queue that has no room is sealed by who has got another
	 * one; here there always is one. */
	if (w->ask.opcode == BLOCK_PUT && w->result.status == BLOCK_NO_ROOM) {
		struct ep_ask seal = {.opcode = BLOCK_SEAL,
				      .object = QUEUE_AT,
				      .number = w->ask.number,
				      .acked = c->sequence};

		if (c->tail[QUEUE_AT] + 1 == p->object[QUEUE_AT].blocks &&
		    ep_grow(p, QUEUE_AT)) {
			c->id = 0;
			return;
		}
		seal.sequence = ++c->sequence;
		c->ask = seal;
		c->is_waiting = true;
		c->patience = 0;
		return;
	}
	switch ((int)w->ask.opcode) {
	case BLOCK_PUT:
	case BLOCK_APPEND:
		heard_put(p, c, &w->result);
		break;
	case BLOCK_GET:
		heard_get(p, c, w);
		break;
	case BLOCK_ACK:
		heard_ack(p, c, &w->result);
		break;
	case BLOCK_STAT:
		c->counted += w->result.value;
		c->count_at++;
		break;
	case BLOCK_CREDIT:
		c->is_counting = false;
		break;
	case BLOCK_SEAL:
		go_on(p, c);
		break;
	default:
		break;
	}
}
