/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a block's last events (wire/block_watch.h). Who adds one never
 * waits: the oldest make room. */
#ifndef AQ_BLK_WATCH_H
#define AQ_BLK_WATCH_H

#include "wire/block_watch.h"

enum {
	BLK_WATCH_CAME = 8, /* sources, at most */
};

struct blk_watch {
	uint8_t *ring;	 /* entries, which never straddle its end */
	uint32_t *place; /* of each entry, by its serial; modulo place_count */
	uint32_t room;
	uint32_t place_count;
	uint64_t first;	 /* serial of the oldest entry */
	uint64_t serial; /* of the next one */
	uint64_t before; /* events before the oldest entry */
	uint64_t total;
	uint32_t tail; /* where the next one goes */
	/* Marks whence slots came that are not in the ring any more, the last
	 * one of each source, the oldest first: who has missed them gets its
	 * events in order all the same. */
	unsigned came_count;
	struct block_event_wire came[BLK_WATCH_CAME];
	uint32_t news; /* kinds that came since somebody looked here: bits */
};

struct blk_block;

uint64_t blk_watch_own_bytes(uint64_t size_bytes);
int blk_watch_init(struct blk_watch *w, uint64_t size_bytes) MUST_CHECK;
void blk_watch_release(struct blk_watch *w);

/* An event, and the first of those bytes. */
void blk_watch_add(struct blk_watch *w, enum block_event what, uint32_t length,
		   uint64_t value, const void *data, uint32_t data_bytes);
void blk_watch_mark(struct blk_watch *w, enum block_event what, uint64_t value,
		    uint64_t other);

/* Of an answer, so that at least one entry fits. */
enum {
	BLK_WATCH_ROOM_MIN =
		sizeof(struct block_watch_wire) +
		(BLK_WATCH_CAME + 1) * sizeof(struct block_event_wire) +
		BLOCK_EVENT_INSIDE_MAX,
};

/*
 * The answer to a request, as far as it fits, and how many bytes of it; 0: the
 * room is too small. *has_some says whether it has entries. `flags` are the
 * block's.
 */
uint32_t blk_watch_read(const struct blk_watch *w, uint64_t serial,
			uint32_t events, uint32_t flags, uint8_t *out,
			uint32_t room_bytes, bool *has_some);
/* The same, as it was before that serial. */
struct blk_watch blk_watch_before(const struct blk_watch *w, uint64_t serial);
/* Which kinds came since the last call. */
uint32_t blk_watch_news(struct blk_watch *w);

#endif
