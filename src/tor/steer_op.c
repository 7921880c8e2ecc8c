/* SPDX-License-Identifier: Apache-2.0 */
/* Appends under way: which of them hang behind which, what is committed, and
 * who is told when. */
#include <string.h>

#include "steer.h"

struct steer_op *steer_op_find(struct steer *s, const struct steer_conn *c,
			       uint32_t psn)
{
	struct steer_op *ops = steer_ops(s, c);

	for (unsigned i = 0; i < STEER_DEPTH; i++)
		if (ops[i].state != STEER_FREE && ops[i].psn == psn)
			return &ops[i];
	return NULL;
}

/* ---- those without an answer, the oldest first --------------------------- */

static void waiting_add(struct steer *s, struct steer_op *op, uint64_t now_ns)
{
	uint32_t id = (uint32_t)(op - s->ops) + 1;

	op->next = 0;
	op->prev = s->waiting_last;
	if (op->prev)
		s->ops[op->prev - 1].next = id;
	else
		s->waiting_first = id;
	s->waiting_last = id;
	op->sent_ns = now_ns;
	if (!timer_is_set(&s->timer))
		timer_set(tor_timers(s->tor), &s->timer,
			  op->sent_ns + s->opt.resend_ns);
}

static void waiting_remove(struct steer *s, struct steer_op *op)
{
	if (op->prev)
		s->ops[op->prev - 1].next = op->next;
	else
		s->waiting_first = op->next;
	if (op->next)
		s->ops[op->next - 1].prev = op->prev;
	else
		s->waiting_last = op->prev;
	op->next = op->prev = 0;
}

void steer_op_sent(struct steer *s, struct steer_op *op)
{
	waiting_add(s, op, tor_now_ns(s->tor));
}

/* ---- what becomes of them ------------------------------------------------ */

static void release(struct steer *s, struct steer_op *op, bool is_committed)
{
	const struct steer_conn *c = &s->conns[op->conn];
	struct wire_pkt w = c->to_client;

	w.opcode = WIRE_RC_ATOMIC_ACK;
	w.psn = op->psn;
	w.ack_req = w.solicited = false;
	w.syndrome = op->syndrome;
	w.msn = op->msn;
	w.original =
		vlist_end_of(op->at) | (is_committed ? VLIST_COMMITTED : 0);
	w.payload = NULL;
	w.payload_len = 0;
	steer_count(s, STEER_C_released);
	tor_emit(s->self, NULL, &w);
}

static void committed(struct steer *s, struct steer_op *op)
{
	struct steer_entry *e = &s->entries[op->entry];

	op->state = STEER_COMMITTED;
	steer_count(s, STEER_C_committed);
	if (!e->used || e->epoch != op->epoch)
		return;
	e->committed = op->node;
	if (!s->opt.writes) {
		e->end = op->node;
		e->last = steer_ref_to(s, op);
	}
}

static void failed(struct steer *s, struct steer_op *op)
{
	struct steer_entry *e = &s->entries[op->entry];

	op->state = STEER_FAILED;
	steer_count(s, STEER_C_failed);
	if (s->opt.bug != STEER_BUG_no_break && e->used &&
	    e->epoch == op->epoch)
		steer_entry_break(e);
}

/* What hangs behind an append that has an end shares it, as far as it is
 * answered. Others find out when their answers come. */
static void settle_behind(struct steer *s, struct steer_op *op)
{
	bool is_committed = op->state == STEER_COMMITTED;

	for (unsigned i = 0; i < STEER_CHAIN_MAX; i++) {
		op = steer_op_of(s, op->behind);
		if (!op || op->state != STEER_LANDED)
			return;
		if (is_committed)
			committed(s, op);
		else
			failed(s, op);
		release(s, op, is_committed);
	}
}

/* Whether all before it is committed. */
enum before {
	BEFORE_COMMITTED,
	BEFORE_OPEN,
	BEFORE_UNKNOWN,
};

static enum before before_of(struct steer *s, const struct steer_op *op)
{
	struct steer_op *before;

	if (!op->before.op)
		return BEFORE_COMMITTED;
	before = steer_op_of(s, op->before);
	if (!before || before->state == STEER_FAILED)
		return BEFORE_UNKNOWN;
	return before->state == STEER_COMMITTED ? BEFORE_COMMITTED
						: BEFORE_OPEN;
}

