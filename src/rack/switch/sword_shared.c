/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared connection to a server: the switch is its requester. One PSN is
 * one packet, kept until it is acknowledged; NAKs and timeouts go back.
 */
#include <string.h>

#include "base/plant.h"
#include "sword.h"

static struct sword_out *out_at(struct sword_server *v, uint32_t psn)
{
	return &v->out[psn % SWORD_WINDOW];
}

static uint32_t on_the_way(const struct sword_server *v)
{
	return (uint32_t)wire_psn_diff(v->next_psn, v->una_psn);
}

static void send(struct sword_server *v, uint32_t psn)
{
	const struct sword_out *o = out_at(v, psn);
	struct wire_pkt w = v->header;

	switch ((enum sword_kind)o->kind) {
	case SWORD_WORD:
		w.opcode = WIRE_RC_WRITE_ONLY;
		w.payload = o->bytes;
		break;
	case SWORD_WRITE:
		w.opcode = WIRE_RC_WRITE_ONLY;
		w.payload = v->sword->buffers[o->op->buffer - 1];
		break;
	case SWORD_FILL:
	case SWORD_READ:
		w.opcode = WIRE_RC_READ_REQ;
		break;
	case SWORD_ATOMIC:
		w.opcode = o->op->opcode;
		w.atomic = o->op->atomic;
	}
	w.psn = psn;
	w.ack_req = true;
	w.dest_qpn = v->qpn;
	w.rkey = o->rkey;
	w.va = o->va;
	w.dma_len = o->len;
	w.payload_len = w.payload ? o->len : 0;
	tor_emit(v->sword->self, NULL, &w);
}

static void set_timer(struct sword_server *v)
{
	struct timer_wheel *wheel = tor_timers(v->sword->tor);
	uint64_t rto_ns = v->sword->opt.rto_ns << u32_min(v->tries, 5);

	/* One that waits with nothing on the way waits for a place among the
	 * words, which another server's answers may free. */
	if ((v->una_psn == v->next_psn && !v->first) || v->dead)
		timer_cancel(wheel, &v->timer);
	else
		timer_set(wheel, &v->timer,
			  tor_now_ns(v->sword->tor) +
				  u64_min(rto_ns, SWORD_RTO_MAX_NS));
}

static struct sword_out *push(struct sword_server *v, struct sword_word *word)
{
	struct sword_out *o = out_at(v, v->next_psn);

	*o = (struct sword_out){.word = word};
	if (word) {
		o->va = word->va;
		o->len = 8;
		word->refs++;
	}
	v->next_psn = wire_psn_add(v->next_psn, 1);
	return o;
}

/* ---- the next operation -------------------------------------------------- */

static void fill(struct sword_server *v, struct sword_word *word, uint32_t rkey)
{
	struct sword_out *o = push(v, word);

	o->kind = SWORD_FILL;
	o->rkey = rkey;
	word->filling = true;
	v->fills++;
	sword_count(v->sword, SWORD_C_fills);
	send(v, wire_psn_add(v->next_psn, WIRE_PSN_MASK));
}

/* Decides the outcome, which is from now on the word's value. */
static void decide(struct sword *s, struct sword_word *word,
		   struct sword_op *op, struct sword_out *o)
{
	uint64_t value = word->value;
	le64 bytes;

	op->original = value;
	if (op->is_write) {
		bytes = le64_put(value);
		memcpy((uint8_t *)&bytes + op->at, op->bytes, op->len);
		value = le64_get(bytes);
		sword_count(s, SWORD_C_writes);
	} else {
		value = atomic_op_result(&op->atomic, value);
		sword_count(s, SWORD_C_replaced);
		if (!op->atomic.is_add && value == word->value)
			sword_count(s, SWORD_C_failed);
		if (PLANTED(fail_swaps) && !op->atomic.is_add)
			value = op->atomic.swap_add;
	}
	if (!(PLANTED(blind_write) && op->is_write))
		word->value = value;
	bytes = le64_put(value);
	memcpy(o->bytes, &bytes, sizeof(bytes));
}

static bool has_answer(const struct sword_out *o)
{
	return o->kind == SWORD_FILL || o->kind == SWORD_READ ||
	       o->kind == SWORD_ATOMIC;
}

