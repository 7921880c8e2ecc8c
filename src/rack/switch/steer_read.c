/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs under way: what they are sent to, and what the switch says about the
 * answers.
 *
 * An answer that overtakes the append which it was sent to is held for a
 * moment, because nobody could vouch for it yet and its client would only ask
 * again. A real pipeline has no memory for that but can send packets round in a
 * circle; here it is a small pool, and what finds no room passes as it is. A
 * connection's next answer lets go of it, so order is kept.
 */
#include <string.h>

#include "base/plant.h"
#include "steer.h"

/* ---- requests ------------------------------------------------------------ */

static struct steer_read *read_of(struct steer_conn *c, uint32_t psn)
{
	for (unsigned i = 0; i < STEER_READS; i++)
		if (c->reads[i].used && c->reads[i].psn == psn)
			return &c->reads[i];
	return NULL;
}

/* The newest version; but when an append is late, the one before it, because
 * nobody could vouch for what is behind. */
static uint64_t newest(struct steer *s, const struct steer_entry *e)
{
	uint64_t late_ns = u64_max(STEER_LATE_NS, STEER_LATE * s->usual_ns);

	if (!e->committed || !e->open_ns ||
	    tor_now_ns(s->tor) < e->open_ns + late_ns)
		return e->end;
	steer_count(s, STEER_C_reads_behind);
	return e->committed;
}

static void new_read(struct steer *s, struct steer_conn *c,
		     const struct steer_store *store, struct tor_pkt *pkt)
{
	const struct wire_pkt *w = &pkt->wire;
	struct steer_entry *e;
	uint64_t node;

	if (!s->opt.reads || w->dma_len != store->node_bytes)
		return;
	e = steer_past_find(s, (unsigned)(store - s->stores),
			    w->va - store->va);
	if (!e || !e->end)
		return;
	node = newest(s, e);
	if (vlist_offset(node) == w->va - store->va)
		return;
	c->reads[c->next_read++ % STEER_READS] =
		(struct steer_read){.used = true,
				    .psn = w->psn,
				    .is_committed = node == e->committed,
				    .node = node,
				    .op = e->last,
				    .serial = s->serial,
				    .failures = e->failures,
				    .entry = (uint32_t)(e - s->entries),
				    .epoch = e->epoch};
	steer_count(s, STEER_C_reads_steered);
	steer_send_to(store, pkt, node);
}

void steer_read_sent(struct steer *s, struct steer_conn *c,
		     const struct steer_store *store, struct tor_pkt *pkt,
		     bool is_new)
{
	struct steer_read *r = read_of(c, pkt->wire.psn);

	if (is_new) {
		if (r)
			r->used = false;
		new_read(s, c, store, pkt);
	} else if (r && pkt->wire.dma_len == store->node_bytes) {
		steer_count(s, STEER_C_repeated);
		steer_send_to(store, pkt, r->node);
	}
}

/* ---- answers ------------------------------------------------------------- */

static bool is_committed(struct steer *s, const struct steer_read *r)
{
	const struct steer_entry *e = &s->entries[r->entry];
	const struct steer_op *op = steer_op_of(s, r->op);

	if (r->is_committed || PLANTED(vouch_reads))
		return true;
	if (op && op->node == r->node)
		return op->state == STEER_COMMITTED;
	if (!e->used || e->epoch != r->epoch)
		return false;
	/* Forgotten. As long as nothing fails, appends are committed in the
	 * order in which they came. */
	return e->committed == r->node || (e->failures == r->failures &&
					   r->op.serial <= e->committed_serial);
}

/*
 * The version's successor passed this switch after the READ did: when the READ
 * passed, the version was the newest, or was going to be, and the client may
 * take it for that. Not if the successor may have passed another switch before:
 * then it may have been read already.
 */
static bool is_later(struct steer *s, const struct steer_read *r, uint64_t word)
{
	const struct steer_op *op = steer_op_of(s, r->op);
	const struct steer_op *next = op ? steer_op_of(s, op->behind) : NULL;

	if (PLANTED(hide_next))
		return true;
	return op && op->node == r->node && next && next->node == word &&
	       next->serial > r->serial && next->is_sure;
}

