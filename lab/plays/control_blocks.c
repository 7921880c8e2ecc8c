/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks at the nodes of `aquifer sim control`: a node makes each generation of
 * a place once at most, and says what it has, has freed, or could not make. */
#include <string.h>

#include "control_world.h"

static uint64_t at(const json_t *row, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(row, i));
}

static uint64_t of(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

static unsigned held(const struct node *n)
{
	unsigned count = 0;

	for (unsigned i = 0; i < PLACES; i++)
		count += n->place[i].generation != 0;
	return count;
}

static void note(struct news *news, unsigned index, uint64_t generation)
{
	if (news->count == PLACES) /* it will be ordered again */
		return;
	news->index[news->count] = index;
	news->generation[news->count++] = generation;
}

static void make(struct world *w, struct node *n, const json_t *row)
{
	unsigned index = (unsigned)of(row, "index");
	uint64_t generation = of(row, "generation");
	struct place *p = &n->place[index % PLACES];

	if (index >= PLACES) {
		note(&n->failed, index, generation);
		return;
	}
	if (generation <= p->heard)
		return;
	if (p->generation)
		world_wrong(w, "place %u of a node is given to two objects",
			    index);
	p->heard = generation;
	if (held(n) >= PLACES - 4) {
		note(&n->failed, index, generation);
		return;
	}
	p->generation = generation;
	p->object = of(row, "object");
	p->is_written = p->is_drained = false;
	p->identity = of(row, "identity");
	p->is_whole = !json_is_true(json_object_get(row, "joins"));
	p->version = 0;
	p->chain = (struct chain){0};
	w->result->blocks++;
}

static void end(struct node *n, const json_t *row)
{
	unsigned index = (unsigned)at(row, 0);
	uint64_t generation = at(row, 1);
	struct place *p = &n->place[index % PLACES];

	if (index < PLACES) {
		if (p->generation == generation)
			p->generation = 0;
		p->heard = u64_max(p->heard, generation);
	}
	note(&n->freed, index, generation);
}

static json_t *news_json(const struct news *news, const char *error)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < news->count; i++) {
		json_t *row = json_pack("[i, I]", (int)news->index[i],
					(json_int_t)news->generation[i]);

		if (error)
			(void)json_array_append_new(row, json_string(error));
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

void blocks_say(struct node *n, json_t *beat)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < PLACES; i++) {
		const struct place *p = &n->place[i];

		if (p->generation)
			(void)json_array_append_new(
				rows, json_pack("[i, I, i, i]", (int)i,
						(json_int_t)p->generation,
						(int)p->is_written,
						p->is_drained ? 3 : 0));
	}
	(void)json_object_set_new(beat, "blocks", rows);
	(void)json_object_set_new(beat, "freed", news_json(&n->freed, NULL));
	(void)json_object_set_new(beat, "failed",
				  news_json(&n->failed, "-ENOSPC"));
	chains_say(n, beat);
	n->freed_said = n->freed.count;
	n->failed_said = n->failed.count;
}

static void drop(struct news *news, unsigned count)
{
	count = count < news->count ? count : news->count;
	news->count -= count;
	memmove(news->index, news->index + count,
		news->count * sizeof(news->index[0]));
	memmove(news->generation, news->generation + count,
		news->count * sizeof(news->generation[0]));
}

void blocks_hear(struct world *w, struct node *n, const json_t *answer)
{
	const json_t *orders = json_object_get(answer, "block_orders"), *row;
	const json_t *list = json_object_get(orders, "make");
	size_t i;

	drop(&n->freed, n->freed_said);
	drop(&n->failed, n->failed_said);
	n->freed_said = n->failed_said = 0;
	json_array_foreach(list, i, row) make(w, n, row);
	list = json_object_get(orders, "free");
	json_array_foreach(list, i, row) end(n, row);
	chains_hear(n, answer);
}

/* Nobody uses anything any more, and all had time to hear of it. */
void blocks_judge_end(struct world *w)
{
	unsigned count = 0;

	for (unsigned i = 0; i < NODES; i++)
		count += held(&w->node[i]);
	if (count)
		world_wrong(w, "%u blocks are not given back at the end",
			    count);
}
