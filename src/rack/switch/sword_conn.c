/* SPDX-License-Identifier: Apache-2.0 */
/* SwordBox on the clients' connections: requests of a declared connection, and
 * what its server says. */
#include <string.h>

#include "base/plant.h"
#include "sword.h"

/* ---- operations of a connection ------------------------------------------ */

struct sword_op *sword_op_find(struct sword *s, const struct sword_conn *c,
			       uint32_t psn)
{
	uint32_t usual = (psn + c->slant) % SWORD_DEPTH, hits = 0;

	if (!c->has_newest || wire_psn_diff(psn, c->newest_psn) > 0)
		return NULL;
	if (c->psn_of[usual] == psn && !(c->in_state[SWORD_FREE] >> usual & 1))
		return &sword_ops(s, c)[usual];
	for (unsigned i = 0; i < SWORD_DEPTH; i++)
		hits |= (uint32_t)(c->psn_of[i] == psn) << i;
	hits &= ~c->in_state[SWORD_FREE];
	return hits ? &sword_ops(s, c)[__builtin_ctz(hits)] : NULL;
}

/* Of these operations the one with the smallest packet number, or NULL. */
static struct sword_op *oldest_of(struct sword *s, const struct sword_conn *c,
				  uint32_t which)
{
	unsigned first = SWORD_DEPTH;

	for (; which; which &= which - 1) {
		unsigned i = (unsigned)__builtin_ctz(which);

		if (first == SWORD_DEPTH ||
		    wire_psn_diff(c->psn_of[i], c->psn_of[first]) < 0)
			first = i;
	}
	return first < SWORD_DEPTH ? &sword_ops(s, c)[first] : NULL;
}

/* Of those whose place is on the way, the oldest, or NULL. */
static struct sword_op *oldest_sent(struct sword *s, struct sword_conn *c)
{
	uint32_t sent = c->in_state[SWORD_SENT];
	unsigned first = c->first_sent, next = (first + 1) % SWORD_DEPTH;
	const struct sword_op *op;

	if (!sent)
		return NULL;
	if (sent >> first & 1)
		return &sword_ops(s, c)[first];
	/* All are younger than what it was. */
	if (sent >> next & 1 &&
	    c->psn_of[next] == wire_psn_add(c->psn_of[first], 1)) {
		c->first_sent = (uint8_t)next;
		return &sword_ops(s, c)[next];
	}
	op = oldest_of(s, c, sent);
	c->first_sent = (uint8_t)(op - sword_ops(s, c));
	return &sword_ops(s, c)[c->first_sent];
}

/* An operation gets a number and will be SENT. */
static void note_place(struct sword *s, struct sword_conn *c, unsigned at,
		       uint32_t psn)
{
	uint32_t others = c->in_state[SWORD_SENT] & ~(1u << at);

	/* It was the oldest, and its place is another's now. */
	if (others && at == c->first_sent)
		c->first_sent =
			(uint8_t)(oldest_of(s, c, others) - sword_ops(s, c));
	c->psn_of[at] = psn;
	if (!others || wire_psn_diff(psn, c->psn_of[c->first_sent]) < 0)
		c->first_sent = (uint8_t)at;
	c->slant = (uint8_t)((at - psn) % SWORD_DEPTH);
	if (!c->has_newest || wire_psn_diff(psn, c->newest_psn) > 0)
		c->newest_psn = psn;
	c->has_newest = true;
}

/* Of those that are done the one to be forgotten, or NULL. Without WRITEs all
 * are younger than the last one that was forgotten: the next number is the
 * oldest. */
static struct sword_op *oldest_done(struct sword *s, struct sword_conn *c,
				    uint32_t psn)
{
	uint32_t done = c->in_state[SWORD_DONE], writes = done & c->writes;
	uint32_t usual = (psn + c->slant) % SWORD_DEPTH;

	if (writes) {
		c->skips_older |= writes != done;
		return oldest_of(s, c, writes);
	}
	if (done >> usual & 1 && !c->skips_older &&
	    c->psn_of[usual] == wire_psn_add(c->old_psn, 1))
		return &sword_ops(s, c)[usual];
	return oldest_of(s, c, done);
}

/* A free one, or one that is done, which is forgotten: WRITEs first, because
 * any acknowledgement will do for them, then the oldest. A client has at most
 * as many atomics without an answer as its limit says, usually 16. */
struct sword_op *sword_op_new(struct sword *s, struct sword_conn *c,
			      uint32_t psn)
{
	struct sword_op *op;

	if (c->in_state[SWORD_FREE])
		return &sword_ops(s, c)[__builtin_ctz(c->in_state[SWORD_FREE])];
	op = oldest_done(s, c, psn);
	if (op && wire_psn_diff(op->psn, c->old_psn) > 0)
		c->old_psn = op->psn;
	return op;
}

