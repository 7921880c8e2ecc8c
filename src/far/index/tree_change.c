/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes: an entry is written under its node's lock, together with the
 * unlocking. A full node is split: the right half is written first, where
 * nobody knows it, then the left one, which from then on leads to it. Only then
 * the parent is told, under its own lock and in the same manner; until it is,
 * the way goes by the left half. So a tree is whole whenever somebody dies.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "tree_priv.h"

struct change {
	struct tree_key key;
	const void *value; /* NULL: the entry goes */
	uint32_t len;
	uint8_t level;
	/* Inner nodes: nothing if the key has this value already. */
	bool is_name;
	/* What there is to do once the lock is gone. */
	uint64_t right; /* a node that the parent does not know; 0: none */
	uint8_t mid[TREE_KEY_MAX];
	uint32_t mid_len;
	uint64_t dead; /* a leaf that has become empty; 0: none */
	uint8_t low[TREE_KEY_MAX];
	uint32_t low_len;
};

/* ---- one entry ---------------------------------------------------------- */

static void add_entry(struct tree_client *c, uint64_t pointer, uint32_t slot,
		      uint32_t len_bytes)
{
	uint32_t at = tree_entry_at(&c->g, c->node->level, slot);

	kit_write(&c->kit.main, TREE_POINT_ENTRY,
		  tree_node_at(&c->g, pointer) + at, (uint8_t *)c->node + at,
		  len_bytes);
}

static int unlock_early(struct tree_client *c)
{
	return kit_write_now(&c->kit.locks, TREE_POINT_UNLOCK,
			     tree_lock_at(c->hold.lock), c->zero, 8);
}

static int put_entry(struct tree_client *c, const struct change *ch,
		     uint64_t pointer, uint32_t slot)
{
	tree_slot_put(&c->g, c->node, slot, ch->key, ch->value, ch->len);
	if (PLANTED(tree_early))
		(void)!unlock_early(c); /* the next batch fails, too */
	kit_begin(&c->kit);
	add_entry(c, pointer, slot, TREE_ENTRY_HEAD + c->g.key_room + ch->len);
	tree_unlock_add(c);
	return tree_unlock_run(c);
}

static bool is_empty(const struct tree_client *c, const struct tree_node *n)
{
	struct tree_item item;

	for (uint32_t i = 0; i < tree_slots(&c->g, n->level); i++)
		if (tree_slot_look(&c->g, n, i, &item) == TREE_SLOT_USED)
			return false;
	return true;
}

/* A leaf that becomes empty dies, unless it is the first: nothing is before
 * that one. */
static int delete_entry(struct tree_client *c, struct change *ch,
			uint64_t pointer, uint32_t slot)
{
	struct tree_node *n = c->node;

	tree_slot_clear(&c->g, n, slot);
	kit_begin(&c->kit);
	add_entry(c, pointer, slot, TREE_ENTRY_HEAD);
	if (n->low_len && is_empty(c, n)) {
		tree_node_set_state(&c->g, n, TREE_NODE_DEAD);
		kit_write(&c->kit.main, TREE_POINT_NODE,
			  tree_node_at(&c->g, pointer), n, c->g.slots_at);
		ch->dead = pointer;
		ch->low_len = n->low_len;
		memcpy(ch->low, tree_node_low(n).bytes, n->low_len);
	}
	tree_unlock_add(c);
	return tree_unlock_run(c);
}

/* ---- a full node -------------------------------------------------------- */

