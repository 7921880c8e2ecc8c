/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte ring of frames in shared memory, one producer, one consumer, neither
 * trusting the other. Both halves are inline because they are the fast path of
 * every frame; setting a cable up is left to cable.c.
 *
 * Records start at multiples of 64 bytes with a 16-bit header: length and a
 * ready bit. The frame follows at offset 2, so that its IP header is aligned to
 * 16 bytes, an ACK fills one cache line and a 64-byte READ response two. There
 * is no shared write index: a record is published by its non-zero header, and
 * before that the producer zeroes the header of the place right behind, so the
 * consumer never takes bytes of an earlier lap for a header. A record that does
 * not fit before the end of the ring is preceded by a wrap marker. The
 * consumer's position has a cache line of its own, which the producer reads
 * only when its copy says that the ring is full.
 *
 * Orders:
 *  RING-1 the producer releases a header, the consumer acquires it: nobody sees
 *	   a frame that is not there yet.
 *  RING-2 the consumer releases the read position, the producer acquires it:
 *	   the bytes were read before they are overwritten.
 *
 * How a sleeping consumer is found is in bell.h; `exchange` belongs to that.
 */
#ifndef AQ_CABLE_RING_H
#define AQ_CABLE_RING_H

#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "doze.h"
#include "os_limits.h"

enum {
	RING_UNIT = 64,
	RING_HEADER_BYTES = 2,
	RING_READY = 0x8000,
	RING_WRAP = 0x4000,
	RING_LEN_MASK = 0x3fff,
	RING_AHEAD = 8, /* lines fetched early */
};

STATIC_ASSERT(OS_FRAME_MAX < (1 << 14), "a length fits its header");
STATIC_ASSERT(OS_RING_BYTES_MIN >= 2 * (OS_FRAME_MAX + 64),
	      "a record of any size fits an empty ring at any position");

/* Shared; written by the consumer only. */
struct ring_ctl {
	_Atomic uint64_t read_pos; /* bytes since the start, never wraps */
	uint8_t pad[120];	   /* the adjacent line is fetched along */
};
STATIC_ASSERT(sizeof(struct ring_ctl) == 128, "layout of struct ring_ctl");

/* The producer's private half. */
struct ring_tx {
	uint8_t *data;
	struct ring_ctl *ctl;
	uint64_t pos;
	uint64_t read_seen;  /* the consumer's position, as last read */
	uint64_t marker_off; /* where the last wrap marker was put */
	uint32_t size_bytes;
	bool broken;   /* the consumer wrote an impossible position */
	bool exchange; /* publish with a full barrier, see bell.h */
};

/* The consumer's private half. */
struct ring_rx {
	uint8_t *data;
	struct ring_ctl *ctl;
	uint64_t pos;
	uint64_t published;
	uint32_t size_bytes;
	uint32_t record_bytes; /* of the record that was peeked */
	bool broken;	       /* the producer wrote an impossible header */
};

/* `data` is zeroed and aligned to RING_UNIT; size_bytes is a power of two. */
void ring_tx_init(struct ring_tx *tx, struct ring_ctl *ctl, uint8_t *data,
		  uint32_t size_bytes);
void ring_rx_init(struct ring_rx *rx, struct ring_ctl *ctl, uint8_t *data,
		  uint32_t size_bytes);

/* Reads the consumer's position; false when it is impossible (broken). */
bool ring_tx_refresh(struct ring_tx *tx);

static inline _Atomic uint16_t *ring_header(uint8_t *data, uint64_t off)
{
	return (_Atomic uint16_t *)(void *)(data + off);
}

/* No record there yet. The word that a consumer may doze on is zero as a whole
 * until the next frame is written. */
static inline void ring_clear(uint8_t *data, uint64_t off)
{
	atomic_store_explicit((_Atomic uint32_t *)(void *)(data + off), 0,
			      memory_order_relaxed);
}

static inline uint32_t ring_record_bytes(size_t len_bytes)
{
	return (uint32_t)align_up(len_bytes + RING_HEADER_BYTES, RING_UNIT);
}

/* Frames of up to two lines, the usual ones, without a call: two copies of a
 * fixed size that may overlap. */
static inline void ring_copy(uint8_t *to, const uint8_t *from, size_t len_bytes)
{
	if (LIKELY(len_bytes - 32 <= 32)) {
		memcpy(to, from, 32);
		memcpy(to + len_bytes - 32, from + len_bytes - 32, 32);
	} else if (LIKELY(len_bytes - 64 <= 64)) {
		memcpy(to, from, 64);
		memcpy(to + len_bytes - 64, from + len_bytes - 64, 64);
	} else {
		memcpy(to, from, len_bytes);
	}
}

