/* SPDX-License-Identifier: Apache-2.0 */
/* Frames to blocks and back, as the MAC, the RS and the PCS do together. */
#include "phy_mac.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc.h"

enum {
	PREAMBLE_BYTES = 7, /* behind the S, with the delimiter */
	PREAMBLE = 0x55,
	DELIMITER = 0xd5,
	/* Long enough for the gap before the first frame. */
	GAP_PLENTY = 1u << 20,
};

static uint32_t fcs_of(const uint8_t *frame, uint32_t len_bytes)
{
	return ~crc32_raw(~0u, frame, len_bytes);
}

uint32_t edm_frame_blocks(uint32_t len_bytes)
{
	return 2 + (u32_max(len_bytes, EDM_FRAME_MIN) + EDM_FCS_BYTES) / 8;
}

void edm_mac_tx_init(struct edm_mac_tx *m, uint32_t start_align,
		     edm_frame_source *source, void *owner)
{
	memset(m, 0, sizeof(*m));
	m->source = source;
	m->owner = owner;
	m->gap.align = start_align;
	m->gap_chars = GAP_PLENTY;
	m->gap_want = GAP_PLENTY;
}

static bool take_frame(struct edm_mac_tx *m)
{
	uint32_t n;
	const uint8_t *frame = m->source(m->owner, &n);
	uint8_t *p = m->bytes;
	le32 fcs;

	if (!frame)
		return false;
	ASSERT(n <= EDM_FRAME_MAX);
	memset(p, PREAMBLE, PREAMBLE_BYTES - 1);
	p[PREAMBLE_BYTES - 1] = DELIMITER;
	p += PREAMBLE_BYTES;
	memcpy(p, frame, n);
	if (n < EDM_FRAME_MIN) {
		memset(p + n, 0, EDM_FRAME_MIN - n);
		n = EDM_FRAME_MIN;
	}
	fcs = le32_put(fcs_of(p, n));
	memcpy(p + n, &fcs, sizeof(fcs));
	m->len_bytes = PREAMBLE_BYTES + n + EDM_FCS_BYTES;
	m->sent_bytes = 0;
	m->in_frame = true;
	m->frames++;
	return true;
}

static void encode(const struct wire_xgmii *x, struct wire_block *out)
{
	enum wire_block_error e = wire_block_encode(x, out);

	ASSERT(e == WIRE_BLOCK_OK);
}

static void start(struct edm_mac_tx *m, uint32_t lane, struct wire_block *out)
{
	struct wire_xgmii x = {.control = (uint8_t)((2u << lane) - 1)};

	memset(x.character, WIRE_XGMII_IDLE, lane);
	x.character[lane] = WIRE_XGMII_START;
	memcpy(x.character + lane + 1, m->bytes, 7 - lane);
	m->sent_bytes = 7 - lane;
	encode(&x, out);
}

static void terminate(struct edm_mac_tx *m, uint32_t lane,
		      struct wire_block *out)
{
	struct wire_xgmii x = {.control = (uint8_t)(0xffu << lane)};

	memcpy(x.character, m->bytes + m->sent_bytes, lane);
	x.character[lane] = WIRE_XGMII_TERMINATE;
	memset(x.character + lane + 1, WIRE_XGMII_IDLE, 7 - lane);
	encode(&x, out);
	m->in_frame = false;
	m->gap_chars = WIRE_BLOCK_CHARS - lane;
	m->gap_want = edm_gap_next(&m->gap, lane);
}

static void between(struct edm_mac_tx *m, struct wire_block *out)
{
	/* 4: the wanted gap ends in the middle of this block. A frame that
	 * comes later than that starts in lane 0. */
	uint32_t lane = m->gap_want == m->gap_chars + 4 ? 4 : 0;

	if (m->gap_chars + lane >= m->gap_want && take_frame(m)) {
		if (m->gap_chars + lane == m->gap_want &&
		    m->gap_want != GAP_PLENTY) {
			m->gap_sum += m->gap_want;
			m->gap_count++;
		}
		edm_gap_account(&m->gap, m->gap_chars + lane);
		start(m, lane, out);
		return;
	}
	*out = wire_block_idle();
	m->gap_chars = u32_min(m->gap_chars + WIRE_BLOCK_CHARS, GAP_PLENTY);
}

