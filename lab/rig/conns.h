/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of all clients to a store, by number: who fences a client
 * that died, or asks whether it lives, knows only the name. */
#ifndef AQ_RIG_CONNS_H
#define AQ_RIG_CONNS_H

#include "stage.h"

enum {
	RIG_CONNS_MAX = 4096,
};

/* By number, which is also its name; link is NULL when it was given back. */
struct rig_conn {
	struct client_link *link;
	struct rig_host *host;
	const void *to; /* of who needs it: what it leads to */
	bool is_dead;	/* its client is, or has given it up */
	bool is_known;	/* to a switch */
};

struct rig_conns {
	struct rig_conn at[RIG_CONNS_MAX];
	unsigned count;
};

/* A new connection of `host` to the region; writes its name. */
int rig_conn_open(struct rig_conns *all, struct rig_host *host,
		  struct rig_region *region,
		  const struct client_link_options *options, char *name,
		  size_t name_bytes, struct rig_conn **out) MUST_CHECK;
/* NULL: it never was, or was given back. */
struct rig_conn *rig_conn_find(struct rig_conns *all, const char *name);
bool rig_conn_is_alive(struct rig_conns *all, const char *name);
/* As a memory node fences: the far end takes nothing any more. */
int rig_conn_fence(struct rig_conn *conn) MUST_CHECK;
/* The client has done with it. The far end of a dead client's stays until it
 * is fenced or the play ends: what it has sent may still arrive. */
void rig_conn_close(struct rig_conn *conn, bool client_died);

#endif
