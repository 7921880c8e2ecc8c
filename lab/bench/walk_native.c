/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of the benchmark as the ready walks and as C see them. */
#include "walk_native.h"

#include <string.h>

const struct aq_walk_shape walk_list_shape = {
	.kind = AQ_WALK_LIST_FIND,
	.key_at = offsetof(struct walk_node, key),
	.key_bytes = 8,
	.value_at = offsetof(struct walk_node, value),
	.value_bytes = 8,
	.next_at = offsetof(struct walk_node, next),
};

#define TREE_SHAPE(kind_, leaf_, value_, bytes_, stride_)              \
	{                                                              \
		.kind = kind_,                                         \
		.key_at = offsetof(struct walk_tree_node, keys),       \
		.key_bytes = 8, .key_stride = 8,                       \
		.value_at = offsetof(struct leaf_, value_),            \
		.value_bytes = bytes_, .value_stride = stride_,        \
		.count_at = offsetof(struct walk_tree_node, count),    \
		.count_bytes = 4, .fanout = WALK_TREE_KEYS,            \
		.child_at = offsetof(struct walk_tree_node, children), \
		.child_stride = 8,                                     \
		.leaf_at = offsetof(struct walk_tree_node, is_leaf),   \
		.leaf_bytes = 4, .leaf_mask = 1, .leaf_value = 1,      \
		.next_at = offsetof(struct leaf_, next),               \
		.scan_pairs = WALK_SCAN_ROWS                           \
	}

const struct aq_walk_shape walk_tree_find_shape =
	TREE_SHAPE(AQ_WALK_BPLUS_FIND, walk_tree_node, values, 8, 8);
const struct aq_walk_shape walk_tree_reduce_shape =
	TREE_SHAPE(AQ_WALK_BPLUS_REDUCE, walk_tree_node, values, 8, 8);
/* There is no second value in a leaf; so short a stride keeps the window inside
 * of it. */
const struct aq_walk_shape walk_row_scan_shape =
	TREE_SHAPE(AQ_WALK_BPLUS_SCAN, walk_row, value, WALK_ROW_BYTES, 1);

STATIC_ASSERT(offsetof(struct walk_row, is_leaf) ==
			      offsetof(struct walk_tree_node, is_leaf) &&
		      offsetof(struct walk_row, count) ==
			      offsetof(struct walk_tree_node, count) &&
		      offsetof(struct walk_row, key) ==
			      offsetof(struct walk_tree_node, keys),
	      "both are nodes of one tree");

struct walk_end walk_native_find(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad)
{
	const struct walk_node *n = (const void *)node;
	struct walk_find_pad *p = (void *)pad;

	if (n->key == p->key) {
		p->value = n->value;
		p->found = 1;
		return (struct walk_end){.step = WALK_STEP_DONE};
	}
	if (!n->next)
		return (struct walk_end){.step = WALK_STEP_DONE};
	return (struct walk_end){n->next, WALK_STEP_NEXT};
}

static struct walk_end descend(const struct walk_tree_node *n, uint64_t key)
{
	uint32_t i = 0;

	while (i < n->count && i < WALK_TREE_KEYS && key >= n->keys[i])
		i++;
	if (!n->children[i])
		return (struct walk_end){.step = WALK_STEP_DONE};
	return (struct walk_end){n->children[i], WALK_STEP_NEXT};
}

struct walk_end walk_native_tree(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad)
{
	const struct walk_tree_node *n = (const void *)node;
	struct walk_find_pad *p = (void *)pad;

	if (!(n->is_leaf & 1))
		return descend(n, p->key);
	for (uint32_t i = 0; i < n->count && i < WALK_TREE_KEYS; i++) {
		if (n->keys[i] == p->key) {
			p->value = n->values[i];
			p->found = 1;
			break;
		}
	}
	return (struct walk_end){.step = WALK_STEP_DONE};
}

struct walk_end walk_native_reduce(const struct walk_program *program,
				   uint8_t *node, uint8_t *pad)
{
	const struct walk_tree_node *n = (const void *)node;
	struct aq_walk_reduce *p = (void *)pad;
	uint64_t min = p->count ? p->min : UINT64_MAX, max = p->max;
	uint64_t count = p->count, sum = p->sum, next = n->next;

	if (!(n->is_leaf & 1))
		return descend(n, p->low);
	for (uint32_t i = 0; i < n->count && i < WALK_TREE_KEYS; i++) {
		if (n->keys[i] < p->low)
			continue;
		if (n->keys[i] > p->high) {
			next = 0;
			break;
		}
		count++;
		sum += n->values[i];
		min = u64_min(min, n->values[i]);
		max = u64_max(max, n->values[i]);
	}
	if (count) {
		p->count = count;
		p->sum = sum;
		p->min = min;
		p->max = max;
	}
	if (!next)
		return (struct walk_end){.step = WALK_STEP_DONE};
	return (struct walk_end){next, WALK_STEP_NEXT};
}

struct walk_end walk_native_scan(const struct walk_program *program,
				 uint8_t *node, uint8_t *pad)
{
	const struct walk_row *n = (const void *)node;
	struct walk_scan_pad *p = (void *)pad;

	if (!(n->is_leaf & 1))
		return descend((const void *)node, p->low);
	if (n->count && n->key > p->high)
		return (struct walk_end){.step = WALK_STEP_DONE};
	if (n->count && n->key >= p->low) {
		if (p->found == WALK_SCAN_ROWS) {
			p->more = 1;
			return (struct walk_end){.step = WALK_STEP_DONE};
		}
		p->pairs[p->found].key = n->key;
		memcpy(p->pairs[p->found].value, n->value, WALK_ROW_BYTES);
		p->found++;
	}
	if (!n->next)
		return (struct walk_end){.step = WALK_STEP_DONE};
	return (struct walk_end){n->next, WALK_STEP_NEXT};
}
