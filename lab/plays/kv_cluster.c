/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, replicas and connections of a table in the simulator. */
#include "kv_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "kv/kv_program.h"
#include "rig/walker.h"
#include "sim/fiber.h"

/* ---- connections -------------------------------------------------------- */

static const struct kv_cluster_replica *replica_of(const struct rig_conn *conn)
{
	return conn->to;
}

static int fence(struct kv_cluster *t, const char *name)
{
	struct rig_conn *conn = rig_conn_find(&t->conns, name);

	return conn && !t->is_killed[replica_of(conn)->node]
		       ? rig_conn_fence(conn)
		       : 0;
}

/* "a", or "a+b" of a client of two copies. */
static int remote_fence(void *ctx, const char *conn)
{
	struct kv_cluster_client *c = ctx;
	const char *second = strchr(conn, '+');
	int err;

	if (PLANTED(kv_no_fence))
		return 0;
	err = fence(c->cluster, conn);
	return err || !second ? err : fence(c->cluster, second + 1);
}

static int remote_is_alive(void *ctx, const char *conn)
{
	struct kv_cluster_client *c = ctx;

	return rig_conn_is_alive(&c->cluster->conns, conn);
}

static bool any_is_killed(const struct kv_cluster *t)
{
	unsigned i;

	for (i = 0; i < t->node_count; i++)
		if (t->is_killed[i])
			return true;
	return false;
}

static struct kv_cluster_replica *find(struct kv_cluster *t,
				       const struct kv_id *id)
{
	unsigned i;

	for (i = 0; i < t->replica_count; i++)
		if (t->replica[i].is_there &&
		    !t->is_killed[t->replica[i].node] &&
		    memcmp(&t->replica[i].id, id, sizeof(*id)) == 0)
			return &t->replica[i];
	return NULL;
}

static int connect_remote(struct kv_cluster_client *c,
			  struct kv_cluster_replica *replica,
			  struct kit_remote *remote)
{
	struct client_link_options o = {.send_depth = 256,
					.rights = CLIENT_LINK_ALL};
	struct rig_conn *conn;
	int err;

	if (c->cluster->is_killed[replica->node])
		return error_set(-EHOSTDOWN, "the node is dead");
	if (!replica->is_there)
		return error_set(-ENOENT, "the replica is gone");
	err = rig_conn_open(&c->cluster->conns, c->host, replica->table, &o,
			    remote->conn, sizeof(remote->conn), &conn);
	if (err)
		return err;
	conn->to = replica;
	remote->link = conn->link;
	remote->addr = replica->table->addr;
	remote->rkey = replica->table->rkey;
	remote->lock_addr = replica->locks->addr;
	remote->lock_rkey = replica->locks->rkey;
	return 0;
}

static struct rig_conn *conn_of(struct kv_cluster_client *c,
				const struct kit_remote *remote)
{
	return &c->cluster->conns.at[atoi(remote->conn)];
}

static void remote_close(void *ctx, struct kit_remote *remote)
{
	struct kv_cluster_client *c = ctx;

	rig_conn_close(conn_of(c, remote), c->is_dead);
	if (!c->is_dead)
		remote->link = NULL;
}

static int remote_renew(void *ctx, struct kit_remote *remote)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster_replica *now =
		find(c->cluster, &replica_of(conn_of(c, remote))->id);

	remote_close(ctx, remote);
	if (!now)
		return error_set(any_is_killed(c->cluster) ? -EHOSTDOWN
							   : -ENOENT,
				 "the replica is gone");
	return connect_remote(c, now, remote);
}

/* ---- walks --------------------------------------------------------------- */

enum {
	WALK_NODES_MAX = 8, /* a get visits four */
	WALK_PAUSE_NS = 5000,
};

static void walk_pause(void *ctx)
{
	struct kv_cluster_client *c = ctx;

	sim_fiber_sleep_ps(rig_stage_sim(c->host->stage),
			   sim_rand_range(&c->walk_rand, 0, WALK_PAUSE_NS) *
				   SIM_NS);
}

