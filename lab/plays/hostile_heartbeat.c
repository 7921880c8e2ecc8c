/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second act of the play "hostile": a client with connections to a few
 * nodes tells them that it lives, by the shipped plan, and one node at a time
 * hangs or is slow. Nodes end connections that are silent for longer than their
 * patience; no time in which they did not run counts, as in the memory node.
 * They also forget connections, as when somebody ends them or they restart.
 *
 * No node may end a connection of this client by itself, and the client knows
 * in the end which connections it has lost, and has given up no other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/awake.h"
#include "hostile_play_priv.h"

enum {
	NODES = 4,
	CONNS = 12,   /* at a node */
	BACKLOG = 5,  /* requests that wait at a node which hangs */
	REQUESTS = 3, /* for all connections of a node */
	LATE_MS = 40, /* threads are, sometimes */
	TROUBLE_MIN_MS = 200,
	TROUBLE_MAX_MS = 3 * HOSTILE_PATIENCE_MS / 2,
	CALM_MS = 3 * HOSTILE_PATIENCE_MS, /* at the end */
	END_MS = 45000,
	FORGETS = 3,
};

enum health {
	HEALTHY,
	HANGS,
	SLOW,
	GONE, /* nobody listens; it comes back and knows nothing */
};

struct conn {
	struct client_bond bond;
	uint64_t seen_ns;
	bool is_open; /* the node knows it */
};

/* A request that has left the client. */
struct request {
	struct sim_event event; /* the node takes it */
	struct node *node;
	uint32_t serial; /* 0: free */
	bool is_waiting; /* in the node's backlog */
	uint32_t count;
	struct conn *conn[CONNS];
};

struct node {
	struct act *act;
	uint32_t index;
	enum health health;
	struct awake awake;
	struct sim_event tick;
	struct request request[BACKLOG];
	struct conn conn[CONNS];
	uint32_t conn_count;
	/* The client's end: the request that it waits for. */
	struct sim_event end;
	uint32_t serial;
	int err;
	bool may_live;
	uint32_t named_count;
	struct conn *named[CONNS]; /* in the request to come */
	bool is_forgotten[CONNS];  /* the answer */
};

struct act {
	struct hp *p;
	struct sim *sim;
	struct rng rand;
	struct heartbeat_plan plan;
	struct list bonds;
	struct sim_event look, trouble, forget, join;
	struct node node[NODES];
	uint32_t node_count;
	struct node *troubled; /* or NULL */
	uint32_t forgets;
};

static uint64_t ms_ps(uint32_t ms)
{
	return ms * SIM_MS;
}

static bool is_calm(const struct act *a)
{
	return sim_now_ps(a->sim) > ms_ps(END_MS - CALM_MS);
}

/* ---- a node ------------------------------------------------------------- */

/* The same rule as the memory node's tick. */
static void node_tick(struct sim *sim, struct sim_event *ev)
{
	struct node *n = container_of(ev, struct node, tick);
	uint64_t now_ns = sim_now_ns(sim);

	sim_schedule_in(sim, ev, ms_ps(HOSTILE_TICK_MS));
	if (n->health == HANGS)
		return;
	awake_look(&n->awake, now_ns, HOSTILE_PAUSE_MS * 1000000ull);
	for (uint32_t i = 0; i < n->conn_count; i++) {
		struct conn *c = &n->conn[i];
		uint64_t since_ns = u64_max(c->seen_ns, n->awake.since_ns);

		if (!c->is_open || now_ns <= since_ns ||
		    now_ns - since_ns <= HOSTILE_PATIENCE_MS * 1000000ull)
			continue;
		c->is_open = false;
		play_fail(
			&n->act->p->run,
			"node %u, which %s, ends a connection of a client that "
			"lives",
			n->index, n->health == SLOW ? "is slow" : "is well");
	}
}

/* It hears what the request says, and answers, if somebody still waits. */
static void node_take(struct sim *sim, struct sim_event *ev)
{
	struct request *r = container_of(ev, struct request, event);
	struct node *n = r->node;
	bool is_awaited = r->serial == n->serial;

	r->is_waiting = n->health == HANGS;
	if (r->is_waiting)
		return;
	r->serial = 0;
	if (n->health == GONE)
		return;
	sim_note(sim, SIM_NOTE_OTHER, &n->index, sizeof(n->index));
	for (uint32_t i = 0; i < r->count; i++) {
		struct conn *c = r->conn[i];

		if (c->is_open)
			c->seen_ns = sim_now_ns(sim);
		if (is_awaited)
			n->is_forgotten[c - n->conn] = !c->is_open;
	}
	if (!is_awaited)
		return;
	n->err = 0;
	sim_schedule_in(sim, &n->end, SIM_MS / 4);
}