/*
 * Packet numbers come round. What was done long ago is forgotten before its
 * number means another packet, which would get the old answer, or be taken for
 * one that is too old to be executed.
 */
void sword_conn_age(struct sword *s, struct sword_conn *c, uint32_t psn)
{
	struct sword_op *ops = sword_ops(s, c);

	if (wire_psn_diff(psn, c->old_psn) < SWORD_OLD_PSNS)
		return;
	c->old_psn = wire_psn_add(psn, (uint32_t) - (SWORD_OLD_PSNS / 2));
	for (unsigned i = 0; i < SWORD_DEPTH; i++)
		if (ops[i].state == SWORD_DONE &&
		    wire_psn_diff(ops[i].psn, c->old_psn) <= 0)
			sword_op_move(s, &ops[i], SWORD_FREE);
}

/* Whether an operation before this packet is not done. */
static bool is_behind(struct sword *s, const struct sword_conn *c, uint32_t psn)
{
	const struct sword_op *op;

	if (!c->rx.incomplete)
		return false;
	op = oldest_of(s, c,
		       ~(c->in_state[SWORD_FREE] | c->in_state[SWORD_DONE]));
	return op && wire_psn_diff(op->psn, psn) < 0;
}

/* ---- to the server and to the client ------------------------------------ */

/* The operation's place: a WRITE of nothing, which must be acknowledged. */
static void send_place(struct sword *s, const struct sword_conn *c,
		       const struct sword_op *op)
{
	struct wire_pkt w = c->to_server;

	w.opcode = WIRE_RC_WRITE_ONLY;
	w.psn = op->psn;
	w.ack_req = true;
	w.solicited = false;
	w.rkey = s->regions[op->region].rkey;
	w.va = op->va;
	w.dma_len = 0;
	w.payload = NULL;
	w.payload_len = 0;
	tor_emit(s->self, NULL, &w);
}

void sword_answer(struct sword *s, const struct sword_conn *c,
		  const struct sword_op *op, const uint8_t *data)
{
	uint8_t opcode = WIRE_RC_ATOMIC_ACK;
	struct wire_pkt w;

	if (op->is_write || op->kind == SWORD_WRITE)
		opcode = WIRE_RC_ACK;
	else if (op->kind == SWORD_READ)
		opcode = WIRE_RC_READ_RESP_ONLY;
	w = end_rx_packet(&c->rx, opcode, op->psn, op->msn, op->syndrome);
	w.original = op->original;
	if (op->kind == SWORD_READ) {
		w.payload = data;
		w.payload_len = op->len_bytes;
	}
	sword_count(s, SWORD_C_answered);
	end_rx_say(&c->rx, &w);
}

void sword_op_done(struct sword *s, struct sword_op *op, const uint8_t *data)
{
	struct sword_conn *c = &s->conns[op->conn];

	if (op->state == SWORD_DONE)
		return;
	sword_op_move(s, op, SWORD_DONE);
	sword_buffer_give(s, op);
	s->regions[op->region].active--;
	sword_answer(s, c, op, data);
	end_rx_done(&c->rx, op->psn, op->msn);
}

enum tor_verdict sword_refuse(struct sword *s, struct sword_conn *c,
			      uint32_t psn, enum sword_counter why)
{
	sword_count(s, why);
	if (c)
		end_rx_refuse(&c->rx, psn);
	return TOR_DROP;
}

/* ---- requests ------------------------------------------------------------ */

bool sword_is_word_op(const struct sword_region *r, const struct wire_pkt *w)
{
	uint64_t at = w->va - r->va;

	if (w->va < r->va || at >= r->len_bytes)
		return false;
	if (wire_opcodes[w->opcode].kind == WIRE_ATOMIC)
		return at % 8 == 0;
	return w->opcode == WIRE_RC_WRITE_ONLY && w->dma_len &&
	       w->dma_len == w->payload_len && at % 8 + w->dma_len <= 8;
}

void sword_op_fill(struct sword *s, struct sword_op *op, struct sword_conn *c,
		   const struct sword_region *r, const struct wire_pkt *w)
{
	uint32_t at = (uint32_t)(op - sword_ops(s, c));
	uint32_t bit = 1u << at;

	note_place(s, c, at, w->psn);
	sword_op_move(s, op, SWORD_SENT);
	*op = (struct sword_op){
		.conn = (uint32_t)(c - s->conns),
		.psn = w->psn,
		.state = SWORD_SENT,
		.region = (uint8_t)(r - s->regions),
		.va = w->va & ~7ull,
		.atomic = w->atomic,
		.is_write = w->opcode == WIRE_RC_WRITE_ONLY,
	};
	c->writes = op->is_write ? c->writes | bit : c->writes & ~bit;
	if (op->is_write && sword_is_word_op(r, w)) {
		op->at = (uint8_t)(w->va & 7);
		op->len = (uint8_t)w->payload_len;
		memcpy(op->bytes, w->payload, op->len);
	}
}

