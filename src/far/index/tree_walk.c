/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a node: through copies of inner nodes as far as there are, then by
 * READs, and to the right where a node was split meanwhile. What was remembered
 * and led astray is forgotten on the way. A node that its parent does not know,
 * though the parent was read just now, is noted for tree_help.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "tree_priv.h"

/* ---- one node ----------------------------------------------------------- */

/* It stays torn: perhaps who changed it is dead. */
static int mend(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		enum tree_verdict *verdict)
{
	int err = tree_lock_read(c, pointer, n, verdict);

	return err ? err : tree_unlock(c);
}

int tree_read_node(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict)
{
	uint64_t since_ns = 0;

	if (!tree_pointer_is_sane(&c->g, pointer))
		return error_set(-EBADMSG, "the index is damaged: a pointer");
	for (;;) {
		int err =
			kit_read_now(&c->kit.main, tree_node_at(&c->g, pointer),
				     n, c->g.node_bytes);

		if (err)
			return err;
		*verdict = tree_node_judge(&c->g, n, pointer);
		if (PLANTED(tree_torn) && *verdict == TREE_TORN)
			*verdict = tree_node_judge_head(&c->g, n, pointer);
		if (*verdict != TREE_TORN)
			return 0;
		c->stats.torn++;
		if (!since_ns)
			since_ns = kit_now_ns(&c->kit);
		if (kit_is_late(&c->kit))
			return tree_late(c);
		if (kit_now_ns(&c->kit) - since_ns >
		    c->kit.failure_ns / TREE_TORN_SHARE)
			return mend(c, pointer, n, verdict);
	}
}

/* ---- ways --------------------------------------------------------------- */

/* As tree_node_side; with is_before the key itself is not looked for, but what
 * is just before it. */
static int side_of(const struct tree_client *c, const struct tree_node *n,
		   const struct tree_target *t)
{
	if (!t->is_before)
		return tree_node_side(&c->g, n, t->key);
	if (tree_key_compare(t->key, tree_node_low(n)) <= 0)
		return -1;
	return tree_node_has_end(n) &&
	       tree_key_compare(t->key, tree_node_high(&c->g, n)) > 0;
}

static int find_root(struct tree_client *c)
{
	int err;

	if (c->root)
		return 0;
	err = kit_read_now(&c->kit.main, TREE_ROOT_AT, &c->atom[TREE_ATOM_ROOT],
			   8);
	if (err)
		return err;
	c->root = c->atom[TREE_ATOM_ROOT];
	c->root_op = c->op;
	c->knows_level = false;
	return 0;
}

/* A way leads to an inner node that is dead or gone: it is taken out. */
static int clear_way(struct tree_client *c, const struct tree_way *w,
		     enum tree_verdict verdict)
{
	const struct tree_node *n = c->look;
	uint8_t low[TREE_KEY_MAX];

	if (c->nested >= TREE_NESTED_MAX)
		return 0;
	if (verdict == TREE_WHOLE) {
		memcpy(low, tree_node_low(n).bytes, n->low_len);
		return tree_prune(c, n->level,
				  (struct tree_key){low, n->low_len},
				  le64_get(n->self));
	}
	return w->parent && w->is_fresh
		       ? tree_unname(c, (uint8_t)(w->level + 1),
				     (struct tree_key){w->sep, w->sep_len},
				     w->pointer)
		       : 0;
}

/* A copy of the inner node, read if need be; *in is NULL for a leaf. -EAGAIN:
 * there is no such node any more. */
static int find_inner(struct tree_client *c, const struct tree_way *w,
		      struct tree_inner **in)
{
	enum tree_verdict verdict;
	int err;

