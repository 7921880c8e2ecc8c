/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks on the memory of a host, as its NIC's engine executes them: an
 * iteration is one moment, and between two of them others have their turn. The
 * request and the answer themselves are not simulated.
 */
#ifndef AQ_RIG_WALKER_H
#define AQ_RIG_WALKER_H

#include "stage.h"
#include "walk/program.h"

struct rig_walker {
	struct rig_region *region;
	uint32_t iterations; /* that a walk may have */
	/* Before each iteration, and after the last; NULL: nothing. */
	void (*between)(void *ctx);
	void *ctx;
};

/* As aq_walk_run: 0, -ECANCELED, -EFAULT or -ELOOP. The pad has what the
 * program's has. */
int rig_walker_run(const struct rig_walker *w,
		   const struct walk_program *program, uint64_t start,
		   void *pad) MUST_CHECK;

#endif
