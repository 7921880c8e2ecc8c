/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's way to its controller: a thread that joins and beats, for as long
 * as the daemon lives. Who does not lead names the one that does, which is
 * asked then. Without a controller that answers it tries again, the controllers
 * in turn, with pauses that differ from node to node; the daemon works on
 * meanwhile.
 */
#ifndef AQ_UPLINK_H
#define AQ_UPLINK_H

#include <jansson.h>

#include "base/base.h"
#include "client/client.h"
#include "daemon/daemon.h"
#include "up_share.h"

enum {
	UP_INCARNATION_TEXT = 16 + 1,
};

struct uplink;

struct uplink_config {
	const struct config *config; /* rack.control, rack.ca, rack.zone */
	const char *rundir;
	const char *token; /* for nodes */
	const char *kind;  /* "memory", "engine", "switch", "gateway" */
	const char *name;
	const char *address; /* where clients reach it, as in http.h */
	const char *incarnation;
	uint64_t size_bytes; /* of the pool */
	/* Called by the thread; or NULL. `joined`: it has joined. `say` adds
	 * to a beat. `hear` takes an answer; what it does with a list of
	 * tenants has happened when it returns. */
	void *ctx;
	void (*joined)(void *ctx);
	void (*say)(void *ctx, json_t *beat);
	void (*hear)(void *ctx, const json_t *answer);
};

/* Whether rack.control names a controller. */
bool uplink_is_wanted(const struct config *config);
/* Copies what it needs. -EINVAL, -ENOMEM, with words. */
int uplink_start(const struct uplink_config *c, struct uplink **out) MUST_CHECK;
/* A daemon joins. Of `c` only the kind, the size and the functions need be set:
 * all else comes from the daemon, where it is NULL. *out is NULL where no
 * controller is named. */
int uplink_join(const struct daemon *d, const struct uplink_config *c,
		struct uplink **out) MUST_CHECK;
/* The same for what works as well if the controller does not know of it: a
 * program of a user who has no token of nodes, say. May be NULL. */
struct uplink *uplink_show(const struct daemon *d,
			   const struct uplink_config *c);
/* Says goodbye, and waits for the thread. NULL is fine. */
void uplink_stop(struct uplink *u);
/* There is news: a new beat takes the place of the one that waits for orders.
 * Any thread. */
void uplink_wake(struct uplink *u);
/* Whether the controller was heard of in the last UP_SILENT_MS. Any thread. */
bool uplink_is_fresh(struct uplink *u);

#endif
