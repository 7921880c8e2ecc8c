/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of a table's replicas in a rack. A replica is two regions of one
 * node, by name: "kv-" for rows and extents or "kl-" for locks, four digits of
 * the generation, two of the shard, one of the copy, and the table's name. The
 * node keeps them as parts of the table.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_program.h"
#include "kv_table_priv.h"
#include "traverse/traverse.h"

enum {
	SEND_DEPTH = 4 * KIT_WR_MAX,
	PREFIX_BYTES = 11, /* of a region's name, "kv-0000000-" */
	PART_BYTES = KIT_NAME_MAX + 8,
};

/* ---- names -------------------------------------------------------------- */

void kv_region_name(const char *table, const struct kv_id *id, bool is_locks,
		    char out[KIT_REGION_BYTES])
{
	snprintf(out, KIT_REGION_BYTES, "%s-%04x%02x%x-%s",
		 is_locks ? "kl" : "kv", id->name & 0xffff, id->shard & 0xff,
		 id->copy & 0xf, table);
}

int kv_region_parse(const char *region, struct kv_region *out)
{
	char again[KIT_REGION_BYTES], kind = 0;
	struct kv_region r = {0};

	if (strlen(region) <= PREFIX_BYTES ||
	    strlen(region) > PREFIX_BYTES + AQ_KV_NAME_MAX ||
	    sscanf(region, "k%c-%4x%2x%1x-", &kind, &r.id.name, &r.id.shard,
		   &r.id.copy) != 4)
		return -ENOENT;
	r.is_locks = kind == 'l';
	snprintf(r.table, sizeof(r.table), "%s", region + PREFIX_BYTES);
	kv_region_name(r.table, &r.id, r.is_locks, again);
	if (strcmp(again, region) != 0)
		return -ENOENT;
	*out = r;
	return 0;
}

bool aq_kv_owns_region(const char *region, char name[AQ_KV_NAME_MAX + 1])
{
	struct kv_region r;

	if (kv_region_parse(region, &r))
		return false;
	memcpy(name, r.table, sizeof(r.table));
	return true;
}

/* ---- connections -------------------------------------------------------- */

/* What a remote needs for the rest of its life. */
struct connection {
	struct aq_kv *kv;
	struct kv_id id;
	uint32_t node;
	/* Walks, from the first one on; NULL: there was none yet. */
	struct traverse_set *walks;
};

/* A client of two copies has two connections, "a+b"; the second is at the node
 * that has the other copy. One that does not answer executes nothing. */
static int fence_peer(const struct connection *c, const char *conn)
{
	struct client_link_options o = {.rights = CLIENT_LINK_READ};
	struct kv_id id = c->id;
	struct client_link *link;
	char name[KIT_REGION_BYTES];
	int err;

	id.copy = !id.copy;
	kv_region_name(c->kv->name, &id, false, name);
	err = client_link_open(c->kv->rack, name, &o, &link);
	if (!err) {
		err = client_link_end(c->kv->rack, link->node, conn);
		client_link_close(link);
	}
	return err == -EHOSTDOWN || err == -ENOENT ? 0 : err;
}

static int remote_fence(void *ctx, const char *conn)
{
	const struct connection *c = ctx;
	char own[KIT_SLOT_NAME_MAX + 1];
	size_t n = strcspn(conn, "+");
	int err;

	snprintf(own, sizeof(own), "%.*s", (int)n, conn);
	err = client_link_end(c->kv->rack, c->node, own);
	if (!err && conn[n])
		err = fence_peer(c, conn + n + 1);
	return err;
}

static int remote_is_alive(void *ctx, const char *conn)
{
	const struct connection *c = ctx;
	char own[KIT_SLOT_NAME_MAX + 1];

	snprintf(own, sizeof(own), "%.*s", (int)strcspn(conn, "+"), conn);
	return client_link_is_known(c->kv->rack, c->node, own, UINT32_MAX);
}

static void remote_close(void *ctx, struct kit_remote *remote)
{
	struct connection *c = ctx;

	traverse_set_destroy(c->walks);
	kit_remote_disconnect(remote);
	free(c);
}

static int make_walk(const void *ctx, unsigned which, struct walk_build **build,
		     struct walk_image *image)
{
	return kv_program_make(ctx, (enum kv_walk)which, build, image);
}

static int remote_walk(void *ctx, const void *geometry, struct kit_walk *walk)
{
	const struct traverse_ask ask = {.which = walk->which,
					 .start = walk->start,
					 .pad = walk->pad,
					 .send_bytes = walk->send_bytes,
					 .until_ns = walk->until_ns};
	char table[KIT_REGION_BYTES];
	struct connection *c = ctx;

	if (!c->walks) {
		kv_region_name(c->kv->name, &c->id, false, table);
		c->walks = traverse_set_create(c->kv->rack, table, make_walk,
					       geometry);
	}
	return c->walks ? traverse_set_run(c->walks, &ask, &walk->back,
					   &walk->trips)
			: -ENOMEM;
}

