/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's ground: a virtual clock, an event queue, seeded randomness
 * and the trace hash, all in one object, so that any number of simulations can
 * exist in one process. A simulation belongs to one thread. Fibers, links and
 * hosts are in headers of their own.
 */
#ifndef AQ_SIM_H
#define AQ_SIM_H

#include "base/base.h"
#include "base/rng.h"

#define SIM_NS UINT64_C(1000) /* picoseconds in these units */
#define SIM_US (1000 * SIM_NS)
#define SIM_MS (1000 * SIM_US)
#define SIM_S  (1000 * SIM_MS)

struct sim;
struct sim_event;
typedef void (*sim_event_fn)(struct sim *sim, struct sim_event *ev);

/* Embedded in its owner, which fn finds with container_of. */
struct sim_event {
	sim_event_fn fn;
	uint32_t slot; /* 1 + place in the heap; 0: not scheduled */
	bool idle;     /* only polls: a simulation with nothing else is stuck */
};

enum sim_end {
	SIM_END_TIME = 1, /* the time limit was reached */
	SIM_END_EMPTY,	  /* no event left and no fiber waiting */
	SIM_END_STUCK,	  /* fibers wait, and nothing can ever wake them */
	SIM_END_STOPPED,  /* sim_stop was called */
};

int sim_create(uint64_t seed, struct sim **out) MUST_CHECK;
/* Fibers that have not ended are abandoned: their stacks are freed, their heap
 * memory is left to the caller. Events still scheduled are forgotten. */
void sim_destroy(struct sim *sim);

uint64_t sim_seed(const struct sim *sim);
uint64_t sim_now_ps(const struct sim *sim); /* never 0 */
uint64_t sim_now_ns(const struct sim *sim);
uint64_t sim_event_count(const struct sim *sim); /* events run so far */

static inline void sim_event_init(struct sim_event *ev, sim_event_fn fn)
{
	*ev = (struct sim_event){.fn = fn};
}

static inline bool sim_event_is_set(const struct sim_event *ev)
{
	return ev->slot != 0;
}

/* Schedules or moves an event; a time in the past means now. Events of one
 * time run in the order in which they were scheduled. */
void sim_schedule_at(struct sim *sim, struct sim_event *ev, uint64_t time_ps);
void sim_schedule_in(struct sim *sim, struct sim_event *ev, uint64_t delay_ps);
void sim_cancel(struct sim *sim, struct sim_event *ev);

/* Runs the earliest event; false when there is none. */
bool sim_run_next(struct sim *sim);
/* Runs everything up to and including time_ps, then sets the clock to it
 * (SIM_END_TIME), unless another end comes first. */
enum sim_end sim_run_until(struct sim *sim, uint64_t time_ps);
/* Makes the running sim_run_until return after the current event. */
void sim_stop(struct sim *sim);

/* How long a simulation may have nothing but polling fibers before it counts
 * as stuck. */
void sim_set_stuck_ps(struct sim *sim, uint64_t stuck_ps);

/* ---- randomness --------------------------------------------------------- */

/*
 * A generator (base/rng.h) of its own for each part of a simulation. Streams of
 * one seed are independent of each other. Streams and the draws below differ
 * from those of rng.h: a seed's hash, which names a finding, depends on which
 * numbers it draws and how many.
 */
void sim_rand_init(struct rng *r, uint64_t seed, uint64_t stream);

/* 0 .. n - 1; n is at least 1. */
static inline uint32_t sim_rand_below(struct rng *r, uint32_t n)
{
	return (uint32_t)(((rng_u64(r) >> 32) * n) >> 32);
}

/* a .. b, both included. */
static inline uint32_t sim_rand_range(struct rng *r, uint32_t a, uint32_t b)
{
	return a + sim_rand_below(r, b - a + 1);
}

static inline bool sim_rand_chance(struct rng *r, uint32_t ppm)
{
	return ppm != 0 && sim_rand_below(r, 1000000) < ppm;
}

/* ---- the trace hash ----------------------------------------------------- */

enum sim_note {
	SIM_NOTE_FRAME = 1,
	SIM_NOTE_COMPLETION,
	SIM_NOTE_OTHER,
};

/* Adds the time, the kind and the bytes to the hash. */
void sim_note(struct sim *sim, enum sim_note kind, const void *data,
	      size_t len_bytes);
uint64_t sim_trace_hash(const struct sim *sim);

#endif
