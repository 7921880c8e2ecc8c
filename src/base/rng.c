/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256**, seeded through splitmix64 as its authors advise. */
#include "rng.h"

#include <string.h>

#include "bytes.h"

enum {
	MILLION = 1000000,
};

static uint64_t rotl(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void rng_init(struct rng *r, uint64_t seed)
{
	unsigned i;

	/* Four outputs of splitmix are never all zero. */
	for (i = 0; i < ARRAY_LEN(r->s); i++)
		r->s[i] = splitmix(&seed);
}

void rng_init_stream(struct rng *r, uint64_t seed, uint64_t stream)
{
	uint64_t mixed = splitmix(&seed) ^ rotl(splitmix(&stream), 32);

	rng_init(r, mixed);
}

void rng_init_text(struct rng *r, const char *text)
{
	uint64_t seed = 14695981039346656037u; /* FNV-1a */

	for (; *text; text++)
		seed = (seed ^ (uint8_t)*text) * 1099511628211u;
	rng_init(r, seed);
}

uint64_t rng_u64(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t out = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return out;
}

uint64_t rng_below(struct rng *r, uint64_t bound)
{
	unsigned __int128 wide;

	ASSERT(bound > 0);
	/* The high half of a 64x64 product is uniform once the 2^64 mod bound
	 * smallest low halves are refused (Lemire, 2019). */
	do {
		wide = (unsigned __int128)rng_u64(r) * bound;
	} while ((uint64_t)wide < bound && (uint64_t)wide < -bound % bound);
	return (uint64_t)(wide >> 64);
}

uint64_t rng_between(struct rng *r, uint64_t low, uint64_t high)
{
	ASSERT(low <= high);
	if (high - low == UINT64_MAX)
		return rng_u64(r);
	return low + rng_below(r, high - low + 1);
}

bool rng_chance_ppm(struct rng *r, uint32_t ppm)
{
	/* No rejection: one draw exactly. The bias is below 2^-44. */
	uint64_t v = (uint64_t)((unsigned __int128)rng_u64(r) * MILLION >> 64);

	return v < ppm;
}

double rng_double(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

void rng_fill(struct rng *r, void *buf, size_t len_bytes)
{
	uint8_t *p = buf;

	while (len_bytes) {
		size_t n = len_bytes < 8 ? len_bytes : 8;
		le64 word = le64_put(rng_u64(r));

		memcpy(p, word.b, n);
		p += n;
		len_bytes -= n;
	}
}
