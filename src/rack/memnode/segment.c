/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: named memory of a tenant that machines share, at one address. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "ruled.h"
#include "shared_priv.h"

struct mem_segment *segment_find(const struct mem_shared *s,
				 const struct mem_tenant *owner,
				 const char *name)
{
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (g && !g->is_leaving && !g->is_unlinked &&
		    g->tenant == owner && strcmp(g->name, name) == 0)
			return g;
	}
	return NULL;
}

struct mem_segment *segment_find_id(const struct mem_shared *s,
				    const struct mem_tenant *owner, uint64_t id)
{
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (g && !g->is_leaving && g->tenant == owner && g->id == id)
			return g;
	}
	return NULL;
}

/* ---- rights -------------------------------------------------------------- */

static const char *const right_words[] = {
	[COH_NONE] = "none", [COH_READ] = "r", [COH_WRITE] = "rw"};

static int tell_right(struct mem_node *node, const struct mem_segment *g,
		      const struct mem_allow *a)
{
	if (!a->length)
		return 0; /* it has no memory yet */
	return shared_tell(
		node,
		"allow domain=%u va=%" PRIu64 " size=%" PRIu64 " right=%s",
		shared_domain(node->shared, a->tenant),
		segment_va(g) + a->offset, a->length, right_words[a->right]);
}

/* To all of its place, which the owner pays for and nobody else can have: one
 * piece of the switch's table, or few, whatever the segment's size, and none
 * more when it grows. Others have a right to what it has now, and no byte more.
 */
static struct mem_allow owner_right(const struct mem_segment *g,
				    enum coh_right right)
{
	return (struct mem_allow){
		.tenant = g->tenant, .length = g->part.bytes, .right = right};
}

static int tell_last(struct mem_node *node, const struct mem_segment *g)
{
	return shared_tell(node, "last va=%" PRIu64 " size=%" PRIu64,
			   segment_va(g), g->part.bytes);
}

int segment_declare(struct mem_node *node, struct mem_segment *g)
{
	struct mem_allow own = owner_right(g, COH_WRITE);
	int err;

	if (g->is_leaving || g->is_lost)
		return 0;
	err = g->goes_on && g->part.bytes ? tell_last(node, g) : 0;
	if (!err)
		err = tell_right(node, g, &own);
	for (unsigned i = 0; !err && i < g->allow_count; i++)
		err = tell_right(node, g, &g->allow[i]);
	return err;
}

int segment_withdraw(struct mem_node *node, struct mem_segment *g)
{
	struct mem_allow own = owner_right(g, COH_NONE);
	int err = tell_right(node, g, &own);

	for (unsigned i = 0; !err && i < g->allow_count; i++) {
		struct mem_allow a = g->allow[i];

		a.right = COH_NONE;
		err = tell_right(node, g, &a);
	}
	g->is_withdrawn = !err;
	return err;
}

enum coh_right segment_right(const struct mem_segment *g,
			     const struct mem_tenant *t)
{
	enum coh_right best = t == g->tenant ? COH_WRITE : COH_NONE;

	for (unsigned i = 0; i < g->allow_count; i++)
		if (g->allow[i].tenant == t && g->allow[i].right > best)
			best = g->allow[i].right;
	return best;
}

static bool covers(const struct mem_allow *a, const struct mem_allow *b)
{
	return a->tenant == b->tenant && a->offset <= b->offset &&
	       a->offset + a->length >= b->offset + b->length;
}

static bool has_any(const struct mem_segment *g, const struct mem_tenant *t)
{
	for (unsigned i = 0; i < g->allow_count; i++)
		if (g->allow[i].tenant == t)
			return true;
	return false;
}

/* Later ones count more. What is covered is said no more. */
static int keep_allow(struct mem_segment *g, const struct mem_allow *a)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < g->allow_count; i++)
		if (!covers(a, &g->allow[i]))
			g->allow[kept++] = g->allow[i];
	g->allow_count = kept;
	if (a->right == COH_NONE && !has_any(g, a->tenant))
		return 0;
	if (kept == MEM_ALLOW_MAX)
		return error_set(-ENOSPC,
				 "segment %s has %d parts that others may use "
				 "at most",
				 g->name, MEM_ALLOW_MAX);
	g->allow[g->allow_count++] = *a;
	return 0;
}

