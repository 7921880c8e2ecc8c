/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a table that may have several replicas: shards with their share
 * of the keys, two copies of each, and while it is resized two generations.
 */
#ifndef AQ_KV_CLIENT_PRIV_H
#define AQ_KV_CLIENT_PRIV_H

#include "base/tally.h"
#include "kv_priv.h"

/* One part of the keys; replicas are connected when they are first needed. */
struct kv_shard {
	struct kv_replica *replica[KV_COPIES_MAX];
	unsigned master; /* the copy that serves */
	bool is_paired;	 /* the other copy follows */
	bool is_ready;	 /* the two above are known */
};

struct kv_era {
	struct kv_geometry g; /* of one of its replicas */
	struct kv_shard shard[KV_SHARDS_MAX];
};

enum {
	KV_ERAS_MAX = 2,
};

struct aq_kv_client {
	struct kv_world world; /* .open is NULL: one replica, given */
	struct kv_client_config config;
	bool is_crashed;		 /* by a test, with all its replicas */
	bool is_resizing;		 /* it must not wait for itself */
	struct kv_era *era[KV_ERAS_MAX]; /* the older first; NULL */
	struct aq_kv_stats past;	 /* of replicas that are closed */
	uint64_t start_ns;		 /* of what deadline_ns is for */
	uint64_t deadline_ns;
	uint64_t
		answered_ns; /* when the replica that was asked last answered */
	const struct client_clock *clock; /* that these are of */
	struct tally_probe probe;	  /* of what was submitted */
	uint32_t depth;
	uint32_t under_way; /* submitted and not polled */
	/* Operations done outside of a replica's list, oldest first. */
	struct aq_kv_op **done;
	uint32_t done_head, done_count;
	/* Changes that were submitted, in their order: kv_async_flush. */
	struct aq_kv_op *change[KV_CHANGES_MAX];
	uint32_t change_count;
	/* A bit for each of their keys; other keys may have the same one. */
	uint64_t change_seen[KV_SEEN_WORDS];
	bool is_flushing;
	/* A value of an older generation. */
	uint8_t *older;
	size_t older_bytes;
};

/* Where an operation on a key goes. */
struct kv_route {
	struct kv_replica *replica; /* decides, and has the locks */
	struct kv_replica *second;  /* gets changes first; or NULL */
	struct kv_replica *older;   /* for keys not in `replica`; or NULL */
	bool leaves_graves;
};

/* ---- kv_client.c -------------------------------------------------------- */

int kv_client_open_replica(struct aq_kv_client *c, const struct kv_id *id,
			   struct kv_replica **out) MUST_CHECK;
/* Finds the generations that there are. -ENOENT, -EHOSTDOWN. */
int kv_client_look_around(struct aq_kv_client *c) MUST_CHECK;
int kv_client_route(struct aq_kv_client *c, uint64_t hash, bool is_change,
		    struct kv_route *r) MUST_CHECK;
/* The route in the next generation only. */
int kv_client_route_next(struct aq_kv_client *c, uint64_t hash,
			 struct kv_route *r) MUST_CHECK;
/* After an operation ended with `err`: looks at the table again. 0: try the
 * operation again; else the error to report. */
int kv_client_again(struct aq_kv_client *c, int err,
		    unsigned *tries) MUST_CHECK;
/* The hash that selects shards, in the current eras. */
uint64_t kv_client_hash(const struct aq_kv_client *c, const void *key,
			size_t key_len);
/* Any replica that is connected, for its clock. */
struct kv_replica *kv_client_any(struct aq_kv_client *c);
int kv_client_begin(struct aq_kv_client *c) MUST_CHECK;
/* A replica of an era, connected. */
int kv_era_reach(struct aq_kv_client *c, struct kv_era *e, uint32_t shard,
		 uint32_t copy) MUST_CHECK;
bool kv_client_crash(void *ctx, int point);

/* ---- kv_pair.c ---------------------------------------------------------- */

/* Connects the shard's replicas and finds out which one serves. */
int kv_shard_ready(struct aq_kv_client *c, struct kv_era *e,
		   uint32_t shard) MUST_CHECK;
/* Makes the change at the second copy, under the master's locks. */
int kv_pair_mirror(struct kv_mod *m, const struct aq_kv_change *ch) MUST_CHECK;
static inline struct kv_replica *kv_shard_master(const struct kv_shard *s)
{
	return s->replica[s->master];
}
static inline struct kv_replica *kv_shard_second(const struct kv_shard *s)
{
	return s->is_paired ? s->replica[!s->master] : NULL;
}

/* ---- kv_grow.c ---------------------------------------------------------- */