static int remote_renew(void *ctx, struct kit_remote *remote)
{
	char table[KIT_REGION_BYTES], locks[KIT_REGION_BYTES];
	struct connection *c = ctx;
	int err;

	kv_region_name(c->kv->name, &c->id, false, table);
	kv_region_name(c->kv->name, &c->id, true, locks);
	kit_remote_disconnect(remote);
	err = kit_remote_connect(remote, c->kv->rack, table, locks, SEND_DEPTH);
	if (!err)
		c->node = remote->link->node;
	return err;
}

static int world_open(void *ctx, const struct kv_id *id,
		      struct kit_remote *remote)
{
	struct connection *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a connection");
	*c = (struct connection){.kv = ctx, .id = *id};
	*remote = (struct kit_remote){.fence = remote_fence,
				      .is_alive = remote_is_alive,
				      .renew = remote_renew,
				      .close = remote_close,
				      .walk = remote_walk,
				      .wants_look = remote->wants_look,
				      .ctx = c};
	err = remote_renew(c, remote);
	if (err)
		free(c);
	return err;
}

/* ---- replicas ----------------------------------------------------------- */

struct lister {
	const struct aq_kv *kv;
	kv_id_fn each;
	void *user;
};

static int list_region(const char *name, const struct aq_region_stat *stat,
		       void *user)
{
	const struct lister *l = user;
	struct kv_region r;

	if (kv_region_parse(name, &r) == 0 && !r.is_locks &&
	    strcmp(r.table, l->kv->name) == 0)
		l->each(l->user, &r.id);
	return 0;
}

static int world_list(void *ctx, kv_id_fn each, void *user)
{
	struct lister l = {.kv = ctx, .each = each, .user = user};

	return aq_region_each(l.kv->rack, list_region, &l);
}

static int world_drop(void *ctx, const struct kv_id *id)
{
	char table[KIT_REGION_BYTES], locks[KIT_REGION_BYTES];
	struct aq_kv *kv = ctx;
	int err, one;

	kv_region_name(kv->name, id, false, table);
	kv_region_name(kv->name, id, true, locks);
	/* The locks first: a replica is listed by its other region. */
	one = aq_region_delete_forced(kv->rack, locks);
	if (one == -ENOENT)
		one = 0;
	err = one ? one : aq_region_delete_forced(kv->rack, table);
	return err;
}

/* ---- what is left of a table ------------------------------------------- */

/* Replicas of which there is one region or two. */
struct remains {
	const struct aq_kv *kv;
	struct kv_id *id;
	uint32_t count, room;
	bool wants_locks; /* else it takes out those whose rows are there */
};

static int note_remains(const char *name, const struct aq_region_stat *stat,
			void *user)
{
	struct remains *m = user;
	struct kv_region r;
	uint32_t i;
	int err;

	if (kv_region_parse(name, &r) || r.is_locks != m->wants_locks ||
	    strcmp(r.table, m->kv->name) != 0)
		return 0;
	if (m->wants_locks) {
		err = kit_grow(&m->id, &m->room, m->count + 1, sizeof(*m->id));
		if (!err)
			m->id[m->count++] = r.id;
		return err;
	}
	for (i = 0; i < m->count; i++)
		if (memcmp(&m->id[i], &r.id, sizeof(r.id)) == 0)
			m->id[i--] = m->id[--m->count];
	return 0;
}

int kv_remains_drop(struct aq_kv *kv, unsigned *count)
{
	struct remains m = {.kv = kv, .wants_locks = true};
	char locks[KIT_REGION_BYTES];
	int err = aq_region_each(kv->rack, note_remains, &m);

	/* The rows are looked for last: locks come after them and go before. */
	m.wants_locks = false;
	if (!err)
		err = aq_region_each(kv->rack, note_remains, &m);
	*count = m.count;
	while (!err && m.count) {
		kv_region_name(kv->name, &m.id[--m.count], true, locks);
		err = aq_region_delete_forced(kv->rack, locks);
		if (err == -ENOENT)
			err = 0;
	}
	free(m.id);
	return err;
}

/* Nodes that hand something out: one that is full or drained has nothing. Where
 * none has, all of them: the first says in words why it refuses. */
static int hosts_with_room(struct aq_kv *kv,
			   struct client_host host[CLIENT_NODE_MAX])
{
	int i, n = client_hosts(kv->rack, host, CLIENT_NODE_MAX), kept = 0;

	for (i = 0; i < n; i++)
		if (host[i].free_bytes)
			host[kept++] = host[i];
	return kept ? kept : n;
}

/* Which node: one after the other, and a second copy on another than the first.
 * out is "" where any will do. */
