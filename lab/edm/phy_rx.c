/* SPDX-License-Identifier: Apache-2.0 */
/* The receiving end: separates memory from frames and checks both. */
#include "phy_rx.h"

#include <string.h>

#include "base/bytes.h"

enum {
	GAP_PLENTY = 1u << 20,
};

int edm_phy_rx_init(struct edm_phy_rx *r, const struct edm_phy_config *c,
		    const struct edm_rx_sink *sink)
{
	int err = edm_phy_config_check(c);

	if (err)
		return err;
	memset(r, 0, sizeof(*r));
	r->config = *c;
	r->sink = *sink;
	r->gap.align = c->start_align;
	r->gap_chars = GAP_PLENTY;
	return 0;
}

static struct edm_rx_message *current(struct edm_phy_rx *r)
{
	return &r->message[r->depth];
}

/* What was around a message that is over goes on. */
static void message_close(struct edm_phy_rx *r)
{
	current(r)->open = false;
	r->depth = 0;
}

static void message_drop(struct edm_phy_rx *r, uint64_t *counter)
{
	message_close(r);
	++*counter;
}

/* Also what is around it. */
static void messages_drop(struct edm_phy_rx *r, uint64_t *counter)
{
	while (current(r)->open)
		message_drop(r, counter);
}

static bool crc_good(const struct edm_rx_message *m, uint32_t n)
{
	uint64_t head_bits = 0;
	uint16_t crc;

	/* The head came out of a block, so it goes back into one. */
	if (wire_mem_head_pack(&m->head, &head_bits) != WIRE_BLOCK_OK)
		return false;
	crc = wire_mem_crc16(head_bits, m->bytes, n);
	return m->bytes[n] == (uint8_t)crc &&
	       m->bytes[n + 1] == (uint8_t)(crc >> 8);
}

static void message_finish(struct edm_phy_rx *r)
{
	const struct edm_rx_message *m = current(r);
	uint32_t n = edm_msg_bytes(&m->head);
	uint32_t end = n + (r->config.crc ? EDM_CRC_BYTES : 0);

	message_close(r);
	if (m->spoiled) {
		r->stats.bad_order++;
		return;
	}
	for (uint32_t i = end; i < m->got_bytes; i++)
		if (m->bytes[i]) {
			r->stats.bad_pad++;
			return;
		}
	if (r->config.crc && !crc_good(m, n)) {
		r->stats.bad_crc++;
		return;
	}
	r->stats.messages++;
	r->sink.message(r->sink.owner, &m->head, m->bytes, n);
}

static void message_add(struct edm_rx_message *m, const uint8_t *bytes,
			uint32_t n)
{
	ASSERT(m->got_bytes + n <= sizeof(m->bytes));
	memcpy(m->bytes + m->got_bytes, bytes, n);
	m->got_bytes += n;
}

/* Room for a message that begins: inside another one where that is allowed,
 * else whatever has not ended is lost. */
static void message_make_room(struct edm_phy_rx *r,
			      const struct wire_mem_head *head)
{
	if (r->config.nest && edm_msg_request(head) && !r->depth &&
	    current(r)->open)
		r->depth = 1;
	else
		messages_drop(r, &r->stats.bad_order);
}

static void message_start(struct edm_phy_rx *r, enum wire_block_kind kind,
			  const struct wire_mem_head *head,
			  const uint8_t *payload)
{
	uint32_t n = edm_msg_bytes(head);
	struct edm_rx_message *m;
	uint32_t blocks;

	message_make_room(r, head);
	if (n > EDM_MSG_BYTES_MAX) {
		message_drop(r, &r->stats.bad_head);
		return;
	}
	blocks = edm_msg_blocks(&r->config, n);
	if ((blocks == 1) != (kind == WIRE_BLOCK_MEM_SINGLE)) {
		message_drop(r, &r->stats.bad_order);
		return;
	}
	m = current(r);
	m->head = *head;
	m->got_bytes = 0;
	m->blocks_left = blocks - 1;
	m->open = true;
	m->spoiled = false;
	message_add(m, payload,
		    r->config.md == EDM_MD_DATA
			    ? wire_mem_room(r->config.map, kind)
			    : 0);
	if (!m->blocks_left)
		message_finish(r);
}