static int split(struct tree_client *c, struct change *ch, uint64_t pointer)
{
	uint32_t version;
	struct tree_key mid = {.bytes = ch->mid};
	struct tree_node *into;
	int slot, err = tree_pool_take(c, &ch->right, &version);

	if (err)
		return err;
	tree_node_middle(&c->g, c->node, ch->key, ch->mid, &ch->mid_len);
	mid.len = ch->mid_len;
	tree_node_split(&c->g, c->node, c->right, ch->right, version, mid);
	into = tree_key_compare(ch->key, mid) < 0 ? c->node : c->right;
	slot = tree_node_free_slot(&c->g, into);
	if (slot < 0)
		return error_set(-EBADMSG, "the index is damaged: a node");
	tree_slot_put(&c->g, into, (uint32_t)slot, ch->key, ch->value, ch->len);
	c->stats.splits++;
	kit_begin(&c->kit);
	kit_write(&c->kit.main, TREE_POINT_RIGHT,
		  tree_node_at(&c->g, ch->right), c->right, c->g.node_bytes);
	kit_write(&c->kit.main, TREE_POINT_LEFT, tree_node_at(&c->g, pointer),
		  c->node, c->g.node_bytes);
	tree_unlock_add(c);
	return tree_unlock_run(c);
}

/* Under the lock; -EAGAIN: without it now, and there is memory. */
static int split_or_fill(struct tree_client *c, struct change *ch,
			 uint64_t pointer)
{
	int err;

	if (c->spare_count) {
		err = split(c, ch, pointer);
		if (c->hold.is_held)
			(void)!tree_unlock(c); /* the reason is in err */
		return err;
	}
	err = tree_unlock(c);
	if (!err)
		err = tree_pool_fill(c);
	return err ? err : -EAGAIN;
}

static bool is_same(const struct change *ch, const struct tree_item *item)
{
	return ch->is_name && item->value_len == ch->len &&
	       memcmp(item->value, ch->value, ch->len) == 0;
}

static int change_once(struct tree_client *c, struct change *ch)
{
	struct tree_target t = {.key = ch->key, .level = ch->level};
	enum tree_slot_verdict found;
	struct tree_item item;
	uint64_t pointer;
	int slot, err = tree_reach(c, &t, true, c->node, &pointer);

	if (err)
		return err;
	/* Under the lock nothing is torn. */
	found = tree_node_find(&c->g, c->node, ch->key, &item);
	if (found == TREE_SLOT_USED && ch->value && !is_same(ch, &item))
		return put_entry(c, ch, pointer, item.slot);
	if (found == TREE_SLOT_USED && !ch->value)
		return delete_entry(c, ch, pointer, item.slot);
	if (found == TREE_SLOT_USED)
		return tree_unlock(c);
	if (!ch->value) {
		err = tree_unlock(c);
		return err ? err : -ENOENT;
	}
	slot = tree_node_free_slot(&c->g, c->node);
	return slot < 0 ? split_or_fill(c, ch, pointer)
			: put_entry(c, ch, pointer, (uint32_t)slot);
}

/* ---- a level more ------------------------------------------------------- */

static void build_root(struct tree_client *c, uint64_t self, uint8_t level,
		       uint32_t version, const struct change *ch)
{
	struct tree_fences all = {.has_end = false};
	struct tree_key first = {c->kit.stage, 0};
	le64 old = le64_put(c->root);

	tree_node_init(&c->g, c->right, self, level, version, &all, 0);
	tree_slot_put(&c->g, c->right, 0, first, &old, sizeof(old));
	tree_slot_put(&c->g, c->right, 1, ch->key, ch->value, ch->len);
}

/* There is no such level: a root above the one there is, with two entries. */
static int grow(struct tree_client *c, const struct change *ch)
{
	uint64_t old = c->root, self;
	uint32_t version;
	int err;

	if (ch->level >= TREE_LEVELS_MAX)
		return error_set(-EBADMSG, "the index is damaged: its levels");
	err = tree_pool_fill(c);
	if (err)
		return err;
	/* Looking for memory may have led to another root. */
	if (c->root != old || !old || c->root_level + 1 != ch->level)
		return -EAGAIN;
	err = tree_pool_take(c, &self, &version);
	if (err)
		return err;
	build_root(c, self, ch->level, version, ch);
	kit_begin(&c->kit);
	kit_write(&c->kit.main, TREE_POINT_NODE, tree_node_at(&c->g, self),
		  c->right, c->g.node_bytes);
	kit_cas(&c->kit.main, TREE_POINT_ROOT, TREE_ROOT_AT, old, self,
		&c->atom[TREE_ATOM_ROOT]);
	err = kit_run(&c->kit);
	if (err)
		return err;
	c->root = 0;
	c->knows_level = false;
	if (c->atom[TREE_ATOM_ROOT] != old) {
		tree_pool_give(c, self, version);
		return -EAGAIN;
	}
	c->stats.grown++;
	return 0;
}

