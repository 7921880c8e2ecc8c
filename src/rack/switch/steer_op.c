/* SPDX-License-Identifier: Apache-2.0 */
/* Appends under way: which of them hang behind which, what is committed, and
 * who is told when. */
#include <string.h>

#include "base/plant.h"
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
	const struct steer_op *next = steer_op_of(s, op->behind);

	op->state = STEER_COMMITTED;
	steer_count(s, STEER_C_committed);
	steer_read_settled(s, op);
	if (!e->used || e->epoch != op->epoch)
		return;
	/* Another one was learned meanwhile; which is later is not known. */
	if (op->loose && s->opt.writes && e->end && e->end != op->at)
		return;
	e->committed = op->node;
	e->committed_serial = op->serial;
	e->open_ns = next ? next->sent_ns : 0;
	if (!s->opt.writes || !e->end || e->end == op->at) {
		e->end = op->node;
		e->last = steer_ref_to(s, op);
		e->learns = false;
	}
}

/* Whether all before it is committed. */
enum before {
	BEFORE_COMMITTED,
	BEFORE_OPEN,
	BEFORE_FAILED, /* and may be appended again */
	BEFORE_UNKNOWN,
};

static enum before before_of(struct steer *s, const struct steer_op *op)
{
	struct steer_op *before;

	if (!op->before.op)
		return BEFORE_COMMITTED;
	before = steer_op_of(s, op->before);
	if (!before)
		return BEFORE_UNKNOWN;
	switch (before->state) {
	case STEER_COMMITTED:
		return BEFORE_COMMITTED;
	case STEER_FAILED:
		return BEFORE_FAILED;
	default:
		return BEFORE_OPEN;
	}
}

/*
 * An append of the known chain failed: where is the end now? If what it was put
 * behind is not answered itself yet, that was probably not there in time, and
 * the end goes back to it, once. Else somebody went round this switch. (What
 * the answer points to is no help: the memory may have another use by now.)
 */
static void go_back(struct steer *s, struct steer_entry *e,
		    const struct steer_op *op)
{
	if (before_of(s, op) != BEFORE_OPEN || e->back_at == op->at) {
		steer_entry_break(e);
		return;
	}
	e->end = e->back_at = op->at;
	e->last = op->before;
	steer_count(s, STEER_C_went_back);
}

/* From here on they wait for their predecessor's second try, but not long. */
static void leave_hanging(struct steer *s, struct steer_op *op)
{
	for (unsigned i = 0; i < STEER_CHAIN_MAX; i++) {
		op = steer_op_of(s, op->behind);
		if (!op || op->hangs ||
		    (op->state != STEER_SENT && op->state != STEER_LANDED))
			return;
		op->hangs = true;
		if (op->state == STEER_LANDED)
			waiting_add(s, op, tor_now_ns(s->tor));
	}
}

static void failed(struct steer *s, struct steer_op *op, bool is_certain)
{
	struct steer_entry *e = &s->entries[op->entry];
	bool is_chain =
		!op->loose && !op->hangs && e->used && e->epoch == op->epoch;

	steer_count(s, STEER_C_failed);
	if (is_chain && !PLANTED(no_break)) {
		if (is_certain)
			go_back(s, e, op);
		else
			steer_entry_break(e);
	}
	op->state = STEER_FAILED;
	e->failures++;
	steer_read_settled(s, op);
	leave_hanging(s, op);
}

/* What was put behind an append that is committed now is, too, as far as it is
 * answered. Others find out when their answers come. */
static void settle_behind(struct steer *s, struct steer_op *op)
{
	for (unsigned i = 0; i < STEER_CHAIN_MAX; i++) {
		op = steer_op_of(s, op->behind);
		if (!op || op->state != STEER_LANDED)
			return;
		if (op->hangs)
			waiting_remove(s, op);
		committed(s, op);
		release(s, op, true);
	}
}

