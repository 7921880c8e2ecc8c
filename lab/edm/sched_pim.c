/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority PIM with iterations that take time. A round is a number of
 * iterations; destinations that have something to ask for when it begins take
 * part in it, the others wait for the next round. In one iteration every
 * destination asks the source of its best message, every source accepts the
 * best request; who lost asks again in the next iteration.
 *
 * A port enters a round before its chunk has left (sched_lead_ps), so that the
 * matching is made while the wire is busy; its grant waits for the wire.
 */
#include "sched_priv.h"

static void round_start(struct edm_sched *s, uint64_t now_ps)
{
	uint16_t *list = s->round;

	s->round = s->later;
	s->round_count = s->later_count;
	s->later = list;
	s->later_count = 0;
	for (uint32_t i = 0; i < s->round_count; i++)
		s->port[SCHED_DST][s->round[i]].asks = false;
	s->round_left = s->c.pim_iterations;
	s->ticking = s->round_count != 0;
	if (s->ticking)
		s->c.wake(s->c.owner, now_ps + s->c.pim_iteration_ps,
			  SCHED_TOKEN_TICK);
}

static void ask_later(struct edm_sched *s, uint32_t dst)
{
	struct sched_port *p = &s->port[SCHED_DST][dst];

	if (p->asks)
		return;
	p->asks = true;
	s->later[s->later_count++] = (uint16_t)dst;
}

void sched_pim_ask(struct edm_sched *s, uint64_t now_ps, uint32_t dst)
{
	if (!sched_near(s, SCHED_DST, dst, now_ps))
		return; /* asks when it is released */
	ask_later(s, dst);
	if (!s->ticking)
		round_start(s, now_ps);
}

void sched_pim_release(struct edm_sched *s, uint64_t now_ps, int side,
		       uint32_t port)
{
	const struct sched_port *p = &s->port[side][port];

	if (side == SCHED_DST) {
		if (p->rival_count)
			sched_pim_ask(s, now_ps, port);
		return;
	}
	for (uint32_t i = 0; i < p->rival_count; i++)
		sched_pim_ask(s, now_ps, p->rival[i].peer);
}

static const struct sched_rival *best_request(const struct edm_sched *s,
					      uint32_t dst, uint64_t now_ps)
{
	const struct sched_port *p = &s->port[SCHED_DST][dst];
	const struct sched_rival *best = NULL;

	if (!sched_near(s, SCHED_DST, dst, now_ps))
		return NULL;
	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];

		if ((!best || r->key < best->key) &&
		    sched_near(s, SCHED_SRC, r->peer, now_ps))
			best = r;
	}
	return best;
}

/* Sources keep the best request; returns how many destinations asked. */
static uint32_t requests_collect(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->round_count; i++) {
		uint32_t dst = s->round[i];
		const struct sched_rival *r = best_request(s, dst, now_ps);
		struct sched_port *p;

		if (!r)
			continue; /* asks again when a port is released */
		s->round[kept++] = (uint16_t)dst;
		s->port[SCHED_DST][dst].request = r->peer;
		p = &s->port[SCHED_SRC][r->peer];
		if (p->asked && p->request_key < r->key)
			continue;
		p->asked = true;
		p->request = dst;
		p->request_lane = r->lane;
		p->request_key = r->key;
	}
	return kept;
}

void sched_pim_tick(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t count, lost = 0;

	s->stats.matchings++;
	count = requests_collect(s, now_ps);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t dst = s->round[i];
		struct sched_port *p =
			&s->port[SCHED_SRC][s->port[SCHED_DST][dst].request];

		if (p->request != dst)
			s->round[lost++] = (uint16_t)dst;
	}
	for (uint32_t src = 0; src < s->c.ports; src++) {
		struct sched_port *p = &s->port[SCHED_SRC][src];

		if (!p->asked)
			continue;
		p->asked = false;
		sched_grant(s, now_ps, src, p->request, p->request_lane);
	}
	s->round_count = lost;
	if (lost && --s->round_left) {
		s->c.wake(s->c.owner, now_ps + s->c.pim_iteration_ps,
			  SCHED_TOKEN_TICK);
		return;
	}
	for (uint32_t i = 0; i < lost; i++)
		ask_later(s, s->round[i]);
	s->round_count = 0;
	round_start(s, now_ps);
}
