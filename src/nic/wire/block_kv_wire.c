/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a store of blocks: where they belong, and how long they may be. */
#include "block_kv_wire.h"

#include "base/siphash.h"

/* Clients and nodes compute the same, so there is no secret in it. */
uint64_t block_kv_hash(const void *key, size_t key_bytes)
{
	static const struct siphash_key none;

	return siphash(&none, NULL, 0, key, key_bytes);
}

/* For a key that is fetched, and for what is put together for an answer: enough
 * for the longest key, but an eighth of small blocks. */
static uint64_t scratch(uint64_t block_bytes)
{
	return u64_min(BLOCK_KV_KEY_MAX + sizeof(struct block_kv_wire),
		       block_bytes / 8);
}

uint32_t block_kv_key_max(uint64_t block_bytes)
{
	return (uint32_t)(scratch(block_bytes) - sizeof(struct block_kv_wire));
}

uint64_t block_kv_room(uint64_t block_bytes)
{
	return (block_bytes - BLOCK_HEAD_BYTES - scratch(block_bytes)) & ~7ull;
}

uint64_t block_kv_value_max(uint64_t block_bytes, uint64_t key_bytes)
{
	uint64_t taken = sizeof(struct block_kv_batch_wire) +
			 sizeof(struct block_kv_record_wire) + key_bytes + 8;
	uint64_t room = block_kv_room(block_bytes);

	return room > taken ? room - taken : 0;
}
