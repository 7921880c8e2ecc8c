/* SPDX-License-Identifier: Apache-2.0 */
/* What the directory decides becomes packets; machines that are gone; work that
 * is done some at a time. */
#include <string.h>

#include "base/log.h"
#include "base/plant.h"
#include "coh.h"

void coh_machine_due(struct coh_machine *m)
{
	m->is_due = m->coh->is_due = true;
}

void coh_node_due(struct coh_node *n)
{
	n->is_due = n->coh->is_due = true;
}

/* ---- decisions --------------------------------------------------------------
 */

/* The bytes that were read for the lane, unless its memory node is lost. */
static void answer_own(struct coh_lane *l)
{
	if (l->op.has_failed)
		coh_lane_refuse(l, COHERENCE_WHY_NODE);
	else
		coh_lane_answer(l, l->bytes);
}

static void act_on_lane(struct coh *c, const struct coh_dir_action *a,
			const uint8_t *bytes)
{
	struct coh_lane *l = &c->machines[a->machine].lanes[a->lane];

	switch (a->kind) {
	case COH_DIR_READ:
		coh_op_start(c, &l->op, a->page, false);
		break;
	case COH_DIR_HOLD:
		if (bytes == l->bytes)
			break;
		l->op.has_failed = false;
		if (!PLANTED(coh_hold_old))
			memcpy(l->bytes, bytes, sizeof(l->bytes));
		break;
	case COH_DIR_ANSWER:
		if (bytes == l->bytes)
			answer_own(l);
		else
			coh_lane_answer(l, bytes);
		break;
	case COH_DIR_ANSWER_HELD:
		answer_own(l);
		break;
	case COH_DIR_REFUSE_LOST:
		coh_lane_refuse(l, COHERENCE_WHY_LOST);
		break;
	case COH_DIR_REFUSE_GET:
		coh_lane_reject(l, l->psn, WIRE_NAK_OP);
		break;
	case COH_DIR_WRITE:
	case COH_DIR_REFUSE_GIVE:
	case COH_DIR_INVAL:
		break;
	}
}

/* Two numbers that only grow, and whose difference is how many entries are in
 * use: so whoever sees counters alone knows. */
static void count_entries(struct coh *c)
{
	uint64_t known = c->c[COH_C_entries_made] - c->c[COH_C_entries_freed];

	if (c->dir.used > known)
		c->c[COH_C_entries_made] += c->dir.used - known;
	else
		c->c[COH_C_entries_freed] += known - c->dir.used;
}

/* To the page's node, and to a second one where it has one. */
static void write_give(struct coh *c, struct coh_give *g, uint64_t page)
{
	g->page = page;
	g->has_second = coh_pair_give(c, page, &g->second) ||
			coh_move_give(c, page, &g->second);
	g->left = g->has_second ? 2 : 1;
	coh_op_start(c, &g->op, page, true);
}

void coh_act(struct coh *c, const uint8_t *bytes, struct coh_give *give)
{
	for (uint32_t i = 0; i < c->out.count; i++) {
		const struct coh_dir_action *a = &c->out.action[i];
		struct coh_machine *m = &c->machines[a->machine];

		switch (a->kind) {
		case COH_DIR_INVAL:
			coh_tell_inval(m, &a->inval);
			break;
		case COH_DIR_WRITE:
			write_give(c, give, a->page);
			break;
		case COH_DIR_REFUSE_GIVE:
			/* The others went on without this machine. */
			coh_count(c, COH_C_gives_bad);
			give->used = false;
			coh_talk_reject(m, m->said[give->said % COH_SAID].psn,
					WIRE_NAK_ACCESS);
			break;
		case COH_DIR_READ:
		case COH_DIR_HOLD:
		case COH_DIR_ANSWER:
		case COH_DIR_ANSWER_HELD:
		case COH_DIR_REFUSE_GET:
		case COH_DIR_REFUSE_LOST:
			act_on_lane(c, a, bytes);
			break;
		}
	}
	c->out.count = 0;
	c->c[COH_C_false_invals] = c->dir.counters[COH_DIR_C_false_invals];
	c->c[COH_C_recalls] = c->dir.counters[COH_DIR_C_recalls];
	c->c[COH_C_waits] = c->dir.counters[COH_DIR_C_waits];
	c->c[COH_C_lost] = c->dir.counters[COH_DIR_C_lost];
	c->c[COH_C_old_bytes] = c->dir.counters[COH_DIR_C_old_bytes];
	count_entries(c);
	if (c->dir.room_count)
		coh_timer_in(c, COH_TICK_NS);
}

/* ---- machines that are gone
 * --------------------------------------------------- */

void coh_machine_gone(struct coh_machine *m)
{
	if (!m->used)
		return;
	log_info("coherence", "machine %u is gone", m->number);
	for (uint8_t i = 0; i < m->coh->opt.lanes; i++)
		coh_lane_stop(&m->lanes[i]);
	tor_end_remove(&m->at);
	end_tx_stop(&m->tx);
	m->used = m->is_broken = false;
	m->inval_first = m->inval_next = m->unanswered = 0;
	m->lost_due = 0;
	m->is_going = true;
	m->is_gone = false;
	m->gone_at = 0;
	coh_timer_in(m->coh, COH_STEP_NS);
}

