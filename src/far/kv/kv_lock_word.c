/* SPDX-License-Identifier: Apache-2.0 */
/* Requests on the words of locks: bits that masked atomics set and clear, or
 * whole words that name their holder. */
#include "kv_priv.h"

uint64_t kv_lock_holder(uint32_t slot, uint32_t epoch)
{
	return (uint64_t)(slot + 1) | (uint64_t)epoch << 16;
}

void kv_add_lock(struct kv_replica *c, uint64_t word, uint64_t mask,
		 enum kv_atom answer)
{
	if (c->g.flags & KV_WORD_LOCKS)
		kit_cas(&c->kit.locks, KV_POINT_LOCK, kv_lock_at(word), 0,
			kv_lock_holder(c->kit.slot, c->kit.epoch),
			&c->atom[answer]);
	else
		kit_masked_cas(&c->kit.locks, KV_POINT_LOCK, kv_lock_at(word),
			       mask, mask, mask, &c->atom[answer]);
}

void kv_add_unlock_of(struct kv_replica *c, uint64_t word, uint64_t mask,
		      uint64_t holder)
{
	uint64_t *unread = &c->atom[KV_ATOM_UNLOCK];

	if (c->g.flags & KV_WORD_LOCKS)
		kit_cas(&c->kit.locks, KV_POINT_UNLOCK, kv_lock_at(word),
			holder, 0, unread);
	else
		kit_masked_cas(&c->kit.locks, KV_POINT_UNLOCK, kv_lock_at(word),
			       0, 0, mask, unread);
}

void kv_add_unlock(struct kv_replica *c, uint64_t word, uint64_t mask)
{
	kv_add_unlock_of(c, word, mask,
			 kv_lock_holder(c->kit.slot, c->kit.epoch));
}
