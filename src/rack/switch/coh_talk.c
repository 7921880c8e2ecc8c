/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine says beside its gets: give-backs, and records. Each is taken
 * in order, and acknowledged in order when it is executed. */
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "coh.h"

bool coh_key_find(const struct coh_machine *m, uint32_t key, uint32_t *domain,
		  enum coh_right *right)
{
	for (uint32_t i = 0; i < m->key_count; i++)
		for (unsigned r = COH_NONE; r <= COH_WRITE; r++)
			if (m->keys[i].key[r] == key) {
				*domain = m->keys[i].domain;
				*right = (enum coh_right)r;
				return true;
			}
	return false;
}

/* ---- acknowledgements ------------------------------------------------------
 */

static struct coh_said *said_at(struct coh_machine *m, uint32_t i)
{
	return &m->said[i % COH_SAID];
}

void coh_talk_reject(struct coh_machine *m, uint32_t psn, uint8_t syndrome)
{
	end_rx_ack(&m->rx, psn, m->rx.next_msn, syndrome);
	m->is_broken = true;
	coh_machine_due(m);
}

/* All that was executed, and packets of a message behind it that has not ended:
 * a NIC that repeats one sends some of it and waits. */
static void acknowledge(struct coh_machine *m)
{
	if (m->said_first == m->said_next)
		end_rx_ack(&m->rx, wire_psn_add(m->rx.next_psn, WIRE_PSN_MASK),
			   m->rx.next_msn, WIRE_ACK_UNLIMITED);
	else if (m->said_first)
		end_rx_ack(&m->rx, said_at(m, m->said_first - 1)->psn,
			   said_at(m, m->said_first - 1)->msn,
			   WIRE_ACK_UNLIMITED);
}

void coh_talk_done(struct coh_machine *m, uint32_t said)
{
	bool is_more = false;

	said_at(m, said)->is_done = true;
	while (m->said_first != m->said_next &&
	       said_at(m, m->said_first)->is_done) {
		m->said_first++;
		m->rx.incomplete--;
		is_more = true;
	}
	if (!is_more)
		return;
	acknowledge(m);
	end_rx_invite(&m->rx);
}

/* The message whose last packet this is. */
static uint32_t begin(struct coh_machine *m, uint32_t psn)
{
	*said_at(m, m->said_next) =
		(struct coh_said){.psn = psn, .msn = m->rx.next_msn};
	m->rx.incomplete++;
	return m->said_next++;
}

/* ---- give-backs ------------------------------------------------------------
 */

/* At the node that should have it, by which the keeper knows what is lost. */
static void count_void(struct coh *c, const struct coh_give *g)
{
	uint32_t node = g->op.node;
	uint64_t addr;

	(void)!translate_find(&c->translate, coh_va(g->page), &node, &addr);
	coh_count(c, COH_C_gives_void);
	c->nodes[node].void_count++;
}

void coh_give_settle(struct coh *c, struct coh_give *g)
{
	struct coh_machine *m = &c->machines[g->machine];
	enum coh_give_fate fate = coh_pair_fate(c, g);

	g->is_held = fate == COH_GIVE_HELD;
	if (g->is_held)
		return;
	if (fate == COH_GIVE_VOID)
		count_void(c, g);
	g->used = false;
	if (m->used && !PLANTED(coh_ack_early))
		coh_talk_done(m, g->said);
}

static void give_done(struct coh *c, struct coh_give *g)
{
	if (--g->left == 0)
		coh_give_settle(c, g);
}

static void write_done(struct coh *c, struct coh_op *op)
{
	give_done(c, container_of(op, struct coh_give, op));
}

static void second_done(struct coh *c, struct coh_op *op)
{
	if (op->has_failed)
		coh_move_failed(c);
	give_done(c, container_of(op, struct coh_give, second));
}

static struct coh_give *give_take(struct coh_machine *m)
{
	for (unsigned i = 0; i < COH_GIVES; i++)
		if (!m->gives[i].used)
			return &m->gives[i];
	return NULL;
}

static bool may_give(const struct coh_machine *m)
{
	const struct end_rx_message *msg = &m->message;
	enum coh_right right;
	uint32_t domain, node;
	uint64_t addr;

	return msg->va % COHERENCE_PAGE_BYTES == 0 &&
	       coh_key_find(m, msg->rkey, &domain, &right) &&
	       right == COH_NONE &&
	       !translate_find(&m->coh->translate, msg->va, &node, &addr);
}

/* Who has lost the right to write may still give back what it wrote; the
 * directory knows who that is. */
