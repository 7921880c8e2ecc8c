/* SPDX-License-Identifier: Apache-2.0 */
/* A client's connection to an index of either kind. Only for this room. */
#ifndef AQ_INDEX_CONNECTION_H
#define AQ_INDEX_CONNECTION_H

#include <aquifer/index.h>

#include "kit/remote.h"

/* "it-" for a tree, "il-" for its locks, "iv-" for versions. */
void index_region_name(const char *kind, const char *name,
		       char out[KIT_REGION_BYTES]);

struct index_connection {
	struct aq_rack *rack;
	char region[KIT_REGION_BYTES];
	char locks[KIT_REGION_BYTES]; /* "": it has none */
	uint32_t node;
};

/* Connects. The connection has to outlive the remote. */
int index_connection_open(struct index_connection *c,
			  struct kit_remote *remote) MUST_CHECK;

#endif
