/* SPDX-License-Identifier: Apache-2.0 */
/* One random request of the scenario: what it does and must lead to. */
#ifndef AQ_PLAYS_VERBS_OP_H
#define AQ_PLAYS_VERBS_OP_H

#include "verbs_priv.h"

/* A new request for this endpoint, or NULL when the one drawn cannot be made
 * now. Its reference belongs to the send queue. */
struct vs_op *vs_op_make(struct vs_ep *ep);

static inline bool vs_op_is_message(const struct vs_op *op)
{
	return op->kind <= VS_SEND_INV || op->kind == VS_WRITE_IMM;
}

static inline bool vs_op_is_masked(const struct vs_op *op)
{
	return op->kind == VS_MASKED_CAS || op->kind == VS_MASKED_FAA;
}

static inline bool vs_op_is_atomic(const struct vs_op *op)
{
	return op->kind >= VS_CAS && op->kind <= VS_SHARED_FAA;
}

/* Masked atomics go through aqdv. */
bool vs_masked_available(struct vs_ep *ep);
int vs_masked_post(struct vs_ep *ep, struct vs_op *op) MUST_CHECK;

#endif
