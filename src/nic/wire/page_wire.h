/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of pages sends to a memory node, and the answers.
 *
 * Two-sided: a page_request, followed by the page if it is stored. The answer
 * is an immediate value, with the page written before it where one was asked
 * for. In the modes that allocate, the answer is a page_piece written to `buf`.
 *
 * Chains: one message per call, cut up by the receive so that each part lands
 * in the work request that needs it. The answer is an immediate value, too. A
 * store is the page alone, so that it fits into one packet; its immediate value
 * says which entry, and is the answer's as well. Answers come in order.
 *
 * Every number is big-endian.
 */
#ifndef AQ_WIRE_PAGE_WIRE_H
#define AQ_WIRE_PAGE_WIRE_H

#include "base/base.h"
#include "base/bytes.h"

/* The version of all that follows. A receive cuts messages up without looking
 * at them, so ends of different versions are refused when they connect. */
enum {
	PAGE_WIRE_VERSION = 3,
};

/*
 * The unmapped store without ODRP's optimisations, to measure them. Where the
 * chain decides by itself, all stores go to it. Where it computes the entry's
 * address, the immediate value is the entry's distance in host order.
 */
enum page_without {
	PAGE_WITHOUT_DECISION = 1u << 0, /* the chain checks what is mapped */
	PAGE_WITHOUT_ADDRESS = 1u << 1,	 /* it computes the entry's address */
	PAGE_WITHOUT_RECYCLE = 1u << 2,	 /* it counts its indices up itself */
	PAGE_WITHOUT_SWAP = 1u << 3,	 /* it turns numbers byte by byte */
	PAGE_WITHOUT_ALL = 0xf,
	/*
	 * No optimisation, and beside none of the above: all chains do without
	 * what only our NIC has. The client counts its messages and sends the
	 * indices that their slot's requests need, as ODRP's does; WAIT has no
	 * base, and a store its entry in the text. A client that lies can
	 * change the arguments of chains of its own that run, so memory nodes
	 * do not offer it: it is for simulations and tests.
	 */
	PAGE_CLIENT_INDICES = 1u << 4,
};

enum page_wire_kind {
	PAGE_WIRE_LOAD = 1,
	PAGE_WIRE_STORE,
	PAGE_WIRE_INVALIDATE,
	PAGE_WIRE_ALLOCATE, /* a piece of memory with a key of its own */
	PAGE_WIRE_FREE,	    /* by its number, in `index` */
};

struct page_request {
	be32 kind;
	be32 tag;
	be64 index;
	be64 buf; /* the client's address for the answer */
	be32 rkey;
	be32 length; /* in bytes; of ALLOCATE, in pieces from `index` on */
};
STATIC_ASSERT(sizeof(struct page_request) == 32, "page request");

enum {
	PAGE_WIRE_RUN_MAX = 256, /* a larger count is taken for this one */
};

/* Where there is a piece for each page, as many of those that were asked for as
 * there is room for, at least one. They lie one behind the other. */
struct page_piece {
	be64 addr; /* of the first one */
	be32 rkey;
	be32 count;
};
STATIC_ASSERT(sizeof(struct page_piece) == 16, "page piece");

/* The immediate value: the request's tag, and how it ended. */
enum page_wire_end {
	PAGE_WIRE_OK,
	PAGE_WIRE_NO_SPACE,
	PAGE_WIRE_NO_BUDGET,
	PAGE_WIRE_NO_DATA, /* the page is not there */
	PAGE_WIRE_BAD,	   /* a request that no correct client sends */
};

enum {
	PAGE_WIRE_TAG_BITS = 24,
};

static inline uint32_t page_wire_imm(uint32_t tag, enum page_wire_end end)
{
	return (tag & ((1u << PAGE_WIRE_TAG_BITS) - 1)) |
	       (uint32_t)end << PAGE_WIRE_TAG_BITS;
}

/* ---- chains ------------------------------------------------------------- */

enum page_chain {
	PAGE_CHAIN_LOAD,
	PAGE_CHAIN_MAPPED,
	PAGE_CHAIN_UNMAPPED,
	PAGE_CHAIN_INVALIDATE,
	PAGE_CHAIN_COUNT,
};

/* The call of the load chain. All members but the entry have the layout of the
 * answering request, so that they land there in one piece. */
struct page_chain_load {
	be64 entry; /* its place in the table, in bytes */
	be32 imm;
	be32 buf_high; /* where the page goes */
	be32 buf_low;
	be32 rkey;
};
STATIC_ASSERT(sizeof(struct page_chain_load) == 24, "load call");

static inline struct page_chain_load page_chain_load_of(uint64_t entry,
							uint32_t imm,
							uint64_t buf,
							uint32_t rkey)
{
	return (struct page_chain_load){
		.entry = be64_put(entry),
		.imm = be32_put(imm),
		.buf_high = be32_put((uint32_t)(buf >> 32)),
		.buf_low = be32_put((uint32_t)buf),
		.rkey = be32_put(rkey),
	};
}

/* The call of the invalidate chain. */
struct page_chain_call {
	be64 entry;
	be32 imm;
};
STATIC_ASSERT(sizeof(struct page_chain_call) == 12, "chain call");

enum {
	PAGE_CHAIN_ENTRY_BYTES = 8,
	PAGE_CHAIN_FRONT_BLOCKS = 2, /* of an answering slot */
};

/* ---- with PAGE_CLIENT_INDICES ------------------------------------------- */

/*
 * What the requests of message number i (from 0 on, of one chain) need where
 * `slots` may be under way. The rings have twice as many slots, so the WAIT
 * that gets its next index with this message is the one half a ring ahead: it
 * was executed before this slot could receive again, and waits for message i +
 * slots next.
 */
struct page_chain_turn {
	be32 enable;  /* blocks of the answering queue */
	be32 receive; /* receives */
	be32 wait;    /* messages */
};

static inline struct page_chain_turn page_chain_turn_of(uint32_t i,
							uint32_t slots)
{
	return (struct page_chain_turn){
		.enable = be32_put((i + 1) * PAGE_CHAIN_FRONT_BLOCKS),
		.receive = be32_put(i + slots + 1),
		.wait = be32_put(i + slots + 1),
	};
}

struct page_chain_turn_load {
	struct page_chain_load call;
	struct page_chain_turn turn;
};
STATIC_ASSERT(sizeof(struct page_chain_turn_load) == 36, "load and turn");

/* A store has the page behind the turn; an invalidate how many loads and mapped
 * stores the client has sent before it, whose answers it waits for. */
struct page_chain_turn_call {
	struct page_chain_call call;
	struct page_chain_turn turn;
	be32 loads;
	be32 stores;
};
STATIC_ASSERT(sizeof(struct page_chain_turn_call) == 32, "call and turn");

enum {
	PAGE_CHAIN_TURN_STORE_BYTES =
		offsetof(struct page_chain_turn_call, loads),
};

#endif
