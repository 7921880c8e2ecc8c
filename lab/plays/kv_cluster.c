/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, leaves and connections of a table in the simulator. */
#include "kv_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"

/* ---- connections -------------------------------------------------------- */

static const struct kv_cluster_leaf *leaf_of(const struct scenario_conn *conn)
{
	return conn->to;
}

static int fence(struct kv_cluster *t, const char *name)
{
	struct scenario_conn *conn = scenario_conn_find(&t->conns, name);

	return conn && !t->is_killed[leaf_of(conn)->node]
		       ? scenario_conn_fence(conn)
		       : 0;
}

/* "a", or "a+b" of a client of two copies. */
static int port_fence(void *ctx, const char *conn)
{
	struct kv_cluster_client *c = ctx;
	const char *second = strchr(conn, '+');
	int err;

	if (PLANTED(kv_no_fence))
		return 0;
	err = fence(c->cluster, conn);
	return err || !second ? err : fence(c->cluster, second + 1);
}

static int port_is_alive(void *ctx, const char *conn)
{
	struct kv_cluster_client *c = ctx;

	return scenario_conn_is_alive(&c->cluster->conns, conn);
}

static bool any_is_killed(const struct kv_cluster *t)
{
	unsigned i;

	for (i = 0; i < t->node_count; i++)
		if (t->is_killed[i])
			return true;
	return false;
}

static struct kv_cluster_leaf *find(struct kv_cluster *t,
				    const struct kv_id *id)
{
	unsigned i;

	for (i = 0; i < t->leaf_count; i++)
		if (t->leaf[i].is_there && !t->is_killed[t->leaf[i].node] &&
		    memcmp(&t->leaf[i].id, id, sizeof(*id)) == 0)
			return &t->leaf[i];
	return NULL;
}

static int connect_port(struct kv_cluster_client *c,
			struct kv_cluster_leaf *leaf, struct kit_port *port)
{
	struct client_link_options o = {.send_depth = 256,
					.rights = CLIENT_LINK_ALL};
	struct scenario_conn *conn;
	int err;

	if (c->cluster->is_killed[leaf->node])
		return error_set(-EHOSTDOWN, "the node is dead");
	if (!leaf->is_there)
		return error_set(-ENOENT, "the leaf is gone");
	err = scenario_conn_open(&c->cluster->conns, c->host, leaf->table, &o,
				 port->conn, sizeof(port->conn), &conn);
	if (err)
		return err;
	conn->to = leaf;
	port->link = conn->link;
	port->addr = leaf->table->addr;
	port->rkey = leaf->table->rkey;
	port->lock_addr = leaf->locks->addr;
	port->lock_rkey = leaf->locks->rkey;
	return 0;
}

static struct scenario_conn *conn_of(struct kv_cluster_client *c,
				     const struct kit_port *port)
{
	return &c->cluster->conns.at[atoi(port->conn)];
}

static void port_close(void *ctx, struct kit_port *port)
{
	struct kv_cluster_client *c = ctx;

	scenario_conn_close(conn_of(c, port), c->is_dead);
	if (!c->is_dead)
		port->link = NULL;
}

static int port_renew(void *ctx, struct kit_port *port)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster_leaf *now =
		find(c->cluster, &leaf_of(conn_of(c, port))->id);

	port_close(ctx, port);
	if (!now)
		return error_set(any_is_killed(c->cluster) ? -EHOSTDOWN
							   : -ENOENT,
				 "the leaf is gone");
	return connect_port(c, now, port);
}

static int world_open(void *ctx, const struct kv_id *id, struct kit_port *port)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster_leaf *leaf = find(c->cluster, id);

	if (!leaf)
		return error_set(any_is_killed(c->cluster) ? -EHOSTDOWN
							   : -ENOENT,
				 "there is no such leaf");
	*port = (struct kit_port){.fence = port_fence,
				  .is_alive = port_is_alive,
				  .renew = port_renew,
				  .close = port_close,
				  .ctx = c};
	return connect_port(c, leaf, port);
}

/* ---- leaves ------------------------------------------------------------- */

static int world_list(void *ctx, kv_id_fn each, void *user)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster *t = c->cluster;
	unsigned i;

	for (i = 0; i < t->leaf_count; i++)
		if (t->leaf[i].is_there && !t->is_killed[t->leaf[i].node])
			each(user, &t->leaf[i].id);
	return 0;
}

static int world_nodes(void *ctx)
{
	struct kv_cluster_client *c = ctx;
	int n = 0;

	for (unsigned i = 0; i < c->cluster->node_count; i++)
		n += !c->cluster->is_killed[i];
	return n;
}

static int choose_node(struct kv_cluster *t, const struct kv_id *id,
		       unsigned *out)
{
	struct kv_id first = {id->name, id->shard, 0};
	const struct kv_cluster_leaf *other = id->copy ? find(t, &first) : NULL;
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
	struct kv_cluster_client *c = ctx;
	struct kv_cluster *t = c->cluster;
	struct kv_cluster_leaf *leaf = &t->leaf[t->leaf_count];
	struct kit_port port;
	int err;

	if (find(t, id))
		return error_set(-EEXIST, "there is such a leaf");
	if (t->leaf_count == KV_CLUSTER_LEAVES)
		return error_set(-ENOSPC, "the play has no leaf left");
	*leaf = (struct kv_cluster_leaf){.id = *id, .is_there = true};
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
	err = world_open(c, id, &port);
	if (err)
		return err;
	err = kv_format(&port, g, state);
	port_close(c, &port);
	return err;
}

static int world_drop(void *ctx, const struct kv_id *id)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster *t = c->cluster;
	struct kv_cluster_leaf *leaf = find(t, id);
	unsigned i;

	if (!leaf)
		return -ENOENT;
	if (t->is_killed[leaf->node])
		return -EHOSTDOWN;
	leaf->is_there = false;
	/* Its memory stays, but nobody gets at it. */
	for (i = 0; i < t->conns.count; i++)
		if (t->conns.at[i].to == leaf && t->conns.at[i].link &&
		    scenario_conn_fence(&t->conns.at[i]))
			return -EIO;
	return 0;
}

struct kv_world kv_cluster_world(struct kv_cluster_client *c)
{
	return (struct kv_world){.ctx = c,
				 .list = world_list,
				 .open = world_open,
				 .make = world_make,
				 .drop = world_drop,
				 .nodes = world_nodes};
}

void kv_cluster_kill(struct kv_cluster *t, unsigned node)
{
	if (t->is_killed[node])
		return;
	t->is_killed[node] = true;
	scenario_host_kill(t->node[node]);
	scenario_host_tell_gone(t->node[node]);
}
