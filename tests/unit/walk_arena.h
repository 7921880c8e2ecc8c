/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Structures of random content in an arena, and the ready walks on them. Keys
 * are drawn from a small range, so that many are there and many are not; key k
 * has the value k * 7 + 3, repeated. Include cmocka.h before it.
 */
#ifndef WALK_ARENA_H
#define WALK_ARENA_H

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"
#include "walk/program.h"
#include "walk/ready.h"

enum {
	ARENA_BYTES = 4 << 20,
	ARENA_MARGIN = 8192, /* windows around nodes stay inside */
	KEYS_MAX = 400,
	RANGE = 250, /* keys are below it; they fit into a byte */
	STEPS_MAX = 100000,
};

struct arena {
	uint8_t *bytes;
	uint64_t used;
	struct rng r;
	struct aq_walk_shape s;
	uint32_t node_bytes; /* by the fields that were laid out */
	uint64_t keys[KEYS_MAX];
	uint32_t count; /* ascending, all different */
	struct walk_build *build;
	struct walk_image image;
	struct walk_program *program[2]; /* interpreted, translated */
	uint8_t pad[WALK_PAD_MAX];
	uint64_t took;
};

static inline void arena_open(struct arena *a, uint64_t seed)
{
	memset(a, 0, sizeof(*a));
	a->bytes = calloc(1, ARENA_BYTES);
	assert_non_null(a->bytes);
	a->used = ARENA_MARGIN;
	rng_init(&a->r, seed);
	for (uint64_t k = 0; k < RANGE; k++) {
		if (rng_below(&a->r, 3))
			a->keys[a->count++] = k;
	}
}

static inline void arena_close(struct arena *a)
{
	walk_program_close(a->program[0]);
	walk_program_close(a->program[1]);
	walk_build_destroy(a->build);
	free(a->bytes);
}

/* The next field of a node, with a gap before it now and then. */
static inline uint32_t arena_field(struct arena *a, uint32_t bytes)
{
	const uint32_t at = a->node_bytes + (uint32_t)rng_below(&a->r, 3) * 4;

	a->node_bytes = at + bytes;
	return at;
}

static inline void arena_key_and_value(struct arena *a, uint64_t count)
{
	struct aq_walk_shape *s = &a->s;

	if (rng_below(&a->r, 3) == 0 && s->kind != AQ_WALK_BPLUS_SCAN &&
	    s->kind != AQ_WALK_BPLUS_REDUCE) {
		s->flags |= AQ_WALK_KEY_BYTES;
		s->key_bytes = (uint32_t)rng_between(&a->r, 1, 20);
	} else {
		s->key_bytes = 1u << rng_below(&a->r, 4);
	}
	s->value_bytes = (uint32_t)rng_below(&a->r, 40);
	s->key_stride = s->key_bytes + (uint32_t)rng_below(&a->r, 4);
	s->value_stride = s->value_bytes + (uint32_t)rng_below(&a->r, 4) + 1;
	s->key_at = arena_field(a, s->key_stride * (uint32_t)count);
	s->value_at = arena_field(a, s->value_stride * (uint32_t)count);
}

static inline uint64_t arena_node(struct arena *a)
{
	const uint64_t at = a->used;

	a->used += (a->node_bytes + 7 + 8 * rng_below(&a->r, 4)) & ~7u;
	assert_true(a->used + ARENA_MARGIN < ARENA_BYTES);
	/* What is not set must not matter. */
	for (uint64_t i = at; i < at + a->node_bytes; i++)
		a->bytes[i] = 0xa5;
	return at;
}

static inline void arena_put(struct arena *a, uint64_t at, uint64_t v,
			     uint32_t bytes)
{
	memcpy(a->bytes + at, &v, bytes);
}

/* A key as it lies in a node or a pad: strings have it at their end. */
static inline void arena_put_key(const struct arena *a, uint8_t *at, uint64_t k,
				 bool is_pad)
{
	if (a->s.flags & AQ_WALK_KEY_BYTES || a->s.kind == AQ_WALK_RADIX_FIND) {
		memset(at, 0, a->s.key_bytes);
		at[a->s.key_bytes - 1] = (uint8_t)k;
	} else {
		memcpy(at, &k, is_pad ? 8 : a->s.key_bytes);
	}
}

static inline uint8_t value_byte(uint64_t k, uint32_t i)
{
	return (uint8_t)(k * 7 + 3 + i);
}

/* Pair i of a node. */
static inline void arena_put_pair(struct arena *a, uint64_t node, uint64_t i,
				  uint64_t k)
{
	if (a->s.kind != AQ_WALK_RADIX_FIND)
		arena_put_key(
			a, a->bytes + node + a->s.key_at + i * a->s.key_stride,
			k, false);
	for (uint32_t j = 0; j < a->s.value_bytes; j++)
		a->bytes[node + a->s.value_at + i * a->s.value_stride + j] =
			value_byte(k, j);
}

static inline void arena_make(struct arena *a)
{
	const struct walk_options no = {.interpret = true};

	if (walk_ready(&a->s, 0, &a->build, &a->image) ||
	    walk_program_open(&a->image, &no, &a->program[0]) ||
	    walk_program_open(&a->image, NULL, &a->program[1]))
		fail_msg("%s", error_last());
}

/* Runs from a pointer to the end, on one of the machines. */
static inline void arena_walk(struct arena *a, uint64_t start)
{
	const struct walk_program *p = a->program[rng_below(&a->r, 2)];
	uint64_t at = aq_walk_start(&a->s, start);

	for (a->took = 1; a->took < STEPS_MAX; a->took++) {
		const uint64_t from = at + (uint64_t)a->image.load_lo;
		enum walk_step step;

		if (from >= ARENA_BYTES ||
		    from + a->image.load_bytes > ARENA_BYTES)
			fail_msg("walked to %lu", (unsigned long)at);
		step = walk_program_step(p, a->bytes + from, a->pad, &at);
		if (step == WALK_STEP_DONE)
			return;
		assert_int_equal(step, WALK_STEP_NEXT);
	}
	fail_msg("does not end");
}

static inline uint64_t arena_pad(const struct arena *a, size_t at)
{
	uint64_t v;

	memcpy(&v, a->pad + at, 8);
	return v;
}

static inline bool arena_has(const struct arena *a, uint64_t k)
{
	for (uint32_t i = 0; i < a->count; i++) {
		if (a->keys[i] == k)
			return true;
	}
	return false;
}

/* Every key of the range is found, or not, with its value. */
static inline void arena_check_find(struct arena *a, uint64_t start)
{
	const uint32_t value_at = aq_walk_value_at(&a->s);

	for (uint64_t k = 0; k < RANGE + 5; k++) {
		memset(a->pad, 0, sizeof(a->pad));
		arena_put_key(a, a->pad + offsetof(struct aq_walk_find, key), k,
			      true);
		arena_walk(a, start);
		assert_int_equal(arena_pad(a, 0), arena_has(a, k));
		if (!arena_has(a, k))
			continue;
		for (uint32_t i = 0; i < a->s.value_bytes; i++)
			assert_int_equal(a->pad[value_at + i],
					 value_byte(k, i));
	}
}

static inline void arena_shuffle(struct arena *a, uint64_t *keys)
{
	memcpy(keys, a->keys, a->count * sizeof(*keys));
	for (uint32_t i = a->count; i > 1; i--) {
		const uint64_t j = rng_below(&a->r, i), k = keys[j];

		keys[j] = keys[i - 1];
		keys[i - 1] = k;
	}
}

#endif
