/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered indexes and their clients: memory and connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "tree_priv.h"

enum {
	ARENA_ALIGN = 4096,
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

static size_t take(size_t *at, size_t bytes)
{
	size_t start = *at;

	*at += align_up(bytes, CACHE_LINE);
	return start;
}

static int make_arena(struct tree_client *c)
{
	size_t node_bytes = c->g.node_bytes ? c->g.node_bytes : TREE_NODE_HEAD;
	size_t at = 0;
	size_t atom = take(&at, TREE_ATOM_COUNT * sizeof(*c->atom));
	size_t zero = take(&at, 8);
	size_t node = take(&at, node_bytes);
	size_t right = take(&at, node_bytes);
	size_t look = take(&at, node_bytes);
	size_t batch = take(&at, TREE_SCAN_BATCH * node_bytes);
	size_t stage = take(&at, TREE_STAGE_BYTES);

	c->arena_bytes = align_up(at, ARENA_ALIGN);
	c->arena = aligned_alloc(ARENA_ALIGN, c->arena_bytes);
	c->items = calloc(TREE_SLOTS_MAX, sizeof(*c->items));
	if (!c->arena || !c->items)
		return error_set(-ENOMEM, "no memory for a client");
	memset(c->arena, 0, c->arena_bytes);
	c->atom = (uint64_t *)(c->arena + atom);
	c->zero = (uint64_t *)(c->arena + zero);
	c->node = (struct tree_node *)(c->arena + node);
	c->right = (struct tree_node *)(c->arena + right);
	c->look = (struct tree_node *)(c->arena + look);
	c->batch = c->arena + batch;
	c->stage = c->arena + stage;
	return 0;
}

/* The connection's memory and keys. */
static int attach(struct tree_client *c)
{
	c->trip.link = c->port.link;
	c->trip.clock = c->port.link->clock;
	c->main = (struct trip_space){c->port.addr, c->port.rkey};
	c->locks = (struct trip_space){c->port.lock_addr, c->port.lock_rkey};
	c->trip.mr = c->port.link->verbs->reg_mr(c->port.link->pd, c->arena,
						 c->arena_bytes,
						 IBV_ACCESS_LOCAL_WRITE);
	return c->trip.mr ? 0
			  : error_set(-ENOMEM, "the NIC registers no memory");
}

static void detach(struct tree_client *c)
{
	if (c->trip.mr)
		(void)c->port.link->verbs->dereg_mr(c->trip.mr);
	c->trip.mr = NULL;
}

static void free_all(struct tree_client *c)
{
	detach(c);
	tree_cache_release(c);
	tree_pool_forget(c);
	free(c->spare);
	free(c->chunk);
	free(c->items);
	free(c->arena);
	free(c);
}

/* Without a slot yet; without a geometry, for the head only. */
static int make(const struct tree_port *port, const struct tree_geometry *g,
		const struct tree_config *config, struct tree_client **out)
{
	struct tree_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->port = *port;
	if (g)
		c->g = *g;
	if (config)
		c->config = *config;
	if (!c->config.deadline_ms)
		c->config.deadline_ms = TREE_DEADLINE_MS;
	c->trip.crash = c->config.crash;
	c->trip.ctx = c->config.ctx;
	c->failure_ns = (uint64_t)c->g.failure_ms * 1000000;
	err = make_arena(c);
	if (!err)
		err = attach(c);
	if (!err)
		err = tree_cache_init(c);
	if (!err)
		c->deadline_ns = tree_now_ns(c) +
				 (uint64_t)c->config.deadline_ms * 1000000;
	if (err)
		free_all(c);
	else
		*out = c;
	return err;
}

/* ---- single requests ---------------------------------------------------- */

int tree_read_now(struct tree_client *c, uint64_t offset, void *local,
		  uint32_t len_bytes)
{
	trip_begin(&c->trip);
	trip_read(&c->trip, TREE_POINT_READ, &c->main, offset, local,
		  len_bytes);
	return trip_run(&c->trip);
}

int tree_cas_now(struct tree_client *c, enum tree_point point, uint64_t offset,
		 uint64_t compare, uint64_t swap, uint64_t *old)
{
	int err;

	trip_begin(&c->trip);
	trip_cas(&c->trip, (int)point, &c->main, offset, compare, swap,
		 &c->atom[TREE_ATOM_OTHER]);
	err = trip_run(&c->trip);
	if (!err)
		*old = c->atom[TREE_ATOM_OTHER];
	return err;
}

int tree_late(const struct tree_client *c)
{
	return error_set(-ETIMEDOUT,
			 "others changed the same part of the index until the "
			 "deadline of %u ms",
			 c->config.deadline_ms);
}

/* ---- making and finding ------------------------------------------------- */

/* The root is an empty leaf with all keys in its range. */
static void add_first(struct tree_client *c, const struct tree_geometry *g)
{
	uint64_t root = tree_pointer(0, 1);
	struct tree_fences all = {.has_end = false};

	tree_node_init(g, c->node, root, 0, 1, &all, 0);
	c->atom[0] = root;
	c->atom[1] = TREE_CHUNK_LEFT;
	trip_write(&c->trip, TREE_POINT_NODE, &c->main, g->node_offset, c->node,
		   g->node_bytes);
	trip_write(&c->trip, TREE_POINT_ROOT, &c->main, TREE_ROOT_AT,
		   &c->atom[0], 8);
	trip_write(&c->trip, TREE_POINT_CHUNK, &c->main, g->chunk_word_offset,
		   &c->atom[1], 8);
}

int tree_format(const struct tree_port *port, const struct tree_geometry *g)
{
	struct tree_client *c;
	struct layout_header locks;
	int err = make(port, g, NULL, &c);

	if (err)
		return err;
	layout_header_init(&locks, &tree_lock_layout, g->lock_bytes, "index");
	memcpy(c->stage, &locks, sizeof(locks));
	tree_head_put(g, (struct tree_head *)(c->stage + TREE_LOCK_HEAD));
	trip_begin(&c->trip);
	trip_write(&c->trip, TREE_POINT_NODE, &c->locks, 0, c->stage,
		   sizeof(locks));
	add_first(c, g);
	/* The head is last: with it the index is one. */
	trip_write(&c->trip, TREE_POINT_NODE, &c->main, 0,
		   c->stage + TREE_LOCK_HEAD, TREE_HEAD_BYTES);
	err = trip_run(&c->trip);
	free_all(c);
	return err;
}

int tree_probe(const struct tree_port *port, struct tree_geometry *g)
{
	struct tree_client *c;
	int err;

	if (port->size_bytes < TREE_HEAD_BYTES)
		return error_set(-EBADMSG, "the region is no index");
	err = make(port, NULL, NULL, &c);
	if (err)
		return err;
	err = tree_read_now(c, 0, c->stage, TREE_HEAD_BYTES);
	if (!err)
		err = tree_head_get((const struct tree_head *)c->stage,
				    port->size_bytes, g);
	free_all(c);
	return err;
}

/* ---- clients ------------------------------------------------------------ */

int tree_client_create(const struct tree_port *port,
		       const struct tree_geometry *g,
		       const struct tree_config *config,
		       struct tree_client **out)
{
	struct tree_client *c;
	int err = make(port, g, config, &c);

