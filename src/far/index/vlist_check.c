/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies every invariant of a store that nobody is using. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "vlist_priv.h"

/* A list longer than all nodes is a loop. */
static int check_list(struct vlist_client *c, uint64_t key, uint64_t head,
		      struct vlist_report *r)
{
	uint64_t at = head;

	for (uint64_t i = 0; i <= c->g.node_count; i++) {
		enum vlist_verdict verdict;
		uint64_t self, next;
		int err;

		if (!vlist_pointer_is_sane(&c->g, at)) {
			r->bad_nodes++;
			return 0;
		}
		err = vlist_look(c, key, at, false, true, &verdict, &self,
				 &next);
		if (err)
			return err;
		if (verdict != VLIST_OLD && verdict != VLIST_NEWEST) {
			r->bad_nodes++;
			return 0;
		}
		r->versions++;
		if (verdict == VLIST_NEWEST) {
			r->present += !(le32_get(c->seen->flags) &
					VLIST_NODE_DELETED);
			return 0;
		}
		at = next;
	}
	r->loops++;
	return 0;
}

static int check_entry(struct vlist_client *c, uint64_t at,
		       const struct vlist_entry *e, struct vlist_report *r)
{
	uint64_t key = le64_get(e->key1) - 1, head = le64_get(e->head);
	uint64_t entry, there;
	int err;

	if (!le64_get(e->key1)) {
		r->bad_entries += head != 0;
		return 0;
	}
	r->keys++;
	err = vlist_entry_find(c, key, &entry, &there);
	if (err == -ENOENT || (!err && entry != at))
		r->bad_entries++;
	else if (err)
		return err;
	return head ? check_list(c, key, head, r) : 0;
}

static int check_index(struct vlist_client *c, struct vlist_report *r)
{
	struct vlist_entry copy[VLIST_BUCKET];
	int err = 0;

	for (uint64_t b = 0; !err && b < c->g.bucket_count; b++) {
		uint64_t at = c->g.bucket_offset + b * VLIST_BUCKET_BYTES;

		err = kit_read_now(&c->kit.main, at, c->bucket,
				   VLIST_BUCKET_BYTES);
		memcpy(copy, c->bucket, sizeof(copy));
		for (unsigned k = 0; !err && k < VLIST_BUCKET; k++)
			err = check_entry(c, at + k * VLIST_ENTRY_BYTES,
					  &copy[k], r);
	}
	return err;
}

int vlist_check(struct vlist_client *c, struct vlist_report *r)
{
	int err;

	*r = (struct vlist_report){.chunks = c->g.chunk_count};
	c->kit.deadline_ns = UINT64_MAX;
	err = check_index(c, r);
	if (!err)
		err = kit_count_words(&c->kit.main, c->g.slot_offset,
				      c->g.client_count, VLIST_SLOT_BYTES, 0xff,
				      &r->clients);
	if (!err)
		err = kit_count_words(&c->kit.main, c->g.chunk_word_offset,
				      c->g.chunk_count, 8, UINT64_MAX,
				      &r->chunks_taken);
	return err;
}
