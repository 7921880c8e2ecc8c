/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application of the paper's first experiment: draw a key, hash it, find it
 * in an index that does not fit any cache, get the record, check the record.
 * Every twentieth record is near; the caller fetches the others.
 */
#ifndef AQ_BENCH_PROBE_H
#define AQ_BENCH_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "sim/ycsb.h"

enum {
	PROBE_NEAR_EVERY = 20,
};

#define PROBE_NEAR (1ull << 63)

/* An index with chains: a table of heads, and an entry for each record. */
struct probe_entry {
	uint64_t key;
	uint64_t place; /* offset among the near or the far ones */
	uint32_t next;	/* entry + 1; 0: none */
	uint32_t reserved;
};

struct probe {
	uint32_t *head; /* entry + 1; 0: none */
	uint64_t mask;
	struct probe_entry *entry;
	uint8_t *near; /* the near records */
	uint32_t record_bytes;
	uint64_t record_count;
	struct ycsb_keys keys;
	struct ycsb gen;
};

/* 0 or -errno. */
int probe_init(struct probe *p, uint64_t record_count, uint32_t record_bytes,
	       uint64_t seed) __attribute__((warn_unused_result));
void probe_release(struct probe *p);

/* Bytes of all far records, and their contents from record `first` on: fills
 * whole records and returns how many bytes. `first` counts far records. */
uint64_t probe_far_bytes(uint64_t record_count, uint32_t record_bytes);
void probe_far_fill(uint8_t *to, uint64_t first, uint64_t count,
		    uint32_t record_bytes);

/* The key of a far record; `n` counts those. */
static inline uint64_t probe_far_key(uint64_t n)
{
	return ycsb_key(n + n / (PROBE_NEAR_EVERY - 1) + 1);
}

static inline uint64_t probe_hash(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdull;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ull;
	return key ^ key >> 33;
}

/* The work before the record: its key and its place. */
static inline uint64_t probe_draw(struct probe *p, uint64_t *key)
{
	uint64_t k = ycsb_key(ycsb_next(&p->gen).record);
	const struct probe_entry *e =
		&p->entry[p->head[probe_hash(k) & p->mask] - 1];

	while (e->key != k)
		e = &p->entry[e->next - 1];
	*key = k;
	return e->place;
}

/* Asks for the lines of a record that is in this process: a near one, or any if
 * the far ones are at `memory`. */
static inline void probe_ask(const struct probe *p, const uint8_t *memory,
			     uint64_t place)
{
	const uint8_t *base = place & PROBE_NEAR ? p->near : memory;

	for (uint32_t at = 0; base && at < p->record_bytes; at += CACHE_LINE)
		PREFETCH(base + (place & ~PROBE_NEAR) + at);
}

/* As probe_draw, for several keys in steps that each touch one line per key and
 * ask for the next, so that the misses of different keys overlap. */
static inline void probe_draw_many(struct probe *p, unsigned count,
				   uint64_t *key, uint64_t *place)
{
	for (unsigned i = 0; i < count; i++) {
		key[i] = ycsb_key(ycsb_next(&p->gen).record);
		place[i] = probe_hash(key[i]) & p->mask;
		PREFETCH(&p->head[place[i]]);
	}
	for (unsigned i = 0; i < count; i++) {
		place[i] = p->head[place[i]] - 1;
		PREFETCH(&p->entry[place[i]]);
	}
	for (unsigned i = 0; i < count; i++) {
		const struct probe_entry *e = &p->entry[place[i]];

		while (e->key != key[i])
			e = &p->entry[e->next - 1];
		place[i] = e->place;
	}
}

/* The work after it: all words of a record add up to its key's hash. */
static inline bool probe_check(const void *record, uint32_t record_bytes,
			       uint64_t key)
{
	const uint8_t *p = record;
	uint64_t sum = 0, word;

	for (uint32_t i = 0; i < record_bytes; i += 8) {
		memcpy(&word, p + i, 8);
		sum += word;
	}
	return sum == probe_hash(key);
}

#endif
