/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers of `aquifer sim control`: what controld/serve.c does with
 * threads, one step at a time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "control_world.h"

#define T8(c)  c c c c c c c c
#define T64(c) T8(T8(c))

const char control_token_admin[] = T64("a");
const char control_token_node[] = T64("b");
const char control_token_tenant[] = T64("d");
const char control_tenants[TENANTS][8] = {"red", "blue"};

static void name_of(unsigned i, char out[8])
{
	(void)snprintf(out, 8, "c%u", i);
}

int controller_leader(const struct world *w)
{
	for (unsigned i = 0; i < CONTROLLERS; i++) {
		const struct controller *c = &w->controller[i];

		if (!c->p.is_dead && cd_core_leads(c->core) &&
		    cd_core_term(c->core) == ledger_store_term(w->store))
			return (int)i;
	}
	return -1;
}

/* ---- life --------------------------------------------------------------- */

void controller_start(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];
	struct ledger *ledger = c->ledger;
	char name[8];
	struct cd_config config = {
		.name = name,
		.env = &c->p.env,
		.admin_token = control_token_admin,
		.node_token = control_token_node,
		.default_token = T64("c"),
	};
	int err;

	memset(c, 0, sizeof(*c));
	c->ledger = ledger;
	process_init(w, &c->p);
	name_of(i, name);
	err = cd_core_create(&config, &c->core);
	ASSERT(!err);
	world_at(w, w->now_ns + between_ms(w, 1, CD_TICK_MS), EV_TICK, i);
}

static void forget(struct waiting *q)
{
	free(q->message->body);
	free(q->message);
	ctl_reply_release(&q->reply);
	q->is_used = false;
}

void controller_end(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];

	if (c->p.is_dead)
		return;
	for (unsigned k = 0; k < WAITING; k++)
		if (c->waiting[k].is_used)
			forget(&c->waiting[k]);
	cd_core_destroy(c->core);
	c->core = NULL;
	c->p.is_dead = true;
}

/* ---- leading ------------------------------------------------------------ */

/* As load() of the daemon. */
static void load(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];
	bool was_first = ledger_store_term(w->store) == 0;
	uint64_t term;
	char name[8];
	int err;

	name_of(i, name);
	if (ledger_lead(c->ledger, name, &term))
		return;
	cd_core_clear(c->core);
	err = ledger_read(c->ledger, cd_core_row, c->core);
	if (!err)
		err = cd_core_lead(c->core, term);
	if (err) {
		world_wrong(w, "%s cannot read the ledger: %s", name,
			    error_last());
		return;
	}
	c->txn = 0;
	c->lead_ns = w->now_ns;
	memset(c->heard_ns, 0, sizeof(c->heard_ns));
	memset(c->broke_ns, 0, sizeof(c->broke_ns));
	w->result->failovers += !was_first && !w->is_ending;
}

static void keep(struct controller *c)
{
	if (ledger_keep(c->ledger, cd_core_term(c->core)))
		cd_core_resign(c->core, "another one leads");
	else
		cd_core_keep(c->core,
			     process_now(&c->p) + LEASE_MS / 4 * 3 * MS);
}

void controller_tick(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];
	bool is_cut = c->cut_store_ns > w->now_ns;

	if (c->p.is_dead)
		return;
	world_at(w, w->now_ns + CD_TICK_MS * MS, EV_TICK, i);
	if (!cd_core_leads(c->core) && !is_cut)
		load(w, i);
	if (c->txn && w->now_ns > c->txn_late_ns) {
		c->txn = 0;
		w->result->unknown++;
		(void)error_set(LEDGER_UNKNOWN, "the ledger does not answer");
		cd_core_committed(c->core, LEDGER_UNKNOWN);
	}
	/* Who cannot reach the ledger does not know that it leads no more. */
	if (cd_core_leads(c->core) && !is_cut)
		keep(c);
	cd_core_tick(c->core, 0);
	judge_tick(w, i);
}

/* ---- transactions ------------------------------------------------------- */

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* What was sent arrives, whatever becomes of the sender. */
static void send_txn(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];
	struct ledger_change change[LEDGER_CHANGES_MAX];
	unsigned count = cd_core_batch(c->core, change);
	struct txn *t;

	if (!count)
		return;
	t = calloc(1, sizeof(*t));
	ASSERT(t);
	t->controller = i;
	t->id = c->txn = ++w->ids;
	t->term = cd_core_term(c->core);
	t->count = count;
	for (unsigned k = 0; k < count; k++)
		t->change[k] = (struct ledger_change){copy(change[k].kind),
						      copy(change[k].key),
						      copy(change[k].value)};
	c->txn_late_ns = w->now_ns + between_ms(w, 800, 1500);
	if (c->cut_store_ns > w->now_ns || goes_wrong(w, 2))
		txn_free(t); /* lost on the way */
	else
		world_txn(w, t, EV_TXN);
}