/* A block behind the first. The count says where the message ends; the kind of
 * the block must agree. Where the map has one number for both, only the count
 * can tell. */
static void message_next(struct edm_phy_rx *r, enum wire_block_kind kind,
			 const uint8_t *payload)
{
	bool shared = r->config.map == WIRE_MAP_CLAUSE82 &&
		      r->config.md == EDM_MD_CONTROL;
	bool end = kind == WIRE_BLOCK_MEM_END;
	struct edm_rx_message *m = current(r);

	if (!m->open) {
		r->stats.bad_order++;
		return;
	}
	m->blocks_left--;
	message_add(m, payload, wire_mem_room(r->config.map, kind));
	if (!shared && end != (m->blocks_left == 0))
		message_drop(r, &r->stats.bad_order);
	else if (!m->blocks_left)
		message_finish(r);
}

static void control(struct edm_phy_rx *r, enum wire_block_kind kind,
		    const struct wire_mem_head *head, const uint8_t *tail)
{
	if (!edm_ctl_check(&r->config, head, tail)) {
		r->stats.bad_crc++;
		return;
	}
	r->stats.controls++;
	r->sink.control(r->sink.owner, kind, head);
}

static void memory_block(struct edm_phy_rx *r, const struct wire_block *in)
{
	struct wire_mem_head head;
	enum wire_block_kind kind;
	uint8_t payload[8];

	if (wire_mem_decode(r->config.map, in, &kind, &head, payload)) {
		r->stats.bad_head++;
		messages_drop(r, &r->stats.bad_order);
		return;
	}
	switch ((int)kind) {
	case WIRE_BLOCK_MEM_START:
	case WIRE_BLOCK_MEM_SINGLE:
		message_start(r, kind, &head, payload);
		return;
	case WIRE_BLOCK_MEM_NOTIFY:
	case WIRE_BLOCK_MEM_GRANT:
		control(r, kind, &head, payload);
		return;
	case WIRE_BLOCK_MEM_DATA:
		if (r->config.md == EDM_MD_DATA) {
			if (!current(r)->open)
				r->stats.stray_blocks++;
			messages_drop(r, &r->stats.bad_order);
			return;
		}
		break;
	default:
		break;
	}
	message_next(r, kind, payload);
}

static void frame_drop(struct edm_phy_rx *r, uint64_t *counter)
{
	r->in_frame = false;
	r->in = r->done;
	++*counter;
}

static void frame_block(struct edm_phy_rx *r, const struct wire_block *in,
			enum wire_block_kind kind)
{
	if (kind == WIRE_BLOCK_START) {
		if (r->in_frame)
			frame_drop(r, &r->stats.frames_cut);
		r->in_frame = true;
	} else if (!r->in_frame) {
		r->stats.stray_blocks++;
		return;
	}
	if (r->in - r->done >= EDM_FRAME_BLOCKS_MAX + 1 ||
	    r->in - r->out == EDM_RX_BUFFER) {
		frame_drop(r, &r->stats.overflows);
		return;
	}
	r->buffer[r->in++ % EDM_RX_BUFFER] = *in;
	r->stats.buffer_max = u32_max(r->stats.buffer_max, r->in - r->out);
	if (kind == WIRE_BLOCK_TERM) {
		r->in_frame = false;
		r->done = r->in;
		r->stats.frames++;
	}
}

/* A block whose kind is lost. Between MS and MT it can only have been a block
 * of that message, or of the few that may stand inside. */