void edm_mac_tx_step(struct edm_mac_tx *m, struct wire_block *out)
{
	uint32_t left = m->len_bytes - m->sent_bytes;
	le64 word;

	if (!m->in_frame) {
		between(m, out);
		return;
	}
	if (left < WIRE_BLOCK_CHARS) {
		terminate(m, left, out);
		return;
	}
	memcpy(&word, m->bytes + m->sent_bytes, sizeof(word));
	*out = (struct wire_block){le64_get(word), WIRE_SYNC_DATA};
	m->sent_bytes += WIRE_BLOCK_CHARS;
}

void edm_mac_rx_init(struct edm_mac_rx *m, uint32_t start_align,
		     edm_frame_sink *sink, void *owner)
{
	memset(m, 0, sizeof(*m));
	m->sink = sink;
	m->owner = owner;
	m->gap.align = start_align;
	m->gap_chars = GAP_PLENTY;
}

static void drop(struct edm_mac_rx *m, uint64_t *counter)
{
	m->in_frame = false;
	++*counter;
}

static void finish(struct edm_mac_rx *m)
{
	static const uint8_t preamble[PREAMBLE_BYTES] = {
		PREAMBLE, PREAMBLE, PREAMBLE, PREAMBLE,
		PREAMBLE, PREAMBLE, DELIMITER};
	uint32_t n = m->len_bytes;
	le32 fcs;

	m->in_frame = false;
	if (n < PREAMBLE_BYTES + EDM_FRAME_MIN + EDM_FCS_BYTES ||
	    n > PREAMBLE_BYTES + EDM_FRAME_MAX + EDM_FCS_BYTES ||
	    memcmp(m->bytes, preamble, sizeof(preamble))) {
		m->stats.bad_length++;
		return;
	}
	n -= PREAMBLE_BYTES + EDM_FCS_BYTES;
	memcpy(&fcs, m->bytes + PREAMBLE_BYTES + n, sizeof(fcs));
	if (le32_get(fcs) != fcs_of(m->bytes + PREAMBLE_BYTES, n)) {
		m->stats.bad_fcs++;
		return;
	}
	m->stats.frames++;
	m->sink(m->owner, m->bytes + PREAMBLE_BYTES, n);
}

static void take_control(struct edm_mac_rx *m, uint8_t c)
{
	if (c == WIRE_XGMII_START) {
		if (m->in_frame)
			drop(m, &m->stats.bad_order);
		if (!edm_gap_account(&m->gap, m->gap_chars))
			m->stats.short_gaps++;
		m->in_frame = true;
		m->len_bytes = 0;
		m->gap_chars = 0;
		return;
	}
	if (m->in_frame) {
		m->gap_chars = 0;
		if (c == WIRE_XGMII_TERMINATE)
			finish(m);
		else
			drop(m, &m->stats.bad_order);
	} else if (c == WIRE_XGMII_TERMINATE) {
		m->stats.bad_order++;
	}
	m->gap_chars = u32_min(m->gap_chars + 1, GAP_PLENTY);
}

void edm_mac_rx_step(struct edm_mac_rx *m, const struct wire_block *in)
{
	struct wire_xgmii x;

	if (in->sync == WIRE_SYNC_CONTROL && in->payload == WIRE_TYPE_IDLE &&
	    !m->in_frame) {
		m->gap_chars =
			u32_min(m->gap_chars + WIRE_BLOCK_CHARS, GAP_PLENTY);
		return;
	}
	if (wire_block_decode(in, &x) != WIRE_BLOCK_OK) {
		if (m->in_frame)
			drop(m, &m->stats.bad_order);
		return;
	}
	for (unsigned i = 0; i < WIRE_BLOCK_CHARS; i++) {
		if (x.control >> i & 1) {
			take_control(m, x.character[i]);
			continue;
		}
		if (!m->in_frame)
			continue; /* the bytes of an ordered set */
		if (m->len_bytes == sizeof(m->bytes))
			drop(m, &m->stats.bad_length);
		else
			m->bytes[m->len_bytes++] = x.character[i];
	}
}
