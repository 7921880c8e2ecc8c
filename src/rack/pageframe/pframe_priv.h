/* SPDX-License-Identifier: Apache-2.0 */
/* What this room's files share. */
#ifndef AQ_PFRAME_PRIV_H
#define AQ_PFRAME_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include <aquifer/aqdv.h>

#include "base/list.h"
#include "pframe_chain.h"

enum {
	PFRAME_HOLES_MAX = 4096,
	PFRAME_PLACE_BYTES = 8,
};

/*
 * Each word that chains count up has a cache line of its own. It holds the
 * address of a place: the queue's alignment is its size, so adding to the low
 * bits alone wraps round.
 */
struct pframe_queue {
	_Atomic uint64_t head CACHE_ALIGNED; /* next place to take from */
	_Atomic uint64_t tail CACHE_ALIGNED; /* next place to put to */
};

struct pframe_pool {
	uint32_t pframe_bytes;
	bool is_pinned; /* by an RNIC: memory stays where it is */
	bool is_bound;	/* to NUMA node `node` */
	uint32_t node;
	uint64_t max; /* frames that there are addresses for */
	uint8_t *pframes;
	uint64_t pframes_bytes;
	struct pframe_queue *queue; /* a page, and the places behind it */
	uint8_t *queue_map;
	uint64_t queue_map_bytes;
	/* Addresses of page frames, big-endian; 0: none. */
	_Atomic uint64_t *places;
	uint64_t places_bytes; /* a power of two */

	pthread_mutex_t lock; /* the holes, and all that follows */
	/* Page frames in circulation (queue, tables, hands), and how many of
	 * them are to be withdrawn when they are free. Read without the
	 * lock. */
	_Atomic uint64_t count, owed;
	uint64_t made;	 /* frames ever made */
	uint64_t *spare; /* frames that were withdrawn */
	uint64_t spare_count;
	uint64_t spare_bytes;
	uint64_t page_bytes; /* of the machine */
	uint16_t *live; /* page frames in circulation that begin in a page */
	uint64_t live_bytes;
	unsigned hole_count;
	uint64_t hole[PFRAME_HOLES_MAX];
};

struct pframe_space {
	struct pframe_pool *pool;
	struct ibv_pd *pd;
	uint64_t entries;
	uint64_t budget;
	uint32_t depth;
	bool is_pieces;
	bool is_sparse;
	/* Page frames that the processor took minus page frames that it gave
	 * back, some of which chains may have taken. */
	int64_t used;
	uint8_t *sparse; /* the client's own memory, or NULL */
	struct ibv_mr *sparse_mr;
	/* Addresses of page frames, big-endian; 0: none. */
	_Atomic uint64_t *table;
	uint64_t table_bytes;
	/* Only where the processor answers; under the server's lock: */
	struct pframe_server *server;
	uint32_t guests;
	struct ibv_mr **piece; /* the keys given out, by index */
	uint64_t piece_bytes;
	struct ibv_mr **kept; /* only where keys_stay is planted */
	unsigned kept_count;
	/* Answers of all guests that are read from page frames and not yet
	 * acknowledged, by the phase in which they began. Page frames that
	 * leave wait for the answers of the other phase; see pframe_leave.c. */
	uint32_t loads[2];
	unsigned phase;
	struct list leaving, waiting; /* of struct leaver */

	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	/* For chains that are gone: page frames taken minus page frames given
	 * back, and why the last chain of each kind stopped. */
	int64_t past_used;
	int past_why[PAGE_CHAIN_COUNT];
};

/* ---- the table, by the processor (pframe_space.c) ----------------------- */

/* Takes the page frame out of the table, so that it can no longer be found. 0:
 * there was none. The page frame still counts as used. */
uint64_t pframe_space_take(struct pframe_space *space, uint64_t index);
/* Clears such a page frame and puts it into the queue. */
void pframe_space_give(struct pframe_space *space, uint64_t pframe);
/* The key of a piece ends, if there is one. */
void pframe_space_end_key(struct pframe_space *space, uint64_t index);

/* ---- page frames that are given back (pframe_leave.c) -------------------- */

struct pframe_guest;

/* An answer that is read from a page frame begins; the phase to end it with. */
unsigned pframe_load_begin(struct pframe_space *space);
/* The answer was acknowledged, or its queue pair will never send again. */
void pframe_load_end(struct pframe_space *space, unsigned phase);
enum pframe_leave {
	PFRAME_LEFT,   /* it is in the queue */
	PFRAME_LEAVES, /* pframe_guest_gone_back will be called */
	PFRAME_NONE,   /* there was no page frame */
	PFRAME_STAYS,  /* no memory for the record; nothing happened */
};
/* Takes the page frame out of the table. It goes to the queue when no answer
 * that has begun by now is under way. */
enum pframe_leave pframe_leave(struct pframe_space *space, uint64_t index,
			       struct pframe_guest *guest, uint32_t slot);
/* This guest gets no more answers; its page frames still leave. */
void pframe_leave_forget(struct pframe_space *space,
			 const struct pframe_guest *guest);
/* Called by pframe_leave.c when a page frame that waited is in the queue. */
void pframe_guest_gone_back(struct pframe_guest *guest, uint32_t slot);

