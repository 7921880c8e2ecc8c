/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The third world of the play "elastic": one block with copies on several
 * nodes, shipped operators in shipped chains. Nodes are killed, stopped and cut
 * off; a controller that sees them late cuts them out and lets others join;
 * clients with old maps ask whom they know. What they were told is judged at
 * the end.
 */
#ifndef AQ_PLAYS_ELASTIC_CHAIN_PRIV_H
#define AQ_PLAYS_ELASTIC_CHAIN_PRIV_H

#include "block/blk_chain.h"
#include "elastic_play.h"

enum {
	EC_NODES = 6,
	EC_CLIENTS = 4,
	EC_BYTES = 1 << 20,
	EC_VALUE_MAX = 90 << 10,
	EC_OPS = 1500,
	EC_KEYS = 3, /* the last one is a number */
	EC_WAYS = 512,
	EC_EARS = 2, /* who watch it: one is slow */
	EC_REPLY = 700,
};

/* What a client did, as it saw it; times are turns. */
struct ec_op {
	enum block_opcode opcode;
	unsigned client, key;
	uint32_t id;	       /* of a value that was put; its length follows */
	uint32_t begun, ended; /* ended 0: not yet */
	enum block_status status;
	uint64_t value;
	uint32_t got; /* id of what was read or got; 0: nothing */
	bool is_whole;
};

struct ec_client {
	unsigned index;
	bool is_waiting;
	unsigned tag, patience;
	uint64_t sequence;
	struct ec_op *op;
	/* The map, as it was told. */
	unsigned head, reader;
	uint64_t head_generation, reader_generation;
};

/* One who watches the block: what it was told, in this order; 0 in `what` is
 * something that it has missed. */
struct ec_told {
	unsigned what;
	uint64_t value;
	uint32_t id;
};

struct ec_ear {
	unsigned index;
	bool is_waiting;
	unsigned tag, patience, nap;
	unsigned node;
	uint64_t generation;
	struct block_tail tail;
	uint8_t bytes[BLOCK_REPLY_MAX];
	unsigned count;
	struct ec_told told[2 * EC_OPS];
};

struct ec_way {
	bool is_used, is_answer, is_link, is_watch;
	unsigned delay, age, node, from;
	/* A client's message, or the answer to it. */
	unsigned client, tag;
	uint64_t generation;
	enum block_opcode opcode;
	uint64_t sequence, acked, arg;
	uint32_t length;
	struct ec_op result;
	uint8_t *bytes;
};

struct ec_node {
	struct ec *world;
	unsigned index, life;
	unsigned dead, stopped; /* turns left */
	unsigned cut_control, cut_clients, cut_peers;
	uint64_t offset_ns; /* of its clock */
	bool has_block;
	uint64_t generation;
	struct blk_block block;
	uint8_t *mem;
	struct blk_chain chain;
	/* Whose change is under way; a value that is fetched. */
	struct ec_way *fetches;
	unsigned fetch_left;
	struct blk_request request;
	uint8_t session[BLOCK_SESSION_BYTES];
	uint8_t *place;
	bool has_job;
	unsigned job_client, job_tag;
};

struct ec_member {
	unsigned node, life;
	uint64_t generation;
	uint64_t since; /* the epoch with which it came */
	bool is_full;
};

struct ec {
	struct play_run *run;
	struct elastic_play_counts *n;
	enum block_kind kind;
	uint32_t turn;
	bool is_calm; /* nothing goes wrong any more */
	unsigned copies, patience;
	struct ec_node node[EC_NODES];
	struct ec_client client[EC_CLIENTS];
	struct ec_ear ear[EC_EARS];
	struct ec_way way[EC_WAYS];
	unsigned op_count, ids;
	struct ec_op op[EC_OPS];
	/* The controller. */
	uint64_t epoch, generations;
	unsigned member_count;
	struct ec_member member[BLK_CHAIN_MAX];
	unsigned silent[EC_NODES];
};

/* ---- elastic_chain.c: nodes ---------------------------------------------- */

uint64_t ec_now_ns(const struct ec *w, const struct ec_node *n);
int ec_node_make(struct ec *w, struct ec_node *n, uint64_t generation,
		 bool has_state);
void ec_node_free(struct ec_node *n);
void ec_node_step(struct ec *w, struct ec_node *n);
/* False: it waits. */
bool ec_node_arrive(struct ec *w, struct ec_node *n, struct ec_way *m);
struct ec_way *ec_way_new(struct ec *w);
void ec_way_end(struct ec_way *m);

/* ---- elastic_chain_control.c --------------------------------------------- */

int ec_control_begin(struct ec *w);
void ec_control_step(struct ec *w);
/* What goes wrong in this turn. */
void ec_trouble(struct ec *w);
void ec_map(const struct ec *w, struct ec_client *c);
bool ec_is_reachable(const struct ec_node *n);

/* ---- elastic_chain_client.c ---------------------------------------------- */

void ec_client_step(struct ec *w, struct ec_client *c);
void ec_client_hear(struct ec *w, struct ec_client *c, const struct ec_way *m);
uint32_t ec_length(uint32_t id);
void ec_fill(uint32_t id, uint8_t *out);

/* ---- elastic_chain_watcher.c --------------------------------------------- */

void ec_ears_begin(struct ec *w);
void ec_ear_step(struct ec *w, struct ec_ear *e);
void ec_ear_hear(struct ec *w, struct ec_ear *e, const struct ec_way *m);
/* The node's half: events for who asks, in place of its question. */
void ec_ear_answer(struct ec *w, struct ec_node *n, struct ec_way *m);
/* Whether they know all that has happened. */
bool ec_ears_heard(const struct ec *w);
/* All that was told, against what was done. */
void ec_judge_ears(struct ec *w);

/* ---- elastic_chain_judge.c ----------------------------------------------- */

void ec_judge(struct ec *w);

/* All of it, for each kind: 0 or -errno. */
int ec_play(struct play_run *run, struct elastic_play_counts *n);

#endif
