/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4. */
#include "siphash.h"

#include "bytes.h"

struct state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t word_at(const uint8_t *p)
{
	le64 w;

	memcpy(&w, p, sizeof(w));
	return le64_get(w);
}

struct siphash_key siphash_key(const uint8_t bytes[SIPHASH_KEY_BYTES])
{
	return (struct siphash_key){{word_at(bytes), word_at(bytes + 8)}};
}

static inline uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void mix(struct state *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 = rotate(s->v2, 32);
}

static inline void take(struct state *s, uint64_t word)
{
	s->v3 ^= word;
	mix(s);
	mix(s);
	s->v0 ^= word;
}

HOT uint64_t siphash(const struct siphash_key *key, const uint8_t *head,
		     size_t head_bytes, const uint8_t *data, size_t data_bytes)
{
	struct state s = {
		key->word[0] ^ UINT64_C(0x736f6d6570736575),
		key->word[1] ^ UINT64_C(0x646f72616e646f6d),
		key->word[0] ^ UINT64_C(0x6c7967656e657261),
		key->word[1] ^ UINT64_C(0x7465646279746573),
	};
	uint8_t last[8] = {[7] = (uint8_t)(head_bytes + data_bytes)};
	size_t i;

	for (i = 0; i < head_bytes; i += 8)
		take(&s, word_at(head + i));
	for (i = 0; i + 8 <= data_bytes; i += 8)
		take(&s, word_at(data + i));
	if (data_bytes > i)
		memcpy(last, data + i, data_bytes - i);
	take(&s, word_at(last));
	s.v2 ^= 0xff;
	mix(&s);
	mix(&s);
	mix(&s);
	mix(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
