/* SPDX-License-Identifier: Apache-2.0 */
/* Issuing and harvesting. The costs of these functions are what the application
 * pays for far memory, so the common path is straight. */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/link.h"

enum {
	ERRNO_MAX = 133, /* EHWPOISON, the last of Linux */
};

int offload_ring_init(struct offload_ring *r, const struct offload_map *map,
		      void *memory, const char *creator)
{
	struct offload_preamble *p = memory;

	memset(r, 0, sizeof(*r));
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
		r->pending[k] = calloc(map->entries, sizeof(*r->pending[k]));
		r->failure[k] = calloc(map->entries, sizeof(*r->failure[k]));
		if (!r->pending[k] || !r->failure[k]) {
			offload_ring_release(r);
			return -ENOMEM;
		}
	}
	r->map = *map;
	r->base = memory;
	r->meta = (struct offload_meta *)(void *)(r->base + map->meta_at);
	r->status = r->base + map->status_at;
	r->data[OFFLOAD_RD] = r->base + map->rdata_at;
	r->data[OFFLOAD_WR] = r->base + map->wdata_at;
	r->data_mask[OFFLOAD_RD] = map->rdata_bytes - 1;
	r->data_mask[OFFLOAD_WR] = map->wdata_bytes - 1;
	r->green = (_Atomic uint64_t *)(void *)&p->green;
	r->done_word = (_Atomic uint64_t *)(void *)&p->red.done;
	offload_preamble_init(p, map, creator);
	return 0;
}

void offload_ring_release(struct offload_ring *r)
{
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
		free(r->pending[k]);
		free(r->failure[k]);
		r->pending[k] = NULL;
		r->failure[k] = NULL;
	}
}

int offload_ring_add(struct offload_ring *r, uint64_t size_bytes,
		     bool is_read_only)
{
	struct offload_bound *b = &r->region[r->region_count];

	if (r->region_count == OFFLOAD_REGIONS_MAX)
		return -ENOSPC;
	atomic_init(&b->size_bytes, size_bytes);
	atomic_init(&b->err, 0);
	b->is_read_only = is_read_only;
	return (int)r->region_count++;
}

/* The oldest position under way. */
static inline uint64_t oldest(const struct offload_ring *r)
{
	uint64_t head = r->tail;

	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		if (r->done[k] < r->issued[k])
			head = u64_min(
				head,
				r->pending[k][(r->done[k] + 1) & r->map.mask]
					.pos);
	return head;
}

static inline int check(const struct offload_ring *r, unsigned kind,
			uint32_t region, uint64_t offset, size_t len_bytes)
{
	const struct offload_bound *b;
	uint64_t size;
	int err;

	if (UNLIKELY(r->err))
		return r->err;
	if (UNLIKELY(region >= r->region_count))
		return -EBADF;
	b = &r->region[region];
	err = atomic_load_explicit(&b->err, memory_order_relaxed);
	if (UNLIKELY(err))
		return err;
	if (UNLIKELY(len_bytes - 1 > r->data_mask[kind] / 2))
		return -EMSGSIZE;
	size = atomic_load_explicit(&b->size_bytes, memory_order_relaxed);
	if (UNLIKELY(offset > size || len_bytes > size - offset))
		return -ERANGE;
	return 0;
}

/* Room in both rings for one more request: *at in the data ring. */
static inline int reserve(struct offload_ring *r, unsigned kind,
			  size_t len_bytes, uint64_t *at, uint64_t *end)
{
	uint64_t mask = r->data_mask[kind], start = r->data_tail[kind];
	uint64_t need = align_up(len_bytes, OFFLOAD_DATA_ALIGN);

	if (UNLIKELY(r->tail - r->head == r->map.entries))
		return -EAGAIN;
	/* Never across the end: the rest of the lap stays unused. */
	if (UNLIKELY((start & mask) + need > mask + 1))
		start = align_up(start, mask + 1);
	if (UNLIKELY(start + need - r->data_head[kind] > mask + 1))
		return -EAGAIN;
	*at = start & mask;
	*end = start + need;
	return 0;
}

enum {
	OWN_MIN = 16,  /* entries, some lines */
	OWN_MAX = 128, /* their 48 lines are fetched together */
	OWN_STEP = CACHE_LINE / sizeof(struct offload_meta),
	TIMED_MASK = 63,
};

