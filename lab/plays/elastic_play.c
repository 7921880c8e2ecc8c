/* SPDX-License-Identifier: Apache-2.0 */
/* The play "elastic": turns in which messages travel, connections break and
 * clients die; and what must be there in the end. */
#include "elastic_play.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_chain_priv.h"
#include "elastic_play_priv.h"
#include "elastic_store_priv.h"
#include "figures/commands.h"

enum {
	TURNS = 6000,
	PATIENCE = 12, /* turns without an answer */
	BOUND_MAX = 60,
};

/* ---- ways ---------------------------------------------------------------- */

static struct ep_way *free_way(struct ep *p)
{
	for (unsigned i = 0; i < EP_WAYS; i++)
		if (!p->way[i].is_used)
			return &p->way[i];
	return NULL;
}

static void send(struct ep *p, struct ep_client *c)
{
	struct ep_way *w = free_way(p);

	c->patience = sim_rand_range(&p->run.rand, 1, PATIENCE);
	if (!w || sim_rand_chance(&p->run.rand, 150000)) {
		p->n->lost++;
		return;
	}
	*w = (struct ep_way){.is_used = true,
			     .delay = sim_rand_range(&p->run.rand, 1, 8),
			     .client = c->index,
			     .life = c->life,
			     .conn = c->conn,
			     .ask = c->ask};
}

/* Whether what travels belongs to a connection that there is. */
static bool is_current(const struct ep *p, const struct ep_way *w)
{
	const struct ep_client *c = &p->client[w->client];

	return c->life == w->life && c->conn == w->conn;
}

static bool is_fetching(const struct ep *p, const struct ep_way *w)
{
	const struct ep_block *b =
		p->object[w->ask.object].block[w->ask.number];

	return !w->is_answer && b->busy == w->client + 1;
}

static void travel(struct ep *p, struct ep_way *w)
{
	struct ep_client *c = &p->client[w->client];

	if (!w->is_used || --w->delay)
		return;
	w->delay = 1;
	if (is_fetching(p, w)) {
		ep_fetched(p, w, is_current(p, w));
	} else if (!is_current(p, w)) {
		/* The node ended the connection when its successor came. */
		w->is_used = false;
		p->n->fenced += !w->is_answer;
	} else if (w->is_answer) {
		w->is_used = false;
		ep_client_hear(p, c, w);
	} else if (ep_arrive(p, w) && w->is_used && !w->is_answer) {
		w->delay = sim_rand_range(&p->run.rand, 1, 6); /* fetched */
	}
}

/* ---- clients ------------------------------------------------------------- */

static void die(struct ep *p, struct ep_client *c)
{
	unsigned index = c->index, life = c->life;

	p->n->deaths++;
	/* What it had on its way is gone with its connection. A value that was
	 * being fetched does not come. */
	for (unsigned i = 0; i < EP_WAYS; i++) {
		struct ep_way *w = &p->way[i];

		if (!w->is_used || w->client != index)
			continue;
		if (is_fetching(p, w))
			ep_fetched(p, w, false);
		w->is_used = false;
	}
	/* The operation under way may have been executed. */
	if (c->is_waiting && c->ask.opcode == BLOCK_ACK && !c->is_back &&
	    p->fate[c->parked_id] == EP_GONE)
		p->was_delivered[c->parked_id] = true;
	if (c->is_waiting && c->got_sequence == c->ask.sequence)
		p->was_delivered[c->got_id] = true;
	ep_bury(p, index, life);
	*c = (struct ep_client){.index = index, .life = life + 1, .puts = true};
}

static void live(struct ep *p, struct ep_client *c)
{
	if (sim_rand_chance(&p->run.rand, 3000)) {
		die(p, c);
		return;
	}
	if (!c->is_waiting) {
		ep_client_ask(p, c);
		send(p, c);
	} else if (!c->patience || !--c->patience) {
		/* Another connection, and the same again; maybe late. */
		c->conn++;
		if (sim_rand_below(&p->run.rand, 8) == 0)
			ep_away(p, c);
		send(p, c);
	}
}

/* ---- the end ------------------------------------------------------------- */

static void judge_file(struct ep *p)
{
	struct ep_object *o = &p->object[0];
	bool seen[EP_VALUES] = {false};
	uint64_t start = 0;

	for (unsigned i = 0; i < o->blocks; i++) {
		const struct ep_block *b = o->block[i];
		uint64_t at = 0, end = b->block.file.end;

		while (at < end) {
			const uint8_t *bytes = b->mem + BLOCK_HEAD_BYTES + at;
			uint32_t id;

			memcpy(&id, bytes, 4);
			if (!id || id >= p->values ||
			    !ep_is_value(id, ep_length(id), bytes)) {
				play_fail(&p->run, "no record at %llu",
					  (unsigned long long)(start + at));
				return;
			}
			if (seen[id])
				play_fail(&p->run, "record %u is there twice",
					  id);
			seen[id] = true;
			if (p->was_answered[id] && p->offset[id] != start + at)
				play_fail(&p->run, "record %u is elsewhere",
					  id);
			p->n->records++;
			at += ep_length(id);
		}
		start += end;
		for (unsigned k = 0; k < b->count; k++)
			if (p->was_answered[b->id[k]] && !seen[b->id[k]])
				play_fail(&p->run, "record %u is lost",
					  b->id[k]);
	}
}

