/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded randomness and the trace hash: what makes a run repeatable. */
#include <string.h>

#include "sim_priv.h"

static uint64_t rotl(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

/* splitmix64: spreads a small seed over the whole state. */
static uint64_t spread(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void sim_rand_init(struct sim_rand *r, uint64_t seed, uint64_t stream)
{
	uint64_t x = stream;

	x = seed ^ spread(&x);
	for (unsigned i = 0; i < ARRAY_LEN(r->s); i++)
		r->s[i] = spread(&x);
}

uint64_t sim_rand_u64(struct sim_rand *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

void sim_rand_bytes(struct sim_rand *r, void *buf, size_t len_bytes)
{
	uint8_t *p = buf;

	while (len_bytes) {
		uint64_t v = sim_rand_u64(r);
		size_t n = u64_min(len_bytes, sizeof(v));

		memcpy(p, &v, n);
		p += n;
		len_bytes -= n;
	}
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9fb21c651e98df25ull;
	return h ^ h >> 32;
}

void sim_note(struct sim *sim, enum sim_note kind, const void *data,
	      size_t len_bytes)
{
	const uint8_t *p = data;
	uint64_t h = mix(sim->hash, sim->now_ps);
	uint64_t v;

	h = mix(h, (uint64_t)kind << 56 | len_bytes);
	for (; len_bytes >= sizeof(v); p += sizeof(v), len_bytes -= sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		h = mix(h, v);
	}
	v = 0;
	memcpy(&v, p, len_bytes);
	sim->hash = mix(h, v);
}

uint64_t sim_trace_hash(const struct sim *sim)
{
	return mix(sim->hash, sim->now_ps);
}