struct steer_ref steer_op_hanging(struct steer *s, const struct steer_conn *c,
				  uint64_t node)
{
	const struct steer_op *ops = steer_ops(s, c), *last = NULL;

	for (unsigned i = 0; i < STEER_DEPTH; i++)
		if (ops[i].state == STEER_FAILED && ops[i].node == node &&
		    (!last || ops[i].serial > last->serial))
			last = &ops[i];
	return last ? last->behind : (struct steer_ref){0};
}

void steer_op_take_along(struct steer *s, struct steer_op *op,
			 struct steer_ref hanging)
{
	struct steer_entry *e = &s->entries[op->entry];
	struct steer_op *next = steer_op_of(s, hanging);

	if (!next || !next->hangs || next->entry != op->entry || !s->opt.writes)
		return;
	op->behind = hanging;
	next->before = steer_ref_to(s, op);
	for (unsigned i = 0; i < STEER_CHAIN_MAX && next && next->hangs; i++) {
		if (next->state != STEER_SENT && next->state != STEER_LANDED)
			return;
		if (next->state == STEER_LANDED)
			waiting_remove(s, next);
		next->hangs = false;
		next->epoch = op->epoch;
		if (!op->loose) {
			e->end = next->node;
			e->last = steer_ref_to(s, next);
		}
		steer_count(s, STEER_C_taken_along);
		next = steer_op_of(s, next->behind);
	}
}

static bool first_answer(struct steer *s, struct steer_op *op,
			 struct wire_pkt *w)
{
	bool has_landed = w->original == vlist_end_of(op->at);
	enum before before = before_of(s, op);

	waiting_remove(s, op);
	s->usual_ns += (tor_now_ns(s->tor) - op->sent_ns) / 16;
	s->usual_ns -= s->usual_ns / 16;
	if (PLANTED(vouch_appends))
		before = BEFORE_COMMITTED;
	if (PLANTED(commit_failed))
		has_landed = true;
	if (has_landed && (before == BEFORE_OPEN || before == BEFORE_FAILED)) {
		op->state = STEER_LANDED;
		op->msn = w->msn;
		op->syndrome = w->syndrome;
		op->hangs |= before == BEFORE_FAILED;
		if (op->hangs)
			waiting_add(s, op, tor_now_ns(s->tor));
		steer_count(s, STEER_C_held);
		return false;
	}
	if (has_landed && before == BEFORE_COMMITTED) {
		committed(s, op);
		w->original |= VLIST_COMMITTED;
	} else {
		failed(s, op, true);
	}
	return true;
}

bool steer_op_answered(struct steer *s, struct steer_op *op, struct wire_pkt *w)
{
	bool tell;

	switch (op->state) {
	case STEER_SENT:
		tell = first_answer(s, op, w);
		if (op->state == STEER_COMMITTED)
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

/* Its client is told as much as the server said, if anything. */
static void give_up(struct steer *s, struct steer_op *op)
{
	uint8_t was = op->state;

	failed(s, op, false);
	if (was == STEER_LANDED)
		release(s, op, false);
}

void steer_op_forget(struct steer *s, struct steer_op *op)
{
	if (op->state == STEER_SENT || op->state == STEER_LANDED) {
		if (op->state == STEER_SENT || op->hangs)
			waiting_remove(s, op);
		steer_count(s, STEER_C_forgotten);
		give_up(s, op);
	}
	/* Who was put behind it and is not answered yet need not ask. */
	if (op->state == STEER_COMMITTED) {
		struct steer_op *next = steer_op_of(s, op->behind);

		if (next && steer_op_of(s, next->before) == op)
			next->before = (struct steer_ref){0};
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
		if (op->state == STEER_LANDED || op->tries++ == STEER_TRIES) {
			steer_count(s, STEER_C_given_up);
			give_up(s, op);
			continue;
		}
		waiting_add(s, op, now_ns);
		send_again(s, op);
	}
}
