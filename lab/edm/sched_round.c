/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matchings that take time. A round is one matching: ports that may be matched
 * when it begins take part, and its grants leave when it is over; who comes
 * meanwhile waits for the next round. As in PIM (sched_pim.c) a port takes part
 * while its last chunk is still on the wire (sched_lead_ps), so rounds cost
 * nothing where chunks are longer than they are. What is decided is what the
 * discipline decides; the time is the hardware's, 3 cycles for each of the
 * iterations of one maximal matching.
 */
#include "sched_priv.h"

static void round_begin(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t *list = s->in_round;

	s->in_round = s->next_round;
	s->in_count = s->next_count;
	s->next_round = list;
	s->next_count = 0;
	s->round_ps = now_ps;
	for (uint32_t i = 0; i < s->in_count; i++)
		s->port[s->in_round[i] & 1][s->in_round[i] >> 1].asks = false;
	s->ticking = s->in_count != 0;
	if (s->ticking)
		s->c.wake(s->c.owner, now_ps + s->c.match_ps, SCHED_TOKEN_TICK);
}

void sched_round_ask(struct edm_sched *s, uint64_t now_ps, int side,
		     uint32_t port)
{
	struct sched_port *p = &s->port[side][port];

	if (p->asks)
		return;
	p->asks = true;
	s->next_round[s->next_count++] = port << 1 | (uint32_t)side;
	if (!s->ticking)
		round_begin(s, now_ps);
}

/* Grants what is best at both of its ports; true: something was. */
static bool match_mutual(struct edm_sched *s, uint64_t now_ps)
{
	bool any = false;

	for (uint32_t i = 0; i < s->in_count; i++) {
		int side = (int)(s->in_round[i] & 1);
		uint32_t port = s->in_round[i] >> 1;
		const struct sched_rival *r, *back;

		if (!sched_open(s, side, port, now_ps))
			continue;
		r = sched_best(s, now_ps, side, port, 0);
		if (!r)
			continue;
		back = sched_best(s, now_ps, sched_other(side), r->peer, 0);
		if (back->key != r->key)
			continue;
		sched_grant_at(s, now_ps, side, port, r);
		any = true;
	}
	return any;
}

/* The same matching as going through all messages by key. A port that lost to
 * one which is not in this round tries again. */
static void async_round(struct edm_sched *s, uint64_t now_ps)
{
	while (match_mutual(s, now_ps))
		;
	for (uint32_t i = 0; i < s->in_count; i++) {
		int side = (int)(s->in_round[i] & 1);
		uint32_t port = s->in_round[i] >> 1;

		if (sched_open(s, side, port, now_ps) &&
		    sched_best(s, now_ps, side, port, 0))
			sched_round_ask(s, now_ps, side, port);
	}
}

static void reserve_round(struct edm_sched *s, uint64_t now_ps)
{
	for (uint32_t i = 0; i < s->in_count; i++) {
		int side = (int)(s->in_round[i] & 1);
		uint32_t port = s->in_round[i] >> 1;

		if (sched_open(s, side, port, now_ps))
			sched_reserve_try(s, now_ps, side, port);
	}
	sched_reserve_settle(s, now_ps);
}

void sched_round_tick(struct edm_sched *s, uint64_t now_ps)
{
	s->stats.matchings++;
	s->round_number++;
	/* Still ticking: who asks now is in the next round. */
	if (s->c.discipline == EDM_ASYNC)
		async_round(s, now_ps);
	else
		reserve_round(s, now_ps);
	round_begin(s, now_ps);
}
