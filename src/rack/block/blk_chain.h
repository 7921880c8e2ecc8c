/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a block in a chain of nodes, as a machine without I/O: it gets
 * messages, configurations and the time, and sends messages.
 *
 *	head -> ... -> reader [-> joiner]
 *
 * The head takes changes, one at a time. A change is prepared and kept at the
 * head, then at each member down to the last one, which executes it; on the way
 * back up everybody else does, and the head answers last. So what a member has
 * kept all before it have, and what it has executed all behind it have, too.
 * Whoever is left over goes on from there: the last one executes what it has
 * kept, and what a member has kept in part only nobody has executed.
 *
 * Reads are answered by the reader, the last member that counts. It needs a
 * lease: it asks with its own time, the head gives that back through all
 * members, and until BLK_LEASE_MS after it had asked it may answer. Who becomes
 * reader because those behind it were cut out waits until no lease that went
 * through it can hold, BLK_LEASE_REST_MS after the last, and executes nothing
 * meanwhile. Clocks need the same speed only.
 *
 * A joiner is a last member that does not count yet. The one before it, the
 * reader, sends a copy of the block, during which nothing changes, and then all
 * that comes. From the copy on the joiner may be made a full member, and all
 * others be cut out, without the reader knowing: so it needs a lease of the
 * joiner's, too. A joiner that counts waits until the former reader speaks to
 * it in the new epoch, or that lease is over.
 *
 * Who is a member is decided elsewhere, by configurations whose epochs grow.
 * Nobody hears messages of another epoch. A member that was cut out gets no
 * answers from those that go on, so it answers nobody.
 */
#ifndef AQ_BLK_CHAIN_H
#define AQ_BLK_CHAIN_H

#include "blk_link.h"
#include "blk_state.h"

enum {
	BLK_CHAIN_MAX = 8,
	BLK_LEASE_MS = 500,
	BLK_LEASE_REST_MS = 600,
	BLK_LEASE_ASK_MS = 100, /* of one that was asked lately */
	BLK_LEASE_WANTED_MS = 2000,
	BLK_CHAIN_IDLE_MS = 1000, /* of one that was not */
	BLK_CHAIN_HELLO_MS = 10,  /* until the one before has answered */
	BLK_CHAIN_AGAIN_MS = 50,  /* what is not answered is sent again */
	BLK_CHAIN_STUCK_MS = 300, /* then clients are told to look around */
	BLK_CHAIN_WINDOW = 8,	  /* pieces under way */
};

struct blk_member {
	uint32_t node; /* as the carrier knows it */
	uint32_t index;
	uint64_t generation;
};

struct blk_chain_config {
	uint64_t epoch; /* 0: the block has no chain */
	unsigned count;
	unsigned full; /* those that count; the others join */
	unsigned at;   /* this one */
	bool is_fresh; /* the joiner has come with this epoch */
	struct blk_member member[BLK_CHAIN_MAX];
};

/* What a chain needs of who carries it. */
struct blk_chain_carrier {
	void *ctx;
	/* False: it cannot be sent now. It may be lost, too. */
	bool (*send)(void *ctx, const struct blk_member *to,
		     struct blk_link_message *m);
	/* The block is in use by something else just now. */
	bool (*is_held)(void *ctx);
	/* A change was executed here, the head. */
	void (*done)(void *ctx, const struct blk_answer *a);
	/* Who waits may try again. */
	void (*freed)(void *ctx);
};

/* Bytes on their way to the next member: a value, or a copy. */
struct blk_stream {
	bool is_open;
	uint64_t total, sent, got;
	uint64_t said;	   /* what the other end has, as it said last */
	uint64_t moved_ns; /* the last progress */
};

