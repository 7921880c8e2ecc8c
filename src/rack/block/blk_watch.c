/* SPDX-License-Identifier: Apache-2.0 */
#include "blk_watch.h"

#include <errno.h>
#include <stdlib.h>

enum {
	ROOM_MIN = 16 << 10,
	ROOM_MAX = 256 << 10,
	SHARE = 64,	 /* of the block's bytes */
	SHARE_SMALL = 4, /* and not more than this of a small one */
	PER_PLACE = 64,	 /* bytes of the ring for each entry, about */
};

/* Marks wake everybody. */
#define ALL_NEWS UINT32_MAX

static uint32_t room_of(uint64_t size_bytes)
{
	uint64_t room =
		u64_min(u64_max(size_bytes / SHARE, ROOM_MIN), ROOM_MAX);

	return (uint32_t)u64_min(room, size_bytes / SHARE_SMALL) & ~7u;
}

uint64_t blk_watch_own_bytes(uint64_t size_bytes)
{
	uint32_t room = room_of(size_bytes);

	return room + room / PER_PLACE * sizeof(uint32_t);
}

int blk_watch_init(struct blk_watch *w, uint64_t size_bytes)
{
	*w = (struct blk_watch){.room = room_of(size_bytes)};
	w->place_count = w->room / PER_PLACE;
	w->ring = malloc(w->room);
	w->place = malloc(w->place_count * sizeof(*w->place));
	if (w->ring && w->place)
		return 0;
	blk_watch_release(w);
	return -ENOMEM;
}

void blk_watch_release(struct blk_watch *w)
{
	free(w->ring);
	free(w->place);
	*w = (struct blk_watch){0};
}

static struct block_event_wire entry(const struct blk_watch *w, uint64_t serial)
{
	struct block_event_wire e;

	memcpy(&e, w->ring + w->place[serial % w->place_count], sizeof(e));
	return e;
}

static bool is_event(const struct block_event_wire *e)
{
	return be16_get(e->what) < BLOCK_EVENTS;
}

static void keep_mark(struct blk_watch *w, const struct block_event_wire *e)
{
	unsigned i = 0;

	while (i < w->came_count &&
	       be64_get(w->came[i].other) != be64_get(e->other))
		i++;
	if (i == BLK_WATCH_CAME)
		i = 0;
	if (i < w->came_count)
		memmove(&w->came[i], &w->came[i + 1],
			(--w->came_count - i) * sizeof(*e));
	w->came[w->came_count++] = *e;
}

static void drop_first(struct blk_watch *w)
{
	struct block_event_wire e = entry(w, w->first);

	if (be16_get(e.what) == BLOCK_MARK_CAME)
		keep_mark(w, &e);
	w->before += is_event(&e);
	w->first++;
}

/* Whether the oldest entry begins where the next one would lie. */
static bool is_in_the_way(const struct blk_watch *w, uint32_t from,
			  uint32_t bytes)
{
	uint32_t at = w->place[w->first % w->place_count];

	return w->first < w->serial && at >= from && at < from + bytes;
}

static uint8_t *reserve(struct blk_watch *w, uint32_t bytes)
{
	uint32_t left = w->room - w->tail;

	if (w->serial - w->first == w->place_count)
		drop_first(w);
	if (bytes > left) {
		while (is_in_the_way(w, w->tail, left))
			drop_first(w);
		w->tail = 0;
	}
	while (is_in_the_way(w, w->tail, bytes))
		drop_first(w);
	w->place[w->serial % w->place_count] = w->tail;
	w->tail += bytes;
	return w->ring + w->tail - bytes;
}

static void add(struct blk_watch *w, struct block_event_wire e,
		const void *data, uint32_t inside)
{
	uint32_t bytes = block_event_bytes(inside);
	uint8_t *at = reserve(w, bytes);

	e.serial = be64_put(w->serial++);
	e.inside = be16_put((uint16_t)inside);
	if (inside)
		memset(at + bytes - 8, 0, 8);
	memcpy(at, &e, sizeof(e));
	if (inside)
		memcpy(at + sizeof(e), data, inside);
}

void blk_watch_add(struct blk_watch *w, enum block_event what, uint32_t length,
		   uint64_t value, const void *data, uint32_t data_bytes)
{
	add(w,
	    (struct block_event_wire){.what = be16_put((uint16_t)what),
				      .length = be32_put(length),
				      .value = be64_put(value)},
	    data, u32_min(data_bytes, BLOCK_EVENT_INSIDE_MAX));
	w->total++;
	w->news |= 1u << what;
}

void blk_watch_mark(struct blk_watch *w, enum block_event what, uint64_t value,
		    uint64_t other)
{
	add(w,
	    (struct block_event_wire){.what = be16_put((uint16_t)what),
				      .value = be64_put(value),
				      .other = be64_put(other)},
	    NULL, 0);
	w->news = ALL_NEWS;
}

uint32_t blk_watch_news(struct blk_watch *w)
{
	uint32_t news = w->news;

	w->news = 0;
	return news;
}

/* ---- reading ------------------------------------------------------------- */

/* Events from that serial on. */
static uint64_t count_from(const struct blk_watch *w, uint64_t serial)
{
	uint64_t n = 0;

	for (; serial < w->serial; serial++) {
		struct block_event_wire e = entry(w, serial);

		n += is_event(&e);
	}
	return n;
}

struct blk_watch blk_watch_before(const struct blk_watch *w, uint64_t serial)
{
	struct blk_watch out = *w;

	serial = u64_max(serial, w->first);
	out.total -= count_from(w, serial);
	out.serial = serial;
	return out;
}

/* Those that a reader has missed. */
static uint32_t read_marks(const struct blk_watch *w, uint64_t serial,
			   uint8_t *out)
{
	uint32_t used = 0;

	for (unsigned i = 0; i < w->came_count; i++) {
		if (be64_get(w->came[i].serial) < serial)
			continue;
		memcpy(out + used, &w->came[i], sizeof(w->came[i]));
		used += (uint32_t)sizeof(w->came[i]);
	}
	return used;
}

uint32_t blk_watch_read(const struct blk_watch *w, uint64_t serial,
			uint32_t events, uint32_t flags, uint8_t *out,
			uint32_t room_bytes, bool *has_some)
{
	struct block_watch_wire head = {.flags = be32_put(flags)};
	uint32_t used = sizeof(head);
	uint64_t total;

	*has_some = false;
	if (room_bytes < BLK_WATCH_ROOM_MIN)
		return 0;
	used += read_marks(w, serial, out + used);
	serial = u64_min(u64_max(serial, w->first), w->serial);
	/* Who keeps up is near the end: count from there. */
	total = w->total - count_from(w, serial);
	head.before = be64_put(total);
	for (; serial < w->serial; serial++) {
		struct block_event_wire e = entry(w, serial);
		uint32_t bytes = block_event_bytes(be16_get(e.inside));

		if (is_event(&e) && !(events & 1u << be16_get(e.what))) {
			total++;
			continue;
		}
		if (bytes > room_bytes - used)
			break;
		memcpy(out + used, w->ring + w->place[serial % w->place_count],
		       bytes);
		used += bytes;
		total += is_event(&e);
		*has_some = true;
	}
	head.next = be64_put(serial);
	head.total = be64_put(total);
	memcpy(out, &head, sizeof(head));
	return used;
}
