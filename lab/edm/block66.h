/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 66-bit blocks of the Ethernet PCS: those of IEEE 802.3 clause 49, and the
 * blocks that EDM adds for memory messages. Pure encode and decode; no state,
 * no allocation. The owner of the stream decides which blocks may follow each
 * other and which message or frame a data block belongs to.
 *
 * Bit order: bit 0 of `payload` is sent first, right behind the two bits of the
 * sync header; byte 0 of a control block is its type. The sync header is kept
 * with its first bit in bit 0: on the wire data is 01 and control is 10, here
 * that is 2 and 1.
 */
#ifndef AQ_WIRE_BLOCK66_H
#define AQ_WIRE_BLOCK66_H

#include "base/base.h"

enum {
	WIRE_BLOCK_CHARS = 8,
	WIRE_BLOCK_BITS = 66,
	WIRE_BLOCK_TYPES = 15, /* of clause 49 */
};

enum wire_sync {
	WIRE_SYNC_CONTROL = 1,
	WIRE_SYNC_DATA = 2,
};

struct wire_block {
	uint64_t payload;
	uint8_t sync;
};

/* Why a block is refused. */
enum wire_block_error {
	WIRE_BLOCK_OK = 0,
	WIRE_BLOCK_E_SYNC,   /* sync header 00 or 11 */
	WIRE_BLOCK_E_TYPE,   /* no such block type */
	WIRE_BLOCK_E_CODE,   /* control or O code without a meaning */
	WIRE_BLOCK_E_CHARS,  /* encode: no block type holds these characters */
	WIRE_BLOCK_E_FIELD,  /* memory block: a value that has no encoding */
	WIRE_BLOCK_E_NO_MEM, /* not a memory block in this map */
};

/* Eight characters as on the XGMII: bit i of `control` says that char[i] is a
 * control character. */
struct wire_xgmii {
	uint8_t character[WIRE_BLOCK_CHARS];
	uint8_t control;
};

enum wire_xgmii_code {
	WIRE_XGMII_IDLE = 0x07,
	WIRE_XGMII_LPI = 0x06,
	WIRE_XGMII_START = 0xfb,
	WIRE_XGMII_TERMINATE = 0xfd,
	WIRE_XGMII_ERROR = 0xfe,
	WIRE_XGMII_SEQUENCE = 0x9c,
	WIRE_XGMII_SIGNAL = 0x5c,
};

enum wire_block_type {
	WIRE_TYPE_IDLE = 0x1e,	 /* eight control characters */
	WIRE_TYPE_C_O = 0x2d,	 /* four characters, an ordered set */
	WIRE_TYPE_C_S = 0x33,	 /* four characters, a start in lane 4 */
	WIRE_TYPE_O_O = 0x55,	 /* two ordered sets */
	WIRE_TYPE_O_S = 0x66,	 /* an ordered set, a start in lane 4 */
	WIRE_TYPE_START = 0x78,	 /* a start in lane 0 */
	WIRE_TYPE_O_C = 0x4b,	 /* an ordered set, four characters */
	WIRE_TYPE_TERM_0 = 0x87, /* the frame ends before this block */
	WIRE_TYPE_TERM_1 = 0x99,
	WIRE_TYPE_TERM_2 = 0xaa,
	WIRE_TYPE_TERM_3 = 0xb4,
	WIRE_TYPE_TERM_4 = 0xcc,
	WIRE_TYPE_TERM_5 = 0xd2,
	WIRE_TYPE_TERM_6 = 0xe1,
	WIRE_TYPE_TERM_7 = 0xff, /* seven bytes of the frame are in it */
};

/* Pad bits are sent as zero and ignored on receipt, as clause 49 says. Both
 * write their result only when they return WIRE_BLOCK_OK. */
enum wire_block_error wire_block_encode(const struct wire_xgmii *x,
					struct wire_block *b);
enum wire_block_error wire_block_decode(const struct wire_block *b,
					struct wire_xgmii *x);

static inline struct wire_block wire_block_idle(void)
{
	return (struct wire_block){WIRE_TYPE_IDLE, WIRE_SYNC_CONTROL};
}

/*
 * The numbers that memory blocks use for their type. RS-FEC shortens four
 * blocks to 257 bits and keeps only the low half (bits 0-3) of the type of the
 * first control block among them, so a map that must live behind it may only
 * use low halves that no other type has.
 */
