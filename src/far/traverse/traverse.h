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
/* As aq_walks_submit_after, where `write` may be NULL; only the first
 * send_bytes of the pad go to the node, and the rest of it is zero there. */
int traverse_submit(struct aq_walks *walks, struct aq_walk *walk,
		    struct aq_region *region, const struct aq_walk_write *write,
		    uint64_t start, void *pad, size_t pad_bytes,
		    size_t send_bytes, void *user) MUST_CHECK;
/* The same, and waits for it, in a queue that has nothing else under way. */
int traverse_run(struct aq_walks *walks, struct aq_walk *walk,
		 struct aq_region *region, const struct aq_walk_write *write,
		 uint64_t start, void *pad, size_t pad_bytes, size_t send_bytes,
		 struct aq_walk_result *result) MUST_CHECK;

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

/* NULL: no memory. The region's name is copied, `ctx` is not. */
struct traverse_set *traverse_set_create(struct aq_rack *rack,
					 const char *region,
					 traverse_make_fn make,
					 const void *ctx);
void traverse_set_destroy(struct traverse_set *set); /* NULL: nothing */
/* As traverse_run; *requests is how often the node was asked. -EOPNOTSUPP: that
 * walk does not run there, now and for this set. */
int traverse_set_run(struct traverse_set *set, unsigned which, uint64_t start,
		     void *pad, size_t pad_bytes, size_t send_bytes,
		     uint32_t *requests) MUST_CHECK;

#endif
