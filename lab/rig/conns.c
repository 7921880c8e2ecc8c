/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by number. */
#include "conns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "client/verbs_api.h"

int scenario_conn_open(struct scenario_conns *all, struct scenario_host *host,
		       struct scenario_region *region,
		       const struct client_link_options *options, char *name,
		       size_t name_bytes, struct scenario_conn **out)
{
	struct scenario_conn *conn;
	int err;

	if (all->count == SCENARIO_CONNS_MAX)
		return error_set(-EMFILE, "no connection is left");
	conn = &all->at[all->count];
	*conn = (struct scenario_conn){.host = host};
	err = scenario_link_open(host, region, options, &conn->link);
	if (err)
		return err;
	snprintf(name, name_bytes, "%u", all->count++);
	*out = conn;
	return 0;
}

struct scenario_conn *scenario_conn_find(struct scenario_conns *all,
					 const char *name)
{
	unsigned i = (unsigned)atoi(name);

	return i < all->count && all->at[i].link ? &all->at[i] : NULL;
}

bool scenario_conn_is_alive(struct scenario_conns *all, const char *name)
{
	const struct scenario_conn *conn = scenario_conn_find(all, name);

	return conn && !conn->is_dead;
}

int scenario_conn_fence(struct scenario_conn *conn)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	return -ibv_modify_qp(scenario_link_far_qp(conn->link), &err,
			      IBV_QP_STATE);
}

void scenario_conn_close(struct scenario_conn *conn, bool client_died)
{
	conn->is_dead = true;
	if (client_died || !conn->link)
		return;
	scenario_link_close(conn->link);
	conn->link = NULL;
}
