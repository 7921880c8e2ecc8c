/* SPDX-License-Identifier: Apache-2.0 */
/* Steering on the path: requests of declared connections, and the answers. */
#include <string.h>

#include "base/plant.h"
#include "steer.h"

/* ---- requests ------------------------------------------------------------ */

/* A version is written: its key is known from now on. Only a packet that has
 * the node's fixed part can say. */
static void saw_write(struct steer *s, struct steer_conn *c,
		      const struct steer_store *store, const struct wire_pkt *w)
{
	struct vlist_node n;
	uint64_t self;

	if (w->payload_len < sizeof(n))
		return;
	memcpy(&n, w->payload, sizeof(n));
	self = le64_get(n.self);
	if (!vlist_is_pointer(self) ||
	    store->va + vlist_offset(self) != w->va ||
	    le64_get(n.next) != vlist_end_of(self))
		return;
	c->written = self;
	c->written_key = le64_get(n.key);
}

void steer_send_to(const struct steer_store *store, struct tor_pkt *pkt,
		   uint64_t at)
{
	pkt->wire.va = store->va + vlist_offset(at);
	if (pkt->wire.opcode == WIRE_RC_CAS)
		pkt->wire.atomic.compare = vlist_end_of(at);
	pkt->changed = true;
}

/*
 * Whether the end is in the memory that the client aimed at, but in another use
 * of it. The word that an append finds there when it fails can be the very one
 * its client takes for success, and no switch may be there to say otherwise
 * when the answer comes: so it is sent as it is. If its client knows the later
 * use, the list went on without this switch.
 */
static bool is_other_use(struct steer *s, struct steer_op *op,
			 struct steer_entry *e)
{
	if (!e->end || e->end == op->place ||
	    vlist_offset(e->end) != vlist_offset(op->place) ||
	    PLANTED(other_use))
		return false;
	steer_count(s, STEER_C_other_uses);
	if (vlist_is_later_use(op->place, e->end)) {
		steer_entry_break(e);
		op->epoch = e->epoch;
	}
	return true;
}

/* Where it goes, and what it then hangs behind. */
static void choose(struct steer *s, struct steer_op *op, struct steer_entry *e)
{
	struct steer_op *last = steer_op_of(s, e->last);

	op->at = op->place;
	op->loose = is_other_use(s, op, e) || !s->opt.writes ||
		    (!e->end && e->learns);
	if (op->loose)
		return;
	if (e->end && e->end != op->place) {
		op->at = e->end;
		if (e->end != e->committed)
			op->before = e->last;
		if (last)
			last->behind = steer_ref_to(s, op);
	}
	if (!e->open_ns)
		e->open_ns = tor_now_ns(s->tor);
	e->end = op->node;
	e->last = steer_ref_to(s, op);
}

static void new_append(struct steer *s, struct steer_conn *c,
		       const struct steer_store *store, struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	unsigned index = (unsigned)(store - s->stores);
	struct steer_ref hanging;
	struct steer_entry *e;
	struct steer_op *op;

	steer_count(s, STEER_C_appends);
	if (c->written != w->atomic.swap_add) {
		steer_count(s, STEER_C_key_unknown);
		return;
	}
	e = steer_entry_get(s, index, c->written_key);
	if (!e)
		return;
	hanging = steer_op_hanging(s, c, w->atomic.swap_add);
	op = steer_op_new(s, c);
	op->store = (uint8_t)index;
	op->psn = w->psn;
	op->place = w->atomic.compare | VLIST_LINK;
	op->node = w->atomic.swap_add;
	op->entry = (uint32_t)(e - s->entries);
	op->epoch = e->epoch;
	op->is_sure = c->is_sure;
	choose(s, op, e);
	steer_op_take_along(s, op, hanging);
	steer_past_add(s, index, op->node, e->key);
	steer_past_add(s, index, op->place, e->key);
	steer_op_sent(s, op);
	if (op->at == op->place)
		return;
	steer_count(s, STEER_C_appends_steered);
	steer_send_to(store, pkt, op->at);
}

static void append(struct steer *s, struct steer_conn *c,
		   const struct steer_store *store, struct tor_pkt *pkt,
		   bool is_new)
{
	const struct wire_pkt *w = &pkt->wire;
	struct steer_op *op = steer_op_find(s, c, w->psn);

	/* Only what looks like an append to the version at its address. */
	if (vlist_is_pointer(w->atomic.compare) ||
	    store->va + vlist_offset(w->atomic.compare) != w->va ||
	    !vlist_is_pointer(w->atomic.swap_add) ||
	    w->atomic.swap_add & VLIST_COMMITTED)
		return;
	c->to_server = *w;
	if (is_new) {
		if (op)
			steer_op_forget(s, op);
		new_append(s, c, store, pkt);
	} else if (op && op->node == w->atomic.swap_add) {
		steer_count(s, STEER_C_repeated);
		if (op->at != op->place)
			steer_send_to(store, pkt, op->at);
	}
}

static bool note_request(struct steer_conn *c, uint32_t psn)
{
	bool is_later = !c->has_psn || wire_psn_diff(psn, c->newest_psn) > 0;

	if (is_later)
		c->newest_psn = psn;
	if (!c->has_psn)
		c->first_psn = psn;
	c->has_psn = true;
	c->is_sure |= wire_psn_diff(psn, c->first_psn) >= STEER_WINDOW;
	return is_later && c->knows_psn;
}

static enum tor_verdict on_request(struct steer *s, struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	struct steer_conn *c = tor_conns_find(&s->table, TOR_REQUEST, w);
	struct steer_store *store = c ? steer_store_of(s, w) : NULL;
	bool is_new = c && note_request(c, w->psn);

	if (!store)
		return TOR_PASS;
	if (w->opcode == WIRE_RC_CAS)
		append(s, c, store, pkt, is_new);
	else if (w->opcode == WIRE_RC_READ_REQ)
		steer_read_sent(s, c, store, pkt, is_new);
	else
		saw_write(s, c, store, w);
	return TOR_PASS;
}

/* ---- answers ------------------------------------------------------------- */

static enum tor_verdict append_answered(struct steer *s, struct steer_conn *c,
					struct tor_pkt *pkt)
{
	struct steer_op *op = steer_op_find(s, c, pkt->wire.psn);
	uint64_t said = pkt->wire.original;

	c->to_client = pkt->wire;
	if (!op)
		return TOR_PASS;
	if (!steer_op_answered(s, op, &pkt->wire))
		return TOR_TAKEN;
	if (pkt->wire.original != said)
		pkt->changed = true;
	return TOR_PASS;
}

static enum tor_verdict on_answer(struct steer *s, struct tor_pkt *pkt)
{
	struct steer_conn *c = tor_conns_find(&s->table, TOR_REPLY, &pkt->wire);

	if (!c)
		return TOR_PASS;
	c->knows_psn = c->has_psn;
	steer_read_let_go(s, c); /* answers stay in order */
	if (pkt->wire.opcode == WIRE_RC_ATOMIC_ACK)
		return append_answered(s, c, pkt);
	if (pkt->wire.opcode == WIRE_RC_READ_RESP_ONLY)
		return steer_read_answered(s, c, pkt);
	return TOR_PASS;
}

enum tor_verdict steer_packet(void *state, struct tor_pkt *pkt)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->wire.opcode];
	struct steer *s = state;

	if (op->transport != WIRE_RC)
		return TOR_PASS;
	if (op->flags & WIRE_OP_RESPONSE)
		return on_answer(s, pkt);
	return op->flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC) ? on_request(s, pkt)
							   : TOR_PASS;
}
