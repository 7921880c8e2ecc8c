/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of a rack, of both kinds: making, opening and dropping them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/tally.h"
#include "index_priv.h"

enum {
	WORDS_BYTES = 200,
	PART_BYTES = KIT_NAME_MAX + 8,
};
STATIC_ASSERT(AQ_INDEX_NAME_MAX == (int)KIT_NAME_MAX, "names");

static void set_regions(const struct aq_index *x, struct index_connection *g)
{
	*g = (struct index_connection){.rack = x->rack};
	index_region_name(x->kind == AQ_INDEX_TREE ? "it" : "iv", x->name,
			  g->region);
	if (x->kind == AQ_INDEX_TREE)
		index_region_name("il", x->name, g->locks);
}

/* ---- making ------------------------------------------------------------- */

static int make_geometry(struct aq_index *x, const struct aq_index_options *o)
{
	struct tree_options t = {.size_bytes = o->size_bytes,
				 .node_bytes = o->node_bytes,
				 .key_max = o->key_max,
				 .value_max = o->value_max,
				 .clients = o->clients,
				 .failure_ms = o->failure_ms,
				 .locks = o->locks};
	struct vlist_options v = {.keys = o->keys,
				  .versions = o->versions,
				  .value_max = o->value_max,
				  .clients = o->clients,
				  .failure_ms = o->failure_ms};

	if (o->kind > AQ_INDEX_VERSIONS)
		return error_set(-EINVAL, "there is no such kind of index");
	x->kind = (enum aq_index_kind)o->kind;
	return x->kind == AQ_INDEX_TREE ? tree_geometry_make(&t, &x->tree)
					: vlist_geometry_make(&v, &x->vlist);
}

/* On the node that has the index. */
static int make_locks(struct aq_index *x, struct index_connection *g,
		      const char *part_of, uint32_t flags)
{
	struct client_link_options lo = {.rights = CLIENT_LINK_READ};
	bool at_switch = flags & AQ_INDEX_SWITCH_LOCKS, on_device = false;
	struct client_link *link;
	int err = client_link_open(x->rack, g->region, &lo, &link);

	if (err)
		return err;
	/* Whoever has made the nodes makes the locks. Others that are there
	 * were left when somebody deleted their nodes by force. */
	err = aq_region_delete_forced(x->rack, g->locks);
	if (!err || err == -ENOENT)
		err = kit_locks_make(x->rack, client_link_node_name(link),
				     g->locks, part_of, x->tree.lock_bytes,
				     at_switch ? AQ_REGION_SWITCH_ATOMICS : 0,
				     flags & AQ_INDEX_HOST_LOCKS, &on_device);
	if (on_device)
		x->tree.flags |= TREE_DEVICE_LOCKS;
	if (at_switch)
		x->tree.flags |= TREE_SWITCH_LOCKS;
	client_link_close(link);
	return err;
}

static int format(struct aq_index *x, struct index_connection *g)
{
	struct kit_remote remote;
	int err = index_connection_open(g, &remote);

	if (err)
		return err;
	err = x->kind == AQ_INDEX_TREE ? tree_format(&remote, &x->tree)
				       : vlist_format(&remote, &x->vlist);
	kit_remote_disconnect(&remote);
	return err;
}

static int make(struct aq_index *x, const struct aq_index_options *o)
{
	char words[WORDS_BYTES], part_of[PART_BYTES];
	struct aq_region_options ro = {.node = o->node, .part_of = part_of};
	struct index_connection g;
	uint64_t bytes;
	int err;

	snprintf(part_of, sizeof(part_of), "index %s", x->name);
	set_regions(x, &g);
	bytes = x->kind == AQ_INDEX_TREE ? x->tree.size_bytes
					 : x->vlist.size_bytes;
	err = kit_region_make(x->rack, g.region, bytes + KIT_SPARE_BYTES, &ro);
	if (err)
		return err;
	if (g.locks[0])
		err = make_locks(x, &g, part_of, o->flags);
	if (!err)
		err = format(x, &g);
	if (!err)
		return 0;
	/* What was made goes; the first reason is the one to tell. */
	snprintf(words, sizeof(words), "%s", aq_last_error());
	if (g.locks[0] && err != -EEXIST)
		(void)aq_region_delete_forced(x->rack, g.locks);
	(void)aq_region_delete_forced(x->rack, g.region);
	return error_set(err, "%s", words);
}

