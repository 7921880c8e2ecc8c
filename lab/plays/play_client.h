/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of a store in a play. Each is a fiber that opens the store, does its
 * steps (struct play_moves), dies or sleeps before any of its requests, and
 * starts again. Values are numbers, written out over some bytes, so that a torn
 * or foreign one is noticed; what clients saw is in the run's history.
 *
 * Counts that a play with clients must have: gets, misses, puts, deletes,
 * deaths, sleeps, timeouts, stale, full; where nodes die, nodes_killed.
 */
#ifndef AQ_PLAYS_PLAY_CLIENT_H
#define AQ_PLAYS_PLAY_CLIENT_H

#include "kit/remote.h"
#include "play.h"
#include "rig/conns.h"

enum {
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
/* Call it when the world is open: makes the store, starts the clients, and when
 * all have finished checks the store and stops the run. */
int play_clients_start(struct play_run *r) MUST_CHECK;
/* Opens the store for this client, or says why not. */
int play_client_open(struct play_client *c) MUST_CHECK;
void play_client_close(struct play_client *c);
/* If it has died meanwhile, it closes the store and opens it again. */
void play_client_come_back(struct play_client *c);

/* In `percent` of the calls the client will die or sleep at one of its next
 * `requests` requests; else at none. */
void play_client_arm(struct play_client *c, uint32_t percent,
		     uint32_t requests);
/* Called before a request of this kind: true when the client dies here. A
 * client that sleeps does so for so long that others take it for dead. `client`
 * is a struct play_client; this is what stores call as `crash`. */
bool play_client_crash(void *client, int point);

/* ---- values and history ------------------------------------------------- */

/* Writes value number `id`: its length. */
size_t play_value_make(const struct play_run *r, uint64_t id, uint8_t *out);
/* The number; a torn or foreign value is a violation. */
uint64_t play_value_read(struct play_run *r, const uint8_t *v, size_t len);

int64_t play_invoke(struct play_client *c, uint64_t key, enum lin_call call,
		    uint64_t a, uint64_t b);
/* An operation without a result ended with `err`: counts and classifies it. */
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

/* ---- a store on one node ------------------------------------------------ */

struct play_store {
	struct rig_region *region;
	struct rig_region *locks; /* NULL: none of their own */
	struct rig_conns conns;
	/* A switch is told of a new connection, or of one that ends; NULL:
	 * there is none. */
	void (*tell)(struct play_client *c, struct rig_conn *conn, bool is_new);
};

/* A remote to the run's store, for a client, or to format the store. */
int play_remote_open(struct play_client *c,
		     struct kit_remote *remote) MUST_CHECK;
void play_remote_close(void *client, struct kit_remote *remote);
/* Makes sure that no request of that connection is executed any more. */
int play_store_fence(struct play_run *r, struct rig_conn *conn) MUST_CHECK;
/* Opens a remote and has the store made with it, and tries again. */
int play_store_open(struct play_client *c,
		    int (*create)(struct play_client *c,
				  struct kit_remote *remote,
				  const void *config),
		    const void *config) MUST_CHECK;

#endif
