/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through an ordered index of a rack: on its memory node. */
#include "index_walker.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static int make(const void *ctx, unsigned which, struct walk_build **build,
		struct walk_image *image)
{
	return tree_program_make(ctx, (enum tree_walk)which, build, image);
}

static int run(void *ctx, enum tree_walk walk, uint64_t start, void *pad,
	       size_t pad_bytes, size_t send_bytes, uint32_t *trips)
{
	const struct traverse_ask ask = {.which = walk,
					 .start = start,
					 .pad = pad,
					 .send_bytes = send_bytes};
	struct index_walker *w = ctx;
	void *back;
	int err = traverse_set_run(w->set, &ask, &back, trips);

	if (!err)
		memcpy(pad, back, pad_bytes);
	return err;
}

int index_walker_init(struct index_walker *w, struct aq_rack *rack,
		      const char *region, const struct tree_geometry *g)
{
	*w = (struct index_walker){.g = *g, .ops = {.run = run, .ctx = w}};
	w->set = traverse_set_create(rack, region, make, &w->g);
	return w->set ? 0 : error_set(-ENOMEM, "no memory for a client");
}

void index_walker_release(struct index_walker *w)
{
	traverse_set_destroy(w->set);
}
