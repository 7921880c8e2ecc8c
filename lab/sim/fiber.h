/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers: clients written in blocking style, run one at a time on the virtual
 * clock. A fiber runs until it sleeps or waits; then the event queue goes on.
 */
#ifndef AQ_SIM_FIBER_H
#define AQ_SIM_FIBER_H

#include "sim.h"

struct sim_fiber;
typedef void (*sim_fiber_fn)(void *arg);

enum {
	SIM_FIBER_NAME_MAX = 32,
	SIM_FIBER_STACK_BYTES = 256 << 10, /* plus a guard page */
};

/* The fiber starts at the current time, after the running event. */
int sim_fiber_spawn(struct sim *sim, const char *name, sim_fiber_fn fn,
		    void *arg) MUST_CHECK;

/* The same for a fiber that belongs to `owner`, a simulated process for
 * example; any pointer but NULL. */
int sim_fiber_spawn_for(struct sim *sim, const void *owner, const char *name,
			sim_fiber_fn fn, void *arg) MUST_CHECK;
/* Ends the owner's fibers wherever they are, as SIGKILL ends threads: the
 * caller gets their heap memory. Called by one of them, it does not return. */
void sim_fiber_kill(struct sim *sim, const void *owner);
/* All of them; from outside only. */
void sim_fiber_kill_all(struct sim *sim);

bool sim_fiber_inside(const struct sim *sim);	 /* called from a fiber? */
unsigned sim_fiber_count(const struct sim *sim); /* those that have not ended */

/* These may be called inside a fiber only. */
void sim_fiber_sleep_ps(struct sim *sim, uint64_t delay_ps);
void sim_fiber_sleep_ns(struct sim *sim, uint64_t delay_ns);
void sim_fiber_yield(struct sim *sim); /* runs what else is due now */

/* Fibers that wait for one thing. Embedded; all zeroes is empty. */
struct sim_wait {
	struct sim_fiber *first;
	uint64_t notify_count; /* how often it was notified so far */
};

/*
 * Waits until the next notification (true) or for timeout_ps (false;
 * UINT64_MAX: for ever). `why` is a literal, shown when everything is stuck.
 * `polls`: the timeout only makes the caller look again and does not count as
 * progress.
 */
bool sim_wait_for(struct sim *sim, struct sim_wait *w, uint64_t timeout_ps,
		  bool polls, const char *why);
/* Wakes every waiting fiber after delay_ps. */
void sim_wait_notify(struct sim *sim, struct sim_wait *w, uint64_t delay_ps);

/* One line per fiber: its name, what it waits for and since when. */
void sim_fiber_report(const struct sim *sim, char *buf, size_t len_bytes);

#endif
