/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions at the nodes of `aquifer sim control`, by the rules of
 * memnode/move.h, and what is promised of them: a region is at one node, also
 * while it moves, it has what was written last, and it is lost only with its
 * node.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

enum {
	LEASE_OF_MOVE_MS = 4000,
};

/* ---- orders of movers ---------------------------------------------------- */

static bool has(const struct ids *ids, uint64_t id)
{
	for (unsigned i = 0; i < IDS; i++)
		if (ids->id[i] == id)
			return true;
	return false;
}

static void note_id(struct ids *ids, uint64_t id)
{
	if (!has(ids, id))
		ids->id[ids->next++ % IDS] = id;
}

static void drop_id(struct ids *ids, uint64_t id)
{
	for (unsigned i = 0; i < IDS; i++)
		if (ids->id[i] == id)
			ids->id[i] = 0;
}

static void stay(struct node *n, struct region *r)
{
	if (!has(&n->given, r->move))
		note_id(&n->kept, r->move);
	r->stage = AT_HOME;
	r->move = 0;
}

static bool arrive(struct node *n, struct region *r, const struct order *o)
{
	if (r->stage != AT_NONE || n->is_drained)
		return false;
	*r = (struct region){.stage = AT_ARRIVING,
			     .birth = o->birth,
			     .move = o->move,
			     .from = o->from,
			     .from_run = o->from_run};
	return true;
}

static bool leave(const struct node *n, struct region *r, struct order *o)
{
	if (!n->joined_ns || r->stage != AT_HOME || has(&n->kept, o->move) ||
	    has(&n->given, o->move))
		return false;
	r->stage = AT_LEAVING;
	r->move = o->move;
	o->birth = r->birth;
	o->from_run = n->run;
	return true;
}

static bool give(struct world *w, struct node *n, struct region *r,
		 const struct order *o)
{
	if (has(&n->given, o->move))
		return true;
	if (r->stage != AT_LEAVING || r->move != o->move)
		return false;
	/* The copy has died with its node since, and the mover does not know:
	 * the region is lost with the node that it is given to. */
	if (w->node[o->to].run != o->to_run)
		w->written[o->region].may_be_lost = true;
	note_id(&n->given, o->move);
	*r = (struct region){.stage = AT_NONE};
	return true;
}

static bool end(struct node *n, struct region *r, const struct order *o)
{
	drop_id(&n->given, o->move);
	if (r->move != o->move)
		return true;
	if (r->stage == AT_LEAVING)
		stay(n, r);
	else if (r->stage != AT_NONE)
		*r = (struct region){.stage = AT_NONE};
	return true;
}

/* Nothing comes back that programs have seen changed, or gone. */
static void judge_taken(struct world *w, unsigned i, const struct region *r)
{
	const struct past *p = &w->past[r->birth % PASTS];

	if (p->birth == r->birth && r->version < p->version)
		world_wrong(w, "a copy becomes the region that lacks what was "
			       "written last");
	if (r->birth != w->written[i].birth)
		world_wrong(w, "a copy becomes a region that was lost and made "
			       "anew");
}

static bool take(struct world *w, struct node *n, unsigned i)
{
	struct region *r = &n->region[i];

	if (r->stage != AT_SEALED)
		return false;
	note_id(&n->taken, r->move);
	r->stage = AT_HOME;
	r->move = 0;
	judge_taken(w, i, r);
	w->written[i].may_be_lost = false;
	return true;
}

bool region_obey(struct world *w, struct order *o)
{
	struct node *n = &w->node[o->node];
	struct region *r = &n->region[o->region];
	bool is_its = r->stage != AT_NONE && r->move == o->move;
	bool is_done = false;

	switch (o->step) {
	case STEP_ARRIVE:
		is_done = arrive(n, r, o);
		break;
	case STEP_LEAVE:
		is_done = leave(n, r, o);
		break;
	case STEP_COPY: /* the mover reads, and shows that it lives */
		is_done = is_its && r->stage == AT_LEAVING;
		o->version = r->version;
		break;
	case STEP_SEAL:
		is_done = is_its;
		o->to = o->node;
		o->to_run = n->run;
		if (is_its && r->stage == AT_ARRIVING) {
			r->stage = AT_SEALED;
			r->version = o->version;
		}
		break;
	case STEP_GIVE:
		return give(w, n, r, o);
	case STEP_TAKE:
		return is_its && take(w, n, o->region);
	case STEP_END:
		return end(n, r, o);
	}
	if (is_done)
		r->until_ns = process_now(&n->p) + LEASE_OF_MOVE_MS * MS;
	return is_done;
}

