/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment goes to another node while it is used: the switch copies its pages
 * and writes what is given back to both (switch/coh_move.c). When both have the
 * same this node notes where the segment is, and tells the switch, in that
 * order: whenever the switch dies, what is noted here is right.
 *
 * The segment keeps its address, and its place at home with it; the memory
 * there is given back. So one that is away from home has two places, and its
 * tenant is charged for both.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "ruled.h"
#include "shared_priv.h"

static const char *name_of(const struct mem_shared *s, uint8_t node)
{
	return s->nodes[node].name;
}

static bool is_home(const struct mem_segment *g, uint8_t node)
{
	return g->node == node;
}

/* ---- places ---------------------------------------------------------------
 */

/* The place at home is there already. */
static int take(struct mem_node *node, struct mem_segment *g, uint8_t to,
		struct arena_part *out)
{
	int err;

	*out = g->part;
	if (is_home(g, to))
		return shared_node_is_dirty(node->shared, to, &g->part)
			       ? error_set(-EBUSY,
					   "the former place of segment %s at "
					   "node %s is not zeros yet",
					   g->name, name_of(node->shared, to))
			       : 0;
	err = ruled_charge(node, g->tenant, g->part.bytes);
	if (err)
		return error_prefix(err,
				    "segment %s takes a second place of %s "
				    "while it is not at node %s: ",
				    g->name, SIZE_TEXT(g->part.bytes),
				    name_of(node->shared, g->node));
	if (arena_take(&node->shared->nodes[to].arena, g->part.bytes, out))
		return error_set(
			-ENOSPC,
			"the shared memory of %s, %s, has no place of "
			"%s left",
			name_of(node->shared, to),
			SIZE_TEXT(node->shared->nodes[to].arena.size_bytes),
			SIZE_TEXT(g->part.bytes));
	g->tenant->used_bytes += out->bytes;
	return 0;
}

static void give(struct mem_node *node, struct mem_segment *g, uint8_t from,
		 const struct arena_part *part)
{
	bool stays = is_home(g, from);

	shared_node_scrub_part(node, from, part, stays);
	if (!stays)
		g->tenant->used_bytes -= part->bytes;
}

/* ---- steps ----------------------------------------------------------------
 */

int shared_move_begin(struct mem_node *node, struct mem_segment *g, uint8_t to,
		      bool is_copy)
{
	struct mem_shared *s = node->shared;
	struct mem_shared_move *v = &s->move;
	struct arena_part part;
	int err;

	if (v->segment)
		return error_set(-EBUSY, "segment %s is being moved",
				 v->segment->name);
	if (g->has_copy)
		return error_set(-EBUSY,
				 "segment %s is at nodes %s and %s, and stays "
				 "there",
				 g->name, name_of(s, g->where),
				 name_of(s, g->copy_node));
	if (!s->nodes[g->where].is_here || g->is_lost)
		return error_set(-EHOSTDOWN,
				 "segment %s is lost, or node %s does not "
				 "answer",
				 g->name, name_of(s, g->where));
	err = take(node, g, to, &part);
	if (err)
		return err;
	err = shared_tell(node,
			  "move va=%" PRIu64 " size=%" PRIu64
			  " node=%u at=%" PRIu64,
			  g->va, part.bytes, to, part.at);
	if (err) {
		give(node, g, to, &part);
		return err;
	}
	*v = (struct mem_shared_move){
		.segment = g, .node = to, .part = part, .is_copy = is_copy};
	return 0;
}

/* Where it is and where it goes, or was, change places. */
static void swap(struct mem_shared_move *v)
{
	struct mem_segment *g = v->segment;
	struct arena_part part = g->there;
	uint8_t node = g->where;

	g->where = v->node;
	g->there = v->part;
	v->node = node;
	v->part = part;
	v->is_noted = !v->is_noted;
}

void shared_move_cancel(struct mem_node *node, const char *why)
{
	struct mem_shared_move *v = &node->shared->move;

	if (v->is_noted || v->is_cancelled)
		return;
	log_warn("memnode", "segment %s of %s is not %s: %s", v->segment->name,
		 v->segment->tenant->name, v->is_copy ? "copied" : "moved",
		 why);
	v->is_cancelled = shared_tell(node, "unmove") == 0;
}

/* Both nodes have all of it. If the switch does not answer any more it may have
 * heard us or not: either node will do until it has, or the next one is told.
 */
