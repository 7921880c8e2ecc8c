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
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		r->len_max[k] = r->data_mask[k] / 2 + 1;
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
	atomic_init(&b->usable_bytes, size_bytes);
	atomic_init(&b->err, 0);
	b->is_read_only = is_read_only;
	return (int)r->region_count++;
}

void offload_ring_bound(struct offload_ring *r, uint32_t region,
			uint64_t size_bytes, int err)
{
	struct offload_bound *b = &r->region[region];

	atomic_store_explicit(&b->err, err, memory_order_relaxed);
	/* BOUND-1: who sees no bytes, at the other end, must see the error. */
	atomic_store_explicit(&b->usable_bytes, err ? 0 : size_bytes,
			      memory_order_release);
}

/* The oldest position under way. */
static inline uint64_t oldest(const struct offload_ring *r)
{
	uint64_t head = r->tail;

	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		if (r->done[k] < r->issued[k]) {
			const uint64_t next = (r->done[k] + 1) & r->map.mask;

			head = u64_min(head,
				       offload_extend(r->head,
						      r->pending[k][next].pos));
		}
	return head;
}

/* Why a request is refused that does not lie within its region. */
static COLD int64_t refuse(const struct offload_ring *r, unsigned kind,
			   uint32_t region, size_t len_bytes)
{
	int err;

	if (r->err)
		return r->err;
	if (region >= r->region_count)
		return -EBADF;
	/* BOUND-1: who sees no bytes must see why. */
	err = atomic_load_explicit(&r->region[region].err,
				   memory_order_acquire);
	if (err)
		return err;
	return len_bytes - 1 >= r->len_max[kind] ? -EMSGSIZE : -ERANGE;
}

/* Whether a request may be issued. A region that cannot be used has no bytes.
 */
static inline bool is_within(const struct offload_ring *r, unsigned kind,
			     uint32_t region, uint64_t offset, size_t len_bytes)
{
	uint64_t size;

	if (UNLIKELY(region >= r->region_count ||
		     len_bytes - 1 >= r->len_max[kind]))
		return false;
	size = atomic_load_explicit(&r->region[region].usable_bytes,
				    memory_order_relaxed);
	return LIKELY(offset <= size && len_bytes <= size - offset);
}

/* What a request takes of the data ring. */
static inline uint64_t room_of(size_t len_bytes)
{
	return align_up(len_bytes, OFFLOAD_DATA_ALIGN);
}

/* Where data goes that comes behind `at`. Never across the end: the rest of the
 * lap stays unused. Whoever issues and whoever harvests must agree on it. */
static inline uint64_t place(uint64_t at, uint64_t need, uint64_t mask)
{
	return LIKELY((at & mask) + need <= mask + 1) ? at
						      : align_up(at, mask + 1);
}

static void start_probe(struct offload_ring *r, unsigned kind)
{
	if (!r->tally || !tally_probe_is_idle(&r->probe))
		return;
	r->probe_kind = kind;
	r->probe_seq = r->issued[kind] + 1;
	tally_probe_start(&r->probe, r, client_clock_now_ns(r->clock));
}

enum {
	TIMED_MASK = 255,
};

/* What need not be done for each request: finds out whether there is room in
 * both rings, and how far it goes. The request is issued if this is 0. */
static COLD int make_room(struct offload_ring *r, unsigned kind, uint64_t need)
{
	const uint64_t mask = r->data_mask[kind];
	const uint64_t start = place(r->data_tail[kind], need, mask);
	const uint64_t full = r->data_head[kind] + mask + 1;

	if (r->err)
		return r->err;
	if (r->tail - r->head == r->map.entries || start + need > full)
		return -EAGAIN;
	if ((r->tail & TIMED_MASK) == 0)
		start_probe(r, kind);
	r->data_tail[kind] = start;
	r->data_stop[kind] = u64_min((start | mask) + 1, full);
	r->tail_stop =
		u64_min(r->head + r->map.entries, (r->tail | TIMED_MASK) + 1);
	return 0;
}

/* Whether that is known. */
static inline bool has_room(const struct offload_ring *r, unsigned kind,
			    uint64_t need)
{
	return LIKELY(r->tail != r->tail_stop &&
		      need <= r->data_stop[kind] - r->data_tail[kind]);
}

static inline int64_t issue(struct offload_ring *r, unsigned kind, void *dest,
			    uint64_t need, const struct offload_meta *meta)
{
	const uint64_t tail = r->tail, mask = r->map.mask;
	const uint64_t seq = r->issued[kind] + 1;
	struct offload_green green = {.tail = (uint32_t)tail + 1};
	uint64_t word;

	r->meta[tail & mask] = *meta;
	r->pending[kind][seq & mask] =
		(struct offload_pending){.dest = dest,
					 .len_bytes = meta->len_bytes,
					 .pos = (uint32_t)tail};
	r->data_tail[kind] += need;
	r->tail = tail + 1;
	r->issued[kind] = seq;
	green.wdata_tail = (uint32_t)r->data_tail[OFFLOAD_WR];
	memcpy(&word, &green, sizeof(word));
	/* GREEN-1: the engine READs this word, then what it announces. */
	atomic_store_explicit(r->green, word, memory_order_release);
	return (int64_t)((uint64_t)kind << OFFLOAD_ID_WRITE_BIT |
			 (uint64_t)meta->region << OFFLOAD_ID_REGION_BIT | seq);
}