/* Seen before: its place may be lost, or its answer. */
static enum tor_verdict repeat(struct sword *s, struct sword_conn *c,
			       struct sword_op *op)
{
	sword_count(s, SWORD_C_repeated);
	if (op->state == SWORD_SENT)
		send_place(s, c, op);
	else if (op->state == SWORD_DONE)
		sword_answer(s, c, op, NULL);
	return TOR_TAKEN;
}

/*
 * Not known any more, and before one that was forgotten when it was done: the
 * server executes places in order, so this one was executed, too.
 */
static enum tor_verdict repeat_forgotten(struct sword *s, struct sword_conn *c,
					 const struct wire_pkt *w)
{
	struct sword_op op = {.psn = w->psn,
			      .is_write = true,
			      .syndrome = WIRE_ACK_UNLIMITED,
			      .msn = c->rx.header.msn};

	sword_count(s, SWORD_C_too_old);
	if (w->opcode != WIRE_RC_WRITE_ONLY)
		return TOR_DROP;
	sword_answer(s, c, &op, NULL);
	return TOR_TAKEN;
}

static enum tor_verdict word_request(struct sword *s, struct sword_server *v,
				     struct sword_conn *c,
				     struct sword_region *r,
				     const struct wire_pkt *w)
{
	struct sword_op *op = sword_op_find(s, c, w->psn);

	if (op && !(PLANTED(repeat) && op->state == SWORD_DONE))
		return repeat(s, c, op);
	if (!op && wire_psn_diff(w->psn, c->old_psn) <= 0)
		return repeat_forgotten(s, c, w);
	if (v->end.dead)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_closed);
	if (r->bulk_conn >= 0 || tor_now_ns(s->tor) < r->closing_ns)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_bulk);
	if (!op)
		op = sword_op_new(s, c, w->psn);
	if (!op)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_full);
	sword_op_fill(s, op, c, r, w);
	c->rx.incomplete++;
	r->active++;
	if (PLANTED(own_path) && w->psn % 3 == 0) {
		sword_op_move(s, op, SWORD_FREE);
		c->rx.incomplete--;
		r->active--;
		return TOR_PASS;
	}
	send_place(s, c, op);
	if (PLANTED(early_issue)) {
		sword_shared_queue(v, op);
		end_tx_run(&v->end);
	}
	return TOR_TAKEN;
}

/*
 * A WRITE over words that is none of a word: large, or with an immediate. It
 * takes its own way when no operation on the region is on its own, and the
 * region's words are not known until it is executed.
 */
static enum tor_verdict bulk_request(struct sword *s, struct sword_conn *c,
				     struct sword_region *r,
				     struct tor_pkt *pkt)
{
	uint32_t flags = wire_opcodes[pkt->wire.opcode].flags;
	int id = (int)(c - s->conns);

	if (r && r->bulk_conn != id) {
		if (r->active || r->bulk_conn >= 0 ||
		    (c->bulk_region >= 0 &&
		     c->bulk_region != (int)(r - s->regions))) {
			r->closing_ns = tor_now_ns(s->tor) + SWORD_CLOSING_NS;
			return sword_refuse(s, c, pkt->wire.psn,
					    SWORD_C_refused_bulk);
		}
		sword_count(s, SWORD_C_bulk_writes);
		sword_words_forget(s, r);
		r->bulk_conn = id;
		r->closing_ns = 0;
		c->bulk_region = (int)(r - s->regions);
		c->bulk_psn = pkt->wire.psn;
	}
	if (wire_psn_diff(pkt->wire.psn, c->bulk_psn) >= 0) {
		c->bulk_psn = pkt->wire.psn;
		c->bulk_open = !(flags & WIRE_OP_LAST);
	}
	if (flags & WIRE_OP_LAST && !pkt->wire.ack_req)
		pkt->wire.ack_req = pkt->changed = true;
	return TOR_PASS;
}

