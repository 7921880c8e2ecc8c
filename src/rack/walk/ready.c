/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a shape, finds its window, and makes the walk of its kind. */
#include "ready.h"

#include <errno.h>

#include "base/error.h"
#include "ready_priv.h"

enum {
	OFFSET_MAX = 4095,
	KEY_BYTES_MAX = 256,
	LEVELS_MAX = 32,
	PAIRS_MAX = 256,
};

enum {
	HAS_KEY = 1,
	HAS_VALUE = 2,
	HAS_NEXT = 4,
	HAS_SIDES = 8,
	HAS_ARRAYS = 16, /* keys and values are arrays, with a count */
	HAS_CHILDREN = 32,
	HAS_LEVELS = 64,
};

static const struct row {
	const char *name;
	void (*make)(struct ready *c);
	uint32_t has;
} rows[] = {
	[AQ_WALK_LIST_FIND] = {"list-find", ready_list,
			       HAS_KEY | HAS_VALUE | HAS_NEXT},
	[AQ_WALK_HASH_FIND] = {"hash-find", ready_hash,
			       HAS_KEY | HAS_VALUE | HAS_NEXT},
	[AQ_WALK_BST_FIND] = {"bst-find", ready_bst,
			      HAS_KEY | HAS_VALUE | HAS_SIDES},
	[AQ_WALK_BST_LOWER] = {"bst-lower", ready_bst_lower,
			       HAS_KEY | HAS_VALUE | HAS_SIDES},
	[AQ_WALK_BTREE_FIND] = {"btree-find", ready_btree,
				HAS_KEY | HAS_VALUE | HAS_ARRAYS |
					HAS_CHILDREN},
	[AQ_WALK_BPLUS_FIND] = {"bplus-find", ready_bplus,
				HAS_KEY | HAS_VALUE | HAS_ARRAYS |
					HAS_CHILDREN},
	[AQ_WALK_BPLUS_SCAN] = {"bplus-scan", ready_scan,
				HAS_KEY | HAS_VALUE | HAS_NEXT | HAS_ARRAYS |
					HAS_CHILDREN},
	[AQ_WALK_BPLUS_REDUCE] = {"bplus-reduce", ready_reduce,
				  HAS_KEY | HAS_VALUE | HAS_NEXT | HAS_ARRAYS |
					  HAS_CHILDREN},
	[AQ_WALK_SKIP_FIND] = {"skip-find", ready_skip,
			       HAS_KEY | HAS_VALUE | HAS_NEXT | HAS_LEVELS},
	[AQ_WALK_RADIX_FIND] = {"radix-find", ready_radix,
				HAS_VALUE | HAS_CHILDREN},
};

static int refuse(const char *words)
{
	return error_set(-EINVAL, "walk shape: %s", words);
}

