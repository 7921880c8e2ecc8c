/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of walks in this process, without a NIC: how much it gains by
 * having many walks at once. */
#include "walk/engine.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "walk/ready.h"
#include "walk_bench.h"

enum {
	PAD_BYTES = 40,
	TURN = 64,
};

struct run {
	const struct walk_list *list;
	struct walk_engine *engine;
	struct walk_program *program;
	struct rng rng;
	uint8_t pad[WALK_DEPTH][PAD_BYTES];
	unsigned under_way;
	bool is_over;
	int err;
};

static enum walk_reach reach(void *ctx, void *handle, uint64_t at, uint32_t len,
			     bool write, struct walk_span *span)
{
	const struct run *r = ctx;

	if (at > r->list->bytes || len > r->list->bytes - at)
		return WALK_REACH_FAULT;
	*span = (struct walk_span){0, r->list->bytes, r->list->memory};
	return WALK_REACH_HERE;
}

static int start(struct run *r, uint8_t *pad)
{
	const struct walk_query q = walk_list_query(r->list, rng_u64(&r->rng));

	memset(pad, 0, PAD_BYTES);
	memcpy(pad + sizeof(struct aq_walk_find), &q.key, sizeof(q.key));
	return walk_engine_start(r->engine,
				 &(struct walk_job){.program = r->program,
						    .handle = pad,
						    .tenant = r,
						    .pad = pad,
						    .given_bytes = PAD_BYTES,
						    .at = q.start,
						    .left = UINT32_MAX});
}

static void done(void *ctx, void *handle, enum walk_status status, uint64_t at,
		 uint32_t left, uint32_t took)
{
	struct run *r = ctx;

	if (status != WALK_DONE || took != WALK_CHAIN)
		r->err = -EBADMSG;
	r->under_way--;
	if (r->is_over || r->err)
		return;
	r->err = start(r, handle);
	r->under_way++;
}

/* The thread's own time: other programs may share its core, and it waits for
 * nothing but memory. */
static uint64_t own_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

static int round_of(struct run *r, unsigned depth, uint64_t window_ns,
		    uint64_t *iterations, uint64_t *elapsed_ns)
{
	uint64_t begin_ns = own_ns(), now_ns = begin_ns;
	uint64_t before = walk_engine_iterations(r->engine);

	r->is_over = false;
	for (unsigned i = 0; i < depth && !r->err; i++) {
		r->err = start(r, r->pad[i]);
		r->under_way++;
	}
	while (r->under_way && !r->err) {
		for (unsigned i = 0; i < 64; i++)
			(void)walk_engine_turn(r->engine, TURN);
		now_ns = own_ns();
		r->is_over = now_ns - begin_ns >= window_ns;
	}
	*iterations = walk_engine_iterations(r->engine) - before;
	*elapsed_ns = now_ns - begin_ns;
	return r->err;
}

static int measure(struct bench *b, struct run *r)
{
	static const struct subject_desc desc[] = {
		{.name = "engine_1", .what = "iterations, one workspace"},
		{.name = "engine_16", .what = "iterations, 16 workspaces"},
	};
	static struct conduct_track track[2];
	static const unsigned depth[] = {1, WALK_DEPTH};
	int err = 0;

	memset(track, 0, sizeof(track));
	for (unsigned i = 0; i < b->rounds && !err; i++)
		for (unsigned k = 0; k < 2 && !err; k++) {
			uint64_t count, ns;

			track[k].desc = &desc[k];
			err = round_of(r, depth[k], b->window_ms * 1000000ull,
				       &count, &ns);
			if (!err)
				conduct_record(&track[k], i, count, ns);
		}
	if (!err)
		bench_report_tracks(b, "engine", track, 2, NULL);
	return err;
}

int walk_bench_engine(struct bench *b, const struct walk_list *l)
{
	struct run r = {.list = l};
	struct walk_build *build = NULL;
	struct walk_image image;
	int err = walk_ready(&walk_list_shape, 0, &build, &image);

	rng_init(&r.rng, 1);
	if (!err)
		err = walk_program_open(&image, NULL, &r.program);
	if (!err)
		err = walk_engine_open(&(struct walk_host){.ctx = &r,
							   .reach = reach,
							   .done = done},
				       &r.engine);
	if (!err)
		err = measure(b, &r);
	if (r.engine)
		walk_engine_close(r.engine);
	walk_program_close(r.program);
	walk_build_destroy(build);
	return err ? bench_fail(b, err, "the engine: %s", error_last()) : 0;
}
