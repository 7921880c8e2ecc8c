/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moved connections: every request of theirs is put on the shared connection,
 * so that READs, WRITEs and atomics of many clients have one order at the
 * server. Towards the client the switch is the responder: it counts packet and
 * message numbers, tells of gaps, remembers what it answered. Towards the
 * server it is the requester of the shared connection (end_tx.h), whose
 * packet numbers lead back to the operations; a coalesced acknowledgement
 * answers all that it covers, each on its own connection, and what is lost
 * behind the switch is sent again from here, so that no client hears of
 * another's loss.
 *
 * The server's own end of such a connection never gets a packet. So a client
 * whose switch is gone has an error in the end, and never a second execution.
 *
 * One request is one packet: more would have to be kept together on the shared
 * connection. And it must be inside a declared region: a server answers a wrong
 * key by ending the connection, which here is everybody's.
 */
#include <string.h>

#include "base/plant.h"
#include "sword.h"

/* ---- WRITEs on their way ------------------------------------------------- */

static bool buffer_take(struct sword *s, struct sword_op *op,
			const struct wire_pkt *w)
{
	if (!s->free_count)
		return false;
	op->buffer = (uint16_t)(s->free_buffers[--s->free_count] + 1);
	if (w->payload_len)
		memcpy(s->buffers[op->buffer - 1], w->payload, w->payload_len);
	return true;
}

void sword_buffer_give(struct sword *s, struct sword_op *op)
{
	if (op->buffer)
		s->free_buffers[s->free_count++] = (uint16_t)(op->buffer - 1);
	op->buffer = 0;
}

/* ---- what may pass --------------------------------------------------------
 */

/* 0, or the syndrome that says what is wrong. */
static uint8_t fault_of(const struct sword_server *v,
			const struct sword_region *r, const struct wire_pkt *w)
{
	switch (w->opcode) {
	case WIRE_RC_WRITE_ONLY:
		if (w->dma_len != w->payload_len || w->payload_len > v->mtu)
			return WIRE_NAK_INVALID;
		break;
	case WIRE_RC_READ_REQ:
		if (w->dma_len > v->mtu)
			return WIRE_NAK_INVALID;
		break;
	case WIRE_RC_CAS:
	case WIRE_RC_FAA:
		if (w->va % 8)
			return WIRE_NAK_INVALID;
		break;
	default:
		return WIRE_NAK_INVALID;
	}
	return r ? 0 : WIRE_NAK_ACCESS;
}

static enum sword_kind kind_of(const struct sword_region *r,
			       const struct wire_pkt *w)
{
	if (w->opcode == WIRE_RC_READ_REQ)
		return SWORD_READ;
	if (!r->plain && sword_is_word_op(r, w))
		return SWORD_WORD;
	return w->opcode == WIRE_RC_WRITE_ONLY ? SWORD_WRITE : SWORD_ATOMIC;
}

static void count(struct sword *s, enum sword_kind kind)
{
	if (kind == SWORD_READ)
		sword_count(s, SWORD_C_moved_reads);
	else if (kind == SWORD_WRITE)
		sword_count(s, SWORD_C_moved_writes);
	else if (kind == SWORD_ATOMIC)
		sword_count(s, SWORD_C_moved_atomics);
}

/* ---- requests -------------------------------------------------------------
 */

static void queue(struct sword *s, struct sword_server *v, struct sword_conn *c,
		  struct sword_op *op)
{
	c->rx.incomplete++;
	s->regions[op->region].active++;
	sword_shared_queue(v, op);
	end_tx_run(&v->end);
}

