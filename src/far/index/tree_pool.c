/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's memory: nodes of the chunks that it has for itself. Only a chunk's
 * owner puts its nodes into the tree, so when the owner is gone whoever takes
 * the chunk can tell what is in use: what the way to a node's own low fence
 * leads to. The rest is free, and was perhaps written and never put in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

enum {
	HEADS_AT_ONCE = 32,
	HEAD_ROOM = 256, /* a node's head and fences */
};

STATIC_ASSERT((int)TREE_NODE_HEAD + 2 * (int)TREE_KEY_MAX <= (int)HEAD_ROOM,
	      "a head fits");
STATIC_ASSERT((int)HEADS_AT_ONCE *(int)HEAD_ROOM <= (int)KIT_STAGE_BYTES,
	      "a batch of heads fits");

/* ---- nodes at hand ------------------------------------------------------ */

static void add_spare(struct tree_client *c, uint32_t number,
		      uint32_t generation, uint32_t version)
{
	if (c->spare_count < c->spare_room)
		c->spare[c->spare_count++] =
			(struct tree_spare){number, generation, version};
}

int tree_pool_take(struct tree_client *c, uint64_t *pointer, uint32_t *version)
{
	struct tree_spare s;

	if (!c->spare_count)
		return error_set(-ENOSPC, "no memory for another node");
	s = c->spare[--c->spare_count];
	s.generation += 1 + (s.generation == UINT32_MAX);
	*pointer = tree_pointer(s.number, s.generation);
	*version = s.version + 1;
	return 0;
}

void tree_pool_give(struct tree_client *c, uint64_t pointer, uint32_t version)
{
	add_spare(c, tree_number(pointer), tree_generation(pointer), version);
}

void tree_pool_forget(struct tree_client *c)
{
	c->spare_count = c->chunk_count = 0;
}

static int make_room(struct tree_client *c)
{
	int err =
		kit_grow(&c->spare, &c->spare_room,
			 c->spare_count + c->g.chunk_nodes, sizeof(*c->spare));

	return err ? err
		   : kit_grow(&c->chunk, &c->chunk_room, c->chunk_count + 1,
			      sizeof(*c->chunk));
}

/* ---- what is in a chunk ------------------------------------------------- */

static struct tree_node *head_of(struct tree_client *c, uint32_t i)
{
	return (struct tree_node *)(c->kit.stage + (size_t)i * HEAD_ROOM);
}

static int read_heads(struct tree_client *c, uint64_t first, uint32_t count)
{
	kit_begin(&c->kit);
	for (uint32_t i = 0; i < count; i++)
		kit_read(&c->kit.main, tree_node_at(&c->g, first + i),
			 head_of(c, i), c->g.slots_at);
	return kit_run(&c->kit);
}

/* Whether the way to its low fence leads to this node. */
static int is_in_use(struct tree_client *c, const struct tree_node *n,
		     bool *in_use)
{
	uint8_t low[TREE_KEY_MAX];
	struct tree_target t = {.key = {low, n->low_len}, .level = n->level};
	uint64_t self = le64_get(n->self), pointer = 0;
	int err;

	memcpy(low, tree_node_low(n).bytes, n->low_len);
	/* The owner may have made it the root since we have looked; now that
	 * the owner is gone it will not. */
	tree_cache_forget(c, 0);
	err = tree_reach(c, &t, false, c->node, &pointer);
	*in_use = !err && pointer == self;
	/* A root that was made and not put in. */
	return err == -ERANGE ? 0 : err;
}

/* A node that nothing leads to, of an owner that is gone. */
static int reclaim(struct tree_client *c, const struct tree_node *n)
{
	memcpy(c->right, n, c->g.slots_at);
	tree_node_set_state(&c->g, c->right, TREE_NODE_FREE);
	c->stats.reclaimed++;
	return kit_write_now(&c->kit.main, TREE_POINT_NODE,
			     tree_node_at(&c->g, le64_get(n->self)), c->right,
			     c->g.slots_at);
}

/* `n` is a copy. */
static int look_at(struct tree_client *c, const struct tree_node *n,
		   uint64_t number, bool was_left)
{
	uint64_t self = le64_get(n->self);
	bool in_use = true;
	int err = 0;

	if (!self && !le32_get(n->crc)) {
		add_spare(c, (uint32_t)number, 0, 0);
		return 0;
	}
	if (tree_number(self) != number)
		return 0; /* damaged: left alone */
	if (tree_node_judge_head(&c->g, n, self) == TREE_OTHER) {
		add_spare(c, (uint32_t)number, tree_generation(self),
			  le32_get(n->version));
		return 0;
	}
	if (tree_node_judge_head(&c->g, n, self) != TREE_WHOLE)
		return 0;
	if (n->state == TREE_NODE_DEAD)
		return tree_prune(c, n->level, tree_node_low(n), self);
	if (!was_left)
		err = is_in_use(c, n, &in_use);
	if (err || in_use)
		return err;
	err = reclaim(c, n);
	if (!err)
		add_spare(c, (uint32_t)number, tree_generation(self),
			  le32_get(n->version));
	return err;
}

