/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous far memory on a stage: memory nodes with one region over all of
 * them, application threads with their rings, engines that serve them, and what
 * memory nodes and applications do when one engine replaces another.
 */
#ifndef AQ_RIG_OFFLOAD_RIG_H
#define AQ_RIG_OFFLOAD_RIG_H

#include "offload/engine.h"
#include "offload/ring.h"
#include "stage.h"

enum {
	RIG_APPS_MAX = 64,
	RIG_ENGINES_MAX = 64,
	RIG_NODES_MAX = 4,
	RIG_SESSIONS_MAX = 1024, /* ever */
};

struct rig;
struct rig_tor;

struct rig_node {
	struct rig_host *host;
	struct rig_region *region;
	struct rig_gatherer *gatherer; /* NULL: it gathers nothing */
};

/* One application thread. */
struct rig_app {
	struct rig *rig;
	struct rig_host *host;
	struct offload_map map;
	void *memory;
	struct ibv_mr *mr;
	struct offload_ring ring; /* its region 0 is the rig's */
	struct rig_session *session;
	uint32_t epoch;
};

/* A process, or, without a host, the switch. */
struct rig_engine {
	struct rig *rig;
	struct rig_host *host;
	bool is_gone; /* the switch was restarted */
	struct ibv_cq *cq;
	struct offload_engine *engine;
	uint64_t counters[OFFLOAD_C_COUNT];
	bool stop;	  /* its loop ends */
	uint64_t work_ps; /* virtual time of turns that had something to do */
	/* What one turn of its loop has cost, in virtual time; NULL:
	 * nothing. */
	uint64_t (*cost_ps)(struct rig_engine *e, unsigned work);
	struct rig_meter seen; /* for cost_ps */
	uint64_t seen_counters[OFFLOAD_C_COUNT];
};

struct rig_session {
	struct rig_app *app;
	struct rig_engine *engine;
	uint32_t id;
	struct offload_session *session;
	struct rig_pair ring;
	struct rig_pair read[RIG_NODES_MAX];
	struct rig_pair write[RIG_NODES_MAX];
	bool node_down[RIG_NODES_MAX];
	uint32_t epoch;
	/* The packet numbers that the nodes expected when they ended it. */
	bool has_final[RIG_NODES_MAX];
	uint32_t final_psn[RIG_NODES_MAX];
};

struct rig {
	struct rig_stage *stage;
	struct rig_tor
		*tor; /* the switch between all; NULL: none. Its owner's */
	struct rig_node node[RIG_NODES_MAX];
	uint32_t node_count;
	uint64_t region_bytes;
	uint32_t stripe_shift;
	enum ibv_mtu mtu;
	uint32_t batch; /* of sessions; 0: the engine's */
	uint64_t flush_ns;
	struct rig_app *app[RIG_APPS_MAX];
	uint32_t app_count;
	struct rig_engine *engine[RIG_ENGINES_MAX];
	uint32_t engine_count;
	struct rig_session *session[RIG_SESSIONS_MAX];
	uint32_t session_count;
};

/*
 * Adds the nodes; region_bytes is a multiple of nodes stripes. Each `rails` of
 * them are one machine, to which an engine then has that many queue pairs,
 * since hardware has at most 16 READs under way on one.
 */
int rig_init(struct rig *rig, struct rig_stage *stage, uint32_t nodes,
	     uint32_t rails, uint64_t region_bytes,
	     uint32_t stripe_shift) MUST_CHECK;
/* Engines that are opened and attached to from now on have the nodes gather
 * small records. Without rails. */
int rig_gather(struct rig *rig) MUST_CHECK;
/* Ends all fibers of the stage; then the stage can be destroyed. */
void rig_release(struct rig *rig);

int rig_app_open(struct rig *rig, struct rig_host *host, uint64_t entries,
		 uint64_t wdata_bytes, uint64_t rdata_bytes,
		 struct rig_app **out) MUST_CHECK;
/* An engine with its thread, on this host or, NULL, on one of its own. */
int rig_engine_open(struct rig *rig, const char *name, struct rig_host *host,
		    const struct offload_engine_config *config,
		    struct rig_engine **out) MUST_CHECK;

/* The switch, which has the program, as an engine. */
int rig_engine_open_switch(struct rig *rig, struct rig_engine **out) MUST_CHECK;
/* SIGKILL; the switch is started again, and knows nothing. */
void rig_engine_kill(struct rig_engine *e);
/* At a doorbell of the process, or at a frame that comes to the switch, counted
 * from now on: before it, inside or after it. */
void rig_engine_kill_at(struct rig_engine *e, uint64_t at, unsigned when);
bool rig_engine_is_dead(const struct rig_engine *e);
/* The engine serves the application from now on; the session of the engine
 * before is ended. */
int rig_attach(struct rig_engine *engine, struct rig_app *app) MUST_CHECK;

/* 0: the session is served. */
int rig_session_err(const struct rig_session *s);
/* What node i says about the last writer that the rings show. */
struct offload_final rig_session_final(const struct rig_session *s, uint32_t i);
void rig_region_describe(struct rig *rig, struct offload_region_config *c);

/* The address of a byte of the region, to look into the nodes. */
uint8_t *rig_byte(struct rig *rig, uint64_t offset);
uint32_t rig_node_of(const struct rig *rig, uint64_t offset);

#endif
