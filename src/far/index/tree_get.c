/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one key: the leaf, once the copies of inner nodes lead there, or a
 * walk has brought it. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "tree_priv.h"

static int copy_value(const struct tree_item *item, void *buf, size_t buf_bytes,
		      size_t *len)
{
	size_t n = u64_min(item->value_len, buf_bytes);

	*len = item->value_len;
	if (n)
		memcpy(buf, item->value, n);
	return *len > buf_bytes
		       ? error_set(-EMSGSIZE, "the value has %zu bytes", *len)
		       : 0;
}

/*
 * What the leaf in c->node says. Only the slot with the key must be whole: it
 * was true when it was read, because its node's head says that the key belongs
 * here and the slot was written for the same version of the node. -EAGAIN:
 * anything else.
 */
static int look_up(struct tree_client *c, const struct tree_target *t,
		   uint64_t pointer, struct tree_item *item)
{
	enum tree_slot_verdict v;

	if (tree_node_judge_head(&c->g, c->node, pointer) != TREE_WHOLE ||
	    c->node->state != TREE_NODE_LIVE || c->node->level ||
	    (tree_node_side(&c->g, c->node, t->key) && !PLANTED(tree_fences)))
		return -EAGAIN;
	v = tree_node_find(&c->g, c->node, t->key, item);
	c->stats.torn += v == TREE_SLOT_TORN;
	if (v == TREE_SLOT_TORN && PLANTED(tree_torn))
		return -ENOENT;
	return v == TREE_SLOT_USED    ? 0
	       : v == TREE_SLOT_EMPTY ? -ENOENT
				      : -EAGAIN;
}

/* Most often one READ. */
static int get_fast(struct tree_client *c, const struct tree_target *t,
		    struct tree_item *item)
{
	struct tree_way w;
	int err = tree_way_find(c, t, &w);

	if (err)
		return err;
	if (!tree_pointer_is_sane(&c->g, w.pointer))
		return error_set(-EBADMSG, "the index is damaged: a pointer");
	err = kit_read_now(&c->kit.main, tree_node_at(&c->g, w.pointer),
			   c->node, c->g.node_bytes);
	return err ? err : look_up(c, t, w.pointer, item);
}

/* One round trip, whatever is known of the inner nodes. -EAGAIN: it must be
 * read. */
static int get_walked(struct tree_client *c, const struct tree_target *t,
		      struct tree_item *item)
{
	if (!c->config.walks_gets)
		return -EAGAIN;
	memset(c->pad, 0, sizeof(*c->pad));
	c->pad->key_len = (uint8_t)t->key.len;
	memcpy(c->pad->key, t->key.bytes, t->key.len);
	if (tree_walk_run(c, TREE_WALK_FIND))
		return -EAGAIN;
	memcpy(c->node, c->pad + 1, c->g.node_bytes);
	return look_up(c, t, le64_get(c->pad->at), item);
}

static int get(struct tree_client *c, const struct tree_target *t, void *buf,
	       size_t buf_bytes, size_t *len)
{
	struct tree_item item;
	uint64_t pointer;
	int help, err = get_walked(c, t, &item);

	if (err == -EAGAIN)
		err = get_fast(c, t, &item);
	if (err == -EAGAIN) {
		err = tree_reach(c, t, false, c->node, &pointer);
		if (!err && tree_node_find(&c->g, c->node, t->key, &item) !=
				    TREE_SLOT_USED)
			err = -ENOENT;
	}
	if (!err)
		err = copy_value(&item, buf, buf_bytes, len);
	/* Only a client that was stopped says so; the value is there. */
	help = c->missing.level ? tree_help(c) : 0;
	return help == -ESHUTDOWN ? help : err;
}

int tree_get(struct tree_client *c, const void *key, size_t key_len, void *buf,
	     size_t buf_bytes, size_t *len)
{
	struct tree_target t = {.key = {key, (uint32_t)key_len}};
	uint64_t before = c->kit.trips;
	int err = -ESTALE;

	if (!key_len || key_len > c->g.key_max)
		return error_set(-EINVAL, "keys here have 1 to %u bytes",
				 c->g.key_max);
	c->stats.gets++;
	for (unsigned i = 0; i < KIT_RECONNECTS && err == -ESTALE; i++) {
		err = tree_begin(c);
		if (!err)
			err = get(c, &t, buf, buf_bytes, len);
	}
	c->stats.get_trips += c->kit.trips - before;
	return err;
}
