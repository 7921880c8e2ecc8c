/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection to an index of a rack, whatever its kind. Only for this
 * room. */
#ifndef AQ_INDEX_GATE_H
#define AQ_INDEX_GATE_H

#include <aquifer/index.h>

#include "base/base.h"
#include "client/link.h"

enum {
	INDEX_REGION_BYTES = AQ_REGION_NAME_MAX + 1,
	/* The region has a page more than the index, so that a key to the
	 * index is a window: nobody maps it, and it ends with its connection.
	 * That is what fencing relies on. */
	INDEX_SPARE_BYTES = 4096,
};

/* "it-" for a tree, "il-" for its locks, "iv-" for versions. */
void index_region_name(const char *kind, const char *name,
		       char out[INDEX_REGION_BYTES]);

struct index_gate {
	struct aq_rack *rack;
	char region[INDEX_REGION_BYTES];
	char locks[INDEX_REGION_BYTES]; /* "": it has none */
	struct client_link *link;
	struct client_key key, lock_key;
};

/* Connects; an older connection is closed before. */
int index_gate_open(struct index_gate *g) MUST_CHECK;
void index_gate_close(struct index_gate *g);
/* The calls that ports of both kinds have; ctx is the gate. */
int index_gate_fence(void *ctx, const char *conn);
int index_gate_is_alive(void *ctx, const char *conn);

#endif