static void node_wake(struct node *n)
{
	n->health = HEALTHY;
	for (unsigned i = 0; i < BACKLOG; i++)
		if (n->request[i].serial && n->request[i].is_waiting)
			node_take(n->act->sim, &n->request[i].event);
}

/* ---- the client --------------------------------------------------------- */

static bool name(void *ctx, uint32_t index, const struct client_bond *bond)
{
	struct act *a = ctx;
	struct node *n = &a->node[index];

	n->named[n->named_count++] = container_of(bond, struct conn, bond);
	return true;
}

static void send_to(struct act *a, struct node *n)
{
	struct request *r = n->request;
	uint32_t way_us = sim_rand_range(&a->rand, 20, 2000);

	n->serial++;
	n->err = -EHOSTDOWN;
	n->may_live = false;
	a->p->n->beats++;
	heartbeat_plan_start(&a->plan, n->index, sim_now_ns(a->sim));
	while (r < n->request + BACKLOG && r->serial)
		r++;
	if (n->health == GONE || r == n->request + BACKLOG) {
		n->may_live = n->health != GONE;
		sim_schedule_in(a->sim, &n->end, way_us * SIM_US);
	} else {
		/* One that is slow may take longer than the client waits. */
		if (n->health == SLOW)
			way_us += 1000 *
				  sim_rand_range(
					  &a->rand, 1,
					  5 * CLIENT_HEARTBEAT_TIMEOUT_MS / 4);
		r->serial = n->serial;
		r->count = n->named_count;
		memcpy(r->conn, n->named, sizeof(r->conn));
		sim_schedule_in(a->sim, &r->event, way_us * SIM_US);
		sim_schedule_in(a->sim, &n->end,
				ms_ps(CLIENT_HEARTBEAT_TIMEOUT_MS));
	}
	n->named_count = 0;
}

static void look(struct sim *sim, struct sim_event *ev)
{
	struct act *a = container_of(ev, struct act, look);
	uint64_t wait_ns;

	heartbeat_plan_look(&a->plan, &a->bonds, HOSTILE_HEARTBEAT_MS,
			    sim_now_ns(sim), name, a);
	for (uint32_t i = 0; i < a->node_count; i++)
		if (heartbeat_plan_is_due(&a->plan, i))
			send_to(a, &a->node[i]);
	wait_ns = heartbeat_plan_wait_ns(&a->plan, HOSTILE_HEARTBEAT_MS,
					 sim_now_ns(sim));
	sim_schedule_in(sim, ev,
			wait_ns * SIM_NS +
				ms_ps(sim_rand_below(&a->rand, LATE_MS)));
}

static bool is_named(void *ctx, const char *id)
{
	const struct node *n = ctx;

	for (uint32_t i = 0; i < n->conn_count; i++)
		if (n->is_forgotten[i] && !strcmp(n->conn[i].bond.id, id))
			return true;
	return false;
}

/* The answer has come, or the time is over. */
static void request_ends(struct sim *sim, struct sim_event *ev)
{
	struct node *n = container_of(ev, struct node, end);
	struct act *a = n->act;

	n->serial++; /* nobody waits for what comes later */
	switch (heartbeat_plan_end(&a->plan, n->index, n->err, n->may_live,
				   sim_now_ns(sim))) {
	case HEARTBEAT_LOSS_ALL:
		heartbeat_plan_lose(&a->plan, n->index, &a->bonds, NULL, NULL);
		break;
	case HEARTBEAT_LOSS_SOME:
		heartbeat_plan_lose(&a->plan, n->index, &a->bonds, is_named, n);
		break;
	case HEARTBEAT_LOSS_SILENT: /* of engines; there are none here */
	case HEARTBEAT_LOSS_NONE:
		break;
	}
	memset(n->is_forgotten, 0, sizeof(n->is_forgotten));
	sim_schedule_at(sim, &a->look, 0);
}

/* One more connection, to any node that has room. */
static void join(struct sim *sim, struct sim_event *ev)
{
	struct act *a = container_of(ev, struct act, join);
	struct node *n = &a->node[sim_rand_below(&a->rand, a->node_count)];
	struct conn *c = &n->conn[n->conn_count];

	if (n->conn_count < CONNS &&
	    (n->health == HEALTHY || n->health == SLOW)) {
		client_bond_init(&c->bond, n->index);
		snprintf(c->bond.id, sizeof(c->bond.id), "%u-%u", n->index,
			 n->conn_count++);
		c->seen_ns = sim_now_ns(sim);
		c->is_open = true;
		list_append(&a->bonds, &c->bond.link);
	}
	if (!is_calm(a))
		sim_schedule_in(sim, ev, ms_ps(sim_rand_below(&a->rand, 300)));
}