void regions_tick(struct node *n)
{
	uint64_t now_ns = process_now(&n->p);

	for (unsigned i = 0; i < REGIONS; i++) {
		struct region *r = &n->region[i];

		if (now_ns < r->until_ns)
			continue;
		if (r->stage == AT_LEAVING)
			stay(n, r);
		else if (r->stage == AT_ARRIVING)
			*r = (struct region){.stage = AT_NONE};
	}
}

/* ---- beats --------------------------------------------------------------- */

static void run_text(unsigned node, uint64_t run, char out[17])
{
	(void)snprintf(out, 17, "%08x%08x", node, (unsigned)run);
}

static json_t *ids_json(const struct ids *ids)
{
	json_t *rows = json_array();
	char text[17];

	for (unsigned i = 0; i < IDS; i++) {
		(void)snprintf(text, sizeof(text), "%016llx",
			       (unsigned long long)ids->id[i]);
		if (ids->id[i])
			(void)json_array_append_new(rows, json_string(text));
	}
	return rows;
}

void regions_say(struct node *n, json_t *beat)
{
	json_t *rows = json_array();
	char move[17], run[17], from[8];

	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *r = &n->region[i];

		if (r->stage != AT_SEALED)
			continue;
		(void)snprintf(move, sizeof(move), "%016llx",
			       (unsigned long long)r->move);
		(void)snprintf(from, sizeof(from), "m%u", r->from);
		run_text(r->from, r->from_run, run);
		(void)json_array_append_new(
			rows, json_pack("{s:s, s:s, s:s}", "move", move, "from",
					from, "run", run));
	}
	(void)json_object_set_new(beat, "sealed", rows);
	(void)json_object_set_new(beat, "given", ids_json(&n->given));
	n->said = n->given;
	(void)json_object_set_new(beat, "kept", ids_json(&n->kept));
	(void)json_object_set_new(beat, "taken", ids_json(&n->taken));
	(void)json_object_set_new(beat, "drained", json_boolean(n->is_drained));
	(void)json_object_set_new(beat, "drain_order",
				  json_integer((json_int_t)n->drain_order));
}

/* A copy that is sealed waits for the word that it was given. */
static bool is_waiting(const struct world *w, uint64_t move)
{
	for (unsigned i = 0; i < NODES * REGIONS; i++) {
		const struct region *r =
			&w->node[i / REGIONS].region[i % REGIONS];

		if (r->stage == AT_SEALED && r->move == move)
			return true;
	}
	return false;
}

void regions_hear(struct world *w, struct node *n, const json_t *answer)
{
	static const char *const lists[] = {"take", "drop"};
	const json_t *row;
	size_t k;

	for (unsigned i = 0; i < IDS; i++)
		if (n->said.id[i])
			note_id(&n->heard, n->said.id[i]);
	n->is_drained = json_is_true(json_object_get(answer, "drain"));
	n->drain_order = (uint64_t)json_integer_value(
		json_object_get(answer, "drain_order"));
	json_array_foreach(json_object_get(answer, "end"), k, row)
	{
		uint64_t id = strtoull(json_string_value(row), NULL, 16);

		if (is_waiting(w, id))
			world_wrong(w, "a node is to forget what it gave, and "
				       "nobody has taken it");
		drop_id(&n->given, id);
	}
	for (unsigned l = 0; l < ARRAY_LEN(lists); l++) {
		const json_t *ids = json_object_get(answer, lists[l]);

		json_array_foreach(ids, k, row)
		{
			uint64_t id =
				strtoull(json_string_value(row), NULL, 16);

			for (unsigned i = 0; i < REGIONS; i++) {
				struct region *r = &n->region[i];

				if (r->move != id || r->stage != AT_SEALED)
					continue;
				if (l)
					*r = (struct region){0};
				else if (take(w, n, i))
					w->result->settled++;
			}
		}
	}
}

