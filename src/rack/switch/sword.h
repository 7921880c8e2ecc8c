/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SwordBox, the part that replaces atomics: the switch puts operations of many
 * clients on words of a region in order and decides their outcome, and the
 * memory only sees plain WRITEs, on one shared connection that keeps the order.
 *
 * What happens to a compare-and-swap with packet number p of a connection:
 *  1. A WRITE of no bytes takes its place on the connection, with the same
 *     packet number. When the server acknowledges it, everything before p was
 *     executed, and p itself counts as executed for ever.
 *  2. The outcome follows from the word's value, which is kept here (or read
 *     over the shared connection first). The new value, or on failure the old
 *     one, goes to the memory as a WRITE on the shared connection.
 *  3. When that is acknowledged the client gets its answer, with the value
 *     before.
 *
 * Why nothing can go wrong:
 *  - Order. All changes to a word are WRITEs of one connection, in the order in
 *    which outcomes were decided; a lost one holds those behind it back.
 *  - Time. An answer follows the effect, so a client that has the answer sees
 *    the effect on every path. READs stay on their own connections.
 *  - Order of one client. Step 1 ends after everything before; what follows an
 *    operation of this kind is refused until its answer was sent, and then
 *    asked for again by a NAK.
 *  - Once. Step 2 follows step 1, and the server executes p once. A switch that
 *    was restarted does not know the connection and lets nothing of it pass, so
 *    nothing is executed twice or taken for executed; its client gets an error
 *    in the end. Until told that the old shared connections are gone the
 *    switch lets nothing pass at all.
 *  - Rights. Servers, regions and connections are declared by the control
 *    plane, which made them; nothing of another connection reaches a declared
 *    server.
 * A connection can also be *moved* as a whole (sword_move.c): then none of its
 * packets reaches the server as they are, and all its READs, WRITEs and atomics
 * take the shared connection.
 * A change of such memory that bypasses the switch breaks this: declare only
 * regions whose grants force every client through it, before they are used.
 */
#ifndef AQ_TOR_SWORD_H
#define AQ_TOR_SWORD_H

#include "conn_table.h"
#include "end_rx.h"
#include "end_tx.h"
#include "tor_program.h"

extern const struct tor_program tor_swordbox;

enum {
	SWORD_SERVERS = 16,
	SWORD_NAME_MAX = 63,
	SWORD_REGIONS = 64,
	SWORD_CONNS = 1024, /* unless told otherwise */
	SWORD_CONNS_MAX = 1 << 16,
	SWORD_WORDS = 4096,
	SWORD_WORDS_MAX = 1 << 20,
	SWORD_WAYS = 4,	     /* places a word may have */
	SWORD_DEPTH = 32,    /* operations remembered per connection */
	SWORD_READS = 8,     /* READs and atomics on the way on one */
	SWORD_BUFFERS = 256, /* WRITEs of moved connections on the way */
	SWORD_MTU = 1024,    /* of a shared connection, unless told otherwise */
	/* Operations are forgotten after this many packets: far more than a
	 * client has under way, and far fewer than it takes numbers to wrap. */
	SWORD_OLD_PSNS = 1 << 22,
};

#define SWORD_CLOSING_NS 20000000ull

#define SWORD_COUNTERS(X)  \
	X(replaced)        \
	X(failed)          \
	X(writes)          \
	X(answered)        \
	X(repeated)        \
	X(too_old)         \
	X(refused_order)   \
	X(refused_full)    \
	X(refused_bulk)    \
	X(refused_closed)  \
	X(undeclared)      \
	X(naks_sent)       \
	X(bulk_writes)     \
	X(fills)           \
	X(hits)            \
	X(evictions)       \
	X(coalesced)       \
	X(shared_naks)     \
	X(shared_timeouts) \
	X(shared_resent)   \
	X(shared_dead)     \
	X(own_resent)      \
	X(swallowed)       \
	X(moved_reads)     \
	X(moved_writes)    \
	X(moved_atomics)   \
	X(moved_refused)   \
	X(gaps)            \
	X(idle_ended)

enum sword_counter {
#define SWORD_ENUM(name) SWORD_C_##name,
	SWORD_COUNTERS(SWORD_ENUM)
#undef SWORD_ENUM
	SWORD_COUNTER_COUNT
};

/* How far an operation is. */
enum sword_state {
	SWORD_FREE,
	SWORD_SENT,   /* its place on the connection is on the way */
	SWORD_PLACED, /* waits for its turn */
	SWORD_ISSUED, /* on the shared connection */
	SWORD_DONE,   /* answered; kept for repetitions */
	SWORD_STATES,
};

