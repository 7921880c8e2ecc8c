/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of an object are watched, and from where. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_watch_priv.h"

enum {
	MAP_MS = 5, /* between two looks at the map, at first */
	MAP_MAX_MS = 200,
};

static struct el_tail *tail_at(const struct aq_watch *w, unsigned i)
{
	return container_of(w->reader.tail[i], struct el_tail, tail);
}

static bool is_known(const struct aq_watch *w, uint64_t generation)
{
	for (unsigned i = 0; i < w->reader.count; i++)
		if (w->reader.tail[i]->generation == generation)
			return true;
	return false;
}

static void free_tail(struct el_tail *t)
{
	free(t->tail.bytes);
	free(t);
}

/* From its first event on. */
static int add(struct aq_watch *w, const struct el_block *b,
	       struct el_tail **out)
{
	struct block_reader *r = &w->reader;
	struct el_tail *t;
	int err;

	if (r->count == w->tail_room) {
		unsigned room = 2 * w->tail_room + 8;
		struct block_tail **more =
			realloc(r->tail, room * sizeof(*more));

		if (!more)
			return error_set(-ENOMEM, "no memory for events");
		r->tail = more;
		w->tail_room = room;
	}
	t = calloc(1, sizeof(*t));
	if (t)
		t->tail.bytes = malloc(BLOCK_REPLY_MAX);
	if (!t || !t->tail.bytes) {
		free(t);
		return error_set(-ENOMEM, "no memory for events");
	}
	t->block = *b;
	t->tail.number = b->number;
	t->tail.generation = b->generation;
	t->tail.is_started = true;
	err = el_ear_find(w, b->reader.node, &t->ear);
	if (err) {
		free_tail(t);
		return err;
	}
	r->tail[r->count++] = &t->tail;
	if (out)
		*out = t;
	return 0;
}

/* ---- the beginning ------------------------------------------------------- */

/* What comes from now on. *flags are the block's; -ESTALE: it is gone. */
static int begin_now(struct aq_watch *w, const struct el_block *b,
		     uint32_t *flags, uint64_t deadline_ns)
{
	struct block_watch_ask_wire ask = {.serial = be64_put(BLOCK_WATCH_NOW)};
	struct block_op op = {.opcode = BLOCK_WATCH,
			      .length = sizeof(ask),
			      .value = (const uint8_t *)&ask};
	uint64_t number = b->number;
	struct el_block copy = *b;
	struct block_watch_wire head;
	struct block_result r;
	struct el_tail *t;
	int err = el_call_once(&w->object, number, &op, 1, &r, 0, deadline_ns);

	if (!err && r.status == BLOCK_DENIED)
		err = el_call_as(&w->object, number, &op, 1, &r, 0,
				 deadline_ns);
	*flags = 0;
	if (err == -ENODEV || (!err && r.status == BLOCK_STALE))
		return -ESTALE;
	if (err)
		return err;
	if (el_find(&w->object, number))
		copy = *el_find(&w->object, number); /* who has answered */
	if (r.status == BLOCK_BUSY)		     /* it is not made yet */
		return add(w, &copy, NULL);
	if (r.status != BLOCK_OK || !r.data || r.length < sizeof(head))
		return el_error(&w->object, r.status);
	memcpy(&head, r.data, sizeof(head));
	*flags = be32_get(head.flags);
	err = add(w, &copy, &t);
	if (err)
		return err;
	t->tail.is_started = false;
	err = block_tail_take(&t->tail, r.data, r.length);
	return err ? error_set(err, "a node answered something else") : 0;
}

/* All that is missing, each from its first event on. */
static int add_all(struct aq_watch *w)
{
	struct el_object *o = &w->object;
	int err = 0;

	for (unsigned i = 0; i < o->block_count && !err; i++)
		if (!is_known(w, o->block[i].generation))
			err = add(w, &o->block[i], NULL);
	return err;
}

/* What is made after the second look at the map is told of by the blocks whose
 * slots it gets. */
static int start_store(struct aq_watch *w, uint64_t deadline_ns)
{
	struct el_object *o = &w->object;
	int err = 0;

	for (unsigned i = 0; i < o->block_count && !err; i++) {
		uint32_t flags;

		err = begin_now(w, &o->block[i], &flags, deadline_ns);
		if (err == -ESTALE)
			err = 0;
	}
	if (!err)
		err = el_refresh(o, deadline_ns);
	return err ? err : add_all(w);
}

/* Blocks up to the first that is not sealed; of a file only that one. */
static int start_row(struct aq_watch *w, uint64_t deadline_ns)
{
	struct el_object *o = &w->object;
	int err = 0;

	for (unsigned i = 0; i < o->block_count; i++) {
		uint32_t flags;

		err = begin_now(w, &o->block[i], &flags, deadline_ns);
		if (err == -ESTALE)
			continue;
		if (err)
			return err;
		if (!(flags & BLOCK_IS_SEALED) || (flags & BLOCK_IS_LAST))
			return 0;
		tail_at(w, w->reader.count - 1)->tail.is_sealed = true;
	}
	return 0;
}

int el_tails_start(struct aq_watch *w, uint64_t deadline_ns)
{
	int err = w->object.kind == BLOCK_EKV ? start_store(w, deadline_ns)
					      : start_row(w, deadline_ns);

	el_tails_sweep(w);
	if (!w->reader.count)
		w->map_ns = 1;
	return err;
}

