/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of one structure: one queue and one connection for all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "traverse.h"
#include "traverse_priv.h"

struct traverse_set {
	struct aq_rack *rack;
	char name[AQ_REGION_NAME_MAX + 1];
	traverse_make_fn make;
	const void *ctx;
	struct aq_region *region; /* NULL: not yet */
	struct aq_walks *walks;
	struct aq_walk *walk[TRAVERSE_SET_MAX];
	bool is_refused[TRAVERSE_SET_MAX];
};

struct traverse_set *traverse_set_create(struct aq_rack *rack,
					 const char *region,
					 traverse_make_fn make, const void *ctx)
{
	struct traverse_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	ASSERT(strlen(region) < sizeof(set->name));
	memcpy(set->name, region, strlen(region));
	set->rack = rack;
	set->make = make;
	set->ctx = ctx;
	return set;
}

void traverse_set_destroy(struct traverse_set *set)
{
	if (!set)
		return;
	aq_walks_close(set->walks);
	for (unsigned i = 0; i < TRAVERSE_SET_MAX; i++)
		aq_walk_close(set->walk[i]);
	aq_region_close(set->region);
	free(set);
}

static int connect_set(struct traverse_set *set)
{
	int err = 0;

	if (!set->region)
		err = aq_region_open(set->rack, set->name, AQ_REGION_READ_ONLY,
				     &set->region);
	if (!err && !set->walks)
		err = aq_walks_open(set->rack, 1, &set->walks);
	return err;
}

static int load(struct traverse_set *set, unsigned which)
{
	/* The structure says where it ends, and the deadline when. */
	const struct aq_walk_options o = {.flags = AQ_WALK_THERE,
					  .iterations = UINT32_MAX};
	struct walk_build *build = NULL;
	struct walk_image image;
	int err;

	if (set->walk[which])
		return 0;
	err = set->make(set->ctx, which, &build, &image);
	if (!err)
		err = traverse_load(set->rack, &image, &o, &set->walk[which]);
	walk_build_destroy(build);
	return err;
}

/* Whether it would be the same the next time: the node executes no walks, or
 * none that are so long, has no room for another, or packets are too small. The
 * other errors are of the walk itself, or of a connection. */
static bool is_refusal(int err)
{
	switch (err) {
	case 0:
	case -ECANCELED:
	case -EFAULT:
	case -ELOOP:
	case -ETIMEDOUT:
	case -EHOSTDOWN:
	case -ESTALE:
		return false;
	default:
		return true;
	}
}

int traverse_set_run(struct traverse_set *set, const struct traverse_ask *ask,
		     void **pad, uint32_t *requests)
{
	const unsigned which = ask->which;
	struct walks_begin b = {.start = ask->start,
				.pad = ask->pad,
				.send_bytes = ask->send_bytes,
				.until_ns = ask->until_ns};
	struct aq_walk_result result = {0};
	int err;

	ASSERT(which < TRAVERSE_SET_MAX);
	if (set->is_refused[which])
		return -EOPNOTSUPP;
	err = load(set, which);
	if (!err)
		err = connect_set(set);
	b.walk = set->walk[which];
	b.region = set->region;
	if (!err)
		err = walks_run(set->walks, &b, &result);
	if (!err)
		*pad = job_pad(&set->walks->job[0]); /* there is one */
	*requests = result.requests;
	if (is_refusal(err)) {
		set->is_refused[which] = true;
		err = -EOPNOTSUPP;
	}
	return err;
}