/* What the shared connection carries. */
enum sword_kind {
	SWORD_WORD,   /* decided here: a WRITE */
	SWORD_FILL,   /* a READ of a word, of the switch itself */
	SWORD_WRITE,  /* of a moved connection, as it is */
	SWORD_READ,   /* the same */
	SWORD_ATOMIC, /* the same, on memory that is no region of words */
};

struct sword_op {
	struct sword_op *next; /* in the queue of waiting operations */
	uint8_t kind;	       /* enum sword_kind */
	uint8_t opcode;	       /* as it came */
	uint16_t buffer;       /* SWORD_WRITE: index + 1; 0: none */
	uint32_t len_bytes;
	uint32_t conn; /* index */
	uint32_t psn;
	uint32_t msn;
	uint8_t state;
	uint8_t syndrome;
	bool is_write;
	uint8_t at, len; /* WRITE: which bytes of the word */
	uint8_t bytes[8];
	uint8_t region;
	uint64_t va; /* of the word */
	struct atomic_op atomic;
	uint64_t original;
};

struct sword_conn {
	struct tor_conn id;
	uint8_t server; /* index */
	bool moved;	/* all of it takes the shared connection */
	uint64_t seen_ns;
	uint32_t old_psn;	   /* this and what is before it is forgotten */
	struct wire_pkt to_server; /* addresses and ports, as last seen */
	/* What is said to the client. Of a moved connection it is the whole
	 * responder; of another one the server counts packets. */
	struct end_rx rx;
	/* A WRITE to a region that is not of one word. */
	int bulk_region; /* -1: none */
	bool bulk_open;	 /* its last packet did not come yet */
	uint32_t bulk_psn;
	/* Its operations, one bit each, by state, and which of them are
	 * WRITEs; and their packet numbers. All questions about all of them
	 * are answered from here: the operations are 4 KB. */
	uint32_t in_state[SWORD_STATES];
	uint32_t writes;
	uint32_t psn_of[SWORD_DEPTH];
	/* Where the usual one is found at once; any other by looking at all.
	 * Operations mostly come one packet number after the other and take
	 * places in the same order. */
	uint32_t newest_psn; /* of all operations so far, if there were any */
	bool has_newest;
	bool skips_older;   /* a WRITE was forgotten before an older atomic */
	uint8_t slant;	    /* place less packet number, of the last one */
	uint8_t first_sent; /* if it is SENT, the oldest of these */
};

STATIC_ASSERT(SWORD_DEPTH == 32, "bits of an operation");

struct sword_region {
	bool used;
	uint8_t server;
	uint32_t rkey;
	uint64_t va;
	uint64_t len_bytes;
	bool plain;	     /* no words: for moved connections only */
	uint32_t active;     /* operations that are not done */
	int bulk_conn;	     /* -1: none */
	uint64_t closing_ns; /* no new operation before; for bulk writes */
};

struct sword_word {
	uint64_t va;
	uint64_t value;
	uint8_t server; /* index + 1; 0: free */
	bool valid;
	bool filling;
	uint32_t refs; /* operations and fills on their way */
	uint64_t used_ns;
};

/* What a packet of the shared connection asks; it is not acknowledged. */
struct sword_out {
	uint8_t kind;		 /* enum sword_kind */
	struct sword_op *op;	 /* NULL: a READ that fills */
	struct sword_word *word; /* NULL: none */
	uint32_t rkey;
	uint64_t va;
	uint32_t len;
	uint8_t bytes[8];
};

struct sword;

struct sword_server {
	bool used;
	char name[SWORD_NAME_MAX + 1]; /* of its declarer; "": not said */
	struct sword *sword;
	uint8_t index;
	uint32_t mtu;
	struct tor_end at;		     /* of the shared connection */
	struct end_tx end;		     /* the same, as who asks */
	struct sword_out out[END_TX_WINDOW]; /* by psn */
	struct sword_op *first, **last;	     /* that wait */
};

struct sword_options {
	uint32_t conns;
	uint32_t words;
	uint64_t rto_ns;
	uint64_t idle_ns; /* 0: connections stay until told otherwise */
	bool open;	  /* does not wait for `ready` */
};

struct sword {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *c;
	struct sword_options opt;
	bool ready;
	struct sword_server servers[SWORD_SERVERS];
	unsigned server_top; /* none is used from here on */
	struct sword_region regions[SWORD_REGIONS];
	struct tor_conns table;
	struct sword_conn *conns; /* those of the table */
	struct sword_op *ops;	  /* SWORD_DEPTH per connection */
	struct sword_word *words;
	uint32_t word_buckets;
	uint8_t (*buffers)[WIRE_MTU_MAX];
	uint16_t *free_buffers;
	unsigned free_count;
};

