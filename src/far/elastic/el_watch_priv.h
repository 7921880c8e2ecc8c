/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching an object. Each block that may still have events is a tail, and each
 * node that has some of them is an ear: a message there waits for the next
 * entries of all its tails. In which order they are told is the business of
 * wire/block_watch.h.
 */
#ifndef AQ_EL_WATCH_PRIV_H
#define AQ_EL_WATCH_PRIV_H

#include "el_priv.h"
#include "wire/block_watch.h"

struct el_ear;

struct el_tail {
	struct block_tail tail;
	struct el_block block;
	struct el_ear *ear;
	bool is_away;  /* another member of its chain tells events now */
	bool has_next; /* the block after it was added */
};

struct el_ear {
	struct el_port *port;
	uint8_t *buf; /* a message and an answer */
	struct ibv_mr *mr;
	struct client_link *link; /* that the message was sent over */
	bool is_asked;
	bool is_kicked; /* its wait is ended */
	uint32_t tag;
	unsigned count; /* tails that were asked for */
	struct el_tail *asked[BLOCK_OPS_MAX];
};

struct aq_watch {
	struct el_object object;
	uint32_t events;
	struct block_reader reader;
	unsigned tail_room;
	unsigned ear_count;
	struct el_ear *ear[CLIENT_NODE_MAX];
	int epoll, timer;
	uint64_t tick_ns;   /* of the timer, now */
	uint64_t heard_ns;  /* the last event */
	bool dozes;	    /* nobody else is woken by frames */
	uint64_t map_ns;    /* when to ask for the map again; 0: not */
	unsigned map_tries; /* in vain */
	int err;	    /* what is told when nothing else is left */
};

/* ---- el_watch_tail.c ----------------------------------------------------- */

/* Tails for all that is there now. */
int el_tails_start(struct aq_watch *w, uint64_t deadline_ns) MUST_CHECK;
/* Tails for what has come; asks for the map where that is due. *has_more: there
 * may be something to be told now. */
int el_tails_follow(struct aq_watch *w, bool *has_more) MUST_CHECK;
/* The chain of a tail has another reader, or soon: the map says which. */
void el_tail_lose(struct aq_watch *w, struct el_tail *t);
/* What has nothing to say any more. */
void el_tails_sweep(struct aq_watch *w);
void el_tails_free(struct aq_watch *w);

/* ---- el_watch_ear.c ------------------------------------------------------ */

int el_ear_find(struct aq_watch *w, const char *node,
		struct el_ear **out) MUST_CHECK;
/* Sends messages for tails that have nothing left to be told. */
int el_ears_ask(struct aq_watch *w) MUST_CHECK;
/* Takes answers that have come, and how many. */
int el_ears_hear(struct aq_watch *w);
/* From now on an answer makes the descriptor readable. */
void el_ears_arm(struct aq_watch *w);
void el_ears_free(struct aq_watch *w);

#endif
