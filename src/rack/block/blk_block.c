/* SPDX-License-Identifier: Apache-2.0 */
/* What blocks of all kinds have in common: their life, and the two steps of an
 * operation. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/plant.h"
#include "blk.h"

const struct blk_kind *blk_kind_of(unsigned id)
{
	switch (id) {
	case BLOCK_FILE:
		return &blk_kind_file;
	case BLOCK_QUEUE:
		return &blk_kind_queue;
	case BLOCK_EKV:
		return &blk_kind_ekv;
	default:
		return NULL;
	}
}

/* ---- life ---------------------------------------------------------------- */

static uint32_t parked_room(uint64_t size_bytes)
{
	return (uint32_t)u64_min(BLK_PARKED_MAX, size_bytes / 512);
}

uint64_t blk_own_bytes(enum block_kind kind, uint64_t size_bytes)
{
	return blk_session_room(size_bytes) * sizeof(struct blk_session) +
	       blk_watch_own_bytes(size_bytes) +
	       (kind == BLOCK_EKV
			? blk_ekv_own_bytes(size_bytes)
			: parked_room(size_bytes) * sizeof(struct blk_parked));
}

static int init_kind(struct blk_block *b, const struct blk_options *o)
{
	if (o->kind == BLOCK_QUEUE) {
		b->queue.bound = o->bound;
		b->queue.before =
			o->is_first || PLANTED(blk_no_credit) ? 0 : UINT64_MAX;
		b->queue.parked_room = parked_room(o->size_bytes);
		b->queue.parked =
			calloc(b->queue.parked_room, sizeof(*b->queue.parked));
		return b->queue.parked ? 0 : -ENOMEM;
	}
	if (o->kind == BLOCK_EKV)
		return blk_ekv_init(b, o->is_first);
	b->file.has_start = o->is_first;
	b->flags = o->is_first ? BLOCK_HAS_START : 0;
	return 0;
}

int blk_init(struct blk_block *b, const struct blk_options *o, void *mem)
{
	uint64_t generation = o->identity ? o->identity : o->generation;
	struct block_head head = {
		.magic = be32_put(BLOCK_MAGIC),
		.version = be16_put(BLOCK_WIRE_VERSION),
		.kind = be16_put((uint16_t)o->kind),
		.generation = be64_put(generation),
	};

	*b = (struct blk_block){
		.kind = blk_kind_of(o->kind),
		.mem = mem,
		.size_bytes = o->size_bytes,
		.generation = generation,
		.session_room = blk_session_room(o->size_bytes),
	};
	b->session = calloc(b->session_room, sizeof(*b->session));
	if (!b->session || blk_watch_init(&b->watch, o->size_bytes) ||
	    init_kind(b, o)) {
		blk_watch_release(&b->watch);
		free(b->session);
		return -ENOMEM;
	}
	memcpy(mem, &head, sizeof(head));
	blk_head_write(b, 0, 0);
	return 0;
}

void blk_release(struct blk_block *b)
{
	if (b->kind->id == BLOCK_QUEUE)
		free(b->queue.parked);
	if (b->kind->id == BLOCK_EKV)
		blk_ekv_release(b);
	blk_watch_release(&b->watch);
	free(b->session);
	*b = (struct blk_block){0};
}

static void put(struct blk_block *b, size_t at, uint64_t value)
{
	be64 be = be64_put(value);
	uint64_t word;

	memcpy(&word, &be, sizeof(word));
	/* BLK-1: who sees the end must not miss bytes below it. */
	atomic_store_explicit((_Atomic uint64_t *)(void *)(b->mem + at), word,
			      memory_order_release);
}

/* BLK-1: the other end is a client that READs the header, and then the data
 * below the end that it has read. */
void blk_head_write(struct blk_block *b, uint64_t end, uint64_t start)
{
	put(b, offsetof(struct block_head, start), start);
	put(b, offsetof(struct block_head, end), end);
	/* The end is final when the flag says so. */
	put(b, offsetof(struct block_head, flags), (uint64_t)b->flags << 32);
}

/* BLK-2: the other end is a client that READs records where a list says they
 * are, and then this. */
void blk_head_moves(struct blk_block *b, uint64_t moves)
{
	be64 be = be64_put(moves);
	uint64_t word;

	memcpy(&word, &be, sizeof(word));
	/* BLK-2: nothing is moved before who reads can see it. */
	(void)atomic_exchange_explicit(
		(_Atomic uint64_t *)(void *)(b->mem +
					     offsetof(struct block_head,
						      moves)),
		word, memory_order_acq_rel);
}

/* ---- operations ---------------------------------------------------------- */

/* True: it is answered. */
static bool is_answered(struct blk_block *b, const struct blk_request *r,
			uint32_t at, struct blk_answer *a)
{
	const struct blk_session *s = &b->session[at];
	const struct blk_done *done;

	if (!r->sequence) {
		a->status = BLOCK_BAD;
		return true;
	}
	if (r->sequence > s->last) {
		a->status = BLOCK_BUSY;
		return s->count == BLK_ANSWERS && !b->kind->is_unordered;
	}
	if (PLANTED(no_dedupe))
		return false;
	done = blk_session_done(s, r->sequence);
	/* One that was refused first, or sent to another block. */
	if (!done && b->kind->is_unordered && r->sequence > s->acked &&
	    r->sequence + BLK_ANSWERS > s->last)
		return false;
	a->status = done && done->is_back ? BLOCK_LATER : BLOCK_STALE;
	if (!done || done->is_back ||
	    (done->has_item && !b->kind->again(b, r, done, a)))
		return true;
	if (!done->has_item)
		*a = (struct blk_answer){.status = BLOCK_OK,
					 .value = done->value};
	return true;
}