/*
 * Room for a frame of at most max_bytes (1..OS_FRAME_MAX), to be filled in
 * place and published, or forgotten. NULL: full, or broken.
 */
static inline uint8_t *ring_reserve(struct ring_tx *tx, size_t max_bytes)
{
	uint32_t need = ring_record_bytes(max_bytes);
	uint64_t off = tx->pos & (tx->size_bytes - 1);
	uint64_t to_end = tx->size_bytes - off;
	uint64_t total = need <= to_end ? need : to_end + need;

	/* One unit stays free: the header behind the record is zeroed. */
	total += RING_UNIT;
	if (UNLIKELY(tx->pos + total - tx->read_seen > tx->size_bytes)) {
		if (!ring_tx_refresh(tx) ||
		    tx->pos + total - tx->read_seen > tx->size_bytes)
			return NULL;
	}
	if (UNLIKELY(need > to_end)) {
		ring_clear(tx->data, 0);
		/* RING-1, for the marker. */
		atomic_store_explicit(ring_header(tx->data, off),
				      RING_READY | RING_WRAP,
				      memory_order_release);
		tx->marker_off = off;
		tx->pos += to_end;
		off = 0;
	}
	return tx->data + off + RING_HEADER_BYTES;
}

/*
 * Publishes a frame that was not built in place: `record` is the frame behind
 * RING_HEADER_BYTES bytes of room, and a reservation of its size was made. The
 * consumer polls the first line, and each poll takes it out of our cache; here
 * it is written last and all at once, so it moves only once.
 */
static inline void ring_publish_copy(struct ring_tx *tx, const uint8_t *record,
				     size_t len_bytes)
{
	uint64_t mask = tx->size_bytes - 1;
	uint8_t *to = tx->data + (tx->pos & mask);
	uint64_t next = tx->pos + ring_record_bytes(len_bytes);
	size_t end = len_bytes + RING_HEADER_BYTES;

	ring_clear(tx->data, next & mask);
	if (end > RING_UNIT) {
		memcpy(to + RING_UNIT, record + RING_UNIT, end - RING_UNIT);
		memcpy(to + RING_HEADER_BYTES, record + RING_HEADER_BYTES,
		       RING_UNIT - RING_HEADER_BYTES);
	} else {
		memcpy(to + RING_HEADER_BYTES, record + RING_HEADER_BYTES,
		       len_bytes);
	}
	/* RING-1, and the producer's half of BELL-1. */
	if (UNLIKELY(tx->exchange))
		atomic_exchange_explicit(ring_header(to, 0),
					 (uint16_t)(RING_READY | len_bytes),
					 memory_order_seq_cst);
	else /* RING-1 */
		atomic_store_explicit(ring_header(to, 0),
				      (uint16_t)(RING_READY | len_bytes),
				      memory_order_release);
	tx->pos = next;
	PREFETCH_RW(tx->data + ((next + 64) & mask));
	PREFETCH_RW(tx->data + ((next + 128) & mask));
}

/* Publishes the reserved frame with its true length, at least 1. */
static inline void ring_publish(struct ring_tx *tx, size_t len_bytes)
{
	uint64_t mask = tx->size_bytes - 1;
	uint64_t off = tx->pos & mask;
	uint64_t next = tx->pos + ring_record_bytes(len_bytes);

	ring_clear(tx->data, next & mask);
	/* RING-1, and the producer's half of BELL-1. */
	if (UNLIKELY(tx->exchange))
		atomic_exchange_explicit(ring_header(tx->data, off),
					 (uint16_t)(RING_READY | len_bytes),
					 memory_order_seq_cst);
	else /* RING-1 */
		atomic_store_explicit(ring_header(tx->data, off),
				      (uint16_t)(RING_READY | len_bytes),
				      memory_order_release);
	tx->pos = next;
	/* The next record's lines were last in the consumer's cache. */
	PREFETCH_RW(tx->data + ((next + 64) & mask));
	PREFETCH_RW(tx->data + ((next + 128) & mask));
}

/* Whether a record waits. BELL-1, after the sleeper's store: one of the two
 * sees the other. */
static inline bool ring_ready(const struct ring_rx *rx)
{
	return atomic_load_explicit(
		       ring_header(rx->data, rx->pos & (rx->size_bytes - 1)),
		       memory_order_seq_cst) != 0;
}