static void bad_block(struct edm_phy_rx *r, uint64_t *counter)
{
	struct edm_rx_message *m = current(r);

	++*counter;
	if (!m->open || r->config.md != EDM_MD_DATA)
		return;
	m->spoiled = true;
	m->got_bytes = 0;
	if (!--m->blocks_left)
		message_finish(r);
}

static void take(struct edm_phy_rx *r, const struct wire_block *in)
{
	enum wire_block_kind kind = wire_block_kind(r->config.map, in);
	bool whole = current(r)->open && r->config.md == EDM_MD_DATA;
	le64 word;

	switch (kind) {
	case WIRE_BLOCK_BAD_SYNC:
		bad_block(r, &r->stats.bad_sync);
		return;
	case WIRE_BLOCK_BAD_TYPE:
		bad_block(r, &r->stats.bad_type);
		return;
	case WIRE_BLOCK_DATA:
		if (whole) {
			word = le64_put(in->payload);
			message_next(r, kind, word.b);
		} else {
			frame_block(r, in, kind);
		}
		return;
	case WIRE_BLOCK_IDLE:
	case WIRE_BLOCK_ORDERED:
	case WIRE_BLOCK_START:
	case WIRE_BLOCK_TERM:
		if (whole)
			messages_drop(r, &r->stats.bad_order);
		if (kind == WIRE_BLOCK_START || kind == WIRE_BLOCK_TERM)
			frame_block(r, in, kind);
		else if (r->in_frame)
			frame_drop(r, &r->stats.frames_cut);
		return;
	case WIRE_BLOCK_MEM_START:
	case WIRE_BLOCK_MEM_END:
	case WIRE_BLOCK_MEM_SINGLE:
	case WIRE_BLOCK_MEM_DATA:
	case WIRE_BLOCK_MEM_NOTIFY:
	case WIRE_BLOCK_MEM_GRANT:
		memory_block(r, in);
		return;
	}
}

/* The lane of the T in a block that ends a frame. */
static uint32_t lane_of_term(const struct wire_block *b)
{
	static const uint8_t types[] = {WIRE_TYPE_TERM_0, WIRE_TYPE_TERM_1,
					WIRE_TYPE_TERM_2, WIRE_TYPE_TERM_3,
					WIRE_TYPE_TERM_4, WIRE_TYPE_TERM_5,
					WIRE_TYPE_TERM_6, WIRE_TYPE_TERM_7};
	const uint8_t *p = memchr(types, (uint8_t)b->payload, sizeof(types));

	return p ? (uint32_t)(p - types) : 0;
}

/*
 * The decoder's side. A frame starts only when it is whole, and not before the
 * gap that the deficit idle count asks for; this repeats the sender's own
 * choices, so that nothing piles up.
 */
static void give(struct edm_phy_rx *r, struct wire_block *out)
{
	const struct wire_block *b = &r->buffer[r->out % EDM_RX_BUFFER];
	uint32_t lane;

	if (r->out == r->done) {
		ASSERT(!r->out_in_frame); /* frames are whole */
		goto idle;
	}
	if (!r->out_in_frame) {
		lane = (uint8_t)b->payload == WIRE_TYPE_START ? 0 : 4;
		if (r->gap_chars + lane < edm_gap_next(&r->gap, r->term_lane))
			goto idle;
		edm_gap_account(&r->gap, r->gap_chars + lane);
		r->out_in_frame = true;
	} else if (b->sync == WIRE_SYNC_CONTROL) {
		r->out_in_frame = false;
		r->term_lane = lane_of_term(b);
		r->gap_chars = WIRE_BLOCK_CHARS - r->term_lane;
	}
	*out = *b;
	r->out++;
	return;

idle:
	*out = wire_block_idle();
	r->gap_chars = u32_min(r->gap_chars + WIRE_BLOCK_CHARS, GAP_PLENTY);
}

void edm_phy_rx_step(struct edm_phy_rx *r, const struct wire_block *in,
		     struct wire_block *out)
{
	take(r, in);
	give(r, out);
}