/* The session's place, where there is one. */
static bool enter(struct blk_block *b, const struct blk_request *r,
		  bool is_change, uint32_t *at)
{
	if (blk_session_find(b, r->session, is_change, at)) {
		*at = UINT32_MAX;
		return !is_change;
	}
	blk_session_acked(b, &b->session[*at], r->acked);
	return true;
}

enum blk_prepared blk_prepare(struct blk_block *b, const struct blk_request *r,
			      struct blk_answer *a, uint8_t **place)
{
	const struct blk_operator *op = &b->kind->op[r->opcode];
	uint32_t at;

	*place = NULL;
	*a = (struct blk_answer){.status = BLOCK_BAD};
	if (!op->run)
		return BLK_ANSWERED;
	if (!enter(b, r, op->is_change, &at)) {
		a->status = BLOCK_BUSY;
		return BLK_ANSWERED;
	}
	if (op->is_change && is_answered(b, r, at, a))
		return BLK_ANSWERED;
	if (!op->place)
		return BLK_READY;
	*place = op->place(b, r, a);
	return *place ? BLK_READY : BLK_ANSWERED;
}

uint8_t *blk_begin(struct blk_block *b, const struct blk_request *r,
		   struct blk_answer *a)
{
	uint8_t *place;

	if (blk_prepare(b, r, a, &place) == BLK_ANSWERED)
		return NULL;
	if (place && !r->value)
		return place;
	if (place)
		memcpy(place, r->value, r->length);
	blk_finish(b, r, a);
	return NULL;
}

void blk_finish(struct blk_block *b, const struct blk_request *r,
		struct blk_answer *a)
{
	const struct blk_operator *op = &b->kind->op[r->opcode];
	struct blk_done done = {.sequence = r->sequence};
	uint32_t at;

	*a = (struct blk_answer){.status = BLOCK_OK};
	/* The session may have ended while the value was fetched. */
	if (blk_session_find(b, r->session, op->is_change, &at)) {
		if (op->is_change) {
			a->status = BLOCK_BUSY;
			return;
		}
		at = UINT32_MAX;
	}
	op->run(b, r, at, &done, a);
	if (a->status != BLOCK_OK || !op->is_change)
		return;
	done.value = a->value;
	done.length = a->length;
	if (b->kind->is_unordered) {
		done.length = 0; /* what is in use will be something else */
		if (!blk_session_done(&b->session[at], done.sequence))
			blk_session_keep_any(&b->session[at], &done);
		return;
	}
	if (PLANTED(no_dedupe) && done.sequence <= b->session[at].last)
		return;
	blk_session_keep(&b->session[at], &done);
}

enum block_status blk_way(const struct blk_request *r, uint32_t length)
{
	if (length <= r->inside_room && length <= BLOCK_INSIDE_MAX)
		return BLOCK_OK;
	if (length <= r->buffer_bytes)
		return BLOCK_OK;
	return length <= BLOCK_INSIDE_MAX ? BLOCK_LATER : BLOCK_TOO_LONG;
}

void blk_note_sealed(struct blk_block *b, bool is_last)
{
	uint32_t before = b->flags;

	b->flags |= BLOCK_IS_SEALED | (is_last ? BLOCK_IS_LAST : 0);
	if (is_last && !(before & BLOCK_IS_LAST))
		blk_watch_add(&b->watch, BLOCK_EVENT_SEAL, 0, 0, NULL, 0);
	else if (!(before & BLOCK_IS_SEALED))
		blk_watch_mark(&b->watch, BLOCK_MARK_SEALED, 0, 0);
}

bool blk_seal(struct blk_block *b, const struct blk_request *r,
	      struct blk_answer *a)
{
	if (r->arg && (b->flags & BLOCK_IS_SEALED) &&
	    !(b->flags & BLOCK_IS_LAST)) {
		/* Others have gone on to the next one. */
		a->status = BLOCK_SEALED;
		return false;
	}
	blk_note_sealed(b, r->arg);
	return true;
}

enum block_status blk_seal_status(const struct blk_block *b)
{
	return b->flags & BLOCK_IS_LAST ? BLOCK_CLOSED : BLOCK_SEALED;
}

bool blk_is_drained(const struct blk_block *b)
{
	return (b->flags & BLOCK_IS_SEALED) && b->kind->is_drained(b);
}

uint64_t blk_used_bytes(const struct blk_block *b)
{
	switch (b->kind->id) {
	case BLOCK_QUEUE:
		return b->queue.tail - b->queue.head;
	case BLOCK_EKV:
		return b->ekv.live;
	case BLOCK_FILE:
	case BLOCK_KINDS:
	default:
		return b->file.end;
	}
}
