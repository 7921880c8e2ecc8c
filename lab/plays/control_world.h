/* SPDX-License-Identifier: Apache-2.0 */
/* The rack of `aquifer sim control`: processes, messages, time. */
#ifndef AQ_PLAYS_CONTROL_WORLD_H
#define AQ_PLAYS_CONTROL_WORLD_H

#include "base/env.h"
#include "base/rng.h"
#include "control_play.h"
#include "controld/controld.h"
#include "ledger/ledger_mem.h"
#include "uplink/up_share.h"

#define MS 1000000ull

enum {
	CONTROLLERS = 3,
	NODES = 4,
	TENANTS = 2,  /* with quotas, from the beginning */
	NAMES = 3,    /* clients that make and remove one tenant each */
	WAITING = 96, /* requests that a controller has */
	EVENTS = 4096,
	LEASE_MS = 2000,
	ASK_MS = 2500, /* a node's patience */
	CLIENT_MS = 9000,
	PIECE = 1 << 20, /* bytes, what is handed out at a time */
	PROGRAMS = 6,	 /* that have names and blocks */
	PLACES = 24,	 /* for blocks, at each node */
	MEMBERS = 4,	 /* of a chain */
	OWNERS = 1 << 16,
	REGIONS = 3, /* that move from node to node */
	MOVERS = 3,
	IDS = 16, /* of moves, that a node remembers */
	PASTS = 4096,
	BLOCK_ROWS = 64, /* of each node */
	NAME_ROWS = 512,
	END_MS = 60000, /* of peace, at the end */
};

enum event_kind {
	EV_NONE,
	EV_REQUEST, /* reaches a controller */
	EV_REPLY,   /* reaches who asked */
	EV_TXN,	    /* reaches the ledger */
	EV_TXN_END, /* its result reaches the controller */
	EV_TICK,    /* of a controller */
	EV_START,   /* of a controller that was dead */
	EV_NODE,    /* a node looks what to do */
	EV_WORK,    /* of a node: memory is taken or given back */
	EV_CLIENT,
	EV_PROGRAM,
	EV_REGION, /* its program writes */
	EV_MOVER,
	EV_ORDER, /* a second one, that comes late */
	EV_KILL,  /* of a node */
	EV_FAULT,
};

struct message {
	unsigned controller;
	/* Who asked: a node's run, a program, or the administrator. */
	bool is_node, is_program, is_mover;
	bool is_undrain; /* of the node `about` */
	unsigned about;
	unsigned who;
	uint64_t run, id;
	uint64_t sent_ns; /* by its own clock */
	enum ctl_method method;
	char path[64];
	const char *token;
	char *body; /* heap */
	unsigned status;
};

struct txn {
	unsigned controller;
	uint64_t id, term;
	unsigned count;
	struct ledger_change change[LEDGER_CHANGES_MAX];
	int err;
};

struct event {
	uint64_t at_ns, order;
	enum event_kind kind;
	unsigned who;
	uint64_t number;
	struct message *message;
	struct txn *txn;
	struct order *order_late;
};

/* A request that waits at a controller. */
struct waiting {
	bool is_used;
	struct message *message;
	struct cd_held held;
	bool has_reply;
	struct ctl_reply reply;
	uint64_t mark;
	uint64_t number; /* of the beat, at this controller */
};

struct process {
	struct env env;
	struct world *world;
	uint64_t base_ns;
	double drift; /* of its clock */
	bool is_dead;
	uint64_t stopped_ns; /* until then it does nothing */
	uint64_t cut_ns;     /* until then no message gets through */
};

struct controller {
	struct process p;
	struct cd_core *core;
	struct ledger *ledger;
	uint64_t cut_store_ns;
	uint64_t cut_nodes_ns; /* until then only clients reach it */
	struct waiting waiting[WAITING];
	uint64_t txn;	      /* under way; 0: none */
	uint64_t txn_late_ns; /* it gives up then */
	uint64_t lead_ns;
	uint64_t heard_ns[NODES]; /* when it handled a beat */
	uint64_t beat[NODES];	  /* the last one that it handled */
	uint64_t broke_ns[NODES]; /* when that one's connection ended */
};

/* A copy of a block, and all of them in their order, as a node was told. */
struct member {
	unsigned node, index;
	uint64_t generation;
};

struct chain {
	uint64_t epoch; /* 0: nothing was told */
	unsigned count, full;
	struct member member[MEMBERS];
};

/* A place for a block. */
struct place {
	uint64_t generation; /* of the block there; 0: none */
	uint64_t heard;	     /* the largest that it was told of */
	uint64_t object;
	bool is_written, is_drained;
	/* Of one with copies: */
	uint64_t identity; /* 0: it has none */
	bool is_whole;	   /* it has all that the others have */
	uint64_t version;  /* of what is in it */
	struct chain chain;
};

