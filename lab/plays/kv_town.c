/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, leaves and connections of a table in the simulator. */
#include "kv_town.h"

#include "base/plant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"

/* ---- connections -------------------------------------------------------- */

static int end_conn(struct kv_town *t, unsigned i)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	if (i >= t->conn_count || !t->conn[i].link ||
	    t->is_killed[t->conn[i].leaf->node])
		return 0;
	return -ibv_modify_qp(scenario_link_far_qp(t->conn[i].link), &err,
			      IBV_QP_STATE);
}

/* "a", or "a+b" of a client of two copies. */
static int port_fence(void *ctx, const char *conn)
{
	struct kv_town_visitor *v = ctx;
	const char *second = strchr(conn, '+');
	int err;

	if (PLANTED(kv_no_fence))
		return 0;
	err = end_conn(v->town, (unsigned)atoi(conn));
	if (!err && second)
		err = end_conn(v->town, (unsigned)atoi(second + 1));
	return err;
}

static int port_is_alive(void *ctx, const char *conn)
{
	struct kv_town_visitor *v = ctx;
	unsigned i = (unsigned)atoi(conn);

	return i < v->town->conn_count && v->town->conn[i].link &&
	       !v->town->conn[i].is_dead;
}

static bool any_is_killed(const struct kv_town *t)
{
	unsigned i;

	for (i = 0; i < t->node_count; i++)
		if (t->is_killed[i])
			return true;
	return false;
}

static struct kv_town_leaf *find(struct kv_town *t, const struct kv_id *id)
{
	unsigned i;

	for (i = 0; i < t->leaf_count; i++)
		if (t->leaf[i].is_there && !t->is_killed[t->leaf[i].node] &&
		    memcmp(&t->leaf[i].id, id, sizeof(*id)) == 0)
			return &t->leaf[i];
	return NULL;
}

static int connect_port(struct kv_town_visitor *v, struct kv_town_leaf *leaf,
			struct kit_port *port)
{
	struct client_link_options o = {.send_depth = 256,
					.rights = CLIENT_LINK_ALL};
	struct kv_town *t = v->town;
	int err;

	if (t->conn_count == KV_TOWN_CONNS)
		return error_set(-EMFILE, "the play has no connection left");
	if (t->is_killed[leaf->node])
		return error_set(-EHOSTDOWN, "the node is dead");
	if (!leaf->is_there)
		return error_set(-ENOENT, "the leaf is gone");
	err = scenario_link_open(v->host, leaf->table, &o, &port->link);
	if (err)
		return err;
	snprintf(port->conn, sizeof(port->conn), "%u", t->conn_count);
	t->conn[t->conn_count++] =
		(struct kv_town_conn){.link = port->link, .leaf = leaf};
	port->addr = leaf->table->addr;
	port->rkey = leaf->table->rkey;
	port->lock_addr = leaf->locks->addr;
	port->lock_rkey = leaf->locks->rkey;
	return 0;
}

/* The far end of a dead client's stays, until it is fenced or the play ends:
 * what it has sent may still arrive. */
static void port_close(void *ctx, struct kit_port *port)
{
	struct kv_town_visitor *v = ctx;
	struct kv_town_conn *conn = &v->town->conn[atoi(port->conn)];

	conn->is_dead = true;
	if (v->is_dead || !conn->link)
		return;
	scenario_link_close(conn->link);
	conn->link = NULL;
	port->link = NULL;
}

static int port_renew(void *ctx, struct kit_port *port)
{
	struct kv_town_visitor *v = ctx;
	const struct kv_town_leaf *leaf = v->town->conn[atoi(port->conn)].leaf;
	struct kv_town_leaf *now = find(v->town, &leaf->id);

	port_close(ctx, port);
	if (!now)
		return error_set(any_is_killed(v->town) ? -EHOSTDOWN : -ENOENT,
				 "the leaf is gone");
	return connect_port(v, now, port);
}