/* ---- what follows -------------------------------------------------------- */

static struct el_tail *last_of(const struct aq_watch *w)
{
	struct el_tail *last = NULL;

	for (unsigned i = 0; i < w->reader.count; i++)
		if (!last || tail_at(w, i)->tail.number > last->tail.number)
			last = tail_at(w, i);
	return last;
}

/* The block after the last one, once that is sealed; the first, if there was
 * none. */
static int follow_row(struct aq_watch *w, bool *has_more)
{
	struct el_object *o = &w->object;
	struct el_tail *last = last_of(w);
	struct el_block *next;
	int err;

	if (last && !last->tail.is_sealed && !last->tail.is_gone)
		return 0;
	if (last)
		next = el_next(o, last->tail.number);
	else
		next = o->block_count ? &o->block[0] : NULL;
	if (!next) {
		if (!w->map_ns)
			w->map_ns = 1;
		return 0;
	}
	err = add(w, next, NULL);
	*has_more = !err;
	w->map_tries = 0;
	return err;
}

static int follow_store(struct aq_watch *w, bool *has_more)
{
	struct block_reader *r = &w->reader;
	unsigned before = r->count;
	int err = add_all(w);

	*has_more = r->count > before;
	if (!r->count && !w->map_ns)
		w->map_ns = 1;
	return err;
}

static int look_at_map(struct aq_watch *w, bool *looked)
{
	uint64_t now_ns = el_now_ns();
	uint64_t ms = u64_min((uint64_t)MAP_MS << u32_min(w->map_tries, 6),
			      MAP_MAX_MS);
	int err;

	*looked = false;
	if (!w->reader.wants_map && (!w->map_ns || now_ns < w->map_ns))
		return 0;
	err = el_refresh(&w->object, el_deadline_ns(&w->object));
	/* Without a controller nothing new comes. */
	if (err == -EHOSTDOWN || err == -ETIMEDOUT || err == -EAGAIN) {
		w->map_ns = now_ns + ms * 1000000;
		w->map_tries++;
		return -EAGAIN;
	}
	w->map_ns = 0;
	*looked = !err;
	return err;
}

void el_tail_lose(struct aq_watch *w, struct el_tail *t)
{
	uint64_t ms = u64_min((uint64_t)MAP_MS << u32_min(w->map_tries, 6),
			      MAP_MAX_MS);

	if (t->is_away || t->tail.is_gone)
		return;
	t->is_away = true;
	if (!w->map_ns) {
		w->map_ns = el_now_ns() + ms * 1000000;
		w->map_tries++;
	}
}

static const struct el_block *block_of(const struct el_object *o,
				       uint64_t generation)
{
	for (unsigned i = 0; i < o->block_count; i++)
		if (o->block[i].generation == generation)
			return &o->block[i];
	return NULL;
}

/* After a look at the map: who tells their events now. */
static int find_away(struct aq_watch *w, bool *has_more)
{
	int err = 0;

	for (unsigned i = 0; i < w->reader.count && !err; i++) {
		struct el_tail *t = tail_at(w, i);
		const struct el_block *b;

		if (!t->is_away)
			continue;
		b = block_of(&w->object, t->tail.generation);
		t->is_away = false;
		*has_more = true;
		if (!b) {
			block_tail_end(&t->tail, false, 0);
			continue;
		}
		t->block = *b;
		err = el_ear_find(w, b->reader.node, &t->ear);
	}
	return err;
}

int el_tails_follow(struct aq_watch *w, bool *has_more)
{
	struct block_reader *r = &w->reader;
	bool looked, wants = r->wants_map;
	uint64_t due_ns = w->map_ns;
	int err = look_at_map(w, &looked);

	*has_more = false;
	if (err)
		return err == -EAGAIN ? 0 : err;
	err = w->object.kind == BLOCK_EKV ? follow_store(w, has_more)
					  : follow_row(w, has_more);
	if (!err && looked)
		err = find_away(w, has_more);
	if (!err && wants && !is_known(w, r->wanted)) {
		r->is_known_gone = true;
		*has_more = true;
	}
	/* It was looked at just now. */
	if (!err && w->map_ns == 1 && due_ns) {
		w->map_ns =
			el_now_ns() +
			u64_min((uint64_t)MAP_MS << u32_min(w->map_tries++, 6),
				MAP_MAX_MS) *
				1000000;
	}
	return err;
}

/* A store's stay as names: marks of others mention them. */
void el_tails_sweep(struct aq_watch *w)
{
	struct block_reader *r = &w->reader;
	const struct el_tail *last = last_of(w);
	unsigned kept = 0;

	for (unsigned i = 0; i < r->count; i++) {
		struct el_tail *t = tail_at(w, i);
		const struct block_tail *b = &t->tail;
		bool is_over = b->is_gone ||
			       (b->is_sealed && w->object.kind == BLOCK_FILE);

		if (is_over && b->at == b->end && !b->has_lost && t != last &&
		    w->object.kind != BLOCK_EKV && !t->ear->is_asked)
			free_tail(t);
		else
			r->tail[kept++] = r->tail[i];
	}
	r->count = kept;
	r->turn = 0;
}

void el_tails_free(struct aq_watch *w)
{
	for (unsigned i = 0; i < w->reader.count; i++)
		free_tail(tail_at(w, i));
	free(w->reader.tail);
}
