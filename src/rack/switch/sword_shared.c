/* SPDX-License-Identifier: Apache-2.0 */
/* What the shared connection to a server carries, over an end of the switch. */
#include <string.h>

#include "base/plant.h"
#include "sword.h"

STATIC_ASSERT(SWORD_C_shared_dead - SWORD_C_coalesced == END_TX_C_dead &&
		      SWORD_C_shared_naks - SWORD_C_coalesced == END_TX_C_naks,
	      "the counters of an end, in its order");

static struct sword_server *server_of(struct end_tx *e)
{
	return container_of(e, struct sword_server, end);
}

static struct sword_out *out_at(struct sword_server *v, uint32_t psn)
{
	return &v->out[psn % END_TX_WINDOW];
}

/* What the next packet will ask; `word` may be NULL. */
static struct sword_out *out_next(struct sword_server *v,
				  struct sword_word *word)
{
	struct sword_out *o = out_at(v, v->end.next_psn);

	*o = (struct sword_out){.word = word};
	if (word) {
		o->va = word->va;
		o->len = 8;
		word->refs++;
	}
	return o;
}

static uint8_t opcode_of(const struct sword_out *o)
{
	switch ((enum sword_kind)o->kind) {
	case SWORD_WORD:
	case SWORD_WRITE:
		return WIRE_RC_WRITE_ONLY;
	case SWORD_FILL:
	case SWORD_READ:
		return WIRE_RC_READ_REQ;
	case SWORD_ATOMIC:
		break;
	}
	return o->op->opcode;
}

static bool describe(struct end_tx *e, uint32_t psn, struct wire_pkt *w)
{
	struct sword_server *v = server_of(e);
	const struct sword_out *o = out_at(v, psn);

	if (o->kind == SWORD_WORD)
		w->payload = o->bytes;
	else if (o->kind == SWORD_WRITE)
		w->payload = v->sword->buffers[o->op->buffer - 1];
	else if (o->kind == SWORD_ATOMIC)
		w->atomic = o->op->atomic;
	w->rkey = o->rkey;
	w->va = o->va;
	w->dma_len = o->len;
	w->payload_len = w->payload ? o->len : 0;
	return true;
}

static void send(struct sword_server *v, const struct sword_out *o)
{
	end_tx_send(&v->end, opcode_of(o), o->len);
}

/* ---- the next operation -------------------------------------------------- */

static void fill(struct sword_server *v, struct sword_word *word, uint32_t rkey)
{
	struct sword_out *o = out_next(v, word);

	o->kind = SWORD_FILL;
	o->rkey = rkey;
	word->filling = true;
	sword_count(v->sword, SWORD_C_fills);
	send(v, o);
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

/* As it came from a moved connection. What it changes is read again before
 * anything is decided with it: that READ is behind it. */
static bool issue_moved(struct sword_server *v, struct sword_op *op)
{
	struct sword *s = v->sword;
	struct sword_out *o;

	if (op->kind != SWORD_WRITE && v->end.answers >= SWORD_READS)
		return false;
	o = out_next(v, NULL);
	o->kind = op->kind;
	o->op = op;
	o->rkey = s->regions[op->region].rkey;
	o->va = op->va;
	o->len = op->len_bytes;
	if (op->kind == SWORD_WRITE && !PLANTED(move_stale))
		sword_words_changed(s, v->index, op->va, op->len_bytes);
	sword_op_move(s, op, SWORD_ISSUED);
	send(v, o);
	return true;
}

/* False: it must wait for room, or for the word's value. */
static bool issue(struct sword_server *v, struct sword_op *op)
{
	struct sword *s = v->sword;
	uint32_t rkey = s->regions[op->region].rkey;
	struct sword_word *word;
	struct sword_out *o;

	if (end_tx_is_full(&v->end))
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
	o = out_next(v, word);
	o->op = op;
	o->rkey = rkey;
	decide(s, word, op, o);
	sword_op_move(s, op, SWORD_ISSUED);
	send(v, o);
	return true;
}

void sword_shared_queue(struct sword_server *v, struct sword_op *op)
{
	sword_op_move(v->sword, op, SWORD_PLACED);
	op->next = NULL;
	if (v->end.dead) /* nothing may point to it any more */
		return;
	*v->last = op;
	v->last = &op->next;
}

/* In order: who waits for a value holds the others up for one round trip, once
 * per word. One that waits with nothing on the way waits for a place among the
 * words, which another server's answers may free. */
static bool push(struct end_tx *e)
{
	struct sword_server *v = server_of(e);

	while (v->first && issue(v, v->first)) {
		v->first = v->first->next;
		if (!v->first)
			v->last = &v->first;
	}
	return v->first;
}

/* ---- answers ------------------------------------------------------------- */

static void executed(struct end_tx *e, uint32_t psn, const struct wire_pkt *w)
{
	struct sword_server *v = server_of(e);
	struct sword_out *o = out_at(v, psn);
	struct sword_op *op = o->op;

	if (o->word)
		o->word->refs--;
	if (o->kind == SWORD_FILL) {
		le64 bytes;

		memcpy(&bytes, w->payload, sizeof(bytes));
		o->word->value = le64_get(bytes);
		o->word->valid = true;
		o->word->filling = false;
	}
	if (o->kind == SWORD_ATOMIC)
		op->original = w->original;
	if (op)
		sword_op_done(v->sword, op, w ? w->payload : NULL);
}

/* What was on the way is not looked at again, and its words are others'. */
static void lost(struct end_tx *e)
{
	struct sword_server *v = server_of(e);

	v->first = NULL;
	v->last = &v->first;
	sword_words_of_server(v->sword, v->index);
}

static void on_packet(struct tor_end *at, const struct wire_pkt *w)
{
	end_tx_reply(&container_of(at, struct sword_server, at)->end, w);
}

void sword_shared_stop(struct sword_server *v)
{
	tor_end_remove(&v->at);
	end_tx_stop(&v->end);
}

int sword_shared_init(struct sword *s, struct sword_server *v, unsigned index)
{
	static const struct end_tx_ops ops = {
		.describe = describe,
		.executed = executed,
		.lost = lost,
		.push = push,
	};

	v->sword = s;
	v->index = (uint8_t)index;
	v->first = NULL;
	v->last = &v->first;
	v->end.rto_ns = s->opt.rto_ns;
	end_tx_init(&v->end, s->self, &ops, &s->c[SWORD_C_coalesced]);
	v->at.self = s->self;
	v->at.packet = on_packet;
	v->at.peer_qpn = v->end.qpn;
	memcpy(v->at.own_ip, v->end.header.src_ip, 16);
	memcpy(v->at.peer_ip, v->end.header.dst_ip, 16);
	return tor_end_add(&v->at);
}
