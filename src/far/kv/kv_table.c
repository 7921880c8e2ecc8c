/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a rack: the world of their replicas. A replica is two regions of
 * one node, by name: "kv-" for rows and extents or "kl-" for locks, four digits
 * of the generation, two of the shard, one of the copy, and the table's name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "kv_priv.h"

enum {
	SEND_DEPTH = 4 * KIT_WR_MAX,
	WORDS_BYTES = 200,
};

struct aq_kv {
	struct aq_rack *rack;
	char name[AQ_KV_NAME_MAX + 1];
	struct kv_geometry g;
	/* For making replicas only. */
	const char *node;
	bool may_use_host;
};

/* ---- names -------------------------------------------------------------- */

static void region_name(const struct aq_kv *kv, const struct kv_id *id,
			bool is_locks, char out[KIT_REGION_BYTES])
{
	snprintf(out, KIT_REGION_BYTES, "%s-%04x%02x%x-%s",
		 is_locks ? "kl" : "kv", id->name & 0xffff, id->shard & 0xff,
		 id->copy & 0xf, kv->name);
}

static int region_parse(const struct aq_kv *kv, const char *region,
			struct kv_id *id)
{
	char again[KIT_REGION_BYTES];

	if (sscanf(region, "kv-%4x%2x%1x-", &id->name, &id->shard, &id->copy) !=
	    3)
		return -ENOENT;
	region_name(kv, id, false, again);
	return strcmp(again, region) == 0 ? 0 : -ENOENT;
}

static int check_name(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n <= AQ_KV_NAME_MAX
		       ? 0
		       : error_set(-EINVAL,
				   "a table's name has 1 to %d letters, "
				   "digits, '-' and '_'",
				   AQ_KV_NAME_MAX);
}

/* ---- connections -------------------------------------------------------- */

/* What a remote needs for the rest of its life. */
struct connection {
	struct aq_kv *kv;
	struct kv_id id;
	uint32_t node;
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
	region_name(c->kv, &id, false, name);
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
	return client_link_is_known(c->kv->rack, c->node, own);
}

static void remote_close(void *ctx, struct kit_remote *remote)
{
	kit_remote_disconnect(remote);
	free(ctx);
}

static int remote_renew(void *ctx, struct kit_remote *remote)
{
	char table[KIT_REGION_BYTES], locks[KIT_REGION_BYTES];
	struct connection *c = ctx;
	int err;

	region_name(c->kv, &c->id, false, table);
	region_name(c->kv, &c->id, true, locks);
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
	struct kv_id id;

	if (region_parse(l->kv, name, &id) == 0)
		l->each(l->user, &id);
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

	region_name(kv, id, false, table);
	region_name(kv, id, true, locks);
	/* The locks first: a replica is listed by its other region. */
	one = aq_region_delete(kv->rack, locks);
	if (one == -ENOENT)
		one = 0;
	err = one ? one : aq_region_delete(kv->rack, table);
	return err;
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
	n = client_hosts(kv->rack, host, CLIENT_NODE_MAX);
	if (n < 0)
		return n;
	i = (int)(id->shard % (uint32_t)n);
	if (id->copy) {
		region_name(kv, &first, false, name);
		err = client_link_open(kv->rack, name, &o, &link);
		if (err)
			return err;
		for (i = 0; i < n && strcmp(host[i].node,
					    client_link_node_name(link)) != 0;
		     i++)
			;
		client_link_close(link);
		if (n < 2)
			return error_set(-ENOSPC, "two copies need two nodes "
						  "that answer");
		i = (i + 1) % n;
	}
	snprintf(out, CLIENT_NODE_NAME_MAX, "%s", host[i].node);
	return 0;
}

/* On the node that has the rows. */
static int make_locks(struct aq_kv *kv, const char *table, const char *locks,
		      struct kv_geometry *g)
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
				     locks, g->lock_bytes, 0, kv->may_use_host,
				     &on_device);
	if (on_device)
		g->flags |= KV_DEVICE_LOCKS;
	client_link_close(link);
	return err;
}

