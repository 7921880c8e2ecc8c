/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue and the virtual clock: a 4-ary heap of embedded events. */
#include <errno.h>
#include <stdlib.h>

#include "fiber.h"
#include "sim_priv.h"

enum {
	ARITY = 4,
	CAPACITY_FIRST = 1024,
};

#define START_PS (1 * SIM_MS) /* the clock's zero means "never" to others */

int sim_create(uint64_t seed, struct sim **out)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	if (!sim)
		return -ENOMEM;
	sim->heap = malloc(CAPACITY_FIRST * sizeof(*sim->heap));
	if (!sim->heap) {
		free(sim);
		return -ENOMEM;
	}
	sim->capacity = CAPACITY_FIRST;
	sim->seed = seed;
	sim->now_ps = START_PS;
	sim->busy_ps = START_PS;
	sim->stuck_ps = 10 * SIM_S;
	sim->hash = seed ^ 0x9e3779b97f4a7c15ull;
	*out = sim;
	return 0;
}

void sim_destroy(struct sim *sim)
{
	if (!sim)
		return;
	sim_fiber_kill_all(sim);
	free(sim->heap);
	free(sim);
}

uint64_t sim_seed(const struct sim *sim)
{
	return sim->seed;
}

uint64_t sim_now_ps(const struct sim *sim)
{
	return sim->now_ps;
}

uint64_t sim_now_ns(const struct sim *sim)
{
	return sim->now_ps / SIM_NS;
}

uint64_t sim_event_count(const struct sim *sim)
{
	return sim->run_count;
}

void sim_set_stuck_ps(struct sim *sim, uint64_t stuck_ps)
{
	sim->stuck_ps = stuck_ps;
}

static bool before(const struct sim_entry *a, const struct sim_entry *b)
{
	return a->time_ps != b->time_ps ? a->time_ps < b->time_ps
					: a->order < b->order;
}

static void put(struct sim *sim, uint32_t i, struct sim_entry e)
{
	sim->heap[i] = e;
	e.ev->slot = i + 1;
}

static void sift_up(struct sim *sim, uint32_t i, struct sim_entry e)
{
	while (i) {
		uint32_t parent = (i - 1) / ARITY;

		if (!before(&e, &sim->heap[parent]))
			break;
		put(sim, i, sim->heap[parent]);
		i = parent;
	}
	put(sim, i, e);
}

static void sift_down(struct sim *sim, uint32_t i, struct sim_entry e)
{
	for (;;) {
		uint32_t first = i * ARITY + 1;
		uint32_t best = first;

		if (first >= sim->count)
			break;
		for (uint32_t c = first + 1;
		     c < first + ARITY && c < sim->count; c++) {
			if (before(&sim->heap[c], &sim->heap[best]))
				best = c;
		}
		if (!before(&sim->heap[best], &e))
			break;
		put(sim, i, sim->heap[best]);
		i = best;
	}
	put(sim, i, e);
}

static void take_out(struct sim *sim, uint32_t i)
{
	struct sim_entry last = sim->heap[--sim->count];

	sim->heap[i].ev->slot = 0;
	if (i == sim->count)
		return;
	if (i && before(&last, &sim->heap[(i - 1) / ARITY]))
		sift_up(sim, i, last);
	else
		sift_down(sim, i, last);
}

void sim_cancel(struct sim *sim, struct sim_event *ev)
{
	if (!ev->slot)
		return;
	sim->idle_count -= ev->idle;
	take_out(sim, ev->slot - 1);
}

void sim_schedule_at(struct sim *sim, struct sim_event *ev, uint64_t time_ps)
{
	struct sim_entry e = {u64_max(time_ps, sim->now_ps), sim->order++, ev};

	sim_cancel(sim, ev);
	if (sim->count == sim->capacity) {
		/* A simulation without memory has no way to go on. */
		sim->capacity *= 2;
		sim->heap =
			realloc(sim->heap, sim->capacity * sizeof(*sim->heap));
		ASSERT(sim->heap);
	}
	sim->idle_count += ev->idle;
	sift_up(sim, sim->count++, e);
}

void sim_schedule_in(struct sim *sim, struct sim_event *ev, uint64_t delay_ps)
{
	sim_schedule_at(sim, ev, sim->now_ps + delay_ps);
}

bool sim_run_next(struct sim *sim)
{
	struct sim_entry e;

	if (!sim->count)
		return false;
	e = sim->heap[0];
	take_out(sim, 0);
	sim->now_ps = e.time_ps;
	sim->run_count++;
	if (e.ev->idle)
		sim->idle_count--;
	else
		sim->busy_ps = e.time_ps;
	e.ev->fn(sim, e.ev);
	return true;
}

void sim_stop(struct sim *sim)
{
	sim->stopped = true;
}

enum sim_end sim_run_until(struct sim *sim, uint64_t time_ps)
{
	sim->stopped = false;
	while (!sim->stopped) {
		if (!sim->count)
			return sim_fibers_waiting(sim) ? SIM_END_STUCK
						       : SIM_END_EMPTY;
		if (sim->count == sim->idle_count &&
		    sim->heap[0].time_ps > sim->busy_ps + sim->stuck_ps)
			return SIM_END_STUCK;
		if (sim->heap[0].time_ps > time_ps) {
			sim->now_ps = u64_max(sim->now_ps, time_ps);
			return SIM_END_TIME;
		}
		sim_run_next(sim);
	}
	return SIM_END_STOPPED;
}
