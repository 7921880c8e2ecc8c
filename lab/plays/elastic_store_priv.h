/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second world of the play "elastic": a key-value store whose small blocks
 * run the shipped operators, each on a node of its own; clients that put, get,
 * add and delete, one key at a time or several in a message, and that move
 * slots between blocks at random, several of them the same ones; and a model
 * that knows every key at every moment.
 */
#ifndef AQ_PLAYS_ELASTIC_STORE_PRIV_H
#define AQ_PLAYS_ELASTIC_STORE_PRIV_H

#include "block/blk.h"
#include "elastic_play.h"

enum {
	ES_CLIENTS = 6,
	ES_BLOCKS = 5,
	ES_BYTES = 4096,
	ES_KEYS = 24, /* every second one has numbers */
	ES_VALUE_MAX = 700,
	ES_INSIDE = 100, /* larger values are fetched */
	ES_WAYS = 64,
	ES_PAYLOAD = ES_BYTES,
	ES_GROUP = 4,	       /* operations of a message, at most */
	ES_LOG = 2048,	       /* changes of a key */
	ES_GENERATIONS = 1024, /* of blocks, in all */
};

struct es_key {
	bool is_there;
	uint32_t id; /* of the value */
	int64_t number;
	uint64_t version;
	uint64_t top; /* the largest version that it ever had */
};

/* An operation of a message. */
struct es_part {
	enum block_opcode opcode;
	uint64_t sequence, arg;
	uint32_t length;
	uint32_t at; /* of its value, in the bytes of the message */
	unsigned op; /* which of its client's, if it is about a key */
};

/* What a client asks a block for. */
struct es_ask {
	unsigned block;
	uint64_t generation; /* of the block, as the client knows it */
	uint64_t acked;
	unsigned count;
	struct es_part part[ES_GROUP];
	uint8_t bytes[ES_PAYLOAD];
};

/* An operation on a key. */
struct es_op {
	enum block_opcode opcode;
	unsigned key;
	uint32_t id;
	int64_t number;
	uint64_t expect, sequence;
	bool is_done; /* its answer has come */
	bool was_executed;
	uint64_t executed; /* what was answered then */
};

/* Where a client is in a move. */
enum es_step {
	ES_NONE,
	ES_LOOK, /* at a block: what there is to do */
	ES_BIND,
	ES_START,
	ES_EXPORT,
	ES_IMPORT,
	ES_SETTLE,
	ES_REST,    /* at the target: is it bound? */
	ES_REST_AT, /* at its source: does it rest? */
	ES_UNBIND,
	ES_SEAL,
};

/* Between which blocks a move is. */
struct es_ends {
	unsigned from, to;
	uint64_t from_generation, to_generation;
	uint32_t token; /* 0: none */
};

struct es_client {
	unsigned index, life;
	unsigned conn[ES_BLOCKS];
	uint64_t sequence;
	bool is_waiting;
	unsigned patience, tag;
	unsigned nap; /* turns: its process is stopped */
	struct es_ask ask;
	/* Operations on keys, of which some may be in one message. */
	unsigned ops;
	struct es_op op[ES_GROUP];
	bool is_alone; /* the first one was refused, and goes by itself */
	unsigned at;   /* the block that it is looked for in */
	/* A move. */
	enum es_step step;
	struct es_ends old; /* of one that it takes for its own again */
	unsigned from, to;
	uint64_t from_generation, to_generation;
	uint32_t token;
	bool is_bottom, is_all, has;
	uint64_t batch, decided;
	uint32_t part;
	struct block_kv_batch_wire head;
	uint32_t carried_bytes;
	uint8_t carried[ES_PAYLOAD];
	/* A list, how many of its records were read, and whether all were read
	 * while they lay there. */
	bool has_list;
	uint32_t loaded;
	uint8_t list[ES_PAYLOAD];
};

struct es_way {
	bool is_used, is_answer;
	unsigned delay, client, life, conn, tag;
	struct es_ask ask;
	struct block_result result[ES_GROUP];
	uint8_t data[ES_PAYLOAD];
};

struct es_block {
	struct blk_block block;
	uint8_t mem[ES_BYTES] CACHE_ALIGNED;
};

struct es_logged {
	unsigned what; /* enum block_event */
	uint64_t value;
};

/* Who watches the store, and what it should be told. */
struct es_watcher {
	struct rng rand; /* its own */
	struct block_reader reader;
	struct block_tail *tail[ES_GENERATIONS];
	uint64_t ended[ES_GENERATIONS]; /* events of blocks that are gone */
	unsigned nap;			/* turns */
	uint64_t executed, heard, lost;
	bool is_unknown; /* how many were lost */
	unsigned log_count[ES_KEYS], told[ES_KEYS];
	struct es_logged log[ES_KEYS][ES_LOG];
};

/* How clients of a run are, so that some runs have what is rare in others. */
struct es_mood {
	unsigned mover;	  /* one of so many things that some do is a move */
	uint32_t nap_ppm; /* per step of a move: they are stopped */
	uint32_t list_nap_ppm; /* in the middle of a list */
	uint32_t leave_ppm;    /* they do not tidy up after a move */
	bool resumes;	       /* moves of long ago */
};

struct es {
	struct play_run *run;
	const struct es_mood *mood;
	struct elastic_play_counts *n;
	struct es_block block[ES_BLOCKS];
	uint64_t generations;
	struct es_client client[ES_CLIENTS];
	struct es_way way[ES_WAYS];
	struct es_key key[ES_KEYS];
	uint32_t ids;
	struct es_watcher watcher;
};

/* ---- elastic_store.c ----------------------------------------------------- */

/* A message is executed, and becomes its answer. */
void es_arrive(struct es *s, struct es_way *w);
uint32_t es_key_name(unsigned key, uint8_t out[8]);
uint32_t es_value(uint32_t id, uint8_t *out);
/* Makes the block another one, without anything. */
int es_renew(struct es *s, unsigned block);

/* ---- elastic_watcher.c --------------------------------------------------- */

/* A change of a key has happened; a block ends. */
void es_watcher_executed(struct es *s, unsigned key, enum block_event what,
			 uint64_t value);
void es_watcher_ended(struct es *s, const struct blk_block *b);
void es_watcher_turn(struct es *s);
/* All that happened was told, or counted as lost. */
void es_watcher_end(struct es *s);

/* ---- elastic_mover.c ----------------------------------------------------- */

/* The next message of a client that moves something. */
void es_mover_ask(struct es *s, struct es_client *c);
void es_mover_hear(struct es *s, struct es_client *c, const struct es_way *w);
/* Begins with a look at a block. */
void es_mover_begin(struct es *s, struct es_client *c, unsigned block);

/* ---- elastic_holder.c ---------------------------------------------------- */

/* All of it: 0 or -errno. */
int es_play(struct play_run *run, struct elastic_play_counts *n);

#endif
