/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways of deciding which message gets a free port: asynchronous as in the
 * paper, slot-aligned, and reservation. The keys of all heads are distinct, so
 * "best" is never ambiguous.
 */
#include "sched_priv.h"

enum {
	/* Messages looked at for one decision. Beyond that a message counts as
	 * not wanted: only reached where many equal messages queue, where
	 * reserving gains nothing anyway. */
	WANTED_BUDGET = 48,
};

void sched_grant_at(struct edm_sched *s, uint64_t now_ps, int side,
		    uint32_t port, const struct sched_rival *r)
{
	uint32_t peer = r->peer, lane = r->lane;

	if (side == SCHED_SRC)
		sched_grant(s, now_ps, port, peer, lane);
	else
		sched_grant(s, now_ps, peer, port, lane);
}

/* ---- asynchronous ---------------------------------------------------------
 */

/* A message that came while a matching was being made is not in it. */
static bool is_known(const struct edm_sched *s, int side, uint32_t port,
		     const struct sched_rival *r)
{
	const struct sched_pair *pair;

	if (!s->c.match_ps)
		return true;
	pair = sched_pair_at(s, side, port, r->peer, r->lane);
	return s->entry[pair->head].at_ps <= s->round_ps;
}

const struct sched_rival *sched_best(const struct edm_sched *s, uint64_t now_ps,
				     int side, uint32_t port, uint64_t floor)
{
	const struct sched_port *p = &s->port[side][port];
	const struct sched_rival *best = NULL;

	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];

		if (r->key >= floor && (!best || r->key < best->key) &&
		    sched_open(s, sched_other(side), r->peer, now_ps) &&
		    is_known(s, side, port, r))
			best = r;
	}
	return best;
}

static void async_release(struct edm_sched *s, uint64_t now_ps, int side,
			  uint32_t port)
{
	const struct sched_rival *r = sched_best(s, now_ps, side, port, 0);

	if (r)
		sched_grant_at(s, now_ps, side, port, r);
}

/* ---- reservation -----------------------------------------------------------
 */

/*
 * Whether a message would be served now if all ports were free and everything
 * went strictly by key: no better message of either of its ports would be. The
 * answer depends on better messages only, so the recursion ends; it is kept
 * until a key changes.
 */
static bool wanted(struct edm_sched *s, uint32_t src, uint32_t dst,
		   uint32_t lane, uint64_t key, unsigned *budget)
{
	struct sched_pair *pair = sched_pair_of(s, src, dst, lane);
	const uint32_t end[SCHED_SIDES] = {src, dst};

	if (pair->epoch == s->epoch)
		return pair->wanted;
	if (!*budget)
		return false;
	--*budget;
	for (int side = 0; side < SCHED_SIDES; side++) {
		const struct sched_port *p = &s->port[side][end[side]];

		for (uint32_t i = 0; i < p->rival_count; i++) {
			const struct sched_rival *r = &p->rival[i];
			uint32_t a = side == SCHED_SRC ? src : r->peer;
			uint32_t b = side == SCHED_SRC ? r->peer : dst;

			if (r->key >= key ||
			    !wanted(s, a, b, r->lane, r->key, budget))
				continue;
			pair->epoch = s->epoch;
			pair->wanted = false;
			return false;
		}
	}
	pair->epoch = s->epoch;
	pair->wanted = true;
	return true;
}

/* Whether a free port may carry this chunk until end_ps: the message that is
 * wanted there goes first, and while that waits for its other port, only what
 * ends in time may be slipped in. */
static bool may_use(struct edm_sched *s, int side, uint32_t port, uint64_t key,
		    uint64_t end_ps)
{
	const struct sched_port *p = &s->port[side][port];
	const struct sched_port *peers = s->port[sched_other(side)];
	unsigned budget = WANTED_BUDGET;

	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];
		uint32_t src = side == SCHED_SRC ? port : r->peer;
		uint32_t dst = side == SCHED_SRC ? r->peer : port;

		/* At most one message of a port is wanted. */
		if (wanted(s, src, dst, r->lane, r->key, &budget))
			return r->key == key ||
			       end_ps <= peers[r->peer].free_ps;
	}
	return true;
}

