/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A version-list store, after Clover (Tsai, Shan and Zhang, ATC 2020): every
 * write appends a version to its key's list by one compare-and-swap on the
 * newest one, readers remember where they found it and follow the list from
 * there. Clients do everything with one-sided operations. Layout and invariants
 * are in vlist_layout.h.
 *
 * There is no metadata server. Clients do its jobs: the index is in far memory,
 * memory for versions comes from chunks that a client takes for itself, and the
 * client that made a version collects it when it is old.
 *
 * A switch on the path may change the place of an append, and the version that
 * a READ is answered with (`steer` in switch/). Clients see this in the
 * answers, never take an uncommitted version for committed, and do not depend
 * on the switch.
 *
 * Consistency: operations on one key are linearizable. A client belongs to one
 * thread at a time. Errors are 0 or -errno with words, among them
 *	-ENOENT		there is no such key
 *	-ENOSPC		no memory for another version, or for another key
 *	-EMSGSIZE	the value is longer than the buffer, or than the store
 *			has room for
 *	-ETIMEDOUT	others were faster until the deadline, or a write has
 *			an unknown outcome: it may take effect later, or never
 *	-ESTALE		the connection broke; a write has an unknown outcome.
 *			The client has connected anew.
 */
#ifndef AQ_INDEX_VLIST_H
#define AQ_INDEX_VLIST_H

#include "base/base.h"
#include "kit/kit.h"
#include "wire/vlist_layout.h"

struct vlist_options {
	uint64_t keys;	      /* room for this many; required */
	uint64_t versions;    /* at one time; 0: four per key, and some */
	uint32_t value_max;   /* bytes; 0: 128 */
	uint32_t clients;     /* at one time; 0: 256 */
	uint32_t failure_ms;  /* a silent client is dead; 0: 1000 */
	uint32_t chunk_nodes; /* 0: so that all clients get some */
};

/* A geometry from options; -EINVAL with words. */
int vlist_geometry_make(const struct vlist_options *o,
			struct vlist_geometry *g) MUST_CHECK;

/* Where a client may be stopped by a test: before the request is posted. */
#define VLIST_POINTS(X)                                       \
	X(NODE, "a version is written")                       \
	X(APPEND, "it is appended")                           \
	X(FIRST, "it becomes a key's first")                  \
	X(READ, "something is read")                          \
	X(CLAIM, "a key takes its entry")                     \
	X(HEAD, "a key's entry points to a later version")    \
	X(SLOT, "a client says who it is, or that it leaves") \
	X(CHUNK, "a chunk is taken")                          \
	X(ABANDON, "a version is given up")

struct vlist_places;

enum vlist_point {
#define VLIST_POINT_ENUM(name, help) VLIST_POINT_##name,
	VLIST_POINTS(VLIST_POINT_ENUM)
#undef VLIST_POINT_ENUM
	VLIST_POINT_COUNT
};

struct vlist_config {
	uint32_t deadline_ms; /* of one operation; 0: 5000 */
	uint32_t cache_keys;  /* remembered places; 0: 4096 */
	/* After this many writes of a key its entry is moved on, and older
	 * versions are collected; 0: 4. */
	uint32_t collect_every;
	bool no_steer; /* READs that no switch changes */
	/* A read takes the key's entry along, and goes on from there when the
	 * remembered version is not the newest. */
	bool shortcut;
	/* Shared with other clients of the process; NULL: each has its own. */
	struct vlist_places *places;
	/* NULL: never. True stops the client for good: it posts what comes
	 * before this request and nothing any more. */
	bool (*crash)(void *ctx, int point);
	void *ctx;
};

struct vlist_client;

/* Where the clients of one process last saw the newest version of each key; 0:
 * room for 4096 keys. Any thread may use it; it outlives its clients. */
int vlist_places_create(uint32_t keys, struct vlist_places **out) MUST_CHECK;
void vlist_places_destroy(struct vlist_places *p);

/* Writes an empty store into zeroed memory. */
int vlist_format(const struct kit_remote *remote,
		 const struct vlist_geometry *g) MUST_CHECK;
