/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What remote memory must contain. A WRITE changes the shadow when it is
 * posted; the real bytes may be as old as the requests that are not known to
 * be done allow, and no older.
 */
#include <string.h>

#include "verbs_priv.h"

static bool is_write(const struct vs_op *op)
{
	return (op->kind == VS_WRITE || op->kind == VS_WRITE_IMM) &&
	       op->expect == VS_OK;
}

static bool is_private_atomic(const struct vs_op *op)
{
	return op->kind == VS_CAS || op->kind == VS_FAA ||
	       op->kind == VS_MASKED_CAS || op->kind == VS_MASKED_FAA;
}

static bool covers(const struct vs_op *op, uint32_t off)
{
	return is_write(op) && off >= op->off && off - op->off < op->len;
}

void vs_shadow_post(struct vs_ep *ep, struct vs_op *op)
{
	uint8_t *shadow = ep->peer->shadow;

	if (op->expect != VS_OK)
		return;
	if (is_write(op)) {
		memcpy(op->old, shadow + op->off, op->len);
		memcpy(shadow + op->off, op->data, op->len);
	} else if (op->kind == VS_READ) {
		memcpy(op->data, shadow + op->off, op->len);
	} else if (is_private_atomic(op)) {
		uint64_t *word = &ep->peer->word_shadow[op->word];

		op->original = *word;
		*word = atomic_op_result(&op->atomic, *word);
	}
}

/* Could a READ or a look at the window, made when `op` was done, see `value`
 * because of a later request? With `fences` a fenced request ends the search:
 * it waits for READs in front of it. */
static bool later_explains(const struct vs_ep *ep, const struct vs_op *op,
			   uint32_t off, uint8_t value, bool fences)
{
	for (uint32_t i = ep->sq_head; i != ep->sq_tail; i++) {
		const struct vs_op *o = ep->sq[i % VS_SQ_MAX];

		if (o->id <= op->id)
			continue;
		if (fences && o->fence)
			return false;
		if (covers(o, off) && o->data[off - o->off] == value)
			return true;
	}
	return false;
}

static void check_write(struct vs_ep *ep, const struct vs_op *op)
{
	const uint8_t *have = ep->peer->window.base + op->off;

	if (memcmp(have, op->data, op->len) == 0)
		return;
	for (uint32_t i = 0; i < op->len; i++) {
		if (have[i] == op->data[i] ||
		    later_explains(ep, op, op->off + i, have[i], false))
			continue;
		vs_fail(ep->s->vs,
			"%s: WRITE %lu completed, but byte %u of %u is not "
			"there",
			ep->name, op->id, i, op->len);
		return;
	}
}

static void check_read(struct vs_ep *ep, struct vs_op *op)
{
	uint32_t at = 0;

	for (unsigned p = 0; p < op->piece_count; p++) {
		uint32_t len = op->pieces[p].len;
		const uint8_t *have = ep->land.area.base + op->pieces[p].off;
		bool same = memcmp(have, op->data + at, len) == 0;

		for (uint32_t i = 0; !same && i < len; i++) {
			if (have[i] == op->data[at + i])
				continue;
			if (!later_explains(ep, op, op->off + at + i, have[i],
					    true)) {
				vs_fail(ep->s->vs,
					"%s: READ %lu: byte %u of %u is wrong",
					ep->name, op->id, at + i, op->len);
				return;
			}
			op->data[at + i] = have[i];
		}
		at += len;
	}
}

static void check_shared(struct vs_ep *ep, const struct vs_op *op)
{
	struct vs_node *node = ep->peer->node;
	uint64_t original;

	memcpy(&original, ep->land.area.base + op->pieces[0].off, 8);
	node->shared_acked[op->word]++;
	if (original >= VS_SHARED_MAX || node->shared_seen[op->word][original])
		vs_fail(ep->s->vs,
			"%s: shared counter %u of node %u: value %lu was "
			"handed out twice or never existed",
			ep->name, op->word, node->index, original);
	else
		node->shared_seen[op->word][original] = 1;
}

void vs_shadow_success(struct vs_ep *ep, struct vs_op *op)
{
	struct vs *vs = ep->s->vs;
	char what[64];

	snprintf(what, sizeof(what), "%s: request %lu", ep->name, op->id);
	if (is_write(op) && !ep->peer->node->crashed)
		check_write(ep, op);
	if (op->kind == VS_READ) {
		check_read(ep, op);
	} else if (op->kind == VS_SHARED_FAA) {
		check_shared(ep, op);
		memcpy(op->data, ep->land.area.base + op->pieces[0].off, 8);
	} else if (op->kind == VS_WALK) {
		vs_walk_count(ep, op, true);
	} else if (is_private_atomic(op)) {
		memcpy(op->data, &op->original, 8);
	}
	if (op->land >= 0)
		vs_slot_give(vs, &ep->land, (unsigned)op->land, op->pieces,
			     op->piece_count, op->data, op->len, what);
	op->land = -1;
}

