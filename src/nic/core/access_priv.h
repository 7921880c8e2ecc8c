/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to registered memory: whether a queue pair may, and the only ways to
 * read or write it, because the program may have unmapped it. -EFAULT: it has,
 * and a part may be done; landing_hit says which.
 */
#ifndef AQ_NIC_ACCESS_PRIV_H
#define AQ_NIC_ACCESS_PRIV_H

#include "base/plant.h"
#include "chain.h"
#include "qp_priv.h"

/* May `qp` use `k`, which may be NULL, for all of [va, va + len)? On KEY_OK,
 * *host is va. */
static inline enum key_verdict key_covers(const struct nic_qp *qp,
					  const struct nic_key *k, uint64_t va,
					  uint64_t len, uint32_t access,
					  uint8_t **host)
{
	uint64_t offset;

	if (UNLIKELY(!k))
		return KEY_UNKNOWN;
	if (UNLIKELY(k->pd != qp->pd || (k->qp && k->qp != qp)) &&
	    !PLANTED(any_domain))
		return KEY_OTHER_PD;
	if (UNLIKELY((k->access & access) != access) && !PLANTED(any_right))
		return KEY_NO_ACCESS;
	/* An address below iova gives a huge offset. */
	offset = va - k->iova;
	if (UNLIKELY(offset > k->length || len > k->length - offset) &&
	    !(PLANTED(past_end) && offset + len == k->length + 1)) {
		enum key_verdict v = k->holes ? key_holes_cover(k, offset, len)
					      : KEY_OUT_OF_BOUNDS;

		if (v != KEY_OK)
			return v;
	}
	*host = k->host + offset;
	return KEY_OK;
}

/* The same by the key's value. */
static inline enum key_verdict key_check(const struct nic_qp *qp, uint32_t key,
					 uint64_t va, uint64_t len,
					 uint32_t access, uint8_t **host)
{
	return key_covers(qp, key_find(&qp->nic->keys, key), va, len, access,
			  host);
}

/* Where the memory is, if its key still covers it; NULL: it does not. */
static inline uint8_t *chain_memory_host(const struct nic_qp *qp,
					 struct chain_memory *m)
{
	return LIKELY(m->epoch == qp->nic->keys.epoch)
		       ? m->host
		       : chain_memory_find(qp, m);
}

/* Copies in order, for programs that poll what a peer writes. */
int touch_place(uint8_t *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
int touch_write(uint8_t *dst, const void *src, uint32_t len) MUST_CHECK;
int touch_read(void *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
/* Both are registered. */
int touch_move(uint8_t *dst, const uint8_t *src, uint32_t len) MUST_CHECK;
int touch_atomic(const struct atomic_op *op, uint8_t *host,
		 uint64_t *original) MUST_CHECK;
/* Builds a frame around registered memory; 0: it is gone. */
size_t touch_stamp(const struct wire_stamp *stamp, const struct wire_vary *v,
		   uint8_t *frame) MUST_CHECK;

#endif
