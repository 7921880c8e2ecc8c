/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of elastic structures sends to a memory node, the answers, and
 * the header of a block.
 *
 *   message   block_message_wire, then per operation block_op_wire and, if it
 *             carries its value inside, the value in whole eights of bytes
 *   answer    block_reply_wire, then per operation block_result_wire and its
 *             data in the same way
 *
 * The client sends the message; the node writes the answer, with the tag as
 * immediate value, to the place that the message names. Operations of a message
 * are executed in their order. A value that is not inside lies in memory of the
 * client, where the node fetches it, or to which it brings the data.
 *
 * A change has a session, which is the client's connection for all its life,
 * and a sequence number. Every number is big-endian.
 */
#ifndef AQ_WIRE_BLOCK_WIRE_H
#define AQ_WIRE_BLOCK_WIRE_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	BLOCK_WIRE_VERSION = 3,
	BLOCK_SESSION_BYTES = 16,
	BLOCK_INSIDE_MAX = 4096, /* bytes of a value inside a message */
	BLOCK_BATCH_MAX = 12288, /* of data inside an answer */
	BLOCK_OPS_MAX = 64,	 /* of a message */
	BLOCK_MESSAGE_MAX = 16384,
	BLOCK_REPLY_MAX = 16384,
	BLOCK_BYTES_MIN = 64 << 10,
	BLOCK_BYTES_MAX = 1 << 30,
	BLOCK_BYTES_DEFAULT = 8 << 20,
};

/* The answer to BLOCK_OPEN is a handle, and this if the node knows what the
 * session did before. */
#define BLOCK_OPEN_KNOWN (1ull << 32)

enum block_kind {
	BLOCK_FILE = 1,
	BLOCK_QUEUE,
	BLOCK_EKV,
	BLOCK_KINDS,
};

enum block_opcode {
	BLOCK_OPEN = 1, /* value: a ticket; answers with a handle */
	BLOCK_CLOSE,	/* the handle */
	BLOCK_BYE,	/* the session ends */
	BLOCK_STAT,	/* answers with a block_stat_wire */
	BLOCK_SEAL,	/* arg 1: no block comes after this one */
	BLOCK_APPEND,	/* value; arg: where the block begins in the file, which
			 * is always the same; answers with its offset there */
	BLOCK_PUT,	/* value */
	BLOCK_GET,	/* arg 1: is parked until it is acknowledged */
	BLOCK_ACK,	/* arg: what the get answered */
	BLOCK_CREDIT,	/* arg: items in all blocks before this one */
	/* Of a key-value store: block_kv_wire.h. */
	BLOCK_KV_GET,
	BLOCK_KV_PUT,
	BLOCK_KV_DELETE,
	BLOCK_KV_ADD,
	BLOCK_KV_SCAN,
	BLOCK_KV_LOOK,
	BLOCK_KV_BIND,
	BLOCK_KV_START,
	BLOCK_KV_EXPORT,
	BLOCK_KV_IMPORT,
	BLOCK_KV_SETTLE,
	BLOCK_KV_UNBIND,
	BLOCK_WATCH, /* block_watch.h */
	BLOCK_OPCODES,
};

enum block_status {
	BLOCK_OK,
	BLOCK_SEALED,	 /* go on in the next block */
	BLOCK_CLOSED,	 /* there will be no next block */
	BLOCK_NO_ROOM,	 /* it does not fit now; the block is not sealed */
	BLOCK_FULL,	 /* the bound is reached */
	BLOCK_NO_CREDIT, /* the block does not know how many are before it */
	BLOCK_EMPTY,
	BLOCK_DRAINED,	/* sealed and empty, for ever */
	BLOCK_PARKED,	/* sealed; what is left waits for acknowledgements */
	BLOCK_STALE,	/* another use of the block, or an old sequence */
	BLOCK_DENIED,	/* by the ticket, or without one */
	BLOCK_TOO_LONG, /* the value, or for the buffer */
	BLOCK_BUSY,	/* too many sessions, answers or parked items */
	BLOCK_LATER,	/* the answer has no room; was not executed */
	BLOCK_LOST,	/* the client's memory could not be reached */
	BLOCK_BAD,	/* no correct client sends this */
	BLOCK_MOVED,	/* the key's slot is in another block */
	BLOCK_FROZEN,	/* the key's slot leaves at this moment */
	BLOCK_NO_KEY,
	BLOCK_VERSION,	 /* the key has another version; it is the value */
	BLOCK_NO_NUMBER, /* what is added to is no number */
	BLOCK_REFUSED,	 /* slots that were to come have no room here */
	BLOCK_ELSEWHERE, /* another member of the chain answers this, or soon */
	BLOCK_BROKEN,	 /* the disk that the block lies on has failed */
	BLOCK_STATUSES,
};

/* ---- messages ------------------------------------------------------------ */

