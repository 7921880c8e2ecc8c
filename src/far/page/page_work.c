/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operation does with the copies of its page: which it asks for, when
 * it is complete, and what it does about those that are lost or damaged.
 */
#include <errno.h>
#include <string.h>

#include "base/crc.h"
#include "page_priv.h"

enum {
	FIRST_COPY = 1, /* the bit of the copy that is asked for first */
};

/* Few are set, and the processor's own instruction is not assumed. */
static inline unsigned count(unsigned bits)
{
	unsigned n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

static uint32_t checksum(const struct page_store *s,
			 const struct page_slot *slot)
{
	return crc32_raw(UINT32_MAX, slot->data, s->o.page_bytes);
}

static bool is_intact(const struct page_store *s, const struct page_slot *slot)
{
	return s->o.has_no_checksum ||
	       s->ledger.sums[slot->op->page] == checksum(s, slot);
}

/* ---- jobs --------------------------------------------------------------- */

/* Copies whose backend is there. */
static unsigned reachable(struct page_store *s, uint64_t page)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < s->o.copies; i++) {
		const struct page_backend *l = page_copy_backend(s, page, i);

		if (!l->is_lost && !l->is_failing)
			bits |= 1u << i;
	}
	return bits;
}

/* One copy's job ended well or not; the operation goes on elsewhere. */
static void take_end(struct page_store *s, struct page_slot *slot,
		     unsigned copy, int err)
{
	if (err) {
		slot->err = err;
	} else if (slot->op->kind == PAGE_LOAD && !is_intact(s, slot)) {
		s->stats.damaged++;
		slot->err = -EILSEQ;
	} else {
		slot->got |= (uint16_t)(1u << copy);
	}
}

static void post(struct page_store *s, struct page_slot *slot, unsigned copies)
{
	uint64_t page = slot->op->page;
	uint32_t tag = (uint32_t)(slot - s->slot) << JOB_COPY_BITS;

	slot->tried |= (uint16_t)copies;
	for (unsigned i = 0; i < s->o.copies; i++) {
		struct page_backend *backend = page_copy_backend(s, page, i);
		struct page_job job = {
			.kind = slot->op->kind,
			.tag = tag | i,
			.index = page_copy_index(s, page, i),
			.buf = slot->data,
			.lkey = slot->lkey,
			.rkey = slot->rkey,
		};
		int err;

		if (!(copies & 1u << i))
			continue;
		err = backend->ops->post(backend, &job);
		if (err == 0) {
			slot->waiting |= (uint16_t)(1u << i);
			backend->busy++;
			continue;
		}
		if (err < 0)
			page_backend_fail(backend, "the connection broke");
		take_end(s, slot, i, err < 0 ? -EHOSTDOWN : 0);
	}
}

/* ---- load --------------------------------------------------------------- */

static void load_end(struct page_store *s, struct page_slot *slot)
{
	if (!(slot->got & FIRST_COPY))
		s->stats.repaired++;
	if (slot->data != slot->op->buf)
		memcpy(slot->op->buf, slot->data, s->o.page_bytes);
	s->stats.loads++;
	page_slot_end(s, slot, 0);
}

/* Asks for the first copy that was not asked for yet. */
static void load_more(struct page_store *s, struct page_slot *slot)
{
	uint64_t page = slot->op->page;
	unsigned have = page_ledger_get(&s->ledger, page) & LEDGER_COPIES;

	while (!slot->waiting && !slot->got) {
		unsigned left = have & reachable(s, page) & ~slot->tried;

		if (!left) {
			page_slot_end(s, slot,
				      slot->err == -EILSEQ ? -EILSEQ
							   : -EHOSTDOWN);
			return;
		}
		s->stats.bytes_in += s->o.page_bytes;
		post(s, slot, left & -left);
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
	bool ok = slot->got != 0;

	page_ledger_set(&s->ledger, slot->op->page,
			LEDGER_STORED | slot->got | (ok ? 0 : LEDGER_LOST));
	s->stats.stores += ok;
	page_slot_end(s, slot, ok ? 0 : slot->err ? slot->err : -EHOSTDOWN);
}

static void store_start(struct page_store *s, struct page_slot *slot)
{
	unsigned to = reachable(s, slot->op->page);

	if (slot->data != slot->op->buf)
		memcpy(slot->data, slot->op->buf, s->o.page_bytes);
	if (!s->o.has_no_checksum)
		s->ledger.sums[slot->op->page] = checksum(s, slot);
	s->stats.bytes_out += (uint64_t)count(to) * s->o.page_bytes;
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

bool page_job_is_waiting(const struct page_backend *backend, uint32_t tag)
{
	struct page_store *s = backend->store;
	uint32_t at = tag >> JOB_COPY_BITS;
	unsigned copy = tag & ((1u << JOB_COPY_BITS) - 1);

	return at < s->slot_count && copy < s->o.copies && s->slot[at].op &&
	       s->slot[at].waiting & 1u << copy &&
	       page_copy_backend(s, s->slot[at].op->page, copy) == backend;
}

void page_job_end(struct page_store *s, uint32_t tag, int err)
{
	struct page_slot *slot = &s->slot[tag >> JOB_COPY_BITS];
	unsigned copy = tag & ((1u << JOB_COPY_BITS) - 1);

	slot->waiting &= (uint16_t) ~(1u << copy);
	page_copy_backend(s, slot->op->page, copy)->busy--;
	take_end(s, slot, copy, err);
	if (slot->waiting)
		return;
	if (slot->op->kind == PAGE_LOAD)
		load_more(s, slot);
	else if (slot->op->kind == PAGE_STORE)
		store_end(s, slot);
	else
		invalidate_end(s, slot);
}
