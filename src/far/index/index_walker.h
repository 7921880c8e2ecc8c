/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through an ordered index of a rack. Only for this room. */
#ifndef AQ_INDEX_WALKER_H
#define AQ_INDEX_WALKER_H

#include "traverse/traverse.h"
#include "tree.h"

struct index_walker {
	struct tree_geometry g;
	struct traverse_set *set;
	struct tree_walker ops;
};

/* Nothing is connected yet. -ENOMEM. */
int index_walker_init(struct index_walker *w, struct aq_rack *rack,
		      const char *region,
		      const struct tree_geometry *g) MUST_CHECK;
void index_walker_release(struct index_walker *w);

#endif
