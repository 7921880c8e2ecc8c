/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of a simulated host's chains. */
#include "chain_clock.h"

#include <stdlib.h>

/* A queue that pauses. */
struct chain_due {
	struct sim_event ev;
	struct sim_chain_clock *clock;
	struct chain_due *next_free;
	struct chain_due *next;
	uint32_t qpn;
};

static void on_due(struct sim *sim, struct sim_event *ev)
{
	struct chain_due *d = container_of(ev, struct chain_due, ev);
	struct sim_chain_clock *c = d->clock;

	d->next_free = c->free;
	c->free = d;
	c->resume(c->host, d->qpn);
}

static struct chain_due *take(struct sim_chain_clock *c)
{
	struct chain_due *d = c->free;

	if (d) {
		c->free = d->next_free;
		return d;
	}
	d = calloc(1, sizeof(*d));
	ASSERT(d); /* as for every event of the simulator */
	sim_event_init(&d->ev, on_due);
	d->clock = c;
	d->next = c->all;
	c->all = d;
	return d;
}

static bool may_go(void *ctx, const struct nic_chain_step *step)
{
	struct sim_chain_clock *c = ctx;
	uint64_t ready_ps =
		c->model->chain_ready_ps(c->model->ctx, c->host, step);
	struct chain_due *d;

	if (ready_ps <= sim_now_ps(c->sim))
		return true;
	d = take(c);
	d->qpn = step->qpn;
	sim_schedule_at(c->sim, &d->ev, ready_ps);
	return false;
}

void sim_chain_clock_init(struct sim_chain_clock *c)
{
	c->clock = (struct nic_chain_clock){.may_go = may_go, .ctx = c};
}

void sim_chain_clock_release(struct sim_chain_clock *c)
{
	while (c->all) {
		struct chain_due *d = c->all;

		c->all = d->next;
		sim_cancel(c->sim, &d->ev);
		free(d);
	}
	c->free = NULL;
}
