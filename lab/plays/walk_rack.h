/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rack for the play "walk": shipped memory nodes on simulated NICs, and what
 * a client process knows of them. Requests to nodes take virtual time and reach
 * mem_node_handle; everything else goes over the simulated network.
 */
#ifndef AQ_PLAYS_WALK_RACK_H
#define AQ_PLAYS_WALK_RACK_H

#include <aquifer/aquifer.h>
#include <jansson.h>

#include "client/map.h"
#include "core/nic_host.h"
#include "memnode/memnode.h"
#include "play.h"

enum {
	WALK_NODES_MAX = 5,
	WALK_DEADLINE_MS = 500,
	WALK_RACKS_MAX = 32, /* of all processes that a play starts */
	WALK_SWITCH_PATH = 24,
};

struct ibv_pd;
struct rig_tor;
struct walk_link;

struct walk_node {
	struct rig_host *host;
	struct mem_node *mem; /* NULL: it is down */
	struct nic_provider provider;
	struct walk_nodes *of;
	bool busy;	 /* a request is inside */
	unsigned killed; /* how often; every other time its machine, too */
};

struct walk_nodes {
	struct play_run *run;
	struct rig_tor *tor; /* between all, with the program walk; or NULL */
	struct walk_node node[WALK_NODES_MAX];
	unsigned count;
	uint64_t call_ps; /* a request and its answer */
	struct mem_walk_config config;
	struct aq_rack *rack[WALK_RACKS_MAX];
	unsigned rack_count;
};

/* A new process with an empty pool. */
int walk_node_start(struct walk_nodes *all, unsigned index) MUST_CHECK;
/* SIGKILL; waits until no request is inside. */
void walk_node_kill(struct walk_nodes *all, unsigned index);
/* walk_switch.c: what the node takes for its switch's control socket. */
void walk_switch_path(const struct walk_node *n, char path[WALK_SWITCH_PATH]);
/* The nodes look after their clients, who are alive: every tick. */
void walk_nodes_tick(struct walk_nodes *all);
void walk_nodes_close(struct walk_nodes *all); /* racks, too */

/* A process that uses the rack; it lives as long as the play. */
int walk_rack_open(struct walk_nodes *all, struct rig_host *host,
		   struct aq_rack **out) MUST_CHECK;
/* Closes what traverse/ leaves to the rack's end, also of a dead process. */
void walk_rack_close(struct aq_rack *rack);
/* What its queues and memory are made with. */
struct ibv_pd *walk_rack_pd(const struct aq_rack *rack);
/* Whether it waits for a node's answer: then it must not be killed. */
bool walk_rack_is_asking(const struct aq_rack *rack);
/* Its requests to nodes wait from here on. */
void walk_rack_bar(struct aq_rack *rack, bool is_barred);
/* A request to a node; `body` is taken over, *reply is the caller's, NULL if
 * there is none. Some do not care what it says. */
int walk_rack_ask(struct aq_rack *rack, uint32_t node, const char *method,
		  const char *path, json_t *body, json_t **reply);
/* Takes the keys of all its links back. */
int walk_rack_revoke(struct aq_rack *asker, struct aq_rack *of) MUST_CHECK;

/* Piece i is on node i. */
int walk_region_create(struct aq_rack *rack, const char *name,
		       uint64_t size_bytes, uint32_t pieces) MUST_CHECK;
/* The handle lives as long as the rack. */
int walk_region_open(struct aq_rack *rack, const char *name, uint32_t pieces,
		     bool is_revocable, struct aq_region **out) MUST_CHECK;
/* Of one piece after the other. */
int walk_region_resize(struct aq_rack *rack, const char *name,
		       uint64_t size_bytes, uint32_t pieces) MUST_CHECK;
/* Pieces that are not there any more are no error. */
void walk_region_delete(struct aq_rack *rack, const char *name,
			uint32_t pieces);
const struct client_map *walk_region_map(const struct aq_region *region);

#endif
