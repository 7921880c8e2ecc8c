/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key-value stores from the client's side. Which slots a block has is known by
 * the blocks alone; a client keeps what they said, and asks again when one
 * answers that a slot is not there. An operation keeps its sequence number
 * wherever it goes, so it happens once.
 */
#ifndef AQ_EL_EKV_PRIV_H
#define AQ_EL_EKV_PRIV_H

#include "el_priv.h"
#include "wire/block_kv_wire.h"

enum {
	EL_EKV_HIGH = 950,    /* thousandths of a block: it is split */
	EL_EKV_LOW = 50,      /* it is merged with a neighbour */
	EL_EKV_MERGED = 500,  /* the two together have at most */
	EL_EKV_HELP = 10,     /* tries until the mover is taken for dead */
	EL_EKV_REST_MS = 100, /* after a try to move something */
};

/* What a block said of itself. */
struct el_look {
	uint64_t number, generation;
	uint32_t lo, hi;
	uint64_t used, room, items, decided;
	struct {
		uint64_t number, generation; /* 0: none */
		uint32_t token;
	} from, to;
};

struct el_window;

struct aq_ekv {
	struct el_object object;
	struct el_look *look; /* of blocks that have slots */
	unsigned look_count;
	uint64_t acked;
	uint64_t rest_ns;	  /* nothing is moved before */
	struct el_window *window; /* of el_ekv_many.c; NULL: not used yet */
};

/* A request about a key, and where its answer goes. */
struct el_kv_ask {
	enum block_opcode opcode;
	uint32_t slot;
	uint64_t how;
	uint64_t version;
	const void *key;
	size_t key_bytes;
	const void *value;
	size_t value_bytes;
	void *out; /* for data of the answer */
	size_t room_bytes;
	uint64_t sequence; /* 0: no change */
};

/* ---- el_ekv.c ------------------------------------------------------------ */

/* Whether key and value may be as they are; finds the slot. */
int el_kv_check(struct aq_ekv *kv, struct el_kv_ask *ask) MUST_CHECK;
/* The words of a status that is an error for the caller. */
int el_kv_error(const struct aq_ekv *kv, const struct el_kv_ask *ask,
		enum block_status status);
/* Blocks that are full or nearly empty; what cannot be done now is done by who
 * comes next. */
void el_kv_look_after(struct aq_ekv *kv, uint32_t slot, uint32_t use,
		      uint64_t deadline_ns);

/* ---- el_ekv_route.c ------------------------------------------------------ */

/* Asks the block that has the slot, wherever that is, until there is an answer
 * that is the caller's. Data of the result is in `out`. */
int el_kv_ask(struct aq_ekv *kv, struct el_kv_ask *ask, struct block_result *r,
	      uint64_t deadline_ns) MUST_CHECK;
/* The block that has the slot, as far as is known; NULL: not known. */
const struct el_look *el_kv_find_slot(const struct aq_ekv *kv, uint32_t slot);
/* *number is the block's; -ENODATA: the store has no block, and needs none. */
int el_kv_route(struct aq_ekv *kv, const struct el_kv_ask *ask,
		uint64_t *number, unsigned *tries,
		uint64_t deadline_ns) MUST_CHECK;
/* How a request goes inside a message: how long it is, and the bytes. */
size_t el_kv_bytes(const struct el_kv_ask *ask);
void el_kv_fill(const struct el_kv_ask *ask, uint8_t *out);
/* Whether an answer is the caller's; else another way may help. */
bool el_kv_is_answer(enum block_status status);
/* Asks one block what it has. -EAGAIN: it is not there yet; -ESTALE: nor will
 * it be. */
int el_kv_look(struct aq_ekv *kv, uint64_t number, struct el_look *out,
	       uint64_t deadline_ns) MUST_CHECK;
/* Asks all blocks of the newest map. */
int el_kv_look_all(struct aq_ekv *kv, uint64_t deadline_ns) MUST_CHECK;

/* ---- el_ekv_list.c ------------------------------------------------------- */

/* A block that slots leave; its number is filled in, the rest 0. */
struct el_source {
	uint64_t number;
	uint64_t address;
	uint32_t key;
};
/* Whether its records can be read by loads, now. */
bool el_source_is_mapped(struct el_object *o, struct el_source *s,
			 uint64_t deadline_ns);
/* Puts a batch together of which the answer has a list, in EL_STAGING_BYTES.
 * -EAGAIN: records have moved, or cannot be read any more. */
int el_source_load(struct el_object *o, const struct el_source *s,
		   const struct block_result *r, uint8_t *out,
		   uint32_t *length) MUST_CHECK;

/* ---- el_ekv_move.c ------------------------------------------------------- */

/* Gives half of what a block has to another one. 0 also where somebody else is
 * at it; the caller tries again. */
int el_kv_split(struct aq_ekv *kv, uint64_t number,
		uint64_t deadline_ns) MUST_CHECK;
/* Goes on with a move of which the block is a part, if there is one. */
int el_kv_help(struct aq_ekv *kv, uint64_t number,
	       uint64_t deadline_ns) MUST_CHECK;
/* Gives all that a block has to a neighbour with room, and gives it back. */
int el_kv_merge(struct aq_ekv *kv, uint64_t number,
		uint64_t deadline_ns) MUST_CHECK;

#endif
