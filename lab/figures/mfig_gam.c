/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rival like GAM: a library that every access goes through, with a directory
 * of each page at its home machine. A model: messages are time, and a home's
 * handler and a machine's lock are busy for theirs. Stores do not wait for
 * their page, as GAM's do not.
 */
#include <errno.h>
#include <stdlib.h>

#include "mfig_priv.h"

struct mfig_gam {
	uint16_t *sharers;
	uint8_t *owner; /* 1 + machine; 0: nobody's */
};

int mfig_gam_start(struct mfig *f)
{
	int err = 0;

	f->gam = calloc(1, sizeof(*f->gam));
	if (!f->gam)
		return -ENOMEM;
	f->gam->sharers = calloc(f->cfg->pages, sizeof(*f->gam->sharers));
	f->gam->owner = calloc(f->cfg->pages, sizeof(*f->gam->owner));
	if (!f->gam->sharers || !f->gam->owner)
		return -ENOMEM;
	for (unsigned i = 0; !err && i < f->cfg->machines; i++)
		err = mfig_fifo_init(&f->machine[i].fifo, f->cfg->pages);
	return err;
}

void mfig_gam_stop(struct mfig *f)
{
	if (!f->gam)
		return;
	free(f->gam->sharers);
	free(f->gam->owner);
	free(f->gam);
	f->gam = NULL;
}

/* Books time of something that serves one at a time; when it ends. */
static uint64_t book(uint64_t *free_ps, uint64_t now_ps, uint64_t work_ps)
{
	*free_ps = u64_max(*free_ps, now_ps) + work_ps;
	return *free_ps;
}

/* A message that arrives at a machine, and what its handler does. */
static uint64_t message(struct mfig_machine *to, uint64_t at_ps)
{
	return book(&to->handler_ps,
		    at_ps + mfig_costs.gam_message_ps -
			    mfig_costs.gam_handler_ps,
		    mfig_costs.gam_handler_ps);
}

static void drop(struct mfig_machine *m, uint32_t page)
{
	struct mfig_gam *g = m->f->gam;

	g->sharers[page] &= (uint16_t) ~(1u << m->number);
	if (g->owner[page] == m->number + 1)
		g->owner[page] = 0;
	m->cached--;
}

static void make_room(struct mfig_machine *m)
{
	uint32_t page;

	while (m->cached > m->f->cfg->cache_pages &&
	       mfig_fifo_pop(&m->fifo, &page))
		if (m->f->gam->sharers[page] >> m->number & 1)
			drop(m, page);
}

/* By the home to all who must give something up, and back. */
static uint64_t recall(struct mfig_machine *m, struct mfig_machine *home,
		       uint32_t page, bool writes, uint64_t at_ps)
{
	struct mfig *f = m->f;
	struct mfig_gam *g = f->gam;
	uint64_t end_ps = at_ps;

	for (unsigned i = 0; i < f->cfg->machines; i++) {
		struct mfig_machine *other = &f->machine[i];
		bool has = g->sharers[page] >> i & 1;

		if (other == m || !has || (!writes && g->owner[page] != i + 1))
			continue;
		f->res->invals++;
		if (other != home)
			end_ps = u64_max(end_ps,
					 message(home, message(other, at_ps)));
		if (writes)
			drop(other, page);
	}
	return end_ps;
}

/* Fetches the page; returns when it is here. */
static uint64_t fetch(struct mfig_machine *m, uint32_t page, bool writes)
{
	struct mfig *f = m->f;
	struct mfig_gam *g = f->gam;
	struct mfig_machine *home = &f->machine[page % f->cfg->machines];
	uint64_t at_ps = mfig_now_ps(f);

	if (home != m)
		at_ps = message(home, at_ps);
	at_ps = recall(m, home, page, writes, at_ps);
	if (home != m)
		at_ps = message(m, at_ps);
	m->cached += !(g->sharers[page] >> m->number & 1);
	mfig_fifo_push(&m->fifo, page);
	g->sharers[page] |= (uint16_t)(1u << m->number);
	g->owner[page] = writes ? (uint8_t)(m->number + 1) : 0;
	make_room(m);
	return at_ps;
}

/* The library's part of the accesses, with its lock. */
static void call_library(struct mfig_thread *t, const struct mfig_step *s)
{
	uint64_t call_ps = s->accesses * mfig_costs.access_ps *
			   mfig_costs.gam_access_factor;
	uint64_t lock_ps = call_ps * mfig_costs.gam_lock_permille / 1000;
	uint64_t end_ps;

	/* The step's own time is added by the caller. */
	t->owed_ps += call_ps - lock_ps - s->accesses * mfig_costs.access_ps;
	mfig_thread_pay(t);
	end_ps = book(&t->m->busy_ps, mfig_now_ps(t->f), lock_ps);
	sim_fiber_sleep_ps(t->f->sim, end_ps - mfig_now_ps(t->f));
}

void mfig_gam_step(struct mfig_thread *t, const struct mfig_step *s)
{
	struct mfig_gam *g = t->f->gam;
	uint32_t number = t->m->number;
	bool has = g->sharers[s->page] >> number & 1;
	uint64_t at_ps;

	call_library(t, s);
	if (has && (!s->writes || g->owner[s->page] == number + 1))
		return;
	t->f->misses++;
	t->f->res->gets++;
	at_ps = fetch(t->m, s->page, s->writes);
	if (!s->writes && at_ps > mfig_now_ps(t->f))
		sim_fiber_sleep_ps(t->f->sim, at_ps - mfig_now_ps(t->f));
}