struct blk_chain {
	struct blk_block *block;
	struct blk_chain_carrier carrier;
	struct blk_chain_config config;
	bool has_state;
	uint64_t position; /* of the last change that was executed here */
	uint64_t told;	   /* events before this serial belong to it */
	/* The change that is kept, or comes. */
	bool is_kept, is_coming;
	struct blk_request request;
	uint8_t session[BLOCK_SESSION_BYTES];
	uint8_t *place;
	uint32_t have;
	bool was_answered;
	bool is_old; /* it was kept in an earlier epoch */
	struct blk_answer answer;
	uint64_t kept_ns, came_ns;
	/* The next member. */
	bool next_is_ready;
	uint64_t next_position;
	bool is_copying;
	struct blk_stream stream;
	struct blk_state state; /* of a copy, at either end */
	uint64_t state_have;
	uint64_t whole_at; /* position from which on a joiner may count */
	/* The lease. */
	uint64_t asked;	    /* by the reader's clock, on its way up */
	uint64_t granted;   /* the same on its way down */
	uint64_t passed_ns; /* when it last went down from here */
	uint64_t rest_ns;   /* until then nothing is executed */
	uint64_t lease_ns;  /* of the reader */
	bool was_heard;	    /* by the one before, in this epoch */
	uint64_t told_ns;   /* when it was last told the state */
	uint64_t wanted_ns; /* when the reader was last asked */
	/* What the joiner says to the reader: read until then. */
	bool has_copied;	   /* the reader has begun to, in this epoch */
	uint64_t consent_ns;	   /* of the reader */
	uint64_t echo;		   /* by the reader's clock, at the joiner */
	uint64_t echo_ns, echo_to; /* when it was last said, and to whom */
	uint64_t echo_rest_ns;	   /* until then, as rest_ns */
};

/* `has_state`: it is one of the first members, and has nothing yet. */
void blk_chain_init(struct blk_chain *c, struct blk_block *b, bool has_state,
		    const struct blk_chain_carrier *carrier);
void blk_chain_configure(struct blk_chain *c,
			 const struct blk_chain_config *config,
			 uint64_t now_ns);
void blk_chain_hear(struct blk_chain *c, const struct blk_link_message *m,
		    uint64_t now_ns);
void blk_chain_tick(struct blk_chain *c, uint64_t now_ns);

bool blk_chain_is_head(const struct blk_chain *c);
/* Whether it is the one that answers reads, and may now. Who is asked gets a
 * lease, and keeps it for as long as it is asked now and then. */
bool blk_chain_may_read(struct blk_chain *c, uint64_t now_ns);
/* The reader, when it may, tells events as blk_watch_read does; what a change
 * that is not executed has left there is not told. */
uint32_t blk_chain_watch(const struct blk_chain *c, uint64_t serial,
			 uint32_t events, uint8_t *out, uint32_t room_bytes,
			 bool *has_some);
/* Whether a change lies at its place and is not executed: reads have to wait,
 * because what they need may be at the same place. */
static inline bool blk_chain_is_busy(const struct blk_chain *c)
{
	return c->is_coming || c->is_kept;
}
/* Whether the head can take a change now. */
bool blk_chain_is_open(const struct blk_chain *c);
/* Whether it has all that anybody can have seen: also what was kept by who has
 * sent the copy, since a reader that was cut out may have shown it. */
static inline bool blk_chain_is_whole(const struct blk_chain *c)
{
	return c->has_state && c->position >= c->whole_at;
}

/*
 * The head takes a change that was prepared, whose value is at its place; `a`
 * is what an answered one was answered. carrier.done comes, maybe at once;
 * until then nothing else may happen to the block.
 */
void blk_chain_take(struct blk_chain *c, const struct blk_request *r,
		    enum blk_prepared prepared, uint8_t *place,
		    const struct blk_answer *a, uint64_t now_ns);

enum blk_chain_step {
	BLK_CHAIN_ANSWER, /* no other member has to know */
	BLK_CHAIN_FETCH,  /* the value goes to *place; then blk_chain_take */
	BLK_CHAIN_TAKEN,
};
/* The head, when it is open, prepares a change and takes it. */
enum blk_chain_step blk_chain_change(struct blk_chain *c,
				     const struct blk_request *r,
				     struct blk_answer *a, uint8_t **place,
				     uint64_t now_ns) MUST_CHECK;
/* The head ends one of the sessions that are to end, or gives back its items,
 * if it can now. */
bool blk_chain_end_session(struct blk_chain *c, uint64_t now_ns);

#endif
