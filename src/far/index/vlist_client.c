/* SPDX-License-Identifier: Apache-2.0 */
/* Stores and clients: memory, the client's slot, its connection. */
#include "vlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "vlist_priv.h"

enum {
	ARENA_ALIGN = 4096,
	SLOTS_AT_ONCE = VLIST_STAGE_BYTES / VLIST_SLOT_BYTES,
	CLAIM_ROUNDS = 4,
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

/* ---- memory ------------------------------------------------------------- */

static size_t take(size_t *at, size_t bytes)
{
	size_t start = *at;

	*at += align_up(bytes, CACHE_LINE);
	return start;
}

static int make_arena(struct vlist_client *c)
{
	size_t node_bytes = c->g.node_bytes ? c->g.node_bytes : VLIST_NODE_HEAD;
	size_t at = 0;
	size_t atom = take(&at, 2 * sizeof(*c->atom));
	size_t words = take(&at, VLIST_WR_MAX * sizeof(*c->words));
	size_t heads = take(&at, VLIST_SCAN_BATCH * sizeof(*c->heads));
	size_t node = take(&at, node_bytes);
	size_t seen = take(&at, node_bytes);
	size_t bucket = take(&at, VLIST_BUCKET_BYTES);
	size_t stage = take(&at, VLIST_STAGE_BYTES);

	c->arena_bytes = align_up(at, ARENA_ALIGN);
	c->arena = aligned_alloc(ARENA_ALIGN, c->arena_bytes);
	if (!c->arena)
		return error_set(-ENOMEM, "no memory for a client");
	memset(c->arena, 0, c->arena_bytes);
	c->atom = (uint64_t *)(c->arena + atom);
	c->words = (uint64_t *)(c->arena + words);
	c->heads = (uint64_t *)(c->arena + heads);
	c->node = (struct vlist_node *)(c->arena + node);
	c->seen = (struct vlist_node *)(c->arena + seen);
	c->bucket = (struct vlist_entry *)(c->arena + bucket);
	c->stage = c->arena + stage;
	return 0;
}

static int register_arena(struct vlist_client *c)
{
	c->mr = c->port.link->verbs->reg_mr(c->port.link->pd, c->arena,
					    c->arena_bytes,
					    IBV_ACCESS_LOCAL_WRITE);
	return c->mr ? 0 : error_set(-ENOMEM, "the NIC registers no memory");
}

static void unregister(struct vlist_client *c)
{
	if (c->mr)
		(void)c->port.link->verbs->dereg_mr(c->mr);
	c->mr = NULL;
}

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
	unregister(c);
	free(c->arena);
	free(c->memo);
	free(c->mine);
	free(c);
}

/* Without a slot yet. */
static int make(const struct vlist_port *port, const struct vlist_geometry *g,
		const struct vlist_config *config, struct vlist_client **out)
{
	struct vlist_client *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for a client");
	c->port = *port;
	c->clock = port->link->clock;
	if (g)
		c->g = *g;
	if (config)
		c->config = *config;
	if (!c->config.deadline_ms)
		c->config.deadline_ms = VLIST_DEADLINE_MS;
	if (!c->config.collect_every)
		c->config.collect_every = VLIST_COLLECT_EVERY;
	c->failure_ns = (uint64_t)c->g.failure_ms * 1000000;
	c->deadline_ns =
		vlist_now_ns(c) + (uint64_t)c->config.deadline_ms * 1000000;
	c->free_first = c->free_last = VLIST_NONE;
	err = make_arena(c);
	if (!err)
		err = register_arena(c);
	if (!err)
		err = make_memos(c);
	if (err)
		free_all(c);
	else
		*out = c;
	return err;
}

int vlist_format(const struct vlist_port *port, const struct vlist_geometry *g)
{
	struct vlist_client *c;
	int err = make(port, NULL, NULL, &c);

	if (err)
		return err;
	vlist_head_put(g, (struct vlist_head *)c->stage);
	vlist_begin(c);
	vlist_add_write(c, VLIST_POINT_SLOT, 0, c->stage, VLIST_HEAD_BYTES);
	err = vlist_run(c);
	free_all(c);
	return err;
}