/* As it came from a moved connection. What it changes is read again before
 * anything is decided with it: that READ is behind it. */
static bool issue_moved(struct sword_server *v, struct sword_op *op)
{
	struct sword *s = v->sword;
	struct sword_out *o;

	if (op->kind != SWORD_WRITE && v->fills >= SWORD_READS)
		return false;
	o = push(v, NULL);
	o->kind = op->kind;
	o->op = op;
	o->rkey = s->regions[op->region].rkey;
	o->va = op->va;
	o->len = op->len_bytes;
	v->fills += has_answer(o);
	if (op->kind == SWORD_WRITE && !PLANTED(move_stale))
		sword_words_changed(s, v->index, op->va, op->len_bytes);
	op->state = SWORD_ISSUED;
	send(v, wire_psn_add(v->next_psn, WIRE_PSN_MASK));
	return true;
}

/* False: it must wait for room, or for the word's value. */
static bool issue(struct sword_server *v, struct sword_op *op)
{
	struct sword *s = v->sword;
	uint32_t rkey = s->regions[op->region].rkey;
	struct sword_word *word;
	struct sword_out *o;

	if (on_the_way(v) >= SWORD_WINDOW)
		return false;
	if (op->kind != SWORD_WORD)
		return issue_moved(v, op);
	word = sword_word_get(s, v->index, op->va);
	if (!word) {
		sword_count(s, SWORD_C_refused_full);
		return false; /* until a busy one is free */
	}
	word->used_ns = tor_now_ns(s->tor);
	if (!word->valid) {
		if (!word->filling)
			fill(v, word, rkey);
		return false;
	}
	sword_count(s, SWORD_C_hits);
	o = push(v, word);
	o->op = op;
	o->rkey = rkey;
	decide(s, word, op, o);
	op->state = SWORD_ISSUED;
	send(v, wire_psn_add(v->next_psn, WIRE_PSN_MASK));
	return true;
}

void sword_shared_queue(struct sword_server *v, struct sword_op *op)
{
	op->state = SWORD_PLACED;
	op->next = NULL;
	if (v->dead) /* nothing may point to it any more */
		return;
	*v->last = op;
	v->last = &op->next;
}

void sword_shared_run(struct sword_server *v)
{
	/* In order: who waits for a value holds the others up for one round
	 * trip, once per word. */
	while (!v->dead && v->first && issue(v, v->first)) {
		v->first = v->first->next;
		if (!v->first)
			v->last = &v->first;
	}
	if (!timer_is_set(&v->timer))
		set_timer(v);
}

/* ---- answers ------------------------------------------------------------ */

/* The oldest one; `w` is its answer if it has one. */
static void complete(struct sword_server *v, const struct wire_pkt *w)
{
	struct sword_out *o = out_at(v, v->una_psn);
	struct sword_op *op = o->op;

	if (o->word)
		o->word->refs--;
	v->fills -= has_answer(o);
	if (o->kind == SWORD_FILL) {
		le64 bytes;

		memcpy(&bytes, w->payload, sizeof(bytes));
		o->word->value = le64_get(bytes);
		o->word->valid = true;
		o->word->filling = false;
	}
	if (o->kind == SWORD_ATOMIC)
		op->original = w->original;
	v->una_psn = wire_psn_add(v->una_psn, 1);
	v->tries = 0;
	v->went_back = false;
	if (op)
		sword_op_done(v->sword, op, w ? w->payload : NULL);
}

/* Everything before `psn`, unless the answer to a READ is missing. Returns
 * whether it is. */
static bool complete_before(struct sword_server *v, uint32_t psn)
{
	unsigned n = 0;

	while (wire_psn_diff(psn, v->una_psn) > 0) {
		if (has_answer(out_at(v, v->una_psn)))
			return true;
		complete(v, NULL);
		if (n++)
			sword_count(v->sword, SWORD_C_coalesced);
	}
	return false;
}

