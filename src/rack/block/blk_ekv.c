/* SPDX-License-Identifier: Apache-2.0 */
/* Key-value stores: what can be done to keys. A request's value begins with a
 * block_kv_wire and the key; of a change that adds bytes it is fetched to where
 * the record will lie, of all others to the scratch. */
#include "base/plant.h"
#include "blk_image.h"

/* ---- what all have ------------------------------------------------------- */

struct named {
	uint32_t slot;
	uint64_t hash;
	const uint8_t *key;
	uint32_t key_bytes;
	const uint8_t *value;
	uint32_t value_bytes;
	uint64_t version; /* that the key must have */
};

static uint32_t slot_of(const struct blk_request *r)
{
	return (uint32_t)r->arg & (BLOCK_KV_SLOTS - 1);
}

bool blk_ekv_serves(const struct blk_block *b, uint64_t slot,
		    enum block_status *status)
{
	const struct blk_ekv *e = &b->ekv;

	if (slot < e->lo || slot >= e->hi)
		*status = BLOCK_MOVED;
	else if (e->out.is_frozen && slot >= e->out.lo && slot < e->out.hi &&
		 !PLANTED(kv_no_freeze))
		*status = BLOCK_FROZEN;
	else
		return true;
	return false;
}

/* Where the value of the request is, once it is there. */
static bool parse(const struct blk_block *b, const struct blk_request *r,
		  const uint8_t *bytes, struct named *n, struct blk_answer *a)
{
	struct block_kv_wire head;

	a->status = BLOCK_BAD;
	memcpy(&head, bytes, sizeof(head));
	*n = (struct named){
		.slot = slot_of(r),
		.key = bytes + sizeof(head),
		.key_bytes = be32_get(head.key_bytes),
		.value_bytes = be32_get(head.value_bytes),
		.version = be64_get(head.version),
	};
	if ((uint64_t)n->key_bytes + n->value_bytes !=
		    r->length - sizeof(head) ||
	    (!n->key_bytes && r->opcode != BLOCK_KV_SCAN))
		return false;
	a->status = BLOCK_TOO_LONG;
	if (n->key_bytes > block_kv_key_max(b->size_bytes))
		return false;
	n->value = n->key + n->key_bytes;
	n->hash = block_kv_hash(n->key, n->key_bytes);
	a->status = BLOCK_BAD;
	if (n->key_bytes && block_kv_slot(n->hash) != n->slot)
		return false;
	a->status = BLOCK_OK;
	return true;
}

static uint8_t *scratch_place(struct blk_block *b, const struct blk_request *r,
			      struct blk_answer *a)
{
	if (!blk_ekv_serves(b, slot_of(r), &a->status))
		return NULL;
	a->status = r->length < sizeof(struct block_kv_wire) ? BLOCK_BAD
							     : BLOCK_TOO_LONG;
	return r->length >= sizeof(struct block_kv_wire) &&
			       r->length <= blk_ekv_scratch_bytes(b)
		       ? blk_ekv_scratch(b)
		       : NULL;
}

static uint8_t *record_place(struct blk_block *b, const struct blk_request *r,
			     struct blk_answer *a)
{
	uint8_t *place;

	if (!blk_ekv_serves(b, slot_of(r), &a->status))
		return NULL;
	a->status = BLOCK_BAD;
	if (r->length < sizeof(struct block_kv_wire))
		return NULL;
	place = blk_heap_reserve(b, (uint64_t)BLK_RECORD_OWN + r->length);
	/* A record must fit into a batch of its own, too. */
	a->status = r->length > b->ekv.room -
					    sizeof(struct block_kv_batch_wire) -
					    BLK_RECORD_OWN
			    ? BLOCK_TOO_LONG
			    : BLOCK_NO_ROOM;
	return place && a->status == BLOCK_NO_ROOM ? place + BLK_RECORD_OWN
						   : NULL;
}

/* Where record_place has put it. */
static const uint8_t *at_tail(const struct blk_block *b)
{
	return blk_data(b) + b->ekv.tail + BLK_RECORD_OWN;
}

static void show_use(const struct blk_block *b, struct blk_answer *a)
{
	a->length = (uint32_t)(b->ekv.live * 1000 / b->ekv.room);
}

static uint64_t version_of(const struct blk_record *r)
{
	return r ? be64_get(r->head.version) : 0;
}

static bool is_version(const struct named *n, const struct blk_record *r,
		       struct blk_answer *a)
{
	if (n->version == BLOCK_KV_ANY || n->version == version_of(r))
		return true;
	a->status = BLOCK_VERSION;
	a->value = version_of(r);
	return false;
}

