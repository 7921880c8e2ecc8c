/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Empty nodes. A leaf that became empty is dead, and so is an inner node with
 * no entry but its first: nobody changes it any more. Three more steps take it
 * out, each under one lock, and anybody may do them: the node before it takes
 * over its range; the parent forgets it; its memory is free. Who comes upon a
 * dead node does them all and then goes on. A child that only a dead inner
 * node knew is found by way of the one before it, and named anew.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

/* Reads the dead leaf into c->look; *is_dead: it is still there. */
static int read_dead(struct tree_client *c, uint64_t pointer, bool *is_dead)
{
	int err = kit_read_now(&c->kit.main, tree_node_at(&c->g, pointer),
			       c->look, c->g.slots_at);

	*is_dead =
		!err &&
		tree_node_judge_head(&c->g, c->look, pointer) == TREE_WHOLE &&
		c->look->state == TREE_NODE_DEAD;
	return err;
}

/* Under the lock of the leaf in c->node, which may be before the dead one in
 * c->look. */
static int absorb(struct tree_client *c, uint64_t pointer, uint64_t dead)
{
	struct tree_node *n = c->node, *d = c->look;

	kit_begin(&c->kit);
	if (le64_get(n->sibling) == dead) {
		tree_node_set_end(&c->g, n, tree_node_high(&c->g, d),
				  tree_node_has_end(d), le64_get(d->sibling));
		tree_node_renew(&c->g, n);
		kit_write(&c->kit.main, TREE_POINT_LEFT,
			  tree_node_at(&c->g, pointer), n, c->g.node_bytes);
		c->stats.pruned++;
	}
	tree_unlock_add(c);
	return tree_unlock_run(c);
}

/* -EAGAIN: the one before is dead, too, and is named in *low and *dead. */
static int absorb_one(struct tree_client *c, uint8_t level,
		      uint8_t low[TREE_KEY_MAX], uint32_t *low_len,
		      uint64_t *dead)
{
	struct tree_target t = {
		.key = {low, *low_len}, .level = level, .is_before = true};
	uint64_t pointer;
	bool is_dead;
	int err = tree_reach(c, &t, true, c->node, &pointer);

	if (err)
		return err;
	if (c->node->state == TREE_NODE_DEAD) {
		*dead = pointer;
		*low_len = c->node->low_len;
		memcpy(low, tree_node_low(c->node).bytes, *low_len);
		err = tree_unlock(c);
		return err ? err : -EAGAIN;
	}
	/* Read under the lock: if it is the sibling here it is still dead. */
	err = read_dead(c, *dead, &is_dead);
	if (!err && is_dead)
		return absorb(c, pointer, *dead);
	if (c->hold.is_held) {
		int unlock = tree_unlock(c);

		err = err ? err : unlock;
	}
	return err;
}

/* -EAGAIN: there were too many of them for one time. */
static int absorb_row(struct tree_client *c, uint8_t level, struct tree_key low,
		      uint64_t dead)
{
	uint8_t key[TREE_KEY_MAX];
	int err = -EAGAIN;

	for (unsigned i = 0; i < TREE_DEAD_ROW && err == -EAGAIN; i++) {
		uint32_t len = low.len;
		uint64_t which = dead;

		memcpy(key, low.bytes, low.len);
		err = absorb_one(c, level, key, &len, &which);
		/* From there to the one that was asked for. */
		for (unsigned k = 0; k < TREE_DEAD_ROW && err == -EAGAIN; k++)
			err = absorb_one(c, level, key, &len, &which);
		if (!err && which != dead)
			err = -EAGAIN;
		if (kit_is_late(&c->kit))
			return tree_late(c);
	}
	return err;
}

