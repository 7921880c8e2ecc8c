/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation does with the shards of its page: which it asks for, when
 * it is complete, and what it does about those that are lost or damaged.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "page_priv.h"

/* Few are set, and the processor's own instruction is not assumed. */
static inline unsigned count(unsigned bits)
{
	unsigned n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

/* Where a shard lies: the data shards make up the page; copies are the page. */
static uint8_t *place(const struct page_store *s, const struct page_slot *slot,
		      unsigned shard)
{
	if (s->o.data == 1)
		return slot->data;
	if (shard < s->o.data)
		return slot->data + shard * s->shard_bytes;
	return slot->stage + s->o.page_bytes +
	       (shard - s->o.data) * s->shard_bytes;
}

static void places(const struct page_store *s, const struct page_slot *slot,
		   uint8_t *shard[PAGE_SHARDS_MAX])
{
	for (unsigned i = 0; i < s->shards; i++)
		shard[i] = place(s, slot, i);
}

/* ---- checksums ---------------------------------------------------------- */

static uint32_t *sum_of(const struct page_store *s, uint64_t page,
			unsigned shard)
{
	const struct page_ledger *l = &s->ledger;

	return &l->sums[page * l->sums_per_page +
			(l->sums_per_page > 1 ? shard : 0)];
}

static void note_sums(struct page_store *s, const struct page_slot *slot)
{
	uint64_t page = slot->op->page;

	for (unsigned i = 0; i < s->ledger.sums_per_page; i++)
		*sum_of(s, page, i) = crc32_raw(UINT32_MAX, place(s, slot, i),
						s->shard_bytes);
}

static bool is_intact(const struct page_store *s, const struct page_slot *slot,
		      unsigned shard)
{
	return !s->ledger.sums_per_page ||
	       *sum_of(s, slot->op->page, shard) ==
		       crc32_raw(UINT32_MAX, place(s, slot, shard),
				 s->shard_bytes);
}

/* ---- jobs --------------------------------------------------------------- */

/* Shards whose lane is there. */
static unsigned reachable(struct page_store *s, uint64_t page)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < s->shards; i++) {
		const struct page_lane *l = page_shard_lane(s, page, i);

		if (!l->is_lost && !l->is_failing)
			bits |= 1u << i;
	}
	return bits;
}

/* One shard's job ended well or not; the operation goes on elsewhere. */
static void take_end(struct page_store *s, struct page_slot *slot,
		     unsigned shard, int err)
{
	if (err) {
		slot->err = err;
	} else if (slot->op->kind == PAGE_LOAD && !is_intact(s, slot, shard)) {
		s->stats.damaged++;
		slot->err = -EILSEQ;
	} else {
		slot->got |= (uint16_t)(1u << shard);
	}
}

static void post(struct page_store *s, struct page_slot *slot, unsigned shards)
{
	uint64_t page = slot->op->page;
	uint32_t tag = (uint32_t)(slot - s->slot) << JOB_SHARD_BITS;

	slot->tried |= (uint16_t)shards;
	for (unsigned i = 0; i < s->shards; i++) {
		struct page_lane *lane = page_shard_lane(s, page, i);
		struct page_job job = {
			.kind = slot->op->kind,
			.tag = tag | i,
			.index = page_shard_index(s, page, i),
			.buf = place(s, slot, i),
			.lkey = slot->lkey,
			.rkey = slot->rkey,
		};
		int err;

		if (!(shards & 1u << i))
			continue;
		if (s->o.data > 1 && i >= s->o.data) { /* parity: staged */
			job.lkey = s->buffer[PAGE_BUFFERS_MAX].mr->lkey;
			job.rkey = s->buffer[PAGE_BUFFERS_MAX].mr->rkey;
		}
		err = lane->ops->post(lane, &job);
		if (err == 0) {
			slot->waiting |= (uint16_t)(1u << i);
			lane->busy++;
			continue;
		}
		if (err < 0)
			page_lane_fail(lane, "the connection broke");
		take_end(s, slot, i, err < 0 ? -EHOSTDOWN : 0);
	}
}

/* ---- load --------------------------------------------------------------- */

static void load_end(struct page_store *s, struct page_slot *slot)
{
	unsigned all = (1u << s->o.data) - 1;
	unsigned missing = all & ~slot->got;
	uint8_t *shard[PAGE_SHARDS_MAX];

	if (s->o.data > 1 && missing) {
		places(s, slot, shard);
		page_code_decode(&s->code, slot->got, missing, shard);
	}
	if (missing)
		s->stats.repaired++;
	if (slot->data != slot->op->buf)
		memcpy(slot->op->buf, slot->data, s->o.page_bytes);
	s->stats.loads++;
	page_slot_end(s, slot, 0);
}