/* ---- all of it ---------------------------------------------------------- */

/* Until it is done; then ch says what else there is to do. */
static int change(struct tree_client *c, struct change *ch)
{
	int err;

	do {
		err = change_once(c, ch);
		if (err == -ERANGE)
			err = grow(c, ch);
		if (err == -EAGAIN && kit_is_late(&c->kit))
			return tree_late(c);
	} while (err == -EAGAIN);
	return err;
}

int tree_name(struct tree_client *c, uint8_t level, struct tree_key key,
	      uint64_t child)
{
	uint8_t name[TREE_KEY_MAX];
	le64 word = le64_put(child);
	int err = 0;

	memcpy(name, key.bytes, key.len);
	key.bytes = name;
	for (; level && !err; level++) {
		struct change ch = {.key = key,
				    .value = &word,
				    .len = sizeof(word),
				    .level = level,
				    .is_name = true};

		err = change(c, &ch);
		if (err || !ch.right)
			break;
		/* The parent was split for it: the same above. */
		memcpy(name, ch.mid, ch.mid_len);
		key.len = ch.mid_len;
		word = le64_put(ch.right);
	}
	return err;
}

int tree_help(struct tree_client *c)
{
	int err = 0;

	for (unsigned i = 0; i < TREE_HELPS && c->missing.level && !err; i++) {
		struct tree_missing m = c->missing;

		c->missing.level = 0;
		c->stats.helped++;
		err = tree_name(c, m.level, (struct tree_key){m.key, m.key_len},
				m.child);
	}
	return err;
}

/* The change is made. What follows from it others would do as well, so only a
 * client that was stopped says so. */
static int follow_up(struct tree_client *c, const struct change *ch)
{
	int err = 0;

	if (ch->right)
		err = tree_name(c, (uint8_t)(ch->level + 1),
				(struct tree_key){ch->mid, ch->mid_len},
				ch->right);
	if (!err && ch->dead)
		err = tree_prune(c, 0, (struct tree_key){ch->low, ch->low_len},
				 ch->dead);
	if (!err)
		err = tree_help(c);
	return err == -ESHUTDOWN ? err : 0;
}

static int check_key(const struct tree_client *c, size_t key_len, size_t len)
{
	if (!key_len || key_len > c->g.key_max)
		return error_set(-EINVAL, "keys here have 1 to %u bytes",
				 c->g.key_max);
	if (len > c->g.value_max)
		return error_set(-EMSGSIZE, "values here have up to %u bytes",
				 c->g.value_max);
	return 0;
}

static int run(struct tree_client *c, struct change *ch, uint64_t *trips)
{
	uint64_t before = c->kit.trips;
	int err = check_key(c, ch->key.len, ch->len);

	if (!err)
		err = tree_begin(c);
	if (err)
		return err;
	err = change(c, ch);
	if (!err)
		err = follow_up(c, ch);
	*trips += c->kit.trips - before;
	if (err == -ESTALE)
		return error_set(-ESTALE,
				 "the connection broke; nobody knows whether "
				 "the change was made");
	return err;
}

int tree_put(struct tree_client *c, const void *key, size_t key_len,
	     const void *value, size_t len)
{
	struct change ch = {.key = {key, (uint32_t)key_len},
			    .value = value ? value : "",
			    .len = (uint32_t)len};

	c->stats.puts++;
	return run(c, &ch, &c->stats.put_trips);
}

int tree_del(struct tree_client *c, const void *key, size_t key_len)
{
	struct change ch = {.key = {key, (uint32_t)key_len}};

	c->stats.deletes++;
	return run(c, &ch, &c->stats.delete_trips);
}