static int world_open(void *ctx, const struct kv_id *id, struct kit_port *port)
{
	struct kv_town_visitor *v = ctx;
	struct kv_town_leaf *leaf = find(v->town, id);

	if (!leaf)
		return error_set(any_is_killed(v->town) ? -EHOSTDOWN : -ENOENT,
				 "there is no such leaf");
	*port = (struct kit_port){.fence = port_fence,
				  .is_alive = port_is_alive,
				  .renew = port_renew,
				  .close = port_close,
				  .ctx = v};
	return connect_port(v, leaf, port);
}

/* ---- leaves ------------------------------------------------------------- */

static int world_list(void *ctx, kv_id_fn each, void *user)
{
	struct kv_town_visitor *v = ctx;
	struct kv_town *t = v->town;
	unsigned i;

	for (i = 0; i < t->leaf_count; i++)
		if (t->leaf[i].is_there && !t->is_killed[t->leaf[i].node])
			each(user, &t->leaf[i].id);
	return 0;
}

static int world_nodes(void *ctx)
{
	struct kv_town_visitor *v = ctx;
	int n = 0;

	for (unsigned i = 0; i < v->town->node_count; i++)
		n += !v->town->is_killed[i];
	return n;
}

static int choose_node(struct kv_town *t, const struct kv_id *id, unsigned *out)
{
	struct kv_id first = {id->name, id->shard, 0};
	const struct kv_town_leaf *other = id->copy ? find(t, &first) : NULL;
	unsigned i, node;

	for (i = 0; i < t->node_count; i++) {
		node = (i + id->shard + id->name) % t->node_count;
		if (!t->is_killed[node] && (!other || other->node != node)) {
			*out = node;
			return 0;
		}
	}
	return error_set(-ENOSPC, "no node is left for a copy");
}

static int world_make(void *ctx, const struct kv_id *id,
		      const struct kv_geometry *g, uint64_t state)
{
	struct kv_town_visitor *v = ctx;
	struct kv_town *t = v->town;
	struct kv_town_leaf *leaf = &t->leaf[t->leaf_count];
	struct kit_port port;
	int err;

	if (find(t, id))
		return error_set(-EEXIST, "there is such a leaf");
	if (t->leaf_count == KV_TOWN_LEAVES)
		return error_set(-ENOSPC, "the play has no leaf left");
	*leaf = (struct kv_town_leaf){.id = *id, .is_there = true};
	err = choose_node(t, id, &leaf->node);
	if (!err)
		err = scenario_region_create(t->node[leaf->node], g->size_bytes,
					     false, &leaf->table);
	if (!err)
		err = scenario_region_create(t->node[leaf->node], g->lock_bytes,
					     false, &leaf->locks);
	if (err)
		return err;
	t->leaf_count++;
	err = world_open(v, id, &port);
	if (err)
		return err;
	err = kv_format(&port, g, state);
	port_close(v, &port);
	return err;
}

static int world_drop(void *ctx, const struct kv_id *id)
{
	struct kv_town_visitor *v = ctx;
	struct kv_town *t = v->town;
	struct kv_town_leaf *leaf = find(t, id);
	unsigned i;

	if (!leaf)
		return -ENOENT;
	if (t->is_killed[leaf->node])
		return -EHOSTDOWN;
	leaf->is_there = false;
	/* Its memory stays, but nobody gets at it. */
	for (i = 0; i < t->conn_count; i++)
		if (t->conn[i].leaf == leaf && end_conn(t, i))
			return -EIO;
	return 0;
}

struct kv_world kv_town_world(struct kv_town_visitor *v)
{
	return (struct kv_world){.ctx = v,
				 .list = world_list,
				 .open = world_open,
				 .make = world_make,
				 .drop = world_drop,
				 .nodes = world_nodes};
}

void kv_town_kill(struct kv_town *t, unsigned node)
{
	if (t->is_killed[node])
		return;
	t->is_killed[node] = true;
	scenario_host_kill(t->node[node]);
	scenario_host_tell_gone(t->node[node]);
}
