/* SPDX-License-Identifier: Apache-2.0 */
#include "blk_order.h"

#include "base/plant.h"
#include "wire/block_kv_wire.h"

static uint32_t slot_of(const struct block_op *op)
{
	return (uint32_t)op->arg & (BLOCK_KV_SLOTS - 1);
}

static bool is_of_key(const struct block_op *op)
{
	return op->opcode >= BLOCK_KV_GET && op->opcode <= BLOCK_KV_ADD;
}

bool blk_order_may(const struct blk_order *o, const struct block_op *op)
{
	if (o->has_failed)
		return false;
	for (unsigned i = 0; is_of_key(op) && i < o->count; i++)
		if (o->slot[i] == slot_of(op))
			return false;
	return true;
}

void blk_order_note(struct blk_order *o, const struct block_op *op,
		    enum block_status status)
{
	bool is_refused = status == BLOCK_NO_KEY || status == BLOCK_VERSION ||
			  status == BLOCK_NO_NUMBER;

	if (status == BLOCK_OK || (is_refused && (op->opcode == BLOCK_KV_GET ||
						  PLANTED(kv_group_on))))
		return;
	if (is_refused && o->count < BLOCK_OPS_MAX)
		o->slot[o->count++] = slot_of(op);
	else
		o->has_failed = true;
}