/* ---- trouble ------------------------------------------------------------ */

/* The node forgets one connection, or all. */
static void lose_conns(struct node *n, uint32_t which)
{
	for (uint32_t i = 0; i < n->conn_count; i++)
		if (n->conn[i].is_open && (which >= CONNS || which == i)) {
			n->conn[i].is_open = false;
			n->act->p->n->forgotten++;
		}
}

static void trouble(struct sim *sim, struct sim_event *ev)
{
	static const enum health kinds[] = {HANGS, HANGS, HANGS,
					    SLOW,  SLOW,  GONE};
	struct act *a = container_of(ev, struct act, trouble);
	struct node *n = a->troubled;

	a->troubled = NULL;
	if (n) {
		node_wake(n);
	} else if (!is_calm(a)) {
		n = &a->node[sim_rand_below(&a->rand, a->node_count)];
		n->health = kinds[sim_rand_below(&a->rand, ARRAY_LEN(kinds))];
		if (n->health == GONE)
			lose_conns(n, CONNS);
		a->troubled = n;
		a->p->n->hangs++;
	}
	sim_schedule_in(sim, ev,
			ms_ps(sim_rand_range(&a->rand, TROUBLE_MIN_MS,
					     TROUBLE_MAX_MS)));
}

static void forget(struct sim *sim, struct sim_event *ev)
{
	struct act *a = container_of(ev, struct act, forget);

	lose_conns(&a->node[sim_rand_below(&a->rand, a->node_count)],
		   sim_rand_below(&a->rand, 2 * CONNS));
	if (--a->forgets && !is_calm(a))
		sim_schedule_in(sim, ev,
				ms_ps(sim_rand_below(&a->rand, END_MS / 4)));
}

/* ---- the act ------------------------------------------------------------ */

static void init_node(struct act *a, uint32_t index)
{
	struct node *n = &a->node[index];

	n->act = a;
	n->index = index;
	sim_event_init(&n->tick, node_tick);
	sim_event_init(&n->end, request_ends);
	for (unsigned i = 0; i < BACKLOG; i++) {
		n->request[i].node = n;
		sim_event_init(&n->request[i].event, node_take);
	}
	sim_schedule_in(a->sim, &n->tick,
			ms_ps(sim_rand_below(&a->rand, HOSTILE_TICK_MS)));
}

static void begin(struct act *a)
{
	struct rng *r = &a->rand;

	sim_rand_init(r, a->p->run.opt->seed, 300);
	list_init(&a->bonds);
	a->node_count = sim_rand_range(r, 2, NODES);
	a->forgets = sim_rand_range(r, 1, FORGETS);
	heartbeat_plan_init(&a->plan,
			    sim_rand_range(r, CONNS / REQUESTS, CONNS));
	for (uint32_t i = 0; i < a->node_count; i++)
		init_node(a, i);
	sim_event_init(&a->look, look);
	sim_event_init(&a->trouble, trouble);
	sim_event_init(&a->forget, forget);
	sim_event_init(&a->join, join);
	sim_schedule_in(a->sim, &a->join, 0);
	sim_schedule_in(a->sim, &a->look, 0);
	sim_schedule_in(a->sim, &a->trouble, ms_ps(TROUBLE_MIN_MS));
	sim_schedule_in(a->sim, &a->forget,
			ms_ps(sim_rand_below(r, END_MS / 4)));
}

static void check(struct act *a)
{
	for (uint32_t i = 0; i < a->node_count; i++)
		for (uint32_t k = 0; k < a->node[i].conn_count; k++) {
			const struct conn *c = &a->node[i].conn[k];
			bool is_lost = client_bond_is_lost(&c->bond);

			if (is_lost && c->is_open)
				play_fail(
					&a->p->run,
					"a connection to node %u was given up",
					i);
			else if (!is_lost && !c->is_open)
				play_fail(&a->p->run,
					  "node %u has forgotten a connection, "
					  "and the client does not know",
					  i);
		}
}

int hp_heartbeat_run(struct hp *p)
{
	struct act *a = calloc(1, sizeof(*a));
	int err = a ? sim_create(p->run.opt->seed, &a->sim) : -ENOMEM;

	if (!err) {
		a->p = p;
		begin(a);
		(void)sim_run_until(a->sim, ms_ps(END_MS));
		check(a);
		p->run.res->hash =
			p->run.res->hash * 31 + sim_trace_hash(a->sim);
		p->n->events += sim_event_count(a->sim);
		sim_destroy(a->sim);
	}
	free(a);
	return err;
}
