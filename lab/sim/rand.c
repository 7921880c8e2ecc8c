/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded randomness and the trace hash: what makes a run repeatable. */
#include <string.h>

#include "sim_priv.h"

void sim_rand_init(struct rng *r, uint64_t seed, uint64_t stream)
{
	struct rng spread;

	rng_init(&spread, stream);
	rng_init(r, seed ^ spread.s[0]);
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
