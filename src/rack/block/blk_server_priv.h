/* SPDX-License-Identifier: Apache-2.0 */
/* What the block server, its guests and their jobs share. */
#ifndef AQ_BLK_SERVER_PRIV_H
#define AQ_BLK_SERVER_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "blk_chain.h"
#include "blk_order.h"
#include "blk_server.h"

enum {
	BLK_SLOTS = 4,	   /* messages of a guest; a client has one under way */
	BLK_PUSHES = 16,   /* data that one message has brought, at most */
	BLK_HANDLES = 256, /* of a guest */
	BLK_LINES_MAX = 256, /* protection domains with guests */
	BLK_LINE_GUESTS = 1024,
	BLK_LINE_DEPTH = BLK_LINE_GUESTS * BLK_SLOTS * 3,
	BLK_LINE_SESSIONS = 2 * BLK_LINE_GUESTS,
	BLK_ENDED = 1024, /* blocks that are gone, of which a count is kept */
	BLK_WAKES = 16,	  /* held messages that go on between two looks */
};

/* The low half of a wr_id: what it was for, and the slot. */
enum {
	BLK_WR_RECEIVE = 0,
	BLK_WR_PULL = 1u << 8,
	BLK_WR_ANSWER = 2u << 8,
	BLK_WR_SLOT = 0xff,
};

struct blk_entry {
	struct blk_block block;
	struct blk_server *server;
	uint32_t index;
	uint64_t generation;
	uint64_t object;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	bool is_leaving;
	bool is_frozen;	    /* it is kept for its image alone */
	bool is_spilled;    /* it lies in a file */
	bool is_broken;	    /* which has failed; nobody uses it any more */
	uint64_t halted_by; /* the image that its changes wait for; 0: none */
	uint64_t halted_until_ns;
	uint32_t under_way;   /* data that leaves from it, or comes to it */
	struct blk_job *busy; /* fetches a value, or is with the chain */
	struct list waiting;  /* jobs, by their link */
	struct list holds;    /* of jobs that wait for an event */
	/* Of a chain: */
	struct blk_chain *chain; /* NULL: it has none */
	struct list chained;	 /* of the server */
	bool is_called;		 /* the answer may come at once */
};

/* How many events a block had that is gone. */
struct blk_ended {
	uint64_t object;
	uint64_t generation;
	uint64_t total;
};

enum blk_job_state {
	BLK_JOB_IDLE,
	BLK_JOB_RUNS,
	BLK_JOB_WAITS, /* for a block */
	BLK_JOB_PULLS,
	BLK_JOB_CHAINS, /* until all members have it */
	BLK_JOB_ANSWERS,
	BLK_JOB_HELD, /* for an event */
};

/* One operation of a message that is held. */
struct blk_hold {
	struct list link; /* of its block */
	struct blk_job *job;
	uint32_t events;
};

/* A message that is executed. */
struct blk_job {
	struct blk_guest *guest;
	uint32_t slot;
	enum blk_job_state state;
	struct list link;
	struct block_message message;
	struct block_op op[BLOCK_OPS_MAX];
	unsigned at; /* which operation is next */
	struct blk_order order;
	uint64_t since_ns; /* when it began to wait for a chain */
	bool may_hold;	   /* the message asks for it */
	bool may_not_hold;
	bool has_news;
	bool is_woken; /* it is on that list */
	struct block_writer reply;
	unsigned push_count;
	struct blk_entry *push[BLK_PUSHES];
	uint32_t *pins[BLK_PUSHES]; /* of what is pushed; NULL: none */
	struct blk_hold hold[BLOCK_OPS_MAX];
};

struct blk_handle {
	bool is_used;
	struct blk_right right;
};

/* All guests of one protection domain: see pframe_line, whose sister this
 * is. */
struct blk_line {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	uint32_t guests;
	uint32_t sessions;
	atomic_bool is_looked;
};

struct blk_client {
	struct list link; /* of the server's sessions */
	uint8_t id[BLOCK_SESSION_BYTES];
	struct ibv_pd *pd;
	struct blk_guest *guest; /* NULL: none now */
	uint64_t left_ns;
	bool has_returned; /* what it had taken, since then */
};

struct blk_guest {
	struct blk_server *server;
	struct blk_line *line;
	struct blk_client *client;
	struct ibv_pd *pd;
	char tenant[BLK_TENANT_MAX + 1];
	uint8_t by[BLK_BY_BYTES]; /* which token it was made with */
	uint32_t id;
	bool was_known;	  /* its session */
	bool is_fenced;	  /* a successor has come, or it was cut off */
	unsigned denials; /* in a row */
	struct ibv_qp *qp;
	uint8_t *buf; /* per slot a message and a reply */
	struct ibv_mr *buf_mr;
	struct blk_handle handle[BLK_HANDLES];
	struct blk_job job[BLK_SLOTS];
};

struct blk_server {
	struct blk_server_config config;
	struct ibv_comp_channel *channel;
	struct ibv_cq *none;  /* nothing ever completes there */
	pthread_mutex_t lock; /* all below, guests and blocks */
	uint32_t next_id;
	atomic_uint line_count; /* BLKLINES-1 */
	struct blk_line line[BLK_LINES_MAX];
	struct blk_guest *guest[BLK_GUESTS_MAX]; /* at id modulo that */
	struct list clients;
	struct blk_entry *entry[BLK_INDEX_MAX];
	unsigned entry_end;	       /* none has been used from here on */
	uint64_t heard[BLK_INDEX_MAX]; /* largest generation of each */
	struct list ready;	       /* jobs whose block has become free */
	struct list chained;	       /* blocks, by their link */
	uint64_t ticked_ns;
	struct ibv_cq *trunk_cq; /* NULL: there are no trunks yet */
	atomic_bool has_trunks;
	struct blk_trunk *trunk[BLK_TRUNKS_MAX];
	struct list woken; /* jobs that were held */
	bool has_woken; /* some, as the thread of blk_server_step knows; other
			 * threads let those go on that they have woken */
	struct blk_ended ended[BLK_ENDED];
	unsigned ended_at;
	uint8_t answer[BLOCK_BATCH_MAX]; /* is put together there */
	struct blk_counts counts;
};