static int world_make(void *ctx, const struct kv_id *id,
		      const struct kv_geometry *geometry, uint64_t state)
{
	char table[KIT_REGION_BYTES], locks[KIT_REGION_BYTES],
		node[CLIENT_NODE_NAME_MAX];
	struct kv_geometry g = *geometry;
	struct aq_region_options ro = {0};
	struct aq_kv *kv = ctx;
	struct kit_remote remote = {0};
	int err = choose_node(kv, id, &g, node);

	if (err)
		return err;
	ro.node = node[0] ? node : NULL;
	region_name(kv, id, false, table);
	region_name(kv, id, true, locks);
	err = kit_region_make(kv->rack, table, g.size_bytes + KIT_SPARE_BYTES,
			      &ro);
	if (err)
		return err;
	err = make_locks(kv, table, locks, &g);
	if (!err)
		err = world_open(kv, id, &remote);
	if (!err) {
		err = kv_format(&remote, &g, state);
		remote.close(remote.ctx, &remote);
	}
	return err;
}

static int world_nodes(void *ctx)
{
	struct client_host host[CLIENT_NODE_MAX];
	struct aq_kv *kv = ctx;

	return client_hosts(kv->rack, host, CLIENT_NODE_MAX);
}

static struct kv_world world_of(struct aq_kv *kv)
{
	return (struct kv_world){.ctx = kv,
				 .list = world_list,
				 .open = world_open,
				 .make = world_make,
				 .drop = world_drop,
				 .nodes = world_nodes};
}

/* ---- tables ------------------------------------------------------------- */

static int new_handle(struct aq_rack *rack, const char *name,
		      struct aq_kv **out)
{
	struct aq_kv *kv = calloc(1, sizeof(*kv));
	int err = check_name(name);

	if (!kv)
		return error_set(-ENOMEM, "no memory for a table");
	if (err) {
		free(kv);
		return err;
	}
	kv->rack = rack;
	snprintf(kv->name, sizeof(kv->name), "%s", name);
	*out = kv;
	return 0;
}

struct finding {
	struct aq_kv *kv;
	bool any, is_known;
	int err;
};

/* The oldest generation that there is: what is made next to it counts later. */
static void find_head(void *user, const struct kv_id *id)
{
	struct finding *f = user;
	struct kit_remote remote = {0};
	struct kv_geometry g;
	int err;

	f->any = true;
	if (f->is_known && f->kv->g.name == id->name)
		return;
	err = world_open(f->kv, id, &remote);
	if (!err) {
		err = kv_probe(&remote, remote.size_bytes, &g);
		remote.close(remote.ctx, &remote);
	}
	if (err)
		f->err = err;
	else if (!f->is_known || g.generation < f->kv->g.generation) {
		f->is_known = true;
		f->kv->g = g;
	}
}

struct drop_list {
	struct aq_kv *kv;
	unsigned count;
	int err;
};

static void drop_each(void *user, const struct kv_id *id)
{
	struct drop_list *d = user;
	int err = world_drop(d->kv, id);

	d->count++;
	if (err && !d->err)
		d->err = err;
}

static int drop_all(struct aq_kv *kv, unsigned *count)
{
	struct drop_list d = {.kv = kv};
	int err = world_list(kv, drop_each, &d);

	*count = d.count;
	return err ? err : d.err;
}

static void count_each(void *user, const struct kv_id *id)
{
	++*(unsigned *)user;
}

static int make_table(struct aq_kv *kv, const char *name)
{
	struct kv_world world = world_of(kv);
	char words[WORDS_BYTES];
	unsigned count = 0;
	int err = world_list(kv, count_each, &count);

	if (!err && count)
		return error_set(-EEXIST, "there is a table %s already", name);
	if (!err)
		err = kv_replicas_make(&world, &kv->g, KV_PHASE_STABLE);
	if (err) {
		snprintf(words, sizeof(words), "%s", aq_last_error());
		/* What was made goes; the first reason is the one to tell. */
		if (err != -EEXIST)
			(void)drop_all(kv, &count);
		return error_set(err, "%s", words);
	}
	return 0;
}