/* What kept the peers of this port waiting may be over: have those that could
 * not do anything try again. */
static void stir_peers(struct edm_sched *s, int side, uint32_t port)
{
	const struct sched_port *p = &s->port[side][port];
	struct sched_port *peers = s->port[sched_other(side)];

	for (uint32_t i = 0; i < p->rival_count; i++) {
		uint32_t peer = p->rival[i].peer;

		if (!peers[peer].parked || peers[peer].stirred)
			continue;
		peers[peer].stirred = true;
		s->stir[s->stir_count++] =
			peer << 1 | (uint32_t)sched_other(side);
	}
}

void sched_reserve_try(struct edm_sched *s, uint64_t now_ps, int side,
		       uint32_t port)
{
	struct sched_port *p = &s->port[side][port];
	uint64_t floor = 0;

	p->parked = false;
	for (;;) {
		const struct sched_rival *r =
			sched_best(s, now_ps, side, port, floor);
		uint32_t src, dst;
		uint64_t end_ps;

		if (!r)
			return;
		src = side == SCHED_SRC ? port : r->peer;
		dst = side == SCHED_SRC ? r->peer : port;
		end_ps = u64_max(now_ps,
				 u64_max(s->port[SCHED_SRC][src].free_ps,
					 s->port[SCHED_DST][dst].free_ps)) +
			 sched_chunk_blocks(s, src, dst, r->lane) *
				 s->c.block_ps;
		if (may_use(s, SCHED_SRC, src, r->key, end_ps) &&
		    may_use(s, SCHED_DST, dst, r->key, end_ps)) {
			s->stats.backfills +=
				p->rival[sched_top(p)].key != r->key;
			s->port[SCHED_SRC][src].parked = false;
			s->port[SCHED_DST][dst].parked = false;
			sched_grant_at(s, now_ps, side, port, r);
			stir_peers(s, SCHED_SRC, src);
			stir_peers(s, SCHED_DST, dst);
			return;
		}
		p->parked = true;
		s->port[sched_other(side)][r->peer].parked = true;
		floor = r->key + 1;
	}
}

void sched_reserve_settle(struct edm_sched *s, uint64_t now_ps)
{
	while (s->stir_count) {
		uint32_t token = s->stir[--s->stir_count];
		int side = (int)(token & 1);
		struct sched_port *p = &s->port[side][token >> 1];

		p->stirred = false;
		if (sched_open(s, side, token >> 1, now_ps))
			sched_reserve_try(s, now_ps, side, token >> 1);
	}
}

/* Who was kept waiting may try again: now, or in the next round. */
static void stirred(struct edm_sched *s, uint64_t now_ps)
{
	if (!s->c.match_ps) {
		sched_reserve_settle(s, now_ps);
		return;
	}
	while (s->stir_count) {
		uint32_t token = s->stir[--s->stir_count];
		int side = (int)(token & 1);

		s->port[side][token >> 1].stirred = false;
		if (sched_near(s, side, token >> 1, now_ps))
			sched_round_ask(s, now_ps, side, token >> 1);
	}
}

/* ---- slots ------------------------------------------------------------------
 */

/* A slot is no shorter than the matching for the next one. */
static void slot_ask(struct edm_sched *s, uint64_t now_ps)
{
	uint64_t slot =
		u64_max(s->c.slot_blocks * s->c.block_ps, s->c.match_ps);

	if (s->ticking)
		return;
	s->ticking = true;
	s->c.wake(s->c.owner, (now_ps + slot - 1) / slot * slot,
		  SCHED_TOKEN_TICK);
}

static const struct sched_rival *best_unmatched(const struct edm_sched *s,
						int side, uint32_t port)
{
	const struct sched_port *p = &s->port[side][port];
	const struct sched_port *peers = s->port[sched_other(side)];
	const struct sched_rival *best = NULL;

	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];

		if ((!best || r->key < best->key) && !peers[r->peer].matched &&
		    is_known(s, side, port, r))
			best = r;
	}
	return best;
}

/*
 * Pairs that are best for each other are matched until none is left, which
 * gives the same matching as going through all messages in order of their keys.
 * All choices are made before the first grant, because a grant changes keys.
 */
