/* SPDX-License-Identifier: Apache-2.0 */
/* Rings, grants and credits of one stream. */
#include "rs_flow.h"

#include <errno.h>
#include <string.h>

#include "rs_limits.h"

/* ---- receiving ----------------------------------------------------------- */

void rs_rx_init(struct rs_rx *rx, uint32_t size, uint16_t credits)
{
	ASSERT(size && size % 2 == 0 && credits);
	*rx = (struct rs_rx){
		.size = size,
		.granted = size / 2,
		.unused = size / 2,
		.grant_offset = size / 2,
		.credits = credits,
		.limit = credits,
	};
}

int rs_rx_data(struct rs_rx *rx, uint32_t bytes)
{
	if (!bytes || bytes > rx->granted || rx->seq == rx->limit)
		return -EBADMSG;
	rx->seq++;
	rx->granted -= bytes;
	rx->ready += bytes;
	return 0;
}

uint32_t rs_rx_view(const struct rs_rx *rx, uint32_t skip, uint32_t *offset)
{
	uint32_t at;

	if (skip >= rx->ready)
		return 0;
	at = rx->head + skip;
	if (at >= rx->size)
		at -= rx->size;
	*offset = at;
	return u32_min(rx->ready - skip, rx->size - at);
}

void rs_rx_consume(struct rs_rx *rx, uint32_t bytes)
{
	ASSERT(bytes <= rx->ready);
	rx->ready -= bytes;
	rx->unused += bytes;
	rx->head += bytes;
	if (rx->head >= rx->size)
		rx->head -= rx->size;
}

/* Half of the credits are left when the next ones are given, so that a sender
 * that is as fast as we are never waits for them. */
bool rs_rx_due(const struct rs_rx *rx, struct rs_update *update)
{
	uint16_t left = (uint16_t)(rx->limit - rx->seq);

	*update = (struct rs_update){
		.grants = rx->unused >= rx->size / 2,
		.offset = rx->grant_offset,
		.length = rx->size / 2,
		.limit = (uint16_t)(rx->seq + rx->credits),
	};
	return update->grants || left <= rx->credits / 2;
}

void rs_rx_told(struct rs_rx *rx, const struct rs_update *update)
{
	rx->limit = update->limit;
	if (!update->grants)
		return;
	ASSERT(rx->unused >= update->length);
	rx->unused -= update->length;
	rx->granted += update->length;
	rx->grant_offset = update->offset ? 0 : rx->size / 2;
}

/* ---- sending ------------------------------------------------------------- */

static void slot_read(rs_slot *slot, struct rs_sge *sge)
{
	uint64_t words[ARRAY_LEN(*slot)];

	/* Relaxed: nothing else is read on the strength of it. */
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words[i] =
			atomic_load_explicit(&(*slot)[i], memory_order_relaxed);
	rs_sge_parse((const uint8_t *)words, sge);
}

static void slot_clear(rs_slot *slot)
{
	for (size_t i = 0; i < ARRAY_LEN(*slot); i++)
		atomic_store_explicit(&(*slot)[i], 0, memory_order_relaxed);
}

void rs_tx_init(struct rs_tx *tx, uint32_t size, uint32_t queue, rs_slot *slots)
{
	*tx = (struct rs_tx){
		.slots = slots,
		.slot = 1 % RS_SLOTS,
		.queue_free = queue,
		.size = size,
	};
	for (unsigned i = 0; i < RS_SLOTS; i++)
		slot_clear(&slots[i]);
}

void rs_tx_start(struct rs_tx *tx, const struct rs_hello *peer)
{
	tx->target = peer->buf;
	tx->limit = peer->credits;
}

int rs_tx_credit(struct rs_tx *tx, uint32_t value)
{
	uint16_t limit = (uint16_t)value;

	/* The sender adds two 16-bit numbers and sends the carry, too. */
	if (value > 2 * UINT16_MAX || (int16_t)(limit - tx->limit) < 0)
		return -EBADMSG;
	tx->limit = limit;
	tx->look = true;
	return 0;
}

/*
 * A peer says that it may have written a slot, not which, so it may be writing
 * this one just now. It will say so again: a slot that changes while it is read
 * is left for later.
 */
static void next_target(struct rs_tx *tx)
{
	rs_slot *at = &tx->slots[tx->slot];
	struct rs_sge first, second;

	if (!tx->look)
		return;
	slot_read(at, &first);
	if (!first.length) {
		tx->look = false;
		return;
	}
	slot_read(at, &second);
	if (memcmp(&first, &second, sizeof(first)) ||
	    first.addr > UINT64_MAX - first.length)
		return;
	slot_clear(at);
	tx->target = first;
	tx->slot = (tx->slot + 1) % RS_SLOTS;
}

uint32_t rs_tx_room(struct rs_tx *tx)
{
	if (tx->seq == tx->limit)
		return 0;
	if (!tx->target.length)
		next_target(tx);
	return u32_min(rs_tx_room_plain(tx), tx->target.length);
}

uint32_t rs_tx_room_plain(const struct rs_tx *tx)
{
	if (tx->queue_free <= RS_CTRL_QUEUE)
		return 0;
	return u32_min(RS_MESSAGE_MAX, tx->size - tx->used);
}

bool rs_tx_room_ctrl(const struct rs_tx *tx)
{
	return tx->queue_free > 0;
}

void rs_tx_data(struct rs_tx *tx, uint32_t bytes, struct rs_sge *where)
{
	ASSERT(bytes && bytes <= tx->target.length && tx->seq != tx->limit);
	*where = tx->target;
	where->length = bytes;
	tx->target.addr += bytes;
	tx->target.length -= bytes;
	tx->seq++;
}

void rs_tx_posted(struct rs_tx *tx, uint32_t ring_bytes)
{
	ASSERT(tx->queue_free && ring_bytes <= tx->size - tx->used);
	tx->queue_free--;
	tx->used += ring_bytes;
	tx->head += ring_bytes;
	if (tx->head >= tx->size)
		tx->head -= tx->size;
}

void rs_tx_completed(struct rs_tx *tx, uint32_t ring_bytes)
{
	ASSERT(ring_bytes <= tx->used);
	tx->queue_free++;
	tx->used -= ring_bytes;
}
