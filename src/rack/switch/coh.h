/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherent shared memory in the switch (docs/mind.md): the directory of
 * coherence/dir.h with connections around it. A machine has lanes, on which it
 * gets pages, and one connection for everything else, its talk; both end here.
 * A memory node has one connection, on which the switch reads and writes pages
 * in order. The control plane declares all of them (coh_ctl.c).
 *
 *  get     a READ on a lane: rights, directory; memory is read, others are
 *	    invalidated; then the answer. A lane has room for one page.
 *  give    a WRITE on a talk: directory; memory is written; then the
 *	    acknowledgement. A machine has room for COH_GIVES pages.
 *  INVAL   a SEND on a talk, COH_INVALS at most without a FIN
 *
 * A get that is repeated while it waits is ignored. One that was answered is
 * read again from memory: until its answer has arrived nobody else can change
 * the page, because the machine counts as having it.
 *
 * Who does not answer an INVAL, or no longer takes what is sent, is expelled:
 * its ends are dropped, then its entries (dir.h).
 *
 * A memory node that does not answer is lost with all that it had: gets of its
 * pages are refused, and give-backs to it are acknowledged and counted, so that
 * regions go on to where they are refused. It stays lost until the next term.
 * Ranges that two nodes have go on with the other one (coh_pair.c).
 *
 * One memory node keeps the members and begins terms. Others offer their arenas
 * (coh_offer.c): the switch is where the keeper finds them, and where they find
 * what the keeper wants of them.
 */
#ifndef AQ_COH_H
#define AQ_COH_H

#include "coherence/copies.h"
#include "coherence/record.h"
#include "coherence/split.h"
#include "end_rx.h"
#include "end_tx.h"
#include "rights.h"
#include "translate.h"

extern const struct tor_program tor_coherence;

enum {
	COH_ENTRIES = 30624,
	COH_ENTRIES_MAX = 1 << 20,
	COH_REGION_PAGES = 4, /* 16 KiB */
	COH_DOMAINS = 16,     /* of a machine */
	COH_GIVES = 16,	      /* pages of a machine on their way to memory */
	COH_INVALS = 64,      /* without a FIN, of a machine */
	/* Busy regions at most: one for each get, and a recall for each. */
	COH_WAITING = 2 * COH_MACHINES_MAX * COH_LANES_MAX,
	COH_SAID = 128,	      /* messages of a machine without an answer */
	COH_NODE_READS = 8,   /* READs on the way at a node, unless told */
	COH_KEEPER_TEXT = 40, /* the name of whoever keeps the members */
	COH_COPIES = 8,	      /* pages of a move on their way */
	COH_SCRUBS = 64,      /* parts of an arena that are to become zeros */
	COH_PAIRS = 4096,     /* ranges that two nodes have */
};

#define COH_EPOCH_NS 100000000ull
#define COH_FIN_NS   5000000000ull /* for the answer to an INVAL */
#define COH_PEER_NS  5000000000ull /* for a machine's NIC */
#define COH_NODE_NS  2000000000ull /* for a memory node's */
#define COH_STEP_NS  100000ull	   /* between two parts of a long work */
#define COH_TICK_NS  1000000ull

#define COH_COUNTERS(X)  \
	X(gets)          \
	X(gets_again)    \
	X(gets_bad)      \
	X(answers)       \
	X(refused)       \
	X(refused_right) \
	X(gives)         \
	X(gives_bad)     \
	X(gives_void)    \
	X(records)       \
	X(records_bad)   \
	X(invals)        \
	X(invals_held)   \
	X(fins)          \
	X(false_invals)  \
	X(recalls)       \
	X(waits)         \
	X(lost)          \
	X(old_bytes)     \
	X(splits)        \
	X(joins)         \
	X(entries_made)  \
	X(entries_freed) \
	X(expelled)      \
	X(nodes_lost)    \
	X(offers)        \
	X(naks)          \
	X(coalesced)     \
	X(end_naks)      \
	X(end_timeouts)  \
	X(end_resent)    \
	X(end_dead)

enum coh_counter {
#define COH_ENUM(name) COH_C_##name,
	COH_COUNTERS(COH_ENUM)
#undef COH_ENUM
	COH_COUNTER_COUNT
};

