/* SPDX-License-Identifier: Apache-2.0 */
/* All of a block as one row of bytes. */
#include "blk_state.h"

#include <errno.h>

#include "base/error.h"
#include "base/plant.h"

/* ---- parts --------------------------------------------------------------- */

static void add(struct blk_state *s, void *at, uint64_t bytes)
{
	s->part[s->count++] = (struct blk_state_part){at, bytes};
}

/* Where the memory in use ends, by what the head says. */
static uint64_t used(const struct blk_block *head)
{
	uint64_t room = head->size_bytes - BLOCK_HEAD_BYTES;

	switch (head->kind->id) {
	case BLOCK_QUEUE:
		return u64_min(head->queue.tail, room);
	case BLOCK_EKV:
		return head->ekv.tail;
	case BLOCK_FILE:
	case BLOCK_KINDS:
	default:
		return head->file.end;
	}
}

static void add_rest(struct blk_state *s, struct blk_block *b,
		     const struct blk_block *head)
{
	add(s, b->session, b->session_room * sizeof(*b->session));
	if (b->kind->id == BLOCK_QUEUE)
		add(s, b->queue.parked,
		    b->queue.parked_room * sizeof(*b->queue.parked));
	if (b->kind->id == BLOCK_EKV) {
		add(s, b->ekv.bucket,
		    b->ekv.bucket_count * sizeof(*b->ekv.bucket));
		add(s, b->ekv.slot, BLOCK_KV_SLOTS * sizeof(*b->ekv.slot));
	}
	add(s, b->watch.ring, b->watch.room);
	add(s, b->watch.place, b->watch.place_count * sizeof(*b->watch.place));
	add(s, b->mem, BLOCK_HEAD_BYTES + used(head));
}

/* What belongs to this end. */
static void set_own(struct blk_block *head, const struct blk_block *b)
{
	head->kind = b->kind;
	head->mem = b->mem;
	head->session = b->session;
	head->watch.ring = b->watch.ring;
	head->watch.place = b->watch.place;
	if (PLANTED(watch_own_ring) && b->watch.ring)
		head->watch = b->watch;
	if (b->kind->id == BLOCK_QUEUE)
		head->queue.parked = b->queue.parked;
	if (b->kind->id == BLOCK_EKV) {
		head->ekv.bucket = b->ekv.bucket;
		head->ekv.slot = b->ekv.slot;
	}
}

uint64_t blk_state_begin(struct blk_state *s, struct blk_block *b)
{
	static const struct blk_block none;
	struct blk_block own = none;
	uint64_t all = 0;

	own.kind = b->kind;
	s->head = *b;
	s->count = 0;
	add(s, &s->head, sizeof(s->head));
	add_rest(s, b, b);
	/* Addresses are nobody else's business. */
	set_own(&s->head, &own);
	s->head.kind = NULL;
	for (unsigned i = 0; i < s->count; i++)
		all += s->part[i].bytes;
	return all;
}

static const struct blk_state_part *part_at(const struct blk_state *s,
					    uint64_t *offset)
{
	for (unsigned i = 0; i < s->count; i++) {
		if (*offset < s->part[i].bytes)
			return &s->part[i];
		*offset -= s->part[i].bytes;
	}
	return NULL;
}

const uint8_t *blk_state_at(const struct blk_state *s, uint64_t offset,
			    uint32_t most, uint32_t *bytes)
{
	const struct blk_state_part *p = part_at(s, &offset);

	*bytes = p ? (uint32_t)u64_min(most, p->bytes - offset) : 0;
	return p ? p->at + offset : NULL;
}

/* ---- the other end ------------------------------------------------------- */

static bool fits(const struct blk_block *head, const struct blk_block *b)
{
	uint64_t room = blk_room(b);

	if (head->size_bytes != b->size_bytes ||
	    head->generation != b->generation ||
	    head->session_room != b->session_room ||
	    head->watch.room != b->watch.room ||
	    head->watch.place_count != b->watch.place_count)
		return false;
	switch (b->kind->id) {
	case BLOCK_QUEUE:
		return head->queue.parked_room == b->queue.parked_room &&
		       head->queue.head <= head->queue.tail &&
		       head->queue.tail - head->queue.head <= room;
	case BLOCK_EKV:
		return head->ekv.bucket_count == b->ekv.bucket_count &&
		       head->ekv.room == b->ekv.room &&
		       head->ekv.tail <= head->ekv.room;
	case BLOCK_FILE:
	case BLOCK_KINDS:
	default:
		return head->file.end <= room;
	}
}

int blk_state_take(struct blk_state *s, struct blk_block *b, uint64_t offset,
		   const uint8_t *data, uint32_t bytes)
{
	if (!offset) {
		s->count = 0;
		add(s, &s->head, sizeof(s->head));
	}
	while (bytes) {
		uint64_t in = offset;
		const struct blk_state_part *p = part_at(s, &in);
		uint32_t n;

		if (!p)
			return error_set(-EBADMSG, "the copy of a block is too "
						   "long");
		n = (uint32_t)u64_min(bytes, p->bytes - in);
		memcpy(p->at + in, data, n);
		data += n;
		bytes -= n;
		offset += n;
		if (s->count > 1 || offset < sizeof(s->head))
			continue;
		if (!fits(&s->head, b))
			return error_set(-EBADMSG, "the copy of a block is of "
						   "another size");
		set_own(&s->head, b);
		add_rest(s, b, &s->head);
	}
	return 0;
}

/* What leaves from the source's records does not leave from here. */
static bool unpin(struct blk_block *b)
{
	for (uint64_t at = 0; at < b->ekv.tail;) {
		struct blk_record *r =
			(struct blk_record *)(void *)(blk_data(b) + at);

		if (r->size < sizeof(*r) || r->size % 8 ||
		    r->size > b->ekv.tail - at)
			return false;
		r->pins = 0;
		at += r->size;
	}
	return true;
}

int blk_state_end(struct blk_state *s, struct blk_block *b, uint64_t total)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < s->count; i++)
		all += s->part[i].bytes;
	if (s->count < 2 || all != total)
		return error_set(-EBADMSG, "the copy of a block is not whole");
	*b = s->head;
	if (b->kind->id == BLOCK_EKV && !unpin(b))
		return error_set(-EBADMSG, "the copy of a block is damaged");
	return 0;
}
