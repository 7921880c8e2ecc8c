/* SPDX-License-Identifier: Apache-2.0 */
/* One walk at a time, for whoever waits for it. */
#include <errno.h>
#include <time.h>

#include "base/error.h"
#include "traverse_priv.h"

enum {
	OWN_DEPTH = 1,
};

/* What a walk's own calls run in; the lock is held. */
static int own(struct aq_walk *walk)
{
	return walk->own ? 0 : aq_walks_open(walk->rack, OWN_DEPTH, &walk->own);
}

static int wait_for(struct aq_walks *w, struct aq_walk_result *result)
{
	const struct timespec nap = {.tv_nsec = TRAVERSE_NAP_NS};
	unsigned idle = 0;
	int n;

	/* To read the clock takes as long as a poll, and an answer that comes
	 * meanwhile waits for it. */
	while ((n = walks_poll(w, result, 1,
			       idle >= TRAVERSE_IDLE_POLLS ||
				       idle % TRAVERSE_LOOK_POLLS ==
					       TRAVERSE_LOOK_POLLS - 1)) == 0) {
		if (++idle < TRAVERSE_IDLE_POLLS)
			continue;
		if (idle < TRAVERSE_IDLE_POLLS + TRAVERSE_IDLE_YIELDS)
			client_clock_relax(client_clock_real());
		else
			(void)nanosleep(&nap, NULL);
	}
	return n < 0 ? n : result->err;
}

int walks_run(struct aq_walks *w, const struct walks_begin *b,
	      struct aq_walk_result *result)
{
	int err = walks_submit(w, b);

	return err ? err : wait_for(w, result);
}

int aq_walk_run(struct aq_walk *walk, struct aq_region *region, uint64_t start,
		void *pad, size_t pad_bytes, struct aq_walk_result *result)
{
	return aq_walk_run_after(walk, region, NULL, start, pad, pad_bytes,
				 result);
}

int aq_walk_run_after(struct aq_walk *walk, struct aq_region *region,
		      const struct aq_walk_write *write, uint64_t start,
		      void *pad, size_t pad_bytes,
		      struct aq_walk_result *result)
{
	const struct walks_begin b = {.walk = walk,
				      .region = region,
				      .write = write,
				      .start = start,
				      .pad = pad,
				      .send_bytes = pad_bytes,
				      .back = pad,
				      .back_bytes = pad_bytes};
	struct aq_walk_result r = {.at = start};
	int err;

	pthread_mutex_lock(&walk->lock);
	err = own(walk);
	if (!err)
		err = walks_run(walk->own, &b, &r);
	pthread_mutex_unlock(&walk->lock);
	r.err = err;
	if (result)
		*result = r;
	return err;
}

int aq_walk_plan(struct aq_walk *walk, struct aq_region *region,
		 struct aq_walk_plan *plan)
{
	struct place *p;
	int err;

	pthread_mutex_lock(&walk->lock);
	err = own(walk);
	if (!err) {
		walk->own->until_ns = walks_deadline_ns(walk->own);
		err = place_get(walk->own, region, &p);
	}
	/* The first node of the region, wherever its window begins. */
	if (!err)
		err = walks_plan(
			walk->own, walk, p,
			walk->program->image.load_lo < 0
				? (uint64_t)-walk->program->image.load_lo
				: 0,
			plan);
	pthread_mutex_unlock(&walk->lock);
	return err;
}