/* Its word for the version, in the first bytes of an answer. */
static void vouch(struct steer *s, const struct steer_read *r, uint8_t *bytes)
{
	le64 next;
	uint64_t word;

	memcpy(&next, bytes, sizeof(next));
	word = le64_get(next);
	if (vlist_is_pointer(word) && is_later(s, r, word)) {
		word = vlist_end_of(r->node);
		steer_count(s, STEER_C_successors_hidden);
	}
	next = le64_put(word | VLIST_COMMITTED);
	memcpy(bytes, &next, sizeof(next));
	steer_count(s, STEER_C_vouched_reads);
}

/* ---- answers that wait ----------------------------------------------------
 */

/* Out of the list of its append, and to its client. */
static void let_go(struct steer *s, struct steer_held *h)
{
	struct steer_conn *c = &s->conns[h->conn];
	struct steer_op *op = steer_op_of(s, h->read.op);
	uint32_t id = (uint32_t)(h - s->held) + 1;

	if (op) {
		uint32_t *at = &op->held;

		while (*at && *at != id)
			at = &s->held[*at - 1].next;
		if (*at)
			*at = h->next;
	}
	c->held = 0;
	h->used = false;
	s->held_count--;
	if (is_committed(s, &h->read))
		vouch(s, &h->read, h->bytes);
	h->wire.payload = h->bytes;
	tor_emit(s->self, NULL, &h->wire);
}

void steer_read_let_go(struct steer *s, struct steer_conn *c)
{
	if (c->held)
		let_go(s, &s->held[c->held - 1]);
}

void steer_read_settled(struct steer *s, struct steer_op *op)
{
	for (unsigned i = 0; i < STEER_HELD && op->held; i++)
		let_go(s, &s->held[op->held - 1]);
}

void steer_held_timer_fired(struct timer *t, uint64_t now_ns)
{
	struct steer *s = container_of(t, struct steer, held_timer);

	for (unsigned i = 0; i < STEER_HELD; i++)
		if (s->held[i].used &&
		    s->held[i].since_ns + STEER_HOLD_NS <= now_ns)
			let_go(s, &s->held[i]);
	if (s->held_count)
		timer_set(tor_timers(s->tor), t, now_ns + STEER_HOLD_NS);
}

/* False: there is no room, or nothing to wait for. */
static bool hold(struct steer *s, struct steer_conn *c,
		 const struct steer_read *r, const struct wire_pkt *w)
{
	struct steer_op *op = steer_op_of(s, r->op);
	struct steer_held *h;
	unsigned i = 0;

	if (!op || op->node != r->node || op->hangs ||
	    (op->state != STEER_SENT && op->state != STEER_LANDED) ||
	    s->held_count == STEER_HELD || w->payload_len > sizeof(h->bytes))
		return false;
	while (s->held[(s->held_next + i) % STEER_HELD].used)
		i++;
	s->held_next = (s->held_next + i) % STEER_HELD;
	h = &s->held[s->held_next];
	h->used = true;
	h->conn = (uint32_t)(c - s->conns);
	h->read = *r;
	h->wire = *w;
	h->since_ns = tor_now_ns(s->tor);
	memcpy(h->bytes, w->payload, w->payload_len);
	h->next = op->held;
	op->held = c->held = s->held_next + 1;
	s->held_count++;
	if (!timer_is_set(&s->held_timer))
		timer_set(tor_timers(s->tor), &s->held_timer,
			  h->since_ns + STEER_HOLD_NS);
	steer_count(s, STEER_C_reads_held);
	return true;
}

/* A version that the switch chose, with its word for it if it can be given. */
enum tor_verdict steer_read_answered(struct steer *s, struct steer_conn *c,
				     struct tor_pkt *pkt)
{
	struct steer_read *r = read_of(c, pkt->wire.psn);
	struct vlist_node n;

	if (!r || pkt->wire.payload_len < sizeof(n))
		return TOR_PASS;
	memcpy(&n, pkt->wire.payload, sizeof(n));
	if (le64_get(n.self) != r->node)
		return TOR_PASS; /* not steered, or of other memory */
	if (!is_committed(s, r))
		return hold(s, c, r, &pkt->wire) ? TOR_TAKEN : TOR_PASS;
	memcpy(s->payload, pkt->wire.payload, pkt->wire.payload_len);
	vouch(s, r, s->payload);
	pkt->wire.payload = s->payload;
	pkt->changed = true;
	return TOR_PASS;
}
