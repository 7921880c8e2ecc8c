/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the applications, as works: by a program that has everything in
 * its memory, wherever the pages of that are, and by walks. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "run_bench.h"
#include "shield.h"
#include "walk_app.h"

enum {
	/* Before the clock starts, of all operations: what is used most is in
	 * local memory then. */
	WARM_PART = 2,
};

static enum walk_app_kind app_of(const struct run_work *w)
{
	if (w->kind == RUN_WORK_TSV || w->kind == RUN_WORK_TSV_WALK)
		return WALK_APP_TSV;
	return w->kind == RUN_WORK_WEB || w->kind == RUN_WORK_WEB_WALK
		       ? WALK_APP_WEB
		       : WALK_APP_RANGE;
}

/* ---- in memory ----------------------------------------------------------- */

struct native {
	const struct walk_app *app;
	uint64_t seed;
	uint64_t count;
	bool is_wrong;
	pthread_t thread;
};

static bool operate(const struct walk_app *a, struct rng *r)
{
	uint8_t object[WALK_OBJECT_BYTES];
	struct walk_app_query q;

	walk_app_draw(a, r, &q);
	walk_app_follow(a, &q);
	if (!walk_app_found(a, &q))
		return false;
	if (a->kind != WALK_APP_WEB)
		return true;
	memcpy(object, a->memory + walk_app_object_at(a, &q), sizeof(object));
	return walk_app_object_is(&q, object);
}

static void *operate_some(void *arg)
{
	struct native *n = arg;
	struct rng r;

	rng_init(&r, n->seed);
	for (uint64_t i = 0; i < n->count && !n->is_wrong; i++)
		n->is_wrong = !operate(n->app, &r);
	return NULL;
}

/* All threads at once, as many as there are walks under way. */
static bool operate_all(const struct walk_app *a, uint64_t count, uint64_t seed)
{
	struct native n[WALK_DEPTH];
	unsigned started = 0;
	bool ok = true;

	for (unsigned i = 0; i < WALK_DEPTH && ok; i++) {
		n[i] = (struct native){.app = a,
				       .seed = seed + i,
				       .count = count / WALK_DEPTH};
		ok = pthread_create(&n[i].thread, NULL, operate_some, &n[i]) ==
		     0;
		started += ok;
	}
	for (unsigned i = 0; i < started; i++) {
		(void)pthread_join(n[i].thread, NULL);
		ok &= !n[i].is_wrong;
	}
	return ok;
}

uint64_t walk_work_native(const struct run_work *w)
{
	struct walk_app a;
	uint64_t start;

	if (walk_app_init(&a, app_of(w), w->bytes >> 20) || walk_app_map(&a) ||
	    !operate_all(&a, w->count / WARM_PART, w->seed))
		return 0;
	start = bench_now_ns();
	return operate_all(&a, w->count, w->seed + WALK_DEPTH)
		       ? bench_now_ns() - start
		       : 0;
}

/* ---- by walks, or READs of their nodes -------------------------------------
 */

struct remote {
	struct walk_app app;
	struct aq_rack *rack;
	struct aq_region *region;
	struct aq_walk *walk;
	struct aq_walks *walks;
	struct rng rng;
	struct walk_app_query query[WALK_DEPTH];
};

/* A window, so that nothing is mapped: all goes through both NICs. */
static int open_remote(struct remote *m, enum aq_walk_flags where)
{
	const struct aq_walk_options o = {.flags = where};
	int err = place_rack(&m->rack);

	if (!err)
		err = aq_region_open(m->rack, WALK_APP_REGION,
				     AQ_REGION_REVOCABLE, &m->region);
	if (!err)
		err = aq_walk_make(m->rack, walk_app_shape(&m->app), &o,
				   &m->walk);
	return err ? err : aq_walks_open(m->rack, WALK_DEPTH, &m->walks);
}

static int submit(struct remote *m, struct walk_app_query *q)
{
	walk_app_draw(&m->app, &m->rng, q);
	return aq_walks_submit(m->walks, m->walk, m->region, q->start, &q->pad,
			       walk_app_pad_bytes(&m->app), q);
}

/* What is left of an operation when its walk has ended. */
static int finish(struct remote *m, const struct aq_walk_result *r)
{
	uint8_t object[WALK_OBJECT_BYTES];
	const struct walk_app_query *q = r->user;
	int err = r->err;

	if (!err && !walk_app_found(&m->app, q))
		err = -EBADMSG;
	if (err || m->app.kind != WALK_APP_WEB)
		return err;
	err = aq_read(m->region, walk_app_object_at(&m->app, q), object,
		      sizeof(object));
	return err || walk_app_object_is(q, object) ? err : -EBADMSG;
}

static int walk_some(struct remote *m, uint64_t count)
{
	struct aq_walk_result done[WALK_DEPTH];
	uint64_t begun = 0, ended = 0;
	int err = 0;

	for (; begun < WALK_DEPTH && begun < count && !err; begun++)
		err = submit(m, &m->query[begun]);
	while (ended < count && !err) {
		int n = aq_walks_poll(m->walks, done, WALK_DEPTH);

		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++, ended++) {
			err = finish(m, &done[i]);
			if (!err && begun < count) {
				err = submit(m, done[i].user);
				begun++;
			}
		}
	}
	return err;
}

uint64_t walk_work_remote(const struct run_work *w)
{
	struct remote *m = calloc(1, sizeof(*m));
	uint64_t start = 0, took;
	int err =
		m ? walk_app_init(&m->app, app_of(w), w->bytes >> 20) : -ENOMEM;

	/* The NIC's thread is where the memory node is, as for all who wait for
	 * nobody but it. */
	if (!err) {
		(void)shield_pin(SHIELD_CPU_SERVER);
		rng_init(&m->rng, w->seed);
		err = open_remote(m, w->kind == RUN_WORK_RANGE_READS
					     ? AQ_WALK_HERE
					     : AQ_WALK_THERE);
		(void)shield_pin(SHIELD_CPU_CLIENT);
	}
	if (!err)
		err = walk_some(m, w->count / WARM_PART);
	start = bench_now_ns();
	if (!err)
		err = walk_some(m, w->count);
	took = bench_now_ns() - start;
	if (err)
		(void)fprintf(stderr, "aquifer: bench walk: %s\n",
			      aq_last_error());
	return err ? 0 : took;
}
