/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered indexes and their clients: memory and connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

enum {
	CHUNK_SHARE = 4, /* chunks per client, at the least */
	CHUNK_NODES = 64,
	LOCKS = 8192,
};

/* ---- indexes ------------------------------------------------------------ */

int tree_geometry_make(const struct tree_options *o, struct tree_geometry *g)
{
	uint64_t size = o->size_bytes ? o->size_bytes : 64 << 20;
	uint32_t node = o->node_bytes ? o->node_bytes : 1024;
	uint32_t clients = o->clients ? o->clients : 256;
	uint64_t nodes = u64_max(size / u32_max(node, 16), 1);
	uint64_t chunk = o->chunk_nodes;

	if (size >> 42)
		return error_set(-EINVAL, "an index has up to 4 TiB");
	if (!chunk)
		chunk = u64_min(u64_max(nodes / clients / CHUNK_SHARE, 4),
				CHUNK_NODES);
	*g = (struct tree_geometry){
		.chunk_count = (nodes + chunk - 1) / chunk,
		.chunk_nodes = (uint32_t)chunk,
		.node_bytes = node,
		.key_max = o->key_max ? o->key_max : 32,
		.value_max = o->value_max ? o->value_max : 32,
		.client_count = clients,
		.failure_ms = o->failure_ms ? o->failure_ms : 1000,
		.lock_count =
			o->locks ? o->locks : (uint32_t)u64_min(nodes, LOCKS)};
	return tree_geometry_derive(g);
}

/* ---- memory ------------------------------------------------------------- */

static void free_all(struct tree_client *c)
{
	kit_client_release(&c->kit);
	tree_cache_release(c);
	free(c->spare);
	free(c->chunk);
	free(c->items);
	free(c->pad);
	free(c);
}

static int init_kit(struct tree_client *c, const struct kit_remote *remote)
{
	const struct tree_geometry *g = &c->g;
	size_t node_bytes = g->node_bytes;
	struct kit_config config = {.what = "the index",
				    .points = {.read = TREE_POINT_READ,
					       .claim = TREE_POINT_SLOT,
					       .fence = TREE_POINT_SLOT,
					       .leave = TREE_POINT_SLOT},
				    .slots = {.at = TREE_SLOTS_AT,
					      .count = g->client_count,
					      .slot_bytes = TREE_SLOT_BYTES,
					      .epoch_mask = TREE_LOCK_EPOCHS},
				    .failure_ms = g->failure_ms,
				    .crash = c->config.crash,
				    .crash_ctx = c->config.ctx};
	struct kit_part parts[] = {{&c->atom, TREE_ATOM_COUNT * 8},
				   {&c->zero, 8},
				   {&c->node, node_bytes},
				   {&c->right, node_bytes},
				   {&c->look, node_bytes},
				   {&c->batch, TREE_SCAN_BATCH * node_bytes}};

	return kit_client_init(&c->kit, remote, &config, parts,
			       ARRAY_LEN(parts));
}

int tree_late(const struct tree_client *c)
{
	return error_set(-ETIMEDOUT,
			 "others changed the same part of the index until the "
			 "deadline of %u ms",
			 c->config.deadline_ms);
}

/* ---- making and finding ------------------------------------------------- */

/* What there is in an empty index. */
struct empty {
	struct layout_header locks;
	struct tree_head head;
	uint64_t root;
	uint64_t chunk;
	uint8_t node[TREE_NODE_BYTES_MAX];
};
STATIC_ASSERT(sizeof(struct empty) <= KIT_STAGE_BYTES, "made on the stage");

/* The root is an empty leaf with all keys in its range. */
static void make_empty(const struct tree_geometry *g, struct empty *e)
{
	struct tree_fences all = {.has_end = false};

	layout_header_init(&e->locks, &tree_lock_layout, g->lock_bytes,
			   "index");
	tree_head_put(g, &e->head);
	e->root = tree_pointer(0, 1);
	e->chunk = TREE_CHUNK_LEFT;
	tree_node_init(g, (struct tree_node *)e->node, e->root, 0, 1, &all, 0);
}