/* ---- blk_server.c -------------------------------------------------------- */

/* Goes on with jobs whose block has become free. */
void blk_server_go_on(struct blk_server *s);
struct blk_line *blk_line_join(struct blk_server *s, struct ibv_pd *pd);
/* The session leaves all blocks of its tenant. */
void blk_server_leave(struct blk_server *s, const struct ibv_pd *pd,
		      const uint8_t session[BLOCK_SESSION_BYTES]);
void blk_server_end_session(struct blk_server *s, struct blk_client *c);
/* It has come back: what chains were to give back stays. */
void blk_server_welcome(struct blk_server *s, struct blk_client *c);

/* ---- blk_spill.c: under the server's lock -------------------------------- */

/* Whether the block cannot be used any more. */
bool blk_spill_is_broken(struct blk_entry *e);
/* What touches a block's memory, for one that lies in a file, too: a fault ends
 * it midway, and the block is broken then, which the answer says. */
uint8_t *blk_spill_begin(struct blk_entry *e, const struct blk_request *r,
			 struct blk_answer *a);
void blk_spill_finish(struct blk_entry *e, const struct blk_request *r,
		      struct blk_answer *a);
void blk_spill_leave(struct blk_entry *e, const uint8_t *session);
void blk_spill_give_back(struct blk_entry *e, const uint8_t *session);
/* Makes the block in its memory. */
int blk_spill_init(struct blk_entry *e, const struct blk_place *p) MUST_CHECK;
/* Copies data of the block; false: it is broken. */
bool blk_spill_copy(struct blk_entry *e, void *to, const void *from,
		    size_t bytes);

/* ---- blk_job.c: under the server's lock ---------------------------------- */

void blk_job_start(struct blk_job *j, uint32_t len_bytes);
/* Its first operation is next. */
void blk_job_begin(struct blk_job *j);
void blk_job_go_on(struct blk_job *j);
void blk_job_pulled(struct blk_job *j, bool is_ok);
void blk_job_answered(struct blk_job *j);
/* Its queue pair will be gone: it waits for nothing any more. */
void blk_job_detach(struct blk_job *j);
/* Its queue pair is gone. */
void blk_job_drop(struct blk_job *j);

/* Those that wait for the block try again. */
void blk_job_let_in(struct blk_entry *e);
/* Answers the operation that waits for the block, or is with its chain. */
void blk_job_chained(struct blk_job *j, struct blk_entry *e,
		     const struct blk_answer *a);

/* ---- blk_halt.c ---------------------------------------------------------- */

/* Changes go on, if they waited. */
void blk_halt_end(struct blk_entry *e);
void blk_halt_tick(struct blk_entry *e, uint64_t now_ns);

/* ---- blk_chained.c ------------------------------------------------------- */

/* Of a new block. -ENOMEM. */
int blk_chained_init(struct blk_server *s, struct blk_entry *e,
		     bool has_state) MUST_CHECK;
void blk_chained_release(struct blk_entry *e);
/* All that wait for it look elsewhere. */
void blk_chained_flush(struct blk_entry *e);
void blk_chained_tick(struct blk_server *s, uint64_t now_ns);

/* ---- blk_trunk.c --------------------------------------------------------- */

/* False: it cannot be sent now. */
bool blk_trunk_send(struct blk_server *s, const struct blk_member *to,
		    struct blk_link_message *m);
/* Takes in what has come; returns how much that was. */
unsigned blk_trunks_look(struct blk_server *s);

/* ---- blk_hold.c: the same ------------------------------------------------ */

/* Executes BLOCK_WATCH; `room` bytes of the answer are left. */
void blk_hold_watch(struct blk_job *j, const struct blk_entry *e,
		    const struct block_op *op, uint32_t room,
		    struct block_result *r);
/* How many events a block had that is refused. */
void blk_hold_gone(const struct blk_job *j, const struct block_op *op,
		   struct block_result *r);
/* True: the message waits. */
bool blk_hold_park(struct blk_job *j);
void blk_hold_drop(struct blk_job *j);
/* Those who wait for what has happened to the block; or all, at its end. */
void blk_hold_wake(struct blk_server *s, struct blk_entry *e, bool is_end);
void blk_hold_end_block(struct blk_server *s, struct blk_entry *e);
/* Executes so many of the woken ones; returns how many. */
unsigned blk_hold_run(struct blk_server *s, unsigned most);
/* Answers what the guest has waiting, as it is. */
void blk_hold_finish(struct blk_guest *g);

/* ---- blk_guest.c --------------------------------------------------------- */

uint8_t *blk_guest_message(const struct blk_guest *g, uint32_t slot);
uint8_t *blk_guest_reply(const struct blk_guest *g, uint32_t slot);
int blk_guest_receive(struct blk_guest *g, uint32_t slot) MUST_CHECK;
/* Ends it: whoever looks after connections finds it broken. */
void blk_guest_break(struct blk_guest *g);
void blk_guest_settle(struct blk_guest *g);

#endif
