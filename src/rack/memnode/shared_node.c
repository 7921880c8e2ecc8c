/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that have shared memory, as the lead knows them. Their arenas lie one
 * behind the other in the first 1 TiB of addresses, so that a machine's table
 * of pages is no longer than what there is, and so that programs may map all of
 * it somewhere else as one piece (apps/shm). A node keeps its number and its
 * addresses while the lead runs, also when it is away or restarted: its memory
 * is then not what it was, and its segments are lost.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "coherence/lease.h"
#include "shared_priv.h"

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* ---- life -----------------------------------------------------------------
 */

static int set(struct mem_shared_node *n, const char *name, uint64_t va,
	       uint64_t size_bytes)
{
	int err = arena_init(&n->arena, size_bytes, MEM_SEGMENT_MAX);

	n->dirty = calloc(MEM_SEGMENT_MAX, sizeof(*n->dirty));
	if (err || !n->dirty) {
		arena_release(&n->arena);
		free(n->dirty);
		*n = (struct mem_shared_node){0};
		return -ENOMEM;
	}
	n->used = true;
	n->va = va;
	snprintf(n->name, sizeof(n->name), "%s", name);
	return 0;
}

int shared_node_open(struct mem_shared *s, const char *name,
		     uint64_t size_bytes)
{
	return set(&s->nodes[MEM_SHARED_NODE], name, COHERENCE_BASE,
		   size_bytes);
}

int shared_node_restore(struct mem_shared *s, uint8_t at, const char *name,
			uint64_t id, uint64_t va, uint64_t size_bytes)
{
	int err = strlen(name) < MEM_SHARED_NAME && size_bytes &&
				  size_bytes <= 1ull << COHERENCE_NODE_SHIFT
			  ? set(&s->nodes[at], name, va, size_bytes)
			  : -EINVAL;

	s->nodes[at].id = id;
	return err ? error_set(err, "no node %.40s of %" PRIu64 " bytes", name,
			       size_bytes)
		   : 0;
}

void shared_node_close(struct mem_shared *s)
{
	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		arena_release(&s->nodes[i].arena);
		free(s->nodes[i].dirty);
	}
}

uint64_t shared_node_extent(const struct mem_shared *s)
{
	uint64_t end = COHERENCE_BASE;

	for (unsigned i = 0; i < COHERENCE_NODES; i++)
		if (s->nodes[i].used)
			end = u64_max(end,
				      s->nodes[i].va +
					      s->nodes[i].arena.size_bytes);
	return end - COHERENCE_BASE;
}

uint64_t shared_node_used(const struct mem_shared *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < COHERENCE_NODES; i++)
		bytes += s->nodes[i].arena.taken_bytes;
	return bytes;
}

json_t *shared_node_describe(const struct mem_shared *s)
{
	json_t *rows = json_array();

	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		const struct mem_shared_node *n = &s->nodes[i];

		if (n->used)
			(void)json_array_append_new(
				rows,
				json_pack("{s:s, s:I, s:I, s:b}", "name",
					  n->name, "size",
					  (json_int_t)n->arena.size_bytes,
					  "used",
					  (json_int_t)n->arena.taken_bytes,
					  "here", n->is_here));
	}
	return rows;
}

/* ---- places ---------------------------------------------------------------
 */

/* Machines that were there before have a table of its pages by now: they were
 * told of its addresses a beat ago at least. */
static bool is_open(const struct mem_shared *s, const struct mem_shared_node *n)
{
	if (!n->used || !n->is_here)
		return false;
	for (unsigned i = 0; n->here_ns && i < COH_MACHINES_MAX; i++)
		if (s->members[i].used && !s->members[i].is_going &&
		    s->members[i].beat_ns < n->here_ns + COH_HEARTBEAT_NS)
			return false;
	return true;
}

bool shared_node_is_open(const struct mem_shared *s, uint8_t at)
{
	return is_open(s, &s->nodes[at]);
}

struct mem_shared_node *shared_node_best(struct mem_shared *s, uint64_t but)
{
	struct mem_shared_node *best = NULL;

