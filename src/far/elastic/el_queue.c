/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues. Puts go to the last block that is not sealed; gets begin at the first
 * one that is not empty for ever. A block that has no room is sealed by whoever
 * has got another one after it, so a queue that cannot grow goes on in what it
 * has. The bound of a later block is kept by what its producers count in the
 * blocks before it, which are sealed, so that the number only gets less.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_priv.h"
#include "wire/block_watch.h"

enum {
	LOOK_AGAIN_MS = 500, /* in case that what ends a wait is no event */
};

struct aq_queue {
	struct el_object object;
	uint64_t tail; /* number of the block that takes items */
	uint64_t head; /* of the first that may have some */
	bool has_tail;
	bool has_head;
	/* Where the last look ended, and what it can wait for there. */
	bool can_wait;
	uint64_t wait_at, wait_serial;
};

/* ---- opening ------------------------------------------------------------- */

int aq_queue_open(struct aq_rack *rack, const char *path,
		  const struct aq_elastic_options *options,
		  struct aq_queue **out)
{
	struct aq_queue *q = calloc(1, sizeof(*q));
	int err;

	error_clear();
	if (!q)
		return error_set(-ENOMEM, "no memory for a queue");
	err = el_open(&q->object, rack, path, BLOCK_QUEUE, options);
	if (err) {
		aq_queue_close(q);
		return err;
	}
	q->object.has_channels = true;
	*out = q;
	return 0;
}

/* After a look or a put in vain; false: the time is over. */
static bool wait_for(struct aq_queue *q, uint32_t events, unsigned *tries,
		     uint64_t wait_ns, uint64_t deadline_ns)
{
	uint64_t now_ns = el_now_ns();

	if (!q->can_wait)
		return el_pause(tries, wait_ns);
	if (now_ns >= wait_ns)
		return false;
	now_ns = u64_min(wait_ns, now_ns + LOOK_AGAIN_MS * 1000000ull);
	/* What is wrong is found by the next look. */
	if (el_wait(&q->object, q->wait_at, q->wait_serial, events, now_ns,
		    deadline_ns))
		return el_pause(tries, wait_ns);
	return true;
}

void aq_queue_close(struct aq_queue *q)
{
	if (!q)
		return;
	el_close(&q->object);
	free(q);
}

uint64_t aq_queue_item_max(const struct aq_queue *q)
{
	return q->object.block_bytes - BLOCK_HEAD_BYTES - 8;
}

static uint64_t later(uint64_t deadline_ns, uint32_t timeout_ms)
{
	return u64_max(deadline_ns, el_now_ns() + timeout_ms * 1000000ull);
}

/* ---- producers ----------------------------------------------------------- */

/* The first block that is not sealed, from where we are. */
static int find_tail(struct aq_queue *q, uint64_t deadline_ns)
{
	struct el_object *o = &q->object;
	struct el_block *b = q->has_tail ? el_find(o, q->tail) : el_next(o, 0);
	struct el_stat stat;
	int err = 0;

	if (!q->has_tail && el_find(o, 0))
		b = el_find(o, 0);
	while (b && !q->has_tail) {
		uint64_t number = b->number;
		enum block_status status;

		err = el_stat(o, number, &stat, &status, deadline_ns);
		if (err)
			return err;
		if (status == BLOCK_OK && (!(stat.flags & BLOCK_IS_SEALED) ||
					   stat.flags & BLOCK_IS_LAST)) {
			q->tail = number;
			q->has_tail = true;
		}
		b = el_next(o, number);
	}
	if (q->has_tail)
		return 0;
	err = el_grow(o,
		      o->block_count ? o->block[o->block_count - 1].number
				     : UINT64_MAX,
		      u32_max(o->block_count, 1), deadline_ns);
	return err ? err : -EAGAIN;
}

