/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues: items in a ring, each behind its header, which never straddle its
 * end. An item is ready, then taken or parked, then done; the ring's room comes
 * back from its oldest end. A taken item stays until its answer has been
 * acknowledged, a parked one until its consumer says so; when the consumer is
 * away for long it is ready again, before all that came after it.
 *
 * The bound is for the whole queue. A block counts its own items; what lies in
 * the blocks before it only gets less, because they are sealed. So a client may
 * tell it what it has counted there, at any time later, and the smallest number
 * holds.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/plant.h"
#include "blk_image.h"

enum state {
	READY = 1,
	TAKEN,
	PARKED,
	DONE,
	SKIP, /* the rest of the ring before its end */
};

struct item {
	uint32_t length;
	uint32_t state;
};

enum {
	UNIT = sizeof(struct item),
};

static uint64_t room(const struct blk_block *b)
{
	return blk_room(b) & ~(uint64_t)(UNIT - 1);
}

static struct item *item_at(const struct blk_block *b, uint64_t place)
{
	return (struct item *)(void *)(blk_data(b) + place % room(b));
}

static uint64_t size_of(const struct item *i)
{
	return UNIT + align_up(i->length, UNIT);
}

/* ---- put ----------------------------------------------------------------- */

/* Bytes up to the ring's end that an item of that size cannot use. */
static uint64_t skip(const struct blk_block *b, uint64_t need)
{
	uint64_t left = room(b) - b->queue.tail % room(b);

	return need > left ? left : 0;
}

static bool is_full(const struct blk_queue *q)
{
	return q->bound && q->items >= q->bound - u64_min(q->bound, q->before);
}

static uint8_t *put_place(struct blk_block *b, const struct blk_request *r,
			  struct blk_answer *a)
{
	const struct blk_queue *q = &b->queue;
	uint64_t need = UNIT + align_up(r->length, UNIT), past;

	/* From where who waits for room has to watch. */
	a->value = b->watch.serial;
	if (need > room(b))
		a->status = BLOCK_TOO_LONG;
	else if (b->flags & BLOCK_IS_SEALED)
		a->status = blk_seal_status(b);
	else if (q->bound && q->before == UINT64_MAX)
		a->status = BLOCK_NO_CREDIT;
	else if (is_full(q) && !PLANTED(over_bound))
		a->status = BLOCK_FULL;
	else {
		past = skip(b, need);
		if (past + need <= room(b) - (q->tail - q->head))
			return (uint8_t *)(item_at(b, q->tail + past) + 1);
		a->status = BLOCK_NO_ROOM;
	}
	return NULL;
}

static void put(struct blk_block *b, const struct blk_request *r,
		uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	struct blk_queue *q = &b->queue;
	uint64_t past = skip(b, UNIT + align_up(r->length, UNIT));

	if (past) {
		*item_at(b, q->tail) = (struct item){
			.length = (uint32_t)(past - UNIT), .state = SKIP};
		q->tail += past;
	}
	*item_at(b, q->tail) =
		(struct item){.length = r->length, .state = READY};
	blk_watch_add(&b->watch, BLOCK_EVENT_PUT, r->length, 0,
		      item_at(b, q->tail) + 1, r->length);
	q->tail += UNIT + align_up(r->length, UNIT);
	q->items++;
	a->value = q->items;
}

/* ---- get ----------------------------------------------------------------- */

static void reclaim(struct blk_block *b)
{
	struct blk_queue *q = &b->queue;

	while (q->head < q->tail) {
		const struct item *i = item_at(b, q->head);

		if (i->state != DONE && i->state != SKIP)
			break;
		q->head += size_of(i);
	}
	q->ready = u64_max(q->ready, q->head);
}

/* The oldest that is ready. */
static bool find_ready(struct blk_block *b)
{
	struct blk_queue *q = &b->queue;

	while (q->ready < q->tail) {
		const struct item *i = item_at(b, q->ready);

		if (i->state == READY)
			return true;
		q->ready += size_of(i);
	}
	return false;
}

static enum block_status none(const struct blk_block *b)
{
	if (!(b->flags & BLOCK_IS_SEALED))
		return BLOCK_EMPTY;
	if (b->queue.items)
		return BLOCK_PARKED;
	return b->flags & BLOCK_IS_LAST ? BLOCK_CLOSED : BLOCK_DRAINED;
}

