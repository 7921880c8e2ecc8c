/* SPDX-License-Identifier: Apache-2.0 */
/* Building and parsing frames of which the beginning is known. */
#include "base/crc.h"
#include "base/crc_short.h"
#include "base/live.h"
#include "wire_priv.h"
#include "wire_stamp.h"

/* What follows the head, as it lies in memory: first the queue pair and packet
 * numbers of the BTH, then the extension. */
struct rest {
	uint64_t bth;
	uint64_t ext[2];
	uint32_t imm; /* behind an address */
	uint64_t walk[WALK_WIRE_BYTES / 8];
};

enum {
	BTH_AT = WIRE_STAMP_HEAD,
	EXT_AT = BTH_AT + 8,
	AETH_BYTES = 4,
};

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* Two words of four bytes in the order in which they lie in memory. */
static inline uint64_t pair(uint32_t first, uint32_t second)
{
	return BYTES_LE(64, BYTES_LE(32, first) | (uint64_t)BYTES_LE(32, second)
							  << 32);
}

static inline uint32_t first_of(uint64_t pair)
{
	return BYTES_LE(32, (uint32_t)BYTES_LE(64, pair));
}

static inline uint32_t second_of(uint64_t pair)
{
	return BYTES_LE(32, (uint32_t)(BYTES_LE(64, pair) >> 32));
}

static int stamp_ext(uint32_t flags)
{
	switch (flags & ~0xffu) {
	case 0:
		return WIRE_STAMP_NONE;
	case WIRE_OP_RETH:
		return WIRE_STAMP_RETH;
	case WIRE_OP_AETH:
		return WIRE_STAMP_AETH;
	case WIRE_OP_IMM:
		return WIRE_STAMP_IMM;
	case WIRE_OP_RETH | WIRE_OP_IMM:
		return WIRE_STAMP_RETH_IMM;
	case WIRE_OP_WALK:
		return WIRE_STAMP_WALK;
	case WIRE_OP_AETH | WIRE_OP_WALK:
		return WIRE_STAMP_AETH_WALK;
	default:
		return -1;
	}
}

bool wire_stamp_make(struct wire_stamp *s, const struct wire_pkt *pkt)
{
	static const uint8_t zeros[WIRE_MTU_MAX];
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	int ext = stamp_ext(op->flags);
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt like = *pkt;
	struct wire_fixed4 masked;

	if (ext < 0 || pkt->payload_len % 4 || pkt->has_mac ||
	    !wire_is_ipv4(pkt->dst_ip))
		return false;
	like.payload = zeros;
	s->frame_len = (uint16_t)wire_build(&like, frame);
	s->payload_at = (uint8_t)(EXT_AT + op->ext_bytes);
	s->payload_len = (uint16_t)pkt->payload_len;
	s->ext = (uint8_t)ext;
	memcpy(s->head, frame, sizeof(s->head));
	memcpy(&masked, frame + WIRE_ETH_BYTES, sizeof(masked));
	wire_icrc_mask4(&masked);
	s->register_after = crc32_raw(WIRE_ICRC_SEED, &masked,
				      WIRE_STAMP_HEAD - WIRE_ETH_BYTES);
	return true;
}

/* The first word behind what the register has summed up so far. */
static inline uint64_t after(uint32_t state, uint64_t word)
{
	return word ^ pair(BYTES_LE(32, state), 0);
}

static inline bool has_walk(const struct wire_stamp *s)
{
	return s->ext >= WIRE_STAMP_WALK;
}

static inline size_t walk_at(const struct wire_stamp *s)
{
	return s->ext == WIRE_STAMP_WALK ? EXT_AT : EXT_AT + AETH_BYTES;
}

/* Of a walk's headers: what the register is before the last two words, which
 * are *b0 and *b1 with the register in them. */
static inline void lead_walk(const struct wire_stamp *s, const struct rest *r,
			     uint64_t bth, uint64_t *b0, uint64_t *b1)
{
	const uint64_t *w = r->walk;
	uint32_t state;

	if (s->ext == WIRE_STAMP_WALK) {
		state = crc32_lead(bth, w[0], w[1], NULL, NULL, 0);
		*b0 = after(state, w[2]);
		*b1 = w[3];
		return;
	}
	state = crc32_lead(0, pair(0, first_of(bth)),
			   pair(second_of(bth), first_of(r->ext[0])), NULL,
			   NULL, 0);
	state = crc32_lead(after(state, w[0]), w[1], w[2], NULL, NULL, 0);
	*b1 = after(state, w[3]);
}