/* ---- programs ------------------------------------------------------------ */

/* The node that has it, as far as it has what was written last; -1: none. */
static int holder(const struct world *w, unsigned i, bool also_sealed)
{
	for (unsigned k = 0; k < NODES; k++) {
		const struct region *r = &w->node[k].region[i];

		if (r->birth == w->written[i].birth &&
		    (r->stage == AT_HOME || r->stage == AT_LEAVING ||
		     (also_sealed && r->stage == AT_SEALED &&
		      r->version == w->written[i].version)))
			return (int)k;
	}
	return -1;
}

/* Whether the node has given it in a move of which no controller may know, so
 * that the copy ends with the node. */
static bool is_untold(const struct world *w, unsigned node, unsigned i)
{
	const struct node *n = &w->node[node];

	for (unsigned k = 0; k < NODES; k++) {
		const struct region *r = &w->node[k].region[i];

		if (r->stage == AT_SEALED && r->birth == w->written[i].birth &&
		    r->from == node && r->from_run == n->run &&
		    !has(&n->heard, r->move))
			return true;
	}
	return false;
}

/* Of a node that is killed: what becomes of its regions is nobody's fault. */
void regions_die(struct world *w, unsigned node)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *r = &w->node[node].region[i];
		int at = holder(w, i, false);

		if (r->birth == w->written[i].birth &&
		    (at == (int)node || (at < 0 && r->stage == AT_SEALED)))
			w->written[i].may_be_lost = true;
		if (at < 0 && is_untold(w, node, i))
			w->written[i].may_be_lost = true;
	}
}

/* Whoever has it open writes; what is lost is made anew, somewhere else. */
void region_work(struct world *w, unsigned i)
{
	unsigned k = (unsigned)rng_below(&w->rng, NODES);
	int at = holder(w, i, true);
	struct node *n = &w->node[at >= 0 ? (unsigned)at : k];
	struct region *r = &n->region[i];

	world_at(w, w->now_ns + between_ms(w, 30, 300), EV_REGION, i);
	if (at < 0) {
		if (r->stage != AT_NONE || n->is_drained ||
		    n->p.cut_ns > w->now_ns)
			return;
		*r = (struct region){.stage = AT_HOME, .birth = ++w->ids};
		w->written[i].birth = r->birth;
		w->written[i].version = 0;
		w->written[i].may_be_lost = false;
	} else if (r->stage == AT_HOME && n->p.cut_ns <= w->now_ns) {
		w->written[i].version = ++r->version;
		w->past[r->birth % PASTS] = (struct past){r->birth, r->version};
		w->result->writes++;
	}
}

/* ---- what must hold ------------------------------------------------------ */

void judge_regions(struct world *w)
{
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct written *is = &w->written[i];
		unsigned owners = 0;

		for (unsigned k = 0; k < NODES; k++) {
			const struct region *r = &w->node[k].region[i];

			if (r->birth != is->birth ||
			    (r->stage != AT_HOME && r->stage != AT_LEAVING))
				continue;
			owners++;
			if (r->version < is->version)
				world_wrong(w, "a region that has moved lacks "
					       "what was written last");
		}
		if (owners > 1)
			world_wrong(w, "two nodes have the same region");
		if (!owners && is->birth && !is->may_be_lost &&
		    holder(w, i, true) < 0)
			world_wrong(w, "a region is lost, and no node was");
	}
}

/* All had time to hear of each other. */
void regions_judge_end(struct world *w)
{
	for (unsigned i = 0; i < REGIONS; i++)
		for (unsigned k = 0; k < NODES; k++) {
			const struct region *r = &w->node[k].region[i];

			if (r->stage != AT_NONE && r->stage != AT_HOME)
				world_wrong(w, "a region is still on its way "
					       "at the end, or a copy is left "
					       "over");
		}
}