/* ---- memory of a client's own (pframe_sparse.c) ------------------------- */

int pframe_sparse_create(struct pframe_space *space) MUST_CHECK;
void pframe_sparse_destroy(struct pframe_space *space);
uint64_t pframe_sparse_at(const struct pframe_space *space, uint64_t index);
/* The page's memory goes back to the machine. */
void pframe_sparse_drop(const struct pframe_space *space, uint64_t index);
/* The page frame now counts for such a page; its own memory is not needed. */
void pframe_sparse_take(const struct pframe_space *space, uint64_t pframe);

/* ---- chains (pframe_chain.c, pframe_program.c) -------------------------- */

enum {
	CHAIN_WORK_BLOCKS_MAX = 80, /* of one slot, with nothing optimised */
	CHAIN_FRONT_BLOCKS = PAGE_CHAIN_FRONT_BLOCKS,
	CHAIN_RECV_SEGS = 4,
	CHAIN_RECV_SEGS_MAX = 8, /* with indices of the client */
};

/* Words of a slot; only the first is used by chains with all optimisations. */
enum chain_word {
	CHAIN_WORD_SINK,    /* what nobody reads */
	CHAIN_WORD_OPCODES, /* of the two requests that the decision is about */
	CHAIN_WORD_ZERO,    /* and the next: NOPs instead of them */
	CHAIN_WORD_WAIT = CHAIN_WORD_ZERO + 2, /* indices, counted up here */
	CHAIN_WORD_ENABLE,
	CHAIN_WORD_RECEIVE,
	CHAIN_WORD_INDEX,   /* the one that is to be turned */
	CHAIN_WORD_ADDRESS, /* of the entry, from its distance */
	CHAIN_WORDS = 15,
};

/* What the NIC and its programs see: one piece of registered memory. */
struct chain_slot {
	_Atomic uint64_t place; /* of the queue, in host order */
	uint64_t word[CHAIN_WORDS];
};
STATIC_ASSERT(sizeof(struct chain_slot) == 128, "chain slot");

/* Where the table begins for a chain that computes addresses. Sums have no more
 * than 32 bits, so the upper half of the word is always 0. */
#define CHAIN_TABLE_BASE (1ull << 20)
/* What the decision looks at of an entry: its bits from here on, for which
 * there is room in an opcode. No page frame begins below. */
#define CHAIN_PFRAME_MIN (1ull << 16)

struct pframe_chain {
	struct pframe_space *space;
	enum page_chain kind;
	unsigned without; /* enum page_without */
	uint32_t slots;	  /* messages under way; a power of two */
	uint32_t ring;	  /* slots that there are; see page_chain_turn */
	uint32_t recv_segs;
	uint32_t blocks;  /* of the work queue per slot */
	uint32_t counted; /* completions per slot */
	uint32_t lookup;  /* completions before the entry is looked up */
	/* Unmapped store and invalidate: completions before the queue's word is
	 * counted up, and before its place is cleared or filled; the block
	 * whose remote address is the page frame. */
	uint32_t take;
	uint32_t taken;
	uint32_t take_block; /* the request that counts the word up */
	uint32_t pframe_block;
	uint32_t settled; /* completions after which the table has changed */
	uint64_t done;	  /* completions, continued to 64 bits */

	uint8_t *memory;
	size_t memory_bytes;
	union aqdv_wqe *work; /* blocks * slots */
	union aqdv_wqe *front;
	struct aqdv_wqe_data *recv;
	struct chain_slot *slot;
	uint8_t *pages; /* where pages to be stored arrive */

	struct ibv_mr *memory_mr;
	struct ibv_mr *table_mr;
	struct ibv_mr *pframes_mr;
	struct ibv_mr *queue_mr;
	struct ibv_mr *zero_mr;

	struct ibv_cq *trigger_cq; /* messages */
	struct ibv_cq *done_cq;	   /* steps of the work queue */
	struct ibv_cq *front_cq;   /* answers that the client did not take */
	uint32_t trigger;	   /* its number */
	uint32_t done_number;
	uint32_t front_number;
	struct ibv_qp *front_qp; /* to the client */
	struct ibv_qp *work_qp;	 /* the loop: from here ... */
	struct ibv_qp *back_qp;	 /* ... to here */
};

/* Sets blocks and counted. */
void chain_program_size(struct pframe_chain *c);
/* Writes all requests and receives; queues and keys exist. */
void chain_program_write(struct pframe_chain *c);
/* Which page frame slot `i` holds after `steps` completions; *place is the
 * place of the queue that it has taken, or 0. */
void chain_program_left(const struct pframe_chain *c, uint32_t slot,
			uint32_t steps, uint64_t *pframe, uint64_t *place);
/* Completions of its work queue so far. */
uint64_t chain_steps(struct pframe_chain *c);
/* Connects work_qp and back_qp (pframe_loop.c). */
int chain_close_loop(struct pframe_chain *c) MUST_CHECK;
/* NULL is allowed. */
bool chain_qp_is_broken(struct ibv_qp *qp);

/* Numbers in memory that work requests copy are big-endian. */
static inline uint64_t pframe_be64(uint64_t v)
{
	return BYTES_BE(64, v);
}

#endif