int vlist_probe(const struct vlist_port *port, struct vlist_geometry *g)
{
	struct vlist_client *c;
	int err;

	if (port->size_bytes < VLIST_HEAD_BYTES)
		return error_set(-EBADMSG, "the region is no store");
	err = make(port, NULL, NULL, &c);
	if (err)
		return err;
	err = vlist_read_now(c, 0, c->stage, VLIST_HEAD_BYTES);
	if (!err)
		err = vlist_head_get((const struct vlist_head *)c->stage,
				     port->size_bytes, g);
	free_all(c);
	return err;
}

/* ---- slots -------------------------------------------------------------- */

static uint64_t slot_at(const struct vlist_client *c, uint32_t slot)
{
	return c->g.slot_offset + (uint64_t)slot * VLIST_SLOT_BYTES;
}

static int try_claim(struct vlist_client *c, uint32_t slot,
		     const struct vlist_slot *s)
{
	enum slot_verdict verdict = SLOT_GO_ON;
	struct slot_claim claim;
	struct slot_cas cas;
	uint64_t old;
	int err = slot_claim_begin(&claim, s, c->port.conn, &cas);

	while (!err && verdict == SLOT_GO_ON) {
		err = vlist_cas_now(c, VLIST_POINT_SLOT,
				    slot_at(c, slot) + cas.offset, cas.compare,
				    cas.swap, &old);
		if (!err)
			verdict = slot_claim_next(&claim, old, &cas);
	}
	if (err)
		return err;
	if (verdict == SLOT_TAKEN)
		return -EAGAIN;
	c->slot = slot;
	c->epoch = (uint32_t)claim.epoch;
	c->has_slot = true;
	return 0;
}

/* A slot that stays CLAIMED for the failure time is taken back. If its client
 * is alive, its last step fails. */
static int unclaim(struct vlist_client *c, uint32_t slot, uint64_t word)
{
	uint64_t old;

	vlist_pause(c, c->failure_ns);
	return vlist_cas_now(
		c, VLIST_POINT_SLOT, slot_at(c, slot), word,
		vlist_slot_word(VLIST_SLOT_FREE, (uint32_t)(word >> 8)), &old);
}

/* One of those in the stage; with `evict` also of those who are gone. */
static int claim_of(struct vlist_client *c, uint32_t first, uint32_t count,
		    bool evict)
{
	const struct vlist_slot *s = (const struct vlist_slot *)c->stage;
	uint32_t start = (uint32_t)rng_below(&c->rng, count);
	int err = vlist_read_now(c, slot_at(c, first), c->stage,
				 count * VLIST_SLOT_BYTES);

	for (uint32_t i = 0; !err && i < count; i++) {
		uint32_t k = (start + i) % count;
		uint64_t word = le64_get(s[k].state);
		bool gone = false;

		if ((word & 0xff) == VLIST_SLOT_FREE) {
			struct vlist_slot seen = s[k];

			err = try_claim(c, first + k, &seen);
			return err == -EAGAIN ? -EBUSY : err;
		}
		if (!evict)
			continue;
		if ((word & 0xff) == VLIST_SLOT_CLAIMED) {
			err = unclaim(c, first + k, word);
			return err ? err : -EBUSY;
		}
		err = vlist_is_gone(c, first + k, (uint32_t)(word >> 8), &gone);
		if (!err && gone)
			return -EBUSY; /* the stage is not valid any more */
	}
	return err ? err : -EAGAIN;
}

static int claim(struct vlist_client *c)
{
	int err = -EAGAIN;

	for (unsigned round = 0; round < CLAIM_ROUNDS; round++) {
		for (uint32_t at = 0; at < c->g.client_count;
		     at += SLOTS_AT_ONCE) {
			uint32_t n =
				u32_min(SLOTS_AT_ONCE, c->g.client_count - at);

			do {
				err = claim_of(c, at, n, round > 0);
			} while (err == -EBUSY && !vlist_is_late(c));
			if (err != -EAGAIN)
				return err;
		}
	}
	return error_set(-EAGAIN, "the store has %u clients already",
			 c->g.client_count);
}

