/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steering of version-list stores (wire/vlist_layout.h), after SwordBox: the
 * switch sees all appends to a key's list in one order, so it knows the end of
 * the list before the memory does. An append aimed at an older version is sent
 * to the end instead of failing there, and a READ of an older version is
 * answered with the newest.
 *
 * Nothing here is needed for a right result, and all of it may be lost at any
 * moment. What a client relies on is in its answers:
 *
 *  - Where an append happened. A successful compare-and-swap returns the name
 *    of the version that the word stands in; the server returns it, also to a
 *    retransmission, whatever happened to the switch.
 *  - Whether that version is committed, which is what the switch adds: the bit
 *    VLIST_COMMITTED in the answer. It is set when the chain of appends from a
 *    version that a client aimed at (clients aim only at committed ones) up to
 *    this one was answered with success, each by the server, to this switch.
 *    An answer without the bit makes the client find out by itself.
 *
 * An append is never sent to another use of the memory that it was aimed at. If
 * it failed there, the answer would be the former value, which may be the name
 * that its client aimed at, and the client would take that for success.
 *
 * A repeated request is sent where it went the first time, or unchanged if that
 * is not known: a server does not answer a repeated READ of another address.
 *
 * An append that is answered before the one it was put behind is held back
 * until that one is answered. The switch repeats an append without an answer,
 * in case its client is dead; the server takes that for a retransmission.
 *
 * When an append fails, the appends that were put behind it *hang*: their
 * answers are held back for a while, because the client will append its version
 * again, and then they follow it. The end of the list goes back to where the
 * append failed *before* that client gets its answer, so that its next append
 * is never put behind its own successors. Where that is not certain the list is
 * forgotten.
 */
#ifndef AQ_TOR_STEER_H
#define AQ_TOR_STEER_H

#include "tor_program.h"
#include "wire/vlist_layout.h"

extern const struct tor_program tor_steer;

enum {
	STEER_STORES = 16,
	STEER_CONNS = 1024, /* unless told otherwise */
	STEER_CONNS_MAX = 1 << 16,
	STEER_KEYS = 1024,
	STEER_KEYS_MAX = 1 << 20,
	STEER_WAYS = 8,		 /* places a key may have */
	STEER_HISTORY = 1 << 14, /* versions whose key is remembered */
	STEER_HISTORY_MAX = 1 << 24,
	STEER_DEPTH = 4,  /* appends remembered per connection */
	STEER_READS = 32, /* READs; a client has 16 under way, usually */
	STEER_TRIES = 8,
	STEER_CHAIN_MAX = 1 << 16, /* appends that one answer settles */
	STEER_SKETCH = 1 << 13,
	STEER_HELD = 256, /* answers to READs that wait for an append */
	/* Packets that a client of a store has under way at the most: one batch
	 * (kit/batch.c). */
	STEER_WINDOW = 512,
};

#define STEER_RESEND_NS 2000000ull
/* An append without an answer for this long, or for this many times the usual
 * time, is late, and READs are not sent after it. */
#define STEER_LATE_NS 1500ull
#define STEER_LATE    3
/* The longest that an answer to a READ is held back. */
#define STEER_HOLD_NS 6000ull

#define STEER_COUNTERS(X)    \
	X(appends)           \
	X(appends_steered)   \
	X(reads_steered)     \
	X(reads_behind)      \
	X(repeated)          \
	X(committed)         \
	X(failed)            \
	X(held)              \
	X(went_back)         \
	X(taken_along)       \
	X(released)          \
	X(vouched_reads)     \
	X(reads_held)        \
	X(successors_hidden) \
	X(sent_again)        \
	X(given_up)          \
	X(admitted)          \
	X(evictions)         \
	X(not_admitted)      \
	X(key_unknown)       \
	X(other_uses)        \
	X(forgotten)

enum steer_counter {
#define STEER_ENUM(name) STEER_C_##name,
	STEER_COUNTERS(STEER_ENUM)
#undef STEER_ENUM
	STEER_COUNTER_COUNT
};

struct steer_store {
	bool used;
	uint8_t server_ip[16];
	uint32_t rkey;
	uint64_t va; /* of the region's first byte */
	uint64_t nodes_at;
	uint64_t nodes;
	uint32_t node_bytes;
};

/* An append that may be another one by now: then `serial` differs. */
struct steer_ref {
	uint32_t op; /* index + 1; 0: none */
	uint64_t serial;
};

enum steer_state {
	STEER_FREE,
	STEER_SENT,	 /* no answer yet */
	STEER_LANDED,	 /* answered, and held back */
	STEER_COMMITTED, /* answered */
	STEER_FAILED,	 /* answered, or given up */
};

