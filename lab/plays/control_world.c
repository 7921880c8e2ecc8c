/* SPDX-License-Identifier: Apache-2.0 */
/* Time and messages of `aquifer sim control`. */
#include "control_world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum {
	LOST_PERCENT = 4,
	DOUBLED_PERCENT = 8,
	LATE_PERCENT = 3,
	LATE_MAX_MS = 15000,
};

bool chance(struct world *w, unsigned percent)
{
	return rng_below(&w->rng, 100) < percent;
}

bool goes_wrong(struct world *w, unsigned percent)
{
	return !w->is_ending && chance(w, percent);
}

uint64_t between_ms(struct world *w, uint64_t low, uint64_t high)
{
	return rng_between(&w->rng, low * MS, high * MS);
}

void world_wrong(struct world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->result->wrong[0])
		return;
	va_start(ap, fmt);
	(void)vsnprintf(w->result->wrong, sizeof(w->result->wrong), fmt, ap);
	va_end(ap);
}

/* ---- clocks ------------------------------------------------------------- */

uint64_t process_now(const struct process *p)
{
	return p->base_ns + (uint64_t)((double)p->world->now_ns * p->drift);
}

static uint64_t env_now(struct env *env)
{
	return process_now(container_of(env, struct process, env));
}

static void env_fill(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&container_of(env, struct process, env)->world->rng, buf,
		 len_bytes);
}

static const struct env_ops process_ops = {.now_ns = env_now,
					   .random = env_fill};

void process_init(struct world *w, struct process *p)
{
	memset(p, 0, sizeof(*p));
	p->env.ops = &process_ops;
	p->world = w;
	p->base_ns = rng_between(&w->rng, 1, 1ull << 50);
	p->drift = 0.9 + 0.2 * rng_double(&w->rng);
}

/* ---- events ------------------------------------------------------------- */