/* Goes on to the block after the tail, which is sealed or has no room. */
static int move_tail(struct aq_queue *q, bool is_sealed, uint64_t deadline_ns)
{
	struct el_object *o = &q->object;
	struct el_block *next = el_next(o, q->tail);
	struct block_result r = {.status = BLOCK_OK};
	uint64_t number;
	int err = next ? 0 : el_grow(o, q->tail, o->block_count, deadline_ns);

	if (err)
		return err;
	next = el_next(o, q->tail);
	if (!next)
		return 0; /* it comes */
	number = next->number;
	if (!is_sealed) {
		struct el_stat stat;
		enum block_status status;

		/* It must be there before nothing else takes items. */
		err = el_stat(o, number, &stat, &status, deadline_ns);
		if (!err && status == BLOCK_OK)
			err = el_tell(o, q->tail, BLOCK_SEAL, 0, &r,
				      deadline_ns);
		else if (!err)
			return 0;
	}
	if (!err && (r.status == BLOCK_OK || r.status == BLOCK_SEALED))
		q->tail = number;
	return err;
}

/* Tells the tail how many items there are before it. */
static int give_credit(struct aq_queue *q, uint64_t deadline_ns)
{
	struct el_object *o = &q->object;
	struct block_result r;
	uint64_t before = 0;

	for (struct el_block *b = el_find(o, 0) ? el_find(o, 0) : el_next(o, 0);
	     b && b->number < q->tail;) {
		uint64_t number = b->number;
		enum block_status status;
		struct el_stat stat;
		int err = el_stat(o, number, &stat, &status, deadline_ns);

		if (err && err != -ENODEV)
			return err;
		/* One that is gone was empty for ever. */
		if (!err && status == BLOCK_OK)
			before += stat.items;
		b = el_next(o, number);
	}
	return el_tell(o, q->tail, BLOCK_CREDIT, before, &r, deadline_ns);
}

/* What to do about a refusal; 0: try again. *waits: after a pause. */
static int refused(struct aq_queue *q, enum block_status status,
		   uint64_t deadline_ns, bool *waits)
{
	int err;

	switch ((int)status) {
	case BLOCK_SEALED:
		return move_tail(q, true, deadline_ns);
	case BLOCK_NO_ROOM:
		err = move_tail(q, false, deadline_ns);
		/* It may have room again when somebody has taken something. */
		*waits = err == -ENOSPC || err == -EDQUOT;
		return *waits ? 0 : err;
	case BLOCK_NO_CREDIT:
		return give_credit(q, deadline_ns);
	case BLOCK_FULL:
		*waits = true;
		return el_next(&q->object, 0) ? give_credit(q, deadline_ns) : 0;
	case BLOCK_CLOSED:
		return error_set(-EPIPE, "%s is sealed", q->object.path);
	case BLOCK_LATER:
		return 0;
	case BLOCK_TOO_LONG:
		return error_set(-EMSGSIZE,
				 "an item of %s has at most %llu bytes",
				 q->object.path,
				 (unsigned long long)aq_queue_item_max(q));
	default:
		return el_error(&q->object, status);
	}
}

static int put_some(struct aq_queue *q, const struct aq_item *items,
		    unsigned count, unsigned *done, enum block_status *status,
		    uint64_t deadline_ns)
{
	struct el_value v[BLOCK_OPS_MAX];
	int err;

	count = u32_min(count, BLOCK_OPS_MAX);
	for (unsigned i = 0; i < count; i++)
		v[i] = (struct el_value){items[i].data, items[i].len_bytes, 0};
	err = el_send(&q->object, q->tail, BLOCK_PUT, 0, v, count, done, status,
		      &q->wait_serial, deadline_ns);
	/* Items of earlier blocks count, too, but are not heard of here. */
	q->wait_at = q->tail;
	q->can_wait = !err && *status == BLOCK_FULL && q->object.block_count &&
		      q->object.block[0].number == q->tail;
	return err;
}

