/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by number. */
#include "conns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "client/verbs_api.h"

int rig_conn_open(struct rig_conns *all, struct rig_host *host,
		  struct rig_region *region,
		  const struct client_link_options *options, char *name,
		  size_t name_bytes, struct rig_conn **out)
{
	struct rig_conn *conn;
	int err;

	if (all->count == RIG_CONNS_MAX)
		return error_set(-EMFILE, "no connection is left");
	conn = &all->at[all->count];
	*conn = (struct rig_conn){.host = host};
	err = rig_link_open(host, region, options, &conn->link);
	if (err)
		return err;
	snprintf(name, name_bytes, "%u", all->count++);
	*out = conn;
	return 0;
}

struct rig_conn *rig_conn_find(struct rig_conns *all, const char *name)
{
	unsigned i = (unsigned)atoi(name);

	return i < all->count && all->at[i].link ? &all->at[i] : NULL;
}

bool rig_conn_is_alive(struct rig_conns *all, const char *name)
{
	const struct rig_conn *conn = rig_conn_find(all, name);

	return conn && !conn->is_dead;
}

int rig_conn_fence(struct rig_conn *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	return -ibv_modify_qp(rig_link_far_qp(conn->link), &err, IBV_QP_STATE);
}

void rig_conn_close(struct rig_conn *conn, bool client_died)
{
	conn->is_dead = true;
	if (client_died || !conn->link)
		return;
	rig_link_close(conn->link);
	conn->link = NULL;
}
