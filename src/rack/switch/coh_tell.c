/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine is told: INVALs, and gets that are not granted. */
#include <string.h>

#include "coh.h"

static struct coh_machine *machine_of(struct end_tx *e)
{
	return container_of(e, struct coh_machine, tx);
}

static struct coh_told *told_at(struct coh_machine *m, uint32_t psn)
{
	return &m->told[psn % END_TX_WINDOW];
}

static bool describe(struct end_tx *e, uint32_t psn, struct wire_pkt *w)
{
	const struct coh_told *t = told_at(machine_of(e), psn);

	w->payload = t->bytes;
	w->payload_len = t->len_bytes;
	return true;
}

static void executed(struct end_tx *e, uint32_t psn, const struct wire_pkt *w)
{
	struct coh_machine *m = machine_of(e);
	uint8_t lane = told_at(m, psn)->lane;

	if (lane != COH_NOBODY)
		coh_lane_refused(&m->lanes[lane]);
}

static void lost(struct end_tx *e)
{
	struct coh_machine *m = machine_of(e);

	m->is_broken = true;
	coh_machine_due(m);
}

static void send(struct coh_machine *m, const struct coh_record *r,
		 uint8_t lane)
{
	struct coh_told *t = told_at(m, m->tx.next_psn);

	t->lane = lane;
	t->len_bytes = coh_record_build(r, t->bytes);
	end_tx_send(&m->tx, WIRE_RC_SEND_ONLY, 0);
}

static void send_lost(struct coh_machine *m, uint8_t lane)
{
	const struct coh_lane *l = &m->lanes[lane];

	m->lost_due &= (uint16_t) ~(1u << lane);
	send(m,
	     &(struct coh_record){.kind = COHERENCE_LOST,
				  .why = l->why,
				  .lane = lane,
				  .serial = l->serial,
				  .range = {l->page, 1}},
	     lane);
}

static void send_inval(struct coh_machine *m)
{
	const struct coh_inval *v = &m->invals[m->inval_first % COH_WAITING];

	m->inval_first++;
	if (!m->unanswered++)
		m->heard_ns = tor_now_ns(m->coh->tor);
	coh_count(m->coh, COH_C_invals);
	send(m, &(struct coh_record){.kind = COHERENCE_INVAL, .inval = *v},
	     COH_NOBODY);
}

static bool push(struct end_tx *e)
{
	struct coh_machine *m = machine_of(e);

	while (m->lost_due && !end_tx_is_full(e))
		send_lost(m, (uint8_t)__builtin_ctz(m->lost_due));
	while (m->inval_first != m->inval_next && m->unanswered < COH_INVALS &&
	       !end_tx_is_full(e))
		send_inval(m);
	return false;
}

void coh_tell_inval(struct coh_machine *m, const struct coh_inval *inval)
{
	if (!m->used)
		return;
	ASSERT(m->inval_next - m->inval_first < COH_WAITING);
	if (m->unanswered >= COH_INVALS)
		coh_count(m->coh, COH_C_invals_held);
	m->invals[m->inval_next++ % COH_WAITING] = *inval;
	coh_machine_due(m);
}

void coh_tell_fin(struct coh_machine *m)
{
	m->unanswered--;
	m->heard_ns = tor_now_ns(m->coh->tor);
	coh_machine_due(m);
}

bool coh_tell_run(struct coh_machine *m)
{
	/* While something is held the keeper is away: who has given up on the
	 * switch meanwhile connects again in the next term. */
	if (m->is_broken && coh_pair_waits(m->coh))
		return false;
	if (m->is_broken) {
		coh_count(m->coh, COH_C_expelled);
		coh_machine_gone(m);
		return true;
	}
	end_tx_run(&m->tx);
	return m->is_broken;
}

void coh_tell_start(struct coh_machine *m)
{
	static const struct end_tx_ops ops = {
		.describe = describe,
		.executed = executed,
		.lost = lost,
		.push = push,
	};

	m->tx.rto_ns = m->coh->opt.rto_ns;
	m->tx.patience_ns = m->coh->opt.peer_ns;
	end_tx_init(&m->tx, m->coh->self, &ops, &m->coh->c[COH_C_coalesced]);
}