/* Blocks that a node has to speak of. */
struct news {
	unsigned count;
	unsigned index[PLACES];
	uint64_t generation[PLACES];
};

/* The steps of a move, in their order (memnode/move.h). */
enum step {
	STEP_ARRIVE,
	STEP_LEAVE,
	STEP_COPY,
	STEP_SEAL,
	STEP_GIVE,
	STEP_TAKE,
	STEP_END,
};

struct order {
	enum step step;
	unsigned node, region;
	uint64_t move, birth, version;
	unsigned from, to;
	uint64_t from_run;
	uint64_t to_run; /* that has sealed it */
};

enum stage {
	AT_NONE,
	AT_HOME,
	AT_LEAVING,
	AT_SEALED,
	AT_ARRIVING,
};

/* A region at a node. */
struct region {
	enum stage stage;
	uint64_t birth, version, move;
	uint64_t until_ns; /* by the node's clock */
	unsigned from;
	uint64_t from_run;
};

/* What its program knows of a region. */
struct written {
	uint64_t birth, version;
	bool may_be_lost; /* its node was killed */
};

/* What was written last to a region, also when another one has its name. */
struct past {
	uint64_t birth, version;
};

struct ids {
	uint64_t id[IDS];
	unsigned next;
};

/* What is known of a node's drain. */
struct drained {
	bool is_sure; /* it was answered, and nobody has changed it since */
	uint64_t sure_ns;
	unsigned changes;
	unsigned undrains; /* on their way to controllers */
};

struct mover {
	unsigned doing, tries, change;
	bool is_clean; /* no undrain was on its way when it drained */
	unsigned from, to;
	uint64_t from_run;
	uint64_t asked, asked_ns, late_ns;
	struct order order;
};

struct node {
	struct process p;
	uint64_t run;
	unsigned at; /* the controller that it asks */
	struct up_state up;
	struct up_share share[TENANTS];
	uint64_t used[TENANTS];
	uint64_t asked;	  /* id of the request under way; 0: none */
	uint64_t late_ns; /* and when it gives up */
	bool is_joining;
	uint64_t term_max;    /* of answers that it took, in this run */
	bool is_known;	      /* the ledger has its row, for sure */
	uint64_t answered_ns; /* true time */
	uint64_t joined_ns;   /* in this run, true time; 0: not yet */
	struct place place[PLACES];
	struct news freed, failed;
	unsigned freed_said, failed_said;
	bool is_drained;
	uint64_t drain_order;
	struct region region[REGIONS];
	struct ids given, kept; /* moves from here */
	struct ids taken;	/* and to here */
	/* Of those that were given: what the beat under way says, and what a
	 * controller has answered to. */
	struct ids said, heard;
};

/* What may be, as far as a client knows. */
enum belief {
	ABSENT,
	PRESENT,
	ABANDONED, /* an answer was lost: the name is not used any more */
};

struct client {
	enum belief belief;
	uint64_t generation; /* of its name */
	uint64_t asked, late_ns;
	unsigned doing;
};

/* Of a folder, and of one object in it. */
struct program {
	uint64_t generation; /* of its name */
	bool has_name, has_object, is_queue, has_copies;
	int64_t written; /* the last block in which something is; -1: none */
	int64_t last;	 /* number of the object's last block; -1: none */
	uint64_t renewed_ns; /* when a renewal was asked for that was heard */
	uint64_t asked, asked_ns, late_ns;
	unsigned doing;
};

/* Whose a block is, as maps have said. */
struct owner {
	uint64_t generation, object;
	bool is_written;
};

/* Rows of the ledger, as its transactions have made them. */
struct block_row {
	uint64_t generation; /* 0: no row */
	uint64_t object, number, identity;
	bool is_full; /* of one with copies: it counts */
};

struct name_row {
	char kind[8]; /* "": no row */
	char key[40], name[40];
	uint64_t id, parent;
	bool is_lost;
};

struct rows {
	uint64_t allowance[TENANTS][NODES];
	struct block_row block[NODES][BLOCK_ROWS];
	uint64_t ended[OWNERS]; /* generations */
	struct name_row name[NAME_ROWS];
};

struct world {
	struct rng rng;
	uint64_t now_ns, order, ids;
	uint64_t seed;
	struct event event[EVENTS]; /* a heap */
	unsigned event_count;
	struct ledger_store *store;
	struct controller controller[CONTROLLERS];
	struct node node[NODES];
	struct client client[NAMES];
	uint64_t quota[TENANTS];
	bool is_set_up; /* the tenants exist */
	bool is_ending; /* nothing goes wrong any more, nobody wants more */
	struct program program[PROGRAMS];
	struct owner owner[OWNERS];
	struct written written[REGIONS];
	struct past past[PASTS];
	struct past chained[OWNERS]; /* by what all copies have in common */
	struct rows rows;
	struct drained drained[NODES];
	struct mover mover[MOVERS];
	struct control_result *result;
};