static void resend(struct sword_server *v)
{
	uint32_t psn = v->una_psn;

	/* One time round trips for all: what was lost is not known. */
	if (PLANTED(skip_lost) && psn != v->next_psn &&
	    !has_answer(out_at(v, psn)))
		complete(v, NULL);
	for (psn = v->una_psn; psn != v->next_psn; psn = wire_psn_add(psn, 1)) {
		sword_count(v->sword, SWORD_C_shared_resent);
		send(v, psn);
	}
}

/* Nothing is known of what was on the way, and nothing will be: it is not
 * looked at again, and its words are others'. */
static void give_up(struct sword_server *v)
{
	v->dead = true;
	v->first = NULL;
	v->last = &v->first;
	v->una_psn = v->next_psn;
	sword_words_of_server(v->sword, v->index);
	sword_count(v->sword, SWORD_C_shared_dead);
	set_timer(v);
}

static void on_timeout(struct timer *timer, uint64_t now_ns)
{
	struct sword_server *v =
		container_of(timer, struct sword_server, timer);

	if (v->una_psn != v->next_psn) {
		sword_count(v->sword, SWORD_C_shared_timeouts);
		if (++v->tries > SWORD_TRIES) {
			give_up(v);
			return;
		}
		resend(v);
	}
	sword_shared_run(v);
	set_timer(v);
}

/* What is acknowledged says so once for each packet behind the loss; one of
 * them is enough, and if that is lost, too, there is the timer. */
static void answer_missing(struct sword_server *v)
{
	if (v->went_back)
		return;
	v->went_back = true;
	resend(v);
}

/* A packet number that was not sent, or is long answered, says nothing. */
static bool is_outstanding(const struct sword_server *v, uint32_t psn)
{
	return wire_psn_diff(psn, v->una_psn) >= 0 &&
	       wire_psn_diff(psn, v->next_psn) < 0;
}

static void take_ack(struct sword_server *v, const struct wire_pkt *w)
{
	if (wire_syndrome_is_ack(w->syndrome)) {
		if (is_outstanding(v, w->psn) &&
		    complete_before(v, wire_psn_add(w->psn, 1)))
			answer_missing(v);
		return;
	}
	/* A NAK of what is next says that all before was executed. */
	if (w->syndrome == WIRE_NAK_PSN) {
		if (wire_psn_diff(w->psn, v->una_psn) < 0 ||
		    wire_psn_diff(w->psn, v->next_psn) >= 0)
			return;
		sword_count(v->sword, SWORD_C_shared_naks);
		(void)complete_before(v, w->psn); /* resent either way */
		resend(v);
		return;
	}
	if (is_outstanding(v, w->psn) && !wire_syndrome_is_rnr(w->syndrome))
		give_up(v);
}

/* Whether a packet answers what was sent with its number. */
static bool is_answer(struct sword_server *v, const struct wire_pkt *w)
{
	const struct sword_out *o = out_at(v, w->psn);

	if (w->opcode == WIRE_RC_ATOMIC_ACK)
		return o->kind == SWORD_ATOMIC;
	return w->opcode == WIRE_RC_READ_RESP_ONLY &&
	       (o->kind == SWORD_FILL || o->kind == SWORD_READ) &&
	       w->payload_len == o->len;
}

void sword_shared_reply(struct sword_server *v, const struct wire_pkt *w)
{
	uint32_t una = v->una_psn;

	if (v->dead)
		return;
	switch (wire_opcodes[w->opcode].kind) {
	case WIRE_ACK:
		take_ack(v, w);
		break;
	case WIRE_READ_RESP:
	case WIRE_ATOMIC_ACK:
		if (!is_outstanding(v, w->psn) || !is_answer(v, w))
			break;
		if (complete_before(v, w->psn))
			answer_missing(v);
		else
			complete(v, w);
		break;
	default:
		break;
	}
	if (una != v->una_psn)
		set_timer(v);
	sword_shared_run(v);
}

/* ---- life --------------------------------------------------------------- */

void sword_shared_init(struct sword *s, struct sword_server *v, unsigned index)
{
	v->sword = s;
	v->index = (uint8_t)index;
	v->first = NULL;
	v->last = &v->first;
	timer_init(&v->timer, on_timeout);
}

void sword_shared_stop(struct sword_server *v)
{
	timer_cancel(tor_timers(v->sword->tor), &v->timer);
}