	if (err)
		return err;
	rng_init_text(&c->rng, port->conn);
	err = tree_seat_claim(c);
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
	if (c->has_slot && !c->trip.is_crashed && !c->trip.is_broken) {
		/* What is not given back others find when they need it. */
		(void)!tree_pool_leave(c);
		tree_seat_leave(c, c->slot, c->epoch);
	}
	detach(c);
	/* While the client is still there, for who wants to ask it. */
	if (c->port.close)
		c->port.close(c->port.ctx, &c->port);
	free_all(c);
}

bool tree_client_is_crashed(const struct tree_client *c)
{
	return c->trip.is_crashed;
}

const struct tree_stats *tree_client_stats(const struct tree_client *c)
{
	return &c->stats;
}

static int reconnect(struct tree_client *c)
{
	uint32_t slot = c->slot, epoch = c->epoch;
	bool had = c->has_slot;
	int err = -ESTALE;

	if (!c->port.renew)
		return error_set(-ESTALE, "the connection is gone");
	for (unsigned i = 0; i < TREE_RECONNECTS && err == -ESTALE; i++) {
		detach(c);
		tree_pool_forget(c);
		tree_cache_forget_all(c);
		err = c->port.renew(c->port.ctx, &c->port);
		if (err)
			return err;
		c->trip.is_broken = c->has_slot = false;
		err = attach(c);
		if (!err)
			err = tree_seat_claim(c);
	}
	if (err)
		return err;
	c->stats.reconnects++;
	/* Nothing of the old connection is executed any more. */
	if (had)
		tree_seat_leave(c, slot, epoch);
	return c->trip.is_broken ? -ESTALE : 0;
}

int tree_begin(struct tree_client *c)
{
	c->op++;
	c->restarts = 0;
	c->missing.level = 0;
	c->deadline_ns =
		tree_now_ns(c) + (uint64_t)c->config.deadline_ms * 1000000;
	if (c->trip.is_crashed)
		return -ESHUTDOWN;
	return c->trip.is_broken ? reconnect(c) : 0;
}
