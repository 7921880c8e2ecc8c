/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, and the views that hold the keys for them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client_priv.h"

void client_conn_close(struct client_conn *conn)
{
	if (!conn->is_open)
		return;
	client_bond_remove(conn->thread->rack, &conn->bond);
	conn->thread->rack->transport->conn_close(conn);
	conn->is_open = false;
	conn->busy = 0;
}

int client_conn_ready(struct client_thread *t, uint32_t node,
		      uint64_t deadline_ns, struct client_conn **out)
{
	struct client_conn *conn = &t->conn[node];
	int err;

	if (UNLIKELY(conn->is_open && conn->busy == 0 &&
		     client_bond_is_lost(&conn->bond)))
		client_conn_close(conn);
	if (UNLIKELY(!conn->is_open)) {
		atomic_store_explicit(&conn->bond.is_lost, false,
				      memory_order_relaxed);
		err = t->rack->transport->conn_open(conn, deadline_ns);
		if (err)
			return err;
		conn->is_open = true;
		conn->generation++;
		t->counters[CLIENT_C_CONNECTS]++;
	}
	*out = conn;
	return 0;
}

/* ---- views -------------------------------------------------------------- */

/* Politeness only: the node ends a grant with its connection anyway. */
static void drop_grant(struct client_thread *t, const struct client_map *map,
		       struct client_grant *g, uint32_t piece,
		       uint64_t deadline_ns)
{
	struct client_conn *conn = &t->conn[map->piece[piece].node];
	char path[CLIENT_PATH_MAX];

	if (g->generation && conn->is_open &&
	    conn->generation == g->generation) {
		snprintf(path, sizeof(path), "/v1/connections/%s/grants/%s",
			 conn->bond.id, g->id);
		client_thread_tell(t, conn->node, "DELETE", path, deadline_ns);
	}
	g->generation = 0;
}

static int view_renew(struct client_thread *t, struct aq_region *region,
		      uint64_t deadline_ns)
{
	struct client_view *v = t->view[region->slot];
	uint32_t i;
	int err;

	if (!v) {
		v = calloc(1, sizeof(*v));
		if (!v)
			return error_set(-ENOMEM, "no memory for a view");
		t->view[region->slot] = v;
	}
	for (i = 0; i < v->map.piece_count; i++)
		drop_grant(t, &v->map, &v->grant[i], i, deadline_ns);
	err = client_region_lock(region, deadline_ns);
	if (err)
		return err;
	if (region->is_stale)
		err = client_region_dead(region);
	v->map = region->map;
	v->serial = region->serial;
	v->version =
		atomic_load_explicit(&region->version, memory_order_relaxed);
	pthread_mutex_unlock(&region->lock);
	return err;
}

int client_view_ready(struct client_thread *t, struct aq_region *region,
		      uint64_t deadline_ns, struct client_view **out)
{
	struct client_view *v = t->view[region->slot];

	/* V1, pairs with V0; the map itself is read under the lock. */
	if (UNLIKELY(!v || v->serial != region->serial ||
		     v->version !=
			     atomic_load_explicit(&region->version,
						  memory_order_relaxed))) {
		int err = view_renew(t, region, deadline_ns);

		if (err) {
			/* Whoever comes next must look again. */
			if (t->view[region->slot])
				t->view[region->slot]->serial = 0;
			return err;
		}
	}
	*out = t->view[region->slot];
	return 0;
}

static int take_grant(const json_t *reply, struct client_grant *g,
		      struct client_piece *now)
{
	uint64_t epoch;
	uint64_t rkey, addr;
	int err;

	err = client_json_word(reply, "grant", g->id, sizeof(g->id));
	if (!err)
		err = client_json_u64(reply, "rkey", UINT32_MAX, &rkey);
	if (!err)
		err = client_json_u64(reply, "addr", INT64_MAX, &addr);
	if (!err)
		err = client_json_u64(reply, "length", INT64_MAX,
				      &now->size_bytes);
	if (!err)
		err = client_json_u64(reply, "epoch", UINT32_MAX, &epoch);
	if (!err)
		err = client_json_hex(reply, "incarnation", &now->incarnation);
	if (err)
		return err;
	g->rkey = (uint32_t)rkey;
	g->addr = addr;
	now->epoch = (uint32_t)epoch;
	return 0;
}

int client_view_grant(struct client_view *v, struct aq_region *region,
		      uint32_t piece, struct client_conn *conn,
		      uint64_t deadline_ns)
{
	const struct client_piece *p = &v->map.piece[piece];
	struct client_grant *g = &v->grant[piece];
	char path[CLIENT_PATH_MAX], name[CLIENT_PIECE_NAME_MAX];
	struct client_piece now = {0};
	json_t *reply = NULL;
	int err;

	if (LIKELY(g->generation == conn->generation))
		return 0;
	snprintf(path, sizeof(path), "/v1/connections/%s/grants",
		 conn->bond.id);
	piece_name_write(region->name, piece, v->map.piece_count,
			 v->map.stripe_shift, name);
	err = client_thread_call(
		conn->thread, conn->node, "POST", path,
		json_pack("{s:s, s:s, s:i, s:i, s:b}", "region", name, "rights",
			  region->flags & AQ_REGION_READ_ONLY ? "r" : "rwa",
			  "offset", 0, "length", 0, "revocable",
			  (region->flags & AQ_REGION_REVOCABLE) != 0),
		deadline_ns, &reply);
	if (!err)
		err = take_grant(reply, g, &now);
	json_decref(reply);
	/* The node has forgotten the connection. */
	if (err == -ESTALE && conn->busy == 0)
		client_conn_close(conn);
	/* It is gone, or on its way. */
	if (err == -ENOENT || err == -EBUSY)
		return error_prefix(-ESTALE, "region %s: ", region->name);
	if (err)
		return err;
	if (now.epoch != p->epoch || now.size_bytes < p->size_bytes ||
	    now.incarnation != p->incarnation)
		return error_set(-ESTALE, "region %s changed meanwhile",
				 region->name);
	g->generation = conn->generation;
	return 0;
}
