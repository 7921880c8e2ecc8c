/* SPDX-License-Identifier: Apache-2.0 */
/* Scans: the last key that was seen says where to go on, so they need nothing
 * at the nodes, and blocks may be split and merged meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_ekv_priv.h"

enum {
	BUF_BYTES = BLOCK_KV_KEY_MAX + sizeof(struct block_kv_wire),
};
STATIC_ASSERT((int)BUF_BYTES >= (int)BLOCK_BATCH_MAX, "an answer has room");

struct aq_ekv_scan {
	struct aq_ekv *kv;
	uint32_t slot; /* all before it are done */
	bool has_more; /* of the slots that were asked for last */
	bool is_end;
	size_t at, len_bytes; /* of what the last answer had */
	size_t last_bytes;
	uint8_t last[BLOCK_KV_KEY_MAX]; /* the last key */
	uint8_t buf[BUF_BYTES];
};

int aq_ekv_scan_begin(struct aq_ekv *kv, struct aq_ekv_scan **out)
{
	struct aq_ekv_scan *s = calloc(1, sizeof(*s));

	error_clear();
	if (!s)
		return error_set(-ENOMEM, "no memory for a scan");
	s->kv = kv;
	*out = s;
	return 0;
}

void aq_ekv_scan_end(struct aq_ekv_scan *s)
{
	free(s);
}

static int fetch(struct aq_ekv_scan *s)
{
	struct el_kv_ask ask = {
		.opcode = BLOCK_KV_SCAN,
		.slot = s->slot,
		.key = s->last,
		.key_bytes = s->has_more ? s->last_bytes : 0,
		.out = s->buf,
		.room_bytes = sizeof(s->buf),
	};
	struct block_result r;
	int err;

	s->kv->acked = s->kv->object.sequence;
	err = el_kv_ask(s->kv, &ask, &r, el_deadline_ns(&s->kv->object));
	if (err)
		return err;
	s->at = 0;
	s->len_bytes = 0;
	if (r.status == BLOCK_NO_KEY) { /* there is no block */
		s->is_end = true;
		return 0;
	}
	if (r.status != BLOCK_OK)
		return el_error(&s->kv->object, r.status);
	s->len_bytes = r.length;
	s->has_more = r.value == BLOCK_KV_MORE;
	if (!s->has_more && r.value <= s->slot)
		return error_set(-EPROTO, "a node answered something else");
	if (!s->has_more)
		s->slot = (uint32_t)u64_min(r.value, BLOCK_KV_SLOTS);
	s->is_end = s->slot == BLOCK_KV_SLOTS;
	return s->has_more && !r.length
		       ? error_set(-EPROTO, "a node answered something else")
		       : 0;
}

int aq_ekv_scan_next(struct aq_ekv_scan *s, struct aq_ekv_entry *entry)
{
	struct block_kv_wire head;
	size_t key_bytes;

	error_clear();
	while (s->at == s->len_bytes) {
		int err = s->is_end && !s->has_more ? -ENODATA : fetch(s);

		if (err)
			return err;
	}
	if (s->len_bytes - s->at < sizeof(head))
		return error_set(-EPROTO, "a node answered something else");
	memcpy(&head, s->buf + s->at, sizeof(head));
	s->at += sizeof(head);
	key_bytes = be32_get(head.key_bytes);
	if (!key_bytes || key_bytes > s->len_bytes - s->at)
		return error_set(-EPROTO, "a node answered something else");
	memcpy(s->last, s->buf + s->at, key_bytes);
	s->last_bytes = key_bytes;
	s->at = u64_min(s->at + align_up(key_bytes, 8), s->len_bytes);
	if (s->has_more)
		s->slot = block_kv_slot(block_kv_hash(s->last, key_bytes));
	*entry = (struct aq_ekv_entry){
		.key = s->last,
		.key_bytes = key_bytes,
		.value_bytes = be32_get(head.value_bytes),
		.version = be64_get(head.version),
	};
	return 0;
}
