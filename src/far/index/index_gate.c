/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of clients to indexes of a rack. */
#include "index_gate.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"

void index_region_name(const char *kind, const char *name,
		       char out[INDEX_REGION_BYTES])
{
	snprintf(out, INDEX_REGION_BYTES, "%s-%s", kind, name);
}

static int get_keys(struct index_gate *g)
{
	int err;

	if (g->link->size_bytes <= INDEX_SPARE_BYTES)
		return error_set(-EBADMSG, "region %s is no index", g->region);
	err = client_link_key(g->link, g->region,
			      g->link->size_bytes - INDEX_SPARE_BYTES, &g->key);
	if (!err && g->locks[0])
		err = client_link_key(g->link, g->locks, 0, &g->lock_key);
	return err;
}

int index_gate_open(struct index_gate *g)
{
	struct client_link_options o = {.rights = CLIENT_LINK_READ};
	int err;

	index_gate_close(g);
	err = client_link_open(g->rack, g->region, &o, &g->link);
	if (err) {
		g->link = NULL;
		return err;
	}
	err = get_keys(g);
	if (err)
		index_gate_close(g);
	return err;
}

void index_gate_close(struct index_gate *g)
{
	client_link_close(g->link);
	g->link = NULL;
}

/* Called by clients, so while there is a link. */
int index_gate_fence(void *ctx, const char *conn)
{
	const struct index_gate *g = ctx;

	return client_link_end(g->rack, g->link->node, conn);
}

int index_gate_is_alive(void *ctx, const char *conn)
{
	const struct index_gate *g = ctx;

	return client_link_is_known(g->rack, g->link->node, conn);
}
