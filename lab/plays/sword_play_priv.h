/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the play "swordbox". */
#ifndef AQ_PLAYS_SWORD_PLAY_PRIV_H
#define AQ_PLAYS_SWORD_PLAY_PRIV_H

#include "play_client.h"
#include "rig/tor_sword.h"
#include "sword_play.h"

enum {
	SP_SHARED = 8, /* words that all use */
	/* Then for each client one word that no other client changes, one that
	 * counts what it has published, and after the declared region the
	 * published data. */
	SP_PRIVATE = SP_SHARED,
	SP_FLAG = SP_PRIVATE + 6,
	SP_WORDS = SP_FLAG + 6,
	SP_DATA = SP_WORDS,
	SP_ALL = SP_DATA + 6,
	SP_CLIENTS = 6,
	SP_HOSTS = 3,
	SP_DEPTH = 4, /* requests of a client on their way */
	SP_SLOTS = SP_DEPTH + 2,
	SP_OPS = 45,
	SP_OPS_GAPPY = 160, /* of the client that writes */
};

struct sp;

/* A request under way; a bulk WRITE is one on two words. */
struct sp_op {
	bool used;
	uint8_t kind;
	unsigned word;
	uint64_t compare;
	uint64_t value;
	int64_t lin[2];	  /* numbers in the history; -1: none */
	uint64_t expect;  /* what it must see, by the order of posting */
	unsigned own_at;  /* its place in that order */
	unsigned watched; /* client */
};

struct sp_client {
	struct play_client base;
	struct sp *p;
	struct rig_pair pair;
	bool connected;
	struct ibv_cq *cq;
	struct rig_region *buffer;
	struct sp_op ops[SP_SLOTS];
	unsigned posted;
	unsigned open;
	uint64_t seen[SP_ALL]; /* the last value of each word */
	/* Values of the private word in the order of posting, known until a
	 * connection breaks. */
	uint64_t own[SP_OPS + 1];
	unsigned own_count;
	bool own_known;
	uint64_t published;
	uint64_t next_value;
};

struct sp {
	struct play_run run;
	struct sword_play_counts *n;
	struct rig_sword sword;
	struct rig_host *hosts[SP_HOSTS];
	unsigned host_count;
	struct sp_client clients[SP_CLIENTS];
	/* Many losses; one client, with a moved connection, writes as fast as
	 * it can, and the others read what it writes, past the switch. */
	bool is_gappy;
};

/* sword_client.c */
int sp_clients_start(struct sp *p) MUST_CHECK;
void sp_clients_stop(struct sp *p);

#endif
