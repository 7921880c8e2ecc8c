/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a rack handle sends heartbeats to which node or engine, and what
 * an answer means. Time and answers in, requests out: no thread, no lock and no
 * socket. heartbeat.c adds those, and the simulator its own.
 *
 * Each target has at most one request under way, which names its bonds, and
 * gets the next one when that has ended. No target waits for another.
 */
#ifndef AQ_CLIENT_HEARTBEAT_PLAN_H
#define AQ_CLIENT_HEARTBEAT_PLAN_H

#include "keepalive.h"

enum {
	HEARTBEAT_TARGETS =
		2 * CLIENT_NODE_MAX, /* nodes, and engines behind them */
};

/* One node or engine; its index is the bonds' `node`. */
struct heartbeat_pace {
	bool is_used;  /* there are bonds */
	bool is_due;   /* a request was filled and must be sent */
	bool is_busy;  /* a request is under way */
	bool has_more; /* bonds than fitted into the request */
	bool has_failed;
	uint32_t named; /* bonds in the request */
	uint32_t cycle; /* bonds with this number have been named */
	uint32_t heartbeat_ms;
	uint64_t start_ns; /* of the request */
	uint64_t next_ns;  /* not before */
};

struct heartbeat_plan {
	struct heartbeat_pace target[HEARTBEAT_TARGETS];
	uint32_t ids_max; /* bonds in one request */
};

/* What an answer says about the bonds that the request named. */
enum heartbeat_loss {
	HEARTBEAT_LOSS_NONE,   /* none is known to be lost */
	HEARTBEAT_LOSS_SOME,   /* the bonds that the answer names, if any */
	HEARTBEAT_LOSS_SILENT, /* all that are not patient */
	HEARTBEAT_LOSS_ALL,
};

void heartbeat_plan_init(struct heartbeat_plan *p, uint32_t ids_max);

/* Puts a bond into the request to that target; false: there is no memory. */
typedef bool (*heartbeat_name_fn)(void *ctx, uint32_t index,
				  const struct client_bond *bond);
/* Fills the requests that are due. Each is then sent, with heartbeat_plan_start
 * or, if it cannot be, heartbeat_plan_fail. */
void heartbeat_plan_look(struct heartbeat_plan *p, struct list *bonds,
			 uint32_t heartbeat_ms, uint64_t now_ns,
			 heartbeat_name_fn name, void *ctx);
bool heartbeat_plan_is_due(const struct heartbeat_plan *p, uint32_t index);
void heartbeat_plan_start(struct heartbeat_plan *p, uint32_t index,
			  uint64_t now_ns);
void heartbeat_plan_fail(struct heartbeat_plan *p, uint32_t index,
			 uint64_t now_ns);

/* The request has ended. `may_live`: its failure does not show that the target
 * is gone. */
enum heartbeat_loss heartbeat_plan_end(struct heartbeat_plan *p, uint32_t index,
				       int err, bool may_live, uint64_t now_ns);
typedef bool (*heartbeat_is_named_fn)(void *ctx, const char *id);
/* Marks bonds of that target as lost: those that the answer names, or, with
 * NULL, all that this cycle has named. */
void heartbeat_plan_lose(const struct heartbeat_plan *p, uint32_t index,
			 struct list *bonds, heartbeat_is_named_fn is_named,
			 void *ctx);

/* The target has (not) answered. Silence: patient bonds are silent, others are
 * lost. */
void heartbeat_plan_hear(const struct heartbeat_plan *p, uint32_t index,
			 struct list *bonds, bool is_silent);

/* Time until the next look, unless a request ends before. */
uint64_t heartbeat_plan_wait_ns(const struct heartbeat_plan *p,
				uint32_t heartbeat_ms, uint64_t now_ns);

#endif