/* ---- changes ------------------------------------------------------------- */

static void note(struct blk_block *b, enum block_event what, const uint8_t *key,
		 uint32_t key_bytes, uint64_t value)
{
	blk_watch_add(&b->watch, what, key_bytes, value, key, key_bytes);
}

static void set_version(struct blk_block *b, struct blk_record *r)
{
	r->head.version = be64_put(++b->ekv.clock);
}

static struct blk_record *take_tail(struct blk_block *b,
				    const struct blk_request *r,
				    const struct named *n,
				    struct blk_record *old)
{
	struct blk_record *now = blk_record_take(b, BLK_RECORD_OWN + r->length,
						 n->slot, n->hash);

	set_version(b, now);
	if (old)
		blk_record_kill(b, old);
	return now;
}

static void put(struct blk_block *b, const struct blk_request *r,
		uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	struct blk_record *old;
	struct named n;

	if (!parse(b, r, at_tail(b), &n, a))
		return;
	old = blk_record_find(b, n.hash, n.key, n.key_bytes);
	if (!is_version(&n, old, a))
		return;
	old = take_tail(b, r, &n, old);
	a->value = version_of(old);
	note(b, BLOCK_EVENT_SET, blk_record_key(old), n.key_bytes, a->value);
	done->item = n.slot;
	show_use(b, a);
}

static void delete (struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
	struct blk_record *old;
	struct named n;

	if (!parse(b, r, blk_ekv_scratch(b), &n, a))
		return;
	old = blk_record_find(b, n.hash, n.key, n.key_bytes);
	if (!old)
		a->status = BLOCK_NO_KEY;
	if (!old || !is_version(&n, old, a))
		return;
	a->value = version_of(old);
	blk_record_kill(b, old);
	note(b, BLOCK_EVENT_DELETE, n.key, n.key_bytes, a->value);
	done->item = n.slot;
	show_use(b, a);
}

/* ---- accumulating -------------------------------------------------------- */

static int64_t number_at(const uint8_t *bytes)
{
	le64 word;

	memcpy(&word, bytes, sizeof(word));
	return (int64_t)le64_get(word);
}

static int64_t combine(enum block_kv_how how, int64_t a, int64_t b)
{
	switch ((int)how) {
	case BLOCK_KV_MIN:
		return a < b ? a : b;
	case BLOCK_KV_MAX:
		return a > b ? a : b;
	default:
		return (int64_t)((uint64_t)a + (uint64_t)b);
	}
}

static void add_number(struct blk_block *b, const struct blk_request *r,
		       const struct named *n, enum block_kv_how how,
		       struct blk_answer *a)
{
	struct blk_record *old =
		blk_record_find(b, n->hash, n->key, n->key_bytes);
	int64_t sum;
	le64 word;

	if (n->value_bytes != sizeof(word) ||
	    (old && be32_get(old->head.value_bytes) != sizeof(word))) {
		a->status = BLOCK_NO_NUMBER;
		return;
	}
	sum = number_at(n->value);
	if (old)
		sum = combine(how, number_at(blk_record_value(old)), sum);
	/* Bytes that leave for a client do not change. */
	if (old && !old->pins)
		set_version(b, old);
	else
		old = take_tail(b, r, n, old);
	word = le64_put((uint64_t)sum);
	memcpy(blk_record_value(old), &word, sizeof(word));
	a->value = (uint64_t)sum;
	note(b, BLOCK_EVENT_ADD, blk_record_key(old), n->key_bytes, a->value);
}

/* The request's bytes become a record of their own until the two are one, so
 * that they are not lost when the heap is compacted. */