int aq_queue_put_many(struct aq_queue *q, const struct aq_item *items,
		      unsigned count, uint32_t timeout_ms, unsigned *done)
{
	uint64_t deadline_ns = el_deadline_ns(&q->object), wait_ns;
	enum block_status status = BLOCK_OK;
	unsigned all = 0, some, tries = 0;
	int err = 0;

	error_clear();
	wait_ns = el_now_ns() + timeout_ms * 1000000ull;
	deadline_ns = later(deadline_ns, timeout_ms);
	for (unsigned i = 0; i < count && !err; i++)
		if (items[i].len_bytes > aq_queue_item_max(q))
			err = refused(q, BLOCK_TOO_LONG, 0, NULL);
	while (all < count && !err) {
		bool waits = false;

		some = 0;
		err = q->has_tail ? 0 : find_tail(q, deadline_ns);
		if (!err)
			err = put_some(q, items + all, count - all, &some,
				       &status, deadline_ns);
		all += some;
		tries = some ? 0 : tries;
		if (err == -ENODEV)
			q->has_tail = false;
		if (err == -ENODEV || (err == -EAGAIN && !q->has_tail))
			err = el_pause(&tries, deadline_ns)
				      ? 0
				      : error_set(-ETIMEDOUT,
						  "%s did not grow in time",
						  q->object.path);
		else if (!err && status != BLOCK_OK)
			err = refused(q, status, deadline_ns, &waits);
		if (!err && waits &&
		    !wait_for(q, 1u << BLOCK_EVENT_GET | 1u << BLOCK_EVENT_ACK,
			      &tries, wait_ns, deadline_ns))
			err = status == BLOCK_NO_ROOM
				      ? error_set(-ENOSPC,
						  "%s has no room, and no node "
						  "has a block for it",
						  q->object.path)
				      : el_error(&q->object, status);
	}
	if (done)
		*done = all;
	return err;
}

int aq_queue_put(struct aq_queue *q, const void *data, size_t len_bytes,
		 uint32_t timeout_ms)
{
	const struct aq_item item = {.data = (void *)(uintptr_t)data,
				     .len_bytes = len_bytes};

	return aq_queue_put_many(q, &item, 1, timeout_ms, NULL);
}

/* ---- consumers ----------------------------------------------------------- */

/* The next block to look at; NULL: there is none yet. */
static struct el_block *find_head(struct aq_queue *q)
{
	struct el_object *o = &q->object;
	struct el_block *b = q->has_head ? el_find(o, q->head) : NULL;

	if (!b)
		b = el_find(o, 0) ? el_find(o, 0) : el_next(o, 0);
	if (b) {
		q->head = b->number;
		q->has_head = true;
	}
	return b;
}

struct get {
	struct aq_item *items;
	unsigned count;
	bool parks;
	struct aq_taken *taken; /* of the first; or NULL */
	unsigned done;
	uint32_t too_long; /* of one that does not fit */
};

static void copy_out(struct get *g, const struct block_op *op,
		     const struct block_result *r)
{
	struct aq_item *item = &g->items[g->done++];

	if (r->length)
		memcpy(item->data,
		       r->data ? r->data
			       : (const uint8_t *)(uintptr_t)op->address,
		       r->length);
	item->len_bytes = r->length;
}

static void wish(struct el_object *o, const struct get *g, unsigned at,
		 size_t *staged, struct block_op *op)
{
	size_t room = g->items[at].len_bytes;

	*op = (struct block_op){.opcode = BLOCK_GET, .arg = g->parks};
	/* Where an item goes that is not inside the answer. */
	if (room > BLOCK_INSIDE_MAX) {
		size_t n =
			u64_min(align_up(room, 8), EL_STAGING_BYTES - *staged);

		op->address = (uintptr_t)el_staging(o) + *staged;
		op->key = o->mr->rkey;
		op->length = (uint32_t)u64_min(n, room);
		*staged += n;
	}
}

/* An item that is larger than staging memory, right to where it belongs. */
static int get_large(struct aq_queue *q, uint64_t number, struct get *g,
		     struct block_result *r, uint64_t deadline_ns)
{
	struct el_object *o = &q->object;
	struct aq_item *item = &g->items[g->done];
	struct ibv_mr *mr = el_register(o, item->data, item->len_bytes);
	struct block_op op = {.opcode = BLOCK_GET, .arg = g->parks};
	int err;

	if (!mr)
		return error_set(-ENOMEM, "memory cannot be registered");
	op.address = (uintptr_t)item->data;
	op.key = mr->rkey;
	op.length = (uint32_t)item->len_bytes;
	err = el_call(o, number, &op, 1, r, deadline_ns);
	if (!err && r->status == BLOCK_OK) {
		if (r->data)
			memcpy(item->data, r->data, r->length);
		item->len_bytes = r->length;
		g->done++;
	}
	el_unregister(o, mr);
	return err;
}

