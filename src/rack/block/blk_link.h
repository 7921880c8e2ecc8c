/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the members of a chain tell each other: one header for all, and data
 * behind it. A message may be lost, doubled or late; it names the block that it
 * is for, who sends it and the epoch of both.
 */
#ifndef AQ_BLK_LINK_H
#define AQ_BLK_LINK_H

#include "wire/block_wire.h"

enum {
	BLK_LINK_MAGIC = 0x61716c6b, /* "aqlk" */
	BLK_LINK_VERSION = 1,
	BLK_LINK_DATA = 32 << 10, /* bytes behind a header, at most */
};

enum blk_link_type {
	BLK_LINK_OP = 1, /* down: a change, or a piece of its value */
	BLK_LINK_GOT,	 /* up: so much of a value or a copy has come */
	BLK_LINK_ACK,	 /* up: all from here on have executed it */
	BLK_LINK_STATE,	 /* up: where the sender is; asks for a lease */
	BLK_LINK_GRANT,	 /* down: the lease, as it was asked for */
	BLK_LINK_COPY,	 /* down: a piece of the block */
	BLK_LINK_TYPES,
};

enum {
	BLK_LINK_ANSWERED = 1, /* of an operation: it is refused, or was done */
	BLK_LINK_HAS_STATE = 2, /* of a state: the sender needs no copy */
	BLK_LINK_OF_COPY = 4,	/* of what has come: it is a copy */
};

struct blk_link_wire {
	be32 magic;
	be16 version;
	be16 type;
	be32 crc; /* CRC-32C of all, with 0 in this place */
	be32 bytes;
	be32 index; /* of the receiver's block */
	be32 flags;
	be64 to; /* generation of the receiver's block */
	be64 from;
	be64 epoch;
	be64 position;
	be64 stamp;
	be64 offset;
	be64 total;
	uint8_t session[BLOCK_SESSION_BYTES];
	be64 acked;
	be64 sequence;
	be64 arg;
	be32 opcode;
	be32 length;
	be32 inside_room;
	be32 buffer_bytes;
};
STATIC_ASSERT(sizeof(struct blk_link_wire) == 136, "link message");

struct blk_link_message {
	enum blk_link_type type;
	uint32_t index;
	uint32_t flags;
	uint64_t to, from;
	uint64_t epoch;
	uint64_t position; /* of the operation, or of the sender */
	uint64_t stamp;	   /* by the clock of who asked for the lease */
	uint64_t offset, total;
	/* The operation. */
	uint8_t session[BLOCK_SESSION_BYTES];
	uint64_t acked, sequence, arg;
	uint32_t opcode, length, inside_room, buffer_bytes;
	uint32_t bytes;
	const uint8_t *data; /* of a parsed one: in the buffer */
};

/* Its length in bytes; `out` has room for the header and the data. */
size_t blk_link_build(const struct blk_link_message *m, uint8_t *out);
/* -EBADMSG: damaged; -EPROTONOSUPPORT; -EINVAL: no correct peer sends it. */
int blk_link_parse(const uint8_t *bytes, size_t len_bytes,
		   struct blk_link_message *out) MUST_CHECK;

#endif
