/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of an application on two tiers, played in steps of a virtual clock. A
 * group stands for pages of one popularity, a single one where they are popular
 * and many where they are not; the policies are asked for each group, with that
 * many pages. In each step the load is solved for where pages are, some slow
 * pages are made to fault, those that fault are judged, and what moves loads
 * both memories in the next step.
 *
 * Visits to a page are taken to be independent of each other, so the time to
 * the next one is drawn from the exponential distribution of its rate.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "tfig.h"
#include "tfig_costs.h"

enum {
	GROUPS = 16384,
	SINGLES = 8192, /* groups of one page, of a Zipfian stream */
	STEP_MS = TIER_GUARD_WINDOW_MS,
	HAND_TRIES = 256, /* groups that the hand passes at most */
};

#define STEP_S (STEP_MS / 1e3)
#define THETA  0.99 /* of YCSB */

struct group {
	uint32_t rank;	 /* 0 is the most popular; of TFIG_LATEST the age */
	uint64_t number; /* of its first page, for placement */
	uint64_t pages;
	enum tier tier;
	double hand_s; /* when the hand was here */
};

struct pages {
	const struct tfig_pages_config *c;
	struct tfig_load load;
	struct group *group;
	double *weight; /* by rank; adds up to 1 */
	double all;	/* pages */
	uint64_t made;	/* numbers that were given to new ones */
	struct tier_fill top, slow;
	double share[TIER_KINDS];
	struct tier_promote promote;
	struct tier_guard guard;
	struct rng rng;
	double now_s;
	double scan_left, made_left; /* pages */
	uint32_t scan_at, hand_at;
	double slow_share; /* of the slow tier that is local, and the rest */
	/* Of one step, and of all that count. */
	double faults, moves;
	uint64_t top_bytes;
	struct tfig_pages_result sum;
	double judged, guarded, counted;
};

/* ---- popularity --------------------------------------------------------- */

/* The sum of r^-theta from rank `from`, counted from 1, to before `to`. */
static double zipf_sum(double from, double to)
{
	double sum = 0;

	if (to - from < 10000 && from < 2) {
		for (double r = from; r < to; r++)
			sum += pow(r, -THETA);
		return sum;
	}
	return (pow(to - 0.5, 1 - THETA) - pow(from - 0.5, 1 - THETA)) /
	       (1 - THETA);
}

/* Pages before rank i. A few single ones, then the same factor from each group
 * to the next; what is even, or ages, has groups of one size. */
static double rank_begin(const struct pages *p, uint32_t i)
{
	if (p->c->stream != TFIG_ZIPFIAN)
		return p->all / GROUPS * i;
	if (i <= SINGLES)
		return i;
	return SINGLES * pow(p->all / SINGLES,
			     (i - SINGLES) / (double)(GROUPS - SINGLES));
}

static void weigh(struct pages *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < GROUPS; i++) {
		double from = floor(rank_begin(p, i));
		double to = floor(rank_begin(p, i + 1));

		p->group[i].pages = (uint64_t)(to - from);
		p->weight[i] = p->c->stream == TFIG_EVEN
				       ? 1
				       : zipf_sum(1 + from, 1 + to);
		sum += p->weight[i];
	}
	for (uint32_t i = 0; i < GROUPS; i++)
		p->weight[i] /= sum;
}

static void share_out(struct pages *p)
{
	for (unsigned t = 0; t < TIER_KINDS; t++)
		p->share[t] = 0;
	for (uint32_t i = 0; i < GROUPS; i++)
		p->share[p->group[i].tier] += p->weight[p->group[i].rank];
}

/* ---- placement ---------------------------------------------------------- */

static void put(struct pages *p, struct group *g, enum tier t)
{
	p->top.pages += t == TIER_TOP ? g->pages : 0;
	p->slow.pages += t == TIER_SLOW ? g->pages : 0;
	g->tier = t;
}

static void take(struct pages *p, const struct group *g)
{
	p->top.pages -= g->tier == TIER_TOP ? g->pages : 0;
	p->slow.pages -= g->tier == TIER_SLOW ? g->pages : 0;
}

static void place(struct pages *p, struct group *g)
{
	if (rank_begin(p, g->rank) >= p->all * (1 - p->c->ssd_share))
		put(p, g, TIER_FAR);
	else
		put(p, g,
		    tier_place(&p->c->ratio, &p->top, &p->slow, g->number));
}

/* Popular pages are anywhere, so ranks and numbers do not go together. */
static void place_all(struct pages *p)
{
	for (uint32_t i = 0; i < GROUPS; i++) {
		p->group[i].rank = i;
		p->group[i].number = i;
	}
	for (uint32_t i = GROUPS - 1; i > 0; i--) {
		uint32_t k = (uint32_t)rng_below(&p->rng, i + 1);
		uint64_t number = p->group[k].number;

		p->group[k].number = p->group[i].number;
		p->group[i].number = number;
	}
	for (uint32_t i = 0; i < GROUPS; i++)
		place(p, &p->group[i]);
	share_out(p);
}