static enum tor_verdict take(struct sword *s, struct sword_server *v,
			     struct sword_conn *c, struct sword_region *r,
			     const struct wire_pkt *w)
{
	struct sword_op *op = sword_op_new(s, c, w->psn);
	enum sword_kind kind = kind_of(r, w);

	if (!op)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_full);
	sword_op_fill(s, op, c, r, w);
	op->kind = (uint8_t)kind;
	op->opcode = w->opcode;
	op->syndrome = WIRE_ACK_UNLIMITED;
	if (kind != SWORD_WORD) {
		op->is_write = false;
		c->writes &= ~(1u << (op - sword_ops(s, c)));
		op->va = w->va;
		op->len_bytes = w->dma_len;
	}
	if (kind == SWORD_ATOMIC)
		op->len_bytes = 8;
	if (kind == SWORD_WRITE && !buffer_take(s, op, w)) {
		sword_op_move(s, op, SWORD_FREE);
		return sword_refuse(s, c, w->psn, SWORD_C_refused_full);
	}
	count(s, kind);
	if (w->psn == c->rx.next_psn) {
		sword_conn_age(s, c, w->psn);
		end_rx_take(&c->rx, 1, true);
	}
	op->msn = c->rx.next_msn;
	queue(s, v, c, op);
	return TOR_TAKEN;
}

/* It came before: what was said is said again, and a READ is made again, as any
 * responder does, and as it comes now: its region may be another one. */
static enum tor_verdict again(struct sword *s, struct sword_server *v,
			      struct sword_conn *c, struct sword_region *r,
			      const struct wire_pkt *w)
{
	struct sword_op *op = sword_op_find(s, c, w->psn);
	bool is_read = w->opcode == WIRE_RC_READ_REQ;

	sword_count(s, SWORD_C_repeated);
	if (op && op->state != SWORD_DONE)
		return TOR_TAKEN;
	if (op && ((r && PLANTED(move_twice)) ||
		   (is_read && op->kind == SWORD_READ))) {
		sword_op_move(s, op, SWORD_FREE);
		op = NULL;
		is_read = true;
	}
	if (op && op->kind != SWORD_READ) {
		sword_answer(s, c, op, NULL);
	} else if (!op && is_read) {
		return take(s, v, c, r, w);
	} else if (!op && w->opcode == WIRE_RC_WRITE_ONLY) {
		struct sword_op old = {.psn = w->psn,
				       .is_write = true,
				       .syndrome = WIRE_ACK_UNLIMITED,
				       .msn = c->rx.next_msn};

		sword_count(s, SWORD_C_too_old);
		sword_answer(s, c, &old, NULL);
	}
	return TOR_TAKEN;
}

/* Something is missing. A NAK says that all before was executed, so it must
 * wait for that. */
static enum tor_verdict gap(struct sword *s, struct sword_conn *c)
{
	sword_count(s, SWORD_C_gaps);
	if (PLANTED(move_nak))
		end_rx_ack(&c->rx, c->rx.next_psn, c->rx.next_msn,
			   WIRE_NAK_PSN);
	else
		end_rx_gap(&c->rx);
	return TOR_DROP;
}

enum tor_verdict sword_move_request(struct sword *s, struct sword_server *v,
				    struct sword_conn *c,
				    const struct wire_pkt *w)
{
	bool has_va =
		wire_opcodes[w->opcode].flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC);
	struct sword_region *r =
		has_va ? sword_region_with(s, v->index, w) : NULL;
	int step = end_rx_step(&c->rx, w->psn);
	uint8_t fault = fault_of(v, r, w);

	if (step > 0 && PLANTED(move_gaps)) {
		c->rx.next_psn = w->psn;
		step = 0;
	}
	if (step > 0)
		return gap(s, c);
	if (c->rx.refused && step == 0)
		c->rx.refused = false;
	/* Its effect is there, whatever became of its region or the server. */
	if (step < 0 && w->opcode != WIRE_RC_READ_REQ)
		return again(s, v, c, r, w);
	if (v->end.dead)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_closed);
	/* Said after everything before it was answered. */
	if (fault && c->rx.incomplete)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_order);
	if (fault) {
		sword_count(s, SWORD_C_moved_refused);
		end_rx_ack(&c->rx, w->psn, c->rx.next_msn, fault);
		return TOR_DROP;
	}
	if (r->bulk_conn >= 0 || tor_now_ns(s->tor) < r->closing_ns)
		return sword_refuse(s, c, w->psn, SWORD_C_refused_bulk);
	return step < 0 ? again(s, v, c, r, w) : take(s, v, c, r, w);
}
