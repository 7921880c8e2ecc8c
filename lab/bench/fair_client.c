/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that measures: both tenants, in one thread, on one core that the
 * node has no part of. Each of them has half of its time, in slices that are
 * shorter than anybody notices. In windows without the flood the other half is
 * spent all the same, by doing nothing. So the one who works has the same
 * machine in both, no scheduler has a say in it, and whatever is less in the
 * flood is the node's doing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "fair.h"
#include "shield.h"
#include "ticks.h"

enum {
	WORK_DEPTH = 16,
	FLOOD_LINKS = 4, /* of each NIC */
	SETTLE_PART = 4, /* of a window, before it counts */
	REST_PART = 4,	 /* the same, after it */
};

#define SLICE_NS 10000ull
/* One step that took longer was not the step's time. */
#define STEP_MAX_NS 100000ull

struct client {
	const struct fair_plan *plan;
	struct fair_page *page;
	struct fair_nic work;
	struct fair_nic *flood;
	unsigned flood_at;
};

static int work_step(struct client *c, enum fair_kind kind, uint64_t *count)
{
	int n = fair_nic_step(&c->work, kind);

	*count += n > 0 ? (uint64_t)n : 0;
	return n < 0 ? n : 0;
}

static int flood_step(struct client *c, enum fair_kind kind, uint64_t *count)
{
	int n = 0;

	if (kind != FAIR_NOTHING)
		n = fair_nic_step(&c->flood[c->flood_at++ % c->plan->nics],
				  kind);
	*count += n > 0 ? (uint64_t)n : 0;
	return n < 0 ? n : 0;
}

/* Who is behind has the next slice, until it is as far ahead. */
static int take_turns(struct client *c, enum fair_kind work,
		      enum fair_kind flood, uint64_t length_ns,
		      uint64_t *elapsed_ns, uint64_t count[2])
{
	uint64_t used_ns[2] = {0}, now_ns = bench_now_ns();
	unsigned turn = 0;
	int err = 0;

	count[0] = count[1] = 0;
	while (!err && used_ns[0] + used_ns[1] < length_ns) {
		uint64_t then_ns = now_ns;

		err = turn ? flood_step(c, flood, &count[1])
			   : work_step(c, work, &count[0]);
		now_ns = bench_now_ns();
		used_ns[turn] += u64_min(now_ns - then_ns, STEP_MAX_NS);
		if (used_ns[turn] >= used_ns[!turn] + SLICE_NS)
			turn = !turn;
	}
	*elapsed_ns = used_ns[0] + used_ns[1];
	return err;
}

static int for_floods(struct client *c, enum fair_kind kind,
		      int (*fn)(struct fair_nic *nic, enum fair_kind kind))
{
	int err = 0;

	for (unsigned i = 0; i < c->plan->nics && !err; i++)
		err = fn(&c->flood[i], kind);
	return err;
}

static int run_window(struct client *c, const struct fair_pair *p,
		      bool is_flood, struct fair_round *r)
{
	enum fair_kind flood = is_flood ? p->flood : FAIR_NOTHING;
	uint64_t length_ns = c->plan->window_ms * 1000000ull, count[2];
	int err = 0;

	err = take_turns(c, p->work, flood, length_ns / SETTLE_PART,
			 &r->elapsed_ns[is_flood], count);
	if (!err)
		err = take_turns(c, p->work, flood, length_ns,
				 &r->elapsed_ns[is_flood], count);
	r->worked[is_flood] = count[0];
	if (is_flood)
		r->flooded = count[1];
	if (!err)
		err = fair_nic_drain(&c->work, p->work);
	if (!err && is_flood)
		err = for_floods(c, flood, fair_nic_drain);
	/* The kernel stops real-time threads that leave nothing to others. */
	(void)usleep(c->plan->window_ms * 1000 / REST_PART);
	return err;
}

static int run_pair(struct client *c, unsigned at)
{
	const struct fair_pair *p = &c->plan->pair[at];
	int err = for_floods(c, p->flood, fair_nic_begin);

	/* Real-time priority only while it is needed: see shield.h. */
	c->page->shield = shield_enter();
	if (c->page->shield == SHIELD_FIFO)
		(void)shield_enter_process(c->plan->node);
	for (unsigned i = 0; i < c->plan->rounds && !err; i++) {
		struct fair_round *r = &c->page->round[at][i];

		err = run_window(c, p, i % 2, r);
		if (!err)
			err = run_window(c, p, !(i % 2), r);
	}
	shield_leave_process(c->plan->node);
	shield_leave();
	return err;
}

/* Names say whose they are in the node's lists. */
static int open_all(struct client *c)
{
	int err = fair_nic_open(&c->work, "work", 1, WORK_DEPTH);
	char name[32];

	(void)setenv("AQUIFER_TOKEN", c->plan->token, 1);
	for (unsigned i = 0; i < c->plan->nics && !err; i++) {
		snprintf(name, sizeof(name), "flood-%u", i);
		c->flood[i].is_hostile = true;
		err = fair_nic_open(&c->flood[i], name, FLOOD_LINKS,
				    FAIR_DEPTH_MAX);
	}
	return err;
}

int fair_client(const struct fair_plan *plan, struct fair_page *page)
{
	struct client *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	if (!c)
		return err;
	c->plan = plan;
	c->page = page;
	c->flood = calloc(plan->nics, sizeof(*c->flood));
	/* Their other threads, too, must get a word in between. */
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	if (c->flood)
		err = open_all(c);
	for (unsigned i = 0; i < plan->pairs && !err; i++)
		if (!plan->only || strcmp(plan->only, plan->pair[i].name) == 0)
			err = run_pair(c, i);
	if (err)
		snprintf(page->why, sizeof(page->why), "%s", error_last());
	/* All ends with the process. */
	return err;
}