enum tor_verdict sword_request(struct sword *s, struct sword_server *v,
			       struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	const struct wire_opcode *op = &wire_opcodes[w->opcode];
	bool writes = op->kind == WIRE_WRITE || op->kind == WIRE_ATOMIC;
	bool has_va = op->flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC);
	struct sword_conn *c = tor_conns_find(&s->table, TOR_REQUEST, w);
	struct sword_region *r =
		writes && has_va ? sword_region_of(s, v->index, w) : NULL;

	/* Perhaps of a former switch, with an operation whose place is taken
	 * and whose effect never came: what follows it would be an answer. */
	if (!c)
		return sword_refuse(s, NULL, 0, SWORD_C_undeclared);
	c->seen_ns = tor_now_ns(s->tor);
	if (c->moved) {
		end_rx_hear(&c->rx, w, c->id.qpn[TOR_REPLY]);
		return sword_move_request(s, v, c, w);
	}
	c->to_server = *w;
	sword_conn_age(s, c, w->psn);
	/* As a server does: nothing that follows a packet which is missing. */
	if (c->rx.refused && wire_psn_diff(w->psn, c->rx.refused_psn) > 0) {
		sword_count(s, SWORD_C_refused_order);
		return TOR_DROP;
	}
	if (c->rx.refused && w->psn == c->rx.refused_psn)
		c->rx.refused = false;
	if (r && sword_is_word_op(r, w))
		return word_request(s, v, c, r, w);
	if (!PLANTED(pass_reads) && is_behind(s, c, w->psn))
		return sword_refuse(s, c, w->psn, SWORD_C_refused_order);
	if (r && op->kind == WIRE_ATOMIC)
		return TOR_PASS; /* not aligned: the server says no */
	if (r || (op->kind == WIRE_WRITE && !has_va && c->bulk_region >= 0))
		return bulk_request(s, c, r, pkt);
	return TOR_PASS;
}

/* ---- what the server says ------------------------------------------------ */

/* All operations up to `psn` have their place for good: it is their turn. */
static void place(struct sword *s, struct sword_conn *c, uint32_t psn,
		  const struct wire_pkt *w)
{
	struct sword_server *v = &s->servers[c->server];
	struct sword_op *op;

	while ((op = oldest_sent(s, c)) && wire_psn_diff(op->psn, psn) <= 0) {
		/* Only operations of this kind can follow one, of one packet
		 * and one message each. */
		op->msn = (w->msn - (uint32_t)wire_psn_diff(psn, op->psn)) &
			  0xffffff;
		op->syndrome = wire_syndrome_is_ack(w->syndrome)
				       ? w->syndrome
				       : WIRE_ACK_UNLIMITED;
		sword_shared_queue(v, op);
		if (PLANTED(early_answer))
			sword_answer(s, c, op, NULL);
	}
	end_tx_run(&v->end);
}

static void end_bulk(struct sword *s, struct sword_conn *c, uint32_t psn)
{
	if (c->bulk_region < 0 || c->bulk_open ||
	    wire_psn_diff(psn, c->bulk_psn) < 0)
		return;
	s->regions[c->bulk_region].bulk_conn = -1;
	c->bulk_region = -1;
}

/* The server misses a place, and its client must not be told, because it would
 * take what is before for done. */
static void resend_places(struct sword *s, struct sword_conn *c)
{
	struct sword_op *ops = sword_ops(s, c);
	struct sword_op *op = oldest_of(s, c, c->in_state[SWORD_SENT]);

	while (op) {
		struct sword_op *next = NULL;

		sword_count(s, SWORD_C_own_resent);
		send_place(s, c, op);
		for (unsigned i = 0; i < SWORD_DEPTH; i++)
			if (ops[i].state == SWORD_SENT &&
			    wire_psn_diff(ops[i].psn, op->psn) > 0 &&
			    (!next || wire_psn_diff(ops[i].psn, next->psn) < 0))
				next = &ops[i];
		op = next;
	}
}

enum tor_verdict sword_reply(struct sword *s, struct sword_conn *c,
			     struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	bool is_ack = wire_opcodes[w->opcode].kind == WIRE_ACK;
	bool is_nak = is_ack && !wire_syndrome_is_ack(w->syndrome);
	uint32_t done = is_nak ? wire_psn_add(w->psn, WIRE_PSN_MASK) : w->psn;
	bool behind;

	c->rx.header = *w;
	place(s, c, done, w);
	end_bulk(s, c, done);
	/* Of an operation: its client is told when it is done. */
	if (is_ack && !is_nak && sword_op_find(s, c, w->psn)) {
		sword_count(s, SWORD_C_swallowed);
		return TOR_TAKEN;
	}
	behind = !PLANTED(pass_reads) && is_behind(s, c, w->psn);
	if (is_nak) {
		if (!behind)
			return TOR_PASS;
		if (w->syndrome == WIRE_NAK_PSN)
			resend_places(s, c);
	} else if (!behind) {
		return TOR_PASS;
	}
	sword_count(s, SWORD_C_swallowed);
	return TOR_TAKEN;
}
