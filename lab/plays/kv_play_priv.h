/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the play "kv" share. */
#ifndef AQ_PLAYS_KV_PLAY_PRIV_H
#define AQ_PLAYS_KV_PLAY_PRIV_H

#include "kv_cluster.h"
#include "kv_play.h"

enum {
	KP_CLIENTS_MAX = 6,
	KP_KEYS = 10,		 /* that hold values of the play */
	KP_PAIR_FIRST = KP_KEYS, /* two keys that only units write */
	KP_PAIR_SECOND,
	KP_NUMBER, /* a decimal number */
	KP_MORTAL, /* its values expire */
	KP_ALL_KEYS,
	KP_VALUE_MAX = 400,
	KP_LIVES_MAX = 256,
};

struct kp_client {
	struct play_client base;
	struct kv_cluster_client place;
	struct aq_kv_client *kv;
	uint64_t seen[KP_KEYS]; /* last value, for compare and swap */
	bool in_pair;		/* it changes the two keys */
};

/* A value that was written to KP_MORTAL. */
struct kp_life {
	uint64_t id;
	uint64_t end_ms; /* of the play's clock; 0: it lives */
	bool is_over;	 /* and the history has it */
};

struct kp {
	struct play_run run;
	struct kv_play_counts *n;
	struct kv_cluster cluster;
	struct kv_geometry g;
	struct kp_client client[KP_CLIENTS_MAX];
	bool leaves;
	bool split;
	bool pair_left; /* by a client that died, slept or was cut off in it */
	struct kp_life life[KP_LIVES_MAX];
	unsigned lives;
};

static inline struct kp *kp_of(const struct kp_client *c)
{
	return (struct kp *)c->base.run;
}

/* ---- kv_play_number.c ---------------------------------------------------- */

/* One operation on the number, or on the key whose values expire. */
void kp_number_step(struct kp_client *c);
void kp_mortal_step(struct kp_client *c);
/* The time that the table's clients are told: all of them the same. */
uint64_t kp_now_ms(void *client);

#endif