struct coh;
struct coh_lane;
struct coh_give;

/* One page to or from a memory node. It is a lane's or a give's. */
struct coh_op {
	struct coh_op *next; /* of those that wait */
	bool is_active;
	bool is_write;
	bool has_failed; /* the node is lost */
	uint32_t node;
	uint64_t addr; /* at the node */
	uint32_t psn;  /* of its first packet */
	uint8_t *bytes;
	void (*done)(struct coh *c, struct coh_op *op);
};

/* Where a memory node has its arena, and its connection. */
struct coh_node_at {
	uint64_t addr, size_bytes;
	uint32_t mtu, rkey, reads;
	uint32_t own_qpn, qpn, psn;
	uint8_t ip[16], own_ip[16];
};

/* An arena that the keeper may take, by the node's name. */
struct coh_offer {
	bool used;
	bool is_taken;
	uint8_t node; /* as which */
	char name[COH_KEEPER_TEXT];
	uint64_t id; /* of the node's run */
	struct coh_node_at at;
};

struct coh_scrub {
	uint64_t at, size_bytes;
};

struct coh_node {
	struct coh *coh;
	bool used;
	uint64_t void_count; /* give-backs that did not get there */
	uint32_t scrub_count;
	struct coh_scrub scrub[COH_SCRUBS];
	bool is_due; /* something waits to be sent */
	struct tor_end at;
	struct end_tx tx;
	uint32_t mtu, rkey, reads;
	struct coh_op *first, **last;	      /* that wait */
	struct coh_op *on_way[END_TX_WINDOW]; /* by psn */
};

struct coh_lane {
	struct coh *coh;
	uint8_t machine, number;
	bool used;
	bool is_dead;	 /* it was refused for good */
	bool is_open;	 /* a get has no answer */
	bool is_refused; /* the last get is answered with nothing */
	bool is_again;	 /* memory is read for a repetition */
	uint8_t why;	 /* enum coherence_why */
	uint32_t mtu, qpn;
	uint32_t serial;   /* of the last get */
	uint32_t psn, msn; /* of the last get */
	uint32_t skip;	   /* packets of the answer that a repetition has */
	uint64_t page;
	struct tor_end at;
	struct end_rx rx;
	struct coh_op op;
	uint8_t bytes[COHERENCE_PAGE_BYTES];
};

struct coh_give {
	struct coh *coh;
	uint8_t machine;
	bool used;
	bool has_second;
	bool is_held;  /* only one of two nodes has it */
	uint32_t said; /* which message of the machine it is */
	uint8_t left;  /* writes that are not done */
	uint64_t page;
	struct coh_op op, second; /* the second one: coh_move.c, coh_pair.c */
	uint8_t bytes[COHERENCE_PAGE_BYTES];
};

enum coh_move_state {
	COH_MOVE_NONE,
	COH_MOVE_COPIES,
	COH_MOVE_SYNCED, /* both nodes have the same */
	COH_MOVE_FAILED, /* a node does not answer */
	COH_MOVE_ENDS,	 /* something of it is still on its way */
};

struct coh_copy {
	bool used;
	bool is_again; /* the page was given back meanwhile */
	uint64_t page;
	struct coh_op op;
	uint8_t bytes[COHERENCE_PAGE_BYTES];
};

/* Pages that go to another node, one range at a time. */
struct coh_move {
	enum coh_move_state state;
	uint64_t page, count;
	uint64_t next, copied;
	uint32_t node;
	uint64_t addr;
	struct coh_copy copies[COH_COPIES];
};

/* A range that two nodes have: here is where the second one has it. */
struct coh_pair {
	uint64_t page, count;
	uint64_t addr;
	uint32_t node;
};

/* A message of a machine that has no answer. */
struct coh_said {
	uint32_t psn, msn;
	bool is_done;
};

/* What the switch said to a machine, until it is acknowledged. */
struct coh_told {
	uint32_t len_bytes;
	uint8_t lane; /* LOST: whose READ is answered then; else COH_NOBODY */
	uint8_t bytes[COHERENCE_INVAL_BYTES];
};

struct coh_key {
	uint32_t domain;
	uint32_t key[COH_WRITE + 1]; /* to give back, to read, to write */
};