static void append(struct blk_block *b, const struct blk_request *r,
		   const struct named *n, struct blk_answer *a)
{
	struct blk_record *more, *old, *now;
	uint64_t bytes, old_bytes;

	old = blk_record_find(b, n->hash, n->key, n->key_bytes);
	if (!old) {
		now = take_tail(b, r, n, NULL);
		a->value = be32_get(now->head.value_bytes);
		note(b, BLOCK_EVENT_ADD, blk_record_key(now), n->key_bytes,
		     a->value);
		return;
	}
	old_bytes = be32_get(old->head.value_bytes);
	bytes = align_up(BLK_RECORD_OWN + r->length + old_bytes, 8);
	a->status = BLOCK_TOO_LONG;
	if (bytes > b->ekv.room - sizeof(struct block_kv_batch_wire))
		return;
	more = blk_record_take(b, BLK_RECORD_OWN + r->length, BLK_RECORD_STAGED,
			       n->hash);
	now = (struct blk_record *)(void *)blk_heap_reserve(b, bytes);
	more = (struct blk_record *)(void *)(blk_data(b) + b->ekv.tail -
					     align_up(BLK_RECORD_OWN +
							      r->length,
						      8));
	a->status = now ? BLOCK_OK : BLOCK_NO_ROOM;
	if (!now) {
		blk_record_kill(b, more);
		return;
	}
	old = blk_record_find(b, n->hash, blk_record_key(more), n->key_bytes);
	now->head = old->head;
	now->head.value_bytes = be32_put((uint32_t)old_bytes + n->value_bytes);
	memcpy(blk_record_key(now), blk_record_key(old), n->key_bytes);
	memcpy(blk_record_value(now), blk_record_value(old), old_bytes);
	memcpy(blk_record_value(now) + old_bytes, blk_record_value(more),
	       n->value_bytes);
	now = blk_record_take(b, (uint32_t)bytes, n->slot, n->hash);
	set_version(b, now);
	blk_record_kill(b, old);
	blk_record_kill(b, more);
	a->value = old_bytes + n->value_bytes;
	note(b, BLOCK_EVENT_ADD, blk_record_key(now), n->key_bytes, a->value);
}

static void add(struct blk_block *b, const struct blk_request *r,
		uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	uint64_t how = r->arg >> BLOCK_KV_HOW_SHIFT;
	struct named n;

	if (!parse(b, r, at_tail(b), &n, a))
		return;
	if (how >= BLOCK_KV_HOWS)
		a->status = BLOCK_BAD;
	else if (how == BLOCK_KV_APPEND)
		append(b, r, &n, a);
	else
		add_number(b, r, &n, (enum block_kv_how)how, a);
	done->item = n.slot;
	show_use(b, a);
}

/* ---- reading ------------------------------------------------------------- */

static void get(struct blk_block *b, const struct blk_request *r,
		uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	struct blk_record *found;
	struct named n;

	if (!parse(b, r, blk_ekv_scratch(b), &n, a))
		return;
	found = blk_record_find(b, n.hash, n.key, n.key_bytes);
	if (!found) {
		a->status = BLOCK_NO_KEY;
		return;
	}
	a->length = be32_get(found->head.value_bytes);
	a->status = blk_way(r, a->length);
	if (a->status != BLOCK_OK)
		return;
	a->value = version_of(found);
	a->data = blk_record_value(found);
	a->pins = &found->pins;
}

/* The order of scans. */
static int compare(struct blk_record *r, uint64_t hash, const uint8_t *key,
		   uint32_t key_bytes)
{
	uint32_t mine = blk_record_key_bytes(r);
	int c;

	if (r->hash != hash)
		return r->hash < hash ? -1 : 1;
	c = memcmp(blk_record_key(r), key, u32_min(mine, key_bytes));
	return c ? c : mine < key_bytes ? -1 : mine > key_bytes;
}

/* The first one of the slot behind a key. */
static struct blk_record *next_of(const struct blk_block *b, uint32_t slot,
				  const struct named *after)
{
	struct blk_record *r = blk_record_at(b, b->ekv.slot[slot]);
	struct blk_record *best = NULL;

	for (; r; r = blk_record_at(b, r->slot_next)) {
		if (after->key_bytes &&
		    compare(r, after->hash, after->key, after->key_bytes) <= 0)
			continue;
		if (!best || compare(r, best->hash, blk_record_key(best),
				     blk_record_key_bytes(best)) < 0)
			best = r;
	}
	return best;
}

/* Adds entries of a slot behind a key; -> the first that has no room. */
static struct blk_record *scan_slot(const struct blk_block *b, uint32_t slot,
				    struct named *after, uint32_t limit,
				    struct blk_answer *a)
{
	uint8_t *out = blk_ekv_scratch(b);
	struct blk_record *r;

	while ((r = next_of(b, slot, after))) {
		uint32_t n = (uint32_t)(sizeof(r->head) +
					align_up(blk_record_key_bytes(r), 8));

		if (n > limit - a->length)
			return r;
		memset(out + a->length + n - 8, 0, 8);
		memcpy(out + a->length, &r->head,
		       sizeof(r->head) + blk_record_key_bytes(r));
		a->length += n;
		after->hash = r->hash;
		after->key = blk_record_key(r);
		after->key_bytes = blk_record_key_bytes(r);
	}
	return NULL;
}