struct steer_op {
	uint8_t state;
	uint8_t tries;
	uint8_t syndrome;
	uint8_t store;
	bool hangs;   /* was put behind an append that failed */
	bool loose;   /* sent as it was, when the end was not known */
	bool is_sure; /* it certainly never passed a switch before */
	uint32_t conn;
	uint32_t psn;
	uint32_t msn;
	uint64_t serial;
	uint64_t place; /* pointer: what its client aimed at */
	uint64_t at;	/* pointer: where it was sent */
	uint64_t node;	/* pointer: what it appends */
	uint32_t entry; /* index */
	uint32_t epoch;
	struct steer_ref before; /* append before; none: `at` is committed */
	struct steer_ref behind;
	uint64_t sent_ns;
	uint32_t next, prev; /* in the list without an answer; index + 1 */
	uint32_t held;	     /* answers to READs that wait for it; index + 1 */
};

struct steer_read {
	bool used;
	bool is_committed; /* was known before */
	uint32_t psn;
	uint64_t node;	   /* pointer: what it was sent to */
	uint64_t serial;   /* of the last append before it */
	uint32_t failures; /* of the entry by then */
	struct steer_ref op;
	uint32_t entry;
	uint32_t epoch;
};

struct steer_conn {
	bool used;
	/* Which requests are new is not known until the first answer, because
	 * an earlier switch may have seen them already. */
	bool has_psn;
	bool knows_psn;
	/* Requests that come now were never sent before: this switch has seen
	 * all packets, or more than a client can have under way. */
	bool is_sure;
	uint32_t first_psn;
	uint32_t newest_psn;
	uint32_t client_qpn;
	uint32_t server_qpn;
	uint8_t client_ip[16];
	uint8_t server_ip[16];
	uint32_t next_request; /* index + 1 of the next in a hash chain */
	uint32_t next_reply;
	struct wire_pkt to_server; /* addresses and ports, as last seen */
	struct wire_pkt to_client;
	/* The version that was written last, and its key. */
	uint64_t written;
	uint64_t written_key;
	struct steer_read reads[STEER_READS];
	uint8_t next_read;
	uint32_t held; /* index + 1: an answer to a READ that waits */
};

struct steer_held {
	bool used;
	uint32_t conn;
	uint32_t next; /* that waits for the same append; index + 1 */
	uint64_t since_ns;
	struct steer_read read;
	struct wire_pkt wire;
	uint8_t bytes[WIRE_MTU_MAX];
};

/* What is known of a key's list. */
struct steer_entry {
	bool used;
	uint8_t store;
	uint32_t epoch; /* another one: everything before is forgotten */
	uint64_t key;
	uint64_t end; /* pointer; 0: not known */
	/* The end was lost, or never known. Until an append that was sent where
	 * its client aimed is answered with success, no append is put behind
	 * another: most waiting clients of a key aim at an old version by then,
	 * and if the first of these appends were taken for the end, all others
	 * would be sent behind it and fail, again and again. */
	bool learns;
	struct steer_ref last; /* the append of `end`; none: committed */
	uint64_t committed;    /* pointer: the last committed; 0: not known */
	uint64_t committed_serial;
	uint32_t failures; /* of appends that were put in order here */
	uint64_t open_ns;  /* when the first after it was sent; 0: none was */
	uint64_t back_at;  /* pointer: where the end went back to last */
};

struct steer_past {
	uint64_t offset; /* + 1; 0: empty */
	uint64_t key;
	uint8_t store;
};

struct steer_options {
	uint32_t conns;
	uint32_t keys;
	uint32_t history;
	uint64_t resend_ns;
	bool writes;
	bool reads;
};

struct steer {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *c;
	struct steer_options opt;
	struct steer_store stores[STEER_STORES];
	struct steer_conn *conns;
	struct steer_op *ops; /* STEER_DEPTH per connection */
	uint32_t *by_request; /* hash chains, index + 1 */
	uint32_t *by_reply;
	uint32_t hash_mask;
	struct steer_entry *entries;
	uint32_t buckets, ways;
	struct steer_past *past;
	uint32_t past_mask;
	uint8_t sketch[STEER_SKETCH]; /* how often keys were written lately */
	uint32_t sketch_sum;
	uint64_t serial;
	uint64_t usual_ns; /* from an append to its answer, smoothed */
	uint32_t waiting_first, waiting_last; /* without an answer */
	struct timer timer;
	struct steer_held *held;
	unsigned held_count, held_next;
	struct timer held_timer;
	uint8_t payload[WIRE_MTU_MAX];
};