static void give(struct coh_machine *m, const struct wire_pkt *w)
{
	struct coh *c = m->coh;
	struct coh_give *g = m->giving;

	m->giving = NULL;
	if (m->message.got_bytes != COHERENCE_PAGE_BYTES || !may_give(m)) {
		coh_count(c, COH_C_gives_bad);
		coh_talk_reject(m, w->psn, WIRE_NAK_ACCESS);
		return;
	}
	coh_count(c, COH_C_gives);
	g->used = true;
	g->said = begin(m, w->psn);
	coh_dir_give(&c->dir, m->number, m->message.va >> COHERENCE_PAGE_SHIFT,
		     &c->out);
	coh_act(c, g->bytes, g);
	if (PLANTED(coh_ack_early) && m->used)
		coh_talk_done(m, g->said);
}

/* ---- records ---------------------------------------------------------------
 */

static void fin(struct coh_machine *m, const struct coh_fin *f)
{
	struct coh *c = m->coh;
	uint64_t stray = c->dir.counters[COH_DIR_C_stray_fins];

	coh_dir_fin(&c->dir, m->number, f, &c->out);
	if (c->dir.counters[COH_DIR_C_stray_fins] != stray) {
		coh_count(c, COH_C_records_bad);
		return;
	}
	coh_count(c, COH_C_fins);
	coh_tell_fin(m);
	coh_act(c, NULL, NULL);
}

static void record(struct coh_machine *m, const struct wire_pkt *w)
{
	struct coh *c = m->coh;
	struct coh_record r;
	uint32_t said;

	if (coh_record_parse(m->record, m->message.got_bytes, &r) ||
	    r.kind == COHERENCE_INVAL || r.kind == COHERENCE_LOST) {
		coh_count(c, COH_C_records_bad);
		coh_talk_reject(m, w->psn, WIRE_NAK_INVALID);
		return;
	}
	coh_count(c, COH_C_records);
	said = begin(m, w->psn);
	if (r.kind == COHERENCE_FIN) {
		fin(m, &r.fin);
	} else if (r.kind == COHERENCE_EVICT) {
		coh_dir_evict(&c->dir, m->number, &r.range, &c->out);
		coh_act(c, NULL, NULL);
	} else {
		coh_dir_clean(&c->dir, m->number, r.term, &c->out);
		coh_act(c, NULL, NULL);
	}
	coh_talk_done(m, said);
}

/* ---- packets ---------------------------------------------------------------
 */

/* Where a message that begins goes; NULL: there is no room. */
static uint8_t *room_for(struct coh_machine *m, const struct wire_pkt *w)
{
	if (m->said_next - m->said_first >= COH_SAID - 1)
		return NULL;
	if (wire_opcodes[w->opcode].kind != WIRE_WRITE)
		return m->record;
	m->giving = give_take(m);
	return m->giving ? m->giving->bytes : NULL;
}

void coh_talk_request(struct coh_machine *m, const struct wire_pkt *w)
{
	bool is_first = wire_opcodes[w->opcode].flags & WIRE_OP_FIRST;
	int step = end_rx_step(&m->rx, w->psn);
	enum end_rx_part part;

	end_rx_hear(&m->rx, w, m->qpn);
	if (step < 0) {
		/* It came before: an acknowledgement may be lost. */
		acknowledge(m);
		return;
	}
	if (step > 0) {
		end_rx_gap(&m->rx);
		return;
	}
	if (is_first && !m->message.is_open) {
		m->message.bytes = room_for(m, w);
		if (!m->message.bytes) {
			end_rx_refuse(&m->rx, w->psn);
			return;
		}
	}
	part = end_rx_part(&m->message, w, m->mtu,
			   m->message.bytes == m->record
				   ? sizeof(m->record)
				   : COHERENCE_PAGE_BYTES);
	if (part == END_RX_WRONG) {
		coh_count(m->coh, COH_C_records_bad);
		coh_talk_reject(m, w->psn, WIRE_NAK_INVALID);
		return;
	}
	end_rx_take(&m->rx, 1, part == END_RX_WHOLE);
	if (part == END_RX_PART) {
		if (w->ack_req && m->said_first == m->said_next)
			acknowledge(m);
		return;
	}
	if (m->message.kind == WIRE_WRITE)
		give(m, w);
	else
		record(m, w);
}

static void on_packet(struct tor_end *at, const struct wire_pkt *w)
{
	struct coh_machine *m = container_of(at, struct coh_machine, at);

	if (m->is_broken)
		return;
	if (wire_opcodes[w->opcode].flags & WIRE_OP_RESPONSE)
		end_tx_reply(&m->tx, w);
	else
		coh_talk_request(m, w);
}

int coh_talk_start(struct coh_machine *m)
{
	m->rx.self = m->coh->self;
	m->rx.naks = &m->coh->c[COH_C_naks];
	for (unsigned i = 0; i < COH_GIVES; i++) {
		struct coh_give *g = &m->gives[i];

		g->coh = m->coh;
		g->machine = m->number;
		g->op.bytes = g->bytes;
		g->op.done = write_done;
		g->second.bytes = g->bytes;
		g->second.done = second_done;
	}
	m->at.self = m->coh->self;
	m->at.packet = on_packet;
	m->at.peer_qpn = m->qpn;
	return tor_end_add(&m->at);
}
