/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments that two nodes have. The switch writes what is given back to both
 * (switch/coh_pair.c), so either has all that was acknowledged. When one of
 * them does not answer, this node notes that the other one alone has the
 * segment, and tells the switch, in that order: what only the other one has is
 * not acknowledged before that. Then a new second copy is made, by the
 * mechanism of a move (shared_move.c), where a node has room for it; the node
 * that was away is one of those when it is back and has zeros there.
 *
 * A tenant is charged for every place that a segment has.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "shared_priv.h"

int shared_copy_take(struct mem_node *node, struct mem_segment *g)
{
	struct mem_shared *s = node->shared;
	uint64_t was_tried = 1ull << g->node;
	struct mem_shared_node *n;

	while ((n = shared_node_best(s, was_tried))) {
		was_tried |= 1ull << (n - s->nodes);
		if (arena_take(&n->arena, g->part.bytes, &g->copy))
			continue;
		g->copy_node = (uint8_t)(n - s->nodes);
		g->has_copy = true;
		g->tenant->used_bytes += g->copy.bytes;
		return 0;
	}
	return error_set(-ENOSPC,
			 "two copies of segment %s need a second memory node "
			 "with room for %s of shared memory",
			 g->name, SIZE_TEXT(g->part.bytes));
}

int shared_copy_tell(struct mem_node *node, const struct mem_segment *g)
{
	return shared_tell(node,
			   "pair va=%" PRIu64 " size=%" PRIu64
			   " node=%u at=%" PRIu64,
			   g->va, g->copy.bytes, g->copy_node, g->copy.at);
}

void shared_copy_untell(struct mem_node *node, const struct mem_segment *g)
{
	if (shared_tell(node,
			"single va=%" PRIu64 " size=%" PRIu64
			" node=%u at=%" PRIu64,
			g->va, g->there.bytes, g->where, g->there.at))
		log_warn("memnode", "%s", error_last());
}

int shared_copy_declare(struct mem_node *node)
{
	const struct mem_shared *s = node->shared;
	int err = 0;

	for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i] && s->segments[i]->has_copy)
			err = shared_copy_tell(node, s->segments[i]);
	return err;
}

/* ---- a node has no copies any more ----------------------------------------
 */

/* The copy that counts from now on is in `where`; the other one's place. */
static struct arena_part note_single(struct mem_segment *g, uint8_t gone)
{
	struct arena_part part = g->copy;

	if (g->where == gone) {
		part = g->there;
		g->where = g->copy_node;
		g->there = g->copy;
	}
	g->has_copy = false;
	return part;
}

static bool has_two(const struct mem_segment *g, uint8_t at)
{
	return g && g->has_copy && (g->where == at || g->copy_node == at);
}

static void leave(struct mem_node *node, struct mem_segment *g, uint8_t at,
		  bool is_told)
{
	struct mem_shared *s = node->shared;
	struct arena_part part = note_single(g, at);

	log_warn("memnode", "segment %s of %s goes on at node %s alone",
		 g->name, g->tenant->name, s->nodes[g->where].name);
	/* Else what only the other one has would be acknowledged, and a lead
	 * that is restarted would read what this one has. */
	if (shared_file_save(node))
		return;
	if (is_told)
		shared_copy_untell(node, g);
	shared_node_scrub_part(node, at, &part, at == g->node);
	if (at != g->node)
		g->tenant->used_bytes -= part.bytes;
}

void shared_copy_drop(struct mem_node *node, struct mem_segment *g)
{
	if (g->has_copy)
		leave(node, g, g->copy_node, true);
}

void shared_copy_leave(struct mem_node *node, uint8_t at, bool is_told)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];
		uint8_t other;

		if (!has_two(g, at))
			continue;
		other = g->where == at ? g->copy_node : g->where;
		/* If both are away either may be the first to come back. */
		if (s->nodes[other].is_here)
			leave(node, g, at, is_told);
	}
}

void shared_copy_forget(struct mem_node *node, uint8_t at)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];
		struct arena_part part;

		if (!has_two(g, at))
			continue;
		part = note_single(g, at);
		log_warn("memnode",
			 "segment %s of %s goes on at node %s alone: node %s "
			 "was restarted",
			 g->name, g->tenant->name, s->nodes[g->where].name,
			 s->nodes[at].name);
		if (at == g->node) /* it is zeros, and the segment's address */
			continue;
		arena_give(&s->nodes[at].arena, part.at);
		g->tenant->used_bytes -= part.bytes;
	}
}

/* ---- another one -----------------------------------------------------------
 */

static bool wants_copy(const struct mem_shared *s, const struct mem_segment *g)
{
	return g && g->copies > 1 && !g->has_copy && g->part.bytes &&
	       !g->is_leaving && !g->is_lost && s->nodes[g->where].is_here;
}

static bool begin(struct mem_node *node, struct mem_segment *g)
{
	struct mem_shared *s = node->shared;
	uint64_t but = 1ull << g->where;
	struct mem_shared_node *n;

	/* At home there is a place. */
	if (g->node != g->where && shared_node_is_open(s, g->node) &&
	    !shared_move_begin(node, g, g->node, true))
		return true;
	but |= 1ull << g->node;
	while ((n = shared_node_best(s, but))) {
		but |= 1ull << (n - s->nodes);
		if (!shared_move_begin(node, g, (uint8_t)(n - s->nodes), true))
			return true;
	}
	return false;
}

/* One at a time, as the switch has it. What cannot be now is tried again. */
void shared_copy_look(struct mem_node *node)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; !s->move.segment && i < MEM_SEGMENT_MAX; i++)
		if (wants_copy(s, s->segments[i]) &&
		    begin(node, s->segments[i]))
			return;
}