/* Asks one block. *status is what became of the first that was not got. */
static int get_some(struct aq_queue *q, uint64_t number, struct get *g,
		    enum block_status *status, uint64_t deadline_ns)
{
	struct block_op op[BLOCK_OPS_MAX];
	struct block_result r[BLOCK_OPS_MAX];
	struct el_object *o = &q->object;
	unsigned i, n = u32_min(g->count - g->done, BLOCK_OPS_MAX);
	size_t staged = 0;
	int err = el_warm_up(o, number, deadline_ns);

	if (err)
		return err;
	for (i = 0; i < n; i++)
		wish(o, g, g->done + i, &staged, &op[i]);
	err = el_call(o, number, op, n, r, deadline_ns);
	if (err)
		return err;
	for (i = 0; i < n && r[i].status == BLOCK_OK; i++) {
		if (g->taken)
			*g->taken = (struct aq_taken){number, r[i].value};
		if (r[i].length > g->items[g->done].len_bytes)
			return error_set(-EPROTO, "a node sent too much");
		copy_out(g, &op[i], &r[i]);
	}
	*status = i < n ? r[i].status : BLOCK_OK;
	if (*status == BLOCK_EMPTY) {
		q->wait_at = number;
		q->wait_serial = r[i].value;
	}
	if (*status == BLOCK_TOO_LONG && !g->done &&
	    r[i].length <= g->items[0].len_bytes) {
		err = get_large(q, number, g, &r[0], deadline_ns);
		*status = r[0].status;
		if (!err && *status == BLOCK_OK && g->taken)
			*g->taken = (struct aq_taken){number, r[0].value};
		i = 0;
	}
	g->too_long = *status == BLOCK_TOO_LONG ? r[i].length : 0;
	return err;
}

/* After a look in vain: whether to look again at once. */
static int look_on(struct aq_queue *q, uint64_t *at, enum block_status status,
		   uint64_t deadline_ns, bool *again)
{
	struct el_object *o = &q->object;
	struct el_block *next = el_next(o, *at);
	int err = 0;

	*again = false;
	switch ((int)status) {
	case BLOCK_STALE: /* it was empty, and is gone */
	case BLOCK_DRAINED:
	case BLOCK_PARKED:
		if (!next || status == BLOCK_STALE) {
			err = el_refresh(o, deadline_ns);
			next = el_next(o, *at);
		}
		if (!err && next) {
			/* Parked items may come back, before all others, also
			 * of a block that we are past already. */
			if (status != BLOCK_PARKED && *at == q->head)
				q->head = next->number;
			*at = next->number;
			*again = true;
		}
		return err;
	case BLOCK_LATER: /* we were away, and what we got is for others now */
		*again = true;
		return 0;
	case BLOCK_EMPTY:
		return 0;
	case BLOCK_CLOSED:
		/* Items of a block before it may come back. */
		return *at != q->head
			       ? 0
			       : error_set(-EPIPE, "%s is sealed, and empty",
					   o->path);
	default:
		return el_error(o, status);
	}
}

/* One look at all blocks that may have something. */
static int look(struct aq_queue *q, struct get *g, uint64_t deadline_ns)
{
	enum block_status status = BLOCK_OK;
	struct el_block *b = find_head(q);
	bool again = true;
	uint64_t at;
	int err = 0;

	if (!b) {
		err = el_refresh(&q->object, deadline_ns);
		b = err ? NULL : find_head(q);
	}
	q->can_wait = false;
	if (!b)
		return err;
	at = b->number;
	while (again && !err) {
		err = get_some(q, at, g, &status, deadline_ns);
		if (err == -ENODEV) { /* it has left the map */
			q->has_head = false;
			return 0;
		}
		if (err || g->done)
			break;
		if (status == BLOCK_TOO_LONG)
			err = error_set(-EMSGSIZE,
					"the next item of %s has %u bytes",
					q->object.path, g->too_long);
		else
			err = look_on(q, &at, status, deadline_ns, &again);
		/* Items that come back to an earlier block are not heard of
		 * here. */
		q->can_wait = status == BLOCK_EMPTY && at == q->head;
	}
	return err;
}

