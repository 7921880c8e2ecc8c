/* SPDX-License-Identifier: Apache-2.0 */
/* A switch that steers a version-list store, in the middle of a stage. */
#ifndef AQ_RIG_TOR_STEER_H
#define AQ_RIG_TOR_STEER_H

#include "stage.h"
#include "tor_net.h"
#include "wire/vlist_layout.h"

/* Embedded; all zeroes is one that does not exist. */
struct rig_steer {
	struct rig_tor *tor;
	struct rig_host *server;
	struct rig_region *region;
	struct vlist_geometry g;
	bool is_on;
	char program[256];
};

/* options: of the program "steer", or NULL for a switch without it. */
int rig_steer_create(struct rig_steer *s, struct sim_net *net,
		     struct rig_host *server, struct rig_region *region,
		     const struct vlist_geometry *g,
		     const char *options) MUST_CHECK;
void rig_steer_destroy(struct rig_steer *s);
/* Killed and started again; it knows the region, and no connection. */
int rig_steer_restart(struct rig_steer *s) MUST_CHECK;
/* Tells the switch of a connection of the host; connections without room in its
 * table are not steered. */
void rig_steer_conn(struct rig_steer *s, struct rig_host *server,
		    struct rig_host *client, struct client_link *link);
/* The same, and that nothing was sent on it yet. */
void rig_steer_fresh(struct rig_steer *s, struct rig_host *server,
		     struct rig_host *client, struct client_link *link);
/* The connection is gone; the switch sends nothing on it any more. */
void rig_steer_end(struct rig_steer *s, struct rig_host *server,
		   struct rig_host *client, struct client_link *link);

#endif