/* Interpreted, as each is made for one get only. */
static int open_program(const struct kv_geometry *g, unsigned which,
			struct walk_program **out)
{
	const struct walk_options options = {.interpret = true};
	struct walk_build *build = NULL;
	struct walk_image image;
	int err = kv_program_make(g, (enum kv_walk)which, &build, &image);

	if (!err)
		err = walk_program_open(&image, &options, out);
	walk_build_destroy(build);
	return err;
}

static int remote_walk(void *ctx, const void *geometry, struct kit_walk *walk)
{
	struct kv_cluster_client *c = ctx;
	const struct kv_geometry *g = geometry;
	const struct kv_id id = {g->name, g->shard, g->copy};
	const struct kv_cluster_replica *replica = find(c->cluster, &id);
	struct rig_walker walker = {
		.iterations = WALK_NODES_MAX, .between = walk_pause, .ctx = c};
	struct walk_program *program = NULL;
	int err = replica ? open_program(g, walk->which, &program) : -EHOSTDOWN;

	if (err)
		return err;
	walk->trips = 1;
	walk->back = walk->pad;
	memset((uint8_t *)walk->pad + walk->send_bytes, 0,
	       walk->pad_bytes - walk->send_bytes);
	walker.region = replica->table;
	err = rig_walker_run(&walker, program, walk->start, walk->pad);
	walk_program_close(program);
	/* Nobody answers for memory that is gone. */
	return find(c->cluster, &id) ? err : -EHOSTDOWN;
}

static int world_open(void *ctx, const struct kv_id *id,
		      struct kit_remote *remote)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster_replica *replica = find(c->cluster, id);

	if (!replica)
		return error_set(any_is_killed(c->cluster) ? -EHOSTDOWN
							   : -ENOENT,
				 "there is no such replica");
	*remote = (struct kit_remote){.fence = remote_fence,
				      .is_alive = remote_is_alive,
				      .renew = remote_renew,
				      .close = remote_close,
				      .walk = remote_walk,
				      .ctx = c};
	return connect_remote(c, replica, remote);
}

/* ---- replicas ----------------------------------------------------------- */

static int world_list(void *ctx, kv_id_fn each, void *user)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster *t = c->cluster;
	unsigned i;

	for (i = 0; i < t->replica_count; i++)
		if (t->replica[i].is_there && !t->is_killed[t->replica[i].node])
			each(user, &t->replica[i].id);
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
	const struct kv_cluster_replica *other =
		id->copy ? find(t, &first) : NULL;
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
	struct kv_cluster_replica *replica = &t->replica[t->replica_count];
	struct kit_remote remote;
	int err;

	if (find(t, id))
		return error_set(-EEXIST, "there is such a replica");
	if (t->replica_count == KV_CLUSTER_REPLICAS)
		return error_set(-ENOSPC, "the play has no replica left");
	*replica = (struct kv_cluster_replica){.id = *id, .is_there = true};
	err = choose_node(t, id, &replica->node);
	if (!err)
		err = rig_region_create(t->node[replica->node], g->size_bytes,
					false, &replica->table);
	if (!err)
		err = rig_region_create(t->node[replica->node], g->lock_bytes,
					false, &replica->locks);
	if (err)
		return err;
	t->replica_count++;
	err = world_open(c, id, &remote);
	if (err)
		return err;
	err = kv_format(&remote, g, state);
	remote_close(c, &remote);
	return err;
}

static int world_drop(void *ctx, const struct kv_id *id)
{
	struct kv_cluster_client *c = ctx;
	struct kv_cluster *t = c->cluster;
	struct kv_cluster_replica *replica = find(t, id);
	unsigned i;

	if (!replica)
		return -ENOENT;
	if (t->is_killed[replica->node])
		return -EHOSTDOWN;
	replica->is_there = false;
	/* Its memory stays, but nobody gets at it. */
	for (i = 0; i < t->conns.count; i++)
		if (t->conns.at[i].to == replica && t->conns.at[i].link &&
		    rig_conn_fence(&t->conns.at[i]))
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
	rig_host_kill(t->node[node]);
	rig_host_tell_gone(t->node[node]);
}
