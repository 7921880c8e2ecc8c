/* SPDX-License-Identifier: Apache-2.0 */
/* Words that say whose chunks of a structure's memory are whose. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit.h"

enum {
	WORDS_AT_ONCE = KIT_STAGE_BYTES / 8,
};

int kit_owner_is_gone(struct kit_client *k, uint64_t word, bool *gone)
{
	ASSERT(word != kit_own_word(k));
	return kit_slot_is_gone(k, (uint32_t)word - 1, (uint32_t)(word >> 32),
				gone);
}

int kit_chunks_each(struct kit_client *k, uint64_t words_at, uint64_t count,
		    uint64_t *hint, kit_chunk_fn each, void *user)
{
	uint64_t pieces = (count + WORDS_AT_ONCE - 1) / WORDS_AT_ONCE;
	uint64_t from = hint ? *hint : 0;
	/* The callback may use the stage. */
	le64 *copy = malloc(KIT_STAGE_BYTES);
	int err = copy ? 0 : error_set(-ENOMEM, "no memory for a client");

	for (uint64_t i = 0; i < pieces && !err; i++) {
		uint64_t piece = (from + i) % pieces;
		uint64_t first = piece * WORDS_AT_ONCE;
		uint64_t n = u64_min(WORDS_AT_ONCE, count - first), start = 0;

		if (hint)
			start = rng_below(&k->rng, n);
		err = kit_read_now(&k->main, words_at + 8 * first, k->stage,
				   8 * n);
		memcpy(copy, k->stage, 8 * n);
		for (uint64_t j = 0; j < n && !err; j++) {
			uint64_t at = (start + j) % n;

			err = each(user, first + at, le64_get(copy[at]));
		}
		if (hint)
			*hint = piece;
	}
	free(copy);
	return err;
}
