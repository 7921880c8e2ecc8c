/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shipped ordered index, which is made after Sherman, as one of the stores
 * of a figure: locks in device memory, copies of all inner nodes, and clients
 * that wait at home for the locks that others of their machine have. Sherman
 * was measured with eight memory nodes; with so many the keys are dealt out to
 * as many indexes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "index/tree.h"
#include "kv_fig_priv.h"

enum {
	VALUE_MAX = 2048,
	DEADLINE_MS = 1000,
	KEY_BYTES = 4,
	LOCKS = 32768,	  /* words of each node's device memory */
	LEAF_SHARE = 8,	  /* pairs for which there is room for a leaf */
	WARM_EVERY = 256, /* pairs; below an inner node there are more */
};

/* Keys that are next to each other share a leaf, so they come in another order
 * than that of their numbers, or every leaf would stay half full. */
#define STRIDE UINT64_C(2654435761)

struct kvf_tree {
	struct tree_geometry g;
	struct rig_region *region[KV_FIG_NODES];
	struct rig_region *lock[KV_FIG_NODES];
	struct tree_locals *locals[KV_FIG_NODES][KV_FIG_MACHINES];
};

/* One client of each node's index. */
struct kvf_forest {
	struct tree_client *tree[KV_FIG_NODES];
};

static int open_remote(struct kvf_client *c, uint32_t node,
		       struct kit_remote *remote)
{
	struct kvf_tree *u = c->f->rival;
	struct client_link_options o = {.rights = CLIENT_LINK_ALL};

	*remote = (struct kit_remote){.addr = u->region[node]->addr,
				      .size_bytes = u->region[node]->size_bytes,
				      .rkey = u->region[node]->rkey,
				      .lock_addr = u->lock[node]->addr,
				      .lock_rkey = u->lock[node]->rkey,
				      .fence = kvf_fence_nobody,
				      .is_alive = kvf_all_are_alive};
	snprintf(remote->conn, sizeof(remote->conn), "%u", c->index);
	return rig_link_open(c->host, u->region[node], &o, &remote->link);
}

static int connect_all(struct kvf_client *c, bool formats)
{
	struct kvf_tree *u = c->f->rival;
	struct kvf_forest *t = calloc(1, sizeof(*t));
	uint32_t i;
	int err = t ? 0 : -ENOMEM;

	c->rival = t;
	for (i = 0; i < c->f->nodes && !err; i++) {
		struct tree_config cfg = {
			.deadline_ms = DEADLINE_MS,
			.locals = u->locals[i][c->index % KV_FIG_MACHINES]};
		struct kit_remote remote;

		err = open_remote(c, i, &remote);
		if (!err && formats)
			err = tree_format(&remote, &u->g);
		if (!err)
			err = tree_client_create(&remote, &u->g, &cfg,
						 &t->tree[i]);
	}
	return err;
}

static struct tree_client *tree_of(struct kvf_client *c, uint64_t record,
				   uint8_t key[KEY_BYTES])
{
	struct kvf_forest *t = c->rival;
	be32 name = be32_put((uint32_t)(record / c->f->nodes));

	memcpy(key, &name, KEY_BYTES);
	return t->tree[record % c->f->nodes];
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	uint8_t value[VALUE_MAX] = {0}, key[KEY_BYTES];
	struct tree_client *tree = tree_of(c, record, key);

	return tree_put(tree, key, KEY_BYTES, value, c->f->cfg.value_bytes);
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	uint8_t buf[VALUE_MAX], key[KEY_BYTES];
	struct tree_client *tree = tree_of(c, record, key);
	size_t len;

	return tree_get(tree, key, KEY_BYTES, buf, sizeof(buf), &len);
}

static void close_one(struct kvf_client *c)
{
	struct kvf_forest *t = c->rival;

	for (uint32_t i = 0; t && i < KV_FIG_NODES; i++)
		tree_client_destroy(t->tree[i]);
	free(t);
	c->rival = NULL;
}

static int load(struct kvf_client *c)
{
	uint64_t i, records = c->f->records;
	int err = connect_all(c, true);

	ASSERT(records % STRIDE); /* a prime: every record has its turn */
	for (i = 0; i < records && !err; i++)
		err = change_one(c, i * STRIDE % records);
	close_one(c);
	return err;
}

static int make_regions(struct kvf *f, struct kvf_tree *u)
{
	uint32_t i, m;
	int err = 0;

	for (i = 0; i < f->nodes && !err; i++) {
		err = rig_region_create(f->node[i], u->g.size_bytes, false,
					&u->region[i]);
		if (!err)
			err = rig_region_create(f->node[i], u->g.lock_bytes,
						true, &u->lock[i]);
		for (m = 0; m < KV_FIG_MACHINES && !err; m++)
			err = tree_locals_create(&u->g, &u->locals[i][m]);
	}
	return err;
}

static int prepare(struct kvf *f)
{
	struct kvf_tree *u = calloc(1, sizeof(*u));
	struct tree_options o = {.key_max = KEY_BYTES,
				 .value_max = f->cfg.value_bytes,
				 .clients = f->cfg.clients + 1,
				 .locks = LOCKS};
	int err;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	o.size_bytes = f->cfg.capacity / f->nodes / LEAF_SHARE * 1024 +
		       f->cfg.clients * 65536ull;
	err = tree_geometry_make(&o, &u->g);
	if (!err)
		err = make_regions(f, u);
	return err ? err : kvf_load(f, load);
}

/* Inner nodes are known before the start. */
static int open_one(struct kvf_client *c)
{
	uint64_t i;
	int err = connect_all(c, false);

	for (i = 0; i < c->f->records && !err; i += WARM_EVERY * c->f->nodes)
		for (uint32_t n = 0; n < c->f->nodes && !err; n++)
			err = i + n < c->f->records ? read_one(c, i + n) : 0;
	return err;
}

static void release(struct kvf *f)
{
	struct kvf_tree *u = f->rival;
	uint32_t i, m;

	for (i = 0; u && i < KV_FIG_NODES; i++)
		for (m = 0; m < KV_FIG_MACHINES; m++)
			tree_locals_destroy(u->locals[i][m]);
	free(u);
}

#define OPS(title)                                                        \
	{                                                                 \
		.name = title, .waits_at_home = true, .prepare = prepare, \
		.open = open_one, .read = read_one, .change = change_one, \
		.close = close_one, .release = release,                   \
	}

const struct kvf_ops kvf_tree_ops = OPS("sherman-like");
const struct kvf_ops kvf_tree8_ops = OPS("sherman-like, 8 nodes");