/* Calls that end a function cost it no registers, so that the usual way through
 * it needs no stack. */
static COLD int64_t read_again(struct offload_ring *r, uint32_t region,
			       uint64_t offset, void *dest, size_t len_bytes)
{
	int err = make_room(r, OFFLOAD_RD, room_of(len_bytes));

	return err ? err
		   : offload_ring_read(r, region, offset, dest, len_bytes);
}

HOT int64_t offload_ring_read(struct offload_ring *r, uint32_t region,
			      uint64_t offset, void *dest, size_t len_bytes)
{
	const uint64_t need = room_of(len_bytes);
	struct offload_meta meta;

	if (!is_within(r, OFFLOAD_RD, region, offset, len_bytes))
		return refuse(r, OFFLOAD_RD, region, len_bytes);
	if (!has_room(r, OFFLOAD_RD, need))
		return read_again(r, region, offset, dest, len_bytes);
	meta = (struct offload_meta){.rw_type = OFFLOAD_READ,
				     .region = (uint16_t)region,
				     .len_bytes = (uint32_t)len_bytes,
				     .req_addr = offset,
				     .resp_addr = r->data_tail[OFFLOAD_RD] &
						  r->data_mask[OFFLOAD_RD]};
	return issue(r, OFFLOAD_RD, dest, need, &meta);
}

static COLD int64_t write_again(struct offload_ring *r, uint32_t region,
				uint64_t offset, const void *src,
				size_t len_bytes)
{
	int err = make_room(r, OFFLOAD_WR, room_of(len_bytes));

	return err ? err
		   : offload_ring_write(r, region, offset, src, len_bytes);
}