/* Asks for as many shards as are missing, of those not asked for yet. */
static void load_more(struct page_store *s, struct page_slot *slot)
{
	uint64_t page = slot->op->page;
	unsigned have = page_ledger_get(&s->ledger, page) & LEDGER_SHARDS;

	while (!slot->waiting && count(slot->got) < s->o.data) {
		unsigned left = have & reachable(s, page) & ~slot->tried;
		unsigned pick = 0, need = s->o.data - count(slot->got);

		if (count(left) < need) {
			page_slot_end(s, slot,
				      slot->err == -EILSEQ ? -EILSEQ
							   : -EHOSTDOWN);
			return;
		}
		for (; need; need--) {
			pick |= left & -left;
			left &= left - 1;
		}
		s->stats.bytes_in += (uint64_t)count(pick) * s->shard_bytes;
		post(s, slot, pick);
	}
	if (!slot->waiting)
		load_end(s, slot);
}

static void load_start(struct page_store *s, struct page_slot *slot)
{
	unsigned bits = page_ledger_get(&s->ledger, slot->op->page);

	if (!(bits & LEDGER_STORED))
		page_slot_end(s, slot, -ENODATA);
	else if (bits & LEDGER_LOST)
		page_slot_end(s, slot, -EHOSTDOWN);
	else
		load_more(s, slot);
}

/* ---- store -------------------------------------------------------------- */

static void store_end(struct page_store *s, struct page_slot *slot)
{
	bool ok = count(slot->got) >= s->o.data;

	page_ledger_set(&s->ledger, slot->op->page,
			LEDGER_STORED | slot->got | (ok ? 0 : LEDGER_LOST));
	s->stats.stores += ok;
	page_slot_end(s, slot, ok ? 0 : slot->err ? slot->err : -EHOSTDOWN);
}

static void store_start(struct page_store *s, struct page_slot *slot)
{
	unsigned to = reachable(s, slot->op->page);
	uint8_t *shard[PAGE_SHARDS_MAX];

	if (slot->data != slot->op->buf)
		memcpy(slot->data, slot->op->buf, s->o.page_bytes);
	if (s->o.data > 1) {
		places(s, slot, shard);
		page_code_encode(&s->code, shard);
	}
	note_sums(s, slot);
	s->stats.bytes_out += (uint64_t)count(to) * s->shard_bytes;
	post(s, slot, to);
	if (!slot->waiting)
		store_end(s, slot);
}

/* ---- invalidate --------------------------------------------------------- */

/* A node that cannot be reached has taken the page back already, or will. */
static void invalidate_end(struct page_store *s, struct page_slot *slot)
{
	page_ledger_set(&s->ledger, slot->op->page, 0);
	s->stats.invalidates++;
	page_slot_end(s, slot, 0);
}

static void invalidate_start(struct page_store *s, struct page_slot *slot)
{
	uint64_t page = slot->op->page;

	if (page_ledger_get(&s->ledger, page) & LEDGER_STORED)
		post(s, slot, reachable(s, page));
	if (!slot->waiting)
		invalidate_end(s, slot);
}

/* ---- all ---------------------------------------------------------------- */

static void find_buffer(struct page_store *s, struct page_slot *slot)
{
	const struct page_buffer *b = page_buffer_find(s, slot->op->buf);

	slot->data = b ? slot->op->buf : slot->stage;
	if (!b)
		b = &s->buffer[PAGE_BUFFERS_MAX];
	slot->lkey = b->mr->lkey;
	slot->rkey = b->mr->rkey;
}

void page_work_start(struct page_store *s, struct page_slot *slot)
{
	slot->tried = slot->waiting = slot->got = 0;
	slot->err = 0;
	find_buffer(s, slot);
	if (slot->op->kind == PAGE_LOAD)
		load_start(s, slot);
	else if (slot->op->kind == PAGE_STORE)
		store_start(s, slot);
	else
		invalidate_start(s, slot);
}

bool page_job_is_waiting(const struct page_lane *lane, uint32_t tag)
{
	struct page_store *s = lane->store;
	uint32_t at = tag >> JOB_SHARD_BITS;
	unsigned shard = tag & ((1u << JOB_SHARD_BITS) - 1);

	return at < s->slot_count && shard < s->shards && s->slot[at].op &&
	       s->slot[at].waiting & 1u << shard &&
	       page_shard_lane(s, s->slot[at].op->page, shard) == lane;
}

void page_job_end(struct page_store *s, uint32_t tag, int err)
{
	struct page_slot *slot = &s->slot[tag >> JOB_SHARD_BITS];
	unsigned shard = tag & ((1u << JOB_SHARD_BITS) - 1);

	slot->waiting &= (uint16_t) ~(1u << shard);
	page_shard_lane(s, slot->op->page, shard)->busy--;
	take_end(s, slot, shard, err);
	if (slot->waiting)
		return;
	if (slot->op->kind == PAGE_LOAD)
		load_more(s, slot);
	else if (slot->op->kind == PAGE_STORE)
		store_end(s, slot);
	else
		invalidate_end(s, slot);
}