/* ---- movement ----------------------------------------------------------- */

static double visits_s(const struct pages *p, const struct group *g,
		       double ops_s)
{
	return ops_s * p->c->visits * p->weight[g->rank] / (double)g->pages;
}

static void move(struct pages *p, struct group *g, enum tier to)
{
	double w = p->weight[g->rank];

	p->share[g->tier] -= w;
	take(p, g);
	put(p, g, to);
	p->share[to] += w;
	p->moves += (double)g->pages;
}

/* The clock hand: a group that was visited since it came by stays. */
static void demote_one(struct pages *p, double ops_s)
{
	struct group *g = NULL;

	for (unsigned tries = 0; tries < GROUPS; tries++) {
		g = &p->group[p->hand_at];
		p->hand_at = (p->hand_at + 1) % GROUPS;
		if (g->tier != TIER_TOP)
			continue;
		if (tries >= HAND_TRIES ||
		    rng_double(&p->rng) <
			    exp(-visits_s(p, g, ops_s) *
				fmax(p->now_s - g->hand_s, STEP_S)))
			break;
		g->hand_s = p->now_s;
	}
	if (g && g->tier == TIER_TOP)
		move(p, g, tier_demote(TIER_TOP, &p->slow));
}

/* A page that is touched first while pages are promoted goes to the top node
 * although that is full, and the hand makes room, as the pager does it
 * (run/tiers.c) and the kernel. */
static void place_new(struct pages *p, struct group *g, double ops_s)
{
	struct tier_fill top = p->top;

	if (!p->c->is_promoted || !p->c->top_bytes) {
		place(p, g);
		return;
	}
	top.limit_pages += g->pages;
	put(p, g, tier_place(&p->c->ratio, &top, &p->slow, g->number));
	g->hand_s = p->now_s;
	for (unsigned i = 0; i < GROUPS && p->top.pages > p->top.limit_pages;
	     i++)
		demote_one(p, ops_s);
}

/* The oldest pages are given up, and their memory is taken by the newest. */
static void make_group(struct pages *p, double ops_s)
{
	struct group *newest = NULL;

	for (uint32_t i = 0; i < GROUPS; i++) {
		struct group *g = &p->group[i];

		g->rank = g->rank + 1 == GROUPS ? 0 : g->rank + 1;
		newest = g->rank ? newest : g;
	}
	take(p, newest);
	newest->number = p->made++;
	place_new(p, newest, ops_s);
	share_out(p);
}

static bool fits(const struct tier_fill *f, const struct group *g)
{
	return f->pages + g->pages <= f->limit_pages;
}

static bool has_room(const struct tier_fill *f)
{
	return f->pages <
	       f->limit_pages - f->limit_pages / tfig_costs.room_part;
}

/* A slow group is made to fault; what the policy says when it does. */
static void look_at(struct pages *p, struct group *g, double ops_s,
		    double round_s)
{
	double rate = visits_s(p, g, ops_s);
	double wait_s =
		rate > 0 ? -log(1 - rng_double(&p->rng)) / rate : INFINITY;
	struct tier_top top = {.has_room = has_room(&p->top),
			       .is_guarded = p->c->is_guarded &&
					     tier_guard_is_closed(&p->guard)};
	enum tier_verdict v;

	if (wait_s > round_s) /* it is looked at again before */
		return;
	p->faults += (double)g->pages;
	v = tier_promote_judge(&p->promote, (uint64_t)(p->now_s * 1e9),
			       (uint64_t)(wait_s * 1e9), g->pages, top);
	p->judged++;
	p->guarded += v == TIER_GUARDED;
	if (v != TIER_HOT)
		return;
	for (unsigned i = 0; i < GROUPS && !fits(&p->top, g); i++)
		demote_one(p, ops_s);
	if (fits(&p->top, g))
		move(p, g, TIER_TOP);
}

static void scan(struct pages *p, double ops_s)
{
	double bytes_s = (double)tfig_costs.scan_mb_s * 1e6 * p->c->processes;
	double slow_bytes =
		(double)p->slow.pages * (double)tfig_costs.page_bytes;
	uint32_t passed = 0;

	p->scan_left += bytes_s * STEP_S / (double)tfig_costs.page_bytes;
	for (; p->scan_left > 0 && passed < GROUPS; passed++) {
		struct group *g = &p->group[p->scan_at];

		p->scan_at = (p->scan_at + 1) % GROUPS;
		if (g->tier != TIER_SLOW)
			continue;
		p->scan_left -= (double)g->pages;
		look_at(p, g, ops_s, slow_bytes / bytes_s);
	}
	p->scan_left = fmin(p->scan_left, 0); /* nothing was left to look at */
}

