/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of the play "elastic": one queue and one file, whose blocks run the
 * shipped operators on parsed messages; what the model knows of them; clients
 * with one operation under way, each with a connection that may be cut.
 */
#ifndef AQ_PLAYS_ELASTIC_PLAY_PRIV_H
#define AQ_PLAYS_ELASTIC_PLAY_PRIV_H

#include "block/blk.h"
#include "elastic_play.h"

enum {
	EP_CLIENTS = 6,
	EP_BLOCKS = 512, /* of an object */
	EP_BLOCK_BYTES = 1536,
	EP_VALUE_MAX = 300,
	EP_INSIDE = 100, /* larger values are fetched */
	EP_VALUES = 1 << 14,
	EP_WAYS = 64, /* messages and answers on their way */
};

enum ep_fate {
	EP_NOT_THERE,
	EP_READY,
	EP_GONE,
	EP_PARKED, /* + client */
};

/* A block, and what the model knows of it: values in the order in which they
 * were put. */
struct ep_block {
	struct blk_block block;
	uint8_t mem[EP_BLOCK_BYTES];
	uint32_t busy; /* client + 1 whose value is fetched */
	unsigned count;
	uint32_t id[EP_BLOCK_BYTES / 4]; /* more than fit at a time */
};

struct ep_object {
	enum block_kind kind;
	unsigned blocks;
	struct ep_block *block[EP_BLOCKS];
};

/* An operation of a client: a step of what it wants. */
struct ep_ask {
	enum block_opcode opcode;
	unsigned object, number;
	uint64_t sequence, acked, arg;
	uint32_t id, length; /* of a value */
};

struct ep_client {
	unsigned index, life, conn;
	uint64_t sequence;
	bool is_waiting;
	unsigned patience; /* turns left until it connects anew */
	struct ep_ask ask;
	/* What it works on. */
	unsigned object;
	bool puts, parks;
	uint32_t id; /* of the value that it puts; 0: none */
	unsigned tail[2], head;
	bool is_counting; /* items before the tail */
	unsigned count_at;
	uint64_t counted;
	uint64_t start;	 /* of the file's block `tail` */
	uint64_t parked; /* its name; 0: none */
	unsigned parked_at;
	uint32_t parked_id;
	bool is_back; /* it is for others now */
	/* The item that a get of this number has taken for good. */
	uint64_t got_sequence;
	uint32_t got_id;
};

/* A message or an answer that travels. */
struct ep_way {
	bool is_used, is_answer;
	unsigned delay; /* turns */
	unsigned client, life, conn;
	struct ep_ask ask;
	struct block_result result;
	uint32_t id; /* of an item */
	bool is_whole;
};

struct ep {
	struct play_run run;
	struct elastic_play_counts *n;
	uint64_t bound;
	struct ep_object object[2];
	struct ep_client client[EP_CLIENTS];
	struct ep_way way[EP_WAYS];
	uint32_t values;
	uint8_t fate[EP_VALUES];
	bool was_answered[EP_VALUES]; /* its put or append */
	bool was_delivered[EP_VALUES];
	uint64_t offset[EP_VALUES];
	uint64_t in; /* items of the queue */
};

/* ---- elastic_block.c: the node ------------------------------------------- */

int ep_grow(struct ep *p, unsigned object);
/* A message has arrived; what it says happens, or waits. False: the block
 * fetches a value for another one. */
bool ep_arrive(struct ep *p, struct ep_way *w);
/* The value of a client is there, or its client has died. */
void ep_fetched(struct ep *p, struct ep_way *w, bool is_there);
/* The node knows that a client is dead. */
void ep_bury(struct ep *p, unsigned client, unsigned life);
/* A client has had no connection for some time. */
void ep_away(struct ep *p, struct ep_client *c);
void ep_fill(uint32_t id, uint32_t length, uint8_t *out);
bool ep_is_value(uint32_t id, uint32_t length, const uint8_t *bytes);
uint32_t ep_length(uint32_t id);

/* ---- elastic_client.c ---------------------------------------------------- */

void ep_client_ask(struct ep *p, struct ep_client *c);
void ep_client_hear(struct ep *p, struct ep_client *c, const struct ep_way *w);

#endif
