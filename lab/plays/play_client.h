/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of a store in a play. Each is a fiber that opens the store, does its
 * steps (struct play_moves), dies or sleeps before any of its requests, and
 * comes back. Values are numbers, written out over some bytes, so that a torn
 * or foreign one is noticed; what clients saw is in the run's history.
 *
 * Counts that a play with clients must have: gets, misses, puts, deletes,
 * deaths, sleeps, timeouts, stale, full; where nodes die, nodes_killed.
 */
#ifndef AQ_PLAYS_PLAY_CLIENT_H
#define AQ_PLAYS_PLAY_CLIENT_H

#include "kit/remote.h"
#include "play.h"

enum {
	PLAY_CONNS_MAX = 4096,
	PLAY_OPEN_TRIES = 4,
};

/* The head of a play's client. */
struct play_client {
	struct play_run *run;
	unsigned index;
	struct rig_host *host;
	struct rng rand;
	bool is_open;
	unsigned countdown; /* requests until it happens; 0: never */
	bool sleeps;	    /* or dies */
	unsigned conn;	    /* its own */
};

/* The next of the run's clients; its numbers come from a stream of its own. */
void play_client_init(struct play_run *r, struct play_client *c,
		      struct rig_host *host);
/* When the world is open: the store is made, clients come, and when all have
 * finished it is checked and the run is stopped. */
int play_clients_start(struct play_run *r) MUST_CHECK;
/* Opens the store for this client, or says why not. */
int play_client_open(struct play_client *c) MUST_CHECK;
void play_client_close(struct play_client *c);
/* If it has died meanwhile, it closes the store and opens it again. */
void play_client_come_back(struct play_client *c);

/* In `percent` of the calls it will die or sleep at one of its next
 * `requests` requests; else at none. */
void play_client_arm(struct play_client *c, uint32_t percent,
		     uint32_t requests);
/* Before a request, which is of this kind: true when it dies here. Who sleeps
 * does so for so long that others take it for dead. `client` is a struct
 * play_client; this is what stores call as `crash`. */
bool play_client_crash(void *client, int point);

/* ---- values and history ------------------------------------------------- */

/* Writes value number `id`: its length. */
size_t play_value_make(const struct play_run *r, uint64_t id, uint8_t *out);
/* The number; a torn or foreign value is a violation. */
uint64_t play_value_read(struct play_run *r, const uint8_t *v, size_t len);

int64_t play_invoke(struct play_client *c, uint64_t key, enum lin_call call,
		    uint64_t a, uint64_t b);
/* An operation that says nothing about the value ended with `err`: counts it,
 * and says what that means. */
enum lin_type play_ended(struct play_client *c, int err);
void play_return(struct play_client *c, int64_t op, enum lin_type type,
		 enum lin_said said);
/* One operation by the play's moves, recorded. A read says which value it
 * found; 0: none. */
uint64_t play_get(struct play_client *c, unsigned key);
void play_put(struct play_client *c, unsigned key);
void play_del(struct play_client *c, unsigned key);
/* How a read of `len` bytes ended, whose operation was recorded by hand. */
uint64_t play_return_read(struct play_client *c, int64_t op, int err,
			  const uint8_t *v, size_t len);
/* How a deletion ended. */
void play_return_del(struct play_client *c, int64_t op, int err);

/* ---- connections -------------------------------------------------------- */

/* By number, which is also its name; link is NULL when it was given back. */
struct play_conn {
	struct client_link *link;
	struct rig_host *host;
	const void *to; /* of who needs it: what it leads to */
	bool is_dead;	/* its client is, or has given it up */
	bool is_known;	/* to a switch */
};

struct play_conns {
	struct play_conn at[PLAY_CONNS_MAX];
	unsigned count;
};

/* A new connection of `host` to the region; writes its name. */
int play_conn_open(struct play_conns *all, struct rig_host *host,
		   struct rig_region *region,
		   const struct client_link_options *options, char *name,
		   size_t name_bytes, struct play_conn **out) MUST_CHECK;
/* NULL: it never was, or was given back. */
struct play_conn *play_conn_find(struct play_conns *all, const char *name);
bool play_conn_is_alive(struct play_conns *all, const char *name);
/* As a memory node fences: the far end takes nothing any more. */
int play_conn_fence(struct play_conn *conn) MUST_CHECK;
/* The client has done with it. The far end of a dead client's stays until it
 * is fenced or the play ends: what it has sent may still arrive. */
void play_conn_close(struct play_conn *conn, bool client_died);

/* ---- a store on one node ------------------------------------------------ */

struct play_store {
	struct rig_region *region;
	struct rig_region *locks; /* NULL: none of their own */
	struct play_conns conns;
	/* A switch is told of a new connection, or of one that ends; NULL:
	 * there is none. */
	void (*tell)(struct play_client *c, struct play_conn *conn,
		     bool is_new);
};

/* A remote to the run's store, for a client, or for who only formats it. */
int play_remote_open(struct play_client *c,
		     struct kit_remote *remote) MUST_CHECK;
void play_remote_close(void *client, struct kit_remote *remote);
/* Nothing of it is executed any more. */
int play_store_fence(struct play_run *r, struct play_conn *conn) MUST_CHECK;
/* Opens a remote and has the store made with it, and tries again. */
int play_store_open(struct play_client *c,
		    int (*create)(struct play_client *c,
				  struct kit_remote *remote,
				  const void *config),
		    const void *config) MUST_CHECK;

#endif
