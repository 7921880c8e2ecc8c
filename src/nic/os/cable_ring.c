/* SPDX-License-Identifier: Apache-2.0 */
/* The rare paths of the frame ring: set-up, a full ring, a strange header. */
#include "cable_ring.h"

void ring_tx_init(struct ring_tx *tx, struct ring_ctl *ctl, uint8_t *data,
		  uint32_t size_bytes)
{
	*tx = (struct ring_tx){
		.data = data,
		.ctl = ctl,
		.size_bytes = size_bytes,
	};
}

void ring_rx_init(struct ring_rx *rx, struct ring_ctl *ctl, uint8_t *data,
		  uint32_t size_bytes)
{
	*rx = (struct ring_rx){
		.data = data,
		.ctl = ctl,
		.size_bytes = size_bytes,
	};
}

bool ring_tx_refresh(struct ring_tx *tx)
{
	/* RING-2: what is overwritten was read. The peer owns this word: it
	 * is read once, then checked. */
	uint64_t seen =
		atomic_load_explicit(&tx->ctl->read_pos, memory_order_acquire);

	/* It only grows, by whole records, and never beyond what was sent. */
	if (tx->broken || seen < tx->read_seen || seen > tx->pos ||
	    seen % RING_UNIT != 0) {
		tx->broken = true;
		return false;
	}
	tx->read_seen = seen;
	return true;
}

const uint8_t *ring_peek_odd(struct ring_rx *rx, uint32_t header,
			     size_t *len_bytes)
{
	uint64_t off = rx->pos & (rx->size_bytes - 1);

	/* A marker at the very start could send the consumer round forever. */
	if (rx->broken || header != (RING_READY | RING_WRAP) || off == 0) {
		rx->broken = true;
		return NULL;
	}
	rx->pos += rx->size_bytes - off;
	return ring_peek(rx, len_bytes);
}
