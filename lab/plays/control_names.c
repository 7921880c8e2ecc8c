/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of `aquifer sim control` that have names: each makes a folder,
 * renews its lease, has a file or a queue in it that grows, and removes it. A
 * folder whose lease was renewed is there for the period; a block in a map
 * belongs to one object, and what was written into it is in it for as long as
 * the map says that it is ready.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

enum {
	PERIOD_MS = 6000,
	PATIENCE_MS = 1000,
	/* The shortest second of a clock that drifts, in thousandths. */
	FAST_CLOCK = 890,
};

enum doing {
	DOES_MAKE,
	DOES_RENEW,
	DOES_OBJECT,
	DOES_MAKE_AGAIN,
	DOES_OBJECT_AGAIN,
	DOES_GROW,
	DOES_MAP,
	DOES_REMOVE_OBJECT,
	DOES_REMOVE,
};

static const struct {
	enum ctl_method method;
	const char *route;
	const char *object; /* behind the folder's name; NULL: no name */
} requests[] = {
	[DOES_MAKE] = {CTL_POST, "/v1/ns", ""},
	[DOES_RENEW] = {CTL_POST, "/v1/renew", NULL},
	[DOES_OBJECT] = {CTL_POST, "/v1/ns", "/o"},
	[DOES_MAKE_AGAIN] = {CTL_POST, "/v1/ns", ""},
	[DOES_OBJECT_AGAIN] = {CTL_POST, "/v1/ns", "/o"},
	[DOES_GROW] = {CTL_POST, "/v1/blocks", "/o"},
	[DOES_MAP] = {CTL_GET, "/v1/map", "/o"},
	[DOES_REMOVE_OBJECT] = {CTL_DELETE, "/v1/ns", "/o"},
	[DOES_REMOVE] = {CTL_DELETE, "/v1/ns", ""},
};

static char *body_of(const struct world *w, unsigned i)
{
	const struct program *p = &w->program[i];
	char name[40];
	json_t *body = NULL;
	char *text;

	(void)snprintf(name, sizeof(name), "/n%u-%llu", i,
		       (unsigned long long)p->generation);
	if (p->doing == DOES_MAKE || p->doing == DOES_MAKE_AGAIN)
		body = json_pack("{s:s, s:i}", "kind", "folder", "lease_ms",
				 PERIOD_MS);
	else if (p->doing == DOES_RENEW)
		body = json_pack("{s:[s]}", "paths", name);
	else if (p->doing == DOES_OBJECT || p->doing == DOES_OBJECT_AGAIN)
		body = json_pack("{s:s, s:i, s:i}", "kind",
				 p->is_queue ? "queue" : "file", "block_bytes",
				 65536, "copies", p->has_copies ? 2 : 1);
	else if (p->doing == DOES_GROW)
		body = json_pack("{s:I}", "after", (json_int_t)p->last);
	else if (p->doing == DOES_REMOVE)
		body = json_pack("{s:b}", "recursive", 1);
	text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	return text;
}

static void send(struct world *w, unsigned i, enum doing doing)
{
	struct program *p = &w->program[i];
	int leader = controller_leader(w);
	struct message m = {
		.controller =
			leader >= 0 && chance(w, 70)
				? (unsigned)leader
				: (unsigned)rng_below(&w->rng, CONTROLLERS),
		.is_program = true,
		.who = i,
		.id = ++w->ids,
		.method = requests[doing].method,
		.token = control_token_tenant,
	};

	p->doing = doing;
	p->asked = m.id;
	p->asked_ns = w->now_ns;
	p->late_ns = w->now_ns + PATIENCE_MS * MS;
	if (requests[doing].object)
		(void)snprintf(m.path, sizeof(m.path), "%s/n%u-%llu%s",
			       requests[doing].route, i,
			       (unsigned long long)p->generation,
			       requests[doing].object);
	else
		(void)snprintf(m.path, sizeof(m.path), "%s",
			       requests[doing].route);
	m.body = body_of(w, i);
	world_ask(w, &m, false);
	free(m.body);
}

/* ---- what to do --------------------------------------------------------- */

/* Another name: nothing is known of the old one, and its lease will end it. */
static void give_up(struct program *p)
{
	*p = (struct program){
		.generation = p->generation + 1, .last = -1, .written = -1};
}

/* A renewal or a question without an answer; or there is a block more. */
static bool is_harmless(const struct program *p)
{
	return p->doing == DOES_RENEW || p->doing == DOES_MAP ||
	       p->doing == DOES_GROW;
}

void program_look(struct world *w, unsigned i)
{
	struct program *p = &w->program[i];
	uint64_t pick = rng_below(&w->rng, 100);

	world_at(w, w->now_ns + between_ms(w, 20, 300), EV_PROGRAM, i);
	if (!w->is_set_up || w->is_ending ||
	    (p->asked && w->now_ns < p->late_ns))
		return;
	if (p->asked && !is_harmless(p))
		give_up(p);
	p->asked = 0;
	if (!p->has_name)
		send(w, i, DOES_MAKE);
	else if (pick < 25)
		send(w, i, DOES_RENEW);
	else if (!p->has_object) {
		p->is_queue = chance(w, 35);
		p->has_copies = !p->is_queue && chance(w, 60);
		send(w, i, DOES_OBJECT);
	} else if (pick < 31)
		send(w, i, pick < 28 ? DOES_MAKE_AGAIN : DOES_OBJECT_AGAIN);
	else if (pick < 50)
		send(w, i, DOES_GROW);
	else if (pick < 93)
		send(w, i, DOES_MAP);
	else
		send(w, i, pick < 98 ? DOES_REMOVE_OBJECT : DOES_REMOVE);
}

