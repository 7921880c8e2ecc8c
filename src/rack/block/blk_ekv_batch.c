/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: slots that move, with their records and the answers to changes of
 * them. The parts of a batch have numbers: 0 are all answers, then come the
 * records in the order of their slots' lists, which does not change while they
 * are frozen. What is small is put together in the scratch; a large record
 * leaves alone from where it lies. A mover that can read the block is told
 * where records are instead.
 */
#include "base/plant.h"
#include "blk.h"

enum {
	SLOTS_MAX = 1024, /* of a batch */
	HEAD = sizeof(struct block_kv_batch_wire),
	EACH = sizeof(struct block_kv_answer_wire),
};

/* ---- giving -------------------------------------------------------------- */

static uint64_t slot_bytes(const struct blk_block *b, uint32_t slot)
{
	uint64_t sum = 0;

	for (const struct blk_record *r = blk_record_at(b, b->ekv.slot[slot]);
	     r; r = blk_record_at(b, r->slot_next))
		sum += r->size;
	return sum;
}

static bool is_within(const struct blk_done *d, const struct blk_ekv_out *o)
{
	return d->item >= o->lo && d->item < o->hi;
}

static unsigned count_answers(const struct blk_block *b)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < b->session_room; i++) {
		const struct blk_session *s = &b->session[i];

		for (uint32_t k = 0; s->is_used && k < s->count; k++)
			n += is_within(&s->done[(s->first + k) % BLK_ANSWERS],
				       &b->ekv.out);
	}
	return n;
}

/* Chooses the slots that leave next, some with so many bytes; false: too many
 * clients have not acknowledged their answers. */
static bool freeze(struct blk_block *b, uint32_t limit, uint32_t most_bytes)
{
	struct blk_ekv *e = &b->ekv;
	struct blk_ekv_out *o = &e->out;
	uint32_t left = e->hi - e->lo, n = 0;
	uint64_t bytes = 0;

	if (!o->is_all)
		left--;
	while (n < left && n < SLOTS_MAX) {
		bytes +=
			slot_bytes(b, o->is_bottom ? e->lo + n : e->hi - 1 - n);
		if (n && bytes > most_bytes)
			break;
		n++;
	}
	for (;; n /= 2) {
		o->lo = o->is_bottom ? e->lo : e->hi - n;
		o->hi = o->lo + n;
		if (HEAD + count_answers(b) * EACH <= limit)
			break;
		if (n == 1)
			return false;
	}
	o->is_frozen = true;
	o->batch++;
	blk_watch_mark(&b->watch, BLOCK_MARK_GOES, o->number, o->generation);
	o->serial = PLANTED(watch_any_order) ? 0 : b->watch.serial;
	return true;
}

static unsigned put_answers(const struct blk_block *b, uint8_t *out)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < b->session_room; i++) {
		const struct blk_session *s = &b->session[i];

		for (uint32_t k = 0; s->is_used && k < s->count; k++) {
			const struct blk_done *d =
				&s->done[(s->first + k) % BLK_ANSWERS];
			struct block_kv_answer_wire w = {
				.acked = be64_put(s->acked),
				.sequence = be64_put(d->sequence),
				.value = be64_put(d->value),
				.slot = be32_put((uint32_t)d->item),
			};

			if (!is_within(d, &b->ekv.out) ||
			    PLANTED(kv_no_answers))
				continue;
			memcpy(w.session, s->id, sizeof(w.session));
			memcpy(out + n++ * EACH, &w, sizeof(w));
		}
	}
	return n;
}

/* Records from a part on, as many as fit. *large is the first, where it does
 * not. Returns how many there are in all. */
static uint32_t put_records(const struct blk_block *b, uint32_t from,
			    uint32_t limit, struct block_kv_batch_wire *head,
			    uint8_t *out, uint32_t *used,
			    struct blk_record **large)
{
	const struct blk_ekv_out *o = &b->ekv.out;
	uint32_t part = 1, taken = 0;
	bool is_full = false;

	for (uint32_t s = o->lo; s < o->hi; s++) {
		struct blk_record *r = blk_record_at(b, b->ekv.slot[s]);

		for (; r; r = blk_record_at(b, r->slot_next), part++) {
			if (part < from || is_full)
				continue;
			is_full = r->size > limit - *used;
			if (is_full) {
				*large = taken ? NULL : r;
				continue;
			}
			memset(out + *used, 0, BLK_RECORD_OWN);
			memcpy(out + *used + BLK_RECORD_OWN, &r->head,
			       r->size - BLK_RECORD_OWN);
			*used += r->size;
			taken++;
		}
	}
	head->records = be32_put(taken);
	return part;
}