static int resolve(struct aq_kv *kv, struct aq_kv_options *o)
{
	int n;

	if (!o->seed &&
	    getrandom(&o->seed, sizeof(o->seed), 0) != (ssize_t)sizeof(o->seed))
		return error_set(-EIO, "the kernel gives no random numbers");
	if (o->shards != AQ_KV_ALL_NODES)
		return 0;
	n = world_nodes(kv);
	if (n < 0)
		return n;
	o->shards = (uint32_t)n;
	return 0;
}

int aq_kv_create(struct aq_rack *rack, const char *name,
		 const struct aq_kv_options *options, struct aq_kv **out)
{
	struct aq_kv_options o = *options;
	struct aq_kv *kv;
	int err = new_handle(rack, name, &kv);

	if (err)
		return err;
	kv->node = o.node;
	kv->may_use_host = o.flags & AQ_KV_HOST_LOCKS;
	err = resolve(kv, &o);
	if (!err)
		err = kv_geometry_make(&o, &kv->g);
	if (!err)
		err = make_table(kv, name);
	if (err) {
		aq_kv_close(kv);
		return err;
	}
	kv->node = NULL;
	aq_kv_close(kv);
	return aq_kv_open(rack, name, out);
}

int aq_kv_open(struct aq_rack *rack, const char *name, struct aq_kv **out)
{
	struct finding f = {0};
	struct aq_kv *kv;
	int err = new_handle(rack, name, &kv);

	if (err)
		return err;
	f.kv = kv;
	err = world_list(kv, find_head, &f);
	if (!err && !f.any)
		err = error_set(-ENOENT, "there is no table %s", name);
	if (!err && !f.is_known)
		err = f.err;
	/* Its next generation may have locks where these are. */
	kv->may_use_host = !(kv->g.flags & KV_DEVICE_LOCKS);
	if (err)
		aq_kv_close(kv);
	else
		*out = kv;
	return err;
}

void aq_kv_close(struct aq_kv *kv)
{
	free(kv);
}

int aq_kv_drop(struct aq_rack *rack, const char *name)
{
	unsigned count = 0;
	struct aq_kv *kv;
	int err = new_handle(rack, name, &kv);

	if (err)
		return err;
	err = drop_all(kv, &count);
	if (!err && !count)
		err = error_set(-ENOENT, "there is no table %s", name);
	aq_kv_close(kv);
	return err;
}

void aq_kv_get_info(const struct aq_kv *kv, struct aq_kv_info *info)
{
	const struct kv_geometry *g = &kv->g;
	uint64_t shards = g->shard_count;

	*info = (struct aq_kv_info){
		.rows = g->rows * shards,
		.capacity = g->rows * g->entries * shards,
		.locks = g->lock_count * shards,
		.extent_bytes = g->chunk_count * g->chunk_bytes * shards,
		.size_bytes = (g->size_bytes + g->lock_bytes) * shards *
			      g->copy_count,
		.entries_per_row = g->entries,
		.entry_bytes = g->entry_bytes,
		.row_bytes = g->row_bytes,
		.rows_per_lock = g->rows_per_lock,
		.clients = g->client_count,
		.chunk_bytes = g->chunk_bytes,
		.hash = g->hash,
		.locality_milli = g->locality_milli,
		.failure_ms = g->failure_ms,
		.inline_bytes = g->entry_bytes - KV_E_HEAD,
		.masked_atomics = !(g->flags & KV_WORD_LOCKS),
		.locks_on_device = g->flags & KV_DEVICE_LOCKS,
		.shards = g->shard_count,
		.copies = g->copy_count,
		.generation = g->generation,
	};
}

int aq_kv_client_open(struct aq_kv *kv,
		      const struct aq_kv_client_options *options,
		      struct aq_kv_client **out)
{
	struct kv_client_config config = {0};
	struct kv_world world = world_of(kv);

	if (options)
		config.options = *options;
	if (!config.options.deadline_ms)
		config.options.deadline_ms = aq_rack_deadline(kv->rack);
	return kv_client_open(&world, &config, out);
}

void aq_kv_client_close(struct aq_kv_client *c)
{
	kv_client_destroy(c);
}
