/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of a function: windows and the stack. */
#ifndef AQ_WALKC_ACCESS_H
#define AQ_WALKC_ACCESS_H

#include "code.h"
#include "origin.h"

/* A function that is being translated, at c->at. */
struct walkc_maker {
	struct walkc_code *code;
	struct walkc_state *now;
};

/* An address: what a register holds, plus a constant. */
struct walkc_place {
	unsigned reg;
	int64_t off;
};

/* Where in a window it is: at `at`, or at `at` plus what `reg` holds. */
struct walkc_spot {
	bool has_reg;
	uint8_t reg;
	int64_t at;
};

/*
 * Makes sure that `bytes` bytes at a place lie in its window, if need be by an
 * instruction that ends the walk otherwise. `scratch` may be overwritten.
 */
int access_find(struct walkc_maker *m, struct walkc_place p, uint64_t bytes,
		unsigned scratch, struct walkc_spot *out) MUST_CHECK;

/* d = what is there; `bytes` is 1, 2, 4 or 8. */
int access_load(struct walkc_maker *m, unsigned d, struct walkc_place p,
		unsigned bytes) MUST_CHECK;
/* What `a` holds, which may be REG_VALUE, goes there. */
int access_store(struct walkc_maker *m, struct walkc_place p, unsigned a,
		 unsigned bytes) MUST_CHECK;

#endif
