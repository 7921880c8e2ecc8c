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

static bool near_free(const struct edm_sched *s, int side, uint32_t port,
		      uint64_t now_ps)
{
	const struct sched_port *p = &s->port[side][port];

	return p->free_ps <= now_ps + sched_lead_ps(s, p);
}

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
	if (!near_free(s, SCHED_DST, dst, now_ps))
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

static uint64_t best_request(struct edm_sched *s, uint32_t dst, uint64_t now_ps,
			     uint32_t *src)
{
	const struct sched_port *p = &s->port[SCHED_DST][dst];
	uint64_t best = SCHED_NO_KEY;

	if (!near_free(s, SCHED_DST, dst, now_ps))
		return best;
	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];

		if (r->key < best && near_free(s, SCHED_SRC, r->peer, now_ps)) {
			best = r->key;
			*src = r->peer;
		}
	}
	return best;
}

/* Requests are kept at the source: the destination with the best key. */
static void requests_collect(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->round_count; i++) {
		uint32_t dst = s->round[i], src = 0;
		uint64_t key = best_request(s, dst, now_ps, &src);
		struct sched_port *p = &s->port[SCHED_SRC][src];

		if (key == SCHED_NO_KEY)
			continue; /* asks again when a port is released */
		s->round[kept++] = (uint16_t)dst;
		s->port[SCHED_DST][dst].request = src;
		if (!p->asked ||
		    key < s->port[SCHED_DST][p->request]
				    .rival[sched_pair_of(s, src, p->request)
						   ->place[SCHED_DST]]
				    .key) {
			p->asked = true;
			p->request = dst;
		}
	}
	s->round_count = kept;
}

void sched_pim_tick(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t lost = 0;

	s->stats.matchings++;
	requests_collect(s, now_ps);
	for (uint32_t i = 0; i < s->round_count; i++) {
		uint32_t dst = s->round[i];
		struct sched_port *p =
			&s->port[SCHED_SRC][s->port[SCHED_DST][dst].request];

		if (!p->asked || p->request != dst)
			s->round[lost++] = (uint16_t)dst;
		else
			p->matched = true;
	}
	/* Losers first, so that a grant's upcall finds the round in order. */
	for (uint32_t src = 0; src < s->c.ports; src++) {
		struct sched_port *p = &s->port[SCHED_SRC][src];

		if (!p->asked)
			continue;
		p->asked = p->matched = false;
		sched_grant(s, now_ps, src, p->request);
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
