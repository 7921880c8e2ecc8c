/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three ways of deciding which message gets a free port: asynchronous as in the
 * paper, slot-aligned, and reservation. The keys of all heads are distinct, so
 * "best" is never ambiguous.
 */
#include "sched_priv.h"

static int other(int side)
{
	return side == SCHED_SRC ? SCHED_DST : SCHED_SRC;
}

static void grant_at(struct edm_sched *s, uint64_t now_ps, int side,
		     uint32_t port, uint32_t peer)
{
	if (side == SCHED_SRC)
		sched_grant(s, now_ps, port, peer);
	else
		sched_grant(s, now_ps, peer, port);
}

/* ---- asynchronous ---------------------------------------------------------
 */

static void async_release(struct edm_sched *s, uint64_t now_ps, int side,
			  uint32_t port)
{
	const struct sched_port *p = &s->port[side][port];
	const struct sched_port *peers = s->port[other(side)];
	uint64_t best = SCHED_NO_KEY;
	uint32_t peer = 0;

	for (uint32_t i = 0; i < p->rival_count; i++) {
		const struct sched_rival *r = &p->rival[i];

		if (r->key < best && peers[r->peer].free_ps <= now_ps) {
			best = r->key;
			peer = r->peer;
		}
	}
	if (best != SCHED_NO_KEY)
		grant_at(s, now_ps, side, port, peer);
}

/* ---- reservation -----------------------------------------------------------
 */

/* Until when a free port must be left for a message that is the best at both of
 * its ports and waits for the other one; 0 when it may be given away. */
static uint64_t reserved_until(struct edm_sched *s, int side, uint32_t port,
			       uint64_t now_ps, uint32_t *peer)
{
	struct sched_port *p = &s->port[side][port];
	struct sched_port *q;

	if (!p->rival_count)
		return 0;
	*peer = p->rival[sched_top(p)].peer;
	q = &s->port[other(side)][*peer];
	if (q->rival[sched_top(q)].peer != port || q->free_ps <= now_ps)
		return 0;
	return q->free_ps;
}

static bool may_use(struct edm_sched *s, int side, uint32_t port, uint32_t peer,
		    uint64_t now_ps, uint64_t end_ps)
{
	uint32_t top;
	uint64_t until = reserved_until(s, side, port, now_ps, &top);

	return !until || top == peer || end_ps <= until;
}

/* The best message of this port that may go now. */
static bool reserve_try(struct edm_sched *s, uint64_t now_ps, int side,
			uint32_t port)
{
	struct sched_port *p = &s->port[side][port];
	const struct sched_port *peers = s->port[other(side)];
	uint64_t floor = 0;

	for (;;) {
		uint64_t best = SCHED_NO_KEY;
		uint32_t peer = 0, src, dst;
		uint64_t end_ps;

		for (uint32_t i = 0; i < p->rival_count; i++) {
			const struct sched_rival *r = &p->rival[i];

			if (r->key >= floor && r->key < best &&
			    peers[r->peer].free_ps <= now_ps) {
				best = r->key;
				peer = r->peer;
			}
		}
		if (best == SCHED_NO_KEY)
			return false;
		src = side == SCHED_SRC ? port : peer;
		dst = side == SCHED_SRC ? peer : port;
		end_ps = now_ps +
			 sched_chunk_blocks(s, src, dst) * s->c.block_ps;
		if (may_use(s, side, port, peer, now_ps, end_ps) &&
		    may_use(s, other(side), peer, port, now_ps, end_ps)) {
			s->stats.backfills +=
				p->rival[sched_top(p)].peer != peer;
			sched_grant(s, now_ps, src, dst);
			return true;
		}
		floor = best + 1;
	}
}

/* ---- slots ------------------------------------------------------------------
 */

static uint64_t slot_ps(const struct edm_sched *s)
{
	return s->c.slot_blocks * s->c.block_ps;
}

static void slot_ask(struct edm_sched *s, uint64_t now_ps)
{
	uint64_t slot = slot_ps(s);

	if (s->ticking)
		return;
	s->ticking = true;
	s->c.wake(s->c.owner, (now_ps + slot - 1) / slot * slot,
		  SCHED_TOKEN_TICK);
}

static bool best_unmatched(struct edm_sched *s, int side, uint32_t port,
			   uint32_t *peer)
{
	const struct sched_port *p = &s->port[side][port];
	const struct sched_port *peers = s->port[other(side)];
	uint64_t best = SCHED_NO_KEY;

	for (uint32_t i = 0; i < p->rival_count; i++) {
		if (p->rival[i].key < best &&
		    !peers[p->rival[i].peer].matched) {
			best = p->rival[i].key;
			*peer = p->rival[i].peer;
		}
	}
	return best != SCHED_NO_KEY;
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
			uint32_t src, back;

			if (s->port[SCHED_DST][d].matched ||
			    !best_unmatched(s, SCHED_DST, d, &src) ||
			    !best_unmatched(s, SCHED_SRC, src, &back) ||
			    back != d)
				continue;
			s->port[SCHED_DST][d].matched = true;
			s->port[SCHED_SRC][src].matched = true;
			s->round[count] = (uint16_t)src;
			s->later[count++] = (uint16_t)d;
			more = true;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		sched_grant(s, now_ps, s->round[i], s->later[i]);
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
	slot_match(s, now_ps);
	if (s->backlog)
		slot_ask(s, now_ps + 1);
}

/* ---- one interface
 * ----------------------------------------------------------- */

void sched_match_arrival(struct edm_sched *s, uint64_t now_ps, uint32_t src,
			 uint32_t dst)
{
	switch (s->c.discipline) {
	case EDM_ASYNC:
		if (sched_free(s, SCHED_SRC, src, now_ps) &&
		    sched_free(s, SCHED_DST, dst, now_ps))
			sched_grant(s, now_ps, src, dst);
		return;
	case EDM_RESERVE:
		if (sched_free(s, SCHED_SRC, src, now_ps) &&
		    sched_free(s, SCHED_DST, dst, now_ps))
			(void)reserve_try(s, now_ps, SCHED_DST, dst);
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
	switch (s->c.discipline) {
	case EDM_ASYNC:
		async_release(s, now_ps, side, port);
		return;
	case EDM_RESERVE:
		(void)reserve_try(s, now_ps, side, port);
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
	if (s->c.discipline == EDM_SLOT)
		slot_tick(s, now_ps);
	else
		sched_pim_tick(s, now_ps);
}
