/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of an ordered index: looking into them and changing them. */
#include "tree_node.h"

#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "base/error.h"

int tree_key_compare(struct tree_key a, struct tree_key b)
{
	uint32_t n = u32_min(a.len, b.len);
	int c = n ? memcmp(a.bytes, b.bytes, n) : 0;

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* ---- parts -------------------------------------------------------------- */

static uint8_t *low_of(struct tree_node *n)
{
	return (uint8_t *)(n + 1);
}

static uint8_t *high_of(const struct tree_geometry *g, struct tree_node *n)
{
	return (uint8_t *)(n + 1) + g->key_room;
}

static struct tree_entry *entry_of(const struct tree_geometry *g,
				   const struct tree_node *n, uint32_t slot)
{
	return (struct tree_entry *)((uint8_t *)n +
				     tree_entry_at(g, n->level, slot));
}

static uint32_t value_len_of(const struct tree_entry *e)
{
	return e->value_len[0] | (uint32_t)e->value_len[1] << 8;
}

static uint32_t value_max_of(const struct tree_geometry *g, uint8_t level)
{
	return level ? (uint32_t)sizeof(le64) : g->value_max;
}

static uint32_t head_crc(const struct tree_geometry *g,
			 const struct tree_node *n)
{
	return crc32_raw(UINT32_MAX, &n->version,
			 g->slots_at - offsetof(struct tree_node, version));
}

/* The node's pointer goes in, so that nothing of another use is taken for an
 * entry of this one. Lengths must have been checked. */
static uint32_t entry_crc(const struct tree_geometry *g,
			  const struct tree_node *n, const struct tree_entry *e)
{
	const uint8_t *key = (const uint8_t *)(e + 1);
	uint64_t self = le64_get(n->self);
	uint32_t crc =
		crc32_raw((uint32_t) ~(self ^ self >> 32), &e->node_version,
			  TREE_ENTRY_HEAD - sizeof(e->crc));

	if (!e->is_used)
		return crc;
	crc = crc32_raw(crc, key, e->key_len);
	return crc32_raw(crc, key + g->key_room, value_len_of(e));
}

static void sum_head(const struct tree_geometry *g, struct tree_node *n)
{
	n->crc = le32_put(head_crc(g, n));
}

/* ---- looking ------------------------------------------------------------ */

enum tree_verdict tree_node_judge_head(const struct tree_geometry *g,
				       const struct tree_node *n,
				       uint64_t pointer)
{
	if (le32_get(n->crc) != head_crc(g, n))
		return TREE_TORN;
	if (le64_get(n->self) != pointer || n->state == TREE_NODE_FREE)
		return TREE_OTHER;
	if (n->state > TREE_NODE_DEAD || n->level >= TREE_LEVELS_MAX ||
	    n->low_len > g->key_max ||
	    (tree_node_has_end(n) && n->high_len > g->key_max))
		return TREE_TORN;
	return TREE_WHOLE;
}

enum tree_verdict tree_node_judge(const struct tree_geometry *g,
				  const struct tree_node *n, uint64_t pointer)
{
	enum tree_verdict v = tree_node_judge_head(g, n, pointer);
	struct tree_item item;

	if (v != TREE_WHOLE || n->state == TREE_NODE_DEAD)
		return v;
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
		if (tree_slot_look(g, n, i, &item) == TREE_SLOT_TORN)
			return TREE_TORN;
	return TREE_WHOLE;
}

struct tree_key tree_node_low(const struct tree_node *n)
{
	return (struct tree_key){(const uint8_t *)(n + 1), n->low_len};
}

struct tree_key tree_node_high(const struct tree_geometry *g,
			       const struct tree_node *n)
{
	return (struct tree_key){(const uint8_t *)(n + 1) + g->key_room,
				 tree_node_has_end(n) ? n->high_len : 0};
}

int tree_node_side(const struct tree_geometry *g, const struct tree_node *n,
		   struct tree_key key)
{
	if (tree_key_compare(key, tree_node_low(n)) < 0)
		return -1;
	return tree_node_has_end(n) &&
	       tree_key_compare(key, tree_node_high(g, n)) >= 0;
}

/* What is in the slot, whatever version of the node it is of. */
static enum tree_slot_verdict look(const struct tree_geometry *g,
				   const struct tree_node *n, uint32_t slot,
				   struct tree_item *item)
{
	const struct tree_entry *e = entry_of(g, n, slot);
	uint32_t value_len = value_len_of(e);

	if (e->is_used > 1 || e->key_len > g->key_max ||
	    value_len > value_max_of(g, n->level) ||
	    le32_get(e->crc) != entry_crc(g, n, e))
		return TREE_SLOT_TORN;
	*item = (struct tree_item){
		.key = {(const uint8_t *)(e + 1), e->key_len},
		.value = (const uint8_t *)(e + 1) + g->key_room,
		.value_len = value_len,
		.slot = slot};
	return e->is_used ? TREE_SLOT_USED : TREE_SLOT_EMPTY;
}

enum tree_slot_verdict tree_slot_look(const struct tree_geometry *g,
				      const struct tree_node *n, uint32_t slot,
				      struct tree_item *item)
{
	const struct tree_entry *e = entry_of(g, n, slot);

	if (le32_get(e->node_version) != le32_get(n->version))
		return TREE_SLOT_TORN;
	return look(g, n, slot, item);
}

/* Whether the slot has these bytes for a key, before its sum is made. */
static bool may_be(const struct tree_entry *e, struct tree_key key)
{
	return e->is_used && e->key_len == key.len &&
	       memcmp(e + 1, key.bytes, key.len) == 0;
}

enum tree_slot_verdict tree_node_find(const struct tree_geometry *g,
				      const struct tree_node *n,
				      struct tree_key key,
				      struct tree_item *item)
{
	uint32_t count = tree_slots(g, n->level);

	for (uint32_t i = 0; i < count; i++)
		if (may_be(entry_of(g, n, i), key))
			return tree_slot_look(g, n, i, item);
	for (uint32_t i = 0; i < count; i++)
		if (tree_slot_look(g, n, i, item) == TREE_SLOT_TORN)
			return TREE_SLOT_TORN;
	return TREE_SLOT_EMPTY;
}

uint64_t tree_item_child(const struct tree_item *item)
{
	le64 word;

	if (item->value_len != sizeof(word))
		return 0;
	memcpy(&word, item->value, sizeof(word));
	return le64_get(word);
}

int tree_node_free_slot(const struct tree_geometry *g,
			const struct tree_node *n)
{
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
		if (!entry_of(g, n, i)->is_used)
			return (int)i;
	return -1;
}

uint32_t tree_node_sort(const struct tree_geometry *g,
			const struct tree_node *n,
			struct tree_item out[TREE_SLOTS_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < tree_slots(g, n->level); i++) {
		struct tree_item item;
		uint32_t at = count;

		if (tree_slot_look(g, n, i, &item) != TREE_SLOT_USED)
			continue;
		while (at && tree_key_compare(out[at - 1].key, item.key) > 0) {
			out[at] = out[at - 1];
			at--;
		}
		out[at] = item;
		count++;
	}
	return count;
}

/* ---- changing ----------------------------------------------------------- */

static void set_fence(const struct tree_geometry *g, uint8_t *at,
		      struct tree_key key)
{
	/* The key may be in this very node. */
	if (key.len)
		memmove(at, key.bytes, key.len);
	memset(at + key.len, 0, g->key_room - key.len);
}

void tree_node_init(const struct tree_geometry *g, struct tree_node *n,
		    uint64_t self, uint8_t level, uint32_t version,
		    const struct tree_fences *f, uint64_t sibling)
{
	memset(n, 0, g->node_bytes);
	n->version = le32_put(version);
	n->self = le64_put(self);
	n->sibling = le64_put(sibling);
	n->level = level;
	n->state = TREE_NODE_LIVE;
	n->low_len = (uint8_t)f->low.len;
	n->high_len = f->has_end ? (uint8_t)f->high.len : TREE_NO_END;
	set_fence(g, low_of(n), f->low);
	if (f->has_end)
		set_fence(g, high_of(g, n), f->high);
	sum_head(g, n);
	for (uint32_t i = 0; i < tree_slots(g, level); i++)
		tree_slot_clear(g, n, i);
}

/* The slot's head, for a body that is there. */
static void sum_entry(const struct tree_geometry *g, struct tree_node *n,
		      struct tree_entry *e)
{
	e->node_version = n->version;
	e->version = le32_put(le32_get(e->version) + 1);
	e->crc = le32_put(entry_crc(g, n, e));
}

void tree_slot_put(const struct tree_geometry *g, struct tree_node *n,
		   uint32_t slot, struct tree_key key, const void *value,
		   uint32_t value_len)
{
	struct tree_entry *e = entry_of(g, n, slot);
	uint8_t *body = (uint8_t *)(e + 1);

	e->is_used = 1;
	e->key_len = (uint8_t)key.len;
	e->value_len[0] = (uint8_t)value_len;
	e->value_len[1] = (uint8_t)(value_len >> 8);
	memmove(body, key.bytes, key.len);
	if (value_len)
		memmove(body + g->key_room, value, value_len);
	sum_entry(g, n, e);
}

void tree_slot_clear(const struct tree_geometry *g, struct tree_node *n,
		     uint32_t slot)
{
	struct tree_entry *e = entry_of(g, n, slot);

	e->is_used = 0;
	e->key_len = 0;
	memset(e->value_len, 0, sizeof(e->value_len));
	sum_entry(g, n, e);
}

void tree_node_renew(const struct tree_geometry *g, struct tree_node *n)
{
	n->version = le32_put(le32_get(n->version) + 1);
	sum_head(g, n);
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
		sum_entry(g, n, entry_of(g, n, i));
}

void tree_node_set_end(const struct tree_geometry *g, struct tree_node *n,
		       struct tree_key high, bool has_end, uint64_t sibling)
{
	n->high_len = has_end ? (uint8_t)high.len : TREE_NO_END;
	if (has_end)
		set_fence(g, high_of(g, n), high);
	else
		memset(high_of(g, n), 0, g->key_room);
	n->sibling = le64_put(sibling);
}

void tree_node_set_state(const struct tree_geometry *g, struct tree_node *n,
			 enum tree_node_state state)
{
	n->state = (uint8_t)state;
	sum_head(g, n);
}

static bool is_append(const struct tree_geometry *g, const struct tree_node *n,
		      struct tree_key key)
{
	struct tree_item item;

	if (le64_get(n->sibling))
		return false;
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++)
		if (tree_slot_look(g, n, i, &item) == TREE_SLOT_USED &&
		    tree_key_compare(item.key, key) >= 0)
			return false;
	return true;
}