static void leave(struct vlist_client *c, uint32_t slot, uint32_t epoch)
{
	uint64_t old;

	/* Whoever needs the slot finds out by itself when this fails. */
	(void)!vlist_cas_now(c, VLIST_POINT_SLOT, slot_at(c, slot),
			     vlist_slot_word(VLIST_SLOT_LIVE, epoch),
			     vlist_slot_word(VLIST_SLOT_FREE, epoch), &old);
}

/* The slot's connection, if that client still has the slot. -EBADMSG: it is
 * LIVE without a name, so nobody could end its client. */
static int slot_conn(struct vlist_client *c, uint32_t slot, uint32_t epoch,
		     char conn[SLOT_NAME_MAX + 1], bool *has_it)
{
	struct vlist_slot *s = (struct vlist_slot *)c->bucket;
	int err;

	if (slot >= c->g.client_count) {
		*has_it = false;
		return 0;
	}
	err = vlist_read_now(c, slot_at(c, slot), s, sizeof(*s));
	if (err)
		return err;
	*has_it = le64_get(s->state) == vlist_slot_word(VLIST_SLOT_LIVE, epoch);
	if (*has_it && !slot_name_get(s, conn))
		return error_set(-EBADMSG, "slot %u of the store has no name",
				 slot);
	return 0;
}

static int fence(struct vlist_client *c, uint32_t slot, uint32_t epoch,
		 const char *conn)
{
	int err = c->port.fence(c->port.ctx, conn);

	if (err)
		return err;
	c->stats.fenced++;
	leave(c, slot, epoch);
	return c->is_broken ? -ESTALE : 0;
}

int vlist_fence(struct vlist_client *c, uint32_t slot, uint32_t epoch)
{
	char conn[SLOT_NAME_MAX + 1];
	bool has_it;
	int err = slot_conn(c, slot, epoch, conn, &has_it);

	return err || !has_it ? err : fence(c, slot, epoch, conn);
}

int vlist_is_gone(struct vlist_client *c, uint32_t slot, uint32_t epoch,
		  bool *gone)
{
	char conn[SLOT_NAME_MAX + 1];
	bool has_it;
	int err = slot_conn(c, slot, epoch, conn, &has_it);

	if (err)
		return err;
	*gone = !has_it;
	if (!has_it)
		return 0;
	err = c->port.is_alive(c->port.ctx, conn);
	if (err)
		return err < 0 ? err : 0;
	err = fence(c, slot, epoch, conn);
	*gone = !err;
	return err;
}

/* ---- clients ------------------------------------------------------------ */

int vlist_client_create(const struct vlist_port *port,
			const struct vlist_geometry *g,
			const struct vlist_config *config,
			struct vlist_client **out)
{
	struct vlist_client *c;
	int err = make(port, g, config, &c);

	if (err)
		return err;
	rng_init_text(&c->rng, port->conn);
	err = claim(c);
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
	if (c->has_slot && !c->is_crashed && !c->is_broken)
		leave(c, c->slot, c->epoch);
	unregister(c);
	/* While the client is still there, for who wants to ask it. */
	if (c->port.close)
		c->port.close(c->port.ctx, &c->port);
	free_all(c);
}

void vlist_client_abandon(struct vlist_client *c)
{
	if (c)
		free_all(c);
}

bool vlist_client_is_crashed(const struct vlist_client *c)
{
	return c->is_crashed;
}

const struct vlist_stats *vlist_client_stats(const struct vlist_client *c)
{
	return &c->stats;
}

int vlist_reconnect(struct vlist_client *c)
{
	uint32_t slot = c->slot, epoch = c->epoch;
	bool had = c->has_slot;
	int err = -ESTALE;

	if (!c->port.renew)
		return err;
	for (unsigned i = 0; i < VLIST_RECONNECTS && err == -ESTALE; i++) {
		unregister(c);
		vlist_pool_forget(c);
		err = c->port.renew(c->port.ctx, &c->port);
		if (err)
			return err;
		c->is_broken = c->has_slot = false;
		err = register_arena(c);
		if (!err)
			err = claim(c);
	}
	if (err)
		return err;
	c->stats.reconnects++;
	/* Nothing of the old connection is executed any more. */
	if (had)
		leave(c, slot, epoch);
	return c->is_broken ? -ESTALE : 0;
}