static int choose_node(struct aq_kv *kv, const struct kv_id *id,
		       const struct kv_geometry *g,
		       char out[CLIENT_NODE_NAME_MAX])
{
	struct client_host host[CLIENT_NODE_MAX];
	struct client_link_options o = {.rights = CLIENT_LINK_READ};
	struct kv_id first = {id->name, id->shard, 0};
	struct client_link *link;
	char name[KIT_REGION_BYTES];
	int i, n, err;

	snprintf(out, CLIENT_NODE_NAME_MAX, "%s", kv->node ? kv->node : "");
	if (g->shard_count == 1 && id->copy == 0)
		return 0;
	n = hosts_with_room(kv, host);
	if (n < 0)
		return n;
	i = (int)(id->shard % (uint32_t)n);
	if (id->copy) {
		kv_region_name(kv->name, &first, false, name);
		err = client_link_open(kv->rack, name, &o, &link);
		if (err)
			return err;
		for (i = 0; i < n && strcmp(host[i].node,
					    client_link_node_name(link)) != 0;
		     i++)
			;
		client_link_close(link);
		if (n < 2 && i < n)
			return error_set(-ENOSPC, "two copies need two nodes "
						  "that answer and have room");
		i = (i + 1) % n;
	}
	snprintf(out, CLIENT_NODE_NAME_MAX, "%s", host[i].node);
	return 0;
}

/* On the node that has the rows. */
static int make_locks(struct aq_kv *kv, const char *table, const char *locks,
		      const char *part_of, struct kv_geometry *g)
{
	struct client_link_options lo = {.rights = CLIENT_LINK_READ};
	struct client_link *link;
	bool on_device = false;
	int err = client_link_open(kv->rack, table, &lo, &link);

	if (err)
		return err;
	g->flags &= ~(uint32_t)KV_DEVICE_LOCKS;
	if (!link->has_masked_atomics)
		g->flags |= KV_WORD_LOCKS;
	err = kv_geometry_derive(g);
	if (!err)
		err = kit_locks_make(kv->rack, client_link_node_name(link),
				     locks, part_of, g->lock_bytes, 0,
				     kv->may_use_host, &on_device);
	/* Whoever has made the rows makes the locks. Others that are there were
	 * left when somebody deleted their rows by force. */
	if (err == -EEXIST) {
		err = aq_region_delete_forced(kv->rack, locks);
		if (!err || err == -ENOENT)
			err = kit_locks_make(kv->rack,
					     client_link_node_name(link), locks,
					     part_of, g->lock_bytes, 0,
					     kv->may_use_host, &on_device);
	}
	if (on_device)
		g->flags |= KV_DEVICE_LOCKS;
	client_link_close(link);
	return err;
}

/* The rows are there: the rest of a replica. */
static int complete(struct aq_kv *kv, const struct kv_id *id,
		    const char *part_of, struct kv_geometry *g, uint64_t state)
{
	char table[KIT_REGION_BYTES], locks[KIT_REGION_BYTES];
	struct kit_remote remote = {0};
	int err;

	kv_region_name(kv->name, id, false, table);
	kv_region_name(kv->name, id, true, locks);
	err = make_locks(kv, table, locks, part_of, g);
	if (!err)
		err = world_open(kv, id, &remote);
	if (!err) {
		err = kv_format(&remote, g, state);
		remote.close(remote.ctx, &remote);
	}
	return err;
}

static int world_make(void *ctx, const struct kv_id *id,
		      const struct kv_geometry *geometry, uint64_t state)
{
	char table[KIT_REGION_BYTES], node[CLIENT_NODE_NAME_MAX],
		part_of[PART_BYTES], words[ERROR_TEXT_MAX];
	struct kv_geometry g = *geometry;
	struct aq_region_options ro = {0};
	struct aq_kv *kv = ctx;
	int err = choose_node(kv, id, &g, node);

	if (err)
		return err;
	snprintf(part_of, sizeof(part_of), "kv %s", kv->name);
	ro.node = node[0] ? node : NULL;
	ro.part_of = part_of;
	kv_region_name(kv->name, id, false, table);
	err = kit_region_make(kv->rack, table, g.size_bytes + KIT_SPARE_BYTES,
			      &ro);
	if (err)
		return err;
	err = complete(kv, id, part_of, &g, state);
	if (!err)
		return 0;
	/* What was made goes; the first reason is the one to tell. */
	snprintf(words, sizeof(words), "%s", error_last());
	(void)world_drop(kv, id);
	return error_set(err, "%s", words);
}

static int world_nodes(void *ctx)
{
	struct client_host host[CLIENT_NODE_MAX];
	struct aq_kv *kv = ctx;

	return client_hosts(kv->rack, host, CLIENT_NODE_MAX);
}

struct kv_world kv_world_of(struct aq_kv *kv)
{
	return (struct kv_world){.ctx = kv,
				 .list = world_list,
				 .open = world_open,
				 .make = world_make,
				 .drop = world_drop,
				 .nodes = world_nodes};
}
