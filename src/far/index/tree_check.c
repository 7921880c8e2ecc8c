/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies every invariant of an index: level after level, from the left. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

/* Where the walk along a level is. */
struct row {
	struct tree_report *r;
	uint8_t level;
	uint8_t end[TREE_KEY_MAX]; /* of the node before */
	uint32_t end_len;
	uint64_t count;
	uint64_t first; /* node of the level below */
};

static void check_range(struct tree_client *c, struct row *row,
			const struct tree_node *n)
{
	struct tree_key end = {row->end, row->end_len};
	struct tree_key high = tree_node_high(&c->g, n);

	if (tree_key_compare(end, tree_node_low(n)) != 0 ||
	    tree_node_has_end(n) != (le64_get(n->sibling) != 0) ||
	    (tree_node_has_end(n) &&
	     tree_key_compare(tree_node_low(n), high) >= 0))
		row->r->bad_links++;
	row->end_len = high.len;
	memcpy(row->end, high.bytes, high.len);
}

/*
 * A node's first entry must stay, so it may name a leaf that the node before
 * had (tree_prune.c). When that leaf goes, too, nobody tells this entry: who
 * comes that way finds an old pointer and puts it right.
 */
static int check_child(struct tree_client *c, struct row *row,
		       const struct tree_item *item, bool is_first,
		       uint64_t *named)
{
	uint64_t child = tree_item_child(item);
	struct tree_node *n = (struct tree_node *)c->kit.stage;
	enum tree_verdict verdict;
	int order, err = 0;

	if (!tree_pointer_is_sane(&c->g, child)) {
		row->r->bad_children++;
		return 0;
	}
	err = kit_read_now(&c->kit.main, tree_node_at(&c->g, child), n,
			   c->g.slots_at);
	if (err)
		return err;
	verdict = tree_node_judge_head(&c->g, n, child);
	if (verdict == TREE_OTHER && is_first) {
		row->r->stale++;
		return 0;
	}
	if (verdict != TREE_WHOLE || n->level + 1 != row->level) {
		row->r->bad_children++;
		return 0;
	}
	order = tree_key_compare(tree_node_low(n), item->key);
	row->r->bad_children += order > 0;
	*named += order == 0 && n->state == TREE_NODE_LIVE;
	return 0;
}

static int check_entries(struct tree_client *c, struct row *row,
			 const struct tree_node *n, uint64_t *named)
{
	uint32_t count = tree_node_sort(&c->g, n, c->items);
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		const struct tree_item *item = &c->items[i];

		if (tree_node_side(&c->g, n, item->key) ||
		    (i && tree_key_compare(item[-1].key, item->key) == 0))
			row->r->bad_entries++;
		if (row->level)
			err = check_child(c, row, item, i == 0, named);
	}
	if (row->level && !row->count)
		row->first = count ? tree_item_child(&c->items[0]) : 0;
	/* An inner node must have an entry for its low fence. */
	if (row->level && (!count || tree_key_compare(c->items[0].key,
						      tree_node_low(n)) != 0))
		row->r->bad_entries++;
	if (!row->level)
		row->r->keys += count;
	return err;
}

static int check_node(struct tree_client *c, struct row *row,
		      const struct tree_node *n, uint64_t *named)
{
	int err;

	check_range(c, row, n);
	if (n->state == TREE_NODE_DEAD) {
		row->r->dead++;
		return 0;
	}
	err = check_entries(c, row, n, named);
	row->count++;
	if (row->level)
		row->r->inner++;
	else
		row->r->leaves++;
	return err;
}

/* All nodes of a level. */
static int check_row(struct tree_client *c, struct row *row, uint64_t pointer,
		     uint64_t *named)
{
	for (uint64_t i = 0; i <= c->g.node_count; i++) {
		enum tree_verdict verdict;
		int err;

		if (!tree_pointer_is_sane(&c->g, pointer))
			break;
		err = tree_read_node(c, pointer, c->node, &verdict);
		if (err && err != -EBADMSG)
			return err;
		if (err || verdict != TREE_WHOLE ||
		    c->node->level != row->level)
			break;
		err = check_node(c, row, c->node, named);
		if (err)
			return err;
		pointer = le64_get(c->node->sibling);
		if (!pointer)
			return 0;
	}
	row->r->bad_nodes++;
	return 0;
}

static int check_levels(struct tree_client *c, struct tree_report *r)
{
	uint64_t pointer, named = 1;
	enum tree_verdict verdict;
	struct row row = {.r = r};
	int err = kit_read_now(&c->kit.main, TREE_ROOT_AT,
			       &c->atom[TREE_ATOM_ROOT], 8);

	if (err)
		return err;
	pointer = c->atom[TREE_ATOM_ROOT];
	err = tree_read_node(c, pointer, c->node, &verdict);
	if (err == -EBADMSG || (!err && verdict != TREE_WHOLE)) {
		r->bad_nodes++;
		return 0;
	}
	if (err)
		return err;
	row.level = c->node->level;
	r->levels = row.level + 1u;
	for (;;) {
		uint64_t below = 0;

		row.count = row.end_len = 0;
		row.first = 0;
		err = check_row(c, &row, pointer, &below);
		if (err)
			return err;
		r->unnamed += row.count > named ? row.count - named : 0;
		if (!row.level || !row.first)
			return 0;
		named = below;
		pointer = row.first;
		row.level--;
	}
}

int tree_nodes_taken(struct tree_client *c, uint64_t *nodes)
{
	uint64_t chunks = 0;
	int err = tree_begin(c);

	if (!err)
		err = kit_count_words(&c->kit.main, c->g.chunk_word_offset,
				      c->g.chunk_count, 8, UINT64_MAX, &chunks);
	*nodes = chunks * c->g.chunk_nodes;
	return err;
}

int tree_check(struct tree_client *c, struct tree_report *r)
{
	int err = tree_begin(c);

	*r = (struct tree_report){.chunks = c->g.chunk_count};
	c->kit.deadline_ns = UINT64_MAX;
	if (!err)
		err = check_levels(c, r);
	if (!err)
		err = kit_count_words(&c->kit.main, tree_slot_at(0),
				      c->g.client_count, TREE_SLOT_BYTES, 0xff,
				      &r->clients);
	if (!err)
		err = kit_count_words(&c->kit.main, c->g.chunk_word_offset,
				      c->g.chunk_count, 8, UINT64_MAX,
				      &r->chunks_taken);
	if (!err)
		err = kit_count_words(&c->kit.locks, tree_lock_at(0),
				      c->g.lock_count, 8, UINT64_MAX,
				      &r->locks_held);
	return err;
}
