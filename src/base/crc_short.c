/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 of short messages, without the start-up cost of a loop made for long
 * ones: every 16-byte block is multiplied by what its distance from the end of
 * the message is worth, all at once, and the sum is reduced once. 108 bytes
 * take 9 ns here against 22 ns with isa-l (EPYC 9004), and most of it overlaps
 * with what follows.
 */
#include "crc_short.h"

#include <string.h>

#include "live.h"

#ifdef __x86_64__

#include <immintrin.h>

#define PCLMUL __attribute__((target("pclmul,ssse3")))

/*
 * For each distance in blocks: x^(128 d + 32) and x^(128 d - 32) modulo the
 * polynomial, reflected and shifted by one, as the carry-less product of
 * reflected numbers wants them.
 */
static const uint64_t weight[CRC_SHORT_BLOCKS][2] = {
	{0},
	{0x1751997d0, 0x0ccaa009e},
	{0x0f1da05aa, 0x15a546366},
	{0x03db1ecdc, 0x174359406},
	{0x154442bd4, 0x1c6e41596},
	{0x1c7569e54, 0x0ae0b5394},
	{0x0df068dc2, 0x18cb44e58},
	{0x1ea89367e, 0x1d7cfc6ac},
	{0x1e88ef372, 0x14a7fe880},
	{0x1fdc60a7c, 0x03f41287a},
	{0x0e3543be0, 0x14b57d3f0},
	{0x1816ab61c, 0x10aae2566},
	{0x1821d8bc0, 0x12e958ac4},
	{0x1b35adb0e, 0x1e7146aac},
	{0x19159bb02, 0x125f17dfc},
	{0x1db06f64c, 0x1c47d2a9c},
};

static inline PCLMUL __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

static inline PCLMUL __m128i weigh(__m128i block, size_t distance)
{
	__m128i w = load(weight[distance]);

	return _mm_xor_si128(_mm_clmulepi64_si128(block, w, 0x00),
			     _mm_clmulepi64_si128(block, w, 0x11));
}

/* `sum` and the blocks from p on, the last of which has no weight. */
static inline PCLMUL __m128i add_blocks(__m128i sum, const uint8_t *p,
					size_t count)
{
	while (count > 1) {
		sum = _mm_xor_si128(sum, weigh(load(p), --count));
		p += 16;
	}
	return count ? _mm_xor_si128(sum, load(p)) : sum;
}

/* 128 bits to 96, to 64, and by Barrett's reduction to the register. */
static inline PCLMUL uint32_t reduce(__m128i v)
{
	const __m128i low = _mm_set_epi64x(0, 0xffffffff);
	const __m128i x96 = _mm_set_epi64x(0, 0x0ccaa009e);
	const __m128i x64 = _mm_set_epi64x(0, 0x163cd6124);
	const __m128i mu_p = _mm_set_epi64x(0x1f7011641, 0x1db710641);
	__m128i t;

	v = _mm_xor_si128(_mm_srli_si128(v, 8),
			  _mm_clmulepi64_si128(v, x96, 0x00));
	v = _mm_xor_si128(
		_mm_srli_si128(v, 4),
		_mm_clmulepi64_si128(_mm_and_si128(v, low), x64, 0x00));
	t = _mm_clmulepi64_si128(_mm_and_si128(v, low), mu_p, 0x10);
	t = _mm_clmulepi64_si128(_mm_and_si128(t, low), mu_p, 0x00);
	return (uint32_t)((uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(v, t)) >>
			  32);
}

static PCLMUL uint32_t short_crc(uint32_t state, const uint8_t *p, size_t len)
{
	/* Moves the first bytes of a block to its end, zeros before them. */
	static const uint8_t slide[32] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0,    1,    2,	  3,	4,    5,    6,	  7,
		8,    9,    10,	  11,	12,   13,   14,	  15,
	};
	size_t odd = len % 16;
	size_t count = len / 16;
	__m128i first = _mm_xor_si128(load(p), _mm_cvtsi32_si128((int)state));

	if (odd) {
		first = _mm_shuffle_epi8(first, load(slide + odd));
		return reduce(add_blocks(weigh(first, count), p + odd, count));
	}
	if (count > 1)
		return reduce(
			add_blocks(weigh(first, count - 1), p + 16, count - 1));
	return reduce(first);
}

/* The blocks after a lead of two; inlined with a count that is known. */
static inline PCLMUL __attribute__((always_inline)) uint32_t lead_blocks(
	__m128i sum, uint8_t *dst, const uint8_t *src, size_t count)
{
	__m128i block;
	size_t i;

#pragma GCC unroll 4
	for (i = 0; i < count; i++) {
		block = load(src + 16 * i);
		if (dst)
			_mm_storeu_si128((void *)(dst + 16 * i), block);
		if (i + 1 < count)
			block = weigh(block, count - 1 - i);
		sum = _mm_xor_si128(sum, block);
	}
	return reduce(sum);
}

static PCLMUL uint32_t lead_crc(uint64_t a1, uint64_t b0, uint64_t b1,
				uint8_t *dst, const uint8_t *src, size_t count)
{
	__m128i b = _mm_set_epi64x((long long)b1, (long long)b0);
	__m128i sum = count ? weigh(b, count) : b;

	/* An AETH leaves the first block empty. */
	if (a1)
		sum = _mm_xor_si128(sum, weigh(_mm_set_epi64x((long long)a1, 0),
					       count + 1));
	if (count == 0)
		return reduce(sum);
	if (count == 4)
		return dst ? lead_blocks(sum, dst, src, 4)
			   : lead_blocks(sum, NULL, src, 4);
	return lead_blocks(sum, dst, src, count);
}

/* The C library's start-up code asked the processor once. */
static inline bool has_pclmul(void)
{
	return __builtin_cpu_supports("pclmul") &&
	       __builtin_cpu_supports("ssse3");
}

HOT uint32_t crc32_short(uint32_t state, const void *buf, size_t len_bytes)
{
	if (UNLIKELY(!has_pclmul()))
		return crc32_long(state, buf, len_bytes);
	return short_crc(state, buf, len_bytes);
}

HOT uint32_t crc32_lead(uint64_t a1, uint64_t b0, uint64_t b1, void *dst,
			const void *src, size_t len_bytes)
{
	if (UNLIKELY(!has_pclmul()))
		return crc32_lead_plain(a1, b0, b1, dst, src, len_bytes);
	return lead_crc(a1, b0, b1, dst, src, len_bytes / 16);
}

#else

uint32_t crc32_short(uint32_t state, const void *buf, size_t len_bytes)
{
	return crc32_long(state, buf, len_bytes);
}

uint32_t crc32_lead(uint64_t a1, uint64_t b0, uint64_t b1, void *dst,
		    const void *src, size_t len_bytes)
{
	return crc32_lead_plain(a1, b0, b1, dst, src, len_bytes);
}

#endif

uint32_t crc32_lead_plain(uint64_t a1, uint64_t b0, uint64_t b1, void *dst,
			  const void *src, size_t len_bytes)
{
	const uint64_t lead[3] = {a1, b0, b1};

	if (len_bytes == 0) {
		src = NULL;
	} else if (dst) {
		live_move(dst, src, len_bytes);
		src = dst;
	}
	return crc32_long(crc32_long(0, lead, sizeof(lead)), src, len_bytes);
}