static void scan(struct blk_block *b, const struct blk_request *r,
		 uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	uint32_t limit = u32_min(u32_min(BLOCK_BATCH_MAX, r->inside_room),
				 blk_ekv_scratch_bytes(b)) &
			 ~7u;
	struct blk_record *cut = NULL;
	enum block_status unused;
	uint8_t *key = NULL;
	struct named n;
	uint32_t slot;

	if (!parse(b, r, blk_ekv_scratch(b), &n, a))
		return;
	/* The answer goes where the key is: a key of a record stays. */
	if (n.key_bytes) {
		struct blk_record *mine =
			blk_record_find(b, n.hash, n.key, n.key_bytes);
		uint32_t keep = (uint32_t)align_up(n.key_bytes, 8);

		if (mine) {
			n.key = blk_record_key(mine);
		} else {
			key = blk_ekv_scratch(b) + blk_ekv_scratch_bytes(b) -
			      n.key_bytes;
			memmove(key, n.key, n.key_bytes);
			n.key = key;
			limit = limit > keep + 8 ? limit - keep - 8 : 0;
		}
	}
	for (slot = n.slot; slot < BLOCK_KV_SLOTS && !cut; slot++) {
		if (!blk_ekv_serves(b, slot, &unused))
			break;
		cut = scan_slot(b, slot, &n, limit, a);
		n.key_bytes = cut ? n.key_bytes : 0;
	}
	a->value = cut ? BLOCK_KV_MORE : slot;
	a->data = blk_ekv_scratch(b);
	a->is_inside = true;
	if (!cut || a->length)
		return;
	/* One long key alone, from where it lies. */
	a->length = (uint32_t)sizeof(cut->head) + blk_record_key_bytes(cut);
	a->status = blk_way(r, a->length);
	a->data = a->status == BLOCK_OK ? (const uint8_t *)&cut->head : NULL;
	a->pins = &cut->pins;
	a->is_inside = false;
}

/* ---- the rest ------------------------------------------------------------ */

static void nothing(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
}

/* Only one that has nothing, and gets nothing. */
static void seal(struct blk_block *b, const struct blk_request *r,
		 uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	const struct blk_ekv *e = &b->ekv;

	if (e->lo != e->hi || e->in.generation || e->out.generation) {
		a->status = BLOCK_NO_ROOM;
		return;
	}
	blk_note_sealed(b, false);
	blk_head_write(b, 0, 0);
}

static void stat(const struct blk_block *b, struct block_stat_wire *out)
{
	out->end = be64_put(b->ekv.live);
	out->items = be64_put(b->ekv.items);
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

static bool is_drained(const struct blk_block *b)
{
	return b->ekv.lo == b->ekv.hi;
}

const struct blk_kind blk_kind_ekv = {
	.id = BLOCK_EKV,
	.name = "ekv",
	.is_unordered = true,
	.op =
		{
			[BLOCK_STAT] = {.run = nothing},
			[BLOCK_SEAL] = {.run = seal},
			[BLOCK_KV_GET] = {.place = scratch_place, .run = get},
			[BLOCK_KV_PUT] = {.is_change = true,
					  .place = record_place,
					  .run = put},
			[BLOCK_KV_DELETE] = {.is_change = true,
					     .place = scratch_place,
					     .run = delete},
			[BLOCK_KV_ADD] = {.is_change = true,
					  .place = record_place,
					  .run = add},
			[BLOCK_KV_SCAN] = {.place = scratch_place, .run = scan},
			[BLOCK_KV_LOOK] = {.run = blk_ekv_look},
			[BLOCK_KV_BIND] = {.place = blk_ekv_end_place,
					   .run = blk_ekv_bind},
			[BLOCK_KV_START] = {.place = blk_ekv_end_place,
					    .run = blk_ekv_start},
			[BLOCK_KV_EXPORT] = {.place = blk_ekv_end_place,
					     .run = blk_ekv_export},
			[BLOCK_KV_IMPORT] = {.place = blk_ekv_import_place,
					     .run = blk_ekv_import},
			[BLOCK_KV_SETTLE] = {.place = blk_ekv_end_place,
					     .run = blk_ekv_settle},
			[BLOCK_KV_UNBIND] = {.run = blk_ekv_unbind},
		},
	.again = again,
	.forget = forget,
	.leave = leave,
	.stat = stat,
	.save = blk_ekv_save,
	.load = blk_ekv_load,
	.is_drained = is_drained,
};