static int get(struct aq_queue *q, struct get *g, uint32_t timeout_ms)
{
	uint64_t wait_ns = el_now_ns() + timeout_ms * 1000000ull;
	uint64_t deadline_ns = later(el_deadline_ns(&q->object), timeout_ms);
	unsigned tries = 0;
	int err = 0;

	error_clear();
	while (!err && g->count) {
		err = look(q, g, deadline_ns);
		if (err || g->done)
			break;
		/* Also its sealing, which is a mark. */
		if (!wait_for(q,
			      1u << BLOCK_EVENT_PUT | 1u << BLOCK_EVENT_BACK |
				      1u << BLOCK_EVENT_SEAL,
			      &tries, wait_ns, deadline_ns))
			err = el_error(&q->object, BLOCK_EMPTY);
	}
	return err;
}

int aq_queue_get_many(struct aq_queue *q, struct aq_item *items, unsigned count,
		      uint32_t timeout_ms, unsigned *done)
{
	struct get g = {.items = items, .count = count};
	int err = get(q, &g, timeout_ms);

	if (done)
		*done = g.done;
	if (err == -EMSGSIZE)
		items[0].len_bytes = g.too_long;
	return err;
}

int aq_queue_take(struct aq_queue *q, void *data, size_t room_bytes,
		  size_t *len_bytes, struct aq_taken *taken,
		  uint32_t timeout_ms)
{
	struct aq_item item = {.data = data, .len_bytes = room_bytes};
	struct get g = {.items = &item,
			.count = 1,
			.parks = taken != NULL,
			.taken = taken};
	int err = get(q, &g, timeout_ms);

	if (!err || err == -EMSGSIZE)
		*len_bytes = err ? g.too_long : item.len_bytes;
	return err;
}

int aq_queue_get(struct aq_queue *q, void *data, size_t room_bytes,
		 size_t *len_bytes, uint32_t timeout_ms)
{
	return aq_queue_take(q, data, room_bytes, len_bytes, NULL, timeout_ms);
}

int aq_queue_ack(struct aq_queue *q, const struct aq_taken *taken)
{
	struct block_result r;
	int err;

	error_clear();
	err = el_tell(&q->object, taken->block, BLOCK_ACK, taken->name, &r,
		      el_deadline_ns(&q->object));
	if (err)
		return err;
	return r.status == BLOCK_OK
		       ? 0
		       : error_set(-ESTALE,
				   "the item of %s is not this consumer's any "
				   "more",
				   q->object.path);
}

/* ---- both ---------------------------------------------------------------- */

int aq_queue_length(struct aq_queue *q, uint64_t *items)
{
	struct el_object *o = &q->object;
	uint64_t deadline_ns = el_deadline_ns(o);
	int err;

	error_clear();
	*items = 0;
	err = el_refresh(o, deadline_ns);
	for (struct el_block *b = el_find(o, 0) ? el_find(o, 0) : el_next(o, 0);
	     b && !err;) {
		uint64_t number = b->number;
		enum block_status status;
		struct el_stat stat;

		err = el_stat(o, number, &stat, &status, deadline_ns);
		if (!err && status == BLOCK_OK)
			*items += stat.items;
		/* One that has left was empty. */
		if (err == -ENODEV)
			err = 0;
		b = el_next(o, number);
	}
	return err;
}

int aq_queue_seal(struct aq_queue *q)
{
	uint64_t deadline_ns = el_deadline_ns(&q->object);
	struct block_result r = {.status = BLOCK_OK};
	unsigned tries = 0;
	int err;

	error_clear();
	do {
		err = q->has_tail ? 0 : find_tail(q, deadline_ns);
		if (!err)
			err = el_tell(&q->object, q->tail, BLOCK_SEAL, 1, &r,
				      deadline_ns);
		if (!err && r.status == BLOCK_SEALED)
			err = move_tail(q, true, deadline_ns);
		if (err == -EAGAIN || err == -ENODEV) {
			q->has_tail = false;
			err = 0;
			r.status = BLOCK_SEALED;
		}
	} while (!err && r.status == BLOCK_SEALED &&
		 el_pause(&tries, deadline_ns));
	return err		      ? err
	       : r.status == BLOCK_OK ? 0
				      : el_error(&q->object, r.status);
}