struct coh_machine {
	struct coh *coh;
	uint8_t number;
	bool used;     /* declared, and not gone */
	bool is_going; /* its entries are being looked at, or it writes still */
	bool is_gone;  /* they have been */
	bool is_broken; /* to be expelled */
	bool is_due;
	uint32_t gone_at;
	uint32_t mtu, qpn;
	struct tor_end at;
	struct end_rx rx;
	struct end_tx tx;
	/* What it says. */
	struct end_rx_message message;
	struct coh_give *giving; /* whose packets are coming */
	uint8_t record[COHERENCE_INVAL_BYTES];
	uint32_t said_first, said_next; /* of the ring */
	struct coh_said said[COH_SAID];
	struct coh_give gives[COH_GIVES];
	/* What it is told. */
	struct coh_told told[END_TX_WINDOW]; /* by psn */
	uint32_t inval_first, inval_next;
	struct coh_inval invals[COH_WAITING]; /* not sent yet */
	uint32_t unanswered;		      /* INVALs without a FIN */
	uint64_t heard_ns; /* last FIN, or when there was nothing to hear */
	uint16_t lost_due; /* lanes whose LOST is to be sent */
	uint32_t key_count;
	struct coh_key keys[COH_DOMAINS];
	struct coh_lane lanes[COH_LANES_MAX];
};

struct coh_options {
	uint32_t entries;
	uint32_t region_pages;
	uint8_t machines, lanes;
	uint64_t rto_ns, epoch_ns, fin_ns, peer_ns, node_ns;
	bool last; /* memory's bytes count when an owner dies */
};

struct coh {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *c;
	struct coh_options opt;
	bool has_begun;
	char keeper[COH_KEEPER_TEXT]; /* who has begun the term */
	uint64_t void_before;	      /* gives_void when it began */
	bool is_due; /* a machine or node has something to do */
	struct coh_dir dir;
	struct coh_dir_out out;
	struct coh_split split;
	uint64_t epoch_ns; /* when the next one begins */
	bool in_epoch;
	struct timer timer;
	uint64_t timer_ns; /* when it runs */
	struct translate translate;
	struct rights rights;
	struct coh_machine *machines; /* opt.machines of them */
	struct coh_node *nodes;	      /* COHERENCE_NODES */
	struct coh_offer *offers;     /* as many */
	struct coh_move move;
	uint32_t pair_count;
	struct coh_pair *pairs;	   /* by page */
	struct coh_range *goes_on; /* of the directory; COH_PAIRS of them */
	uint8_t nothing[COHERENCE_PAGE_BYTES]; /* of refused gets */
};

static inline void coh_count(struct coh *c, enum coh_counter which)
{
	c->c[which]++;
}

static inline uint64_t coh_va(uint64_t page)
{
	return page << COHERENCE_PAGE_SHIFT;
}

/* ---- coh_node.c: memory nodes ---------------------------------------------
 */

int coh_node_start(struct coh_node *n) MUST_CHECK;
/* One that is not there: what is given back to it is in vain. */
void coh_node_start_away(struct coh_node *n);
void coh_node_stop(struct coh_node *n);
/* Reads or writes the page, in order with the others at its node. */
void coh_op_start(struct coh *c, struct coh_op *op, uint64_t page,
		  bool is_write);
/* The same, where the caller knows the place. */
void coh_op_start_at(struct coh *c, struct coh_op *op, uint32_t node,
		     uint64_t addr, bool is_write);
/* Sends what waits. Returns whether something was done that may need more. */
bool coh_node_run(struct coh_node *n);

/* ---- coh_lane.c: gets ------------------------------------------------------
 */

int coh_lane_start(struct coh_lane *l) MUST_CHECK;
void coh_lane_stop(struct coh_lane *l);
/* Answers the lane's get with these bytes. */
void coh_lane_answer(struct coh_lane *l, const uint8_t *bytes);
/* The get is not granted: a record says so, and then comes the answer. */
void coh_lane_refuse(struct coh_lane *l, enum coherence_why why);
/* The machine has received that record. */
void coh_lane_refused(struct coh_lane *l);
/* No honest machine asks that: the connection ends. */
void coh_lane_reject(struct coh_lane *l, uint32_t psn, uint8_t syndrome);

/* ---- coh_move.c: pages that go to another node -----------------------------
 */

