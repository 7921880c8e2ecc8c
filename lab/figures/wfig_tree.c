/* SPDX-License-Identifier: Apache-2.0 */
/* Insertion into a B+ tree, as textbooks have it. */
#include "wfig_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEYS = WFIG_TREE_KEYS,
	LEFT = (KEYS + 1) / 2, /* what a split leaves */
};

int wfig_tree_create(struct wfig_tree *t, uint32_t size)
{
	*t = (struct wfig_tree){.size = size, .count = 1, .levels = 1};
	t->node = calloc(size, sizeof(*t->node));
	if (!t->node)
		return -ENOMEM;
	t->node[0].is_leaf = 1;
	return 0;
}

void wfig_tree_release(struct wfig_tree *t)
{
	free(t->node);
	t->node = NULL;
}

/* The child that has the key: behind all separators that are not greater. */
static uint32_t place_of(const struct wfig_node *n, uint64_t key)
{
	uint32_t i = 0;

	while (i < n->count && n->entry[i].key <= key)
		i++;
	return i;
}

static void put_entry(struct wfig_node *n, uint32_t at, uint64_t key,
		      uint64_t value)
{
	memmove(&n->entry[at + 1], &n->entry[at],
		(n->count - at) * sizeof(n->entry[0]));
	n->entry[at].key = key;
	n->entry[at].value = value;
	n->count++;
}

/* A separator and the child behind it. */
static void put_child(struct wfig_node *n, uint32_t at, uint64_t key,
		      uint32_t child)
{
	memmove(&n->child[at + 2], &n->child[at + 1],
		(n->count - at) * sizeof(n->child[0]));
	n->child[at + 1] = child + 1;
	put_entry(n, at, key, 0);
}

/* The upper keys of a full leaf go to a new one: its number. */
static uint32_t split_leaf(struct wfig_tree *t, uint32_t number)
{
	struct wfig_node *n = &t->node[number], *up = &t->node[t->count];

	up->is_leaf = 1;
	up->count = KEYS - LEFT;
	memcpy(up->entry, &n->entry[LEFT], up->count * sizeof(n->entry[0]));
	up->next = n->next;
	up->prev = number + 1;
	if (n->next)
		t->node[n->next - 1].prev = t->count + 1;
	n->next = t->count + 1;
	n->count = LEFT;
	return t->count++;
}

/* The same of an inner node; *key goes to its parent. */
static uint32_t split_inner(struct wfig_tree *t, uint32_t number, uint64_t *key)
{
	struct wfig_node *n = &t->node[number], *up = &t->node[t->count];

	*key = n->entry[LEFT - 1].key;
	up->count = KEYS - LEFT;
	memcpy(up->entry, &n->entry[LEFT], up->count * sizeof(n->entry[0]));
	memcpy(up->child, &n->child[LEFT],
	       (up->count + 1) * sizeof(n->child[0]));
	n->count = LEFT - 1;
	return t->count++;
}

static void grow_root(struct wfig_tree *t, uint64_t key, uint32_t child)
{
	struct wfig_node *n = &t->node[t->count];

	n->count = 1;
	n->entry[0].key = key;
	n->child[0] = t->root + 1;
	n->child[1] = child + 1;
	t->root = t->count++;
	t->levels++;
}

/* A new child of path[depth - 1], beside the one that was split. */
static void add_child(struct wfig_tree *t, const uint32_t *path, uint32_t depth,
		      uint64_t key, uint32_t child)
{
	while (depth--) {
		uint32_t number = path[depth], other;
		uint64_t up_key;

		if (t->node[number].count < KEYS) {
			struct wfig_node *n = &t->node[number];

			put_child(n, place_of(n, key), key, child);
			return;
		}
		other = split_inner(t, number, &up_key);
		if (key >= up_key)
			number = other;
		put_child(&t->node[number], place_of(&t->node[number], key),
			  key, child);
		key = up_key;
		child = other;
	}
	grow_root(t, key, child);
}

bool wfig_tree_insert(struct wfig_tree *t, uint64_t key, uint64_t value)
{
	uint32_t path[WFIG_TREE_LEVELS], depth = 0, at = t->root, other;
	struct wfig_node *n = &t->node[at];

	/* Every level may split, and the tree may grow. */
	if (t->count + t->levels + 1 > t->size || t->levels == WFIG_TREE_LEVELS)
		return false;
	while (!n->is_leaf) {
		path[depth++] = at;
		at = (uint32_t)n->child[place_of(n, key)] - 1;
		n = &t->node[at];
	}
	if (n->count < KEYS) {
		put_entry(n, place_of(n, key), key, value);
		return true;
	}
	other = split_leaf(t, at);
	if (key >= t->node[other].entry[0].key)
		n = &t->node[other];
	put_entry(n, place_of(n, key), key, value);
	add_child(t, path, depth, t->node[other].entry[0].key, other);
	return true;
}

uint32_t wfig_tree_first(const struct wfig_tree *t)
{
	const struct wfig_node *n = &t->node[t->root];

	while (!n->is_leaf)
		n = &t->node[n->child[0] - 1];
	return (uint32_t)(n - t->node);
}
