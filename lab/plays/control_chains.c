/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks with copies in `aquifer sim control`: nodes are told who is a member
 * of a block's chain, who joins copies what the one before it has, and a write
 * is answered when all members that count have it, each in the same epoch
 * (block/blk_chain.h has how that is done; here it happens at once or not at
 * all). Whoever the controller says counts must have what was answered.
 */
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

/* "m2" */
static unsigned node_of(const json_t *name)
{
	const char *text = json_string_value(name);

	return text ? (unsigned)(text[1] - '0') % NODES : 0;
}

static struct place *place_of(struct world *w, const struct member *m)
{
	struct place *p = &w->node[m->node].place[m->index % PLACES];

	return m->index < PLACES && p->generation == m->generation ? p : NULL;
}

static bool is_reached(const struct world *w, unsigned node)
{
	return w->node[node].p.cut_ns <= w->now_ns;
}

/* ---- a node -------------------------------------------------------------- */

void chains_say(const struct node *n, json_t *beat)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < PLACES; i++) {
		const struct place *p = &n->place[i];

		if (p->generation && p->identity)
			(void)json_array_append_new(
				rows, json_pack("[i, I, I, i]", (int)i,
						(json_int_t)p->generation,
						(json_int_t)p->chain.epoch,
						(int)p->is_whole));
	}
	(void)json_object_set_new(beat, "chained", rows);
}

static void configure(struct place *p, const json_t *row)
{
	const json_t *members = json_object_get(row, "members"), *m;
	size_t i;

	/* An answer of before, that comes late. */
	if (of(row, "epoch") <= p->chain.epoch)
		return;
	p->chain = (struct chain){.epoch = of(row, "epoch"),
				  .full = (unsigned)of(row, "full")};
	json_array_foreach(members, i, m)
	{
		if (i < MEMBERS)
			p->chain.member[p->chain.count++] = (struct member){
				.node = node_of(json_array_get(m, 0)),
				.index = (unsigned)at(m, 1),
				.generation = at(m, 2)};
	}
}

void chains_hear(struct node *n, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "chains"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		struct place *p = &n->place[of(row, "index") % PLACES];

		if (p->generation == of(row, "generation"))
			configure(p, row);
	}
}

/* Who joins has all when it has what the member before it has. */
static void copy(struct world *w, unsigned node, struct place *p)
{
	for (unsigned i = 1; i < p->chain.count; i++) {
		const struct member *m = &p->chain.member[i];
		const struct place *before =
			place_of(w, &p->chain.member[i - 1]);

		if (m->node != node || m->generation != p->generation ||
		    !before || !before->is_whole ||
		    before->chain.epoch != p->chain.epoch ||
		    !is_reached(w, node) ||
		    !is_reached(w, p->chain.member[i - 1].node))
			continue;
		p->version = before->version;
		p->is_whole = true;
		w->result->copies++;
	}
}

void chains_tick(struct world *w, unsigned node)
{
	for (unsigned i = 0; i < PLACES; i++) {
		struct place *p = &w->node[node].place[i];

		if (p->generation && p->identity && !p->is_whole &&
		    chance(w, 6))
			copy(w, node, p);
	}
}

/* ---- a program ----------------------------------------------------------- */

/* Whether all members are where the first one thinks, in its epoch. */
static bool is_whole_chain(struct world *w, const struct chain *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct place *p = place_of(w, &c->member[i]);

		if (!p || p->chain.epoch != c->epoch ||
		    !is_reached(w, c->member[i].node) ||
		    (i < c->full && !p->is_whole))
			return false;
	}
	return c->count > 0;
}

static bool write_all(struct world *w, const struct chain *c, uint64_t version)
{
	if (!is_whole_chain(w, c))
		return false;
	for (unsigned i = 0; i < c->count; i++) {
		struct place *p = place_of(w, &c->member[i]);

		if (p->is_whole)
			p->version = version;
	}
	return true;
}

static struct past *past_of(struct world *w, uint64_t identity)
{
	struct past *k = &w->chained[identity % OWNERS];

	if (k->birth != identity)
		*k = (struct past){.birth = identity};
	return k;
}

static void judge_member(struct world *w, const struct program *p,
			 const json_t *row, const struct past *k)
{
	const struct member m = {.node = node_of(json_object_get(row, "node")),
				 .index = (unsigned)of(row, "index"),
				 .generation = of(row, "generation")};
	const struct node *n = &w->node[m.node];
	const struct place *at_node = place_of(w, &m);

	if (!json_is_true(json_object_get(row, "full")) ||
	    json_is_true(json_object_get(row, "down")) || !n->joined_ns ||
	    n->joined_ns >= p->asked_ns || !at_node)
		return;
	if (at_node->version < k->version)
		world_wrong(w, "a copy of a block counts and lacks what was "
			       "written last");
}

bool chain_use(struct world *w, const struct program *p, const json_t *row)
{
	const json_t *members = json_object_get(row, "chain"), *m;
	struct past *k = past_of(w, of(row, "generation"));
	const struct place *head;
	struct member first;
	size_t i;

	json_array_foreach(members, i, m) judge_member(w, p, m, k);
	m = json_array_get(members, 0);
	first = (struct member){.node = node_of(json_object_get(m, "node")),
				.index = (unsigned)of(m, "index"),
				.generation = of(m, "generation")};
	head = place_of(w, &first);
	if (!head || head->chain.member[0].generation != first.generation ||
	    !write_all(w, &head->chain, k->version + 1))
		return false;
	k->version++;
	w->result->chain_writes++;
	return true;
}
