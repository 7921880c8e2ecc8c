/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for a cuckoo path: a chain of entries, each of which moves to its
 * other row, that ends in a free entry. Rows already visited are passed over,
 * so a path has no row twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kv.h"

enum {
	SEEN_SIZE = 4096, /* a power of two above KV_SEARCH_NODES */
	DFS_MOVES = 500,
};

struct node {
	uint64_t row;
	int32_t from;  /* the node before; -1: a row of the key itself */
	int16_t entry; /* of `from`'s row, that would move here */
	int16_t depth;
};

struct kv_search {
	uint32_t round; /* marks what of `seen` is current */
	uint32_t count;
	struct node node[KV_SEARCH_NODES];
	struct {
		uint32_t round;
		uint64_t row;
	} seen[SEEN_SIZE];
	uint32_t found;	 /* the last node of the path */
	uint64_t random; /* of the depth-first walk */
};

struct kv_search *kv_search_create(void)
{
	struct kv_search *s = calloc(1, sizeof(*s));

	if (s)
		s->random = 0x9e3779b97f4a7c15u;
	return s;
}

void kv_search_destroy(struct kv_search *s)
{
	free(s);
}

/* False: it was seen before. */
static bool visit(struct kv_search *s, uint64_t row)
{
	uint32_t at = (uint32_t)((row * 0x9e3779b97f4a7c15u) >> 40);

	for (;; at++) {
		at &= SEEN_SIZE - 1;
		if (s->seen[at].round != s->round) {
			s->seen[at].round = s->round;
			s->seen[at].row = row;
			return true;
		}
		if (s->seen[at].row == row)
			return false;
	}
}

static void begin(struct kv_search *s)
{
	s->count = 0;
	if (++s->round == 0) {
		memset(s->seen, 0, sizeof(s->seen));
		s->round = 1;
	}
}

static void add(struct kv_search *s, uint64_t row, int32_t from, int entry)
{
	if (s->count == KV_SEARCH_NODES || !visit(s, row))
		return;
	s->node[s->count++] = (struct node){
		.row = row,
		.from = from,
		.entry = (int16_t)entry,
		.depth = from < 0 ? 0 : (int16_t)(s->node[from].depth + 1)};
}

static void unwind(const struct kv_search *s, uint32_t last, int free_entry,
		   struct kv_path *path)
{
	int32_t at = (int32_t)last;
	int entry = free_entry;
	unsigned i = (unsigned)s->node[last].depth;

	path->count = i + 1;
	for (; at >= 0; i--) {
		path->step[i] = (struct kv_step){s->node[at].row, entry};
		entry = s->node[at].entry;
		at = s->node[at].from;
	}
}

/* The other row of an entry; its own row when it is damaged. */
static uint64_t other_row(const struct kv_geometry *g, const uint8_t *entry,
			  uint64_t row)
{
	struct kv_place place;
	struct kv_item item;

	if (kv_entry_read(g, entry, &item))
		return row;
	kv_place_of(g, kv_entry_hash(g, &item), &place);
	return place.row[0] == row ? place.row[1] : place.row[0];
}

static int run_bfs(struct kv_search *s, const struct kv_geometry *g,
		   const struct kv_view *view, struct kv_path *path)
{
	uint32_t at;
	unsigned e;

	for (at = 0; at < s->count; at++) {
		const struct node n = s->node[at];
		bool usable = false;
		const uint8_t *row = view->row(view->ctx, n.row, &usable);
		int free_entry;

		if (!usable)
			continue;
		free_entry = row ? kv_row_free(g, row) : -1;
		if (!row || free_entry >= 0) {
			unwind(s, at, free_entry, path);
			s->found = at;
			return 0;
		}
		if (n.depth + 1 >= KV_PATH_MAX || s->count == KV_SEARCH_NODES)
			continue;
		for (e = 0; e < g->entries; e++, row += g->entry_bytes)
			add(s, other_row(g, row, n.row), (int32_t)at, (int)e);
	}
	return -ENOENT;
}

/* One walk: a random entry moves on from each full row. */
static int run_dfs(struct kv_search *s, const struct kv_geometry *g,
		   const struct kv_view *view, struct kv_path *path)
{
	uint32_t at = 0, moves;

	for (moves = 0; moves < DFS_MOVES; moves++) {
		const struct node n = s->node[at];
		bool usable = false;
		const uint8_t *row = view->row(view->ctx, n.row, &usable);
		int free_entry = row ? kv_row_free(g, row) : -1;
		uint32_t before = s->count;
		int e;

		if (usable && (!row || free_entry >= 0)) {
			unwind(s, at, free_entry, path);
			return 0;
		}
		s->random ^= s->random << 13;
		s->random ^= s->random >> 7;
		s->random ^= s->random << 17;
		if (!usable || n.depth + 1 >= KV_PATH_MAX) {
			at = s->random % 2 && s->count > 1 ? 1 : 0;
			continue;
		}
		e = (int)(s->random % g->entries);
		add(s, other_row(g, row + (size_t)e * g->entry_bytes, n.row),
		    (int32_t)at, e);
		if (s->count > before)
			at = before;
		else if (s->count == KV_SEARCH_NODES)
			return -ENOENT;
	}
	return -ENOENT;
}

int kv_search_run(struct kv_search *s, const struct kv_geometry *g,
		  const struct kv_view *view, const struct kv_place *place,
		  enum aq_kv_search how, struct kv_path *path)
{
	begin(s);
	add(s, place->row[0], -1, -1);
	add(s, place->row[1], -1, -1);
	return how == AQ_KV_SEARCH_DFS ? run_dfs(s, g, view, path)
				       : run_bfs(s, g, view, path);
}

unsigned kv_search_spares(const struct kv_search *s,
			  const struct kv_geometry *g,
			  const struct kv_view *view, uint64_t *row,
			  unsigned max)
{
	uint32_t at, from;
	unsigned count = 0;

	for (at = s->found + 1; at < s->count && count < max; at++) {
		const struct node *n = &s->node[at];
		const uint8_t *bytes;
		bool usable = false;

		/* The row before it must be the path's or the key's. */
		if (n->from < 0)
			continue;
		from = (uint32_t)n->from;
		if (n->from != s->node[s->found].from && s->node[from].depth)
			continue;
		bytes = view->row(view->ctx, n->row, &usable);
		if (usable && (!bytes || kv_row_free(g, bytes) >= 0))
			row[count++] = n->row;
	}
	return count;
}