/*
 * The engine's READs left the lines of the entries that come next with another
 * core, too, and that of the green word. A store waits for its line, and all
 * stores behind it wait as well: a core has room for those of three to six
 * requests, so it would fetch two lines at a time. Who has taken results issues
 * as many requests next; one store into each of their lines, for which nobody
 * waits, brings them back together. A prefetch does not, not even one for
 * writing, since the line is here, if only to read.
 */
static inline void own_next(struct offload_ring *r, uint64_t taken)
{
	const uint64_t free = r->map.entries - (r->tail - r->head);
	const uint64_t next = u64_min(u64_max(taken, OWN_MIN), OWN_MAX);
	const uint64_t end = r->tail + u64_min(free, next);

	for (uint64_t i = r->tail; i < end; i += OWN_STEP)
		r->meta[i & r->map.mask].rw_type = OFFLOAD_NONE;
	/* GREEN-1: the same word again. */
	atomic_store_explicit(
		r->green, atomic_load_explicit(r->green, memory_order_relaxed),
		memory_order_release);
}

/* Returns the id, so that it can be the last call of a function that needs no
 * stack otherwise. */
static COLD int64_t start_probe(struct offload_ring *r, int64_t id)
{
	if (r->tally && tally_probe_is_idle(&r->probe)) {
		r->probe_kind = offload_id_kind(id);
		r->probe_seq = offload_id_seq(id);
		tally_probe_start(&r->probe, r, client_clock_now_ns(r->clock));
	}
	return id;
}

static inline int64_t issue(struct offload_ring *r, unsigned kind,
			    uint32_t region, void *dest, uint64_t at,
			    uint64_t end, const struct offload_meta *meta)
{
	const uint64_t tail = r->tail, mask = r->map.mask;
	const uint64_t seq = r->issued[kind] + 1;
	struct offload_pending *p = &r->pending[kind][seq & mask];
	struct offload_green green = {.tail = (uint32_t)tail + 1};
	uint64_t word;
	int64_t id = (int64_t)((uint64_t)kind << OFFLOAD_ID_WRITE_BIT |
			       (uint64_t)region << OFFLOAD_ID_REGION_BIT | seq);

	r->issued[kind] = seq;
	r->data_tail[kind] = end;
	r->tail = tail + 1;
	green.wdata_tail = (uint32_t)r->data_tail[OFFLOAD_WR];
	memcpy(&word, &green, sizeof(word));
	r->meta[tail & mask] = *meta;
	*p = (struct offload_pending){.pos = tail,
				      .data_end = end,
				      .dest = dest,
				      .data_at = (uint32_t)at,
				      .len_bytes = meta->len_bytes};
	/* GREEN-1: the engine READs this word, then what it announces. */
	atomic_store_explicit(r->green, word, memory_order_release);
	return UNLIKELY((seq & TIMED_MASK) == 1) ? start_probe(r, id) : id;
}

HOT int64_t offload_ring_read(struct offload_ring *r, uint32_t region,
			      uint64_t offset, void *dest, size_t len_bytes)
{
	struct offload_meta meta;
	uint64_t at, end;
	int err = check(r, OFFLOAD_RD, region, offset, len_bytes);

	if (LIKELY(!err))
		err = reserve(r, OFFLOAD_RD, len_bytes, &at, &end);
	if (UNLIKELY(err))
		return err;
	meta = (struct offload_meta){.rw_type = OFFLOAD_READ,
				     .region = (uint16_t)region,
				     .len_bytes = (uint32_t)len_bytes,
				     .req_addr = offset,
				     .resp_addr = at};
	return issue(r, OFFLOAD_RD, region, dest, at, end, &meta);
}

HOT int64_t offload_ring_write(struct offload_ring *r, uint32_t region,
			       uint64_t offset, const void *src,
			       size_t len_bytes)
{
	struct offload_meta meta;
	uint64_t at, end;
	int err = check(r, OFFLOAD_WR, region, offset, len_bytes);

	if (LIKELY(!err) && UNLIKELY(r->region[region].is_read_only))
		err = -EACCES;
	if (LIKELY(!err))
		err = reserve(r, OFFLOAD_WR, len_bytes, &at, &end);
	if (UNLIKELY(err))
		return err;
	memcpy(r->data[OFFLOAD_WR] + at, src, len_bytes);
	meta = (struct offload_meta){.rw_type = OFFLOAD_WRITE,
				     .region = (uint16_t)region,
				     .len_bytes = (uint32_t)len_bytes,
				     .req_addr = at,
				     .resp_addr = offset};
	return issue(r, OFFLOAD_WR, region, NULL, at, end, &meta);
}

