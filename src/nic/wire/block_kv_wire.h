/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operations on a block of a key-value store carry. Keys lie in slots by
 * their hash; a block has a range of slots, and parts of it move to other
 * blocks at its edges, one batch after the other (block/blk_ekv.h).
 *
 *   GET     arg: slot; value: block_kv_wire and key. Answers with the value,
 *           and its version.
 *   PUT     the same and the value; version: what the key must have, or
 *           BLOCK_KV_ANY; 0: the key must not be there. Answers with its
 *           version.
 *   DELETE  as GET, version as PUT.
 *   ADD     arg: slot and what to do (BLOCK_KV_HOW); value: what is added.
 *           Answers with the number that is there now; to appended bytes, with
 *           their number.
 *   SCAN    arg: slot; value: block_kv_wire and the last key that is known, or
 *           none. Answers with entries, each a block_kv_wire and its key in
 *           whole eights of bytes, in the order of hash and key. The value is
 *           the slot up to which this is all, or BLOCK_KV_MORE.
 *   LOOK    answers with a block_kv_look_wire
 *   BIND    at the target; value: block_kv_end_wire, the source. Answers with a
 *           token.
 *   START   at the source; value: block_kv_end_wire, the target
 *   EXPORT  at the source; arg: the first part that is wanted, and whether
 *           the mover can read the block (BLOCK_KV_LIST); value: the target, as
 *           in START. Answers with a batch, or BLOCK_KV_LISTED and a batch that
 *           has a block_kv_listed_wire instead of each record, or
 *           BLOCK_KV_SINGLE and one record.
 *   IMPORT  at the target; arg: token and number of the batch; value: batch.
 *           Answers with the first part that is still wanted, or BLOCK_KV_DONE.
 *   SETTLE  at the source; arg: number of the batch, and whether the target
 *           has it (BLOCK_KV_HAS); value: as of EXPORT. Answers whether more is
 *           to be moved.
 *   UNBIND  at the target; arg: token and the last batch that it decided
 *
 * A change answers with the thousandths of the block that are in use, as its
 * length.
 */
#ifndef AQ_WIRE_BLOCK_KV_WIRE_H
#define AQ_WIRE_BLOCK_KV_WIRE_H

#include "block_wire.h"

enum {
	BLOCK_KV_SLOT_BITS = 14,
	BLOCK_KV_SLOTS = 1 << BLOCK_KV_SLOT_BITS,
	BLOCK_KV_KEY_MAX = 64 << 10,
	BLOCK_KV_HOW_SHIFT = 16, /* of an argument */
};

#define BLOCK_KV_ANY  UINT64_MAX
#define BLOCK_KV_MORE UINT64_MAX
#define BLOCK_KV_DONE UINT64_MAX
#define BLOCK_KV_HAS  (1ull << 31)
#define BLOCK_KV_LIST (1ull << 32)

/* The value of an answer to EXPORT. */
enum block_kv_given {
	BLOCK_KV_WHOLE,
	BLOCK_KV_SINGLE,
	BLOCK_KV_LISTED,
};

enum block_kv_how {
	BLOCK_KV_SUM,
	BLOCK_KV_MIN,
	BLOCK_KV_MAX,
	BLOCK_KV_APPEND,
	BLOCK_KV_HOWS,
};

struct block_kv_wire {
	be64 version;
	be32 key_bytes;
	be32 value_bytes;
};
STATIC_ASSERT(sizeof(struct block_kv_wire) == 16, "kv head");

/* The other end of a move. */
struct block_kv_end_wire {
	be64 number;
	be64 generation;
	be32 token;	/* of a target: what BIND answered */
	be16 is_bottom; /* the lowest slots leave, else the highest */
	be16 is_all;	/* all slots leave, else half of the bytes */
};
STATIC_ASSERT(sizeof(struct block_kv_end_wire) == 24, "kv end");

struct block_kv_look_wire {
	be32 lo, hi;		   /* the slots that it has: from, up to */
	be32 frozen_lo, frozen_hi; /* of them, those that leave now */
	be64 used;
	be64 room; /* bytes of records, used or not */
	be64 items;
	be64 decided;		       /* the last batch that came */
	struct block_kv_end_wire from; /* generation 0: none */
	struct block_kv_end_wire to;
};
STATIC_ASSERT(sizeof(struct block_kv_look_wire) == 96, "kv look");

/* Slots with all that is in them. Part 0 are the answers of sessions, each
 * record is one more. */
struct block_kv_batch_wire {
	be64 room[4]; /* for the target; of a list: the address of the block's
		       * first byte, as BLOCK_STAT says it, and `moves` */
	be32 lo, hi;
	be32 first; /* part */
	be32 parts; /* of the whole batch */
	be64 clock; /* no version is larger */
	be32 answers;
	be32 records;
	be64 number; /* of the batch */
	be64 serial; /* the source's entries before it are older than all that
		      * the target will have of these slots (block_watch.h) */
};
STATIC_ASSERT(sizeof(struct block_kv_batch_wire) == 80, "kv batch");

struct block_kv_answer_wire {
	uint8_t session[BLOCK_SESSION_BYTES];
	be64 acked;
	be64 sequence;
	be64 value;
	be32 slot;
	be32 unused;
};
STATIC_ASSERT(sizeof(struct block_kv_answer_wire) == 48, "kv answer");

/* Then key and value, in whole eights of bytes. */
struct block_kv_record_wire {
	uint8_t room[32]; /* for the target */
	struct block_kv_wire head;
};
STATIC_ASSERT(sizeof(struct block_kv_record_wire) == 48, "kv record");

/* Where a record lies that moves. It is there as long as the header's `moves`
 * is what the list says, which is read after the record; its first
 * BLOCK_KV_OWN_BYTES are the source's and change. */
struct block_kv_listed_wire {
	be32 at8;  /* from the block's first byte, in eights of bytes */
	be32 size; /* bytes */
};
STATIC_ASSERT(sizeof(struct block_kv_listed_wire) == 8, "kv listed");

enum {
	BLOCK_KV_OWN_BYTES = sizeof(struct block_kv_record_wire) -
			     sizeof(struct block_kv_wire),
	BLOCK_KV_LIST_MAX = 128 << 10, /* bytes of a batch that is listed */
};

/* Which slot a key is in, and its place in the order of scans. */
uint64_t block_kv_hash(const void *key, size_t key_bytes);

static inline uint32_t block_kv_slot(uint64_t hash)
{
	return (uint32_t)(hash >> (64 - BLOCK_KV_SLOT_BITS));
}

/* The longest key of blocks of that size. */
uint32_t block_kv_key_max(uint64_t block_bytes);
/* The longest value with a key of that length. */
uint64_t block_kv_value_max(uint64_t block_bytes, uint64_t key_bytes);
/* Bytes of a block that hold records; the rest is for its own work. */
uint64_t block_kv_room(uint64_t block_bytes);

#endif
