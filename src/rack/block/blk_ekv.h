/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block of a key-value store: records in a heap, found by a hash table and by
 * lists of slots, which lie beside the block.
 *
 *   blk_data()   records, one after the other, up to `tail`; what is deleted or
 *                replaced stays as a dead record until the heap is compacted
 *   blk_data() + room   scratch: a key that was fetched, an answer that is put
 *                together
 *
 * A record whose bytes leave for a client is pinned, and neither moves nor goes
 * until they have left.
 *
 * Moving. The block has the slots from lo up to hi. Some client, the mover,
 * moves slots from one edge of a source to the edge of a target, in batches;
 * any other client can go on where it stopped, at any time, and several may be
 * at it:
 *
 *   BIND at the target     It takes batches of this source only, by a token
 *                          that is new each time.
 *   START at the source    with that token
 *   EXPORT at the source   The next slots are frozen: nobody reads or changes
 *                          them, so a batch is the same whoever asks for it.
 *   IMPORT at the target   decides: when the last part is there the slots are
 *                          the target's, or there is no room and they never
 *                          come with this number
 *   SETTLE at the source   what the target has decided: the slots are gone, or
 *                          they are not frozen any more and the move is over
 *   UNBIND at the target   by who has seen the source without this token after
 *                          it saw the target; the target has decided nothing
 *                          since then
 *
 * A target that is not bound by the token has never had the batch that is
 * frozen: the source may take it back. So each slot has at most one block that
 * serves it, at all times, whatever is repeated, late or left undone. The
 * answers of sessions to changes of these slots go with them.
 */
#ifndef AQ_BLK_EKV_H
#define AQ_BLK_EKV_H

#include "wire/block_kv_wire.h"

/* What comes from a source. */
struct blk_ekv_in {
	uint64_t number, generation; /* of the source; generation 0: none */
	uint32_t token;		     /* of this, or the last one */
	uint64_t batch;		     /* the last one that was decided */
	bool was_refused;	     /* what was decided */
	uint64_t staged;	     /* a batch that comes; 0: none */
	uint32_t have;		     /* parts of it */
	uint32_t lo, hi;	     /* its slots */
};

/* What goes to a target. */
struct blk_ekv_out {
	uint64_t number, generation; /* of the target; generation 0: none */
	uint32_t token;
	bool is_bottom, is_all;
	uint64_t goal_bytes; /* what may be left */
	uint64_t batch;	     /* the last one that was begun */
	bool is_frozen;	     /* it is not settled */
	uint64_t serial;     /* where events of its slots end */
	uint32_t lo, hi;     /* its slots */
};

struct blk_ekv {
	uint32_t lo, hi; /* slots; the same: none */
	uint64_t room;
	uint64_t tail;
	uint64_t live; /* bytes of records that are not dead */
	uint64_t items;
	uint64_t clock; /* the largest version */
	uint64_t moves; /* times that the heap was compacted */
	uint32_t bucket_count;
	uint32_t *bucket; /* first record of each; places begin at 1, 0: none */
	uint32_t *slot;	  /* the same, the youngest first */
	struct blk_ekv_in in;
	struct blk_ekv_out out;
};

/* In the heap; then key and value. */
struct blk_record {
	uint32_t size; /* bytes of all, whole eights */
	uint32_t pins; /* answers that leave from it */
	uint32_t next; /* of its bucket */
	uint32_t slot; /* or BLK_RECORD_DEAD */
	uint32_t slot_next;
	uint32_t slot_prev;
	uint64_t hash;
	struct block_kv_wire head;
};
STATIC_ASSERT(sizeof(struct blk_record) == sizeof(struct block_kv_record_wire),
	      "a batch becomes records where it lies");

enum {
	BLK_RECORD_BYTES = sizeof(struct blk_record),
	BLK_RECORD_OWN = BLK_RECORD_BYTES - sizeof(struct block_kv_wire),
};
#define BLK_RECORD_DEAD UINT32_MAX
/* Of a batch that is not decided yet: in no bucket. */
#define BLK_RECORD_STAGED (UINT32_MAX - 1)

struct blk_block;
struct blk_request;
struct blk_done;
struct blk_answer;

/* ---- blk_ekv_heap.c ------------------------------------------------------ */

uint64_t blk_ekv_own_bytes(uint64_t size_bytes);
int blk_ekv_init(struct blk_block *b, bool is_first) MUST_CHECK;
void blk_ekv_release(struct blk_block *b);

uint8_t *blk_ekv_scratch(const struct blk_block *b);
uint32_t blk_ekv_scratch_bytes(const struct blk_block *b);
static inline uint8_t *blk_record_key(struct blk_record *r)
{
	return (uint8_t *)(r + 1);
}
static inline uint32_t blk_record_key_bytes(const struct blk_record *r)
{
	return be32_get(r->head.key_bytes);
}
static inline uint8_t *blk_record_value(struct blk_record *r)
{
	return blk_record_key(r) + blk_record_key_bytes(r);
}

struct blk_record *blk_record_at(const struct blk_block *b, uint32_t place);
/* Bytes at the heap's end; NULL: there is no room. They are not taken before
 * blk_record_take, and later calls give the same place. */
uint8_t *blk_heap_reserve(struct blk_block *b, uint64_t bytes);
struct blk_record *blk_record_find(const struct blk_block *b, uint64_t hash,
				   const uint8_t *key, uint32_t key_bytes);
/* What lies at the heap's end, with its head, becomes a record: of that slot,
 * or dead, or staged. */
struct blk_record *blk_record_take(struct blk_block *b, uint32_t size,
				   uint32_t slot, uint64_t hash);
void blk_record_link(struct blk_block *b, struct blk_record *r, uint32_t slot);
void blk_record_kill(struct blk_block *b, struct blk_record *r);

/* ---- blk_ekv.c ----------------------------------------------------------- */

/* Whether the block has the slot now; else why not. */
bool blk_ekv_serves(const struct blk_block *b, uint64_t slot,
		    enum block_status *status);

/* ---- blk_ekv_move.c: operators ------------------------------------------- */

uint8_t *blk_ekv_end_place(struct blk_block *b, const struct blk_request *r,
			   struct blk_answer *a);
void blk_ekv_look(struct blk_block *b, const struct blk_request *r,
		  uint32_t session, struct blk_done *done,
		  struct blk_answer *a);
void blk_ekv_bind(struct blk_block *b, const struct blk_request *r,
		  uint32_t session, struct blk_done *done,
		  struct blk_answer *a);
void blk_ekv_start(struct blk_block *b, const struct blk_request *r,
		   uint32_t session, struct blk_done *done,
		   struct blk_answer *a);
/* Whether the request is about the move that is under way: tokens are those of
 * one target, and others have the same. */
bool blk_ekv_is_under_way(const struct blk_block *b);
void blk_ekv_settle(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a);
void blk_ekv_unbind(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a);

/* ---- blk_ekv_batch.c: operators ------------------------------------------ */

void blk_ekv_export(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a);
uint8_t *blk_ekv_import_place(struct blk_block *b, const struct blk_request *r,
			      struct blk_answer *a);
void blk_ekv_import(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a);
/* Records of a batch that will never be whole. */
void blk_ekv_unstage(struct blk_block *b);

#endif
