/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random numbers that repeat: for tests, simulations and workloads, seeded and
 * the same on every machine. Not for keys; those come from env_random().
 * One thread per generator.
 */
#ifndef AQ_RNG_H
#define AQ_RNG_H

#include "base.h"

/* The state of xoshiro256** (Blackman and Vigna, 2018): 2^256 - 1 long. */
struct rng {
	uint64_t s[4];
};

/* Any seed is allowed, also 0. */
void rng_init(struct rng *r, uint64_t seed);
/* A generator of its own for one part of a test: parts that draw more or less
 * do not disturb each other. `stream` numbers the parts. */
void rng_init_stream(struct rng *r, uint64_t seed, uint64_t stream);

/* For callers that have a name instead of a number. */
void rng_init_text(struct rng *r, const char *text);

uint64_t rng_u64(struct rng *r);
/* Uniform in [0, bound), without modulo bias; bound is at least 1. */
uint64_t rng_below(struct rng *r, uint64_t bound);
/* Uniform in [low, high], both included. */
uint64_t rng_between(struct rng *r, uint64_t low, uint64_t high);
/* True in ppm of a million cases. Always draws once, so that changing a
 * probability does not shift the rest of the sequence. */
bool rng_chance_ppm(struct rng *r, uint32_t ppm);
/* Uniform in [0, 1). */
double rng_double(struct rng *r);
void rng_fill(struct rng *r, void *buf, size_t len_bytes);

#endif
