/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile peer of an rsocket: its private data, any words as messages, any
 * bytes in the table that it writes, while the application reads and sends. No
 * place outside the rings is ever named, and nothing is granted twice.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rsocket/rs_dgram_wire.h"
#include "rsocket/rs_flow.h"
#include "rsocket/rs_limits.h"

enum {
	RING = 256,
	SEND_RING = 128,
	QUEUE = RS_CTRL_QUEUE + 4,
};

struct input {
	const uint8_t *data;
	size_t left;
};

static uint32_t word(struct input *in)
{
	uint32_t v = 0;
	size_t n = in->left < sizeof(v) ? in->left : sizeof(v);

	if (n)
		memcpy(&v, in->data, n);
	in->data += n;
	in->left -= n;
	return v;
}

static int hear(struct rs_rx *rx, struct rs_tx *tx, uint32_t w)
{
	struct rs_msg msg;

	if (rs_msg_parse(w, &msg))
		return -1;
	ASSERT(rs_msg_build(msg.op, msg.value) == w);
	if (msg.op == RS_OP_DATA)
		return rs_rx_data(rx, msg.value);
	if (msg.op == RS_OP_CREDIT)
		return rs_tx_credit(tx, msg.value);
	return 0;
}

static void send_some(struct rs_tx *tx, uint32_t wish, uint32_t *under_way)
{
	uint32_t room = rs_tx_room(tx);
	struct rs_sge to;

	ASSERT(room <= SEND_RING);
	if (room) {
		uint32_t n = 1 + wish % room;

		rs_tx_data(tx, n, &to);
		ASSERT(to.length == n && to.addr + n >= to.addr);
		rs_tx_posted(tx, n);
		ASSERT(tx->head < SEND_RING && tx->used <= SEND_RING);
		*under_way = n;
	}
	if (*under_way && wish & 1) {
		rs_tx_completed(tx, *under_way);
		*under_way = 0;
	}
}

static void read_some(struct rs_rx *rx, uint32_t wish)
{
	struct rs_update u;
	uint32_t offset = 0, n = rs_rx_view(rx, 0, &offset);

	ASSERT(offset < RING && n <= RING - offset);
	if (n)
		rs_rx_consume(rx, 1 + wish % n);
	if (wish & 2 && rs_rx_due(rx, &u)) {
		ASSERT(u.offset + u.length <= RING);
		rs_rx_told(rx, &u);
	}
	ASSERT(rx->granted + rx->ready + rx->unused == RING);
}

static void headers(const uint8_t *data, size_t len_bytes)
{
	struct rs_udp_header h;
	struct rs_name from;
	int n = rs_udp_parse(data, len_bytes, &h);

	ASSERT(n < 0 || (size_t)n <= len_bytes);
	n = rs_ud_parse(data, len_bytes, &from);
	ASSERT(n < 0 || (size_t)n <= len_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct input in = {.data = data, .left = len_bytes};
	rs_slot slots[RS_SLOTS];
	struct rs_hello hello;
	uint32_t under_way = 0;
	struct rs_rx rx;
	struct rs_tx tx;

	headers(data, len_bytes);
	if (rs_hello_parse(data, len_bytes, &hello))
		return 0;
	in.data += RS_HELLO_BYTES;
	in.left -= RS_HELLO_BYTES;
	rs_rx_init(&rx, RING, 16);
	rs_tx_init(&tx, SEND_RING, QUEUE, slots);
	rs_tx_start(&tx, &hello);
	while (in.left) {
		uint32_t what = word(&in);

		if (what % 4 == 0)
			atomic_store(&slots[what / 4 % RS_SLOTS][what / 8 % 2],
				     (uint64_t)word(&in) << 32 | word(&in));
		else if (what % 4 == 1 && hear(&rx, &tx, word(&in)))
			break;
		else if (what % 4 == 2 && !under_way)
			send_some(&tx, what / 4, &under_way);
		else
			read_some(&rx, what / 4);
	}
	return 0;
}
