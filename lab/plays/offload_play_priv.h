/* SPDX-License-Identifier: Apache-2.0 */
/* The play's inside: the world drawn from the seed, and its threads. */
#ifndef AQ_SCENARIO_OFFLOAD_PLAY_PRIV_H
#define AQ_SCENARIO_OFFLOAD_PLAY_PRIV_H

#include "offload_play.h"
#include "rig/offload_rig.h"
#include "sim/fiber.h"
#include "sim/lin.h"

enum {
	PLAY_THREADS_MAX = 6,
	PLAY_HOSTS_MAX = 2,
	PLAY_WINDOW_MAX = 24,
	PLAY_SHARED_MAX = 3, /* of a window: the checker can do few at once */
	PLAY_KEYS_MAX = 16,
	PLAY_SLOT_BYTES = 256, /* a shared record has up to so many */
	PLAY_OWN_BYTES = 16384,
	PLAY_OWN_MAX = 6000, /* bytes of one private request */
};

struct play;

/* A request under way. */
struct play_flight {
	int64_t id; /* 0: none */
	bool is_write;
	bool is_own;
	uint32_t key;
	int64_t lin;
	uint64_t offset;
	uint32_t len;
	uint8_t buf[PLAY_OWN_MAX];
	uint8_t expect[PLAY_OWN_MAX]; /* of an own read */
	uint8_t known[PLAY_OWN_MAX];  /* bytes of it that are certain */
};

struct play_thread {
	struct play *play;
	struct rig_app *app;
	uint32_t index;
	struct sim_rand rand;
	uint32_t left; /* requests to issue */
	uint32_t window;
	struct play_flight flight[PLAY_WINDOW_MAX];
	uint64_t own_at; /* of its own bytes in the region */
	uint8_t shadow[PLAY_OWN_BYTES];
	uint8_t known[PLAY_OWN_BYTES];
	bool done;
};

struct play {
	const struct offload_play_options *opt;
	struct offload_play_result *res;
	struct scenario_stage *stage;
	struct sim *sim;
	struct sim_rand rand;
	struct rig rig;
	struct lin_history *history;
	struct scenario_host *host[PLAY_HOSTS_MAX];
	uint32_t host_count;
	struct play_thread *thread[PLAY_THREADS_MAX];
	uint32_t thread_count;
	uint32_t keys;
	uint32_t slot_bytes;
	uint64_t next_value;
	struct sim_faults faults;
	struct offload_engine_config engine_config;
	struct rig_engine *engine; /* the one that serves */
	uint32_t engines;	   /* ever */
	bool healed;
	bool may_lose_node;
};

void PRINTF(2, 3) play_violation(struct play *p, const char *fmt, ...);

/* ---- offload_thread.c --------------------------------------------------- */

void play_thread_main(void *arg);
/* A host of threads died: what they had under way may happen or not. */
void play_thread_died(struct play_thread *t);

/* ---- offload_fault.c ---------------------------------------------------- */

/* The fiber that hurts, heals and watches. */
void play_fault_main(void *arg);
int play_engine_start(struct play *p, struct rig_engine **out) MUST_CHECK;

#endif