/* was_left: by who knew that nothing of it is under way. */
static int scan_chunk(struct tree_client *c, uint64_t chunk, bool was_left)
{
	uint64_t first = chunk * c->g.chunk_nodes;
	uint8_t copy[HEAD_ROOM] CACHE_ALIGNED;
	int err = 0;

	for (uint32_t i = 0; i < c->g.chunk_nodes && !err; i += HEADS_AT_ONCE) {
		uint32_t n = u32_min(HEADS_AT_ONCE, c->g.chunk_nodes - i);

		err = read_heads(c, first + i, n);
		for (uint32_t k = 0; k < n && !err; k++) {
			const struct tree_node *head = head_of(c, k);

			memcpy(copy, head, c->g.slots_at);
			err = look_at(c, (struct tree_node *)copy,
				      first + i + k, was_left);
		}
	}
	return err;
}

/* ---- chunks ------------------------------------------------------------- */

static int take_chunk(struct tree_client *c, uint64_t chunk, uint64_t word)
{
	int err = make_room(c);

	if (!err)
		err = kit_swap_now(&c->kit.main, TREE_POINT_CHUNK,
				   c->g.chunk_word_offset + chunk * 8, word,
				   kit_own_word(&c->kit));
	if (err)
		return err;
	c->chunk[c->chunk_count++] = chunk;
	c->stats.chunks++;
	if (word) {
		c->stats.adopted++;
		return scan_chunk(c, chunk, word == TREE_CHUNK_LEFT);
	}
	for (uint32_t i = c->g.chunk_nodes; i-- > 0;)
		add_spare(c, (uint32_t)(chunk * c->g.chunk_nodes + i), 0, 0);
	return 0;
}

/* Which chunks: those that were left first, then those that nobody had, then
 * those of the dead. */
enum want {
	WANT_LEFT,
	WANT_NEW,
	WANT_GONE
};

struct search {
	struct tree_client *c;
	enum want want;
};

enum {
	FOUND = 1, /* ends kit_chunks_each */
};

static int is_wanted(struct tree_client *c, uint64_t word, enum want want,
		     bool *wanted)
{
	*wanted = false;
	if (want == WANT_LEFT || want == WANT_NEW) {
		*wanted = word == (want == WANT_LEFT ? TREE_CHUNK_LEFT : 0);
		return 0;
	}
	if (!word || word == TREE_CHUNK_LEFT || word == kit_own_word(&c->kit))
		return 0;
	return kit_owner_is_gone(&c->kit, word, wanted);
}

static int try_chunk(void *user, uint64_t chunk, uint64_t word)
{
	const struct search *s = user;
	bool wanted;
	int err = is_wanted(s->c, word, s->want, &wanted);

	if (!err && wanted)
		err = take_chunk(s->c, chunk, word);
	if (err && err != -EAGAIN)
		return err;
	return s->c->spare_count ? FOUND : 0;
}

static int more_chunks(struct tree_client *c, enum want want)
{
	struct search s = {.c = c, .want = want};
	int err = kit_chunks_each(&c->kit, c->g.chunk_word_offset,
				  c->g.chunk_count, &c->chunk_hint, try_chunk,
				  &s);

	return err == FOUND ? 0 : err;
}

/* Nodes of our own chunks that others have taken out of the tree. */
static int rescan(struct tree_client *c)
{
	uint32_t count = c->chunk_count;
	int err = make_room(c);

	for (uint32_t i = 0; i < count && !err && !c->spare_count; i++)
		err = scan_chunk(c, c->chunk[i], true);
	return err;
}

int tree_pool_fill(struct tree_client *c)
{
	int err = 0;

	if (c->spare_count)
		return 0;
	/* Looking for memory may need to go through the tree, but not to
	 * look for memory again. */
	if (c->is_making)
		return error_set(-ENOSPC, "no memory for another node");
	c->is_making = true;
	err = more_chunks(c, WANT_LEFT);
	if (!err && !c->spare_count)
		err = more_chunks(c, WANT_NEW);
	if (!err && !c->spare_count)
		err = rescan(c);
	if (!err && !c->spare_count)
		err = more_chunks(c, WANT_GONE);
	c->is_making = false;
	if (!err && !c->spare_count)
		err = error_set(-ENOSPC, "no memory is left for another node");
	return err;
}

/* With nothing free in it, a chunk stays as it is: who is short of memory will
 * look. */
int tree_pool_leave(struct tree_client *c)
{
	uint64_t old;
	int err = 0;

	for (uint32_t i = 0; i < c->chunk_count && !err; i++) {
		uint64_t first = c->chunk[i] * c->g.chunk_nodes;
		bool any = false;

		for (uint32_t k = 0; k < c->spare_count && !any; k++)
			any = c->spare[k].number - first < c->g.chunk_nodes;
		if (any)
			err = kit_cas_now(
				&c->kit.main, TREE_POINT_CHUNK,
				c->g.chunk_word_offset + c->chunk[i] * 8,
				kit_own_word(&c->kit), TREE_CHUNK_LEFT, &old);
	}
	c->chunk_count = c->spare_count = 0;
	return err;
}