/*
 * The register after head, rest and payload, with the payload copied on the way
 * if there is a `dst`: what was summed is what was copied, even if its owner
 * writes to it meanwhile.
 */
static inline uint32_t icrc(const struct wire_stamp *s, const struct rest *r,
			    uint8_t *dst, const uint8_t *src, bool is_frame)
{
	/* The first byte of the masked queue pair word reads as ones; the
	 * register so far is added to the whole word. */
	uint64_t bth = r->bth | pair(BYTES_BE(32, 0xff000000u), 0);
	uint64_t a1 = 0, b0 = 0, b1;
	size_t direct = s->payload_len;
	uint32_t state;

	bth = after(s->register_after, bth);
	if (s->ext == WIRE_STAMP_RETH) {
		a1 = bth;
		b0 = r->ext[0];
		b1 = r->ext[1];
	} else if (s->ext == WIRE_STAMP_RETH_IMM) {
		state = crc32_lead(bth, r->ext[0], r->ext[1], NULL, NULL, 0);
		b1 = pair(0, r->imm ^ BYTES_LE(32, state));
	} else if (UNLIKELY(has_walk(s))) {
		lead_walk(s, r, bth, &b0, &b1);
	} else if (s->ext != WIRE_STAMP_NONE) { /* an AETH, or a value */
		b0 = pair(0, first_of(bth));
		b1 = pair(second_of(bth), first_of(r->ext[0]));
	} else {
		b1 = bth;
	}
	/* Steps of 16 bytes would split words that are not aligned to them. */
	if (UNLIKELY(direct % 16 || direct > CRC_LEAD_MAX ||
		     (dst && !is_frame && (uintptr_t)src % 8)))
		direct = 0;
	state = crc32_lead(a1, b0, b1, dst, src, direct);
	if (UNLIKELY(direct != s->payload_len)) {
		if (dst)
			live_move(dst, src, s->payload_len);
		state = crc32_raw(state, dst ? dst : src, s->payload_len);
	}
	return state;
}

static inline bool has_aeth(const struct wire_stamp *s)
{
	return s->ext == WIRE_STAMP_AETH || s->ext == WIRE_STAMP_AETH_WALK;
}

static inline bool has_address(const struct wire_stamp *s)
{
	return s->ext == WIRE_STAMP_RETH || s->ext == WIRE_STAMP_RETH_IMM;
}

HOT size_t wire_stamp_build(const struct wire_stamp *s,
			    const struct wire_vary *v, uint8_t *frame)
{
	uint8_t *payload = frame + s->payload_at;
	bool copies = v->payload && v->payload != payload;
	struct rest r = {
		.bth = pair(BYTES_BE(32, v->ecn_qpn), BYTES_BE(32, v->ack_psn)),
	};
	le32 end;

	memcpy(frame, s->head, WIRE_STAMP_HEAD);
	put64(frame + BTH_AT, r.bth);
	if (has_address(s)) {
		r.ext[0] = BYTES_BE(64, v->va);
		r.ext[1] =
			pair(BYTES_BE(32, v->rkey), BYTES_BE(32, v->dma_len));
		put64(frame + EXT_AT, r.ext[0]);
		put64(frame + EXT_AT + 8, r.ext[1]);
		if (s->ext == WIRE_STAMP_RETH_IMM) {
			memcpy(&r.imm, &v->imm, sizeof(r.imm));
			memcpy(frame + EXT_AT + 16, &r.imm, sizeof(r.imm));
		}
	} else if (has_aeth(s)) {
		uint32_t aeth = BYTES_BE(32, v->syndrome_msn);

		r.ext[0] = pair(aeth, 0);
		memcpy(frame + EXT_AT, &aeth, sizeof(aeth));
	} else if (s->ext == WIRE_STAMP_IMM) {
		uint32_t imm;

		memcpy(&imm, &v->imm, sizeof(imm));
		r.ext[0] = pair(imm, 0);
		memcpy(frame + EXT_AT, &imm, sizeof(imm));
	}
	if (UNLIKELY(has_walk(s))) {
		struct wire_walk_eth eth = wire_walk_put(v->walk);

		memcpy(r.walk, &eth, sizeof(eth));
		memcpy(frame + walk_at(s), &eth, sizeof(eth));
	}
	end = le32_put(~icrc(s, &r, copies ? payload : NULL,
			     copies ? v->payload : payload, v->is_frame));
	memcpy(payload + s->payload_len, &end, sizeof(end));
	return s->frame_len;
}

