/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transmitter of an EDM link at block granularity. Frames come by chance,
 * at their share of the link; what memory leaves idle carries them. Where both
 * wait, fairness gives them every other block, so memory takes up to twice as
 * long; if memory goes first, it waits for the block that has begun, and the
 * frames wait for all of it.
 */
#include "edm_link.h"

#include <math.h>

#include "edm_constants.h"

/* ---- frames -------------------------------------------------------------- */

static uint64_t frame_ps(const struct edm_wire_env *env)
{
	return EDM_IP_FRAME_BYTES * env->block_ps / 8;
}

static uint64_t gap_ps(const struct edm_wire_env *env)
{
	double mean = (double)frame_ps(env) * 1e6 / env->ip_load_ppm;

	return (uint64_t)(-log(1 - rng_double(env->rng)) * mean);
}

/* Counts the frames that came until then. */
static void frames_come(struct edm_frames *f, const struct edm_wire_env *env,
			uint64_t until_ps)
{
	while (f->next_ps <= until_ps) {
		f->waiting_ps += frame_ps(env);
		f->next_ps += gap_ps(env);
	}
}

/* Memory sends nothing until then. */
static void frames_flow(struct edm_wire *w, const struct edm_wire_env *env,
			uint64_t until_ps)
{
	struct edm_frames *f = &w->frames;

	if (!env->ip_load_ppm)
		return;
	if (!f->started) {
		f->started = true;
		f->at_ps = until_ps;
		f->next_ps = until_ps + gap_ps(env);
	}
	while (f->at_ps < until_ps) {
		uint64_t stop_ps, sent_ps;

		frames_come(f, env, f->at_ps);
		stop_ps = u64_min(until_ps, f->next_ps);
		sent_ps = u64_min(f->waiting_ps, stop_ps - f->at_ps);
		f->waiting_ps -= sent_ps;
		f->sent_ps += sent_ps;
		f->at_ps = stop_ps;
	}
	frames_come(f, env, until_ps);
}

/* A block of a frame that has begun is finished first. */
static uint64_t frame_wait(const struct edm_wire *w,
			   const struct edm_wire_env *env)
{
	return env->ip_load_ppm && w->frames.waiting_ps
		       ? rng_below(env->rng, env->block_ps)
		       : 0;
}

/* What frames take while memory sends so much from start_ps on. */
static uint64_t frames_between(struct edm_wire *w,
			       const struct edm_wire_env *env,
			       uint64_t start_ps, uint64_t length_ps)
{
	struct edm_frames *f = &w->frames;
	uint64_t taken_ps = 0;

	if (!env->ip_load_ppm)
		return 0;
	if (env->ip_policy == EDM_IP_FAIR) {
		frames_come(f, env, start_ps + length_ps);
		taken_ps = u64_min(f->waiting_ps, length_ps);
		taken_ps -= taken_ps % env->block_ps;
		f->waiting_ps -= taken_ps;
		f->sent_ps += taken_ps;
	}
	f->at_ps = u64_max(f->at_ps, start_ps + length_ps + taken_ps);
	return taken_ps;
}

uint64_t edm_wire_frames_ps(struct edm_wire *w, const struct edm_wire_env *env,
			    uint64_t now_ps)
{
	frames_flow(w, env, now_ps);
	return w->frames.sent_ps;
}

/* ---- memory -------------------------------------------------------------- */

uint64_t edm_wire_data(struct edm_wire *w, const struct edm_wire_env *env,
		       uint64_t now_ps, uint32_t blocks, uint64_t *end_ps)
{
	uint64_t length_ps = blocks * env->block_ps, start_ps;

	start_ps = u64_max(now_ps, w->pipe.busy_ps);
	frames_flow(w, env, start_ps);
	if (w->pipe.busy_ps <= now_ps)
		start_ps += frame_wait(w, env);
	length_ps += frames_between(w, env, start_ps, length_ps);
	w->pipe.busy_ps = start_ps + length_ps;
	w->last_ps = length_ps;
	*end_ps = w->pipe.busy_ps;
	w->end_ps = end_ps;
	return start_ps;
}

/* Puts length_ps in front of what waits and moves the end of that. */
static uint64_t slip_in(struct edm_wire *w, const struct edm_wire_env *env,
			uint64_t at_ps, uint64_t length_ps)
{
	uint64_t start_ps = u64_max(at_ps, w->control_ps);

	if (start_ps >= w->pipe.busy_ps)
		frames_flow(w, env, start_ps);
	length_ps += frames_between(w, env, start_ps, length_ps);
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

	if (w->pipe.busy_ps <= now_ps) {
		frames_flow(w, env, now_ps);
		wait_ps = frame_wait(w, env);
	} else if (w->last_ps) {
		/* What is left of the block in transmission, or of the
		 * message, when those behind it are as long as the last. */
		wait_ps = (w->pipe.busy_ps - now_ps) %
			  (env->nest ? env->block_ps : w->last_ps);
	}
	return slip_in(w, env, now_ps + wait_ps, blocks * env->block_ps);
}

uint64_t edm_wire_control(struct edm_wire *w, const struct edm_wire_env *env,
			  uint64_t now_ps)
{
	uint64_t wait_ps;

	if (w->pipe.busy_ps <= now_ps) {
		frames_flow(w, env, now_ps);
		wait_ps = frame_wait(w, env);
	} else {
		wait_ps = (w->pipe.busy_ps - now_ps) % env->block_ps;
	}
	return slip_in(w, env, now_ps + wait_ps, env->block_ps);
}
