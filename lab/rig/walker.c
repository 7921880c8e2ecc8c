/* SPDX-License-Identifier: Apache-2.0 */
/* Walks on the memory of a host. */
#include "walker.h"

#include <errno.h>

static void pause_for(const struct rig_walker *w)
{
	if (w->between)
		w->between(w->ctx);
}

int rig_walker_run(const struct rig_walker *w,
		   const struct walk_program *program, uint64_t start,
		   void *pad)
{
	const struct walk_image *image = walk_program_image(program);
	const uint64_t room = w->region->size_bytes;
	enum walk_step step = WALK_STEP_NEXT;
	uint64_t at = start;

	for (uint32_t i = 0; i < w->iterations && step == WALK_STEP_NEXT; i++) {
		uint64_t window = at + (uint64_t)(int64_t)image->load_lo;

		pause_for(w);
		if (window > room || image->load_bytes > room - window)
			step = WALK_STEP_FAULT;
		else
			step = walk_program_step(
				program, w->region->mem + window, pad, &at);
	}
	pause_for(w);
	switch (step) {
	case WALK_STEP_DONE:
		return 0;
	case WALK_STEP_FAIL:
		return -ECANCELED;
	case WALK_STEP_FAULT:
		return -EFAULT;
	case WALK_STEP_NEXT:
		break;
	}
	return -ELOOP;
}
