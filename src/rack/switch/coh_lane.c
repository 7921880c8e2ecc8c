/* SPDX-License-Identifier: Apache-2.0 */
/* Gets: what comes on a lane, and how it is answered. */
#include <string.h>

#include "base/plant.h"
#include "coh.h"

static struct coh_machine *machine_of(const struct coh_lane *l)
{
	return &l->coh->machines[l->machine];
}

static uint32_t packets(const struct coh_lane *l)
{
	return end_tx_packets(COHERENCE_PAGE_BYTES, l->mtu);
}

/* ---- answers --------------------------------------------------------------
 */

static void say(struct coh_lane *l, uint32_t skip, const uint8_t *bytes)
{
	uint32_t at = skip * l->mtu;

	end_rx_data(&l->rx, wire_psn_add(l->psn, skip), l->msn, bytes + at,
		    COHERENCE_PAGE_BYTES - at, l->mtu);
}

static void close_get(struct coh_lane *l)
{
	l->is_open = false;
	end_rx_done(&l->rx, wire_psn_add(l->psn, packets(l) - 1), l->msn);
}

void coh_lane_answer(struct coh_lane *l, const uint8_t *bytes)
{
	if (!l->used || !l->is_open)
		return;
	coh_count(l->coh, COH_C_answers);
	say(l, 0, bytes);
	close_get(l);
}

void coh_lane_refuse(struct coh_lane *l, enum coherence_why why)
{
	struct coh_machine *m = machine_of(l);

	if (!l->used || !l->is_open)
		return;
	coh_count(l->coh, COH_C_refused);
	l->is_refused = true;
	l->why = (uint8_t)why;
	m->lost_due |= (uint16_t)(1u << l->number);
	coh_machine_due(m);
}

void coh_lane_refused(struct coh_lane *l)
{
	if (!l->used || !l->is_open || !l->is_refused)
		return;
	say(l, 0, l->coh->nothing);
	close_get(l);
}

void coh_lane_reject(struct coh_lane *l, uint32_t psn, uint8_t syndrome)
{
	coh_count(l->coh, COH_C_gets_bad);
	l->is_dead = true;
	end_rx_ack(&l->rx, psn, l->rx.next_msn, syndrome);
}

/* They came for a repetition. If they cannot, the get is refused after all; a
 * machine that has its answer knows better. */
static void read_again_done(struct coh_lane *l)
{
	l->is_again = false;
	if (!l->used)
		return;
	if (l->op.has_failed) {
		l->is_open = true;
		l->rx.incomplete++;
		coh_lane_refuse(l, COHERENCE_WHY_NODE);
		return;
	}
	say(l, l->skip, l->bytes);
	end_rx_invite(&l->rx);
}

/* Memory's bytes have come. */
static void read_done(struct coh *c, struct coh_op *op)
{
	struct coh_lane *l = container_of(op, struct coh_lane, op);

	if (op->has_failed && coh_pair_read_again(c, op, l->page))
		return;
	if (l->is_again) {
		read_again_done(l);
		return;
	}
	coh_dir_read_done(&c->dir, l->machine, l->number, &c->out);
	coh_act(c, l->bytes, NULL);
}

/* ---- gets -----------------------------------------------------------------
 */

/* 0, or the syndrome that ends the connection. */
static uint8_t fault_of(const struct coh_lane *l, const struct wire_pkt *w)
{
	if (w->opcode != WIRE_RC_READ_REQ || w->va % COHERENCE_PAGE_BYTES ||
	    w->dma_len != COHERENCE_PAGE_BYTES)
		return WIRE_NAK_INVALID;
	return 0;
}

/* The rest of the answer to the last get, as a requester that missed some of it
 * asks for it. */
static bool is_rest(const struct coh_lane *l, const struct wire_pkt *w)
{
	uint32_t skip = (uint32_t)wire_psn_diff(w->psn, l->psn);

	return w->opcode == WIRE_RC_READ_REQ && skip < packets(l) &&
	       w->va == coh_va(l->page) + skip * l->mtu &&
	       w->dma_len == COHERENCE_PAGE_BYTES - skip * l->mtu;
}

