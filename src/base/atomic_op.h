/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An atomic operation on one aligned 64-bit word, with the semantics of the
 * extended atomics of ConnectX. Plain compare-and-swap has full masks, plain
 * fetch-and-add has boundary 0. The word is in host byte order.
 */
#ifndef AQ_ATOMIC_OP_H
#define AQ_ATOMIC_OP_H

#include "base.h"

struct atomic_op {
	bool is_add;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t swap_mask;    /* CAS: the bits that are replaced */
	uint64_t compare_mask; /* CAS: the bits that are compared */
	uint64_t boundary;     /* FAA: 1 at the top bit of each field */
};

/* What a word with value `old` becomes. A failed comparison leaves it. An
 * addition carries no bit across the top of a field. */
uint64_t atomic_op_result(const struct atomic_op *op, uint64_t old);

/* Executes it with locked instructions; returns the word's former value. */
uint64_t atomic_op_execute(const struct atomic_op *op, uint64_t *word);

#endif