/* Moves the shard from FREEZING to FROZEN; any client that needs it does so. */
int kv_shard_freeze(struct aq_kv_client *c, struct kv_era *e,
		    uint32_t shard) MUST_CHECK;
int kv_grow_older(struct kv_mod *m, struct aq_kv_change *ch) MUST_CHECK;

/* As aq_kv_resize. is_wanted is asked when nobody else can begin one, and
 * whether it is so for the last time when another's has ended; NULL: until it
 * is as `o` says. */
typedef bool (*kv_wanted_fn)(struct aq_kv_client *c, void *user);
int kv_client_resize(struct aq_kv_client *c, const struct aq_kv_options *o,
		     kv_wanted_fn is_wanted, void *user) MUST_CHECK;
/* The geometry of the next generation. */
int kv_geometry_next(const struct kv_geometry *was,
		     const struct aq_kv_options *o,
		     struct kv_geometry *g) MUST_CHECK;

/* ---- kv_copy.c ---------------------------------------------------------- */

/* All keys that the next generation has no entry for. */
int kv_copy_all(struct aq_kv_client *c) MUST_CHECK;
/* Really deletes the deleted ones. */
int kv_bury_all(struct aq_kv_client *c) MUST_CHECK;
/* How many rows of a FROZEN replica have been copied. */
int kv_copied_read(struct kv_replica *replica, uint64_t *row) MUST_CHECK;

/* ---- kv_room.c ---------------------------------------------------------- */

/* Before a change. -ENOSPC: there is room, but for others. */
int kv_room_check(struct aq_kv_client *c, const struct kv_route *r,
		  uint32_t changes) MUST_CHECK;
/* After -ENOSPC. 0: try again; KV_E_VIEW: look at the table again; else the
 * error to report. */
int kv_room_await(struct aq_kv_client *c, const struct kv_route *r,
		  bool *has_waited) MUST_CHECK;

/* ---- kv_ops.c ----------------------------------------------------------- */

/* The key must have been checked. */
int kv_client_read(struct aq_kv_client *c, struct aq_kv_op *op,
		   uint64_t *expire_at_ms) MUST_CHECK;
/* At one replica, as kv_replica_read. */
int kv_client_read_replica(struct aq_kv_client *c, struct kv_replica *replica,
			   struct aq_kv_op *op, uint64_t *expire_at_ms,
			   bool *has_entry) MUST_CHECK;
/* A change from its beginning to its end, wherever the key is. */
int kv_client_change(struct aq_kv_client *c, struct kv_mod *m) MUST_CHECK;

/* As those of <aquifer/kv.h>, for operations that are counted elsewhere. */
int kv_client_put(struct aq_kv_client *c, const void *key, size_t key_len,
		  const void *value, size_t value_len,
		  const struct aq_kv_put_options *options) MUST_CHECK;
int kv_client_modify(struct aq_kv_client *c, const void *key, size_t key_len,
		     aq_kv_change_fn fn, void *user) MUST_CHECK;
int kv_client_del(struct aq_kv_client *c, const void *key,
		  size_t key_len) MUST_CHECK;

/* ---- kv_count.c --------------------------------------------------------- */

/* An operation that began with kv_client_begin has ended. Returns err. */
int kv_count(struct aq_kv_client *c, enum tally_count what, uint64_t bytes,
	     int err);
/* One that was submitted, now and when it is told. */
void kv_count_probe(struct aq_kv_client *c, const struct aq_kv_op *op);
void kv_count_poll(struct aq_kv_client *c, const struct aq_kv_op *op);
static inline void kv_count_submit(struct aq_kv_client *c,
				   const struct aq_kv_op *op)
{
	if (UNLIKELY(tally_probe_is_idle(&c->probe)))
		kv_count_probe(c, op);
}

/* ---- kv_async.c --------------------------------------------------------- */

/* Takes over operations that are done there; _abandon also ends those under
 * way, as not answered. */
void kv_async_collect(struct aq_kv_client *c, struct kv_replica *replica);
void kv_async_abandon(struct aq_kv_client *c, struct kv_replica *replica);
/* Carries out the changes that wait. */
void kv_async_flush(struct aq_kv_client *c);
/* Call it before any other operation on that replica: it waits for reads that
 * were submitted. */
int kv_async_quiet(struct aq_kv_client *c,
		   struct kv_replica *replica) MUST_CHECK;
/* Call it before a change on that replica: submitted reads are then also
 * answered. KV_E_VIEW: find the replica anew. */
int kv_async_settle(struct aq_kv_client *c,
		    struct kv_replica *replica) MUST_CHECK;

/* What the two functions of a change work with. */
struct kv_change_ctx {
	struct aq_kv_client *client;
	struct kv_route route;
};

#endif
