/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of what a client sends in one message. After an operation that
 * could not be done the rest is left undone. A change that was refused, because
 * there is no such key or another version of it, is answered, and only what the
 * message has for the same slot is left undone: such an answer is not kept, so
 * where the message is repeated the change is tried again, and must not happen
 * after one that follows it.
 */
#ifndef AQ_BLK_ORDER_H
#define AQ_BLK_ORDER_H

#include "wire/block_wire.h"

struct blk_order {
	bool has_failed;
	unsigned count;
	uint32_t slot[BLOCK_OPS_MAX]; /* in which changes were refused */
};

/* Whether an operation may be executed after those before it. */
bool blk_order_may(const struct blk_order *o, const struct block_op *op);
/* It was answered. */
void blk_order_note(struct blk_order *o, const struct block_op *op,
		    enum block_status status);

#endif
