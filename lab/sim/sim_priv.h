/* SPDX-License-Identifier: Apache-2.0 */
/* What the event queue and the fibers know of each other. */
#ifndef AQ_SIM_PRIV_H
#define AQ_SIM_PRIV_H

#include "sim.h"

struct sim_fiber;

struct sim_entry {
	uint64_t time_ps;
	uint64_t order; /* breaks ties: first scheduled, first run */
	struct sim_event *ev;
};

struct sim {
	uint64_t now_ps;
	uint64_t order;
	uint64_t seed;
	uint64_t run_count;
	struct sim_entry *heap; /* 4-ary: its children share a cache line */
	uint32_t count;
	uint32_t capacity;
	uint32_t idle_count; /* of them, events that only poll */
	uint64_t busy_ps;    /* last time a real event ran */
	uint64_t stuck_ps;
	bool stopped;
	uint64_t hash;

	/* Fibers; owned by fiber.c. */
	struct sim_fiber *fibers;
	struct sim_fiber *current;
	struct sim_fiber *dead; /* its stack is still in use by the switch */
};

/* True while some fiber has not ended. */
bool sim_fibers_waiting(const struct sim *sim);

#endif
