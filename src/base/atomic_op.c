/* SPDX-License-Identifier: Apache-2.0 */
/* Masked compare-and-swap and fetch-and-add on one word. */
#include "atomic_op.h"

#include <stdatomic.h>

/* Adds field by field: the top bit of each field is added without its carry
 * out, which is an exclusive or. */
static uint64_t add_in_fields(uint64_t a, uint64_t b, uint64_t boundary)
{
	uint64_t low = (a & ~boundary) + (b & ~boundary);

	return low ^ ((a ^ b) & boundary);
}

uint64_t atomic_op_result(const struct atomic_op *op, uint64_t old)
{
	if (op->is_add)
		return add_in_fields(old, op->swap_add, op->boundary);
	if ((old ^ op->compare) & op->compare_mask)
		return old;
	return (old & ~op->swap_mask) | (op->swap_add & op->swap_mask);
}

uint64_t atomic_op_execute(const struct atomic_op *op, uint64_t *word)
{
	_Atomic uint64_t *target = (_Atomic uint64_t *)word;
	uint64_t old;

	/* OP-1, with itself in other threads and NICs: who takes a lock by this
	 * sees what the last holder wrote. */
	if (op->is_add && op->boundary == 0)
		return atomic_fetch_add_explicit(target, op->swap_add,
						 memory_order_acq_rel);
	old = atomic_load_explicit(target, memory_order_relaxed);
	/* A comparison that fails is exchanged with the same value, so that it
	 * is ordered like one that succeeds: OP-1. */
	while (!atomic_compare_exchange_weak_explicit(
		target, &old, atomic_op_result(op, old), memory_order_acq_rel,
		memory_order_relaxed))
		;
	return old;
}