/* Reads the head of a store. */
int vlist_probe(const struct kit_remote *remote,
		struct vlist_geometry *g) MUST_CHECK;
/* -EAGAIN: the store has no place for another client. */
int vlist_client_create(const struct kit_remote *remote,
			const struct vlist_geometry *g,
			const struct vlist_config *config,
			struct vlist_client **out) MUST_CHECK;
/* After a crash it leaves everything as it is; otherwise it leaves its slot. */
void vlist_client_destroy(struct vlist_client *c);
/* Frees what it has here and says nothing to the store, as if its process had
 * ended. Its remote stays open. NULL is allowed. */
void vlist_client_abandon(struct vlist_client *c);
bool vlist_client_is_crashed(const struct vlist_client *c);

/* Remembers the places that another client of this process knows. */
void vlist_client_learn(struct vlist_client *c,
			const struct vlist_client *from);

/* *len is the value's length, also with -EMSGSIZE, when as much was copied as
 * fits. Keys are all numbers but UINT64_MAX. */
int vlist_get(struct vlist_client *c, uint64_t key, void *buf, size_t buf_bytes,
	      size_t *len) MUST_CHECK;
int vlist_put(struct vlist_client *c, uint64_t key, const void *value,
	      size_t len) MUST_CHECK;
/* Succeeds also for a key that is not there. */
int vlist_del(struct vlist_client *c, uint64_t key) MUST_CHECK;

/* Calls `each` for all pairs, in no order, with keys as eight bytes; stops when
 * it returns other than 0, which is returned. Each pair existed at some moment
 * of the call, and no key that existed all the time is missing. */
typedef int (*vlist_pair_fn)(void *user, const void *key, size_t key_len,
			     const void *value, size_t value_len);
int vlist_each(struct vlist_client *c, vlist_pair_fn each,
	       void *user) MUST_CHECK;
/* So many keys have room: what vlist_options.keys was, or somewhat more. */
uint64_t vlist_key_room(const struct vlist_geometry *g);

#define VLIST_STATS(X)                                              \
	X(gets, "reads")                                            \
	X(puts, "writes")                                           \
	X(reads_first, "reads that found the newest at once")       \
	X(appends, "compare-and-swaps to append a version")         \
	X(appends_first, "writes whose first one succeeded")        \
	X(chases, "versions followed to the next")                  \
	X(stale, "remembered places that were not there any more")  \
	X(steered_reads, "READs that a switch sent to a newer one") \
	X(steered_appends, "appends that a switch sent to the end") \
	X(unvouched, "answers that nobody vouched for")             \
	X(verified, "of appends among them: found in the list")     \
	X(abandoned, "and given up, because those before were")     \
	X(unknown, "and of unknown outcome")                        \
	X(fenced, "silent clients that this one fenced")            \
	X(heads, "entries moved on to a later version")             \
	X(collected, "versions collected")                          \
	X(scans, "rounds of looking for versions to collect")       \
	X(chunks, "chunks taken")                                   \
	X(adopted, "of them, those of clients that are gone")       \
	X(trips, "round trips")                                     \
	X(sent_reads, "READs")                                      \
	X(sent_writes, "WRITEs")                                    \
	X(sent_atomics, "compare-and-swaps of all kinds")           \
	X(reconnects, "connections made anew")

struct vlist_stats {
#define VLIST_STAT_FIELD(name, help) uint64_t name;
	VLIST_STATS(VLIST_STAT_FIELD)
#undef VLIST_STAT_FIELD
};

const struct vlist_stats *vlist_client_stats(struct vlist_client *c);

/* What is wrong with a store that is not in use. */
struct vlist_report {
	uint64_t keys;
	uint64_t present;     /* keys whose newest version is a value */
	uint64_t versions;    /* that entries lead to */
	uint64_t bad_entries; /* twice, or in a wrong bucket */
	uint64_t bad_nodes;   /* reached, and torn or of another key */
	uint64_t loops;
	uint64_t clients;
	uint64_t chunks_taken;
	uint64_t chunks;
};

int vlist_check(struct vlist_client *c, struct vlist_report *r) MUST_CHECK;

#endif