/* The engine says why, by a number that need not be one. */
static COLD void fail(struct offload_ring *r, unsigned kind, uint64_t seq,
		      uint8_t *status)
{
	struct offload_failure *f = &r->failure[kind][seq & r->map.mask];

	f->seq = seq;
	f->err = *status <= ERRNO_MAX ? -(int)*status : -EREMOTEIO;
	r->failures++;
	/* For the next request in this place; the engine is done with it. */
	*status = 0;
}

/* `done` requests have ended, of which some failed; the rest moved bytes. */
static void count(struct offload_ring *r, unsigned kind, uint64_t done,
		  uint64_t failed, uint64_t bytes)
{
	uint64_t *c = r->tally->count;

	c[TALLY_ERRORS] += failed;
	c[kind == OFFLOAD_RD ? TALLY_READS : TALLY_WRITES] += done - failed;
	c[kind == OFFLOAD_RD ? TALLY_READ_BYTES : TALLY_WRITE_BYTES] += bytes;
	r->probe.ended += done;
	if (r->probe.what && kind == r->probe_kind &&
	    r->done[kind] >= r->probe_seq)
		tally_probe_end(&r->probe, r->tally,
				client_clock_now_ns(r->clock));
}

/* Copies, because the ring's bytes are reused as soon as they are free. */
static inline void harvest(struct offload_ring *r, unsigned kind, uint64_t end)
{
	const struct offload_pending *p = NULL;
	uint64_t seq = r->done[kind], first = seq, failures = r->failures;
	uint64_t bytes = 0;

	while (seq < end) {
		uint8_t *status;

		p = &r->pending[kind][++seq & r->map.mask];
		status = &r->status[p->pos & r->map.mask];
		if (UNLIKELY(*status)) {
			fail(r, kind, seq, status);
			continue;
		}
		bytes += p->len_bytes;
		if (kind == OFFLOAD_RD)
			memcpy(p->dest, r->data[OFFLOAD_RD] + p->data_at,
			       p->len_bytes);
	}
	if (p)
		r->data_head[kind] = p->data_end;
	r->done[kind] = seq;
	if (r->tally && seq != first)
		count(r, kind, seq - first, r->failures - failures, bytes);
}

/* The rings are of no use any more; what was read where may tell why. */
static COLD int break_off(struct offload_ring *r, struct offload_done done)
{
	const struct offload_preamble *p = (void *)r->base;

	r->err = error_set(
		-EPROTO,
		"the engine's progress is impossible: it says %u reads and %u "
		"writes, %llu and %llu were known, %llu and %llu issued; its "
		"head is %llu with %llu reads, epoch %u",
		done.reads, done.writes,
		(unsigned long long)r->done[OFFLOAD_RD],
		(unsigned long long)r->done[OFFLOAD_WR],
		(unsigned long long)r->issued[OFFLOAD_RD],
		(unsigned long long)r->issued[OFFLOAD_WR],
		(unsigned long long)p->red.head,
		(unsigned long long)p->red.head_reads,
		p->red.node[OFFLOAD_NODES_MAX - 1].epoch);
	return r->err;
}

HOT int offload_ring_take(struct offload_ring *r, uint64_t word)
{
	struct offload_done done;
	uint64_t reads, writes, before;

	if (UNLIKELY(r->err))
		return r->err;
	memcpy(&done, &word, sizeof(done));
	reads = offload_extend(r->done[OFFLOAD_RD], done.reads);
	writes = offload_extend(r->done[OFFLOAD_WR], done.writes);
	/* What goes backwards looks like far beyond. */
	if (UNLIKELY(reads > r->issued[OFFLOAD_RD] ||
		     writes > r->issued[OFFLOAD_WR]))
		return break_off(r, done);
	r->seen = word;
	before = r->done[OFFLOAD_RD] + r->done[OFFLOAD_WR];
	harvest(r, OFFLOAD_RD, reads);
	harvest(r, OFFLOAD_WR, writes);
	r->head = oldest(r);
	own_next(r, reads + writes - before);
	return 0;
}

int offload_ring_result(const struct offload_ring *r, int64_t id)
{
	unsigned kind = offload_id_kind(id);
	uint64_t seq = offload_id_seq(id);
	const struct offload_failure *f;

	if (id < 0 || seq == 0 || seq > r->issued[kind])
		return -EINVAL;
	if (seq > r->done[kind])
		return 0;
	f = &r->failure[kind][seq & r->map.mask];
	return UNLIKELY(r->failures && f->seq == seq) ? f->err : 1;
}
