/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of wfig.h tell each other. */
#ifndef AQ_FIGURES_WFIG_PRIV_H
#define AQ_FIGURES_WFIG_PRIV_H

#include "rig/stage.h"
#include "sim/fiber.h"
#include "wfig.h"
#include "wfig_pipes.h"

enum {
	WFIG_THREADS_MAX = 128,
};

struct wfig_cache;

/* A thread of the client. */
struct wfig_client {
	struct wfig_phase *phase;
	uint32_t index;
	struct rig_pair pair[WFIG_NODES_MAX];
	uint8_t *buf; /* a result of a walk and its pad, or what was read */
	struct ibv_mr *mr;
	struct sim_wait wait;
	bool is_waiting, failed;
	struct rng rand;
	struct wfig_ask ask;
};

/* One run: a stage with a client and its memory nodes. */
struct wfig_phase {
	const struct wfig_config *cfg;
	const struct wfig_data *data;
	struct rig_stage *stage;
	struct sim *sim;
	struct rig_host *host, *node[WFIG_NODES_MAX];
	struct rig_region *region[WFIG_NODES_MAX];
	struct wfig_pipes *pipes[WFIG_NODES_MAX];
	struct ibv_cq *cq;
	struct wfig_cache *cache;
	struct wfig_client client[WFIG_THREADS_MAX];
	uint32_t threads;
	uint64_t work_ps;     /* of the application, per request */
	uint32_t ops_max;     /* of each thread; 0: until the time is over */
	uint64_t *latency_ps; /* of those, room for ops_max or NULL */
	uint32_t left;	      /* threads that run */
	uint64_t added;	      /* nodes */
	/* What was counted. */
	uint64_t ops, trips, traverse_ps, total_ps, wrong;
};

static inline uint32_t wfig_or_else(uint32_t value, uint64_t otherwise)
{
	return value ? value : (uint32_t)otherwise;
}

/* Whether memory nodes execute walks, and whether a board does. */
bool wfig_has_walker(enum wfig_system system);
bool wfig_is_accelerator(enum wfig_system system);

/* Of a phase with cfg, data and threads. Close it also after a failure. */
int wfig_phase_open(struct wfig_phase *p) MUST_CHECK;
void wfig_phase_close(struct wfig_phase *p);
/* Starts the client's threads. */
int wfig_phase_spawn(struct wfig_phase *p) MUST_CHECK;

/* A READ into the client's buffer. False: it failed. */
bool wfig_read(struct wfig_client *c, uint32_t node, uint64_t local,
	       uint32_t bytes);
void wfig_sleep(struct wfig_client *c, uint64_t ps);
/* Fibers: a thread of the client, and who looks at its completions. */
void wfig_client_thread(void *client);
void wfig_client_poll(void *phase);

/* Pages of the pieces at the client. */
int wfig_cache_create(struct wfig_phase *p, uint32_t ppm,
		      struct wfig_cache **out) MUST_CHECK;
void wfig_cache_destroy(struct wfig_cache *k);
/* Fills it by requests without time. */
void wfig_cache_warm(struct wfig_cache *k, uint32_t ops, uint64_t seed);
/* The bytes, once they are here; *spent_ps is time that the caller owes, which
 * is paid before a fault. NULL: a READ failed. Valid until the caller sleeps.
 */
uint8_t *wfig_cache_get(struct wfig_cache *k, struct wfig_client *c,
			uint32_t node, uint64_t local, uint64_t *spent_ps);

#endif