int tree_format(const struct kit_remote *remote, const struct tree_geometry *g)
{
	struct kit_client *k;
	struct empty *e;
	int err = kit_plain_create(remote, &k);

	if (err)
		return err;
	e = (struct empty *)k->stage;
	make_empty(g, e);
	kit_begin(k);
	kit_write(&k->locks, TREE_POINT_NODE, 0, &e->locks, sizeof(e->locks));
	kit_write(&k->main, TREE_POINT_NODE, g->node_offset, e->node,
		  g->node_bytes);
	kit_write(&k->main, TREE_POINT_ROOT, TREE_ROOT_AT, &e->root, 8);
	kit_write(&k->main, TREE_POINT_CHUNK, g->chunk_word_offset, &e->chunk,
		  8);
	/* The head is last: with it the index is one. */
	kit_write(&k->main, TREE_POINT_NODE, 0, &e->head, sizeof(e->head));
	err = kit_run(k);
	kit_plain_destroy(k);
	return err;
}

int tree_probe(const struct kit_remote *remote, struct tree_geometry *g)
{
	struct tree_head head;
	int err = remote->size_bytes < sizeof(head)
			  ? error_set(-EBADMSG, "the region is no index")
			  : kit_head_read(remote, &head, sizeof(head));

	return err ? err : tree_head_get(&head, remote->size_bytes, g);
}

/* ---- clients ------------------------------------------------------------ */

static int init(struct tree_client *c, const struct kit_remote *remote)
{
	int err = init_kit(c, remote);

	if (!err)
		err = tree_cache_init(c);
	c->items = calloc(TREE_SLOTS_MAX, sizeof(*c->items));
	if (c->config.walker)
		c->pad = malloc(tree_pad_bytes(&c->g, TREE_WALK_FIND));
	if (!err && (!c->items || (c->config.walker && !c->pad)))
		err = error_set(-ENOMEM, "no memory for a client");
	if (err)
		return err;
	kit_set_deadline(&c->kit, c->config.deadline_ms);
	return kit_slot_claim(&c->kit);
}

int tree_client_create(const struct kit_remote *remote,
		       const struct tree_geometry *g,
		       const struct tree_config *config,
		       struct tree_client **out)
{
	struct tree_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->g = *g;
	c->config = *config;
	if (!c->config.deadline_ms)
		c->config.deadline_ms = TREE_DEADLINE_MS;
	err = init(c, remote);
	if (err)
		free_all(c);
	else
		*out = c;
	return err;
}

void tree_client_destroy(struct tree_client *c)
{
	if (!c)
		return;
	/* What is not given back others find when they need it. */
	if (c->kit.has_slot && !kit_stopped(&c->kit))
		(void)!tree_pool_leave(c);
	kit_client_close(&c->kit);
	free_all(c);
}

bool tree_client_is_crashed(const struct tree_client *c)
{
	return c->kit.is_crashed;
}

const struct tree_stats *tree_client_stats(struct tree_client *c)
{
	c->stats.fenced = c->kit.fenced;
	return &c->stats;
}

static int reconnect(struct tree_client *c)
{
	int err;

	tree_pool_forget(c);
	tree_cache_forget_all(c);
	err = kit_reconnect(&c->kit);
	c->stats.reconnects += !err;
	return err;
}

int tree_begin(struct tree_client *c)
{
	c->op++;
	c->restarts = 0;
	c->missing.level = 0;
	if (c->config.no_cache)
		tree_cache_forget_all(c);
	kit_set_deadline(&c->kit, c->config.deadline_ms);
	if (c->kit.is_crashed)
		return -ESHUTDOWN;
	return c->kit.is_broken ? reconnect(c) : 0;
}

int tree_walk_run(struct tree_client *c, enum tree_walk walk)
{
	const struct tree_walker *w = c->config.walker;
	uint32_t trips = 0;
	int err;

	if (!w)
		return -EOPNOTSUPP;
	err = w->run(w->ctx, walk, TREE_ROOT_AT, c->pad,
		     tree_pad_bytes(&c->g, walk),
		     walk == TREE_WALK_FIND ? offsetof(struct tree_pad, best)
					    : tree_pad_bytes(&c->g, walk),
		     &trips);
	c->kit.trips += trips;
	if (err == -EOPNOTSUPP)
		return err;
	c->stats.walks++;
	c->stats.walks_short += err != 0;
	return err;
}