/* All that is left is taken by one more client, in order. */
static void judge_queue(struct ep *p)
{
	struct ep_object *o = &p->object[1];
	struct ep_way w;

	for (unsigned i = 0; i < EP_CLIENTS; i++)
		die(p, &p->client[i]);
	for (unsigned i = 0; i < o->blocks; i++) {
		uint64_t sequence = 0;

		do {
			w = (struct ep_way){
				.is_used = true, .client = 0, .life = 1000000};
			w.ask = (struct ep_ask){.opcode = BLOCK_GET,
						.object = 1,
						.number = i,
						.acked = sequence,
						.sequence = sequence + 1};
			sequence++;
			(void)ep_arrive(p, &w);
			if (w.result.status == BLOCK_OK &&
			    p->was_delivered[w.id])
				play_fail(&p->run, "item %u is delivered twice",
					  w.id);
			if (w.result.status == BLOCK_OK)
				p->was_delivered[w.id] = true;
		} while (w.result.status == BLOCK_OK);
		if (w.result.status != BLOCK_EMPTY &&
		    w.result.status != BLOCK_DRAINED)
			play_fail(&p->run, "at the end: %s",
				  block_status_text(w.result.status));
		for (unsigned k = 0; k < o->block[i]->count; k++)
			if (p->fate[o->block[i]->id[k]] != EP_GONE)
				play_fail(&p->run, "item %u is left behind",
					  o->block[i]->id[k]);
	}
	for (uint32_t i = 1; i < p->values; i++)
		if (p->fate[i] == EP_GONE && !p->was_delivered[i])
			play_fail(&p->run, "item %u was delivered to nobody",
				  i);
	if (p->in)
		play_fail(&p->run, "%llu items are left",
			  (unsigned long long)p->in);
}

static void add_hash(struct ep *p, uint64_t value)
{
	p->run.res->hash = (p->run.res->hash ^ value) * 0x100000001b3ull;
}

static int run(const struct play_options *opt, struct play_result *res)
{
	struct ep *p = calloc(1, sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	if (err)
		return err;
	p->run = (struct play_run){
		.play = &elastic_play, .opt = opt, .res = res};
	p->n = (struct elastic_play_counts *)res->count;
	sim_rand_init(&p->run.rand, opt->seed, 22);
	p->values = 1;
	p->bound = sim_rand_range(&p->run.rand, 2, BOUND_MAX);
	p->object[0].kind = BLOCK_FILE;
	p->object[1].kind = BLOCK_QUEUE;
	for (unsigned i = 0; i < 2 && !err; i++)
		err = ep_grow(p, i);
	for (unsigned i = 0; i < EP_CLIENTS; i++)
		p->client[i] = (struct ep_client){.index = i, .puts = true};
	for (unsigned t = 0; t < TURNS && !err && !res->violations; t++) {
		for (unsigned i = 0; i < EP_WAYS; i++)
			travel(p, &p->way[i]);
		for (unsigned i = 0; i < EP_CLIENTS; i++)
			live(p, &p->client[i]);
	}
	if (!err && !res->violations) {
		judge_file(p);
		judge_queue(p);
	}
	if (!err && !res->violations)
		err = es_play(&p->run, p->n);
	if (!err && !res->violations)
		err = ec_play(&p->run, p->n);
	for (unsigned i = 0; i < p->n->executed % 7 + 1; i++)
		add_hash(p, p->n->executed + p->n->items + p->values);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < p->object[k].blocks; i++) {
			blk_release(&p->object[k].block[i]->block);
			free(p->object[k].block[i]);
		}
	free(p);
	return err;
}

static const enum plant bugs[] = {
	PLANT_no_dedupe,       PLANT_parked_stay,      PLANT_over_bound,
	PLANT_back_to_end,     PLANT_back_and_again,   PLANT_blk_seal_again,
	PLANT_blk_other_again, PLANT_blk_forget_early, PLANT_blk_no_credit,
	PLANT_kv_no_answers,   PLANT_kv_no_freeze,     PLANT_kv_any_token,
	PLANT_kv_any_target,   PLANT_kv_group_on,      PLANT_kv_silent,
	PLANT_kv_part_again,   PLANT_kv_old_clock,     PLANT_kv_early,
	PLANT_chain_early,     PLANT_chain_no_lease,   PLANT_chain_no_dedupe,
	PLANT_chain_any_epoch, PLANT_chain_no_rest,    PLANT_watch_no_mark,
	PLANT_watch_any_order, PLANT_watch_own_ring,   PLANT_none,
};
static const struct play_count counts[] = {ELASTIC_PLAY_COUNTS(PLAY_COUNT_ROW)};

const struct play elastic_play = {
	.name = "elastic",
	.figures = &elastic_figures,
	.summary = "files, queues and stores of blocks, clients that repeat "
		   "and die",
	.about = "Six clients append to a file and put into and get from a "
		 "bounded queue, whose small blocks execute the shipped "
		 "operators. Messages and answers are lost or late, clients "
		 "connect anew and repeat what was not answered, and die. "
		 "Every record must be in the file once, whole, and where its "
		 "writer was told; every item is delivered once and in order, "
		 "those of the dead, and of who was away for long, come back "
		 "to the front, and the bound "
		 "holds over all blocks. Then six clients change and read keys "
		 "of a store, up to four in a message, and move its "
		 "slots between blocks, by batches or by lists of records that "
		 "they read themselves, several of them the same ones at a "
		 "time; what a client sends together happens in that order, "
		 "each answer must be what a "
		 "model of the keys says at that moment, and no slot is served "
		 "by two blocks. One more watches the store: each change is "
		 "told once, those of a key in their order, or counted as "
		 "lost. Last, blocks of each kind have copies on a chain of "
		 "nodes that are killed, stopped and cut off, while others "
		 "join; nothing that was answered is lost, doubled or unseen "
		 "by who asks later, and who watches is told all of it once.",
	.counts = counts,
	.count_count = ARRAY_LEN(counts),
	.bugs = bugs,
	.options_bytes = sizeof(struct play_options),
	.run = run,
};