int segment_allow(struct mem_node *node, struct mem_segment *g,
		  const struct mem_allow *allow)
{
	struct mem_allow a = *allow;
	int err;

	if (a.right == COH_NONE && !has_any(g, a.tenant))
		return 0;
	a.length = u64_min(a.length, g->size_bytes - a.offset);
	err = keep_allow(g, &a);
	return err || g->is_lost ? err : tell_right(node, g, &a);
}

/* ---- life ---------------------------------------------------------------- */

static int check_new(const struct mem_shared *s, const struct mem_tenant *t,
		     const char *name)
{
	if (!ctl_name_is_valid(name, MEM_REGION_NAME_MAX))
		return error_set(-EINVAL,
				 "a segment's name has 1 to %d letters, "
				 "digits, '-', '_' and '.', and does not begin "
				 "with '-' or '.'",
				 MEM_REGION_NAME_MAX);
	if (segment_find(s, t, name))
		return error_set(-EEXIST, "there is a segment %s already",
				 name);
	return 0;
}

static void give_memory(struct mem_node *node, struct mem_segment *g)
{
	if (!g->part.bytes)
		return;
	shared_node_give(node, g);
	if (g->where != g->node)
		g->tenant->used_bytes -= g->there.bytes;
	if (g->has_copy && g->copy_node != g->node)
		g->tenant->used_bytes -= g->copy.bytes;
	g->tenant->used_bytes -= g->part.bytes;
}

/* A place in the arena. The tenant pays for all of it, because nobody else can
 * have what is left: many small segments would use up the arena otherwise. */
static int take_once(struct mem_node *node, struct mem_segment *g)
{
	uint64_t place_bytes =
		g->size_bytes ? g->copies * arena_round(g->size_bytes) : 0;
	int err = ruled_admit(node);

	if (!err)
		err = ruled_charge(node, g->tenant, place_bytes);
	if (err == -EDQUOT)
		return error_prefix(err, "segment %s takes %s: ", g->name,
				    SIZE_TEXT(place_bytes));
	if (err || !place_bytes)
		return err;
	err = shared_node_take(node, g);
	if (err)
		return err;
	g->tenant->used_bytes += g->part.bytes;
	err = g->copies > 1 ? shared_copy_take(node, g) : 0;
	if (err)
		give_memory(node, g);
	return err;
}

/* The memory of deleted segments comes back with the tick; whoever deletes and
 * makes faster than that finds it by asking for it. */
static int take_memory(struct mem_node *node, struct mem_segment *g)
{
	int err = take_once(node, g);

	if (err == -ENOSPC || err == -EDQUOT) {
		(void)!lead_free_segments(node); /* the tick tries again */
		err = take_once(node, g);
	}
	return err;
}

static int insert(struct mem_shared *s, struct mem_segment *g)
{
	unsigned place = 0;

	while (place < MEM_SEGMENT_MAX && s->segments[place])
		place++;
	if (place == MEM_SEGMENT_MAX)
		return error_set(-ENOSPC, "a node has %d segments at most",
				 MEM_SEGMENT_MAX);
	s->segments[place] = g;
	s->segment_count++;
	g->id = ++s->last_id;
	return 0;
}

void segment_free(struct mem_node *node, struct mem_segment *g)
{
	struct mem_shared *s = node->shared;

	give_memory(node, g);
	tenant_give(g->tenant, MEM_LIMIT_REGIONS, 1);
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i] == g)
			s->segments[i] = NULL;
	s->segment_count--;
	lost_forget(s, g);
	free(g);
}

int segment_create(struct mem_node *node, struct mem_tenant *t,
		   const struct mem_segment_wish *wish,
		   struct mem_segment **out)
{
	struct mem_shared *s = node->shared;
	struct mem_segment *g;
	uint64_t size_bytes = wish->size_bytes;
	int err = check_new(s, t, wish->name);

