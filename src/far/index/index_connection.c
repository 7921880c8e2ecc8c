/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of clients to indexes of a rack. */
#include "index_connection.h"

#include <stdio.h>

void index_region_name(const char *kind, const char *name,
		       char out[KIT_REGION_BYTES])
{
	snprintf(out, KIT_REGION_BYTES, "%s-%s", kind, name);
}

static int port_fence(void *ctx, const char *conn)
{
	const struct index_connection *c = ctx;

	return client_link_end(c->rack, c->node, conn);
}

static int port_is_alive(void *ctx, const char *conn)
{
	const struct index_connection *c = ctx;

	return client_link_is_known(c->rack, c->node, conn);
}

static void port_close(void *ctx, struct kit_port *port)
{
	kit_port_disconnect(port);
}

static int port_renew(void *ctx, struct kit_port *port)
{
	struct index_connection *c = ctx;
	int err;

	kit_port_disconnect(port);
	err = kit_port_connect(port, c->rack, c->region, c->locks, 0);
	if (!err)
		c->node = port->link->node;
	return err;
}

int index_connection_open(struct index_connection *c, struct kit_port *port)
{
	*port = (struct kit_port){.fence = port_fence,
				  .is_alive = port_is_alive,
				  .renew = port_renew,
				  .close = port_close,
				  .ctx = c};
	return port_renew(c, port);
}