static bool is_integer(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static int check_keys(const struct aq_walk_shape *s)
{
	const bool is_string =
		s->flags & AQ_WALK_KEY_BYTES || s->kind == AQ_WALK_RADIX_FIND;

	if (s->flags & ~(uint32_t)(AQ_WALK_KEY_BYTES | AQ_WALK_VALUE_SIGNED))
		return refuse("there are unknown flags");
	if (is_string && (s->key_bytes < 1 || s->key_bytes > KEY_BYTES_MAX))
		return refuse("a string key has 1 to 256 bytes");
	if (!is_string && !is_integer(s->key_bytes))
		return refuse("an integer key has 1, 2, 4 or 8 bytes");
	if (s->flags & AQ_WALK_KEY_BYTES &&
	    (s->kind == AQ_WALK_BPLUS_SCAN || s->kind == AQ_WALK_BPLUS_REDUCE))
		return refuse("scan and reduce have integer keys");
	if (s->kind == AQ_WALK_BPLUS_REDUCE && s->value_bytes &&
	    !is_integer(s->value_bytes))
		return refuse("reduce works on values of 1, 2, 4 or 8 bytes");
	if (s->value_bytes > WALK_PAD_MAX)
		return refuse("a value is larger than a pad");
	return 0;
}

static int check_arrays(const struct aq_walk_shape *s, uint32_t has)
{
	if (has & HAS_ARRAYS) {
		if (s->fanout < 1 || s->fanout > READY_FANOUT_MAX)
			return refuse("a node has 1 to 256 keys (fanout)");
		if (!is_integer(s->count_bytes))
			return refuse("count_bytes is not 1, 2, 4 or 8");
		if (!is_integer(s->leaf_bytes))
			return refuse("leaf_bytes is not 1, 2, 4 or 8");
	}
	if (s->kind == AQ_WALK_RADIX_FIND) {
		if (s->fanout != 16 && s->fanout != 256)
			return refuse("a radix tree has 16 or 256 children");
		if (s->leaf_bytes && !is_integer(s->leaf_bytes))
			return refuse("leaf_bytes is not 0, 1, 2, 4 or 8");
	}
	if (has & HAS_LEVELS && (s->levels < 1 || s->levels > LEVELS_MAX))
		return refuse("a skip list has 1 to 32 levels");
	if (s->kind == AQ_WALK_BPLUS_SCAN &&
	    (s->scan_pairs < 1 || s->scan_pairs > PAIRS_MAX))
		return refuse("a scan has 1 to 256 pairs");
	return 0;
}

/* The smallest range of offsets that has all fields. */
struct range {
	uint64_t lo, hi;
	bool is_bad;
};

static void cover(struct range *r, uint64_t at, uint64_t bytes, uint64_t count,
		  uint64_t stride)
{
	const uint64_t end = at + (count - 1) * stride + bytes;

	if (bytes == 0)
		return;
	if (at > OFFSET_MAX || stride > OFFSET_MAX || (count > 1 && !stride))
		r->is_bad = true;
	r->lo = u64_min(r->lo, at);
	r->hi = u64_max(r->hi, end);
}

static int find_window(const struct aq_walk_shape *s, uint32_t has,
		       struct range *r)
{
	const uint64_t n = has & HAS_ARRAYS ? s->fanout : 1;
	const bool is_radix = s->kind == AQ_WALK_RADIX_FIND;

	*r = (struct range){.lo = UINT64_MAX};
	if (has & HAS_KEY)
		cover(r, s->key_at, s->key_bytes, n, s->key_stride);
	if (has & HAS_VALUE)
		cover(r, s->value_at, s->value_bytes, n, s->value_stride);
	if (has & HAS_NEXT)
		cover(r, s->next_at, 8, has & HAS_LEVELS ? s->levels : 1, 8);
	if (has & HAS_SIDES) {
		cover(r, s->left_at, 8, 1, 0);
		cover(r, s->right_at, 8, 1, 0);
	}
	if (has & HAS_ARRAYS)
		cover(r, s->count_at, s->count_bytes, 1, 0);
	if (has & HAS_CHILDREN) {
		cover(r, s->child_at, 8, is_radix ? s->fanout : n + 1,
		      s->child_stride);
		cover(r, s->leaf_at, s->leaf_bytes, 1, 0);
	}
	if (r->is_bad)
		return refuse("an offset or a stride is 0 or above 4095");
	if (r->hi < r->lo + WALK_LOAD_MIN)
		r->hi = r->lo + WALK_LOAD_MIN;
	if (r->hi - r->lo > WALK_LOAD_MAX)
		return refuse("a node's fields are more than 4096 bytes apart");
	return 0;
}

static uint32_t pad_bytes(const struct aq_walk_shape *s)
{
	const uint32_t value = (s->value_bytes + 7) & ~7u;

	if (s->kind == AQ_WALK_BPLUS_REDUCE)
		return PAD_REDUCE_BYTES;
	if (s->kind == AQ_WALK_BPLUS_SCAN)
		return PAD_SCAN_PAIRS + s->scan_pairs * (8 + value);
	if (s->kind == AQ_WALK_SKIP_FIND)
		return aq_walk_value_at(s) + value + 8 * s->levels;
	return aq_walk_value_at(s) + value;
}

int walk_ready(const struct aq_walk_shape *shape, uint32_t longest_max,
	       struct walk_build **build, struct walk_image *image)
{
	struct ready c = {.s = shape};
	const struct row *row;
	struct range window;
	int err;

	if (shape->kind >= ARRAY_LEN(rows) || !rows[shape->kind].make)
		return refuse("there is no such kind");
	row = &rows[shape->kind];
	err = check_keys(shape);
	if (!err)
		err = check_arrays(shape, row->has);
	if (!err)
		err = find_window(shape, row->has, &window);
	if (err)
		return err;
	if (pad_bytes(shape) > WALK_PAD_MAX)
		return refuse("its pad is larger than 4032 bytes");
	c.lo = (uint32_t)window.lo;
	c.b = walk_build_create(row->name, (int16_t)window.lo,
				(uint16_t)(window.hi - window.lo),
				(uint16_t)pad_bytes(shape), 0);
	row->make(&c);
	err = walk_build_end(c.b, longest_max, image, NULL);
	if (err)
		walk_build_destroy(c.b);
	else
		*build = c.b;
	return err;
}
