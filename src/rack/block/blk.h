/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block and the operations on it, as functions of the block and a request: no
 * I/O, no clock, no thread, so that nodes and the simulator have them in
 * common.
 *
 * A kind of object is one table of operators (blk_file.c, blk_queue.c). An
 * operation has two steps, between which the value may be fetched from the
 * client's memory: blk_begin finds out whether it was done before, and where
 * its value goes; blk_finish executes it. Nothing else may happen to the block
 * between them, and blk_begin changes nothing that a reader could see, except
 * that it seals a block in which a record has no room.
 *
 * A change has a session and a sequence number. The block keeps the answers to
 * the last BLK_ANSWERS changes of each session until they are acknowledged; who
 * repeats a change gets its first answer. A change that was refused is not
 * kept: it has done nothing.
 */
#ifndef AQ_BLK_H
#define AQ_BLK_H

#include "blk_ekv.h"
#include "blk_watch.h"
#include "wire/block_wire.h"

enum {
	BLK_ANSWERS = 64,
	BLK_SESSIONS_MIN = 16,
	BLK_SESSIONS_MAX = 1024,
	BLK_PARKED_MAX = 1024, /* items of a queue's block, at most */
};

struct blk_image; /* blk_image.h */

/* The answer to a change that was executed. */
struct blk_done {
	uint64_t sequence;
	uint64_t value;
	uint64_t item; /* of a get: where it lies; of a key: its slot */
	uint32_t length;
	bool has_item; /* kept for this answer alone */
	bool is_back;  /* it was, and somebody else gets it */
};

struct blk_session {
	uint8_t id[BLOCK_SESSION_BYTES];
	bool is_used;
	uint64_t last; /* sequence of its last change */
	uint64_t acked;
	/* It came with slots of another block, and its client was not here
	 * since this time; 0: it was. */
	uint64_t came_ns;
	bool has_come;
	bool ends;	/* as soon as the block's chain can say so to all */
	bool returns;	/* the same, of its items alone */
	uint32_t first; /* of done[], a ring */
	uint32_t count;
	struct blk_done done[BLK_ANSWERS];
};

/* An item that waits for its acknowledgement. */
struct blk_parked {
	uint64_t item;
	uint32_t serial;
	uint32_t session; /* its place in the table */
	bool is_used;
};

struct blk_queue {
	uint64_t head;	 /* places count up for ever; modulo the room */
	uint64_t tail;	 /* they are in the block's memory */
	uint64_t ready;	 /* nothing before it can be got */
	uint64_t items;	 /* ready or parked */
	uint64_t bound;	 /* 0: none */
	uint64_t before; /* items in earlier blocks, at most; UINT64_MAX: not
			  * known */
	uint32_t parked_count;
	uint32_t parked_room;
	uint32_t parked_at; /* where to look for a free place next */
	uint32_t serial;
	struct blk_parked *parked;
};

struct blk_file {
	uint64_t end;
	uint64_t start;
	bool has_start;
};

struct blk_block {
	const struct blk_kind *kind;
	uint8_t *mem; /* size_bytes; begins with a block_head */
	uint64_t size_bytes;
	uint64_t generation; /* of a member of a chain: that of the chain */
	uint32_t flags;	     /* enum block_flag */
	uint32_t session_room;
	uint32_t session_count;
	struct blk_session *session;
	struct blk_watch watch;
	union {
		struct blk_file file;
		struct blk_queue queue;
		struct blk_ekv ekv;
	};
};

struct blk_request {
	const uint8_t *session; /* BLOCK_SESSION_BYTES */
	uint64_t acked;
	enum block_opcode opcode;
	uint64_t sequence;
	uint64_t arg;
	uint32_t length;
	const uint8_t *value; /* NULL: it is fetched */
	/* For an answer with data: how much fits inside, and how much the
	 * client has room for elsewhere. */
	uint32_t inside_room;
	uint32_t buffer_bytes;
};

struct blk_answer {
	enum block_status status;
	uint32_t length;
	uint64_t value;
	const uint8_t *data; /* in the block; NULL: none */
	bool is_inside;	     /* it was put together, and cannot stay */
	uint32_t *pins;	     /* counts the times that the data leaves */
};

/* What the operators of a kind have. */
struct blk_operator {
	bool is_change;
	/* Where the value goes, or NULL with a status; NULL: it has none. */
	uint8_t *(*place)(struct blk_block *b, const struct blk_request *r,
			  struct blk_answer *a);
	/* `done` is filled in for a change. */
	void (*run)(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a);
};

