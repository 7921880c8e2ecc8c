/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow control of one stream, as plain arithmetic: no I/O, no memory but the
 * caller's. What a peer says is checked here; -EBADMSG means that it broke the
 * protocol and the connection must end.
 *
 * The receiver has a ring that it gives out in halves. A sender fills a half to
 * its end before it takes the next, so what it wrote is one run of bytes in the
 * ring. Beside bytes, messages are counted, because each takes an entry of the
 * receiver's queue: both sides count them modulo 2^16, and the receiver says
 * how far the sender may go.
 */
#ifndef AQ_RS_FLOW_H
#define AQ_RS_FLOW_H

#include <stdatomic.h>

#include "rs_wire.h"

/* ---- what we receive ----------------------------------------------------- */

struct rs_rx {
	uint32_t size;	  /* of the ring: granted + ready + unused */
	uint32_t granted; /* bytes that the peer may still write */
	uint32_t ready;	  /* bytes to be read, from `head` on */
	uint32_t unused;  /* bytes read, not yet given out again */
	uint32_t head;
	uint32_t grant_offset; /* where the next half begins */
	uint16_t credits;      /* entries of the queue for data */
	uint16_t seq;	       /* data messages that came */
	uint16_t limit;	       /* the peer may send up to this number */
};

/* What the peer should be told now. */
struct rs_update {
	bool grants; /* a buffer, at `offset` */
	uint32_t offset;
	uint32_t length;
	uint16_t limit;
};

/* `size` is even and not 0. The first half is granted, and the credits. */
void rs_rx_init(struct rs_rx *rx, uint32_t size, uint16_t credits);
int rs_rx_data(struct rs_rx *rx, uint32_t bytes) MUST_CHECK;
/* The next run of bytes in the ring, up to its end; 0: none. */
uint32_t rs_rx_view(const struct rs_rx *rx, uint32_t skip, uint32_t *offset);
void rs_rx_consume(struct rs_rx *rx, uint32_t bytes);
bool rs_rx_due(const struct rs_rx *rx, struct rs_update *update);
void rs_rx_told(struct rs_rx *rx, const struct rs_update *update);

/* ---- what we send -------------------------------------------------------- */

/* A struct rs_sge in memory that the peer writes, as two words. */
typedef _Atomic uint64_t rs_slot[RS_SGE_BYTES / 8];

struct rs_tx {
	struct rs_sge target; /* the buffer of the peer that we fill */
	rs_slot *slots;	      /* RS_SLOTS entries, written by the peer */
	uint32_t slot;	      /* the next one */
	bool look;	      /* the peer says that it has written the slot */
	uint16_t seq;	      /* data messages sent */
	uint16_t limit;
	uint32_t queue_free; /* entries of the send queue */
	uint32_t size;	     /* of our ring, from which data is sent */
	uint32_t used;	     /* bytes that are under way */
	uint32_t head;	     /* where the next ones go */
};

/* The slots are cleared: the first buffer is in the hello. */
void rs_tx_init(struct rs_tx *tx, uint32_t size, uint32_t queue,
		rs_slot *slots);
void rs_tx_start(struct rs_tx *tx, const struct rs_hello *peer);
int rs_tx_credit(struct rs_tx *tx, uint32_t value) MUST_CHECK;
/* How many bytes the next message may have; 0: none may be sent now. */
uint32_t rs_tx_room(struct rs_tx *tx);
/* The same for a WRITE that is no message. */
uint32_t rs_tx_room_plain(const struct rs_tx *tx);
bool rs_tx_room_ctrl(const struct rs_tx *tx);
/* Takes the room; `where` gets the place in the peer's memory. */
void rs_tx_data(struct rs_tx *tx, uint32_t bytes, struct rs_sge *where);
/* `ring_bytes` of our ring and one entry are in use, or free again. */
void rs_tx_posted(struct rs_tx *tx, uint32_t ring_bytes);
void rs_tx_completed(struct rs_tx *tx, uint32_t ring_bytes);

#endif