	if (!err && size_bytes > shared_node_extent(s))
		err = error_set(-ENOSPC, "the shared memory of %s has %s",
				node->name, SIZE_TEXT(s->size_bytes));
	if (!err)
		err = tenant_take(t, MEM_LIMIT_REGIONS, 1);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (g) {
		g->tenant = t;
		g->copies = wish->copies;
		g->goes_on = wish->goes_on;
		g->length_bytes = size_bytes;
		g->size_bytes = align_up(size_bytes, COHERENCE_PAGE_BYTES);
		snprintf(g->name, sizeof(g->name), "%s", wish->name);
		err = take_memory(node, g);
	}
	if (!g || err) {
		free(g);
		tenant_give(t, MEM_LIMIT_REGIONS, 1);
		return g ? err : error_set(-ENOMEM, "no memory left");
	}
	err = insert(s, g);
	if (!err && g->has_copy)
		err = shared_copy_tell(node, g);
	if (!err)
		err = segment_declare(node, g);
	/* The switch's table of rights is full: nothing may fail later. */
	if (err == -EBUSY)
		err = error_prefix(-ENOSPC, "segment %s: ", wish->name);
	if (err) {
		if (g->has_copy)
			shared_copy_untell(node, g);
		segment_free(node, g);
		return err;
	}
	*out = g;
	return 0;
}

/* More of its place, which is paid for, and to which its owner has a right. */
static int grow(struct mem_segment *g, uint64_t size_bytes)
{
	if (size_bytes > g->part.bytes)
		return error_set(-ENOSPC,
				 "segment %s has room for %s and no more",
				 g->name, SIZE_TEXT(g->part.bytes));
	g->size_bytes = size_bytes;
	return 0;
}

/* Its first memory. */
static int begin(struct mem_node *node, struct mem_segment *g,
		 uint64_t size_bytes)
{
	struct mem_allow own;
	int err;

	g->size_bytes = size_bytes;
	err = take_memory(node, g);
	if (err)
		goto out;
	own = owner_right(g, COH_WRITE);
	err = g->has_copy ? shared_copy_tell(node, g) : 0;
	if (!err)
		err = tell_right(node, g, &own);
	if (!err)
		return 0;
	if (g->has_copy)
		shared_copy_untell(node, g);
	give_memory(node, g);
out:
	g->size_bytes = 0;
	g->has_copy = false;
	g->part = (struct arena_part){0};
	return err;
}

int segment_resize(struct mem_node *node, struct mem_segment *g,
		   uint64_t length_bytes)
{
	uint64_t size_bytes = align_up(length_bytes, COHERENCE_PAGE_BYTES);
	int err = 0;

	if (length_bytes < g->length_bytes)
		return error_set(-EOPNOTSUPP,
				 "shared memory does not become shorter");
	if (length_bytes > shared_node_extent(node->shared))
		return error_set(-ENOSPC, "the shared memory of %s has %s",
				 node->name,
				 SIZE_TEXT(node->shared->size_bytes));
	if (!g->part.bytes && size_bytes) {
		err = begin(node, g, size_bytes);
	} else if (size_bytes > g->size_bytes) {
		err = grow(g, size_bytes);
	}
	if (!err)
		g->length_bytes = length_bytes;
	return err;
}

static bool is_used(const struct mem_shared *s, const struct mem_segment *g)
{
	for (unsigned i = 0; i < COH_MACHINES_MAX; i++)
		if (g->users >> i & 1 && s->members[i].used &&
		    !s->members[i].is_going)
			return true;
	return false;
}

void segment_sweep(struct mem_node *node)
{
	struct mem_shared *s = node->shared;

	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		/* In vain: the next time. */
		if (g && g->is_unlinked && !g->is_leaving && !is_used(s, g))
			(void)!segment_delete(node, g);
	}
}

int segment_delete(struct mem_node *node, struct mem_segment *g)
{
	int err = segment_withdraw(node, g);

	/* A switch that does not answer is told later (lead.c), and the next
	 * one is told of no right to it. */
	if (err && err != -EHOSTDOWN)
		return err;
	g->is_leaving = true;
	log_info("memnode", "segment %s of %s is deleted", g->name,
		 g->tenant->name);
	return 0;
}
