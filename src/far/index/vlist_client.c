/* SPDX-License-Identifier: Apache-2.0 */
/* Stores and their clients: memory and connection. */
#include "vlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

enum {
	SPARE_NODES = 4096,
	CHUNK_SHARE = 8, /* chunks per client, at the least */
};

/* ---- stores ------------------------------------------------------------- */

int vlist_geometry_make(const struct vlist_options *o, struct vlist_geometry *g)
{
	uint32_t value = o->value_max ? o->value_max : 128;
	uint64_t nodes = o->versions ? o->versions : 4 * o->keys + SPARE_NODES;
	uint32_t clients = o->clients ? o->clients : 256;
	uint64_t chunk = o->chunk_nodes;

	if (!o->keys || o->keys > UINT64_C(1) << 31 || nodes >> 34)
		return error_set(-EINVAL, "a store has 1 to 2^31 keys");
	if (value > VLIST_VALUE_MAX)
		return error_set(-EMSGSIZE, "a value has up to %d bytes",
				 VLIST_VALUE_MAX);
	if (!chunk)
		chunk = u64_min(u64_max(nodes / clients / CHUNK_SHARE, 8),
				1024);
	*g = (struct vlist_geometry){
		/* A quarter more than keys, so that buckets seldom overflow. */
		.bucket_count = u32_pow2_ceil(
			(uint32_t)((o->keys + o->keys / 4) / VLIST_BUCKET + 1)),
		.chunk_count = (nodes + chunk - 1) / chunk,
		.chunk_nodes = (uint32_t)u64_min(chunk, UINT32_MAX),
		.node_bytes = (uint32_t)align_up(
			VLIST_NODE_HEAD + VLIST_NODE_TAIL + u32_max(value, 8),
			8),
		.client_count = clients,
		.failure_ms = o->failure_ms ? o->failure_ms : 1000};
	return vlist_geometry_derive(g);
}

uint64_t vlist_key_room(const struct vlist_geometry *g)
{
	return u64_max((g->bucket_count - 1) * VLIST_BUCKET * 4 / 5, 1);
}

/* ---- memory ------------------------------------------------------------- */

static int make_memos(struct vlist_client *c)
{
	uint32_t keys =
		c->config.cache_keys ? c->config.cache_keys : VLIST_CACHE_KEYS;

	keys = u32_pow2_ceil(u32_min(keys, VLIST_CACHE_KEYS_MAX));
	c->memo_mask = keys - 1;
	c->memo = calloc(keys, sizeof(*c->memo));
	return c->memo ? 0 : error_set(-ENOMEM, "no memory for a client");
}

static void free_all(struct vlist_client *c)
{
	kit_client_release(&c->kit);
	free(c->memo);
	free(c->mine);
	free(c);
}

static int init_kit(struct vlist_client *c, const struct kit_remote *remote)
{
	const struct vlist_geometry *g = &c->g;
	size_t node_bytes = g->node_bytes;
	struct kit_config config = {.what = "the store",
				    .points = {.read = VLIST_POINT_READ,
					       .claim = VLIST_POINT_SLOT,
					       .fence = VLIST_POINT_SLOT,
					       .leave = VLIST_POINT_SLOT},
				    .slots = {.at = g->slot_offset,
					      .count = g->client_count,
					      .slot_bytes = VLIST_SLOT_BYTES,
					      .epoch_mask = UINT32_MAX},
				    .failure_ms = g->failure_ms,
				    .crash = c->config.crash,
				    .crash_ctx = c->config.ctx};
	struct kit_part parts[] = {
		{&c->atom, VLIST_ATOM_COUNT * sizeof(*c->atom)},
		{&c->word, sizeof(*c->word)},
		{&c->heads, VLIST_SCAN_BATCH * 8},
		{&c->node, node_bytes},
		{&c->seen, node_bytes},
		{&c->bucket, VLIST_BUCKET_BYTES}};

	return kit_client_init(&c->kit, remote, &config, parts,
			       ARRAY_LEN(parts));
}

/* ---- making and finding ------------------------------------------------- */

int vlist_format(const struct kit_remote *remote,
		 const struct vlist_geometry *g)
{
	struct kit_client *k;
	int err = kit_plain_create(remote, &k);

	if (err)
		return err;
	vlist_head_put(g, (struct vlist_head *)k->stage);
	err = kit_write_now(&k->main, VLIST_POINT_SLOT, 0, k->stage,
			    VLIST_HEAD_BYTES);
	kit_plain_destroy(k);
	return err;
}

int vlist_probe(const struct kit_remote *remote, struct vlist_geometry *g)
{
	struct vlist_head head;
	int err = remote->size_bytes < sizeof(head)
			  ? error_set(-EBADMSG, "the region is no store")
			  : kit_head_read(remote, &head, sizeof(head));

	return err ? err : vlist_head_get(&head, remote->size_bytes, g);
}

/* ---- clients ------------------------------------------------------------ */

int vlist_client_create(const struct kit_remote *remote,
			const struct vlist_geometry *g,
			const struct vlist_config *config,
			struct vlist_client **out)
{
	struct vlist_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->g = *g;
	c->config = *config;
	if (!c->config.deadline_ms)
		c->config.deadline_ms = VLIST_DEADLINE_MS;
	if (!c->config.collect_every)
		c->config.collect_every = VLIST_COLLECT_EVERY;
	c->free_first = c->free_last = VLIST_NONE;
	err = init_kit(c, remote);
	if (!err)
		err = make_memos(c);
	if (!err) {
		kit_set_deadline(&c->kit, c->config.deadline_ms);
		err = kit_slot_claim(&c->kit);
	}
	if (err)
		free_all(c);
	else
		*out = c;
	return err;
}

void vlist_client_destroy(struct vlist_client *c)
{
	if (!c)
		return;
	kit_client_close(&c->kit);
	free_all(c);
}

void vlist_client_abandon(struct vlist_client *c)
{
	if (c)
		free_all(c);
}

bool vlist_client_is_crashed(const struct vlist_client *c)
{
	return c->kit.is_crashed;
}

const struct vlist_stats *vlist_client_stats(struct vlist_client *c)
{
	c->stats.fenced = c->kit.fenced;
	c->stats.trips = c->kit.trips;
	c->stats.sent_reads = c->kit.reads;
	c->stats.sent_writes = c->kit.writes;
	c->stats.sent_atomics = c->kit.atomics;
	return &c->stats;
}

int vlist_reconnect(struct vlist_client *c)
{
	int err;

	vlist_pool_forget(c);
	err = kit_reconnect(&c->kit);
	c->stats.reconnects += !err;
	return err;
}
