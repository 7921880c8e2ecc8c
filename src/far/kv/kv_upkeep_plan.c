/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a table should become, from what its clients wish. Nothing but
 * arithmetic: kv_upkeep.c carries it out.
 */
#include <errno.h>

#include "base/error.h"
#include "kv_client_priv.h"
#include "kv_upkeep.h"

enum {
	SHARES_MAX = 8, /* of the increase: the least that is worth it */
	/* A next generation with room for so many times the keys leaves room
	 * for others while they are copied (kv_room.c). */
	KEYS_TIMES = 3,
};

void kv_need_add(struct kv_need *n, const struct kv_wish *w)
{
	/* What was wished of an older generation has been seen to. */
	if (n->any && w->generation > n->generation)
		*n = (struct kv_need){0};
	if (n->any && w->generation < n->generation)
		return;
	n->any = true;
	n->generation = w->generation;
	n->rows |= w->kind == KV_WISH_ROWS;
	n->extents |= w->kind == KV_WISH_EXTENTS;
	n->copy |= w->kind == KV_WISH_COPY;
	n->end |= w->kind == KV_WISH_END;
	n->bytes = u64_max(n->bytes, w->bytes);
}

static uint64_t all_bytes(const struct kv_geometry *g)
{
	return (g->size_bytes + g->lock_bytes) * g->shard_count * g->copy_count;
}

static void propose(const struct kv_geometry *g, const struct kv_need *n,
		    uint64_t keys, unsigned share, struct aq_kv_options *o)
{
	uint64_t entries = g->rows * g->entries * g->shard_count;
	uint64_t wanted = u64_max(2 * entries, KEYS_TIMES * keys);
	uint64_t extents = g->chunk_count * g->chunk_bytes * g->shard_count;
	/* Values that found no place need one in their own shard, whole. */
	uint64_t least = (n->bytes + g->chunk_bytes) * g->shard_count;

	*o = (struct aq_kv_options){0};
	if (n->rows)
		o->capacity = entries + (wanted - entries) / share;
	if (n->extents)
		o->extent_bytes =
			extents +
			u64_max(u64_max(extents, 2 * least) / share, least);
}

int kv_upkeep_plan(const struct kv_geometry *g, const struct kv_need *need,
		   uint64_t keys, unsigned *share, struct aq_kv_options *o)
{
	struct kv_need n = *need;
	struct kv_geometry next;
	int err = 0;

	if (!(g->flags & KV_GROWS))
		n.rows = n.extents = false;
	/* Nor shall it get full while a lost copy is made. */
	else if (n.copy && 2 * keys > g->rows * g->entries * g->shard_count)
		n.rows = true;
	for (; *share <= SHARES_MAX && !err; *share *= 2) {
		propose(g, &n, keys, *share, o);
		err = kv_geometry_next(g, o, &next);
		if (!err && (!g->max_bytes || all_bytes(&next) <= g->max_bytes))
			return 0;
	}
	if (err)
		return err;
	/* A copy is worth more than room. */
	*o = (struct aq_kv_options){0};
	if (n.copy)
		return 0;
	if (!g->max_bytes)
		return error_set(-ENOSPC, "the rack has no room for a larger "
					  "one beside it");
	return error_set(-ENOSPC, "it has reached its maximum of %lluK",
			 (unsigned long long)g->max_bytes >> 10);
}
