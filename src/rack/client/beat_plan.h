/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a rack handle tells which node or engine that its connections are alive,
 * and what an answer means. Time and answers in, requests out: no thread, no
 * lock and no socket. beat.c puts those around it, and the simulator its own.
 *
 * Each target has at most one request under way, which names its bonds, and
 * gets the next one when that has ended. No target waits for another.
 */
#ifndef AQ_CLIENT_BEAT_PLAN_H
#define AQ_CLIENT_BEAT_PLAN_H

#include "keep.h"

enum {
	BEAT_TARGETS = 2 * CLIENT_NODE_MAX, /* nodes, and engines behind them */
};

/* One node or engine; its index is the bonds' `node`. */
struct beat_pace {
	bool is_used;  /* there are bonds */
	bool is_due;   /* a request was filled, and is to be sent */
	bool is_busy;  /* a request is under way */
	bool has_more; /* bonds than fitted into the request */
	bool has_failed;
	uint32_t named; /* bonds in the request */
	uint32_t cycle; /* bonds with this number have been named */
	uint32_t beat_ms;
	uint64_t start_ns; /* of the request */
	uint64_t next_ns;  /* not before */
};

struct beat_plan {
	struct beat_pace target[BEAT_TARGETS];
	uint32_t ids_max; /* bonds in one request */
};

/* What an answer says about the bonds that the request named. */
enum beat_loss {
	BEAT_LOSS_NONE, /* so far as is known */
	BEAT_LOSS_SOME, /* those that the answer names, if any */
	BEAT_LOSS_ALL,
};

void beat_plan_init(struct beat_plan *p, uint32_t ids_max);

/* Puts a bond into the request to that target; false: there is no memory. */
typedef bool (*beat_name_fn)(void *ctx, uint32_t index,
			     const struct client_bond *bond);
/* Fills the requests that are due. Each is then sent, with beat_plan_start or,
 * if it cannot be, beat_plan_fail. */
void beat_plan_look(struct beat_plan *p, struct list *bonds, uint32_t beat_ms,
		    uint64_t now_ns, beat_name_fn name, void *ctx);
bool beat_plan_is_due(const struct beat_plan *p, uint32_t index);
void beat_plan_start(struct beat_plan *p, uint32_t index, uint64_t now_ns);
void beat_plan_fail(struct beat_plan *p, uint32_t index, uint64_t now_ns);

/* The request has ended. `is_crowded`: somebody listens there, and does not
 * look. */
enum beat_loss beat_plan_end(struct beat_plan *p, uint32_t index, int err,
			     bool is_crowded, uint64_t now_ns);
typedef bool (*beat_is_named_fn)(void *ctx, const char *id);
/* Marks bonds of that target as lost: those that the answer names, or, with
 * NULL, all that this cycle has named. */
void beat_plan_lose(const struct beat_plan *p, uint32_t index,
		    struct list *bonds, beat_is_named_fn is_named, void *ctx);

/* Until the next look is worth it, unless a request ends before. */
uint64_t beat_plan_wait_ns(const struct beat_plan *p, uint32_t beat_ms,
			   uint64_t now_ns);

#endif
