/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a rack for walks share. */
#ifndef AQ_PLAYS_WALK_RACK_PRIV_H
#define AQ_PLAYS_WALK_RACK_PRIV_H

#include "walk_seam.h"

#include "client/keepalive.h"
#include "client/link.h"
#include "walk_rack.h"

/* A process, as its handle of the rack. */
struct aq_rack {
	struct walk_nodes *all;
	struct rig_host *host;
	struct ibv_context *context; /* its own */
	struct ibv_pd *pd;
	struct client_caller caller;
	struct client_node node[WALK_NODES_MAX];
	struct walk_link *links;
	struct aq_region *regions; /* also closed ones: no address comes back */
	uint64_t serial;	   /* of regions */
	unsigned asking;	   /* requests under way */
	bool is_barred;
	uint64_t until_ns; /* when requests to nodes are given up */
	/* Of the request under way; the play's if the process is killed. */
	char *text;
	char *answer;
};

struct aq_region {
	struct aq_rack *rack;
	struct aq_region *next;
	struct client_shape shape;
	uint64_t serial;
	uint32_t version;
	bool is_stale;
};

struct walk_link {
	struct client_link link; /* what traverse/ sees */
	struct aq_rack *rack;
	struct walk_link *next;
	bool is_lost;
	char id[CLIENT_ID_MAX];	   /* of the connection; "": none yet */
	char grant[CLIENT_ID_MAX]; /* of the key */
};

/* One request, now, without a way to the node. *text is the heap's. */
unsigned walk_node_handle(struct walk_node *n, const char *method,
			  const char *path, const char *body, char **text);

#endif
