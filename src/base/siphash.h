/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012): a keyed hash of 64 bits that cannot
 * be predicted without the key. Unlike the faster GMAC and Poly1305 it needs no
 * nonce.
 */
#ifndef AQ_SIPHASH_H
#define AQ_SIPHASH_H

#include "base.h"

enum {
	SIPHASH_KEY_BYTES = 16,
};

struct siphash_key {
	uint64_t word[2];
};

struct siphash_key siphash_key(const uint8_t bytes[SIPHASH_KEY_BYTES]);

/* Hashes `head`, whose length is a multiple of eight bytes, and the data after
 * it as if they were one piece. */
uint64_t siphash(const struct siphash_key *key, const uint8_t *head,
		 size_t head_bytes, const uint8_t *data, size_t data_bytes);

#endif
