/* SPDX-License-Identifier: Apache-2.0 */
/* The play's inside: the world drawn from the seed, and its threads. */
#ifndef AQ_PLAYS_OFFLOAD_PLAY_PRIV_H
#define AQ_PLAYS_OFFLOAD_PLAY_PRIV_H

#include "offload_play.h"
#include "rig/offload_rig.h"
#include "sim/fiber.h"

enum {
	OP_THREADS_MAX = 6,
	OP_HOSTS_MAX = 2,
	OP_WINDOW_MAX = 24,
	OP_SHARED_MAX = 3, /* of a window: the checker can do few at once */
	OP_KEYS_MAX = 16,
	OP_SLOT_BYTES = 256, /* a shared record has at most this many */
	OP_OWN_BYTES = 16384,
	OP_OWN_MAX = 6000, /* bytes of one private request */
};

struct op;

/* A request under way. */
struct op_flight {
	int64_t id; /* 0: none */
	bool is_write;
	bool is_own;
	uint32_t key;
	int64_t lin;
	uint64_t offset;
	uint32_t len;
	uint8_t buf[OP_OWN_MAX];
	uint8_t expect[OP_OWN_MAX]; /* of an own read */
	uint8_t known[OP_OWN_MAX];  /* bytes of it that are certain */
};

struct op_thread {
	struct op *p;
	struct rig_app *app;
	uint32_t index;
	struct rng rand;
	uint32_t left; /* requests to issue */
	uint32_t window;
	struct op_flight flight[OP_WINDOW_MAX];
	uint64_t own_at; /* of its own bytes in the region */
	uint8_t shadow[OP_OWN_BYTES];
	uint8_t known[OP_OWN_BYTES];
	bool done;
};

struct op {
	struct play_run run;
	struct offload_play_counts *n;
	uint64_t seed;
	uint64_t point;	     /* doorbell of the first engine; 0: none */
	unsigned point_when; /* 0 before, 1 inside, 2 after */
	struct rig rig;
	struct rig_tor *tor;
	char program[96]; /* of the switch */
	struct rig_host *host[OP_HOSTS_MAX];
	uint32_t host_count;
	struct op_thread *thread[OP_THREADS_MAX];
	uint32_t thread_count;
	uint32_t keys;
	uint32_t slot_bytes;
	struct sim_faults faults;
	struct offload_engine_config engine_config;
	struct rig_engine *engine; /* the one that serves */
	uint32_t engines;	   /* ever */
	bool healed;
	bool may_lose_node;
};

/* ---- offload_thread.c --------------------------------------------------- */

void op_thread_main(void *arg);
/* The thread's host died: requests under way may happen or not. */
void op_thread_died(struct op_thread *t);

/* ---- offload_fault.c ---------------------------------------------------- */

/* The fiber that makes faults, ends them, and watches progress. */
void op_fault_main(void *arg);
int op_engine_start(struct op *p, struct rig_engine **out) MUST_CHECK;

#endif