/* ---- what it learns ----------------------------------------------------- */

/* A renewal that was heard holds for the period by any clock. */
static void judge_gone(struct world *w, const struct program *p)
{
	if (p->renewed_ns &&
	    w->now_ns - p->renewed_ns < PERIOD_MS * MS * FAST_CLOCK / 1000)
		world_wrong(
			w,
			"a name is gone %llu ms after its lease of %d ms "
			"was renewed",
			(unsigned long long)((w->now_ns - p->renewed_ns) / MS),
			PERIOD_MS);
}

/* It is there, by a lease that was renewed. */
static void judge_again(struct world *w, const struct program *p)
{
	if (w->now_ns - p->renewed_ns < PERIOD_MS * MS * FAST_CLOCK / 1000)
		world_wrong(w, "a name that exists was made again");
}

/* One object for each generation, for ever. */
static void judge_owner(struct world *w, uint64_t generation, uint64_t object)
{
	struct owner *o = &w->owner[generation % OWNERS];

	if (o->generation == generation && o->object != object)
		world_wrong(w, "two objects have the same block");
	*o = (struct owner){.generation = generation, .object = object};
}

/* The node has said, in its run, that it is there again: so whoever leads knows
 * what it has lost. */
static bool is_known_since(const struct node *n, uint64_t asked_ns)
{
	return n->joined_ns && n->joined_ns < asked_ns;
}

static void judge_block(struct world *w, struct program *p, const json_t *row,
			uint64_t object)
{
	const char *name = json_string_value(json_object_get(row, "node"));
	const char *state = json_string_value(json_object_get(row, "state"));
	struct node *n = &w->node[name[1] - '0'];
	unsigned index =
		(unsigned)json_integer_value(json_object_get(row, "index"));
	uint64_t generation = (uint64_t)json_integer_value(
		json_object_get(row, "generation"));
	struct place *at = &n->place[index % PLACES];
	struct owner *o = &w->owner[generation % OWNERS];
	bool was_written = o->generation == generation && o->is_written;

	if (strcmp(state, "ready") != 0 || !is_known_since(n, p->asked_ns))
		return;
	judge_owner(w, generation, object);
	o->is_written = was_written;
	if (json_object_get(row, "chain")) {
		if (chain_use(w, p, row))
			p->written = p->last;
		return;
	}
	if (index >= PLACES || at->generation != generation) {
		/* A queue's front may have gone while the answer came. */
		if (p->is_queue)
			return;
		world_wrong(w, "a map names a block that its node has not");
		return;
	}
	if (was_written && !at->is_written)
		world_wrong(w, "what was written into a block is gone, and its "
			       "map says that it is ready");
	at->is_written = o->is_written = true;
	p->written = p->last;
	/* All but the last of a queue's blocks are emptied in time. */
	if (p->is_queue && chance(w, 40))
		at->is_drained = true;
}

static void take_map(struct world *w, struct program *p, const json_t *map)
{
	const json_t *rows = json_object_get(map, "blocks"), *row;
	const char *state = json_string_value(json_object_get(map, "state"));
	uint64_t object =
		(uint64_t)json_integer_value(json_object_get(map, "object"));
	size_t i;

	w->result->maps++;
	p->last = -1;
	json_array_foreach(rows, i, row)
	{
		p->last = (int64_t)json_integer_value(
			json_object_get(row, "number"));
		/* A late answer tells of what was; so does one of a leader that
		 * does not lead any more. */
		if (strcmp(state, "ready") == 0 &&
		    w->now_ns - p->asked_ns < 100 * MS)
			judge_block(w, p, row, object);
	}
	if (strcmp(state, "ready") == 0 && !p->is_queue && p->last < p->written)
		world_wrong(w, "a file lacks a block into which was written");
}

static bool is_done(unsigned status)
{
	return status >= 200 && status < 300;
}

static void take_answer(struct world *w, struct program *p,
			const json_t *answer)
{
	switch ((enum doing)p->doing) {
	case DOES_MAKE:
		p->has_name = true;
		p->renewed_ns = p->asked_ns;
		break;
	case DOES_RENEW:
		if (json_array_size(json_object_get(answer, "unknown"))) {
			judge_gone(w, p);
			give_up(p);
		} else {
			p->renewed_ns = p->asked_ns;
			w->result->renewals++;
		}
		break;
	case DOES_OBJECT:
		p->has_object = true;
		p->renewed_ns = p->asked_ns;
		break;
	case DOES_MAKE_AGAIN:
	case DOES_OBJECT_AGAIN:
		judge_again(w, p);
		give_up(p);
		break;
	case DOES_GROW:
	case DOES_MAP:
		p->renewed_ns = p->asked_ns;
		take_map(w, p, answer);
		break;
	case DOES_REMOVE_OBJECT:
		p->has_object = false;
		p->last = p->written = -1;
		break;
	case DOES_REMOVE:
		give_up(p);
		break;
	}
}

void program_reply(struct world *w, const struct message *m)
{
	struct program *p = &w->program[m->who];
	json_t *answer;

	if (m->id != p->asked)
		return;
	p->asked = 0;
	answer = m->body ? json_loads(m->body, 0, NULL) : NULL;
	if (is_done(m->status)) {
		take_answer(w, p, answer);
	} else if (m->status == 404) {
		judge_gone(w, p);
		give_up(p);
	} else if (m->status == 409 && (p->doing == DOES_MAKE_AGAIN ||
					p->doing == DOES_OBJECT_AGAIN)) {
		w->result->again++;
	} else if (!says_nothing_happened(m) && !is_harmless(p)) {
		give_up(p); /* it may have happened or not */
	}
	json_decref(answer);
}
