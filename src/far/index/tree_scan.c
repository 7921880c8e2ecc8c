/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans: leaf after leaf, each from where the one before it ended. The copy of
 * the parent says which leaves probably come next, so several are read
 * together; a leaf whose range does not join is looked for the ordinary way.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tree_priv.h"

struct scan {
	tree_pair_fn each;
	void *user;
	struct tree_key to;
	bool has_to;
	bool is_after; /* without `from` itself */
	uint8_t from[TREE_KEY_MAX];
	uint32_t from_len;
	uint32_t at_once;
	bool is_over;
};

static struct tree_key from_of(const struct scan *s)
{
	return (struct tree_key){s->from, s->from_len};
}

/* What is in a leaf from s->from on, and where to go on. */
static int emit(struct tree_client *c, struct scan *s,
		const struct tree_node *n)
{
	uint32_t count = tree_node_sort(&c->g, n, c->items);
	struct tree_key high = tree_node_high(&c->g, n);

	c->stats.leaves++;
	for (uint32_t i = 0; i < count; i++) {
		const struct tree_item *item = &c->items[i];
		int order = tree_key_compare(item->key, from_of(s)), err;

		if (order < 0 || (order == 0 && s->is_after))
			continue;
		if (s->has_to && tree_key_compare(item->key, s->to) >= 0) {
			s->is_over = true;
			return 0;
		}
		err = s->each(s->user, item->key.bytes, item->key.len,
			      item->value, item->value_len);
		if (err)
			return err;
	}
	s->is_over = !tree_node_has_end(n) ||
		     (s->has_to && tree_key_compare(high, s->to) >= 0);
	s->is_after = false;
	s->from_len = high.len;
	memcpy(s->from, high.bytes, high.len);
	return 0;
}

/* Reads the leaf at the way's end and those beside it in the parent's copy;
 * returns how many. */
static int read_some(struct tree_client *c, const struct scan *s,
		     const struct tree_way *w, uint64_t leaf[TREE_SCAN_BATCH])
{
	struct tree_inner *in = tree_cache_find(c, w->parent);
	struct tree_key sep = {w->sep, w->sep_len};
	int i = in ? tree_inner_find(c, in, sep, false) : -1, err;
	uint32_t n = 0;

	leaf[n++] = w->pointer;
	for (uint32_t k = (uint32_t)i + 1;
	     i >= 0 && k < in->count && n < s->at_once; k++) {
		struct tree_item item = tree_inner_item(c, in, k);

		if (s->has_to && tree_key_compare(item.key, s->to) >= 0)
			break;
		leaf[n++] = tree_item_child(&item);
	}
	kit_begin(&c->kit);
	for (uint32_t k = 0; k < n; k++) {
		if (!tree_pointer_is_sane(&c->g, leaf[k]))
			return error_set(-EBADMSG,
					 "the index is damaged: a pointer");
		kit_read(&c->kit.main, tree_node_at(&c->g, leaf[k]),
			 c->batch + (size_t)k * c->g.node_bytes,
			 c->g.node_bytes);
	}
	err = kit_run(&c->kit);
	return err ? err : (int)n;
}

static bool joins(struct tree_client *c, const struct scan *s,
		  const struct tree_node *n, uint64_t pointer)
{
	enum tree_verdict verdict = tree_node_judge(&c->g, n, pointer);

	c->stats.torn += verdict == TREE_TORN;
	return verdict == TREE_WHOLE && n->state == TREE_NODE_LIVE &&
	       !n->level && tree_node_side(&c->g, n, from_of(s)) == 0;
}

/* Some leaves; one at least. */
static int advance(struct tree_client *c, struct scan *s)
{
	struct tree_target t = {.key = from_of(s)};
	uint64_t leaf[TREE_SCAN_BATCH], pointer;
	struct tree_way w;
	int i, n, err = tree_way_find(c, &t, &w);

	if (err)
		return err;
	n = read_some(c, s, &w, leaf);
	if (n < 0)
		return n;
	for (i = 0; i < n && !err && !s->is_over; i++) {
		const struct tree_node *node =
			(const struct tree_node *)(c->batch +
						   (size_t)i * c->g.node_bytes);

		if (!joins(c, s, node, leaf[i]))
			break;
		err = emit(c, s, node);
	}
	s->at_once = u32_min(2 * s->at_once, TREE_SCAN_BATCH);
	if (err || i)
		return err;
	err = tree_reach(c, &t, false, c->node, &pointer);
	return err ? err : emit(c, s, c->node);
}

static int run(struct tree_client *c, struct scan *s)
{
	int help, err = tree_begin(c);

	while (!err && !s->is_over) {
		err = advance(c, s);
		/* The deadline is for each step of it. */
		kit_move_deadline(&c->kit, c->config.deadline_ms);
	}
	help = c->missing.level ? tree_help(c) : 0;
	return help == -ESHUTDOWN ? help : err;
}

int tree_scan(struct tree_client *c, const struct tree_range *range,
	      tree_pair_fn each, void *user)
{
	struct scan s = {.each = each,
			 .user = user,
			 .to = {range->to, (uint32_t)range->to_len},
			 .has_to = range->to != NULL,
			 .is_after = range->is_after,
			 .from_len = (uint32_t)range->from_len,
			 .at_once = 1};
	uint64_t before = c->kit.trips;
	unsigned tries = 0;
	int err;

	if (range->from_len > c->g.key_max || range->to_len > c->g.key_max)
		return error_set(-EINVAL, "keys here have up to %u bytes",
				 c->g.key_max);
	if (range->from_len)
		memcpy(s.from, range->from, range->from_len);
	c->stats.scans++;
	/* After another connection it goes on where it was. */
	do
		err = run(c, &s);
	while (err == -ESTALE && c->kit.is_broken && ++tries < KIT_RECONNECTS);
	c->stats.scan_trips += c->kit.trips - before;
	return err;
}