static void again(struct coh_lane *l, const struct wire_pkt *w)
{
	coh_count(l->coh, COH_C_gets_again);
	/* While it waits it will be answered anyway. */
	if (l->is_open || l->is_again || l->op.is_active || !l->serial ||
	    !is_rest(l, w))
		return;
	l->skip = (uint32_t)wire_psn_diff(w->psn, l->psn);
	if (l->is_refused) {
		say(l, l->skip, l->coh->nothing);
	} else if (PLANTED(coh_old_bytes)) {
		say(l, l->skip, l->bytes);
	} else {
		l->is_again = true;
		coh_op_start(l->coh, &l->op, l->page, false);
	}
}

/* Whether the domain of this key may do that; else why the get is refused. */
static enum coherence_why why_not(struct coh_lane *l, uint32_t domain,
				  enum coh_right right)
{
	struct coh *c = l->coh;
	uint32_t node;
	uint64_t addr;

	if (rights_find(&c->rights, domain, l->page) < right ||
	    coh_pair_place(c, l->page, &node, &addr)) {
		coh_count(c, COH_C_refused_right);
		return COHERENCE_WHY_RIGHT;
	}
	return c->nodes[node].tx.dead ? COHERENCE_WHY_NODE : 0;
}

static void take(struct coh_lane *l, const struct wire_pkt *w, uint32_t domain,
		 enum coh_right right)
{
	struct coh *c = l->coh;
	enum coherence_why why;

	l->psn = w->psn;
	l->page = w->va >> COHERENCE_PAGE_SHIFT;
	l->serial++;
	l->is_open = true;
	l->is_refused = false;
	l->rx.incomplete++;
	end_rx_take(&l->rx, packets(l), true);
	l->msn = l->rx.next_msn;
	coh_count(c, COH_C_gets);
	why = why_not(l, domain, right);
	if (why) {
		coh_lane_refuse(l, why);
		return;
	}
	coh_dir_get(&c->dir,
		    &(struct coh_get){l->machine, l->number, right, l->serial,
				      l->page},
		    &c->out);
	coh_act(c, NULL, NULL);
}

static void on_packet(struct tor_end *at, const struct wire_pkt *w)
{
	struct coh_lane *l = container_of(at, struct coh_lane, at);
	int step = end_rx_step(&l->rx, w->psn);
	enum coh_right right = COH_NONE;
	uint32_t domain;
	uint8_t fault;

	if (l->is_dead || wire_opcodes[w->opcode].flags & WIRE_OP_RESPONSE)
		return;
	end_rx_hear(&l->rx, w, l->qpn);
	if (step < 0) {
		again(l, w);
		return;
	}
	if (step > 0) {
		end_rx_gap(&l->rx);
		return;
	}
	/* A second one beside it, or while memory is read for the first. */
	if (l->is_open || l->op.is_active) {
		end_rx_refuse(&l->rx, w->psn);
		return;
	}
	fault = fault_of(l, w);
	if (!fault && (!coh_key_find(machine_of(l), w->rkey, &domain, &right) ||
		       right == COH_NONE))
		fault = WIRE_NAK_ACCESS;
	if (fault)
		coh_lane_reject(l, w->psn, fault);
	else
		take(l, w, domain, right);
}

/* ---- life -----------------------------------------------------------------
 */

int coh_lane_start(struct coh_lane *l)
{
	int err;

	l->rx.self = l->coh->self;
	l->rx.naks = &l->coh->c[COH_C_naks];
	l->op.bytes = l->bytes;
	l->op.done = read_done;
	l->at.self = l->coh->self;
	l->at.packet = on_packet;
	l->at.peer_qpn = l->qpn;
	err = tor_end_add(&l->at);
	l->used = !err;
	return err;
}

void coh_lane_stop(struct coh_lane *l)
{
	tor_end_remove(&l->at);
	l->used = l->is_open = false;
}
