/* SPDX-License-Identifier: Apache-2.0 */
/* Litmus shapes: short programs of a few threads on two or three words, and all
 * ends that some order of their steps has. */
#ifndef AQ_PLAYS_MIND_LITMUS_H
#define AQ_PLAYS_MIND_LITMUS_H

#include "base/base.h"

enum {
	MIND_LITMUS_THREADS = 4,
	MIND_LITMUS_STEPS = 3, /* of a thread */
	MIND_LITMUS_VARS = 3,
	MIND_LITMUS_ROUNDS = 12,
	/* What an end is: the loads' values, then the words' last ones. */
	MIND_LITMUS_REGS =
		MIND_LITMUS_THREADS * MIND_LITMUS_STEPS + MIND_LITMUS_VARS,
};

struct mind_litmus_shape {
	const char *name;
	/* Of each thread: "Wx1" stores 1, "Rx" loads. */
	const char *threads[MIND_LITMUS_THREADS];
};

/* The last one's name is NULL. */
extern const struct mind_litmus_shape mind_litmus_shapes[];

struct mind_litmus_step {
	bool is_store;
	uint8_t var, value;
};

unsigned mind_litmus_threads(const struct mind_litmus_shape *s);
/* Fills up to MIND_LITMUS_STEPS; returns how many. */
unsigned mind_litmus_steps(const char *text, struct mind_litmus_step *out);
/* Whether the end is one of some order of the steps. Loads stand by thread and
 * step; registers of no load are 0. */
bool mind_litmus_allows(const struct mind_litmus_shape *s,
			const uint8_t end[MIND_LITMUS_REGS]);

/* A shape that is being played. */
struct mind_litmus {
	const struct mind_litmus_shape *shape; /* NULL: none */
	unsigned threads;
	unsigned round;
	unsigned arrived, finished;
	uint8_t end[MIND_LITMUS_REGS];
};

#endif