struct block_message_wire {
	be16 version;
	be16 count;
	be32 bytes; /* of all of it */
	be32 crc;   /* CRC-32C of all of it, with 0 in this place */
	be32 tag;
	uint8_t session[BLOCK_SESSION_BYTES];
	be64 acked; /* answers up to this one have arrived */
	be64 reply_at;
	be32 reply_key;
	be32 reply_bytes; /* room there */
};
STATIC_ASSERT(sizeof(struct block_message_wire) == 56, "block message");

enum {
	BLOCK_OP_INSIDE = 1, /* flag: the value follows */
};

struct block_op_wire {
	be16 opcode;
	be16 flags;
	be32 handle;
	be64 generation;
	be64 sequence;
	be64 arg;
	be64 address; /* of a value that is not inside, or for one */
	be32 key;
	be32 length;
	be32 index;
	be32 room; /* at the address, for data of an answer */
};
STATIC_ASSERT(sizeof(struct block_op_wire) == 56, "block operation");

struct block_message {
	uint32_t tag;
	unsigned count;
	uint8_t session[BLOCK_SESSION_BYTES];
	uint64_t acked;
	uint64_t reply_at;
	uint32_t reply_key;
	uint32_t reply_bytes;
};

struct block_op {
	enum block_opcode opcode;
	uint32_t handle;
	uint32_t index;
	uint64_t generation;
	uint64_t sequence; /* 0: changes nothing */
	uint64_t arg;
	uint64_t address;
	uint32_t key;
	uint32_t length;
	uint32_t room;
	const uint8_t *value; /* inside; NULL: at `address` */
};

/* -EPROTONOSUPPORT: another version; -EBADMSG: damaged; -EINVAL: no correct
 * client sends it. Values stay where they are in `buf`. */
int block_message_parse(const void *buf, size_t len_bytes,
			struct block_message *m,
			struct block_op ops[BLOCK_OPS_MAX]) MUST_CHECK;

/* ---- answers ------------------------------------------------------------- */

struct block_reply_wire {
	be16 version;
	be16 count;
	be32 bytes;
	be32 crc;
	be32 tag;
};
STATIC_ASSERT(sizeof(struct block_reply_wire) == 16, "block reply");

struct block_result_wire {
	be32 status;
	be32 length; /* of the data, inside or brought */
	be64 value;
	be32 flags;
	be32 unused;
};
STATIC_ASSERT(sizeof(struct block_result_wire) == 24, "block result");

struct block_result {
	enum block_status status;
	uint32_t length;
	uint64_t value;
	const uint8_t *data; /* inside; NULL: none, or it was brought */
};

int block_reply_parse(const void *buf, size_t len_bytes, uint32_t *tag,
		      struct block_result results[BLOCK_OPS_MAX],
		      unsigned *count) MUST_CHECK;

/* ---- building both ------------------------------------------------------- */

struct block_writer {
	uint8_t *buf;
	size_t room_bytes;
	size_t used_bytes;
	unsigned count;
};

/* The room is at least that of a header. */
void block_message_begin(struct block_writer *w, void *buf, size_t room_bytes);
/* -ENOSPC: it does not fit. */
int block_message_add(struct block_writer *w,
		      const struct block_op *op) MUST_CHECK;
/* Its length in bytes; the count of `m` is not looked at. */
size_t block_message_end(struct block_writer *w, const struct block_message *m);

void block_reply_begin(struct block_writer *w, void *buf, size_t room_bytes);
/* Whether a result with so many bytes inside still fits. */
bool block_reply_has_room(const struct block_writer *w, size_t data_bytes);
int block_reply_add(struct block_writer *w,
		    const struct block_result *result) MUST_CHECK;
size_t block_reply_end(struct block_writer *w, uint32_t tag);

/* ---- blocks -------------------------------------------------------------- */

enum {
	BLOCK_HEAD_BYTES = 64,
	BLOCK_MAGIC = 0x6171626c, /* "aqbl" */
};

enum block_flag {
	BLOCK_IS_SEALED = 1, /* the end is final */
	BLOCK_IS_LAST = 2,   /* and no block comes after it */
	BLOCK_HAS_START = 4,
};

/* At the block's first byte. A reader takes the flags first, then the end; what
 * lies below the end of a file never changes. */
struct block_head {
	be32 magic;
	be16 version;
	be16 kind;
	be64 generation;
	be32 flags;
	be32 unused;
	be64 end;   /* bytes behind the header */
	be64 start; /* of a file's block in the file, if BLOCK_HAS_START */
	be64 moves; /* how often records of a store's block have moved */
	uint8_t rest[16];
};
STATIC_ASSERT(sizeof(struct block_head) == BLOCK_HEAD_BYTES, "block head");

/* The data of an answer to BLOCK_STAT. */
struct block_stat_wire {
	be64 address; /* where the block can be read */
	be32 key;
	be32 flags;
	be64 size; /* bytes, with the header */
	be64 end;  /* as in the header */
	be64 items;
	be64 parked;
};
STATIC_ASSERT(sizeof(struct block_stat_wire) == 48, "block stat");

const char *block_status_text(enum block_status status);
/* 0 or -errno, as users of the library see it. */
int block_status_errno(enum block_status status);

#endif