/* Bytes of a batch that the mover puts together itself. The target must have
 * room for all of it behind its last record. */
static uint32_t list_bytes(const struct blk_block *b)
{
	return (uint32_t)u64_min(BLOCK_KV_LIST_MAX, b->ekv.room / 8);
}

/* Where records are, from a part on. *whole has bytes of the batch already.
 * Returns how many there are in all. */
static uint32_t put_list(const struct blk_block *b, uint32_t from,
			 uint32_t limit, uint32_t whole,
			 struct block_kv_batch_wire *head, uint8_t *out,
			 uint32_t *used, struct blk_record **large)
{
	const struct blk_ekv_out *o = &b->ekv.out;
	uint32_t part = 1, taken = 0;
	bool is_full = false;

	for (uint32_t s = o->lo; s < o->hi; s++) {
		struct blk_record *r = blk_record_at(b, b->ekv.slot[s]);

		for (; r; r = blk_record_at(b, r->slot_next), part++) {
			struct block_kv_listed_wire w = {
				.at8 = be32_put((
					uint32_t)(((uint8_t *)r - b->mem) / 8)),
				.size = be32_put(r->size)};

			if (part < from || is_full)
				continue;
			is_full = *used + sizeof(w) > limit ||
				  r->size > 2 * list_bytes(b) - whole;
			if (is_full) {
				*large = taken ? NULL : r;
				continue;
			}
			memcpy(out + *used, &w, sizeof(w));
			*used += sizeof(w);
			whole += r->size;
			taken++;
		}
	}
	head->room[0] = be64_put((uintptr_t)b->mem);
	head->room[1] = be64_put(b->ekv.moves);
	head->records = be32_put(taken);
	return part;
}

static void give(struct blk_block *b, const struct blk_request *r,
		 uint32_t from, uint32_t limit, struct blk_answer *a)
{
	const struct blk_ekv_out *o = &b->ekv.out;
	uint8_t *out = blk_ekv_scratch(b);
	struct block_kv_batch_wire head = {
		.lo = be32_put(o->lo),
		.hi = be32_put(o->hi),
		.first = be32_put(from),
		.clock = be64_put(b->ekv.clock),
		.number = be64_put(o->batch),
		.serial = be64_put(o->serial),
	};
	struct blk_record *large = NULL;
	unsigned answers = from ? 0 : put_answers(b, out + HEAD);

	a->length = HEAD + answers * EACH;
	head.answers = be32_put(answers);
	if (r->arg & BLOCK_KV_LIST) {
		head.parts =
			be32_put(put_list(b, u32_max(from, 1), limit, a->length,
					  &head, out, &a->length, &large));
		a->value = BLOCK_KV_LISTED;
	} else {
		head.parts =
			be32_put(put_records(b, u32_max(from, 1), limit, &head,
					     out, &a->length, &large));
	}
	memcpy(out, &head, sizeof(head));
	a->data = out;
	a->is_inside = true;
	if (!large || !from)
		return;
	a->length = large->size;
	a->status = blk_way(r, a->length);
	a->data = a->status == BLOCK_OK ? (const uint8_t *)large : NULL;
	a->value = BLOCK_KV_SINGLE;
	a->pins = &large->pins;
	a->is_inside = false;
}

void blk_ekv_export(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
	const struct blk_ekv_out *o = &b->ekv.out;
	uint32_t limit = u32_min(u32_min(BLOCK_BATCH_MAX, r->inside_room),
				 blk_ekv_scratch_bytes(b)) &
			 ~7u;

	a->status = BLOCK_STALE;
	if (!blk_ekv_is_under_way(b))
		return;
	a->status = BLOCK_LATER;
	if (limit < HEAD + EACH ||
	    (!o->is_frozen &&
	     !freeze(b, limit,
		     r->arg & BLOCK_KV_LIST ? list_bytes(b) : limit / 2)) ||
	    (!(uint32_t)r->arg && HEAD + count_answers(b) * EACH > limit))
		return;
	a->status = BLOCK_OK;
	give(b, r, (uint32_t)r->arg, limit, a);
}

