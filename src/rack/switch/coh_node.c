/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes: pages that are read and written over one connection each. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "coh.h"

STATIC_ASSERT(COH_C_end_dead - COH_C_coalesced == END_TX_C_dead &&
		      COH_C_end_naks - COH_C_coalesced == END_TX_C_naks,
	      "the counters of an end, in its order");

static struct coh_node *node_of(struct end_tx *e)
{
	return container_of(e, struct coh_node, tx);
}

static struct coh_op **on_way(struct coh_node *n, uint32_t psn)
{
	return &n->on_way[psn % END_TX_WINDOW];
}

static uint32_t packets(const struct coh_node *n)
{
	return end_tx_packets(COHERENCE_PAGE_BYTES, n->mtu);
}

/* Where in the page the packet is. */
static uint32_t place(const struct coh_node *n, const struct coh_op *op,
		      uint32_t psn)
{
	return (uint32_t)wire_psn_diff(psn, op->psn) * n->mtu;
}

static bool describe(struct end_tx *e, uint32_t psn, struct wire_pkt *w)
{
	struct coh_node *n = node_of(e);
	const struct coh_op *op = *on_way(n, psn);
	uint32_t at = place(n, op, psn);

	w->rkey = n->rkey;
	w->va = op->addr;
	w->dma_len = COHERENCE_PAGE_BYTES;
	if (op->is_write) {
		w->payload = op->bytes + at;
		w->payload_len = u32_min(n->mtu, COHERENCE_PAGE_BYTES - at);
	} else {
		w->va += at;
		w->dma_len -= at;
	}
	return true;
}

/* ---- sending --------------------------------------------------------------
 */

static uint8_t write_opcode(uint32_t i, uint32_t count)
{
	if (count == 1)
		return WIRE_RC_WRITE_ONLY;
	if (i == 0)
		return WIRE_RC_WRITE_FIRST;
	return i + 1 == count ? WIRE_RC_WRITE_LAST : WIRE_RC_WRITE_MIDDLE;
}

static void send(struct coh_node *n, struct coh_op *op)
{
	uint32_t count = packets(n);

	op->psn = n->tx.next_psn;
	for (uint32_t i = 0; i < count; i++)
		*on_way(n, wire_psn_add(op->psn, i)) = op;
	if (!op->is_write) {
		end_tx_read(&n->tx, COHERENCE_PAGE_BYTES, n->mtu);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		end_tx_send(&n->tx, write_opcode(i, count), 0);
}

static bool push(struct end_tx *e)
{
	struct coh_node *n = node_of(e);

	while (n->first && end_tx_room(e) >= packets(n) &&
	       (n->first->is_write || e->answers < n->reads)) {
		struct coh_op *op = n->first;

		n->first = op->next;
		if (!n->first)
			n->last = &n->first;
		send(n, op);
	}
	return false;
}

void coh_op_start(struct coh *c, struct coh_op *op, uint64_t page,
		  bool is_write)
{
	uint32_t node;
	uint64_t addr;
	int err = is_write ? translate_find(&c->translate, coh_va(page), &node,
					    &addr)
			   : coh_pair_place(c, page, &node, &addr);

	/* Looked at before the directory was asked; nothing is taken away. */
	ASSERT(!err);
	coh_op_start_at(c, op, node, addr, is_write);
}

void coh_op_start_at(struct coh *c, struct coh_op *op, uint32_t node,
		     uint64_t addr, bool is_write)
{
	struct coh_node *n = &c->nodes[node];

	ASSERT(!op->is_active);
	op->node = node;
	op->addr = addr;
	op->is_write = is_write;
	op->is_active = true;
	op->has_failed = false;
	op->next = NULL;
	*n->last = op;
	n->last = &op->next;
	coh_node_due(n);
}

bool coh_node_run(struct coh_node *n)
{
	struct coh_op *op;

	if (!n->tx.dead) {
		end_tx_run(&n->tx);
		return false;
	}
	coh_pair_look(n->coh);
	if (!n->first)
		return false;
	while ((op = n->first)) {
		n->first = op->next;
		if (!n->first)
			n->last = &n->first;
		op->has_failed = true;
		op->is_active = false;
		op->done(n->coh, op);
	}
	return true;
}

/* ---- answers --------------------------------------------------------------
 */

static void executed(struct end_tx *e, uint32_t psn, const struct wire_pkt *w)
{
	struct coh_node *n = node_of(e);
	struct coh_op *op = *on_way(n, psn);
	uint32_t at = place(n, op, psn);

	if (!op->is_write)
		memcpy(op->bytes + at, w->payload, w->payload_len);
	*on_way(n, psn) = NULL;
	if (at + n->mtu < COHERENCE_PAGE_BYTES)
		return;
	op->is_active = false;
	op->done(n->coh, op);
}

/* What was on its way waits before what waits, and all of it fails. */
static void lost(struct end_tx *e)
{
	struct coh_node *n = node_of(e);
	const struct coh_op *last = NULL;

	coh_count(n->coh, COH_C_nodes_lost);
	log_info("coherence",
		 "memory node %u does not answer: its memory is "
		 "lost",
		 (unsigned)(n - n->coh->nodes));
	/* From the oldest number on, an op's packets are neighbours. */
	for (uint32_t i = 0; i < END_TX_WINDOW; i++) {
		struct coh_op **at = on_way(n, wire_psn_add(e->next_psn, i));
		struct coh_op *op = *at;

		*at = NULL;
		if (!op || op == last)
			continue;
		last = op;
		op->next = NULL;
		*n->last = op;
		n->last = &op->next;
	}
	coh_node_due(n);
}

static void on_packet(struct tor_end *at, const struct wire_pkt *w)
{
	end_tx_reply(&container_of(at, struct coh_node, at)->tx, w);
}

/* ---- life -----------------------------------------------------------------
 */

static const struct end_tx_ops ops = {
	.describe = describe,
	.executed = executed,
	.lost = lost,
	.push = push,
};

static void prepare(struct coh_node *n)
{
	n->first = NULL;
	n->last = &n->first;
	n->tx.rto_ns = n->coh->opt.rto_ns;
	n->tx.patience_ns = n->coh->opt.node_ns;
	end_tx_init(&n->tx, n->coh->self, &ops, &n->coh->c[COH_C_coalesced]);
}

void coh_node_start_away(struct coh_node *n)
{
	prepare(n);
	n->tx.dead = true;
	n->used = true;
}

int coh_node_start(struct coh_node *n)
{
	int err;

	prepare(n);
	n->at.self = n->coh->self;
	n->at.packet = on_packet;
	n->at.peer_qpn = n->tx.qpn;
	memcpy(n->at.own_ip, n->tx.header.src_ip, 16);
	memcpy(n->at.peer_ip, n->tx.header.dst_ip, 16);
	err = tor_end_add(&n->at);
	n->used = !err;
	return err;
}

void coh_node_stop(struct coh_node *n)
{
	tor_end_remove(&n->at);
	if (n->used)
		end_tx_stop(&n->tx);
	n->used = false;
}