static bool explains(const struct vs_op *op, uint32_t at, uint8_t have)
{
	return covers(op, at) && (op->data[at - op->off] == have ||
				  op->old[at - op->off] == have);
}

void vs_shadow_arrived(struct vs_ep *from, const struct vs_op *op)
{
	struct vs_ep *to = from->peer;
	bool same = memcmp(to->window.base + op->off, op->data, op->len) == 0;

	for (uint32_t i = 0; !same && i < op->len; i++) {
		uint8_t have = to->window.base[op->off + i];
		bool known =
			have == op->data[i] || have == to->shadow[op->off + i];

		/* The receive may be polled long after the WRITE: later ones
		 * and what they replaced explain the byte as well, also those
		 * that failed meanwhile and whose fate is not known. */
		for (uint32_t k = from->sq_head; !known && k != from->sq_tail;
		     k++)
			known = explains(from->sq[k % VS_SQ_MAX], op->off + i,
					 have);
		for (uint32_t k = 0; !known && k < from->unsure_count; k++)
			known = explains(from->unsure[k], op->off + i, have);
		if (known)
			continue;
		vs_fail(from->s->vs,
			"%s: receive for WRITE %lu with immediate, but byte %u "
			"of %u is not there",
			from->name, op->id, i, op->len);
		return;
	}
}

/* ---- after an error ----------------------------------------------------- */

static void settle_window(struct vs_ep *ep, struct vs_op *const *unsure,
			  unsigned count)
{
	struct vs_ep *to = ep->peer;

	for (unsigned i = count; i-- > 0;) {
		if (is_write(unsure[i]))
			memcpy(to->shadow + unsure[i]->off, unsure[i]->old,
			       unsure[i]->len);
	}
	for (uint32_t off = 0; off < VS_WINDOW_BYTES; off++) {
		uint8_t have = to->window.base[off];
		bool known = have == to->shadow[off];

		for (unsigned i = 0; !known && i < count; i++)
			known = covers(unsure[i], off) &&
				unsure[i]->data[off - unsure[i]->off] == have;
		if (known)
			continue;
		vs_fail(ep->s->vs,
			"%s: byte %u of the peer's window is neither old nor "
			"written by an unfinished request",
			ep->name, off);
		return;
	}
	memcpy(to->shadow, to->window.base, VS_WINDOW_BYTES);
}

static void settle_words(struct vs_ep *ep, struct vs_op *const *unsure,
			 unsigned count)
{
	struct vs_ep *to = ep->peer;

	for (unsigned w = 0; w < VS_WORDS; w++) {
		uint64_t have, v = to->word_shadow[w];
		bool known;

		memcpy(&have, to->words.base + 8 * w, 8);
		known = have == v;
		/* Walk back over the requests that may not have happened. */
		for (unsigned i = count; !known && i-- > 0;) {
			const struct vs_op *op = unsure[i];

			if (!is_private_atomic(op) || op->word != w ||
			    op->expect != VS_OK)
				continue;
			known = have == op->original;
		}
		if (!known)
			vs_fail(ep->s->vs,
				"%s: word %u of the peer holds a value that no "
				"number of atomics explains",
				ep->name, w);
		to->word_shadow[w] = have;
	}
}

void vs_shadow_settle(struct vs_ep *ep, struct vs_op *const *unsure,
		      unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (unsure[i]->kind == VS_SHARED_FAA &&
		    unsure[i]->expect == VS_OK)
			ep->peer->node->shared_unknown[unsure[i]->word]++;
		if (unsure[i]->kind == VS_WALK && unsure[i]->expect == VS_OK)
			vs_walk_count(ep, unsure[i], false);
	}
	if (ep->peer->node->crashed)
		return;
	settle_window(ep, unsure, count);
	settle_words(ep, unsure, count);
}

void vs_shadow_final(struct vs_ep *ep)
{
	struct vs *vs = ep->s->vs;

	if (ep->node->crashed)
		return;
	if (memcmp(ep->window.base, ep->shadow, VS_WINDOW_BYTES) != 0)
		vs_fail(vs, "%s: the window differs from its shadow at the end",
			ep->name);
	for (unsigned w = 0; w < VS_WORDS; w++) {
		if (memcmp(ep->words.base + 8 * w, &ep->word_shadow[w], 8) != 0)
			vs_fail(vs, "%s: word %u differs at the end", ep->name,
				w);
	}
}

void vs_shared_final(struct vs_node *node)
{
	for (unsigned w = 0; w < VS_SHARED; w++) {
		uint64_t have;

		memcpy(&have, node->shared.base + 8 * w, 8);
		if (have >= node->shared_acked[w] &&
		    have <= (uint64_t)node->shared_acked[w] +
				    node->shared_unknown[w])
			continue;
		vs_fail(node->vs,
			"node %u: shared counter %u is %lu, but %u adds were "
			"acknowledged and %u are unknown",
			node->index, w, have, node->shared_acked[w],
			node->shared_unknown[w]);
	}
}
