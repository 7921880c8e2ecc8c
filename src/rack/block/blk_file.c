/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files: records one after the other. What lies below the end never changes, so
 * that readers need nobody. A record lies in one block; the block in which one
 * has no room is sealed, and its end is final from then on.
 */
#include <errno.h>

#include "base/error.h"
#include "base/plant.h"
#include "blk_image.h"

static void show(struct blk_block *b)
{
	blk_head_write(b, b->file.end, b->file.start);
}

static uint8_t *append_place(struct blk_block *b, const struct blk_request *r,
			     struct blk_answer *a)
{
	struct blk_file *f = &b->file;

	a->value = f->end;
	if (f->has_start && r->arg != f->start)
		a->status = BLOCK_STALE;
	else if ((b->flags & BLOCK_IS_SEALED) && !PLANTED(blk_seal_again))
		a->status = blk_seal_status(b);
	else if (r->length > blk_room(b))
		a->status = BLOCK_TOO_LONG;
	else if (r->length <= blk_room(b) - f->end)
		return blk_data(b) + f->end;
	else {
		a->status = BLOCK_SEALED;
		blk_note_sealed(b, false);
		show(b);
	}
	return NULL;
}

static void append(struct blk_block *b, const struct blk_request *r,
		   uint32_t session, struct blk_done *done,
		   struct blk_answer *a)
{
	struct blk_file *f = &b->file;

	if (!f->has_start) {
		f->has_start = true;
		f->start = r->arg;
		b->flags |= BLOCK_HAS_START;
	}
	a->value = f->end;
	f->end += r->length;
	show(b);
	blk_watch_add(&b->watch, BLOCK_EVENT_APPEND, r->length,
		      f->start + a->value, NULL, 0);
}

static void seal(struct blk_block *b, const struct blk_request *r,
		 uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	if (!blk_seal(b, r, a))
		return;
	show(b);
	a->value = b->file.end;
}

static void stat(const struct blk_block *b, struct block_stat_wire *out)
{
	out->end = be64_put(b->file.end);
}

static void nothing(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
}

static bool again(struct blk_block *b, const struct blk_request *r,
		  const struct blk_done *done, struct blk_answer *a)
{
	return false; /* no answer has data */
}

static void forget(struct blk_block *b, const struct blk_done *done)
{
}

static void leave(struct blk_block *b, uint32_t session)
{
}

/* A file keeps what it has. */
static bool is_drained(const struct blk_block *b)
{
	return false;
}

static int save(const struct blk_block *b, struct blk_image *out,
		uint32_t *items)
{
	out->payload = blk_data(b);
	out->bytes = b->file.end;
	*items = 0;
	return 0;
}

static int load(struct blk_block *b, const struct blk_image *image,
		uint64_t start, uint32_t items)
{
	struct blk_file *f = &b->file;

	if (image->bytes > blk_room(b))
		return error_set(-EBADMSG, "it does not fit into a block");
	memcpy(blk_data(b), image->payload, image->bytes);
	f->end = image->bytes;
	f->start = start;
	f->has_start = b->flags & BLOCK_HAS_START;
	show(b);
	return 0;
}

const struct blk_kind blk_kind_file = {
	.id = BLOCK_FILE,
	.name = "file",
	.op =
		{
			[BLOCK_STAT] = {.run = nothing},
			[BLOCK_SEAL] = {.is_change = true, .run = seal},
			[BLOCK_APPEND] = {.is_change = true,
					  .place = append_place,
					  .run = append},
		},
	.again = again,
	.forget = forget,
	.leave = leave,
	.stat = stat,
	.save = save,
	.load = load,
	.is_drained = is_drained,
};
