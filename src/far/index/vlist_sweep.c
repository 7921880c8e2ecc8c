/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds over all of the store's memory, for what can be known in no other way:
 * what is before a version, and whether anything leads to one. They are slow
 * and only needed after clients died in the middle of an operation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

int vlist_links_each(struct vlist_client *c, vlist_link_fn each, void *ctx)
{
	uint64_t at_once = KIT_STAGE_BYTES / c->g.node_bytes;

	for (uint64_t i = 0; i < c->g.node_count; i += at_once) {
		uint64_t n = u64_min(at_once, c->g.node_count - i);
		int err = kit_read_now(&c->kit.main, vlist_node_at(&c->g, i),
				       c->kit.stage,
				       (uint32_t)(n * c->g.node_bytes));

		if (err)
			return err;
		for (uint64_t k = 0; k < n; k++) {
			const struct vlist_node *in =
				(const struct vlist_node
					 *)(c->kit.stage + k * c->g.node_bytes);
			uint64_t word = le64_get(in->next);

			if (vlist_is_pointer(word) && each(c, word, in, ctx))
				return 0;
		}
	}
	return 0;
}

/* ---- which nodes are pointed to ----------------------------------------- */

struct marks {
	uint8_t *is_marked; /* of c->mine */
	uint32_t *order;    /* of c->mine, by offset */
	uint32_t count;
	struct vlist_client *c;
};

static int by_offset(const void *a, const void *b, void *ctx)
{
	const struct vlist_mine *mine = ctx;
	uint64_t x = mine[*(const uint32_t *)a].offset;
	uint64_t y = mine[*(const uint32_t *)b].offset;

	return x < y ? -1 : x > y;
}

static void mark(struct marks *m, uint64_t pointer)
{
	uint64_t offset = vlist_offset(pointer);
	uint32_t low = 0, high = m->count;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (m->c->mine[m->order[mid]].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < m->count &&
	    vlist_mine_pointer(m->c, m->order[low]) == pointer)
		m->is_marked[m->order[low]] = 1;
}

static bool mark_link(struct vlist_client *c, uint64_t link,
		      const struct vlist_node *in, void *ctx)
{
	mark(ctx, link);
	return false;
}

/* After the nodes: an entry moves on before what it pointed to is used again,
 * so what a reused node pointed to is found here, or is old. */
static int mark_heads(struct vlist_client *c, struct marks *m)
{
	uint64_t at_once = KIT_STAGE_BYTES / VLIST_ENTRY_BYTES;
	uint64_t total = c->g.bucket_count * VLIST_BUCKET;

	for (uint64_t i = 0; i < total; i += at_once) {
		const struct vlist_entry *e =
			(const struct vlist_entry *)c->kit.stage;
		uint64_t n = u64_min(at_once, total - i);
		int err = kit_read_now(
			&c->kit.main,
			c->g.bucket_offset + i * VLIST_ENTRY_BYTES,
			c->kit.stage, (uint32_t)(n * VLIST_ENTRY_BYTES));

		if (err)
			return err;
		for (uint64_t k = 0; k < n; k++)
			mark(m, le64_get(e[k].head));
	}
	return 0;
}

static int mark_all(struct vlist_client *c, struct marks *m)
{
	int err;

	for (uint32_t i = 0; i < c->mine_count; i++)
		if (c->mine[i].state == VLIST_MINE_LIMBO)
			m->order[m->count++] = i;
	if (!m->count)
		return 0;
	qsort_r(m->order, m->count, sizeof(*m->order), by_offset, c->mine);
	err = vlist_links_each(c, mark_link, m);
	return err ? err : mark_heads(c, m);
}

int vlist_sweep(struct vlist_client *c)
{
	struct marks m = {.is_marked = calloc(c->mine_count + 1, 1),
			  .order = calloc(c->mine_count + 1, sizeof(*m.order)),
			  .c = c};
	int err = m.is_marked && m.order
			  ? mark_all(c, &m)
			  : error_set(-ENOMEM, "no memory for a client");

	for (uint32_t i = 0; !err && i < m.count; i++) {
		if (m.is_marked[m.order[i]])
			continue;
		vlist_node_give(c, m.order[i]);
		c->stats.collected++;
	}
	free(m.is_marked);
	free(m.order);
	return err;
}