static void show(const struct blk_block *b, uint64_t item, struct blk_answer *a)
{
	const struct item *i = item_at(b, item);

	a->length = i->length;
	a->data = (const uint8_t *)(i + 1);
}

static struct blk_parked *find_parked(struct blk_queue *q)
{
	for (uint32_t i = 0; i < q->parked_room; i++) {
		struct blk_parked *p = &q->parked[q->parked_at];

		q->parked_at = (q->parked_at + 1) % q->parked_room;
		if (!p->is_used)
			return p;
	}
	return NULL;
}

/* By which a parked item is acknowledged. */
static uint64_t name_of(const struct blk_queue *q, const struct blk_parked *p)
{
	return (uint64_t)p->serial << 32 | (uint64_t)(p - q->parked);
}

static uint64_t park(struct blk_queue *q, struct blk_parked *p,
		     uint32_t session)
{
	*p = (struct blk_parked){.item = q->ready,
				 .serial = ++q->serial,
				 .session = session,
				 .is_used = true};
	q->parked_count++;
	return name_of(q, p);
}

static void get(struct blk_block *b, const struct blk_request *r,
		uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	struct blk_queue *q = &b->queue;
	struct blk_parked *p = NULL;

	if (!find_ready(b)) {
		a->status = none(b);
		a->value = b->watch.serial;
		return;
	}
	show(b, q->ready, a);
	a->status = blk_way(r, a->length);
	if (a->status == BLOCK_OK && r->arg) {
		p = find_parked(q);
		if (!p)
			a->status = BLOCK_BUSY;
	}
	if (a->status != BLOCK_OK) {
		a->data = NULL;
		return;
	}
	done->has_item = true;
	done->item = q->ready;
	item_at(b, q->ready)->state = p ? PARKED : TAKEN;
	if (p)
		a->value = park(q, p, session);
	else
		q->items--;
	blk_watch_add(&b->watch, BLOCK_EVENT_GET, a->length, 0, NULL, 0);
	q->ready += size_of(item_at(b, q->ready));
}

static struct blk_parked *parked_of(const struct blk_queue *q, uint64_t name)
{
	uint32_t at = (uint32_t)name;
	struct blk_parked *p = at < q->parked_room ? &q->parked[at] : NULL;

	return p && p->is_used && p->serial == name >> 32 ? p : NULL;
}

static bool again(struct blk_block *b, const struct blk_request *r,
		  const struct blk_done *done, struct blk_answer *a)
{
	if (done->value && !parked_of(&b->queue, done->value) &&
	    !PLANTED(back_and_again))
		return false; /* it was acknowledged: the client had it */
	*a = (struct blk_answer){.status = blk_way(r, done->length)};
	if (a->status == BLOCK_OK) {
		a->value = done->value;
		show(b, PLANTED(blk_other_again) ? b->queue.head : done->item,
		     a);
	}
	return true;
}

static void forget(struct blk_block *b, const struct blk_done *done)
{
	if (done->value)
		return; /* parked: it waits for its own acknowledgement */
	item_at(b, done->item)->state = DONE;
	reclaim(b);
}

static void acknowledge(struct blk_block *b, const struct blk_request *r,
			uint32_t session, struct blk_done *done,
			struct blk_answer *a)
{
	struct blk_queue *q = &b->queue;
	struct blk_parked *p = parked_of(q, r->arg);

	if (!p || p->session != session) {
		a->status = BLOCK_STALE;
		return;
	}
	item_at(b, p->item)->state = DONE;
	p->is_used = false;
	q->parked_count--;
	q->items--;
	blk_watch_add(&b->watch, BLOCK_EVENT_ACK, item_at(b, p->item)->length,
		      0, NULL, 0);
	reclaim(b);
}

/* Who repeats the get that took it gets another one. */
static void note_back(struct blk_session *s, uint64_t name)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct blk_done *d = &s->done[(s->first + i) % BLK_ANSWERS];

		if (d->has_item && d->value == name) {
			d->has_item = PLANTED(back_and_again);
			d->is_back = !d->has_item;
		}
	}
}

