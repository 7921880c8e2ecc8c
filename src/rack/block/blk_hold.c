/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that wait for events. One that asks for what has not happened yet is
 * held; the next entry in one of its blocks lets it be executed again, from its
 * first operation. A reader that has its answer and does not ask again costs
 * nothing, and whoever changes a block waits for nobody.
 */
#include "blk_server_priv.h"

static bool parse(const struct block_op *op, struct block_watch_ask_wire *out)
{
	if (!op->value || op->length != sizeof(*out))
		return false;
	memcpy(out, op->value, sizeof(*out));
	return true;
}

/* Who reads at a chain is sent from one member to the other, which have the
 * same ring: serials are the chain's. */
void blk_hold_watch(struct blk_job *j, const struct blk_entry *e,
		    const struct block_op *op, uint32_t room,
		    struct block_result *r)
{
	const struct blk_block *b = &e->block;
	uint8_t *out = j->guest->server->answer;
	struct block_watch_ask_wire ask;
	bool has_some;

	r->status = BLOCK_BAD;
	if (!parse(op, &ask))
		return;
	room = u32_min(room, BLOCK_BATCH_MAX);
	r->length = e->chain ? blk_chain_watch(e->chain, be64_get(ask.serial),
					       be32_get(ask.events), out, room,
					       &has_some)
			     : blk_watch_read(&b->watch, be64_get(ask.serial),
					      be32_get(ask.events), b->flags,
					      out, room, &has_some);
	r->status = r->length ? BLOCK_OK : BLOCK_LATER;
	r->data = r->length ? out : NULL;
	j->has_news |= has_some || be64_get(ask.serial) == BLOCK_WATCH_NOW;
	j->may_hold |= be32_get(ask.flags) & BLOCK_WATCH_HOLD;
}

/* Whether it has no more events, here and at other members: one that was cut
 * out of its chain knows nothing of what came later. */
static bool is_final(const struct blk_entry *e)
{
	return !e->chain || blk_is_drained(&e->block);
}

/* Only of the object that the ticket is for: how much others do is theirs. */
void blk_hold_gone(const struct blk_job *j, const struct block_op *op,
		   struct block_result *r)
{
	const struct blk_server *s = j->guest->server;
	uint64_t object = j->guest->handle[op->handle].right.object;
	const struct blk_entry *e =
		op->index < BLK_INDEX_MAX ? s->entry[op->index] : NULL;

	if (e && e->pd == j->guest->pd && e->object == object &&
	    e->generation == op->generation && is_final(e)) {
		r->length = 1;
		r->value = e->block.watch.total;
		return;
	}
	for (unsigned i = 0; i < BLK_ENDED; i++)
		if (s->ended[i].generation == op->generation &&
		    s->ended[i].object == object && op->generation) {
			r->length = 1;
			r->value = s->ended[i].total;
		}
}

void blk_hold_end_block(struct blk_server *s, struct blk_entry *e)
{
	if (is_final(e))
		s->ended[s->ended_at++ % BLK_ENDED] = (struct blk_ended){
			e->object, e->generation, e->block.watch.total};
	blk_hold_wake(s, e, true);
}

/* ---- waiting ------------------------------------------------------------- */

static bool is_all_watch(const struct blk_job *j)
{
	for (unsigned i = 0; i < j->message.count; i++)
		if (j->op[i].opcode != BLOCK_WATCH)
			return false;
	return true;
}

bool blk_hold_park(struct blk_job *j)
{
	struct blk_server *s = j->guest->server;
	struct block_watch_ask_wire ask;

	if (!j->may_hold || j->may_not_hold || j->has_news ||
	    j->order.has_failed || !is_all_watch(j))
		return false;
	for (unsigned i = 0; i < j->message.count; i++) {
		struct blk_hold *h = &j->hold[i];

		(void)parse(&j->op[i], &ask);
		h->job = j;
		h->events = be32_get(ask.events);
		list_append(&s->entry[j->op[i].index]->holds, &h->link);
	}
	j->state = BLK_JOB_HELD;
	return true;
}

void blk_hold_drop(struct blk_job *j)
{
	for (unsigned i = 0; i < j->message.count; i++)
		list_remove(&j->hold[i].link);
}

static void wake(struct blk_server *s, struct blk_job *j)
{
	blk_hold_drop(j);
	j->state = BLK_JOB_RUNS;
	j->is_woken = true;
	list_append(&s->woken, &j->link);
}

void blk_hold_wake(struct blk_server *s, struct blk_entry *e, bool is_end)
{
	uint32_t news = blk_watch_news(&e->block.watch);
	struct list *l = e->holds.next, *next;

	if (!news && !is_end)
		return;
	for (; l != &e->holds; l = next) {
		struct blk_hold *h = container_of(l, struct blk_hold, link);

		/* The same job may be here twice, and leaves twice. */
		for (next = l->next;
		     next != &e->holds &&
		     container_of(next, struct blk_hold, link)->job == h->job;)
			next = next->next;
		if (is_end || (h->events & news))
			wake(s, h->job);
	}
}

static void run(struct blk_job *j)
{
	list_remove(&j->link);
	j->is_woken = false;
	blk_job_begin(j);
	blk_job_go_on(j);
}

unsigned blk_hold_run(struct blk_server *s, unsigned most)
{
	unsigned n = 0;

	while (n < most && !list_is_empty(&s->woken)) {
		run(container_of(s->woken.next, struct blk_job, link));
		n++;
	}
	return n;
}

void blk_hold_finish(struct blk_guest *g)
{
	for (unsigned i = 0; i < BLK_SLOTS; i++) {
		struct blk_job *j = &g->job[i];

		if (j->state == BLK_JOB_HELD)
			wake(g->server, j);
		if (!j->is_woken)
			continue;
		j->may_not_hold = true;
		run(j);
	}
}