static int conclude(struct mem_node *node)
{
	struct mem_shared_move *v = &node->shared->move;
	int err = shared_tell(node, "moved");

	if (err && err != -EHOSTDOWN) {
		if (v->is_noted)
			swap(v);
		shared_move_cancel(node, error_last());
		return 0;
	}
	if (!v->is_noted) {
		swap(v);
		log_info("memnode",
			 "segment %s of %s has moved from node %s to %s",
			 v->segment->name, v->segment->tenant->name,
			 name_of(node->shared, v->node),
			 name_of(node->shared, v->segment->where));
	}
	return err;
}

/* The switch writes to both from now on, or to none: only then it is noted
 * that the second one counts, too. */
static int conclude_copy(struct mem_node *node)
{
	struct mem_shared_move *v = &node->shared->move;
	struct mem_segment *g = v->segment;
	int err = shared_tell(node, "paired");

	if (err == -EHOSTDOWN)
		return err; /* who knows; see below */
	if (err) {
		shared_move_cancel(node, error_last());
		return 0;
	}
	g->has_copy = true;
	g->copy_node = v->node;
	g->copy = v->part;
	*v = (struct mem_shared_move){0};
	log_info("memnode", "segment %s of %s is at nodes %s and %s", g->name,
		 g->tenant->name, name_of(node->shared, g->where),
		 name_of(node->shared, g->copy_node));
	return 0;
}

/* The switch may have heard that it is a pair, and we not that it has. */
static int unpair(struct mem_node *node)
{
	const struct mem_segment *g = node->shared->move.segment;
	int err = shared_tell(node,
			      "single va=%" PRIu64 " size=%" PRIu64
			      " node=%u at=%" PRIu64,
			      g->va, g->there.bytes, g->where, g->there.at);

	return err == -EBUSY ? 0 : err;
}

void shared_move_end(struct mem_node *node)
{
	struct mem_shared_move *v = &node->shared->move;

	if (!v->segment)
		return;
	give(node, v->segment, v->node, &v->part);
	*v = (struct mem_shared_move){0};
}

int shared_move_look(struct mem_node *node, const json_t *show)
{
	struct mem_shared_move *v = &node->shared->move;
	const char *state = json_string_value(json_object_get(show, "move"));

	if (!v->segment || !state)
		return 0;
	if (strcmp(state, "none") == 0) {
		int err = v->is_copy ? unpair(node) : 0;

		if (err)
			return err;
		shared_move_end(node);
	} else if (strcmp(state, "failed") == 0) {
		if (v->is_noted) /* the switch has not heard it */
			swap(v);
		shared_move_cancel(node, "a memory node does not answer");
	} else if (strcmp(state, "synced") == 0 && !v->is_cancelled &&
		   !v->segment->is_leaving) {
		return v->is_copy ? conclude_copy(node) : conclude(node);
	}
	return 0;
}

/* A new switch: where they are. */
int shared_move_declare(struct mem_node *node)
{
	const struct mem_shared *s = node->shared;
	int err = 0;

	for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++) {
		const struct mem_segment *g = s->segments[i];

		if (g && g->part.bytes && !is_home(g, g->where))
			err = shared_tell(node,
					  "outlier va=%" PRIu64 " size=%" PRIu64
					  " node=%u at=%" PRIu64,
					  g->va, g->there.bytes, g->where,
					  g->there.at);
	}
	return err;
}

/* ---- the call -------------------------------------------------------------
 */

void handle_segment_move(void *ctx, struct ctl_call *call)
{
	struct mem_node *node = ctx;
	struct mem_segment *g = NULL;
	const char *name = NULL;
	uint8_t to = 0;
	int err = ctl_field_string(call->body, "node", true, &name);

	if (!err)
		err = shared_check(node);
	if (!err) {
		g = segment_find(node->shared, call->caller, call->segment[0]);
		if (!g || !g->part.bytes)
			err = error_set(-ENOENT,
					"there is no segment %s, or it has no "
					"memory yet",
					call->segment[0]);
	}
	if (!err)
		err = shared_node_find(node->shared, name, &to);
	if (!err && g->where != to)
		err = shared_move_begin(node, g, to, false);
	if (err)
		ctl_reply_last_error(call->reply, err);
	else
		ctl_reply_json(call->reply, 200,
			       segment_describe(node->shared, g, call->caller));
}