/* A page is given back: whether it is written at a second place, too, by op. */
bool coh_move_give(struct coh *c, uint64_t page, struct coh_op *op);
/* It could not be written there. */
void coh_move_failed(struct coh *c);

/* ---- coh_pair.c: ranges that two nodes have --------------------------------
 */

/* Where the page is read: at the first node, unless only the second one
 * answers. -EFAULT: nobody has it. */
int coh_pair_place(const struct coh *c, uint64_t page, uint32_t *node,
		   uint64_t *addr) MUST_CHECK;
/* The op's node is lost: whether the page is read somewhere else now. */
bool coh_pair_read_again(struct coh *c, struct coh_op *op, uint64_t page);
/* A page is given back: whether it is written at a second place, too, by op. */
bool coh_pair_give(struct coh *c, uint64_t page, struct coh_op *op);
/* All writes of the give-back are done. */
enum coh_give_fate coh_pair_fate(const struct coh *c, const struct coh_give *g);
/* Nodes, or who has what, are not what they were: looks at what is held. */
void coh_pair_look(struct coh *c);
/* Whether something that the machine gave back is held: it is not silent. */
bool coh_pair_holds(const struct coh_machine *m);
/* Whether something that it gave back to two nodes is not at both, nor said to
 * be at one. */
bool coh_pair_writes(const struct coh_machine *m);
/* Whether something of any machine is held. */
bool coh_pair_waits(const struct coh *c);
/* Whether some of the range is a pair's. */
bool coh_pair_meets(const struct coh *c, uint64_t page, uint64_t count);
/* -EEXIST, -ENOSPC, -EINVAL, with words. */
int coh_pair_add(struct coh *c, const struct coh_pair *pair) MUST_CHECK;

/* ---- coh_talk.c: what a machine says ---------------------------------------
 */

int coh_talk_start(struct coh_machine *m) MUST_CHECK;
void coh_talk_request(struct coh_machine *m, const struct wire_pkt *w);
/* No honest machine says that, or it was expelled and does not know: its
 * connection ends, and so does its membership. */
void coh_talk_reject(struct coh_machine *m, uint32_t psn, uint8_t syndrome);
/* A message was executed; acknowledges all that may be. */
void coh_talk_done(struct coh_machine *m, uint32_t said);
/* All writes of a give-back are done, or what they mean has changed. */
void coh_give_settle(struct coh *c, struct coh_give *g);
/* The key's domain; false: no key of this machine for that. COH_NONE: to give
 * back. */
bool coh_key_find(const struct coh_machine *m, uint32_t key, uint32_t *domain,
		  enum coh_right *right);

/* ---- coh_tell.c: what it is told -------------------------------------------
 */

void coh_tell_start(struct coh_machine *m);
void coh_tell_inval(struct coh_machine *m, const struct coh_inval *inval);
void coh_tell_fin(struct coh_machine *m);
bool coh_tell_run(struct coh_machine *m);

/* ---- coh_act.c: what the directory decides, time, deaths -------------------
 */

/* Does what is in c->out. `bytes`: those that came with the event; `give`: the
 * give-back that it was, or NULL. */
void coh_act(struct coh *c, const uint8_t *bytes, struct coh_give *give);
/* Something waits to be sent, to be looked at when the batch ends. */
void coh_machine_due(struct coh_machine *m);
void coh_node_due(struct coh_node *n);
/* The machine is dead, or as good as that. */
void coh_machine_gone(struct coh_machine *m);
void coh_port_gone(void *state, const struct tor_port *port);
/* Whether nothing of a former machine of that number is under way. */
bool coh_machine_is_idle(const struct coh_machine *m);
void coh_batch_end(void *state);
void coh_timer_start(struct coh *c);
/* Runs after that long at the latest. */
void coh_timer_in(struct coh *c, uint64_t in_ns);

/* ---- coh_ctl.c (see coh_ctl.h), coh_show.c: options, control calls, reports
 */

int coh_parse(const char *text, struct coh_options *out) MUST_CHECK;
int coh_control(void *state, const char *text, struct json_out *out);
void coh_show(const struct coh *c, struct json_out *out);
/* NULL, or what does not hold. */
const char *coh_check(const struct coh *c);

#endif