/* What a consumer that dozes waits for (doze.h); false: a record is there. */
static inline bool ring_doze_word(const struct ring_rx *rx,
				  struct doze_word *out)
{
	*out = (struct doze_word){
		.at = rx->data + (rx->pos & (rx->size_bytes - 1)),
	};
	return !rx->broken && !ring_ready(rx);
}

/* Rouses who waits for the record that was published at `pos`, or for the wrap
 * marker before it. */
static inline void ring_rouse(const struct ring_tx *tx, uint64_t pos)
{
	uint64_t off = pos & (tx->size_bytes - 1);

	doze_rouse(tx->data + off);
	if (off == 0)
		doze_rouse(tx->data + tx->marker_off);
}

/* The slow half of ring_peek: a wrap marker, or an invalid header. */
const uint8_t *ring_peek_odd(struct ring_rx *rx, uint32_t header,
			     size_t *len_bytes);

/*
 * The oldest frame, still in the ring and so still writable by a hostile
 * producer, or NULL: nothing there, or broken. Valid until ring_release.
 */
static inline const uint8_t *ring_peek(struct ring_rx *rx, size_t *len_bytes)
{
	uint64_t off = rx->pos & (rx->size_bytes - 1);
	/* RING-1. It is read once, then checked. */
	uint32_t h = atomic_load_explicit(ring_header(rx->data, off),
					  memory_order_acquire);
	uint32_t len = h & RING_LEN_MASK;

	if (h == 0)
		return NULL;
	if (UNLIKELY((h & (RING_READY | RING_WRAP)) != RING_READY || len == 0 ||
		     len > OS_FRAME_MAX ||
		     off + RING_HEADER_BYTES + len > rx->size_bytes ||
		     rx->broken))
		return ring_peek_odd(rx, h, len_bytes);
	rx->record_bytes = ring_record_bytes(len);
	*len_bytes = len;
	return rx->data + off + RING_HEADER_BYTES;
}

/*
 * The frame `places` after the peeked one, if the frames between have the same
 * length; else any bytes, or NULL. Good for a hint only.
 */
static inline const uint8_t *ring_peek_ahead(const struct ring_rx *rx,
					     size_t len_bytes, uint32_t places)
{
	uint64_t off = (rx->pos + (uint64_t)places * rx->record_bytes) &
		       (rx->size_bytes - 1);

	if (atomic_load_explicit(ring_header(rx->data, off),
				 memory_order_relaxed) !=
		    (RING_READY | len_bytes) ||
	    off + RING_HEADER_BYTES + len_bytes > rx->size_bytes)
		return NULL;
	return rx->data + off + RING_HEADER_BYTES;
}

/*
 * Prefetches what lies some lines after the peeked frame, and with `all` what
 * lies between: the lines are in the producer's cache, and one miss after the
 * other costs more than the work on a small frame.
 */
static inline void ring_prefetch(const struct ring_rx *rx, bool all)
{
	for (uint32_t i = all ? 1 : RING_AHEAD; i <= RING_AHEAD; i++)
		PREFETCH(rx->data +
			 ((rx->pos + i * RING_UNIT) & (rx->size_bytes - 1)));
}

/* Tells the producer how far the consumer is. */
static inline void ring_rx_publish(struct ring_rx *rx)
{
	if (rx->published == rx->pos)
		return;
	rx->published = rx->pos;
	/* RING-2 */
	atomic_store_explicit(&rx->ctl->read_pos, rx->pos,
			      memory_order_release);
}

/* Done with the peeked frame. The producer is told now and then, and when the
 * consumer calls ring_rx_publish at the end of a batch. */
static inline void ring_release(struct ring_rx *rx)
{
	rx->pos += rx->record_bytes;
	if (UNLIKELY(rx->pos - rx->published >= rx->size_bytes / 8))
		ring_rx_publish(rx);
}

/* When to wake a consumer that has not read `pos` whatever its flag says: its
 * application may have stopped polling without saying so. */
struct ring_nudge {
	uint64_t pos;
	uint64_t ns;
};

static inline bool ring_nudge_is_due(struct ring_nudge *n,
				     const struct ring_tx *tx, uint64_t now_ns)
{
	bool is_late = tx->read_seen < n->pos;

	if (is_late && now_ns < n->ns)
		return false;
	n->pos = is_late ? n->pos : tx->pos;
	n->ns = now_ns + (is_late ? OS_NUDGE_REST_NS : OS_NUDGE_NS);
	return is_late;
}

/* Whether everything published so far was read, by the last look. */
static inline bool ring_tx_all_read(const struct ring_tx *tx)
{
	return tx->read_seen == tx->pos;
}

#endif
