/* SPDX-License-Identifier: Apache-2.0 */
/* In which order entries of several blocks are told. */
#include "block_watch.h"

#include <errno.h>

static struct block_event_wire front(const struct block_tail *t)
{
	struct block_event_wire w;

	memcpy(&w, t->bytes + t->at, sizeof(w));
	return w;
}

/* Whether the bytes are entries, each with a serial behind the last one's. */
static bool are_entries(const struct block_tail *t, const uint8_t *bytes,
			size_t len, uint64_t next)
{
	uint64_t serial = t->is_started ? t->next : 0;
	struct block_event_wire w;

	while (len) {
		if (len < sizeof(w))
			return false;
		memcpy(&w, bytes, sizeof(w));
		if (be16_get(w.inside) > BLOCK_EVENT_INSIDE_MAX ||
		    block_event_bytes(be16_get(w.inside)) > len ||
		    be64_get(w.serial) < serial || be64_get(w.serial) >= next)
			return false;
		serial = be64_get(w.serial) + 1;
		bytes += block_event_bytes(be16_get(w.inside));
		len -= block_event_bytes(be16_get(w.inside));
	}
	return true;
}

int block_tail_take(struct block_tail *t, const uint8_t *data, size_t len_bytes)
{
	struct block_watch_wire w;
	uint64_t before, total, next;

	if (len_bytes < sizeof(w) || len_bytes > BLOCK_REPLY_MAX ||
	    t->at != t->end)
		return -EPROTO;
	memcpy(&w, data, sizeof(w));
	before = be64_get(w.before);
	total = be64_get(w.total);
	next = be64_get(w.next);
	if (total < before ||
	    (t->is_started && (before < t->total || next < t->next)) ||
	    !are_entries(t, data + sizeof(w), len_bytes - sizeof(w), next))
		return -EPROTO;
	if (t->is_started && before > t->total) {
		t->lost += before - t->total;
		t->has_lost = true;
	}
	t->is_started = true;
	t->total = total;
	t->next = next;
	t->at = 0;
	t->end = (uint32_t)(len_bytes - sizeof(w));
	memcpy(t->bytes, data + sizeof(w), t->end);
	if (!t->end)
		t->delivered = next;
	return 0;
}

void block_tail_end(struct block_tail *t, bool is_known, uint64_t total)
{
	if (t->is_gone)
		return;
	t->is_gone = true;
	if (is_known && total <= t->total)
		return;
	t->has_lost = true;
	t->lost = is_known ? t->lost + total - t->total : 0;
}

static const struct block_tail *find(const struct block_reader *r,
				     uint64_t generation)
{
	for (unsigned i = 0; i < r->count; i++)
		if (r->tail[i]->generation == generation)
			return r->tail[i];
	return NULL;
}

static void consume(struct block_tail *t, const struct block_event_wire *w)
{
	t->at += block_event_bytes(be16_get(w->inside));
	t->delivered = t->at == t->end ? t->next : be64_get(w->serial) + 1;
}

enum mark {
	MARK_PASSED,
	MARK_WAITS,
	MARK_UNKNOWN, /* of a block that is gone before we knew it */
};

static enum mark look_at(struct block_reader *r, struct block_tail *t,
			 const struct block_event_wire *w)
{
	const struct block_tail *other;

	if (be16_get(w->what) == BLOCK_MARK_SEALED) {
		t->is_sealed = true;
		return MARK_PASSED;
	}
	if (be16_get(w->what) != BLOCK_MARK_GOES &&
	    be16_get(w->what) != BLOCK_MARK_CAME)
		return MARK_PASSED; /* of a newer release */
	other = find(r, be64_get(w->other));
	if (!other && r->is_known_gone && r->wanted == be64_get(w->other)) {
		r->is_known_gone = false;
		return MARK_UNKNOWN;
	}
	if (!other) {
		r->wants_map = true;
		r->wanted = be64_get(w->other);
		return MARK_WAITS;
	}
	if (be16_get(w->what) == BLOCK_MARK_GOES || other->is_gone ||
	    other->delivered >= be64_get(w->value))
		return MARK_PASSED;
	return MARK_WAITS;
}

/* What this block has to tell now. */
static bool tell(struct block_reader *r, struct block_tail *t,
		 struct block_told *out)
{
	if (t->has_lost && (t->is_gone ? t->at == t->end : true)) {
		*out = (struct block_told){.tail = t, .lost = t->lost};
		t->has_lost = false;
		t->lost = 0;
		return true;
	}
	while (t->at < t->end) {
		struct block_event_wire w = front(t);
		enum mark mark = MARK_PASSED;

		if (be16_get(w.what) >= BLOCK_EVENTS)
			mark = look_at(r, t, &w);
		if (mark == MARK_WAITS)
			return false;
		*out = (struct block_told){
			.what = be16_get(w.what),
			.tail = t,
			.value = be64_get(w.value),
			.length = be32_get(w.length),
			.inside = be16_get(w.inside),
			.bytes = t->bytes + t->at + sizeof(w),
		};
		consume(t, &w);
		if (mark == MARK_UNKNOWN)
			*out = (struct block_told){.tail = t};
		if (mark == MARK_UNKNOWN || out->what < BLOCK_EVENTS)
			return true;
	}
	return false;
}

bool block_reader_next(struct block_reader *r, struct block_told *out)
{
	r->wants_map = false;
	for (unsigned i = 0; i < r->count; i++) {
		struct block_tail *t = r->tail[(r->turn + i) % r->count];

		if (tell(r, t, out)) {
			/* The others have their turn when it is empty. */
			r->turn = (r->turn + i) % r->count;
			return true;
		}
	}
	return false;
}