void controller_txn(struct world *w, struct txn *t)
{
	/* Any handle of the store will do. */
	t->err = ledger_commit(w->controller[0].ledger, t->term, t->change,
			       t->count);
	w->result->commits += !t->err;
	for (unsigned i = 0; i < t->count && !t->err; i++)
		ledger_judge_change(w, &t->change[i]);
	if (!t->err)
		ledger_judge_all(w);
	w->result->stale += t->err == -ESTALE;
	if (!t->err && t->term != ledger_store_term(w->store))
		world_wrong(w,
			    "the ledger took a transaction of term %llu in "
			    "term %llu",
			    (unsigned long long)t->term,
			    (unsigned long long)ledger_store_term(w->store));
	if (goes_wrong(w, 3))
		txn_free(t); /* the answer is lost */
	else
		world_txn(w, t, EV_TXN_END);
}

void controller_txn_end(struct world *w, struct txn *t)
{
	struct controller *c = &w->controller[t->controller];

	if (!c->p.is_dead && c->txn == t->id && c->cut_store_ns <= w->now_ns) {
		c->txn = 0;
		if (t->err)
			(void)error_set(t->err, "the ledger refuses");
		cd_core_committed(c->core, t->err);
	}
	txn_free(t);
}

/* ---- requests ----------------------------------------------------------- */

static void note_beat(struct world *w, struct controller *c, struct waiting *q)
{
	if (q->held.is_held) {
		c->heard_ns[q->message->who] = w->now_ns;
		q->number = ++w->ids;
		c->beat[q->message->who] = q->number;
		w->result->beats++;
	}
}

void controller_request(struct world *w, struct message *m)
{
	struct controller *c = &w->controller[m->controller];
	struct ctl_request r = {
		.method = m->method,
		.path = m->path,
		.token = m->token,
		.body = m->body,
		.body_bytes = m->body ? strlen(m->body) : 0,
	};
	struct waiting *q = c->waiting;

	while (q < c->waiting + WAITING && q->is_used)
		q++;
	if (q == c->waiting + WAITING) { /* as a full server does */
		free(m->body);
		free(m);
		return;
	}
	*q = (struct waiting){.is_used = true, .message = m};
	cd_core_handle(c->core, &r, &q->reply, &q->held);
	note_beat(w, c, q);
	q->has_reply = !q->held.is_held;
	q->mark = cd_core_mark(c->core);
}

static void pump_one(struct world *w, struct controller *c, struct waiting *q)
{
	enum cd_settled how;
	struct message *m = q->message;

	if (!q->has_reply && cd_core_is_due(c->core, &q->held)) {
		cd_core_answer(c->core, &q->held, &q->reply);
		q->mark = cd_core_mark(c->core);
		q->has_reply = true;
	}
	if (!q->has_reply)
		return;
	how = cd_core_settled(c->core, q->mark);
	if (how == CD_PENDING)
		return;
	if (how != CD_COMMITTED)
		cd_core_excuse(c->core, how, &q->reply);
	free(m->body);
	m->body = q->reply.body ? strndup(q->reply.body, q->reply.body_bytes)
				: NULL;
	m->status = q->reply.status;
	ctl_reply_release(&q->reply);
	q->is_used = false;
	world_reply(w, m);
}

static void break_one(struct world *w, struct controller *c, struct waiting *q)
{
	struct node *n = &w->node[q->message->who];

	if (q->number == c->beat[q->message->who])
		c->broke_ns[q->message->who] = w->now_ns;
	if (n->asked == q->message->id)
		n->asked = 0; /* it notices, too */
	cd_core_broke(c->core, &q->held);
	forget(q);
	w->result->breaks++;
}

void controller_break(struct world *w, unsigned node, bool all)
{
	for (unsigned i = 0; i < CONTROLLERS; i++) {
		struct controller *c = &w->controller[i];

		if (c->p.is_dead || c->p.stopped_ns > w->now_ns ||
		    c->p.cut_ns > w->now_ns ||
		    w->node[node].p.cut_ns > w->now_ns)
			continue;
		for (unsigned k = 0; k < WAITING; k++) {
			struct waiting *q = &c->waiting[k];

			if (q->is_used && q->held.is_held &&
			    q->message->who == node && (all || chance(w, 50)))
				break_one(w, c, q);
		}
	}
}

void controller_pump(struct world *w, unsigned i)
{
	struct controller *c = &w->controller[i];

	if (c->p.is_dead || c->p.stopped_ns > w->now_ns)
		return;
	if (cd_core_leads(c->core) && !c->txn)
		send_txn(w, i);
	for (unsigned k = 0; k < WAITING; k++)
		if (c->waiting[k].is_used)
			pump_one(w, c, &c->waiting[k]);
}