/* Exactly once: under its lock, and only what is dead. */
static int free_dead(struct tree_client *c, uint64_t pointer)
{
	enum tree_verdict verdict;
	int err = tree_lock_read(c, pointer, c->node, &verdict);

	if (err)
		return err;
	kit_begin(&c->kit);
	if (verdict == TREE_WHOLE && c->node->state == TREE_NODE_DEAD) {
		tree_node_set_state(&c->g, c->node, TREE_NODE_FREE);
		kit_write(&c->kit.main, TREE_POINT_NODE,
			  tree_node_at(&c->g, pointer), c->node, c->g.slots_at);
	}
	tree_unlock_add(c);
	return tree_unlock_run(c);
}

/* Under the lock of a parent, in c->node: the entry of a child that is gone
 * goes. *is_dead: and so does the parent, because nothing else is in it. */
static int unname(struct tree_client *c, uint64_t parent, struct tree_key sep,
		  uint64_t child, uint64_t before, bool *is_dead)
{
	struct tree_node *n = c->node;
	uint32_t at, count = tree_node_sort(&c->g, n, c->items);
	bool is_first = tree_key_compare(sep, tree_node_low(n)) == 0;
	le64 word = le64_put(before);
	struct tree_item item;

	kit_begin(&c->kit);
	if (tree_node_find(&c->g, n, sep, &item) == TREE_SLOT_USED &&
	    tree_item_child(&item) == child) {
		*is_dead = n->low_len && count <= (is_first ? 1 : 2);
		/* A node's first entry must stay: all keys from its low fence
		 * on need one. The node before leads on to the right. */
		if (is_first)
			tree_slot_put(&c->g, n, item.slot, sep, &word,
				      sizeof(word));
		else
			tree_slot_clear(&c->g, n, item.slot);
		at = tree_entry_at(&c->g, n->level, item.slot);
		kit_write(&c->kit.main, TREE_POINT_ENTRY,
			  tree_node_at(&c->g, parent) + at, (uint8_t *)n + at,
			  c->g.inner_stride);
	}
	if (*is_dead) {
		tree_node_set_state(&c->g, n, TREE_NODE_DEAD);
		kit_write(&c->kit.main, TREE_POINT_NODE,
			  tree_node_at(&c->g, parent), n, c->g.slots_at);
	}
	tree_unlock_add(c);
	tree_cache_forget(c, parent);
	return tree_unlock_run(c);
}

static int unname_in(struct tree_client *c, uint64_t parent, uint8_t level,
		     struct tree_key sep, uint64_t child, uint64_t before)
{
	uint8_t low[TREE_KEY_MAX];
	struct tree_key key = {low, c->node->low_len};
	bool is_dead = false;
	int err;

	memcpy(low, tree_node_low(c->node).bytes, key.len);
	err = unname(c, parent, sep, child, before, &is_dead);
	return err || !is_dead ? err : tree_prune(c, level, key, parent);
}

int tree_unname(struct tree_client *c, uint8_t level, struct tree_key sep,
		uint64_t child)
{
	struct tree_target before = {
		.key = sep, .level = (uint8_t)(level - 1), .is_before = true};
	struct tree_target up = {.key = sep, .level = level};
	uint64_t parent, leaf;
	int err;

	if (!sep.len)
		return error_set(-EBADMSG, "the index is damaged: its first "
					   "node is gone");
	c->nested++;
	err = tree_reach(c, &before, false, c->node, &leaf);
	if (!err)
		err = tree_reach(c, &up, true, c->node, &parent);
	if (!err)
		err = unname_in(c, parent, level, sep, child, leaf);
	c->nested--;
	return err == -ERANGE ? 0 : err; /* there is no parent */
}

int tree_prune(struct tree_client *c, uint8_t level, struct tree_key low,
	       uint64_t pointer)
{
	bool is_dead;
	int err;

	if (!low.len)
		return error_set(-EBADMSG, "the index is damaged: its first "
					   "node is dead");
	c->nested++;
	err = absorb_row(c, level, low, pointer);
	if (!err)
		err = tree_unname(c, (uint8_t)(level + 1), low, pointer);
	if (!err)
		err = read_dead(c, pointer, &is_dead);
	if (!err && is_dead)
		err = free_dead(c, pointer);
	c->nested--;
	return err == -EAGAIN ? 0 : err;
}
