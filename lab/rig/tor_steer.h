/* SPDX-License-Identifier: Apache-2.0 */
/* A switch that steers a version-list store, in the middle of a stage. */
#ifndef AQ_SCENARIO_TOR_STEER_H
#define AQ_SCENARIO_TOR_STEER_H

#include "stage.h"
#include "tor_net.h"
#include "wire/vlist_layout.h"

/* Embedded; all zeroes is one that does not exist. */
struct scenario_steer {
	struct scenario_tor *tor;
	struct scenario_host *server;
	struct scenario_region *region;
	struct vlist_geometry g;
	bool is_on;
	char program[256];
};

/* options: of the program "steer", or NULL for a switch without it. */
int scenario_steer_create(struct scenario_steer *s, struct sim_net *net,
			  struct scenario_host *server,
			  struct scenario_region *region,
			  const struct vlist_geometry *g,
			  const char *options) MUST_CHECK;
void scenario_steer_destroy(struct scenario_steer *s);
/* Killed and started again; it knows the region, and no connection. */
int scenario_steer_restart(struct scenario_steer *s) MUST_CHECK;
/* Tells the switch of a connection of the host; connections without room in its
 * table are not steered. */
void scenario_steer_conn(struct scenario_steer *s, struct scenario_host *server,
			 struct scenario_host *client,
			 struct client_link *link);
/* The same, and that nothing was sent on it yet. */
void scenario_steer_fresh(struct scenario_steer *s,
			  struct scenario_host *server,
			  struct scenario_host *client,
			  struct client_link *link);
/* The connection is gone; the switch sends nothing on it any more. */
void scenario_steer_end(struct scenario_steer *s, struct scenario_host *server,
			struct scenario_host *client, struct client_link *link);

#endif