	STATIC_ASSERT(COHERENCE_NODES <= 64, "a mask has all nodes");
	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		struct mem_shared_node *n = &s->nodes[i];

		if (!(but >> i & 1) && is_open(s, n) &&
		    (!best || n->arena.taken_bytes < best->arena.taken_bytes))
			best = n;
	}
	return best;
}

int shared_node_take(struct mem_node *node, struct mem_segment *g)
{
	struct mem_shared *s = node->shared;
	uint64_t was_tried = 0;

	for (;;) {
		struct mem_shared_node *best = shared_node_best(s, was_tried);

		if (!best)
			return error_set(-ENOSPC,
					 "the shared memory of %s, %s, and of "
					 "nodes that follow it has no place of "
					 "%s left",
					 node->name, SIZE_TEXT(s->size_bytes),
					 SIZE_TEXT(arena_round(g->size_bytes)));
		was_tried |= 1ull << (best - s->nodes);
		if (arena_take(&best->arena, g->size_bytes, &g->part))
			continue;
		g->node = g->where = (uint8_t)(best - s->nodes);
		g->there = g->part;
		g->va = best->va + g->part.at;
		return 0;
	}
}

int shared_node_find(const struct mem_shared *s, const char *name, uint8_t *out)
{
	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		const struct mem_shared_node *n = &s->nodes[i];

		if (!n->used || strcmp(n->name, name) != 0)
			continue;
		*out = (uint8_t)i;
		return is_open(s, n)
			       ? 0
			       : error_set(-EHOSTDOWN,
					   "node %s does not answer, or is not "
					   "known to all machines yet",
					   n->name);
	}
	return error_set(-ENOENT, "no node %.40s has shared memory here", name);
}

void shared_node_scrub_part(struct mem_node *node, uint8_t at,
			    const struct arena_part *part, bool stays)
{
	struct mem_shared *s = node->shared;
	struct mem_shared_node *n = &s->nodes[at];

	node->bytes_scrubbed += part->bytes;
	if (at != MEM_SHARED_NODE) {
		n->dirty[n->dirty_count++] = (struct mem_dirty){*part, stays};
		return;
	}
	memory_scrub(&s->memory, part->at, part->bytes);
	if (!stays)
		arena_give(&n->arena, part->at);
}

bool shared_node_is_dirty(const struct mem_shared *s, uint8_t at,
			  const struct arena_part *part)
{
	const struct mem_shared_node *n = &s->nodes[at];

	for (unsigned i = 0; i < n->dirty_count; i++)
		if (n->dirty[i].part.at == part->at)
			return true;
	return false;
}

/* The address of a segment that was elsewhere: its memory there is zeros, or
 * will be. */
static void give_address(struct mem_shared_node *n,
			 const struct arena_part *part)
{
	for (unsigned i = 0; i < n->dirty_count; i++)
		if (n->dirty[i].part.at == part->at) {
			n->dirty[i].stays = false;
			return;
		}
	arena_give(&n->arena, part->at);
}

void shared_node_give(struct mem_node *node, const struct mem_segment *g)
{
	shared_node_scrub_part(node, g->where, &g->there, false);
	if (g->has_copy)
		shared_node_scrub_part(node, g->copy_node, &g->copy, false);
	if (g->where != g->node && !(g->has_copy && g->copy_node == g->node))
		give_address(&node->shared->nodes[g->node], &g->part);
}

static void forget_dirty(struct mem_shared_node *n, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!n->dirty[i].stays)
			arena_give(&n->arena, n->dirty[i].part.at);
	n->dirty_count -= count;
	n->dirty_told -= u32_min(count, n->dirty_told);
	memmove(n->dirty, n->dirty + count, n->dirty_count * sizeof(*n->dirty));
}

