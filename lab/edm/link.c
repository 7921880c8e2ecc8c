/* SPDX-License-Identifier: Apache-2.0 */
/* The transmitter of an EDM link at block granularity. */
#include "edm_link.h"

uint64_t edm_wire_data(struct edm_wire *w, const struct edm_wire_env *env,
		       uint64_t now_ps, uint32_t blocks, uint64_t *end_ps)
{
	uint64_t start_ps;

	if (w->pipe.busy_ps <= now_ps)
		now_ps += edm_wire_frame_wait(env);
	start_ps = edm_pipe_send(&w->pipe, now_ps, blocks * env->block_ps);
	w->last_ps = blocks * env->block_ps;
	*end_ps = w->pipe.busy_ps;
	w->end_ps = end_ps;
	return start_ps;
}

/* Puts length_ps in front of what waits and moves the end of that. */
static uint64_t slip_in(struct edm_wire *w, uint64_t at_ps, uint64_t length_ps)
{
	uint64_t start_ps = u64_max(at_ps, w->control_ps);

	w->control_ps = start_ps + length_ps;
	if (start_ps < w->pipe.busy_ps && w->end_ps &&
	    *w->end_ps == w->pipe.busy_ps)
		*w->end_ps += length_ps;
	w->pipe.busy_ps = u64_max(w->pipe.busy_ps, start_ps) + length_ps;
	return start_ps;
}

uint64_t edm_wire_request(struct edm_wire *w, const struct edm_wire_env *env,
			  uint64_t now_ps, uint32_t blocks)
{
	uint64_t wait_ps = 0;

	if (w->pipe.busy_ps <= now_ps)
		wait_ps = edm_wire_frame_wait(env);
	else if (w->last_ps)
		/* What is left of the block in transmission, or of the
		 * message, when those behind it are as long as the last. */
		wait_ps = (w->pipe.busy_ps - now_ps) %
			  (env->nest ? env->block_ps : w->last_ps);
	return slip_in(w, now_ps + wait_ps, blocks * env->block_ps);
}

uint64_t edm_wire_control(struct edm_wire *w, const struct edm_wire_env *env,
			  uint64_t now_ps)
{
	uint64_t wait_ps = w->pipe.busy_ps <= now_ps
				   ? edm_wire_frame_wait(env)
				   : (w->pipe.busy_ps - now_ps) % env->block_ps;

	return slip_in(w, now_ps + wait_ps, env->block_ps);
}