HOT int64_t offload_ring_write(struct offload_ring *r, uint32_t region,
			       uint64_t offset, const void *src,
			       size_t len_bytes)
{
	const uint64_t need = room_of(len_bytes);
	struct offload_meta meta;
	uint64_t at;

	if (!is_within(r, OFFLOAD_WR, region, offset, len_bytes))
		return refuse(r, OFFLOAD_WR, region, len_bytes);
	if (UNLIKELY(r->region[region].is_read_only))
		return -EACCES;
	if (!has_room(r, OFFLOAD_WR, need))
		return write_again(r, region, offset, src, len_bytes);
	at = r->data_tail[OFFLOAD_WR] & r->data_mask[OFFLOAD_WR];
	memcpy(r->data[OFFLOAD_WR] + at, src, len_bytes);
	meta = (struct offload_meta){.rw_type = OFFLOAD_WRITE,
				     .region = (uint16_t)region,
				     .len_bytes = (uint32_t)len_bytes,
				     .req_addr = at,
				     .resp_addr = offset};
	return issue(r, OFFLOAD_WR, NULL, need, &meta);
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

enum {
	OWN_MIN = 16,  /* entries, some lines */
	OWN_MAX = 128, /* 48 lines */
	OWN_STEP = CACHE_LINE / sizeof(struct offload_meta),
};

/* Entries of the metadata ring, by position. */
struct own {
	uint64_t next, end;
};

/*
 * The engine's READs left the lines of the entries that come next with another
 * core, too. A store waits for its line, and all stores behind it wait as well:
 * a core has room for those of some ten requests, so it would fetch few lines
 * at a time. Who has taken results issues as many requests next; one store into
 * each of their lines, for which nobody waits, brings them back meanwhile. A
 * prefetch does not, not even one for writing, since the line is here, if only
 * to read.
 */
static inline struct own own_begin(const struct offload_ring *r, uint64_t taken)
{
	const uint64_t free = r->map.entries - (r->tail - r->head);
	const uint64_t next = u64_min(u64_max(taken, OWN_MIN), OWN_MAX);

	return (struct own){r->tail, r->tail + u64_min(free, next)};
}

static inline void own_line(struct offload_ring *r, struct own *o)
{
	r->meta[o->next & r->map.mask].rw_type = OFFLOAD_NONE;
	o->next += OWN_STEP;
}

/* What is left of them, and the green word, which the engine has read as well.
 */
static inline void own_rest(struct offload_ring *r, struct own *o)
{
	while (o->next < o->end)
		own_line(r, o);
	/* GREEN-1: the same word again. */
	atomic_store_explicit(
		r->green, atomic_load_explicit(r->green, memory_order_relaxed),
		memory_order_release);
}

/* A record of one line is copied without a call, which would take longer. */
static inline void copy_out(void *to, const void *from, uint32_t len_bytes)
{
	if (LIKELY(len_bytes == CACHE_LINE))
		memcpy(to, from, CACHE_LINE);
	else
		memcpy(to, from, len_bytes);
}

enum {
	AHEAD = 16 * CACHE_LINE, /* as many lines as a core waits for at once */
};

/* Another core has written the results, and one line after the other would take
 * longer than the rest. */
static inline void fetch_first(const struct offload_ring *r, unsigned kind)
{
	const uint64_t from = r->data_head[kind], mask = r->data_mask[kind];
	const uint64_t to = u64_min(from + AHEAD, r->data_tail[kind]);

	for (uint64_t at = from; at < to; at += CACHE_LINE)
		PREFETCH(r->data[kind] + (at & mask));
}

/* What is taken of one kind: a walk over requests and their data. */
struct taking {
	const struct offload_pending *pending;
	const uint8_t *data;
	uint64_t mask, data_mask;
	uint64_t seq, end; /* the last that was taken, and the last that is */
	uint64_t at;	   /* counted from 0 on, behind what was taken */
	uint64_t bytes;
};

/* Whether no request failed and no data is beyond the ring's end, so that
 * neither has to be looked at for each. */
static inline bool is_plain(const struct offload_ring *r,
			    const struct taking *t, unsigned kind)
{
	const uint64_t first = t->pending[(t->seq + 1) & t->mask].pos & t->mask;
	const uint64_t last = t->pending[t->end & t->mask].pos & t->mask;
	const uint8_t *status = r->status;
	uint64_t any = 0, at;

	if (last < first || (t->at | t->data_mask) + 1 < r->data_tail[kind])
		return false;
	/* Places of the other kind may be among them, which does no harm. */
	for (at = first; at + sizeof(any) <= last + 1; at += sizeof(any)) {
		uint64_t word;

		memcpy(&word, status + at, sizeof(word));
		any |= word;
	}
	for (; at <= last; at++)
		any |= status[at];
	return any == 0;
}

/* Copies, because the ring's bytes are reused as soon as they are free. */
static inline void take_plain(struct taking *t)
{
	const struct offload_pending *pending = t->pending;
	const uint64_t mask = t->mask, end = t->end;
	const uint8_t *from = t->data + (t->at & t->data_mask);
	const uint8_t *const begin = from;
	uint64_t seq = t->seq, bytes = 0;

	while (seq < end) {
		const struct offload_pending *p = &pending[++seq & mask];

		PREFETCH(from + AHEAD);
		copy_out(p->dest, from, p->len_bytes);
		bytes += p->len_bytes;
		from += room_of(p->len_bytes);
	}
	t->bytes = bytes;
	t->at += (uint64_t)(from - begin);
	t->seq = seq;
}

static void take_each(struct offload_ring *r, struct taking *t, unsigned kind)
{
	while (t->seq < t->end) {
		const struct offload_pending *p =
			&t->pending[++t->seq & t->mask];
		uint8_t *status = &r->status[p->pos & t->mask];
		uint64_t need = room_of(p->len_bytes);

		t->at = place(t->at, need, t->data_mask);
		if (UNLIKELY(*status)) {
			fail(r, kind, t->seq, status);
		} else {
			t->bytes += p->len_bytes;
			if (kind == OFFLOAD_RD)
				copy_out(p->dest,
					 t->data + (t->at & t->data_mask),
					 p->len_bytes);
		}
		t->at += need;
	}
}

static inline void harvest(struct offload_ring *r, unsigned kind, uint64_t end)
{
	struct taking t = {.pending = r->pending[kind],
			   .data = r->data[kind],
			   .mask = r->map.mask,
			   .data_mask = r->data_mask[kind],
			   .seq = r->done[kind],
			   .end = end,
			   .at = r->data_head[kind]};
	const uint64_t before = t.seq, failures = r->failures;

	if (before == end)
		return;
	if (kind == OFFLOAD_RD)
		fetch_first(r, kind);
	if (kind == OFFLOAD_RD && LIKELY(is_plain(r, &t, kind)))
		take_plain(&t);
	else
		take_each(r, &t, kind);
	r->data_head[kind] = t.at;
	r->done[kind] = end;
	if (r->tally)
		count(r, kind, end - before, r->failures - failures, t.bytes);
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
	r->tail_stop = r->tail; /* the next request is told */
	return r->err;
}

HOT int offload_ring_take(struct offload_ring *r, uint64_t word)
{
	struct offload_done done;
	uint64_t reads, writes;
	struct own own;

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
	own = own_begin(r, reads + writes - r->done[OFFLOAD_RD] -
				   r->done[OFFLOAD_WR]);
	harvest(r, OFFLOAD_RD, reads);
	harvest(r, OFFLOAD_WR, writes);
	r->head = oldest(r);
	own_rest(r, &own);
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