static inline void steer_count(struct steer *s, enum steer_counter c)
{
	s->c[c]++;
}

static inline struct steer_op *steer_ops(struct steer *s,
					 const struct steer_conn *c)
{
	return s->ops + (size_t)(c - s->conns) * STEER_DEPTH;
}

/* NULL: none, or it is forgotten. */
static inline struct steer_op *steer_op_of(struct steer *s, struct steer_ref r)
{
	struct steer_op *op = r.op ? &s->ops[r.op - 1] : NULL;

	return op && op->state != STEER_FREE && op->serial == r.serial ? op
								       : NULL;
}

static inline struct steer_ref steer_ref_to(const struct steer *s,
					    const struct steer_op *op)
{
	return (struct steer_ref){(uint32_t)(op - s->ops) + 1, op->serial};
}

/* ---- steer_table.c: stores, connections, keys ---------------------------- */

/* The store whose nodes the address is in, at the start of one; NULL. */
struct steer_store *steer_store_of(struct steer *s, const struct wire_pkt *w);
struct steer_conn *steer_conn_of_request(struct steer *s,
					 const struct wire_pkt *w);
struct steer_conn *steer_conn_of_reply(struct steer *s,
				       const struct wire_pkt *w);
void steer_store_remove(struct steer *s, unsigned store);
int steer_conn_add(struct steer *s, const struct steer_conn *conn) MUST_CHECK;
int steer_conn_remove(struct steer *s,
		      const struct steer_conn *like) MUST_CHECK;
/* All connections to it. */
void steer_server_remove(struct steer *s, const uint8_t server_ip[16]);
/* The key's entry; NULL: others are written more often. */
struct steer_entry *steer_entry_get(struct steer *s, unsigned store,
				    uint64_t key);
struct steer_entry *steer_entry_find(struct steer *s, unsigned store,
				     uint64_t key);
/* Everything about the list is forgotten. */
void steer_entry_break(struct steer_entry *e);
void steer_past_add(struct steer *s, unsigned store, uint64_t node,
		    uint64_t key);
/* The entry of a version's key, if both are known. */
struct steer_entry *steer_past_find(struct steer *s, unsigned store,
				    uint64_t offset);

/* ---- steer_op.c: appends under way --------------------------------------- */

struct steer_op *steer_op_find(struct steer *s, const struct steer_conn *c,
			       uint32_t psn);
/* Replaces the connection's oldest append, which is forgotten. */
struct steer_op *steer_op_new(struct steer *s, struct steer_conn *c);
void steer_op_sent(struct steer *s, struct steer_op *op);
/* The appends that hang behind a failed append of this version. */
struct steer_ref steer_op_hanging(struct steer *s, const struct steer_conn *c,
				  uint64_t node);
/* The version is appended again, and the appends that hang behind it follow:
 * they are the end of the list then, or will be when it succeeds. */
void steer_op_take_along(struct steer *s, struct steer_op *op,
			 struct steer_ref hanging);
/* The server's answer came. True: the client is to be told; false: not yet. */
bool steer_op_answered(struct steer *s, struct steer_op *op,
		       struct wire_pkt *w) MUST_CHECK;
/* No answer will be taken any more. */
void steer_op_forget(struct steer *s, struct steer_op *op);
void steer_timer_fired(struct timer *t, uint64_t now_ns);

/* ---- steer_read.c: READs under way --------------------------------------- */

void steer_read_sent(struct steer *s, struct steer_conn *c,
		     const struct steer_store *store, struct tor_pkt *pkt,
		     bool is_new);
enum tor_verdict steer_read_answered(struct steer *s, struct steer_conn *c,
				     struct tor_pkt *pkt);
/* Releases the answer of this connection that is held back, if there is one. */
void steer_read_let_go(struct steer *s, struct steer_conn *c);
/* Releases the answers that wait for this append. */
void steer_read_settled(struct steer *s, struct steer_op *op);
void steer_held_timer_fired(struct timer *t, uint64_t now_ns);

/* ---- steer_path.c: packets ----------------------------------------------- */

void steer_send_to(const struct steer_store *store, struct tor_pkt *pkt,
		   uint64_t at);
enum tor_verdict steer_packet(void *state, struct tor_pkt *pkt);

/* ---- steer_ctl.c: options and control calls ------------------------------ */

int steer_parse(const char *text, struct steer_options *out) MUST_CHECK;
int steer_control(void *state, const char *text, struct json_out *out);

#endif