static void slot_match(struct edm_sched *s, uint64_t now_ps)
{
	uint32_t n = s->c.ports, count = 0;
	bool more = true;

	for (uint32_t p = 0; p < n; p++)
		s->port[SCHED_SRC][p].matched = s->port[SCHED_DST][p].matched =
			false;
	while (more) {
		more = false;
		for (uint32_t d = 0; d < n; d++) {
			const struct sched_rival *r, *back;

			if (s->port[SCHED_DST][d].matched)
				continue;
			r = best_unmatched(s, SCHED_DST, d);
			if (!r)
				continue;
			back = best_unmatched(s, SCHED_SRC, r->peer);
			if (back->key != r->key)
				continue;
			s->port[SCHED_DST][d].matched = true;
			s->port[SCHED_SRC][r->peer].matched = true;
			s->round[count] = r->peer;
			s->round_lane[count] = r->lane;
			s->later[count++] = (uint16_t)d;
			more = true;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		sched_grant(s, now_ps, s->round[i], s->later[i],
			    s->round_lane[i]);
	s->stats.matchings += count != 0;
}

static void slot_tick(struct edm_sched *s, uint64_t now_ps)
{
	/* Control blocks may have lengthened a hold; the slot has room. */
	for (uint32_t p = 0; p < s->c.ports; p++) {
		struct sched_port *src = &s->port[SCHED_SRC][p];
		struct sched_port *dst = &s->port[SCHED_DST][p];

		src->free_ps = u64_min(src->free_ps, now_ps);
		dst->free_ps = u64_min(dst->free_ps, now_ps);
	}
	s->ticking = false;
	s->round_ps = now_ps - u64_min(now_ps, s->c.match_ps);
	slot_match(s, now_ps);
	if (s->backlog)
		slot_ask(s, now_ps + 1);
}

/* ---- one interface
 * ----------------------------------------------------------- */

void sched_match_arrival(struct edm_sched *s, uint64_t now_ps, uint32_t src,
			 uint32_t dst, uint32_t lane)
{
	bool both_near = sched_near(s, SCHED_SRC, src, now_ps) &&
			 sched_near(s, SCHED_DST, dst, now_ps);

	switch (s->c.discipline) {
	case EDM_ASYNC:
		if (both_near && s->c.match_ps)
			sched_round_ask(s, now_ps, SCHED_DST, dst);
		else if (both_near)
			sched_grant(s, now_ps, src, dst, lane);
		return;
	case EDM_RESERVE:
		if (both_near && s->c.match_ps)
			sched_round_ask(s, now_ps, SCHED_DST, dst);
		else if (both_near)
			sched_reserve_try(s, now_ps, SCHED_DST, dst);
		/* It may have taken the first place from one that others
		 * were kept waiting for. */
		stir_peers(s, SCHED_SRC, src);
		stir_peers(s, SCHED_DST, dst);
		stirred(s, now_ps);
		return;
	case EDM_SLOT:
		slot_ask(s, now_ps);
		return;
	case EDM_PIM:
		sched_pim_ask(s, now_ps, dst);
		return;
	}
}

void sched_match_release(struct edm_sched *s, uint64_t now_ps, int side,
			 uint32_t port)
{
	if (s->c.match_ps &&
	    (s->c.discipline == EDM_ASYNC || s->c.discipline == EDM_RESERVE)) {
		if (s->port[side][port].rival_count)
			sched_round_ask(s, now_ps, side, port);
		return;
	}
	switch (s->c.discipline) {
	case EDM_ASYNC:
		async_release(s, now_ps, side, port);
		return;
	case EDM_RESERVE:
		sched_reserve_try(s, now_ps, side, port);
		sched_reserve_settle(s, now_ps);
		return;
	case EDM_SLOT:
		return;
	case EDM_PIM:
		sched_pim_release(s, now_ps, side, port);
		return;
	}
}

void sched_match_tick(struct edm_sched *s, uint64_t now_ps)
{
	switch (s->c.discipline) {
	case EDM_SLOT:
		slot_tick(s, now_ps);
		return;
	case EDM_PIM:
		sched_pim_tick(s, now_ps);
		return;
	case EDM_ASYNC:
	case EDM_RESERVE:
		sched_round_tick(s, now_ps);
		return;
	}
}