/* The process of a NIC that is plugged in here has ended: with it its pages. */
void coh_port_gone(void *state, const struct tor_port *port)
{
	struct coh *c = state;

	for (uint8_t i = 0; i < c->opt.machines; i++) {
		struct coh_machine *m = &c->machines[i];

		if (!m->used ||
		    tor_nic_of(c->tor, m->at.peer_ip, m->qpn) != port)
			continue;
		coh_count(c, COH_C_expelled);
		coh_machine_gone(m);
	}
}

bool coh_machine_is_idle(const struct coh_machine *m)
{
	if (m->used || m->is_going)
		return false;
	for (unsigned i = 0; i < COH_LANES_MAX; i++)
		if (m->lanes[i].op.is_active)
			return false;
	for (unsigned i = 0; i < COH_GIVES; i++)
		if (m->gives[i].op.is_active || m->gives[i].second.is_active)
			return false;
	return true;
}

/* The keeper notes that a machine is gone when this is done. What it gave back
 * last must be at both nodes by then, or said to be at one: if the switch died
 * first, what counts after a loss would be one thing at one node and another
 * at the other. As long as it is not noted the next switch takes all for lost,
 * and the keeper goes on with one of the two. */
static void go_on(struct coh *c, struct coh_machine *m)
{
	for (unsigned n = 0; n < COH_SPLIT_STEP && !m->is_gone; n++) {
		m->is_gone =
			!coh_dir_gone(&c->dir, m->number, &m->gone_at, &c->out);
		coh_act(c, NULL, NULL);
	}
	m->is_going = !m->is_gone || coh_pair_writes(m);
}

/* ---- time
 * --------------------------------------------------------------------- */

void coh_batch_end(void *state)
{
	struct coh *c = state;

	while (c->is_due) {
		c->is_due = false;
		for (uint32_t i = 0; i < COHERENCE_NODES; i++) {
			struct coh_node *n = &c->nodes[i];

			if (!n->is_due)
				continue;
			n->is_due = false;
			c->is_due |= coh_node_run(n);
		}
		for (uint8_t i = 0; i < c->opt.machines; i++) {
			struct coh_machine *m = &c->machines[i];

			if (!m->is_due)
				continue;
			m->is_due = false;
			if (m->used)
				c->is_due |= coh_tell_run(m);
		}
	}
}

/* Who has an INVAL and no answer for so long holds others up. */
static void look_for_silence(struct coh *c, uint64_t now_ns)
{
	uint64_t awake_ns = tor_awake_ns(c->tor);

	for (uint8_t i = 0; i < c->opt.machines; i++) {
		struct coh_machine *m = &c->machines[i];

		if (coh_pair_holds(m)) /* it waits, not we */
			m->heard_ns = now_ns;
		if (!m->used || !m->unanswered ||
		    now_ns - u64_max(m->heard_ns, awake_ns) < c->opt.fin_ns)
			continue;
		m->is_broken = true;
		coh_machine_due(m);
	}
}

static void run_epoch(struct coh *c, uint64_t now_ns)
{
	if (!c->in_epoch && now_ns < c->epoch_ns)
		return;
	if (!c->in_epoch)
		c->epoch_ns = now_ns + c->opt.epoch_ns;
	c->in_epoch = !coh_split_step(&c->split, &c->dir);
	c->c[COH_C_splits] = c->split.splits;
	c->c[COH_C_joins] = c->split.joins;
	count_entries(c);
}

void coh_timer_in(struct coh *c, uint64_t in_ns)
{
	uint64_t at_ns = tor_now_ns(c->tor) + in_ns;

	if (timer_is_set(&c->timer) && c->timer_ns <= at_ns)
		return;
	c->timer_ns = at_ns;
	timer_set(tor_timers(c->tor), &c->timer, at_ns);
}

static void on_time(struct timer *timer, uint64_t now_ns)
{
	struct coh *c = container_of(timer, struct coh, timer);
	bool is_going = false;

	for (uint8_t i = 0; i < c->opt.machines; i++) {
		if (c->machines[i].is_going)
			go_on(c, &c->machines[i]);
		is_going |= c->machines[i].is_going;
	}
	coh_dir_tick(&c->dir, &c->out);
	coh_act(c, NULL, NULL);
	look_for_silence(c, now_ns);
	run_epoch(c, now_ns);
	coh_timer_in(c, c->epoch_ns - u64_min(now_ns, c->epoch_ns));
	if (is_going || c->in_epoch)
		coh_timer_in(c, COH_STEP_NS);
}

void coh_timer_start(struct coh *c)
{
	timer_init(&c->timer, on_time);
	c->epoch_ns = tor_now_ns(c->tor) + c->opt.epoch_ns;
	coh_timer_in(c, c->opt.epoch_ns);
}