static inline void sword_count(struct sword *s, enum sword_counter c)
{
	s->c[c]++;
}

static inline struct sword_op *sword_ops(struct sword *s,
					 const struct sword_conn *c)
{
	return s->ops + (size_t)(c - s->conns) * SWORD_DEPTH;
}

/* All changes of a state are made here. */
static inline void sword_op_move(struct sword *s, struct sword_op *op,
				 enum sword_state state)
{
	size_t at = (size_t)(op - s->ops);
	struct sword_conn *c = &s->conns[at / SWORD_DEPTH];
	uint32_t bit = 1u << at % SWORD_DEPTH;

	c->in_state[op->state] &= ~bit;
	c->in_state[state] |= bit;
	op->state = (uint8_t)state;
}

/* ---- sword_table.c: words, connections, regions -------------------------- */

struct sword_server *sword_server_find(const struct sword *s,
				       const uint8_t ip[16]);
int sword_conn_add(struct sword *s, const struct sword_conn *conn) MUST_CHECK;
/* -EBUSY: it has operations under way. */
int sword_conn_remove(struct sword *s,
		      const struct sword_conn *like) MUST_CHECK;
/* Removes it with its operations; nothing may point to them any more. */
void sword_conn_drop(struct sword *s, struct sword_conn *c);
/* A region of the server that this request touches, or NULL. */
struct sword_region *sword_region_of(struct sword *s, unsigned server,
				     const struct wire_pkt *w);
/* NULL: all places are busy. */
struct sword_word *sword_word_get(struct sword *s, unsigned server,
				  uint64_t va);
void sword_words_forget(struct sword *s, const struct sword_region *r);
/* Drops all words of the server, also those that packets point to. */
void sword_words_of_server(struct sword *s, unsigned server);
/* Forgets the words that a WRITE changes. */
void sword_words_changed(struct sword *s, unsigned server, uint64_t va,
			 uint64_t len_bytes);
/* The region that contains everything that the request touches, or NULL. */
struct sword_region *sword_region_with(struct sword *s, unsigned server,
				       const struct wire_pkt *w);

/* ---- sword_shared.c: the shared connection ------------------------------ */

/* -EEXIST: another end has its number. */
int sword_shared_init(struct sword *s, struct sword_server *v,
		      unsigned index) MUST_CHECK;
void sword_shared_stop(struct sword_server *v);
/* Queues the operation, for the next end_tx_run(). */
void sword_shared_queue(struct sword_server *v, struct sword_op *op);

/* ---- sword_conn.c: the clients' connections ------------------------------ */

enum tor_verdict sword_request(struct sword *s, struct sword_server *v,
			       struct tor_pkt *pkt);
enum tor_verdict sword_reply(struct sword *s, struct sword_conn *c,
			     struct tor_pkt *pkt);
/* The effect is in memory: answers the client, with the data of a READ. */
void sword_op_done(struct sword *s, struct sword_op *op, const uint8_t *data);
struct sword_op *sword_op_find(struct sword *s, const struct sword_conn *c,
			       uint32_t psn);
/* Call it at each new packet number. */
void sword_conn_age(struct sword *s, struct sword_conn *c, uint32_t psn);
/* NULL: all operations of the connection are under way. */
struct sword_op *sword_op_new(struct sword *s, struct sword_conn *c,
			      uint32_t psn);
void sword_op_fill(struct sword *s, struct sword_op *op, struct sword_conn *c,
		   const struct sword_region *r, const struct wire_pkt *w);
bool sword_is_word_op(const struct sword_region *r, const struct wire_pkt *w);
void sword_answer(struct sword *s, const struct sword_conn *c,
		  const struct sword_op *op, const uint8_t *data);
enum tor_verdict sword_refuse(struct sword *s, struct sword_conn *c,
			      uint32_t psn, enum sword_counter why);

/* ---- sword_move.c: moved connections --------------------------------------
 */

enum tor_verdict sword_move_request(struct sword *s, struct sword_server *v,
				    struct sword_conn *c,
				    const struct wire_pkt *w);
void sword_buffer_give(struct sword *s, struct sword_op *op);

/* ---- sword_ctl.c: options and control calls ------------------------------ */

int sword_parse(const char *text, struct sword_options *out) MUST_CHECK;
int sword_control(void *state, const char *text, struct json_out *out);

#endif