static bool first_answer(struct steer *s, struct steer_op *op,
			 struct wire_pkt *w)
{
	bool has_landed = w->original == vlist_end_of(op->at);
	enum before before = before_of(s, op);

	waiting_remove(s, op);
	if (s->opt.bug == STEER_BUG_vouch_appends)
		before = BEFORE_COMMITTED;
	if (s->opt.bug == STEER_BUG_commit_failed)
		has_landed = true;
	if (has_landed && before == BEFORE_OPEN) {
		op->state = STEER_LANDED;
		op->msn = w->msn;
		op->syndrome = w->syndrome;
		steer_count(s, STEER_C_held);
		return false;
	}
	if (has_landed && before == BEFORE_COMMITTED) {
		committed(s, op);
		w->original |= VLIST_COMMITTED;
	} else {
		failed(s, op);
	}
	return true;
}

bool steer_op_answered(struct steer *s, struct steer_op *op, struct wire_pkt *w)
{
	bool tell;

	switch (op->state) {
	case STEER_SENT:
		tell = first_answer(s, op, w);
		if (op->state == STEER_COMMITTED || op->state == STEER_FAILED)
			settle_behind(s, op);
		return tell;
	case STEER_COMMITTED:
		/* Again; unless it is about something else after all. */
		if (w->original == vlist_end_of(op->at))
			w->original |= VLIST_COMMITTED;
		return true;
	case STEER_LANDED:
		return false;
	default:
		return true;
	}
}

void steer_op_forget(struct steer *s, struct steer_op *op)
{
	uint8_t was = op->state;

	if (was == STEER_SENT)
		waiting_remove(s, op);
	if (was == STEER_SENT || was == STEER_LANDED) {
		steer_count(s, STEER_C_forgotten);
		failed(s, op);
		settle_behind(s, op);
	}
	op->state = STEER_FREE;
}

struct steer_op *steer_op_new(struct steer *s, struct steer_conn *c)
{
	struct steer_op *ops = steer_ops(s, c), *oldest = ops;

	for (unsigned i = 0; i < STEER_DEPTH; i++) {
		if (ops[i].state == STEER_FREE) {
			oldest = &ops[i];
			break;
		}
		if (ops[i].serial < oldest->serial)
			oldest = &ops[i];
	}
	steer_op_forget(s, oldest);
	*oldest = (struct steer_op){.state = STEER_SENT,
				    .conn = (uint32_t)(c - s->conns),
				    .serial = ++s->serial};
	return oldest;
}

/* ---- sending again ------------------------------------------------------- */

static void send_again(struct steer *s, struct steer_op *op)
{
	const struct steer_conn *c = &s->conns[op->conn];
	const struct steer_store *store = &s->stores[op->store];
	struct wire_pkt w = c->to_server;

	w.opcode = WIRE_RC_CAS;
	w.psn = op->psn;
	w.ack_req = true;
	w.solicited = false;
	w.rkey = store->rkey;
	w.va = store->va + vlist_offset(op->at);
	w.atomic = (struct atomic_op){.swap_add = op->node,
				      .compare = vlist_end_of(op->at),
				      .swap_mask = UINT64_MAX,
				      .compare_mask = UINT64_MAX};
	w.payload = NULL;
	w.payload_len = 0;
	steer_count(s, STEER_C_sent_again);
	tor_emit(s->self, NULL, &w);
}

void steer_timer_fired(struct timer *t, uint64_t now_ns)
{
	struct steer *s = container_of(t, struct steer, timer);

	while (s->waiting_first) {
		struct steer_op *op = &s->ops[s->waiting_first - 1];

		if (op->sent_ns + s->opt.resend_ns > now_ns) {
			timer_set(tor_timers(s->tor), t,
				  op->sent_ns + s->opt.resend_ns);
			return;
		}
		waiting_remove(s, op);
		if (op->tries++ == STEER_TRIES) {
			steer_count(s, STEER_C_given_up);
			failed(s, op);
			settle_behind(s, op);
			continue;
		}
		waiting_add(s, op, now_ns);
		send_again(s, op);
	}
}