/* ---- steps -------------------------------------------------------------- */

static void set_shares(struct pages *p)
{
	struct tfig_place *at = p->load.place;
	double near = p->share[TIER_TOP] + p->share[TIER_SLOW];
	double slow = near > 0 ? p->share[TIER_SLOW] / near : 0;

	/* What comes from SSD is read from main memory afterwards. */
	at[0].share = 1 - slow;
	at[1].share = slow * p->slow_share;
	at[2].share = slow * (1 - p->slow_share);
}

/* Pages that moved load both memories, and keep threads from their work. */
static void charge(struct pages *p)
{
	double gbs = p->moves * (double)tfig_costs.page_bytes / STEP_S / 1e9;
	double lost_s = (p->faults * (double)tfig_costs.fault_ps +
			 p->moves * (double)tfig_costs.migrate_ps) /
			1e12;

	p->load.place[0].more_gbs = gbs;
	p->load.place[1].more_gbs = gbs;
	p->load.overhead = fmin(lost_s / (STEP_S * p->load.threads), 0.95);
}

static void count(struct pages *p, const struct tfig_rate *r)
{
	struct tfig_pages_result *s = &p->sum;

	p->counted++;
	s->rate.ops_s += r->ops_s;
	for (unsigned i = 0; i < TFIG_PLACES; i++) {
		s->rate.gbs[i] += r->gbs[i];
		s->rate.ns[i] += r->ns[i];
	}
	s->top_share += p->load.place[0].share;
	s->promoted_mbs +=
		p->moves * (double)tfig_costs.page_bytes / STEP_S / 1e6;
	s->overhead += p->load.overhead;
	s->threshold_ms += (double)tier_promote_threshold_ns(&p->promote) / 1e6;
}

static void step(struct pages *p, bool is_counted)
{
	struct tfig_rate r;

	set_shares(p);
	tfig_load_solve(&p->load, &r);
	p->now_s += STEP_S;
	p->top_bytes += (uint64_t)(r.gbs[0] * 1e9 * STEP_S);
	tier_guard_count(&p->guard, (uint64_t)(p->now_s * 1e9), p->top_bytes);
	p->faults = p->moves = 0;
	if (p->c->is_promoted)
		scan(p, r.ops_s);
	p->made_left += r.ops_s * p->c->made * STEP_S;
	for (; p->made_left >= p->all / GROUPS; p->made_left -= p->all / GROUPS)
		make_group(p, r.ops_s);
	charge(p);
	if (is_counted)
		count(p, &r);
}

static void average(struct pages *p, struct tfig_pages_result *out)
{
	const double n = p->counted;

	*out = p->sum;
	out->rate.ops_s /= n;
	out->rate.op_ns = p->load.threads / out->rate.ops_s * 1e9;
	for (unsigned i = 0; i < TFIG_PLACES; i++) {
		out->rate.gbs[i] /= n;
		out->rate.ns[i] /= n;
	}
	out->top_share /= n;
	out->promoted_mbs /= n;
	out->overhead /= n;
	out->threshold_ms /= n;
	out->guarded = p->judged > 0 ? p->guarded / p->judged : 0;
}

static void begin(struct pages *p)
{
	const struct tfig_pages_config *c = p->c;
	const struct tier_promote_rule rule =
		tier_promote_rule_of(tfig_costs.promote_mb_s);
	double slow = p->load.place[1].share + p->load.place[2].share;

	p->all = (double)c->bytes / (double)tfig_costs.page_bytes;
	p->made = GROUPS;
	p->top.limit_pages = c->top_bytes ? c->top_bytes / tfig_costs.page_bytes
					  : UINT64_MAX;
	p->slow.limit_pages = UINT64_MAX;
	p->slow_share = slow > 0 ? p->load.place[1].share / slow : 1;
	tier_promote_init(&p->promote, &rule, 0);
	tier_guard_init(&p->guard, (uint64_t)(c->top_peak_gbs * 1e9));
	rng_init(&p->rng, c->seed);
	weigh(p);
	place_all(p);
	p->load.ssd_reads *= p->share[TIER_FAR];
}

int tfig_pages_run(const struct tfig_pages_config *c,
		   const struct tfig_load *load, struct tfig_pages_result *out)
{
	struct pages p = {.c = c, .load = *load};
	unsigned steps = (unsigned)fmax(c->seconds / STEP_S, 4);
	int err = 0;

	p.group = calloc(GROUPS, sizeof(*p.group));
	p.weight = calloc(GROUPS, sizeof(*p.weight));
	if (!p.group || !p.weight)
		err = error_set(-ENOMEM, "no memory for the pages");
	if (!err) {
		begin(&p);
		for (unsigned i = 0; i < steps; i++)
			step(&p, i >= steps / 4 * 3);
		average(&p, out);
	}
	free(p.group);
	free(p.weight);
	return err;
}
