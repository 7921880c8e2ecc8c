/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file into which the pairs of a table or an index are dumped; parsing and
 * building only, without I/O and allocation.
 *
 *	file head	magic, version
 *	block		head of the dump: kind, name, sizes
 *	block ...	pairs
 *	block		end: how many pairs, and bytes of them
 *
 * A block is a struct dump_block_head and its payload; the CRC covers both, and
 * blocks are numbered, so one that is missing, doubled or out of place is
 * noticed, as is a file that breaks off: it has no end. A pair is a struct
 * dump_pair_head, the key and the value, without padding, whole in one block.
 */
#ifndef AQ_DUMP_H
#define AQ_DUMP_H

#include "base.h"
#include "bytes.h"

#define DUMP_MAGIC "\211AQDUMP\n"

enum {
	DUMP_VERSION = 1,
	DUMP_NAME_BYTES = 32, /* with the zero at its end */
	DUMP_SIZES = 16,
	DUMP_KEY_MAX = 250,
	DUMP_VALUE_MAX = 64 << 20,
	/* A block of pairs is not begun anew before it has so many bytes, and
	 * has room for any pair. */
	DUMP_BLOCK_BYTES = 256 << 10,
	DUMP_PAYLOAD_MAX = DUMP_VALUE_MAX + 4096,
};

enum dump_kind {
	DUMP_TABLE = 1,
	DUMP_TREE,
	DUMP_VERSIONS,
};

enum dump_block_type {
	DUMP_BLOCK_HEAD = 1,
	DUMP_BLOCK_PAIRS,
	DUMP_BLOCK_END,
};

/* ---- layout ------------------------------------------------------------- */

struct dump_file_head {
	uint8_t magic[8];
	le32 version;
	le32 zero;
};

struct dump_block_head {
	le32 type; /* enum dump_block_type */
	le32 payload_bytes;
	le64 number; /* the first block is 0 */
	le64 crc;    /* crc64 of the fields above and the payload */
};

struct dump_head_payload {
	le32 kind; /* enum dump_kind */
	le32 zero;
	le64 made_ms; /* since 1970 */
	le64 size[DUMP_SIZES];
	uint8_t name[DUMP_NAME_BYTES];
};

struct dump_pair_head {
	le32 key_bytes;
	le32 value_bytes;
	le64 expire_at_ms; /* since 1970; 0: never */
};

struct dump_end_payload {
	le64 pairs;
	le64 key_bytes;
	le64 value_bytes;
};

STATIC_ASSERT(sizeof(struct dump_file_head) == 16, "dump file head");
STATIC_ASSERT(sizeof(struct dump_block_head) == 24, "dump block head");
STATIC_ASSERT(sizeof(struct dump_head_payload) == 48 + 8 * DUMP_SIZES,
	      "dump head");
STATIC_ASSERT(sizeof(struct dump_pair_head) == 16, "dump pair");
STATIC_ASSERT(sizeof(struct dump_end_payload) == 24, "dump end");

enum {
	DUMP_START_BYTES = sizeof(struct dump_file_head) +
			   sizeof(struct dump_block_head) +
			   sizeof(struct dump_head_payload),
};

/* ---- what is in it ------------------------------------------------------ */

/* What sizes mean depends on the kind; those that are not used are 0. */
struct dump_head {
	enum dump_kind kind;
	uint64_t made_ms;
	uint64_t size[DUMP_SIZES];
	char name[DUMP_NAME_BYTES];
};

struct dump_pair {
	const void *key;
	const void *value;
	uint32_t key_bytes;
	uint32_t value_bytes;
	uint64_t expire_at_ms;
};

struct dump_counts {
	uint64_t pairs;
	uint64_t key_bytes;
	uint64_t value_bytes;
};

/* ---- building ----------------------------------------------------------- */

struct dump_builder {
	uint64_t blocks; /* that are sealed */
	struct dump_counts counts;
	uint8_t *bytes; /* of this block: its head, then pairs; or NULL */
	size_t room_bytes;
	size_t len_bytes;
};

/* The start of a file, as many as DUMP_START_BYTES. */
void dump_start(struct dump_builder *b, const struct dump_head *head,
		uint8_t *to);
/* Begins a block of pairs in `bytes`, which has room for its head at least. */
void dump_block_begin(struct dump_builder *b, uint8_t *bytes,
		      size_t room_bytes);
/* The room that a block of this pair alone needs. */
size_t dump_block_room(size_t key_bytes, size_t value_bytes);
/* False: there is no room for it, so this block must be sealed before. */
bool dump_block_add(struct dump_builder *b,
		    const struct dump_pair *pair) MUST_CHECK;
/* Ends the block of pairs; its bytes, 0 when it has no pair. */
size_t dump_block_seal(struct dump_builder *b) MUST_CHECK;
/* The last block; returns its bytes, which are at most DUMP_START_BYTES. */
size_t dump_end(struct dump_builder *b, uint8_t *to) MUST_CHECK;

/* ---- parsing ------------------------------------------------------------ */

enum dump_state {
	DUMP_AT_START,
	DUMP_AT_BLOCK,	 /* the head of a block comes next */
	DUMP_AT_PAYLOAD, /* its payload */
	DUMP_AT_END,	 /* nothing may come any more */
	DUMP_IS_BAD,
};

/* Zero-initialise it. */
struct dump_parser {
	enum dump_state state;
	uint64_t offset; /* of what comes next */
	uint64_t blocks;
	struct dump_block_head block;
	struct dump_head head; /* from the first block on */
	struct dump_counts counts;
	/* Pairs of the last payload; they end with the caller's buffer. */
	const uint8_t *pairs;
	size_t pairs_bytes;
	/* What is wrong, and where. */
	const char *why;
	uint64_t bad_at;
};

/* How many bytes the next call of dump_parse must have; 0: the file must end
 * here. At most DUMP_PAYLOAD_MAX. */
size_t dump_need(const struct dump_parser *p);
/* Takes exactly dump_need() bytes. -EBADMSG with p->why and p->bad_at: this is
 * no dump. After a block of pairs, dump_next_pair gives them. */
int dump_parse(struct dump_parser *p, const uint8_t *bytes) MUST_CHECK;
/* The file ended after `got` of the bytes that were needed. -EBADMSG, unless
 * this is the end. */
int dump_parse_eof(struct dump_parser *p, size_t got) MUST_CHECK;
/* False: there are no more in this block. */
bool dump_next_pair(struct dump_parser *p, struct dump_pair *pair);

#endif
