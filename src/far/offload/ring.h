/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application's side of the rings: issuing requests and finding out what is
 * done, with loads and stores only. One thread at a time. Other files make the
 * memory and attach it to an engine, so that the simulator needs neither.
 */
#ifndef AQ_OFFLOAD_RING_H
#define AQ_OFFLOAD_RING_H

#include <stdatomic.h>

#include "base/tally.h"
#include "wire/offload_map.h"

struct client_clock;

enum {
	OFFLOAD_ID_WRITE_BIT = 62,
	OFFLOAD_ID_REGION_BIT = 48,
};

/* A request under way, by its sequence. Where its data lies follows from what
 * lies before it. */
struct offload_pending {
	void *dest;
	uint32_t len_bytes;
	uint32_t pos; /* in the metadata ring */
};

STATIC_ASSERT(sizeof(struct offload_pending) == 16, "four in a line");

struct offload_failure {
	uint64_t seq; /* 0: none */
	int err;
};

/* What a request may address. Another thread may change both when the region
 * changes. */
struct offload_bound {
	_Atomic uint64_t usable_bytes; /* none if there is an error */
	_Atomic int err;	       /* why every request is refused, or 0 */
	bool is_read_only;
};

struct offload_ring {
	struct offload_map map;
	uint8_t *base;
	struct offload_meta *meta;
	uint8_t *status;
	uint8_t *data[OFFLOAD_KINDS];
	uint64_t data_mask[OFFLOAD_KINDS];
	uint64_t len_max[OFFLOAD_KINDS]; /* of one request */
	_Atomic uint64_t *green; /* GREEN-1: the engine's NIC READs it */
	_Atomic uint64_t *done_word;

	uint64_t tail; /* positions issued */
	uint64_t head; /* the oldest one under way when it was looked */
	/* Up to here a request needs no look at room, clock and errors. */
	uint64_t tail_stop;
	uint64_t data_stop[OFFLOAD_KINDS];
	uint64_t issued[OFFLOAD_KINDS];
	uint64_t done[OFFLOAD_KINDS];
	uint64_t data_tail[OFFLOAD_KINDS]; /* bytes, counted from 0 on */
	uint64_t data_head[OFFLOAD_KINDS];
	uint64_t seen; /* the done word that was looked at last */
	struct offload_pending *pending[OFFLOAD_KINDS];
	struct offload_failure *failure[OFFLOAD_KINDS];
	uint64_t failures; /* ever */
	/* Where requests are counted, or NULL. One in 256 is timed, if none is:
	 * the clock costs more than a request. */
	struct tally *tally;
	const struct client_clock *clock;
	struct tally_probe probe;
	unsigned probe_kind;
	uint64_t probe_seq;
	int err; /* for ever: the engine wrote nonsense */
	uint32_t region_count;
	struct offload_bound region[OFFLOAD_REGIONS_MAX];
};

/* `memory` is zeroed, of map->total_bytes, aligned to a page, and the caller's,
 * who also registers it with remote READ and WRITE. */
int offload_ring_init(struct offload_ring *r, const struct offload_map *map,
		      void *memory, const char *creator) MUST_CHECK;
void offload_ring_release(struct offload_ring *r);

/* Returns the region's number. -ENOSPC: there are OFFLOAD_REGIONS_MAX. */
int offload_ring_add(struct offload_ring *r, uint64_t size_bytes,
		     bool is_read_only) MUST_CHECK;

/* The region's size has changed, or it cannot be used any more. Any thread, one
 * at a time. */
void offload_ring_bound(struct offload_ring *r, uint32_t region,
			uint64_t size_bytes, int err);

/* As aq_async_read and aq_async_write, but nothing about an engine. */
int64_t offload_ring_read(struct offload_ring *r, uint32_t region,
			  uint64_t offset, void *dest, size_t len_bytes);
int64_t offload_ring_write(struct offload_ring *r, uint32_t region,
			   uint64_t offset, const void *src, size_t len_bytes);

/* Takes in what the engine has announced; the destinations of completed reads
 * are filled. Returns 0, or for ever -EPROTO when the engine wrote nonsense. */
int offload_ring_take(struct offload_ring *r, uint64_t word);

static inline int offload_ring_look(struct offload_ring *r)
{
	/* RED-1, with the engine's WRITE of the red block, whose last word
	 * this is: what was written before it is seen. */
	uint64_t word =
		atomic_load_explicit(r->done_word, memory_order_acquire);

	return LIKELY(word == r->seen) ? 0 : offload_ring_take(r, word);
}

/* 1: done, 0: under way, or its error; -EINVAL: never issued. Does not read the
 * engine's words. */
int offload_ring_result(const struct offload_ring *r, int64_t id);

static inline uint32_t offload_ring_pending(const struct offload_ring *r)
{
	return (uint32_t)(r->issued[OFFLOAD_RD] - r->done[OFFLOAD_RD] +
			  r->issued[OFFLOAD_WR] - r->done[OFFLOAD_WR]);
}

static inline unsigned offload_id_kind(int64_t id)
{
	return (unsigned)(id >> OFFLOAD_ID_WRITE_BIT & 1);
}

static inline uint64_t offload_id_seq(int64_t id)
{
	return (uint64_t)id & ((1ull << OFFLOAD_ID_REGION_BIT) - 1);
}

#endif