/* ---- taking -------------------------------------------------------------- */

void blk_ekv_unstage(struct blk_block *b)
{
	struct blk_ekv *e = &b->ekv;

	for (uint64_t at = 0; e->in.staged && at < e->tail;) {
		struct blk_record *r =
			(struct blk_record *)(void *)(blk_data(b) + at);

		if (r->slot == BLK_RECORD_STAGED)
			blk_record_kill(b, r);
		at += r->size;
	}
	e->in.staged = 0;
}

static void refuse(struct blk_block *b, uint64_t batch, struct blk_answer *a)
{
	blk_ekv_unstage(b);
	b->ekv.in.batch = batch;
	b->ekv.in.was_refused = true;
	a->status = BLOCK_REFUSED;
}

/* True: the answer is known. */
static bool is_decided(const struct blk_ekv_in *in, const struct blk_request *r,
		       struct blk_answer *a)
{
	uint64_t batch = r->arg & (BLOCK_KV_HAS - 1);

	if ((!in->generation || in->token != r->arg >> 32) &&
	    !PLANTED(kv_any_token)) {
		a->status = BLOCK_STALE;
		return true;
	}
	if (batch > in->batch || PLANTED(kv_any_token))
		return false;
	a->status = batch < in->batch ? BLOCK_STALE
		    : in->was_refused ? BLOCK_REFUSED
				      : BLOCK_OK;
	a->value = BLOCK_KV_DONE;
	return true;
}

uint8_t *blk_ekv_import_place(struct blk_block *b, const struct blk_request *r,
			      struct blk_answer *a)
{
	uint8_t *place;

	if (is_decided(&b->ekv.in, r, a))
		return NULL;
	a->status = BLOCK_BAD;
	if (r->length < HEAD || r->length % 8)
		return NULL;
	place = blk_heap_reserve(b, r->length);
	if (!place)
		refuse(b, r->arg & (BLOCK_KV_HAS - 1), a);
	return place;
}

struct batch {
	uint32_t lo, hi, first, parts, answers, records;
	uint64_t number, clock, serial;
	uint32_t bytes;
	uint8_t *at; /* the whole of it */
};

static uint32_t record_bytes(const struct block_kv_wire *head)
{
	return (uint32_t)align_up((uint64_t)BLK_RECORD_BYTES +
					  be32_get(head->key_bytes) +
					  be32_get(head->value_bytes),
				  8);
}

/* Whether the records are what the head says. */
static bool are_records(const struct blk_block *b, const struct batch *t)
{
	uint64_t at = HEAD + (uint64_t)t->answers * EACH;

	for (uint32_t i = 0; i < t->records; i++) {
		const struct block_kv_record_wire *w;
		uint32_t key_bytes;
		uint64_t slot;

		if (at + sizeof(*w) > t->bytes)
			return false;
		w = (const void *)(t->at + at);
		key_bytes = be32_get(w->head.key_bytes);
		if (!key_bytes || key_bytes > block_kv_key_max(b->size_bytes) ||
		    be32_get(w->head.value_bytes) > b->ekv.room ||
		    at + record_bytes(&w->head) > t->bytes)
			return false;
		slot = block_kv_slot(block_kv_hash(w + 1, key_bytes));
		if (slot < t->lo || slot >= t->hi)
			return false;
		at += record_bytes(&w->head);
	}
	return at == t->bytes;
}

static bool parse(const struct blk_block *b, const struct blk_request *r,
		  struct batch *t)
{
	const struct blk_ekv *e = &b->ekv;
	struct block_kv_batch_wire w;

	t->at = blk_data(b) + e->tail;
	t->bytes = r->length;
	memcpy(&w, t->at, sizeof(w));
	t->lo = be32_get(w.lo);
	t->hi = be32_get(w.hi);
	t->first = be32_get(w.first);
	t->parts = be32_get(w.parts);
	t->answers = be32_get(w.answers);
	t->records = be32_get(w.records);
	t->number = be64_get(w.number);
	t->clock = be64_get(w.clock);
	t->serial = be64_get(w.serial);
	return t->lo < t->hi && t->hi <= BLOCK_KV_SLOTS &&
	       t->number == (r->arg & (BLOCK_KV_HAS - 1)) &&
	       t->answers <= r->length / EACH &&
	       (t->first ? !t->answers : true) && are_records(b, t);
}