static inline uint64_t differs(const uint8_t *a, const uint8_t *b, size_t at)
{
	return get64(a + at) ^ get64(b + at);
}

/* Whether the frame starts with the head; the last two words overlap. Not a
 * loop, because gcc 12 leaves it one. */
static inline bool head_matches(const struct wire_stamp *s,
				const uint8_t *frame)
{
	STATIC_ASSERT(WIRE_STAMP_HEAD > 40 && WIRE_STAMP_HEAD <= 48, "words");
	return (differs(s->head, frame, 0) | differs(s->head, frame, 8) |
		differs(s->head, frame, 16) | differs(s->head, frame, 24) |
		differs(s->head, frame, 32) |
		differs(s->head, frame, WIRE_STAMP_HEAD - 8)) == 0;
}

HOT bool wire_stamp_parse(const struct wire_stamp *s, const uint8_t *frame,
			  size_t len_bytes, struct wire_pkt *pkt)
{
	struct rest r = {0};
	uint32_t qpn, psn;
	le32 end;

	if (len_bytes != s->frame_len || !head_matches(s, frame))
		return false;
	r.bth = get64(frame + BTH_AT);
	/* Also without an extension these four bytes are there: the ICRC. */
	if (has_address(s)) {
		r.ext[0] = get64(frame + EXT_AT);
		r.ext[1] = get64(frame + EXT_AT + 8);
		/* Or what is there instead of it: the ICRC at least. */
		memcpy(&r.imm, frame + EXT_AT + 16, sizeof(r.imm));
	} else {
		uint32_t aeth;

		memcpy(&aeth, frame + EXT_AT, sizeof(aeth));
		r.ext[0] = pair(aeth, 0);
	}
	if (UNLIKELY(has_walk(s)))
		memcpy(r.walk, frame + walk_at(s), sizeof(r.walk));
	memcpy(&end, frame + len_bytes - WIRE_ICRC_BYTES, sizeof(end));
	if (UNLIKELY((uint32_t)~icrc(s, &r, NULL, frame + s->payload_at,
				     true) != le32_get(end)))
		return false;
	qpn = BYTES_BE(32, first_of(r.bth));
	psn = BYTES_BE(32, second_of(r.bth));
	if (UNLIKELY(psn & WIRE_BTH_MAC)) /* what looks like payload is not */
		return false;
	pkt->fecn = qpn & WIRE_BTH_FECN;
	pkt->becn = qpn & WIRE_BTH_BECN;
	pkt->dest_qpn = qpn & WIRE_QPN_MASK;
	pkt->ack_req = psn & WIRE_BTH_ACKREQ;
	pkt->psn = psn & WIRE_PSN_MASK;
	if (has_address(s)) {
		pkt->va = BYTES_BE(64, r.ext[0]);
		pkt->rkey = BYTES_BE(32, first_of(r.ext[1]));
		pkt->dma_len = BYTES_BE(32, second_of(r.ext[1]));
		if (s->ext == WIRE_STAMP_RETH_IMM)
			memcpy(&pkt->imm, &r.imm, sizeof(pkt->imm));
	} else if (has_aeth(s)) {
		uint32_t aeth = BYTES_BE(32, first_of(r.ext[0]));

		pkt->syndrome = (uint8_t)(aeth >> 24);
		pkt->msn = aeth & 0xffffff;
	} else if (s->ext == WIRE_STAMP_IMM) {
		uint32_t imm = first_of(r.ext[0]);

		memcpy(&pkt->imm, &imm, sizeof(pkt->imm));
	}
	if (UNLIKELY(has_walk(s))) {
		struct wire_walk_eth eth;

		memcpy(&eth, r.walk, sizeof(eth));
		pkt->walk = wire_walk_get(&eth);
	}
	pkt->payload = frame + s->payload_at;
	return true;
}