/* ---- handles ------------------------------------------------------------ */

static int new_handle(struct aq_rack *rack, const char *name,
		      struct aq_index **out)
{
	struct aq_index *x;
	int err = kit_name_check("an index", name);

	if (err)
		return err;
	x = calloc(1, sizeof(*x));
	if (!x)
		return error_set(-ENOMEM, "no memory for an index");
	x->rack = rack;
	snprintf(x->name, sizeof(x->name), "%s", name);
	*out = x;
	return 0;
}

static int probe(struct aq_index *x, enum aq_index_kind kind)
{
	struct index_connection g;
	struct kit_remote remote;
	int err;

	x->kind = kind;
	set_regions(x, &g);
	err = index_connection_open(&g, &remote);
	if (err)
		return err;
	err = kind == AQ_INDEX_TREE ? tree_probe(&remote, &x->tree)
				    : vlist_probe(&remote, &x->vlist);
	kit_remote_disconnect(&remote);
	return err;
}

int aq_index_open(struct aq_rack *rack, const char *name, struct aq_index **out)
{
	struct aq_index *x;
	int err = new_handle(rack, name, &x);

	if (err)
		return err;
	err = probe(x, AQ_INDEX_TREE);
	if (err == -ENOENT)
		err = probe(x, AQ_INDEX_VERSIONS);
	if (err == -ENOENT)
		err = error_set(-ENOENT, "there is no index %s", name);
	if (!err && x->kind == AQ_INDEX_TREE)
		err = tree_locals_create(&x->tree, &x->locals);
	if (!err && x->kind == AQ_INDEX_VERSIONS)
		err = vlist_places_create(0, &x->places);
	if (err)
		aq_index_close(x);
	else
		*out = x;
	return err;
}

/* Whether there is an index of that name and kind, or what is left of one. */
static int exists_as(struct aq_index *x, enum aq_index_kind kind)
{
	struct index_connection g;
	struct aq_region *region;
	int err;

	x->kind = kind;
	set_regions(x, &g);
	err = aq_region_open(x->rack, g.region, AQ_REGION_READ_ONLY, &region);
	if (err)
		return err == -ENOENT ? 0 : err;
	aq_region_close(region);
	err = probe(x, kind);
	if (err == -ENOENT || err == -EBADMSG)
		return error_set(-EEXIST,
				 "there is what is left of an index %s; "
				 "'aquifer index drop %s' removes it",
				 x->name, x->name);
	return err ? err
		   : error_set(-EEXIST, "there is an index %s already",
			       x->name);
}

static int exists(struct aq_index *x)
{
	int err = exists_as(x, AQ_INDEX_TREE);

	return err ? err : exists_as(x, AQ_INDEX_VERSIONS);
}

int aq_index_create(struct aq_rack *rack, const char *name,
		    const struct aq_index_options *options,
		    struct aq_index **out)
{
	struct aq_index *x;
	int err = new_handle(rack, name, &x);

	if (err)
		return err;
	/* A name is of one kind only. */
	err = exists(x);
	if (!err)
		err = make_geometry(x, options);
	if (!err)
		err = make(x, options);
	aq_index_close(x);
	return err ? err : aq_index_open(rack, name, out);
}

void aq_index_close(struct aq_index *x)
{
	if (!x)
		return;
	tree_locals_destroy(x->locals);
	vlist_places_destroy(x->places);
	free(x);
}

int aq_index_drop(struct aq_rack *rack, const char *name)
{
	/* The locks first: an index is found by its other region. */
	static const char *const kinds[] = {"il", "it", "iv"};
	char region[KIT_REGION_BYTES];
	unsigned count = 0, i;
	int err = kit_name_check("an index", name);

	for (i = 0; i < ARRAY_LEN(kinds) && !err; i++) {
		index_region_name(kinds[i], name, region);
		err = aq_region_delete_forced(rack, region);
		count += !err;
		if (err == -ENOENT)
			err = 0;
	}
	return err || count ? err
			    : error_set(-ENOENT, "there is no index %s", name);
}