/* A block has slots that follow each other. */
static bool is_adjacent(const struct blk_ekv *e, const struct batch *t)
{
	return e->lo == e->hi || t->hi == e->lo || t->lo == e->hi;
}

/* False: there is no room for one more session. */
static bool take_answers(struct blk_block *b, const struct batch *t)
{
	for (uint32_t i = 0; i < t->answers; i++) {
		struct block_kv_answer_wire w;
		struct blk_done d = {0};
		struct blk_session *s;
		uint32_t at;

		memcpy(&w, t->at + HEAD + i * EACH, sizeof(w));
		if (blk_session_find(b, w.session, false, &at)) {
			if (blk_session_find(b, w.session, true, &at))
				return false;
			b->session[at].has_come = true;
		}
		s = &b->session[at];
		d.sequence = be64_get(w.sequence);
		d.value = be64_get(w.value);
		d.item = be32_get(w.slot);
		blk_session_acked(b, s, be64_get(w.acked));
		if (d.sequence > s->acked &&
		    d.sequence + BLK_ANSWERS > s->last &&
		    !blk_session_done(s, d.sequence))
			blk_session_keep_any(s, &d);
	}
	return true;
}

/* What lies at the heap's end becomes records. */
static void take_records(struct blk_block *b, const struct batch *t,
			 bool is_whole)
{
	uint32_t own = HEAD + t->answers * EACH;

	(void)blk_record_take(b, own, BLK_RECORD_DEAD, 0);
	for (uint32_t i = 0; i < t->records; i++) {
		struct blk_record *r =
			(struct blk_record *)(void *)(blk_data(b) +
						      b->ekv.tail);
		uint64_t hash = block_kv_hash(blk_record_key(r),
					      blk_record_key_bytes(r));

		(void)blk_record_take(b, record_bytes(&r->head),
				      is_whole ? block_kv_slot(hash)
					       : BLK_RECORD_STAGED,
				      hash);
	}
}

static void link_staged(struct blk_block *b)
{
	for (uint64_t at = 0; at < b->ekv.tail;) {
		struct blk_record *r =
			(struct blk_record *)(void *)(blk_data(b) + at);

		if (r->slot == BLK_RECORD_STAGED)
			blk_record_link(b, r, block_kv_slot(r->hash));
		at += r->size;
	}
}

/* The slots are ours. */
static void accept(struct blk_block *b, const struct batch *t)
{
	struct blk_ekv *e = &b->ekv;

	if (e->lo == e->hi) {
		e->lo = t->lo;
		e->hi = t->hi;
	} else if (t->hi == e->lo) {
		e->lo = t->lo;
	} else {
		e->hi = t->hi;
	}
	if (!PLANTED(kv_old_clock))
		e->clock = u64_max(e->clock, t->clock);
	e->in.batch = t->number;
	e->in.was_refused = false;
	e->in.staged = 0;
	if (!PLANTED(watch_no_mark))
		blk_watch_mark(&b->watch, BLOCK_MARK_CAME, t->serial,
			       e->in.generation);
}

void blk_ekv_import(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
	struct blk_ekv_in *in = &b->ekv.in;
	uint32_t parts;
	struct batch t;

	a->status = BLOCK_BAD;
	if (!parse(b, r, &t) ||
	    (in->staged == t.number && (in->lo != t.lo || in->hi != t.hi)))
		return;
	if (in->staged != t.number) {
		blk_ekv_unstage(b);
		in->staged = t.number;
		in->have = 0;
		in->lo = t.lo;
		in->hi = t.hi;
	}
	if (!is_adjacent(&b->ekv, &t)) {
		refuse(b, t.number, a);
		return;
	}
	a->status = BLOCK_OK;
	a->value = in->have;
	if (t.first != in->have && !PLANTED(kv_part_again))
		return;
	parts = t.records + !t.first;
	if (!take_answers(b, &t)) {
		refuse(b, t.number, a);
		return;
	}
	take_records(b, &t, parts == t.parts);
	in->have += parts;
	a->value = in->have;
	if (in->have < t.parts && !PLANTED(kv_early))
		return;
	if (parts != t.parts)
		link_staged(b);
	accept(b, &t);
	a->value = BLOCK_KV_DONE;
}