int shared_node_scrub(struct mem_node *node)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 1; i < COHERENCE_NODES; i++) {
		struct mem_shared_node *n = &s->nodes[i];
		int err = 0;

		while (n->is_here && !err && n->dirty_told < n->dirty_count) {
			const struct arena_part *p =
				&n->dirty[n->dirty_told].part;

			err = shared_tell(node,
					  "scrub node=%u at=%" PRIu64
					  " size=%" PRIu64,
					  i, p->at, p->bytes);
			n->dirty_told += !err;
		}
		if (err && err != -EBUSY) /* it has enough to do */
			return err;
	}
	return 0;
}

bool shared_node_is_busy(const struct mem_shared *s)
{
	for (unsigned i = 1; i < COHERENCE_NODES; i++)
		if (s->nodes[i].is_here && s->nodes[i].dirty_count)
			return true;
	return s->move.segment;
}

/* ---- terms ----------------------------------------------------------------
 */

static void lose(struct mem_node *node, unsigned number, const char *why)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (g && !g->is_leaving && g->part.bytes && g->where == number)
			lost_whole(g, s->nodes[number].name, why);
	}
}

uint64_t shared_node_begin(struct mem_node *node, const json_t *show)
{
	struct mem_shared *s = node->shared;
	const char *by = json_string_value(json_object_get(show, "by"));
	bool is_ours = by && strcmp(by, node->name) == 0 &&
		       number(show, "term") == s->term;
	const json_t *row;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < COHERENCE_NODES; i++) {
		s->nodes[i].is_told = s->nodes[i].is_here = false;
		s->nodes[i].dirty_told = 0;
	}
	json_array_foreach(json_object_get(show, "nodes"), i, row)
	{
		uint64_t in_vain = number(row, "void");

		if (!is_ours || !in_vain ||
		    number(row, "node") >= COHERENCE_NODES)
			continue;
		lose(node, (unsigned)number(row, "node"),
		     "its memory node did not answer when pages were given "
		     "back");
		sum += in_vain;
	}
	return sum;
}

/* ---- offers ---------------------------------------------------------------
 */

/* As large as the largest part that it may have, or the largest step. */
static uint64_t alignment(uint64_t size_bytes)
{
	uint64_t bytes = ARENA_STEP;

	while (bytes < size_bytes && bytes < ARENA_STEP_MAX)
		bytes *= 2;
	return bytes;
}

/* One with this name, or the place for it; NULL: there is no more. */
static struct mem_shared_node *find(struct mem_shared *s, const char *name)
{
	struct mem_shared_node *free_one = NULL;

	for (unsigned i = 0; i < COHERENCE_NODES; i++) {
		struct mem_shared_node *n = &s->nodes[i];

		if (n->used && strcmp(n->name, name) == 0)
			return n;
		if (!n->used && !free_one)
			free_one = n;
	}
	return free_one;
}

static int meet(struct mem_node *node, struct mem_shared_node *n,
		const char *name, uint64_t size_bytes)
{
	struct mem_shared *s = node->shared;
	uint64_t at = align_up(shared_node_extent(s), alignment(size_bytes));

	if (!size_bytes || size_bytes % ARENA_STEP ||
	    size_bytes > 1ull << COHERENCE_NODE_SHIFT ||
	    at > (1ull << COHERENCE_NODE_SHIFT) - size_bytes)
		return error_set(-EINVAL,
				 "shared memory of all nodes has addresses for "
				 "%s",
				 SIZE_TEXT(1ull << COHERENCE_NODE_SHIFT));
	if (set(n, name, COHERENCE_BASE + at, size_bytes))
		return error_set(-ENOMEM, "no memory left");
	n->here_ns = env_now_ns(node->env);
	log_info("memnode", "node %s adds %s of shared memory", name,
		 SIZE_TEXT(size_bytes));
	return 0;
}

/* Its memory is new: what was in it is gone, and nothing is to become zeros. */
static int renew(struct mem_node *node, struct mem_shared_node *n, uint64_t id)
{
	struct mem_shared *s = node->shared;
	unsigned number_of = (unsigned)(n - s->nodes);
	bool was_other = n->id && n->id != id;
	int err = 0;

	n->id = id;
	if (!was_other)
		return 0;
	forget_dirty(n, n->dirty_count);
	shared_copy_forget(node, (uint8_t)number_of);
	lose(node, number_of, "its memory node was restarted, and has zeros");
	for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i] && s->segments[i]->is_lost &&
		    s->segments[i]->where == number_of)
			err = segment_withdraw(node, s->segments[i]);
	return err;
}

