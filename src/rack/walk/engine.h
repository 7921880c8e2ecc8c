/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: many walks at a time on one thread. Each has a workspace; a turn
 * runs an iteration of some, prefetches the nodes that they go to, and takes
 * the others, so that memory is fetched while others run. Tenants are served in
 * turn and have equal shares of the workspaces. Nothing is allocated after
 * open.
 *
 * All calls come from one thread, or under one lock. `done` may start walks,
 * but forgets none.
 */
#ifndef AQ_WALK_ENGINE_H
#define AQ_WALK_ENGINE_H

#include "program.h"

enum {
	WALK_WORKSPACES = 64,
};

/* How a walk ended; the numbers travel. */
enum walk_status {
	WALK_DONE = 0,	    /* at: the last node */
	WALK_MORE = 1,	    /* `left` is 0; at: where to go on */
	WALK_ELSEWHERE = 2, /* at: a node that is not here */
	WALK_FAULT = 3,	    /* at: the pointer that leads nowhere, or the node
			     * whose iteration ended with FAULT */
	WALK_FAIL = 4,	    /* at: the program's code, 0 to 255 */
	WALK_NO_PROGRAM = 5,
	WALK_NO_RIGHT = 6, /* at: the node that may not be accessed so */
};

/* Where the bytes of an offset are. */
enum walk_reach {
	WALK_REACH_HERE,
	WALK_REACH_ELSEWHERE,
	WALK_REACH_FAULT,
	WALK_REACH_NO_RIGHT,
};

/* Memory that the host has: `len` bytes from offset `from` on. */
struct walk_span {
	uint64_t from, len;
	uint8_t *bytes;
};

/* What the engine asks its host, and what it tells it. */
struct walk_host {
	void *ctx;
	/*
	 * `at` is the offset of the first byte of a window (the pointer plus
	 * load_lo, modulo 2^64), `len` its bytes, `write` whether the program
	 * stores. HERE sets *span, which has these bytes and as many around
	 * them as this walk may access; anything else leaves it. It is used
	 * until *epoch changes, or, without an epoch, until the turn ends.
	 */
	enum walk_reach (*reach)(void *ctx, void *handle, uint64_t at,
				 uint32_t len, bool write,
				 struct walk_span *span);
	/* The walk has left its workspace: the pad is the host's again. */
	void (*done)(void *ctx, void *handle, enum walk_status status,
		     uint64_t at, uint32_t left, uint32_t took);
	const uint32_t *epoch; /* may be NULL */
};

struct walk_job {
	const struct walk_program *program; /* stays open until the end */
	void *handle;	      /* the host's name of this walk; unique */
	const void *tenant;   /* who pays; only compared */
	uint8_t *pad;	      /* pad_bytes of the image, until the end */
	uint32_t given_bytes; /* of the pad that count; the rest is cleared */
	uint64_t at;	      /* pointer of the first node */
	uint32_t left;	      /* iterations allowed */
};

struct walk_engine;

int walk_engine_open(const struct walk_host *host,
		     struct walk_engine **out) MUST_CHECK;
/* Forgets all walks without a word. */
void walk_engine_close(struct walk_engine *engine);

/*
 * -EAGAIN: all workspaces, or the tenant's share of them, are in use; ask again
 * after a `done`. The first node is fetched at once; `done` is never called
 * from here. -EMSGSIZE: more pad was given than the program has.
 */
int walk_engine_start(struct walk_engine *engine,
		      const struct walk_job *job) MUST_CHECK;
/* At most this many iterations. True: walks are still under way. */
bool walk_engine_turn(struct walk_engine *engine, uint32_t iterations_max);
/* Ends it without `done`; its pad is the host's again. False: there is none. */
bool walk_engine_forget(struct walk_engine *engine, const void *handle);

uint32_t walk_engine_busy(const struct walk_engine *engine); /* walks */
/* Whether a program must not be closed yet. */
bool walk_engine_uses(const struct walk_engine *engine,
		      const struct walk_program *program);
/* Iterations since open. */
uint64_t walk_engine_iterations(const struct walk_engine *engine);

#endif