extern const char control_token_admin[], control_token_node[];
extern const char control_token_tenant[]; /* of the first one */
extern const char control_tenants[TENANTS][8];

/* ---- control_world.c ---------------------------------------------------- */

int world_open(struct world *w, const struct control_options *o,
	       struct control_result *result) MUST_CHECK;
void world_close(struct world *w);
void world_at(struct world *w, uint64_t at_ns, enum event_kind kind,
	      unsigned who);
/* Sends a request, which may be lost, doubled or late. */
void world_ask(struct world *w, const struct message *m, bool may_double);
/* The reply takes the request's place, which is given away. */
void world_reply(struct world *w, struct message *m);
/* A transaction on its way, or its result; it is given away. */
void world_txn(struct world *w, struct txn *t, enum event_kind kind);
void txn_free(struct txn *t);
/* The same order once more, later. */
void world_order(struct world *w, const struct order *o);
/* Takes the next event; false: the end. */
bool world_step(struct world *w);
void world_wrong(struct world *w, const char *fmt, ...) PRINTF(2, 3);
uint64_t process_now(const struct process *p);
void process_init(struct world *w, struct process *p);
bool chance(struct world *w, unsigned percent);
/* The same for faults: none at the end. */
bool goes_wrong(struct world *w, unsigned percent);
uint64_t between_ms(struct world *w, uint64_t low, uint64_t high);

/* ---- control_process.c: the controllers --------------------------------- */

void controller_start(struct world *w, unsigned i);
void controller_end(struct world *w, unsigned i);
void controller_request(struct world *w, struct message *m);
void controller_txn(struct world *w, struct txn *t);
void controller_txn_end(struct world *w, struct txn *t);
void controller_tick(struct world *w, unsigned i);
/* Connections of a node end: all of them, or only some. */
void controller_break(struct world *w, unsigned node, bool all);
/* What it can do now: answers, transactions. */
void controller_pump(struct world *w, unsigned i);
/* The one that leads in the ledger's term; -1: none. */
int controller_leader(const struct world *w);

/* ---- control_node.c ----------------------------------------------------- */

void node_start(struct world *w, unsigned i);
void node_look(struct world *w, unsigned i);
void node_work(struct world *w, unsigned i);
void node_reply(struct world *w, const struct message *m);
/* A controller is killed: who waits for its answer notices at once. */
void nodes_hung_up(struct world *w, unsigned controller);

/* ---- control_client.c --------------------------------------------------- */

void client_look(struct world *w, unsigned i);
void client_reply(struct world *w, const struct message *m);
/* Whether the answer says so, in the words that people read. */
bool says_nothing_happened(const struct message *m);
void world_fault(struct world *w);
/* A node is killed, and started anew. */
void world_kill(struct world *w, unsigned node);

/* ---- control_names.c, control_blocks.c ---------------------------------- */

void program_look(struct world *w, unsigned i);
void program_reply(struct world *w, const struct message *m);
void blocks_say(struct node *n, json_t *beat);
void blocks_hear(struct world *w, struct node *n, const json_t *answer);
void blocks_judge_end(struct world *w);

/* ---- control_chains.c --------------------------------------------------- */

void chains_say(const struct node *n, json_t *beat);
void chains_hear(struct node *n, const json_t *answer);
void chains_tick(struct world *w, unsigned node);
/* Judges a block with copies by its row in a map, and writes to it. Whether
 * that was answered. */
bool chain_use(struct world *w, const struct program *p, const json_t *row);

/* ---- control_regions.c -------------------------------------------------- */

/* Whether the node has done it. */
bool region_obey(struct world *w, struct order *o);
void regions_tick(struct node *n);
void regions_say(struct node *n, json_t *beat);
void regions_hear(struct world *w, struct node *n, const json_t *answer);
/* The node is killed. */
void regions_die(struct world *w, unsigned node);
void region_work(struct world *w, unsigned i);
void judge_regions(struct world *w);
void regions_judge_end(struct world *w);

/* ---- control_mover.c ---------------------------------------------------- */

void mover_look(struct world *w, unsigned i);
void mover_reply(struct world *w, const struct message *m);

/* ---- control_ledger.c --------------------------------------------------- */

/* A change that was committed. */
void ledger_judge_change(struct world *w, const struct ledger_change *c);
/* All of its transaction are. */
void ledger_judge_all(struct world *w);
void ledger_judge_step(struct world *w);

/* ---- control_judge.c ---------------------------------------------------- */

void judge_step(struct world *w);
void judge_tick(struct world *w, unsigned controller);

#endif