static int take(struct mem_node *node, struct mem_shared_node *n,
		const json_t *row)
{
	struct mem_shared *s = node->shared;
	uint64_t id = number(row, "id"), size_bytes = number(row, "size");
	const char *name = json_string_value(json_object_get(row, "name"));
	int err = 0;

	if (!n->used)
		err = meet(node, n, name, size_bytes);
	else if (n == s->nodes || n->arena.size_bytes != size_bytes)
		err = error_set(-EINVAL,
				"it had %s, and keeps that while node %s leads",
				SIZE_TEXT(n->arena.size_bytes), node->name);
	if (err) {
		if (!n->is_odd)
			log_warn("memnode",
				 "the shared memory of node %.40s is not "
				 "taken: %s",
				 name, error_last());
		n->is_odd = true;
		return 0;
	}
	/* It was given up, or it ended and began again. */
	if (n->is_told) {
		log_warn("memnode", "node %s is back: the next term begins",
			 name);
		s->wants_term = true;
		return 0;
	}
	err = shared_tell(node,
			  "node node=%u va=%" PRIu64 " offer=%s id=%" PRIu64,
			  (unsigned)(n - s->nodes), n->va, name, id);
	if (err)
		return err;
	n->is_told = n->is_here = true;
	n->is_odd = false;
	return renew(node, n, id);
}

int shared_node_admit(struct mem_node *node, const json_t *show)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;
	int err = 0;

	json_array_foreach(json_object_get(show, "offers"), i, row)
	{
		const char *name =
			json_string_value(json_object_get(row, "name"));
		struct mem_shared_node *n;

		if (err || !name || strlen(name) >= MEM_SHARED_NAME ||
		    json_is_true(json_object_get(row, "taken")))
			continue;
		n = find(s, name);
		if (n)
			err = take(node, n, row);
	}
	return err;
}

const struct mem_shared_node *shared_node_missing(const struct mem_shared *s)
{
	for (unsigned i = 0; i < COHERENCE_NODES; i++)
		if (s->nodes[i].used && !s->nodes[i].is_told)
			return &s->nodes[i];
	return NULL;
}

int shared_node_tell_away(struct mem_node *node)
{
	struct mem_shared *s = node->shared;
	int err = 0;

	for (unsigned i = 0; !err && i < COHERENCE_NODES; i++) {
		struct mem_shared_node *n = &s->nodes[i];

		if (!n->used || n->is_told)
			continue;
		log_warn("memnode",
			 "memory node %s does not come back: segments that no "
			 "other node has cannot be used until it does",
			 n->name);
		shared_copy_leave(node, (uint8_t)i, false);
		err = shared_tell(node,
				  "node node=%u va=%" PRIu64 " size=%" PRIu64
				  " away",
				  i, n->va, n->arena.size_bytes);
		n->is_told = !err;
	}
	return err;
}

void shared_node_note(struct mem_node *node, const json_t *show)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(show, "nodes"), i, row)
	{
		uint64_t at = number(row, "node");
		struct mem_shared_node *n =
			at < COHERENCE_NODES ? &s->nodes[at] : NULL;

		if (!n || !n->used)
			continue;
		if (!number(row, "scrubs") && n->dirty_told)
			forget_dirty(n, n->dirty_told);
		if (!n->is_here || !json_is_true(json_object_get(row, "lost")))
			continue;
		n->is_here = false;
		if (at == MEM_SHARED_NODE) {
			log_warn("memnode", "the switch has given our shared "
					    "memory up: the next term begins");
			s->wants_term = true;
		} else {
			log_warn("memnode",
				 "memory node %s does not answer: segments "
				 "that no other node has cannot be used until "
				 "it does",
				 n->name);
			shared_copy_leave(node, (uint8_t)at, true);
		}
	}
}
