/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches the store of the play: it reads rings of shipped blocks now and
 * then, sleeps too long sometimes, and compares what it is told with what was
 * executed. */
#include <stdlib.h>
#include <string.h>

#include "elastic_store_priv.h"

enum {
	NAP_CHANCE = 4000, /* of a million, per turn */
	NAP_TURNS = 400,
	ANSWER_BYTES = 700, /* several readings for one ring */
};

void es_watcher_executed(struct es *s, unsigned key, enum block_event what,
			 uint64_t value)
{
	struct es_watcher *w = &s->watcher;

	w->executed++;
	if (w->log_count[key] == ES_LOG)
		play_fail(s->run, "the log of a key is too short");
	else
		w->log[key][w->log_count[key]++] =
			(struct es_logged){what, value};
}

void es_watcher_ended(struct es *s, const struct blk_block *b)
{
	struct es_watcher *w = &s->watcher;

	if (b->generation < ES_GENERATIONS)
		w->ended[b->generation] = b->watch.total;
}

/* ---- tails --------------------------------------------------------------- */

static void add_tail(struct es *s, unsigned block, uint64_t generation)
{
	struct es_watcher *w = &s->watcher;
	struct block_tail *t = calloc(1, sizeof(*t) + BLOCK_REPLY_MAX);

	if (!t || w->reader.count == ES_GENERATIONS) {
		free(t);
		play_fail(s->run, "no memory for a watcher");
		return;
	}
	*t = (struct block_tail){.number = block,
				 .generation = generation,
				 .is_started = true,
				 .bytes = (uint8_t *)(t + 1)};
	w->tail[w->reader.count++] = t;
	w->reader.tail = w->tail;
}

static bool is_known(const struct es_watcher *w, uint64_t generation)
{
	for (unsigned i = 0; i < w->reader.count; i++)
		if (w->tail[i]->generation == generation)
			return true;
	return false;
}

static void look_at_map(struct es *s)
{
	struct es_watcher *w = &s->watcher;

	for (unsigned i = 0; i < ES_BLOCKS; i++)
		if (!is_known(w, s->block[i].block.generation))
			add_tail(s, i, s->block[i].block.generation);
}

static void read_tail(struct es *s, struct block_tail *t)
{
	const struct blk_block *b = &s->block[t->number].block;
	static uint8_t out[ANSWER_BYTES];
	bool has_some;
	uint32_t n;

	if (t->is_gone || t->at != t->end)
		return;
	if (b->generation != t->generation) {
		block_tail_end(t, true, s->watcher.ended[t->generation]);
		return;
	}
	n = blk_watch_read(&b->watch, t->next, UINT32_MAX, b->flags, out,
			   sizeof(out), &has_some);
	if (!n || block_tail_take(t, out, n))
		play_fail(s->run, "a ring cannot be read");
}

/* ---- what is told -------------------------------------------------------- */

static void check(struct es *s, const struct block_told *told)
{
	struct es_watcher *w = &s->watcher;
	char name[16] = "";
	unsigned key, at;

	memcpy(name, told->bytes, u32_min(told->inside, sizeof(name) - 1));
	key = (unsigned)strtoul(name + 1, NULL, 10);
	if (name[0] != 'k' || key >= ES_KEYS) {
		play_fail(s->run, "an event of no key");
		return;
	}
	for (at = w->told[key]; at < w->log_count[key]; at++)
		if (w->log[key][at].what == told->what &&
		    w->log[key][at].value == told->value)
			break;
	if (at == w->log_count[key])
		play_fail(s->run,
			  "an event of key %u is told twice, or too late", key);
	else if (at != w->told[key] && !w->lost && !w->is_unknown)
		play_fail(s->run, "an event of key %u is missing", key);
	w->told[key] = at + 1;
	w->heard++;
	s->n->events++;
}

static void listen(struct es *s)
{
	struct es_watcher *w = &s->watcher;
	struct block_told told;

	for (;;) {
		while (block_reader_next(&w->reader, &told)) {
			if (told.what) {
				check(s, &told);
			} else {
				w->lost += told.lost;
				w->is_unknown |= !told.lost;
				s->n->missed += told.lost;
			}
		}
		if (!w->reader.wants_map)
			return;
		look_at_map(s);
		w->reader.is_known_gone = !is_known(w, w->reader.wanted);
	}
}

void es_watcher_turn(struct es *s)
{
	struct es_watcher *w = &s->watcher;

	if (!w->reader.count) {
		sim_rand_init(&w->rand, s->run->opt->seed, 68);
		look_at_map(s);
	}
	if (w->nap) {
		w->nap--;
		return;
	}
	if (sim_rand_chance(&w->rand, NAP_CHANCE))
		w->nap = sim_rand_below(&w->rand, NAP_TURNS);
	read_tail(s, w->tail[sim_rand_below(&w->rand, w->reader.count)]);
	listen(s);
}

void es_watcher_end(struct es *s)
{
	struct es_watcher *w = &s->watcher;
	bool has_more = true;

	look_at_map(s);
	while (has_more && !s->run->res->violations) {
		uint64_t before = w->heard + w->lost;

		for (unsigned i = 0; i < w->reader.count; i++)
			read_tail(s, w->tail[i]);
		listen(s);
		has_more = w->heard + w->lost > before;
		for (unsigned i = 0; i < w->reader.count; i++)
			has_more |= w->tail[i]->at < w->tail[i]->end ||
				    (!w->tail[i]->is_gone &&
				     w->tail[i]->next !=
					     s->block[w->tail[i]->number]
						     .block.watch.serial);
	}
	if (!w->is_unknown && w->heard + w->lost != w->executed)
		play_fail(s->run,
			  "%llu changes, %llu events and %llu lost ones",
			  (unsigned long long)w->executed,
			  (unsigned long long)w->heard,
			  (unsigned long long)w->lost);
	for (unsigned i = 0; i < w->reader.count; i++)
		free(w->tail[i]);
}
