/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer node drain` in `aquifer sim control`: the administrator drains a
 * node, waits until it has heard of it, asks where there is room, and moves
 * what is there, step by step as client/move.c does. It may die before each
 * step; requests to nodes are lost, late and doubled, and so are answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control_world.h"

enum {
	LOST = 4, /* percent */
	DOUBLED = 8,
	DIES = 5,
	CUT = 20,
	TRIES = 6,
};

enum doing {
	DOES_NOTHING,
	DOES_DRAIN,
	DOES_AWAIT, /* that nothing is added any more */
	DOES_PLACE,
	DOES_MOVE,
	DOES_UNDRAIN,
};

/* ---- the controller ------------------------------------------------------ */

static void ask(struct world *w, struct mover *m, enum ctl_method method,
		const char *path, const char *body)
{
	int leader = controller_leader(w);
	struct message msg = {
		.controller =
			leader >= 0 && chance(w, 85)
				? (unsigned)leader
				: (unsigned)rng_below(&w->rng, CONTROLLERS),
		.is_mover = true,
		.is_undrain = m->doing == DOES_UNDRAIN,
		.about = m->from,
		.who = (unsigned)(m - w->mover),
		.id = ++w->ids,
		.method = method,
		.token = control_token_admin,
		.body = body ? strdup(body) : NULL,
	};

	(void)snprintf(msg.path, sizeof(msg.path), "%s", path);
	m->asked = msg.id;
	m->asked_ns = w->now_ns;
	m->late_ns = w->now_ns + CLIENT_MS * MS / 3;
	world_ask(w, &msg, false);
	free(msg.body);
}

static void ask_next(struct world *w, struct mover *m)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/v1/nodes/m%u%s", m->from,
		       m->doing == DOES_AWAIT ? "" : "/drain");
	if (m->doing == DOES_PLACE) {
		/* For a region, or for a leaf of a table and its copy. */
		ask(w, m, CTL_POST, "/v1/place",
		    chance(w, 70) ? "{\"size\":4096}"
				  : "{\"size\":4096,\"copies\":2}");
	} else if (m->doing == DOES_AWAIT) {
		ask(w, m, CTL_GET, path, NULL);
	} else {
		bool is_on = m->doing == DOES_DRAIN;

		w->drained[m->from].is_sure = false;
		w->drained[m->from].changes++;
		m->is_clean = !w->drained[m->from].undrains;
		ask(w, m, CTL_POST, path,
		    is_on ? "{\"drain\":true}" : "{\"drain\":false}");
	}
}

static bool is_true(const json_t *answer, const char *name)
{
	return json_is_true(json_object_get(answer, name));
}

/* Nothing is said to be all of it before the node has heard that it takes
 * nothing new, in the run that the controller can know of. */
static void judge_last(struct world *w, const struct mover *m,
		       const json_t *answer)
{
	const struct node *n = &w->node[m->from];

	if (is_true(answer, "left_last") && w->drained[m->from].is_sure &&
	    n->run == m->from_run && n->joined_ns &&
	    n->joined_ns < m->asked_ns && !n->is_drained)
		world_wrong(w,
			    "all that is on node m%u is said to be known, and "
			    "the node takes more",
			    m->from);
}

/* A node that was drained before the question gets nothing. */
static void judge_place(struct world *w, const struct mover *m, unsigned to)
{
	if (w->drained[to].is_sure && w->drained[to].sure_ns < m->asked_ns)
		world_wrong(w, "memory is placed on node m%u, which is drained",
			    to);
}

static unsigned place_of(const json_t *answer, size_t copy)
{
	const char *name = json_string_value(json_object_get(
		json_array_get(json_object_get(answer, "nodes"), copy),
		"name"));

	return name ? (unsigned)(name[1] - '0') : NODES;
}

static void judge_places(struct world *w, const struct mover *m,
			 const json_t *answer)
{
	unsigned first = place_of(answer, 0), second = place_of(answer, 1);

	if (first < NODES)
		judge_place(w, m, first);
	if (second < NODES)
		judge_place(w, m, second);
	if (first == second && first < NODES)
		world_wrong(w, "two copies are placed on node m%u", first);
}

static void begin_move(struct world *w, struct mover *m, unsigned to)
{
	/* When nothing is left it takes memory again. */
	m->doing = DOES_UNDRAIN;
	if (to >= NODES || to == m->from)
		return;
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct region *r = &w->node[m->from].region[i];

		if (r->stage != AT_HOME)
			continue;
		m->order = (struct order){.step = STEP_ARRIVE,
					  .region = i,
					  .node = to,
					  .from = m->from,
					  .from_run = w->node[m->from].run,
					  .birth = r->birth,
					  .move = ++w->ids};
		m->to = to;
		m->doing = DOES_MOVE;
		m->tries = 0;
	}
}

void mover_reply(struct world *w, const struct message *msg)
{
	struct mover *m = &w->mover[msg->who];
	json_t *answer;

	if (msg->id != m->asked)
		return;
	m->asked = 0;
	if (msg->status != 200) {
		m->tries++;
		return;
	}
	answer = msg->body ? json_loads(msg->body, 0, NULL) : NULL;
	switch ((enum doing)m->doing) {
	case DOES_DRAIN:
		/* Another mover may have said otherwise meanwhile, or before,
		 * and is heard only now. */
		w->drained[m->from].is_sure =
			m->is_clean && w->drained[m->from].changes == m->change;
		w->drained[m->from].sure_ns = w->now_ns;
		m->doing = DOES_AWAIT;
		m->tries = 0;
		break;
	case DOES_AWAIT:
		judge_last(w, m, answer);
		if (is_true(answer, "left_last"))
			m->doing = DOES_PLACE;
		m->tries++;
		m->from_run = w->node[m->from].run;
		break;
	case DOES_PLACE:
		judge_places(w, m, answer);
		begin_move(w, m, place_of(answer, 0));
		break;
	case DOES_NOTHING:
	case DOES_MOVE:
	case DOES_UNDRAIN:
		m->doing = DOES_NOTHING;
		break;
	}
	json_decref(answer);
}

/* ---- the nodes ----------------------------------------------------------- */

enum answer {
	NOT_HEARD,
	DONE,
	REFUSED,
};

/* One request to a node, and perhaps the same once more, much later. */
static enum answer tell(struct world *w, struct mover *m, enum step step,
			unsigned node)
{
	bool is_done;

	m->order.step = step;
	m->order.node = node;
	if (goes_wrong(w, DOUBLED))
		world_order(w, &m->order);
	if (w->node[node].p.cut_ns > w->now_ns || goes_wrong(w, LOST))
		return NOT_HEARD;
	is_done = region_obey(w, &m->order);
	if (goes_wrong(w, LOST))
		return NOT_HEARD;
	return is_done ? DONE : REFUSED;
}

static void give_up(struct world *w, struct mover *m)
{
	(void)tell(w, m, STEP_END, m->from);
	(void)tell(w, m, STEP_END, m->to);
	m->doing = DOES_NOTHING;
}

static void take(struct world *w, struct mover *m)
{
	if (tell(w, m, STEP_TAKE, m->to) == DONE)
		(void)tell(w, m, STEP_END, m->from);
	/* There may be more. */
	m->doing = DOES_PLACE;
	m->tries = 0;
	w->result->moves++;
}

static void move(struct world *w, struct mover *m)
{
	static const struct {
		enum step step, next;
		bool is_there;
	} steps[] = {
		{STEP_ARRIVE, STEP_LEAVE, true}, {STEP_LEAVE, STEP_COPY, false},
		{STEP_COPY, STEP_SEAL, false},	 {STEP_SEAL, STEP_GIVE, true},
		{STEP_GIVE, STEP_TAKE, false},
	};
	uint64_t birth = m->order.birth, run = m->order.from_run;
	enum step now = m->order.step;
	enum answer a;

	if (now == STEP_TAKE) {
		take(w, m);
		return;
	}
	a = tell(w, m, now, steps[now].is_there ? m->to : m->from);
	/* A sealed copy is left, and who knows what it is worth is silent, and
	 * may die as soon as it is not. */
	if (now == STEP_SEAL && goes_wrong(w, CUT)) {
		w->node[m->from].p.cut_ns =
			w->now_ns + between_ms(w, 500, 13000);
		if (chance(w, 60))
			world_at(w,
				 w->node[m->from].p.cut_ns +
					 between_ms(w, 20, 400),
				 EV_KILL, m->from);
	}
	/* What leaves is what was looked at. */
	if (a == DONE && m->order.birth == birth && m->order.from_run == run) {
		m->order.step = steps[now].next;
		return;
	}
	/* No answer to the one step that counts: it may be done, and nothing
	 * of it is taken back. */
	if (now == STEP_GIVE && a == NOT_HEARD)
		m->doing = DOES_NOTHING;
	else
		give_up(w, m);
}

/* ---- what to do ---------------------------------------------------------- */

static void begin(struct world *w, struct mover *m)
{
	unsigned region = (unsigned)rng_below(&w->rng, REGIONS);

	*m = (struct mover){.from = (unsigned)rng_below(&w->rng, NODES)};
	for (unsigned k = 0; k < NODES && chance(w, 80); k++)
		if (w->node[k].region[region].stage == AT_HOME)
			m->from = k;
	m->from_run = w->node[m->from].run;
	m->doing = chance(w, 55) ? DOES_DRAIN : DOES_UNDRAIN;
}

void mover_look(struct world *w, unsigned i)
{
	struct mover *m = &w->mover[i];
	bool is_early = m->asked && w->now_ns < m->late_ns;

	world_at(w, w->now_ns + between_ms(w, 5, 250), EV_MOVER, i);
	if (!w->is_set_up || is_early)
		return;
	/* Killed, or it has tried for long enough. */
	if (goes_wrong(w, DIES) || m->tries > TRIES)
		m->doing = DOES_NOTHING;
	m->asked = 0;
	if (m->doing == DOES_NOTHING && !w->is_ending && chance(w, 40))
		begin(w, m);
	if (m->doing == DOES_MOVE)
		move(w, m);
	else if (m->doing != DOES_NOTHING)
		ask_next(w, m);
	m->change = w->drained[m->from].changes;
}
