/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in which every word is whole, of memory that others write to, and to
 * memory that others read. */
#include "live.h"

#include <stdatomic.h>
#include <string.h>

enum {
	WORD_BYTES = 8,
	PAIR_BYTES = 16,
	LINE_BYTES = 4 * PAIR_BYTES,
	SMALL_BYTES = 96, /* word by word; above, memcpy stores the bulk */
	TAIL_BYTES = 64,  /* but not the end, which is stored in order */
};

/* Two words at an address that is a multiple of eight. No processor that loads
 * sixteen bytes at once splits an aligned half of them. */
typedef uint64_t pair_from
	__attribute__((vector_size(PAIR_BYTES), aligned(8), may_alias));
typedef uint64_t pair_to
	__attribute__((vector_size(PAIR_BYTES), aligned(1), may_alias));

/* Not a loop over pairs, which compilers take for a memmove. */
static inline void move_line(uint8_t *dst, const uint8_t *src)
{
	const pair_from *from = (const void *)src;
	pair_to *to = (void *)dst;
	pair_from a = from[0], b = from[1], c = from[2], d = from[3];

	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
}

/* LIVE-1, with the release of whoever owns the memory, an application or a NIC
 * (the stores below, core/touch.c): what is READ after a word is no older than
 * what it announces. */
static inline void move8(uint8_t *dst, const uint8_t *src)
{
	/* LIVE-1 */
	uint64_t w = atomic_load_explicit(
		(const _Atomic uint64_t *)(const void *)src,
		memory_order_acquire);

	memcpy(dst, &w, sizeof(w));
}

static inline void move4(uint8_t *dst, const uint8_t *src)
{
	/* LIVE-1 */
	uint32_t w = atomic_load_explicit(
		(const _Atomic uint32_t *)(const void *)src,
		memory_order_acquire);

	memcpy(dst, &w, sizeof(w));
}

static inline void move2(uint8_t *dst, const uint8_t *src)
{
	/* LIVE-1 */
	uint16_t w = atomic_load_explicit(
		(const _Atomic uint16_t *)(const void *)src,
		memory_order_acquire);

	memcpy(dst, &w, sizeof(w));
}

/* Up to where `src` is aligned to eight, or everything if that is less. Words
 * that do not end before `len` are left to the end. */
static size_t move_head(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t n = 0;

	if ((uintptr_t)src & 1 && len >= 1) {
		dst[0] = src[0];
		n = 1;
	}
	if ((uintptr_t)(src + n) & 2 && len - n >= 2) {
		move2(dst + n, src + n);
		n += 2;
	}
	if ((uintptr_t)(src + n) & 4 && len - n >= 4) {
		move4(dst + n, src + n);
		n += 4;
	}
	return n;
}

/* Less than eight bytes. */
static void move_tail(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t n = 0;

	if (len & 4) {
		move4(dst, src);
		n = 4;
	}
	if (len & 2) {
		move2(dst + n, src + n);
		n += 2;
	}
	if (len & 1)
		dst[n] = src[n];
}

HOT void live_move(void *to, const void *from, size_t len_bytes)
{
	const uint8_t *src = from;
	uint8_t *dst = to;
	size_t len = len_bytes, n;

	if (LIKELY(len == 8 && (uintptr_t)src % 8 == 0)) {
		move8(dst, src);
		return;
	}
	if (UNLIKELY(!len))
		return; /* there may be no memory at all */
	if (UNLIKELY(dst < src + len && src < dst + len)) {
		memmove(dst, src, len);
		return;
	}
	n = UNLIKELY((uintptr_t)src % 8) ? move_head(dst, src, len) : 0;
	for (; len - n >= LINE_BYTES; n += LINE_BYTES)
		move_line(dst + n, src + n);
	for (; len - n >= 8; n += 8)
		move8(dst + n, src + n);
	move_tail(dst + n, src + n, len - n);
}

/* LIVE-1, with the loads above, or those of the program that owns the memory
 * and polls it: each store is released after those before it, which costs
 * nothing on x86. */
static inline void put8(uint8_t *dst, const uint8_t *src)
{
	uint64_t w;

	memcpy(&w, src, sizeof(w));
	/* LIVE-1 */
	atomic_store_explicit((_Atomic uint64_t *)(void *)dst, w,
			      memory_order_release);
}

static inline void put4(uint8_t *dst, const uint8_t *src)
{
	uint32_t w;

	memcpy(&w, src, sizeof(w));
	/* LIVE-1 */
	atomic_store_explicit((_Atomic uint32_t *)(void *)dst, w,
			      memory_order_release);
}

static inline void put2(uint8_t *dst, const uint8_t *src)
{
	uint16_t w;

	memcpy(&w, src, sizeof(w));
	/* LIVE-1 */
	atomic_store_explicit((_Atomic uint16_t *)(void *)dst, w,
			      memory_order_release);
}

static inline void put1(uint8_t *dst, const uint8_t *src)
{
	/* LIVE-1 */
	atomic_store_explicit((_Atomic uint8_t *)dst, *src,
			      memory_order_release);
}

/* As move_head, for `dst`. */
static size_t put_head(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t n = 0;

	if ((uintptr_t)dst & 1 && len >= 1) {
		put1(dst, src);
		n = 1;
	}
	if ((uintptr_t)(dst + n) & 2 && len - n >= 2) {
		put2(dst + n, src + n);
		n += 2;
	}
	if ((uintptr_t)(dst + n) & 4 && len - n >= 4) {
		put4(dst + n, src + n);
		n += 4;
	}
	return n;
}

/* Less than eight bytes. */
static void put_tail(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t n = 0;

	if (len & 4) {
		put4(dst, src);
		n = 4;
	}
	if (len & 2) {
		put2(dst + n, src + n);
		n += 2;
	}
	if (len & 1)
		put1(dst + n, src + n);
}

HOT void live_place(void *to, const void *from, size_t len_bytes)
{
	const uint8_t *src = from;
	uint8_t *dst = to;
	size_t len = len_bytes, n, bulk;

	if (UNLIKELY(!len))
		return; /* there may be no memory at all */
	n = UNLIKELY((uintptr_t)dst % WORD_BYTES) ? put_head(dst, src, len) : 0;
	if (len - n > SMALL_BYTES) {
		/* Vector instructions, which split no aligned word of eight
		 * bytes where all of them are. */
		bulk = (len - n - TAIL_BYTES) / WORD_BYTES * WORD_BYTES;
		memcpy(dst + n, src + n, bulk);
		n += bulk;
	}
	for (; len - n >= WORD_BYTES; n += WORD_BYTES)
		put8(dst + n, src + n);
	put_tail(dst + n, src + n, len - n);
}