void tree_node_middle(const struct tree_geometry *g, const struct tree_node *n,
		      struct tree_key key, uint8_t mid[TREE_KEY_MAX],
		      uint32_t *mid_len)
{
	struct tree_item item, best = {.key = key};
	uint32_t count = tree_slots(g, n->level);

	/* The one with half of the others below it; looking for it takes no
	 * memory, and splits are rare. */
	for (uint32_t i = 0; i < count && !is_append(g, n, key); i++) {
		uint32_t below = 0;
		struct tree_item other;

		if (tree_slot_look(g, n, i, &item) != TREE_SLOT_USED)
			continue;
		for (uint32_t k = 0; k < count; k++)
			below += tree_slot_look(g, n, k, &other) ==
					 TREE_SLOT_USED &&
				 tree_key_compare(other.key, item.key) < 0;
		if (below == count / 2) {
			best = item;
			break;
		}
	}
	memcpy(mid, best.key.bytes, best.key.len);
	*mid_len = best.key.len;
}

void tree_node_split(const struct tree_geometry *g, struct tree_node *left,
		     struct tree_node *right, uint64_t right_self,
		     uint32_t right_version, struct tree_key mid)
{
	struct tree_fences f = {.low = mid,
				.high = tree_node_high(g, left),
				.has_end = tree_node_has_end(left)};
	struct tree_item item;
	uint32_t to = 0;

	tree_node_init(g, right, right_self, left->level, right_version, &f,
		       le64_get(left->sibling));
	for (uint32_t i = 0; i < tree_slots(g, left->level); i++) {
		if (tree_slot_look(g, left, i, &item) != TREE_SLOT_USED ||
		    tree_key_compare(item.key, mid) < 0)
			continue;
		tree_slot_put(g, right, to++, item.key, item.value,
			      item.value_len);
		tree_slot_clear(g, left, i);
	}
	tree_node_set_end(g, left, mid, true, right_self);
	tree_node_renew(g, left);
}

int tree_node_mend(const struct tree_geometry *g, struct tree_node *n,
		   uint64_t pointer, unsigned *lost)
{
	struct tree_item item;

	if (tree_node_judge_head(g, n, pointer) != TREE_WHOLE)
		return error_set(-EBADMSG, "a node of the index is damaged");
	for (uint32_t i = 0; i < tree_slots(g, n->level); i++) {
		enum tree_slot_verdict v = look(g, n, i, &item);

		*lost += v == TREE_SLOT_TORN;
		if (v != TREE_SLOT_USED || tree_node_side(g, n, item.key))
			tree_slot_clear(g, n, i);
	}
	tree_node_renew(g, n);
	return 0;
}