enum wire_mem_map {
	/* A coset of the code that the standard's types form: four bits from
	 * each other and two from every standard type. No RS-FEC. */
	WIRE_MAP_COSET,
	/* RS-FEC with the types of clause 82 (40 and 100 Gb/s), which leaves
	 * five low halves free. In the per-block mode, data shares the number
	 * of the last block. */
	WIRE_MAP_CLAUSE82,
	/* RS-FEC with all types of clause 49 (25 Gb/s): the only free low half
	 * is 0, so four bits behind the type tell the memory blocks apart and
	 * each carries a byte less. */
	WIRE_MAP_CLAUSE49,
	WIRE_MAP_COUNT,
};

/* What a block is, as far as the block alone tells. */
enum wire_block_kind {
	WIRE_BLOCK_BAD_SYNC,
	WIRE_BLOCK_BAD_TYPE,
	WIRE_BLOCK_DATA,
	WIRE_BLOCK_IDLE,       /* control characters only */
	WIRE_BLOCK_ORDERED,    /* ordered sets, no start and no end */
	WIRE_BLOCK_START,      /* a start, in lane 0 or 4 */
	WIRE_BLOCK_TERM,       /* the end of a frame */
	WIRE_BLOCK_MEM_START,  /* MS: a message begins */
	WIRE_BLOCK_MEM_END,    /* MT: its last block */
	WIRE_BLOCK_MEM_SINGLE, /* MST: a message of one block */
	WIRE_BLOCK_MEM_DATA,   /* MD as a control block of its own */
	WIRE_BLOCK_MEM_NOTIFY, /* N */
	WIRE_BLOCK_MEM_GRANT,  /* G */
};

enum wire_block_kind wire_block_kind(enum wire_mem_map map,
				     const struct wire_block *b);
/* Block type number of a memory kind; for tests of the maps. */
uint8_t wire_mem_type(enum wire_mem_map map, enum wire_block_kind kind);

enum wire_mem_op {
	WIRE_MEM_RREQ,
	WIRE_MEM_WREQ,
	WIRE_MEM_RMWREQ,
	WIRE_MEM_RRES,
	WIRE_MEM_NULL, /* RRES of a read without an answer */
	WIRE_MEM_OPS,
};

enum {
	WIRE_MEM_NODES = 512,
	WIRE_MEM_CLASSES = 4,
	WIRE_MEM_SIZE_UNIT = 64, /* sizes above 65,535 are multiples */
	WIRE_MEM_SIZE_MAX = 65535 * WIRE_MEM_SIZE_UNIT,
	WIRE_MEM_HEAD_BYTES = 5,
};

/* The head of MS, MST, N and G: 40 bits. */
struct wire_mem_head {
	uint32_t size_bytes; /* of the message, or of the granted chunk */
	uint16_t node;	     /* the peer */
	uint8_t id;	     /* of the message among those of the peer */
	uint8_t op;	     /* enum wire_mem_op */
	uint8_t class;
	bool last; /* no further chunk of this message follows */
};

/* Bytes of payload that a block of this kind carries; 0 for N and G, whose tail
 * of as many bytes as MS carries is there for a check sum. */
uint32_t wire_mem_room(enum wire_mem_map map, enum wire_block_kind kind);
uint32_t wire_mem_tail_bytes(enum wire_mem_map map);

/*
 * A memory block from its head and its payload. MS, MST, N and G have a head
 * and wire_mem_tail_bytes() of payload; MT and MD have no head (NULL) and
 * wire_mem_room() of payload. WIRE_BLOCK_E_FIELD for a head that does not fit.
 */
enum wire_block_error wire_mem_encode(enum wire_mem_map map,
				      enum wire_block_kind kind,
				      const struct wire_mem_head *head,
				      const uint8_t *payload,
				      struct wire_block *b);
/* The inverse; `payload` has room for eight bytes, all of which are written.
 * `head` is zero for kinds that have none. */
enum wire_block_error wire_mem_decode(enum wire_mem_map map,
				      const struct wire_block *b,
				      enum wire_block_kind *kind,
				      struct wire_mem_head *head,
				      uint8_t payload[8]);

/* The head as it stands in a block, for check sums. */
enum wire_block_error wire_mem_head_pack(const struct wire_mem_head *head,
					 uint64_t *bits);

/*
 * The check sum of a message: CRC-16 with x^16 + x^12 + x^5 + 1, reflected like
 * the wire, over the 40 bits of the head and then the payload. The generator
 * shares no factor with the scrambler's polynomial.
 */
uint16_t wire_mem_crc16(uint64_t head_bits, const uint8_t *payload,
			uint32_t len_bytes);
/* For the tail of N and G in a map that has only one byte there: CRC-8 with
 * x^8 + x^2 + x + 1 over the 40 bits of the head. */
uint8_t wire_mem_crc8(uint64_t head_bits);

#endif
