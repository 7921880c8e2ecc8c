/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: scheduling, sleeping and waiting. The switch itself is in stack.c. */
#include "fiber.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_priv.h"
#include "stack.h"

struct sim_fiber {
	struct sim_event wake;
	struct sim *sim;
	struct sim_fiber *next; /* in sim->fibers */
	struct sim_fiber **prev;
	struct sim_fiber *wait_next;
	struct sim_wait *wait;
	const void *owner; /* NULL: nobody */
	bool notified;
	bool ended;
	const char *why;
	uint64_t since_ps;
	sim_fiber_fn fn;
	void *arg;
	struct stack stack;
	char name[SIM_FIBER_NAME_MAX];
};

static void unlink_fiber(struct sim_fiber *f)
{
	*f->prev = f->next;
	if (f->next)
		f->next->prev = f->prev;
}

static void reap(struct sim *sim)
{
	struct sim_fiber *f = sim->dead;

	sim->dead = NULL;
	stack_release(&f->stack);
	free(f);
}

static void __attribute__((noreturn)) leave(struct sim_fiber *f)
{
	f->ended = true;
	unlink_fiber(f);
	f->sim->dead = f;
	stack_exit(&f->stack);
}

static void fiber_main(void *arg)
{
	struct sim_fiber *f = arg;

	f->fn(f->arg);
	leave(f);
}

/* The wake event: continues the fiber until it stops or ends. */
static void resume(struct sim *sim, struct sim_event *ev)
{
	struct sim_fiber *f = container_of(ev, struct sim_fiber, wake);

	ASSERT(!sim->current);
	sim->current = f;
	stack_enter(&f->stack);
	sim->current = NULL;
	if (sim->dead)
		reap(sim);
}

static void suspend(struct sim_fiber *f, const char *why)
{
	f->why = why;
	f->since_ps = f->sim->now_ps;
	stack_leave(&f->stack);
	f->why = "nothing";
}

int sim_fiber_spawn_for(struct sim *sim, const void *owner, const char *name,
			sim_fiber_fn fn, void *arg)
{
	struct sim_fiber *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	err = stack_init(&f->stack, SIM_FIBER_STACK_BYTES, fiber_main, f);
	if (err) {
		free(f);
		return err;
	}
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->sim = sim;
	f->owner = owner;
	f->fn = fn;
	f->arg = arg;
	f->why = "to start";
	f->since_ps = sim->now_ps;
	f->next = sim->fibers;
	f->prev = &sim->fibers;
	if (f->next)
		f->next->prev = &f->next;
	sim->fibers = f;
	sim_event_init(&f->wake, resume);
	sim_schedule_in(sim, &f->wake, 0);
	return 0;
}

int sim_fiber_spawn(struct sim *sim, const char *name, sim_fiber_fn fn,
		    void *arg)
{
	return sim_fiber_spawn_for(sim, NULL, name, fn, arg);
}

bool sim_fiber_inside(const struct sim *sim)
{
	return sim->current != NULL;
}

unsigned sim_fiber_count(const struct sim *sim)
{
	unsigned n = 0;

	for (struct sim_fiber *f = sim->fibers; f; f = f->next)
		n++;
	return n;
}

bool sim_fibers_waiting(const struct sim *sim)
{
	return sim->fibers != NULL;
}

void sim_fiber_kill_all(struct sim *sim)
{
	ASSERT(!sim->current);
	while (sim->fibers) {
		struct sim_fiber *f = sim->fibers;

		sim_cancel(sim, &f->wake);
		unlink_fiber(f);
		sim->dead = f;
		reap(sim);
	}
}

void sim_fiber_sleep_ps(struct sim *sim, uint64_t delay_ps)
{
	struct sim_fiber *f = sim->current;

	ASSERT(f);
	f->wake.idle = false;
	sim_schedule_in(sim, &f->wake, delay_ps);
	suspend(f, "sleep");
}

void sim_fiber_sleep_ns(struct sim *sim, uint64_t delay_ns)
{
	sim_fiber_sleep_ps(sim, delay_ns * SIM_NS);
}

void sim_fiber_yield(struct sim *sim)
{
	sim_fiber_sleep_ps(sim, 0);
}

static void wait_remove(struct sim_fiber *f)
{
	struct sim_fiber **p = &f->wait->first;

	while (*p != f)
		p = &(*p)->wait_next;
	*p = f->wait_next;
	f->wait = NULL;
}

void sim_fiber_kill(struct sim *sim, const void *owner)
{
	struct sim_fiber *next;
	bool own = false;

	ASSERT(owner && !sim->dead);
	for (struct sim_fiber *f = sim->fibers; f; f = next) {
		next = f->next;
		if (f->owner != owner)
			continue;
		if (f == sim->current) {
			own = true;
			continue;
		}
		sim_cancel(sim, &f->wake);
		if (f->wait)
			wait_remove(f);
		unlink_fiber(f);
		sim->dead = f;
		reap(sim);
	}
	if (own)
		leave(sim->current);
}

bool sim_wait_for(struct sim *sim, struct sim_wait *w, uint64_t timeout_ps,
		  bool polls, const char *why)
{
	struct sim_fiber *f = sim->current;

	ASSERT(f);
	f->wait_next = w->first;
	f->wait = w;
	f->notified = false;
	w->first = f;
	f->wake.idle = polls;
	if (timeout_ps != UINT64_MAX)
		sim_schedule_in(sim, &f->wake, timeout_ps);
	suspend(f, why);
	if (f->wait)
		wait_remove(f);
	return f->notified;
}

void sim_wait_notify(struct sim *sim, struct sim_wait *w, uint64_t delay_ps)
{
	w->notify_count++;
	while (w->first) {
		struct sim_fiber *f = w->first;

		w->first = f->wait_next;
		f->wait = NULL;
		f->notified = true;
		sim_cancel(sim, &f->wake);
		f->wake.idle = false;
		sim_schedule_in(sim, &f->wake, delay_ps);
	}
}

void sim_fiber_report(const struct sim *sim, char *buf, size_t len_bytes)
{
	size_t at = 0;

	buf[0] = '\0';
	for (struct sim_fiber *f = sim->fibers; f; f = f->next) {
		int n = snprintf(buf + at, len_bytes - at,
				 "%s waits for %s since %" PRIu64 " ns\n",
				 f->name, f->why, f->since_ps / SIM_NS);

		if (n < 0 || (size_t)n >= len_bytes - at)
			return;
		at += (size_t)n;
	}
}
