/* SPDX-License-Identifier: Apache-2.0 */
/* The index: entries of keys in far memory, and what a client remembers. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

static struct vlist_memo *memo_of(struct vlist_client *c, uint64_t key)
{
	return &c->memo[vlist_key_slot(key) & c->memo_mask];
}

const struct vlist_memo *vlist_memo_find(struct vlist_client *c, uint64_t key)
{
	const struct vlist_memo *m = memo_of(c, key);

	return m->key1 == key + 1 ? m : NULL;
}

struct vlist_memo *vlist_memo(struct vlist_client *c, uint64_t key)
{
	struct vlist_memo *m = memo_of(c, key);

	if (m->key1 != key + 1)
		*m = (struct vlist_memo){.key1 = key + 1, .newest = VLIST_NONE};
	return m;
}

static uint64_t bucket_at(const struct vlist_client *c, uint64_t bucket)
{
	return c->g.bucket_offset + bucket * VLIST_BUCKET_BYTES;
}

/* The key's entry, or the first free one with *is_free. Entries are never
 * given back, so a free one ends the search. */
static int search(struct vlist_client *c, uint64_t key, uint64_t *entry,
		  uint64_t *head, bool *is_free)
{
	uint64_t first = vlist_bucket_of(&c->g, key);

	for (uint64_t i = 0; i < c->g.bucket_count; i++) {
		uint64_t at =
			bucket_at(c, (first + i) & (c->g.bucket_count - 1));
		int err = kit_read_now(&c->kit.main, at, c->bucket,
				       VLIST_BUCKET_BYTES);

		if (err)
			return err;
		for (unsigned k = 0; k < VLIST_BUCKET; k++) {
			uint64_t key1 = le64_get(c->bucket[k].key1);

			if (key1 && key1 != key + 1)
				continue;
			*entry = at + k * VLIST_ENTRY_BYTES;
			*head = le64_get(c->bucket[k].head);
			*is_free = !key1;
			return 0;
		}
		if (kit_is_late(&c->kit))
			return error_set(-ETIMEDOUT, "the index is too full");
	}
	return error_set(-ENOSPC, "the index has no room for another key");
}

int vlist_entry_find(struct vlist_client *c, uint64_t key, uint64_t *entry,
		     uint64_t *head)
{
	bool is_free;
	int err = search(c, key, entry, head, &is_free);

	if (err == -ENOSPC)
		return -ENOENT;
	return err ? err : is_free ? -ENOENT : 0;
}

int vlist_entry_take(struct vlist_client *c, uint64_t key, uint64_t *entry,
		     uint64_t *head)
{
	for (;;) {
		bool is_free;
		uint64_t old;
		int err = search(c, key, entry, head, &is_free);

		if (err || !is_free)
			return err;
		err = kit_cas_now(&c->kit.main, VLIST_POINT_CLAIM, *entry, 0,
				  key + 1, &old);
		if (err)
			return err;
		if (!old) {
			*head = 0;
			return 0;
		}
		/* Taken by another key, or by this one: look again. */
	}
}

int vlist_start(struct vlist_client *c, struct vlist_memo *m, uint64_t key,
		uint64_t *place)
{
	uint64_t head;
	int err;

	*place = vlist_place_of(c, m);
	if (*place)
		return 0;
	if (m->entry) {
		err = kit_read_now(&c->kit.main,
				   m->entry +
					   offsetof(struct vlist_entry, head),
				   c->word, 8);
		head = *c->word;
	} else {
		err = vlist_entry_find(c, key, &m->entry, &head);
	}
	if (err) {
		if (err == -ENOENT)
			m->entry = 0;
		return err;
	}
	*place = head;
	return head ? 0 : -ENOENT;
}

void vlist_client_learn(struct vlist_client *c, const struct vlist_client *from)
{
	for (uint32_t i = 0; i <= from->memo_mask; i++) {
		const struct vlist_memo *m = &from->memo[i];

		if (!m->key1)
			continue;
		*vlist_memo(c, m->key1 - 1) =
			(struct vlist_memo){.key1 = m->key1,
					    .place = m->place,
					    .entry = m->entry,
					    .newest = VLIST_NONE};
	}
}
