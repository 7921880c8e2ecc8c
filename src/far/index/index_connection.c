/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of clients to indexes of a rack. */
#include "index_connection.h"

#include <stdio.h>

void index_region_name(const char *kind, const char *name,
		       char out[KIT_REGION_BYTES])
{
	snprintf(out, KIT_REGION_BYTES, "%s-%s", kind, name);
}

static int remote_fence(void *ctx, const char *conn)
{
	const struct index_connection *c = ctx;

	return client_link_end(c->rack, c->node, conn);
}

static int remote_is_alive(void *ctx, const char *conn)
{
	const struct index_connection *c = ctx;

	return client_link_is_known(c->rack, c->node, conn, UINT32_MAX);
}

static void remote_close(void *ctx, struct kit_remote *remote)
{
	kit_remote_disconnect(remote);
}

static int remote_renew(void *ctx, struct kit_remote *remote)
{
	struct index_connection *c = ctx;
	int err;

	kit_remote_disconnect(remote);
	err = kit_remote_connect(remote, c->rack, c->region, c->locks, 0);
	if (!err)
		c->node = remote->link->node;
	return err;
}

int index_connection_open(struct index_connection *c, struct kit_remote *remote)
{
	*remote = (struct kit_remote){.fence = remote_fence,
				      .is_alive = remote_is_alive,
				      .renew = remote_renew,
				      .close = remote_close,
				      .ctx = c};
	return remote_renew(c, remote);
}
