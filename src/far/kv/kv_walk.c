/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets by walks (AQ_KV_WALK): rows, extent and state come with one answer of
 * the memory node, and then count for what READs would have brought. Only a get
 * that is alone walks; with several under way, round trips are shared anyway.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

int kv_walk_init(struct kv_replica *c)
{
	if (!(c->config.options.flags & AQ_KV_WALK) || !c->kit.remote.walk ||
	    !kv_has_extents(&c->g))
		return 0;
	c->pad = malloc(kv_pad_bytes(&c->g, KV_WALK_LONG));
	return c->pad ? 0 : error_set(-ENOMEM, "no memory for a client");
}

static void fill_pad(struct kv_replica *c, const struct kv_get *g)
{
	struct kv_pad *pad = c->pad;
	const uint64_t *row = g->place.row;

	memset(pad, 0, sizeof(*pad));
	pad->hash = le64_put(g->place.hash);
	pad->key_len = (uint8_t)g->op->key_len;
	if (row[1] != row[0])
		pad->second = le64_put(kv_row_at(&c->g, row[1]));
	if (g->asks_state)
		pad->state_at = le64_put(kv_lease_at(&c->g, KV_LEASE_STATE));
}

/* Whether what came back is what the program leaves. */
static bool is_sane(const struct kv_replica *c, const struct kv_get *g,
		    const struct kv_pad *pad)
{
	return pad->rows >= 1 && pad->rows <= 2 &&
	       pad->has_state == g->asks_state &&
	       (!pad->has_extent || le64_get(pad->extent_bytes) <=
					    kv_walk_extent_max(&c->g, c->walk));
}

/* Gives the read what was brought, as rows that were read. */
static void take_pad(struct kv_replica *c, struct kv_get *g, struct kv_pad *pad)
{
	uint8_t *first = (uint8_t *)(pad + 1);
	uint8_t *second = first + c->g.row_bytes;
	uint64_t bytes = le64_get(pad->extent_bytes); /* 0: none was found */

	g->state = KV_GET_ROWS;
	g->row[0] = first;
	g->row[1] = pad->rows == 2 && !bytes ? second : NULL;
	/* What is looked at again is read, both rows of it. */
	g->is_lean = false;
	memcpy(g->state_word, &pad->state, sizeof(pad->state));
	if (pad->has_extent) {
		g->walked = second;
		g->walked_at = le64_get(pad->extent);
		g->walked_bytes = (uint32_t)bytes;
	}
	/* The next value is likely as long as this one. */
	if (bytes)
		c->walk = bytes > kv_walk_extent_max(&c->g, KV_WALK_SHORT)
				  ? KV_WALK_LONG
				  : KV_WALK_SHORT;
}

bool kv_walk_get(struct kv_replica *c, struct kv_get *g)
{
	const struct kit_remote *remote = &c->kit.remote;
	struct kit_walk walk = {
		.which = c->walk,
		.start = kv_row_at(&c->g, g->place.row[0]),
		.pad = c->pad,
		.pad_bytes = kv_pad_bytes(&c->g, c->walk),
		.send_bytes = sizeof(*c->pad),
		.until_ns = c->kit.deadline_ns,
	};
	int err;

	if (!c->pad || c->gets_busy > 1)
		return false;
	/* When the get began: no later than the walk, which is what counts, and
	 * without another look at the clock. */
	g->asked_ns = c->kit.start_ns;
	g->asks_state = kv_state_is_due(c, g->asked_ns);
	fill_pad(c, g);
	err = remote->walk(remote->ctx, &c->g, &walk);
	g->trips += walk.trips;
	if (err || !is_sane(c, g, walk.back))
		return false;
	c->stats.walks++;
	c->kit.polled_ns = kit_now_ns(&c->kit);
	take_pad(c, g, walk.back);
	return true;
}
