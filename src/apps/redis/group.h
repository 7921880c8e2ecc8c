/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of one gateway share. Each of them has a struct gateway of
 * its own: clients, their commands, a client of the table. A thread holds
 * `turns` for reading while it does something, and whoever wants to see the
 * clients or counters of all of them holds it for writing.
 */
#ifndef AQ_REDIS_GROUP_H
#define AQ_REDIS_GROUP_H

#include <pthread.h>
#include <stdatomic.h>

#include "redis.h"

struct gateway;
struct gateway_stats;

/* Zero-initialised, then group_init. The atomics are counters; what they count
 * is handed over by other means. */
struct group {
	pthread_rwlock_t turns;
	/* Batches with changes, one thread at a time: two that want locks of
	 * the same rows would only get in each other's way. */
	pthread_mutex_t changes;
	uint32_t count;
	struct gateway *member[REDIS_THREADS_MAX];
	_Atomic uint64_t last_id;
	_Atomic uint64_t resets; /* how often counters were set to zero */
	_Atomic uint64_t finds;	 /* how often a lost table was found */
	_Atomic uint64_t client_bytes;
	_Atomic uint32_t client_count; /* those of whom it was accepted, too */
	atomic_bool is_ending;
};

/* What all threads together have counted. */
struct group_sum {
	uint64_t client_bytes;
	uint32_t client_count;
	uint64_t far_gets, far_get_trips;
};

int group_init(struct group *all) MUST_CHECK;
void group_release(struct group *all);
/* Before any thread runs. */
void group_add(struct group *all, struct gateway *g);

void group_turn_begin(struct group *all);
void group_turn_end(struct group *all);

/* In a turn of `g`, with nothing collected: the others stand still between
 * these two. Not inside a transaction, whose keys another's turn may wait
 * for. */
void group_look_begin(struct gateway *g);
void group_look_end(struct gateway *g);

/* Sums up, while it looks at all. *stats may be g's own for a single one. */
void group_sum(struct gateway *g, struct gateway_stats *stats,
	       struct group_sum *sum);
/* Sets the counters of all threads to zero; others do that in their next turn,
 * and until then theirs count as zero. */
void group_reset(struct gateway *g);
/* At the beginning of a turn. */
void group_catch_up(struct gateway *g);

/* This thread has found the table again: the others look for it now. */
void group_found(struct gateway *g);
/* Whether another one has found it since this was asked. */
bool group_has_found(struct gateway *g);

/* Around a batch with changes. */
void group_changes_begin(struct group *all);
void group_changes_end(struct group *all);

/* Whether this thread is the one whose clients have most, while all together
 * have more than they may. Wakes that one if it is not. */
bool group_is_largest(const struct gateway *g);

#endif
