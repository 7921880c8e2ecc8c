/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks for rooms whose structures have walks of their own, beside what
 * <aquifer/walk.h> has for everybody.
 */
#ifndef AQ_TRAVERSE_H
#define AQ_TRAVERSE_H

#include <aquifer/walk.h>

#include "base/base.h"
#include "walk/build.h"

/* As aq_walk_load_bytes. */
int traverse_load(struct aq_rack *rack, const struct walk_image *image,
		  const struct aq_walk_options *options,
		  struct aq_walk **walk) MUST_CHECK;

/*
 * The walks of one structure, a region: made and connected when first used, and
 * always executed on the memory node. It belongs to one thread at a time.
 */
struct traverse_set;

enum {
	TRAVERSE_SET_MAX = 8, /* walks */
};

/* Makes the image of a walk, which lives as long as *build. */
typedef int (*traverse_make_fn)(const void *ctx, unsigned which,
				struct walk_build **build,
				struct walk_image *image);

/* What is asked of one of them. */
struct traverse_ask {
	unsigned which;
	uint64_t start;
	/* Only the first bytes of the pad go to the node, the rest is zero
	 * there. */
	const void *pad;
	size_t send_bytes;
	uint64_t until_ns; /* 0: for as long as the rack allows */
};

/* NULL: no memory. The region's name is copied, `ctx` is not. */
struct traverse_set *traverse_set_create(struct aq_rack *rack,
					 const char *region,
					 traverse_make_fn make,
					 const void *ctx);
void traverse_set_destroy(struct traverse_set *set); /* NULL: nothing */
/* As aq_walk_run. *pad is where all of it is when it has ended well, until the
 * next one of the set; *requests is how often the node was asked. -EOPNOTSUPP:
 * that walk does not run there, now and for this set. */
int traverse_set_run(struct traverse_set *set, const struct traverse_ask *ask,
		     void **pad, uint32_t *requests) MUST_CHECK;

#endif