struct blk_kind {
	enum block_kind id;
	const char *name;
	/* Changes of a session may come in any order, up to BLK_ANSWERS
	 * apart. */
	bool is_unordered;
	struct blk_operator op[BLOCK_OPCODES];
	/* The data of an answer that is given again; -> false: it is gone. */
	bool (*again)(struct blk_block *b, const struct blk_request *r,
		      const struct blk_done *done, struct blk_answer *a);
	/* An answer is not needed any more. */
	void (*forget)(struct blk_block *b, const struct blk_done *done);
	/* What a session has taken and not acknowledged is for others. */
	void (*leave)(struct blk_block *b, uint32_t session);
	void (*stat)(const struct blk_block *b, struct block_stat_wire *out);
	/* For images (blk_image.h); NULL: there are none of this kind. `load`
	 * fills a block of which nothing was used yet. */
	int (*save)(const struct blk_block *b, struct blk_image *out,
		    uint32_t *items);
	int (*load)(struct blk_block *b, const struct blk_image *image,
		    uint64_t start, uint32_t items);
	bool (*is_drained)(const struct blk_block *b);
};

extern const struct blk_kind blk_kind_file;
extern const struct blk_kind blk_kind_queue;
extern const struct blk_kind blk_kind_ekv;

/* NULL: there is no such kind. */
const struct blk_kind *blk_kind_of(unsigned id);

struct blk_options {
	enum block_kind kind;
	uint64_t size_bytes;
	uint64_t generation;
	uint64_t bound; /* of a queue */
	bool is_first;	/* of its object */
	/* The same for all members of a chain; 0: the block has none, and its
	 * generation is all there is. */
	uint64_t identity;
};

/* Memory beside the block's own: what a node charges for it. */
uint64_t blk_own_bytes(enum block_kind kind, uint64_t size_bytes);
/* `mem` has size_bytes zeros, and stays the caller's. -ENOMEM. */
int blk_init(struct blk_block *b, const struct blk_options *o,
	     void *mem) MUST_CHECK;
void blk_release(struct blk_block *b);

enum blk_prepared {
	BLK_ANSWERED, /* nothing is left to do */
	BLK_READY,    /* for blk_finish, when the value is at its place */
};
/* The first of the two steps; *place is where the value goes, or NULL: the
 * operation has none. Its value in the request is not looked at. */
enum blk_prepared blk_prepare(struct blk_block *b, const struct blk_request *r,
			      struct blk_answer *a, uint8_t **place) MUST_CHECK;
/* NULL: the answer is there. Else the value, which the request does not have,
 * goes there, and blk_finish is called with the same request; or never, and
 * nothing has happened. */
uint8_t *blk_begin(struct blk_block *b, const struct blk_request *r,
		   struct blk_answer *a) MUST_CHECK;
void blk_finish(struct blk_block *b, const struct blk_request *r,
		struct blk_answer *a);
/* All that the session has here ends, if it has anything. */
void blk_leave(struct blk_block *b, const uint8_t session[BLOCK_SESSION_BYTES]);
/* Its client is away: items that it has are for others. What it has changed is
 * still known, for when it comes back. */
void blk_give_back(struct blk_block *b,
		   const uint8_t session[BLOCK_SESSION_BYTES]);

/* Sealed, and nothing of it is needed any more. */
bool blk_is_drained(const struct blk_block *b);
uint64_t blk_used_bytes(const struct blk_block *b);

/* ---- for the kinds ------------------------------------------------------- */

static inline uint8_t *blk_data(const struct blk_block *b)
{
	return b->mem + BLOCK_HEAD_BYTES;
}

static inline uint64_t blk_room(const struct blk_block *b)
{
	return b->size_bytes - BLOCK_HEAD_BYTES;
}

/* No more is added; with an argument, for good. False: it is answered, because
 * there is a block behind it. */
bool blk_seal(struct blk_block *b, const struct blk_request *r,
	      struct blk_answer *a);
/* Sets the flags, and tells who watches. */
void blk_note_sealed(struct blk_block *b, bool is_last);
/* What who adds to a sealed block is told. */
enum block_status blk_seal_status(const struct blk_block *b);
/* How data of an answer gets to the client, if it does. */
enum block_status blk_way(const struct blk_request *r, uint32_t length);
/* Set flags, the end and the start where readers see them. */
void blk_head_write(struct blk_block *b, uint64_t end, uint64_t start);
/* Records will move: who reads them finds out. */
void blk_head_moves(struct blk_block *b, uint64_t moves);

/* ---- blk_session.c ------------------------------------------------------- */

uint32_t blk_session_room(uint64_t size_bytes);
/* The session's place; -EAGAIN: there is no room for one more. */
int blk_session_find(struct blk_block *b, const uint8_t id[BLOCK_SESSION_BYTES],
		     bool make, uint32_t *out) MUST_CHECK;
/* The client has the answers up to that one. */
void blk_session_acked(struct blk_block *b, struct blk_session *s,
		       uint64_t acked);
const struct blk_done *blk_session_done(const struct blk_session *s,
					uint64_t sequence);
void blk_session_keep(struct blk_session *s, const struct blk_done *done);
/* The same where changes come in any order; the oldest may have to go, which
 * its client has acknowledged then. */
void blk_session_keep_any(struct blk_session *s, const struct blk_done *done);

#endif