static bool is_sooner(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void push(struct world *w, struct event e)
{
	unsigned i = w->event_count++;

	ASSERT(w->event_count <= EVENTS);
	e.order = ++w->order;
	w->event[i] = e;
	while (i && is_sooner(&w->event[i], &w->event[(i - 1) / 2])) {
		struct event t = w->event[i];

		w->event[i] = w->event[(i - 1) / 2];
		w->event[(i - 1) / 2] = t;
		i = (i - 1) / 2;
	}
}

static struct event pop(struct world *w)
{
	struct event first = w->event[0];
	unsigned i = 0;

	w->event[0] = w->event[--w->event_count];
	for (;;) {
		unsigned least = i;

		for (unsigned k = 2 * i + 1;
		     k <= 2 * i + 2 && k < w->event_count; k++)
			if (is_sooner(&w->event[k], &w->event[least]))
				least = k;
		if (least == i)
			return first;
		struct event t = w->event[i];

		w->event[i] = w->event[least];
		w->event[least] = t;
		i = least;
	}
}

void world_at(struct world *w, uint64_t at_ns, enum event_kind kind,
	      unsigned who)
{
	push(w, (struct event){.at_ns = at_ns, .kind = kind, .who = who});
}

static uint64_t delay(struct world *w)
{
	return goes_wrong(w, LATE_PERCENT)
		       ? between_ms(w, 100, LATE_MAX_MS)
		       : rng_between(&w->rng, MS / 10, 20 * MS);
}

static void message_free(struct message *m)
{
	free(m->body);
	free(m);
}

static struct message *message_copy(const struct message *m)
{
	struct message *copy = malloc(sizeof(*copy));

	ASSERT(copy);
	*copy = *m;
	copy->body = m->body ? strdup(m->body) : NULL;
	return copy;
}

void world_ask(struct world *w, const struct message *m, bool may_double)
{
	unsigned times = goes_wrong(w, LOST_PERCENT) ? 0 : 1;

	if (times && may_double && goes_wrong(w, DOUBLED_PERCENT))
		times = 2;
	/* The second one comes when nobody thinks of it any more. */
	if (m->is_undrain)
		w->drained[m->about].undrains += times;
	for (unsigned i = 0; i < times; i++)
		push(w, (struct event){
				.at_ns = w->now_ns +
					 (i ? between_ms(w, 100, LATE_MAX_MS)
					    : delay(w)),
				.kind = EV_REQUEST,
				.message = message_copy(m)});
}

/* ---- steps -------------------------------------------------------------- */

/* A stopped process does it later; one that is cut off hears nothing. */
static bool is_put_off(struct world *w, struct event *e)
{
	unsigned c = e->kind == EV_REQUEST   ? e->message->controller
		     : e->kind == EV_TXN_END ? e->txn->controller
					     : e->who;
	const struct process *p;

	/* Others are not about a controller. */
	if (e->kind != EV_REQUEST && e->kind != EV_TXN_END &&
	    e->kind != EV_TICK)
		return false;
	p = &w->controller[c].p;
	if (p->is_dead || p->stopped_ns <= w->now_ns)
		return false;
	e->at_ns = p->stopped_ns + 1;
	push(w, *e);
	return true;
}

static bool reaches(struct world *w, const struct message *m)
{
	const struct process *c = &w->controller[m->controller].p;

	if (c->is_dead || c->cut_ns > w->now_ns)
		return false;
	return !m->is_node ||
	       (w->node[m->who].p.cut_ns <= w->now_ns &&
		w->controller[m->controller].cut_nodes_ns <= w->now_ns);
}

static void take_message(struct world *w, struct event *e)
{
	struct message *m = e->message;

	if (m->is_undrain && e->kind == EV_REQUEST)
		w->drained[m->about].undrains--;
	if (!reaches(w, m)) {
		message_free(m);
		return;
	}
	if (e->kind == EV_REQUEST) {
		controller_request(w, m); /* which keeps it */
		return;
	}
	if (m->is_node)
		node_reply(w, m);
	else if (m->is_program)
		program_reply(w, m);
	else if (m->is_mover)
		mover_reply(w, m);
	else
		client_reply(w, m);
	message_free(m);
}

static void take(struct world *w, struct event *e)
{
	switch (e->kind) {
	case EV_REQUEST:
	case EV_REPLY:
		take_message(w, e);
		break;
	case EV_TXN:
		controller_txn(w, e->txn);
		break;
	case EV_TXN_END:
		controller_txn_end(w, e->txn);
		break;
	case EV_TICK:
		controller_tick(w, e->who);
		break;
	case EV_START:
		controller_start(w, e->who);
		break;
	case EV_NODE:
		node_look(w, e->who);
		break;
	case EV_WORK:
		node_work(w, e->who);
		break;
	case EV_CLIENT:
		client_look(w, e->who);
		break;
	case EV_PROGRAM:
		program_look(w, e->who);
		break;
	case EV_REGION:
		region_work(w, e->who);
		break;
	case EV_MOVER:
		mover_look(w, e->who);
		break;
	case EV_ORDER:
		(void)region_obey(w, e->order_late); /* nobody waits for it */
		free(e->order_late);
		break;
	case EV_KILL:
		world_kill(w, e->who);
		break;
	case EV_FAULT:
		world_fault(w);
		break;
	case EV_NONE:
		break;
	}
}

bool world_step(struct world *w)
{
	struct event e;

	if (!w->event_count || w->result->wrong[0])
		return false;
	e = pop(w);
	w->now_ns = u64_max(w->now_ns, e.at_ns);
	ledger_store_set_now(w->store, w->now_ns);
	if (is_put_off(w, &e))
		return true;
	w->result->steps++;
	w->result->hash =
		(w->result->hash ^ (w->now_ns + e.kind)) * 1099511628211ull;
	take(w, &e);
	for (unsigned i = 0; i < CONTROLLERS; i++)
		controller_pump(w, i);
	judge_step(w);
	ledger_judge_step(w);
	judge_regions(w);
	return true;
}

/* ---- messages of controllers -------------------------------------------- */

/* The reply takes the request's place; it may be lost. */
void world_reply(struct world *w, struct message *m)
{
	if (goes_wrong(w, LOST_PERCENT)) {
		message_free(m);
		return;
	}
	push(w, (struct event){.at_ns = w->now_ns + delay(w),
			       .kind = EV_REPLY,
			       .message = m});
}

void txn_free(struct txn *t)
{
	for (unsigned i = 0; i < t->count; i++) {
		free((char *)(uintptr_t)t->change[i].kind);
		free((char *)(uintptr_t)t->change[i].key);
		free((char *)(uintptr_t)t->change[i].value);
	}
	free(t);
}

void world_txn(struct world *w, struct txn *t, enum event_kind kind)
{
	push(w, (struct event){.at_ns = w->now_ns +
					(goes_wrong(w, 2)
						 ? between_ms(w, 100, 9000)
						 : between_ms(w, 1, 15)),
			       .kind = kind,
			       .txn = t});
}

void world_order(struct world *w, const struct order *o)
{
	struct order *copy = malloc(sizeof(*copy));

	ASSERT(copy);
	*copy = *o;
	push(w, (struct event){.at_ns = w->now_ns +
					between_ms(w, 1, LATE_MAX_MS / 2),
			       .kind = EV_ORDER,
			       .order_late = copy});
}

/* ---- life --------------------------------------------------------------- */

int world_open(struct world *w, const struct control_options *o,
	       struct control_result *result)
{
	int err;

	memset(w, 0, sizeof(*w));
	memset(result, 0, sizeof(*result));
	result->hash = 14695981039346656037ull;
	rng_init(&w->rng, o->seed);
	w->seed = o->seed;
	w->result = result;
	w->now_ns = MS;
	err = ledger_store_create(&w->store);
	if (err)
		return err;
	ledger_store_set_lease(w->store, LEASE_MS * MS);
	for (unsigned i = 0; i < CONTROLLERS; i++) {
		err = ledger_mem_open(w->store, &w->controller[i].ledger);
		if (err)
			return err;
		controller_start(w, i);
	}
	for (unsigned i = 0; i < TENANTS; i++)
		w->quota[i] = (20 + 10 * i) * (uint64_t)PIECE;
	for (unsigned i = 0; i < NODES; i++) {
		node_start(w, i);
		world_at(w, between_ms(w, 1, 500), EV_NODE, i);
		world_at(w, between_ms(w, 500, 1500), EV_WORK, i);
	}
	for (unsigned i = 0; i < NAMES; i++)
		world_at(w, between_ms(w, 3000, 4000), EV_CLIENT, i);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		w->program[i].last = w->program[i].written = -1;
		world_at(w, between_ms(w, 3000, 4000), EV_PROGRAM, i);
	}
	for (unsigned i = 0; i < REGIONS; i++)
		world_at(w, between_ms(w, 3000, 4000), EV_REGION, i);
	for (unsigned i = 0; i < MOVERS; i++)
		world_at(w, between_ms(w, 4000, 5000), EV_MOVER, i);
	world_at(w, 5000 * MS, EV_FAULT, 0);
	return 0;
}

void world_close(struct world *w)
{
	w->result->virtual_s = w->now_ns / 1000000000;
	while (w->event_count) {
		struct event e = pop(w);

		if (e.message)
			message_free(e.message);
		if (e.txn)
			txn_free(e.txn);
		free(e.order_late);
	}
	for (unsigned i = 0; i < CONTROLLERS; i++) {
		controller_end(w, i);
		ledger_close(w->controller[i].ledger);
	}
	ledger_store_destroy(w->store);
}
