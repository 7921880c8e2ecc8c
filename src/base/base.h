/* SPDX-License-Identifier: Apache-2.0 */
/* Macros and small inline helpers that every room uses; no state, no I/O. */
#ifndef AQ_BASE_H
#define AQ_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK    __attribute__((warn_unused_result))
#define PRINTF(a, b)  __attribute__((format(printf, a, b)))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define HOT	      __attribute__((hot))
#define COLD	      __attribute__((cold, noinline))
#define LIKELY(x)     __builtin_expect(!!(x), 1)
#define UNLIKELY(x)   __builtin_expect(!!(x), 0)
#define STATIC_ASSERT _Static_assert
#define ARRAY_LEN(a)  (sizeof(a) / sizeof((a)[0]))

#define CACHE_LINE    64
#define CACHE_ALIGNED __attribute__((aligned(CACHE_LINE)))

/* gcc takes a function that does nothing but this for one without effect, and
 * leaves its call out; an empty instruction keeps it. */
#define PREFETCH_AS(p, rw)                      \
	do {                                    \
		__builtin_prefetch((p), rw, 3); \
		__asm__ volatile("");           \
	} while (0)
#define PREFETCH(p)    PREFETCH_AS(p, 0)
#define PREFETCH_RW(p) PREFETCH_AS(p, 1)

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

/*
 * ASSERT is for our own bugs only; it stays on in release builds. Bytes from a
 * peer, a user or remote memory are checked and counted, never asserted.
 */
#define ASSERT(cond)                                                 \
	do {                                                         \
		if (UNLIKELY(!(cond)))                               \
			base_assert_fail(#cond, __FILE__, __LINE__); \
	} while (0)

void base_assert_fail(const char *cond, const char *file, int line)
	__attribute__((noreturn, cold));

static inline uint64_t u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint32_t u32_min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t u32_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* `align` is a power of two. */
static inline uint64_t align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

/* The smallest power of two that is at least v; v is at most 2^31. */
static inline uint32_t u32_pow2_ceil(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

#endif