void aq_index_get_info(const struct aq_index *x, struct aq_index_info *info)
{
	const struct vlist_geometry *v = &x->vlist;
	const struct tree_geometry *t = &x->tree;

	if (x->kind == AQ_INDEX_VERSIONS) {
		*info = (struct aq_index_info){.kind = AQ_INDEX_VERSIONS,
					       .key_max = 8,
					       .value_max = v->value_max,
					       .node_bytes = v->node_bytes,
					       .clients = v->client_count,
					       .failure_ms = v->failure_ms,
					       .nodes = v->node_count,
					       .size_bytes = v->size_bytes,
					       .keys = vlist_key_room(v)};
		return;
	}
	*info = (struct aq_index_info){
		.kind = AQ_INDEX_TREE,
		.key_max = t->key_max,
		.value_max = t->value_max,
		.node_bytes = t->node_bytes,
		.entries_per_leaf = t->leaf_slots,
		.entries_per_inner = t->inner_slots,
		.clients = t->client_count,
		.failure_ms = t->failure_ms,
		.locks = t->lock_count,
		.locks_on_device = t->flags & TREE_DEVICE_LOCKS,
		.locks_at_switch = t->flags & TREE_SWITCH_LOCKS,
		.nodes = t->node_count,
		.size_bytes = t->size_bytes + t->lock_bytes};
}

/* ---- clients ------------------------------------------------------------ */

static int open_tree(struct aq_index *x,
		     const struct aq_index_client_options *o,
		     struct tree_config *tc, struct aq_index_client *c)
{
	struct kit_remote remote;
	int err = index_walker_init(&c->walker, x->rack, c->connection.region,
				    &x->tree);

	tc->walker = &c->walker.ops;
	tc->walks_gets = o && o->flags & AQ_INDEX_WALK;
	tc->no_cache = o && o->flags & AQ_INDEX_NO_CACHE;
	if (!err)
		err = index_connection_open(&c->connection, &remote);
	if (err)
		return err;
	err = tree_client_create(&remote, &x->tree, tc, &c->tree);
	if (err)
		kit_remote_disconnect(&remote);
	return err;
}

static int open_vlist(struct aq_index *x, const struct vlist_config *vc,
		      struct aq_index_client *c)
{
	struct kit_remote remote;
	int err = index_connection_open(&c->connection, &remote);

	if (err)
		return err;
	err = vlist_client_create(&remote, &x->vlist, vc, &c->vlist);
	if (err)
		kit_remote_disconnect(&remote);
	return err;
}

static int open_client(struct aq_index *x,
		       const struct aq_index_client_options *o,
		       struct aq_index_client *c)
{
	uint32_t deadline_ms = o && o->deadline_ms ? o->deadline_ms
						   : aq_rack_deadline(x->rack);
	struct tree_config tc = {.deadline_ms = deadline_ms,
				 .cache_nodes = o ? o->cache : 0,
				 .locals = x->locals};
	struct vlist_config vc = {.deadline_ms = deadline_ms,
				  .cache_keys = o ? o->cache : 0,
				  .places = x->places};

	if (o && o->flags & ~(uint32_t)(AQ_INDEX_WALK | AQ_INDEX_NO_CACHE))
		return error_set(-EINVAL, "unknown flags of a client: %#x",
				 o->flags);
	set_regions(x, &c->connection);
	return x->kind == AQ_INDEX_TREE ? open_tree(x, o, &tc, c)
					: open_vlist(x, &vc, c);
}

int aq_index_client_open(struct aq_index *x,
			 const struct aq_index_client_options *options,
			 struct aq_index_client **out)
{
	struct aq_index_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	err = open_client(x, options, c);
	if (!err)
		c->tally = client_tally_open(x->rack, TALLY_INDEX, x->name);
	if (err)
		aq_index_client_close(c);
	else
		*out = c;
	return err;
}

void aq_index_client_close(struct aq_index_client *c)
{
	if (!c)
		return;
	tree_client_destroy(c->tree);
	vlist_client_destroy(c->vlist);
	index_walker_release(&c->walker);
	client_tally_close(c->connection.rack, c->tally);
	free(c);
}