	*in = tree_cache_find(c, w->pointer);
	if (*in)
		return 0;
	err = tree_read_node(c, w->pointer, c->look, &verdict);
	if (err)
		return err;
	if (verdict == TREE_WHOLE && !c->look->level)
		return 0;
	if (verdict != TREE_WHOLE || c->look->state == TREE_NODE_DEAD) {
		err = clear_way(c, w, verdict);
		return err ? err : -EAGAIN;
	}
	c->stats.inner_reads++;
	*in = tree_cache_put(c, c->look);
	return *in ? 0 : error_set(-ENOMEM, "no memory for a node");
}

static void set_way(struct tree_client *c, struct tree_way *w, uint64_t pointer,
		    const struct tree_inner *parent,
		    const struct tree_item *item)
{
	*w = (struct tree_way){.pointer = pointer};
	if (!parent) {
		w->is_fresh = c->root_op == c->op;
		return;
	}
	w->parent = w->via = parent->self;
	w->level = (uint8_t)(parent->node->level - 1);
	w->is_fresh = parent->op == c->op;
	w->sep_len = (uint8_t)item->key.len;
	memcpy(w->sep, item->key.bytes, item->key.len);
}

/* One step: to the right or down. -EAGAIN: it led nowhere. */
static int step(struct tree_client *c, const struct tree_target *t,
		struct tree_inner *in, struct tree_way *w, bool *is_there)
{
	int side = side_of(c, in->node, t), i;
	struct tree_item item;

	if (side < 0)
		return -EAGAIN;
	if (side > 0) {
		c->stats.rights++;
		/* Siblings that lead round and round end with the time. */
		if (kit_is_late(&c->kit))
			return tree_late(c);
		*w = (struct tree_way){.pointer = le64_get(in->node->sibling),
				       .via = in->self};
		return w->pointer ? 0 : -EAGAIN;
	}
	if (in->node->level == t->level) {
		*is_there = true;
		return 0;
	}
	i = tree_inner_find(c, in, t->key, t->is_before);
	if (i < 0)
		return -EAGAIN;
	item = tree_inner_item(c, in, (uint32_t)i);
	set_way(c, w, tree_item_child(&item), in, &item);
	*is_there = in->node->level == t->level + 1;
	return 0;
}

/* From the root down; -EAGAIN. */
static int descend(struct tree_client *c, const struct tree_target *t,
		   struct tree_way *w)
{
	bool is_there = false;
	int err = find_root(c);

	if (err)
		return err;
	set_way(c, w, c->root, NULL, NULL);
	for (unsigned i = 0; i < TREE_RIGHT_STEPS && !is_there; i++) {
		struct tree_inner *in;

		if (w->pointer == c->root && c->knows_level &&
		    c->root_level <= t->level)
			return c->root_level == t->level ? 0 : -ERANGE;
		err = find_inner(c, w, &in);
		if (err)
			return err;
		if (w->pointer == c->root) {
			c->root_level = in ? in->node->level : 0;
			c->knows_level = true;
			if (c->root_level <= t->level)
				continue;
		}
		if (!in)
			return -EAGAIN;
		/* A pointer is of one use of a node, and that of one level. */
		if (w->parent && in->node->level != w->level)
			return error_set(-EBADMSG,
					 "the index is damaged: a level");
		err = step(c, t, in, w, &is_there);
		if (err) {
			tree_cache_forget(c, in->self);
			return err;
		}
	}
	return is_there ? 0 : -EAGAIN;
}

int tree_way_failed(struct tree_client *c, const struct tree_way *w)
{
	c->stats.restarts++;
	tree_cache_forget(c, w->via);
	if (++c->restarts >= TREE_RESTARTS)
		tree_cache_forget_all(c);
	if (kit_is_late(&c->kit))
		return tree_late(c);
	if (c->restarts > TREE_RESTARTS)
		kit_pause(&c->kit, TREE_BACKOFF_NS_MIN);
	return 0;
}

int tree_way_find(struct tree_client *c, const struct tree_target *t,
		  struct tree_way *w)
{
	for (;;) {
		int err = descend(c, t, w);

		if (err == -ERANGE && c->root_op != c->op) {
			c->root = 0; /* it may have grown */
			continue;
		}
		if (err != -EAGAIN)
			return err;
		err = tree_way_failed(c, w);
		if (err)
			return err;
	}
}

