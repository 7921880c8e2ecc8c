/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of `aquifer sim control`: they join, beat, and hand memory out as
 * the shipped half of allowances lets them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

void node_start(struct world *w, unsigned i)
{
	struct node *n = &w->node[i];
	uint64_t cut_ns = n->p.cut_ns, run = n->run + 1;
	bool is_known = n->is_known;

	memset(n, 0, sizeof(*n));
	process_init(w, &n->p);
	n->p.cut_ns = cut_ns;
	n->run = run;
	n->is_known = is_known;
	n->at = (unsigned)rng_below(&w->rng, CONTROLLERS);
	(void)snprintf(n->up.incarnation, sizeof(n->up.incarnation), "%08x%08x",
		       i, (unsigned)n->run);
	for (unsigned t = 0; t < TENANTS; t++)
		up_share_rule(&n->share[t], true, 0);
}

/* ---- asking ------------------------------------------------------------- */

static char *beat_of(struct node *n)
{
	json_t *beat = up_state_say(&n->up), *rows = json_array();
	uint64_t used = 0;
	char *text;

	for (unsigned t = 0; t < TENANTS; t++) {
		used += n->used[t];
		(void)json_array_append_new(
			rows, up_share_say(&n->share[t], control_tenants[t],
					   n->used[t]));
	}
	(void)json_object_set_new(beat, "used", json_integer((json_int_t)used));
	(void)json_object_set_new(beat, "shares", rows);
	blocks_say(n, beat);
	regions_say(n, beat);
	text = json_dumps(beat, JSON_COMPACT);
	json_decref(beat);
	return text;
}

static char *join_of(const struct node *n, unsigned i)
{
	char name[8], *text;
	json_t *body;

	(void)snprintf(name, sizeof(name), "m%u", i);
	body = json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", name, "kind",
			 "memory", "address", name, "incarnation",
			 n->up.incarnation, "size", (json_int_t)1 << 40);
	text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	return text;
}

static void ask(struct world *w, unsigned i)
{
	struct node *n = &w->node[i];
	struct message m = {
		.controller = n->at,
		.is_node = true,
		.who = i,
		.run = n->run,
		.id = ++w->ids,
		.sent_ns = process_now(&n->p),
		.method = CTL_POST,
		.token = control_token_node,
	};

	n->is_joining = n->up.epoch == 0;
	if (n->is_joining) {
		(void)snprintf(m.path, sizeof(m.path), "/v1/nodes");
		m.body = join_of(n, i);
	} else {
		(void)snprintf(m.path, sizeof(m.path), "/v1/nodes/m%u/beat", i);
		m.body = beat_of(n);
	}
	n->asked = m.id;
	n->late_ns = w->now_ns + ASK_MS * MS;
	world_ask(w, &m, true);
	free(m.body);
}

void node_look(struct world *w, unsigned i)
{
	struct node *n = &w->node[i];

	world_at(w, w->now_ns + between_ms(w, 20, 80), EV_NODE, i);
	regions_tick(n);
	chains_tick(w, i);
	if (n->asked && w->now_ns < n->late_ns)
		return;
	if (n->asked) /* no answer */
		n->at = (n->at + 1) % CONTROLLERS;
	ask(w, i);
}

/* ---- answers ------------------------------------------------------------ */

static void take_shares(struct world *w, struct node *n, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "shares"), *row;
	size_t k;

	json_array_foreach(rows, k, row)
	{
		const char *name =
			json_string_value(json_object_get(row, "tenant"));

		for (unsigned t = 0; t < TENANTS; t++) {
			uint64_t before = n->share[t].refusals;

			if (!name || strcmp(name, control_tenants[t]) != 0)
				continue;
			w->result->grants +=
				up_share_hear(&n->share[t], row, n->used[t]);
			w->result->refused += n->share[t].refusals - before;
			/* Who was refused does not ask again at once. */
			if (n->share[t].refusals != before)
				n->share[t].wish_bytes = 0;
		}
	}
}

static void take_answer(struct world *w, struct node *n, const json_t *answer,
			uint64_t sent_ns)
{
	if (up_state_hear(&n->up, answer, sent_ns)) {
		n->up.epoch = 0; /* as the daemon: it joins whoever leads */
		return;
	}
	if (n->up.term < n->term_max)
		world_wrong(w,
			    "a node took an answer of term %llu after one of "
			    "term %llu",
			    (unsigned long long)n->up.term,
			    (unsigned long long)n->term_max);
	n->term_max = u64_max(n->term_max, n->up.term);
	n->answered_ns = w->now_ns;
	if (!n->is_joining) {
		take_shares(w, n, answer);
		blocks_hear(w, n, answer);
		regions_hear(w, n, answer);
		return;
	}
	n->is_known = true;
	n->joined_ns = n->joined_ns ? n->joined_ns : w->now_ns;
	w->result->joins++;
	for (unsigned t = 0; t < TENANTS; t++)
		up_share_join(&n->share[t], n->used[t]);
}

void node_reply(struct world *w, const struct message *m)
{
	struct node *n = &w->node[m->who];
	json_t *answer;

	if (m->run != n->run || m->id != n->asked)
		return;
	n->asked = 0;
	if (m->status == 204)
		return; /* another one has replaced it */
	answer = m->body ? json_loads(m->body, 0, NULL) : NULL;
	if (m->status == 200)
		take_answer(w, n, answer, m->sent_ns);
	else if (m->status == 410)
		n->up.epoch = 0;
	else
		n->at = (n->at + 1) % CONTROLLERS;
	json_decref(answer);
}

void nodes_hung_up(struct world *w, unsigned controller)
{
	for (unsigned i = 0; i < NODES; i++) {
		struct node *n = &w->node[i];

		if (n->at != controller || n->p.cut_ns > w->now_ns)
			continue;
		n->asked = 0;
		n->at = (n->at + 1) % CONTROLLERS;
	}
}

/* ---- memory ------------------------------------------------------------- */

/* A new beat at once: somebody waits. */
static void hurry(struct world *w, unsigned i)
{
	if (w->node[i].up.epoch)
		ask(w, i);
}

void node_work(struct world *w, unsigned i)
{
	struct node *n = &w->node[i];
	unsigned t = (unsigned)rng_below(&w->rng, TENANTS);
	uint64_t more = PIECE * rng_between(&w->rng, 1, 6);

	world_at(w, w->now_ns + between_ms(w, 50, 400), EV_WORK, i);
	if (chance(w, 35)) {
		n->used[t] -= u64_min(n->used[t], more);
		return;
	}
	if (!up_state_is_fresh(&n->up, process_now(&n->p)))
		return;
	if (up_share_may(&n->share[t], n->used[t], more)) {
		n->used[t] += more;
		n->share[t].wish_bytes = 0;
		return;
	}
	n->share[t].wish_bytes = n->used[t] + more;
	if (chance(w, 50))
		hurry(w, i);
}