static void leave(struct blk_block *b, uint32_t session)
{
	struct blk_queue *q = &b->queue;

	for (uint32_t i = 0; i < q->parked_room; i++) {
		struct blk_parked *p = &q->parked[i];

		if (!p->is_used || p->session != session)
			continue;
		item_at(b, p->item)->state = READY;
		q->ready = PLANTED(back_to_end) ? q->ready
						: u64_min(q->ready, p->item);
		blk_watch_add(&b->watch, BLOCK_EVENT_BACK,
			      item_at(b, p->item)->length, 0, NULL, 0);
		note_back(&b->session[session], name_of(q, p));
		p->is_used = false;
		q->parked_count--;
	}
}

/* ---- the rest ------------------------------------------------------------ */

static void seal(struct blk_block *b, const struct blk_request *r,
		 uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	if (!blk_seal(b, r, a))
		return;
	blk_head_write(b, 0, 0);
	a->value = b->queue.items;
}

static void credit(struct blk_block *b, const struct blk_request *r,
		   uint32_t session, struct blk_done *done,
		   struct blk_answer *a)
{
	b->queue.before = u64_min(b->queue.before, r->arg);
}

static void nothing(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
}

static void stat(const struct blk_block *b, struct block_stat_wire *out)
{
	out->end = be64_put(b->queue.tail - b->queue.head);
	out->items = be64_put(b->queue.items);
	out->parked = be64_put(b->queue.parked_count);
}

static bool is_drained(const struct blk_block *b)
{
	return b->queue.head == b->queue.tail;
}

/* ---- images -------------------------------------------------------------- */

/* Also what waits for its acknowledgement: after a load nobody can give that
 * any more. What was got is its consumer's. */
static bool is_kept(const struct item *i)
{
	return i->state == READY || i->state == PARKED;
}

static int save(const struct blk_block *b, struct blk_image *out,
		uint32_t *items)
{
	const struct blk_queue *q = &b->queue;
	uint8_t *buf = malloc(q->tail - q->head + 1), *at = buf;

	if (!buf)
		return error_set(-ENOMEM, "no memory for the image of a block");
	*items = 0;
	for (uint64_t place = q->head; place < q->tail;) {
		const struct item *i = item_at(b, place);
		be32 length = be32_put(i->length);

		place += size_of(i);
		if (!is_kept(i))
			continue;
		memcpy(at, &length, sizeof(length));
		memcpy(at + sizeof(length), i + 1, i->length);
		at += sizeof(length) + i->length;
		++*items;
	}
	out->own = buf;
	out->payload = buf;
	out->bytes = (uint64_t)(at - buf);
	return 0;
}

/* The items come one after the other from the ring's first place on. */
static int load(struct blk_block *b, const struct blk_image *image,
		uint64_t start, uint32_t items)
{
	struct blk_queue *q = &b->queue;
	const uint8_t *at = image->payload, *end = at + image->bytes;

	while ((size_t)(end - at) >= sizeof(be32)) {
		struct item i = {.state = READY};
		be32 length;

		memcpy(&length, at, sizeof(length));
		i.length = be32_get(length);
		if (i.length > (size_t)(end - at) - sizeof(length) ||
		    size_of(&i) > room(b) - q->tail)
			break;
		at += sizeof(length);
		*item_at(b, q->tail) = i;
		memcpy(item_at(b, q->tail) + 1, at, i.length);
		at += i.length;
		q->tail += size_of(&i);
		q->items++;
	}
	if (at != end || q->items != items)
		return error_set(-EBADMSG, "its items are not as they were");
	blk_head_write(b, 0, 0);
	return 0;
}

const struct blk_kind blk_kind_queue = {
	.id = BLOCK_QUEUE,
	.name = "queue",
	.op =
		{
			[BLOCK_STAT] = {.run = nothing},
			[BLOCK_SEAL] = {.is_change = true, .run = seal},
			[BLOCK_PUT] = {.is_change = true,
				       .place = put_place,
				       .run = put},
			[BLOCK_GET] = {.is_change = true, .run = get},
			[BLOCK_ACK] = {.is_change = true, .run = acknowledge},
			[BLOCK_CREDIT] = {.is_change = true, .run = credit},
		},
	.again = again,
	.forget = forget,
	.leave = leave,
	.stat = stat,
	.save = save,
	.load = load,
	.is_drained = is_drained,
};