/* ---- the target --------------------------------------------------------- */

/* The parent does not know this node, or its copy here is old. */
static void note_right(struct tree_client *c, const struct tree_way *w,
		       const struct tree_target *t, const struct tree_node *n)
{
	if (!w->is_fresh) {
		tree_cache_forget(c, w->parent);
		return;
	}
	c->missing.level = (uint8_t)(t->level + 1);
	c->missing.key_len = n->low_len;
	memcpy(c->missing.key, tree_node_low(n).bytes, n->low_len);
	c->missing.child = le64_get(n->self);
}

static int get_node(struct tree_client *c, uint64_t pointer, bool lock,
		    struct tree_node *n, enum tree_verdict *verdict)
{
	if (!tree_pointer_is_sane(&c->g, pointer))
		return error_set(-EBADMSG, "the index is damaged: a pointer");
	return lock ? tree_lock_read(c, pointer, n, verdict)
		    : tree_read_node(c, pointer, n, verdict);
}

/* It is not the one: lets go of it, and finishes what somebody has begun. */
static int turn_back(struct tree_client *c, const struct tree_target *t,
		     const struct tree_way *w, const struct tree_node *n,
		     uint64_t pointer, bool lock, enum tree_verdict verdict)
{
	uint8_t low[TREE_KEY_MAX];
	struct tree_key key = {low, n->low_len};
	bool may_help = c->nested < TREE_NESTED_MAX;
	bool is_dead =
		may_help && verdict == TREE_WHOLE && n->state == TREE_NODE_DEAD;
	int err = 0;

	if (is_dead)
		memcpy(low, tree_node_low(n).bytes, key.len);
	if (lock)
		err = tree_unlock(c);
	if (!err && is_dead)
		err = tree_prune(c, t->level, key, pointer);
	else if (!err && may_help && verdict == TREE_OTHER && w->parent &&
		 w->is_fresh && pointer == w->pointer)
		err = tree_unname(c, (uint8_t)(t->level + 1),
				  (struct tree_key){w->sep, w->sep_len},
				  pointer);
	return err ? err : tree_way_failed(c, w);
}

/* From where the way leads, and to the right. -EAGAIN: begin again. */
static int reach(struct tree_client *c, const struct tree_target *t, bool lock,
		 struct tree_node *n, struct tree_way *w, uint64_t *pointer)
{
	uint64_t at = w->pointer;
	bool is_right = false;

	for (unsigned i = 0; i < TREE_RIGHT_STEPS; i++) {
		enum tree_verdict verdict;
		int side, err = get_node(c, at, lock, n, &verdict);

		if (err)
			return err;
		side = verdict == TREE_WHOLE && n->level == t->level
			       ? side_of(c, n, t)
			       : -1;
		if (side < 0 || (n->state == TREE_NODE_DEAD && !t->is_before)) {
			err = turn_back(c, t, w, n, at, lock, verdict);
			return err ? err : -EAGAIN;
		}
		if (!side) {
			if (is_right && n->state == TREE_NODE_LIVE)
				note_right(c, w, t, n);
			*pointer = at;
			return 0;
		}
		c->stats.rights++;
		is_right = true;
		at = le64_get(n->sibling);
		err = lock ? tree_unlock(c) : 0;
		if (err)
			return err;
		if (kit_is_late(&c->kit))
			return tree_late(c);
	}
	return error_set(-EBADMSG, "the index is damaged: a loop");
}

int tree_reach(struct tree_client *c, const struct tree_target *t, bool lock,
	       struct tree_node *n, uint64_t *pointer)
{
	struct tree_way w;
	int err;

	do {
		err = tree_way_find(c, t, &w);
		if (!err)
			err = reach(c, t, lock, n, &w, pointer);
	} while (err == -EAGAIN);
	return err;
}
