/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user's side of the direct port: which memory of a peer is mapped here,
 * and operations on it. A mapping is asked for once per key and connection over
 * the cable's socket; until the answer comes, the NIC uses frames.
 */
#ifndef AQ_DIRECT_H
#define AQ_DIRECT_H

#include <stdatomic.h>

#include "base/env.h"

struct cable;
struct cable_fds;
struct cable_msg;
struct os_host;

struct direct_map {
	struct env_direct d;
	const _Atomic uint32_t *word; /* the owner's */
	uint32_t generation;	      /* *word while the mapping is valid */
	uint32_t index;
	size_t map_bytes;
};

/* Open addressing by key and peer's queue pair; never more than half full. */
struct direct_entry {
	uint32_t rkey;
	uint32_t qpn;
	uint32_t state;	  /* 0: free */
	uint32_t lookups; /* of a refused key; the clock is read now and then */
	union {
		struct direct_map *map;
		struct reach_map *reach;
	};
	uint64_t retry_ns;
	bool was_reached; /* ask again soon */
};

struct direct_table {
	struct direct_entry *entries;
	uint32_t capacity;
	uint32_t count;
	struct direct_map **maps; /* by the owner's word index, or NULL */
};

const struct env_direct *direct_find(struct cable *c, uint32_t local_qpn,
				     uint32_t remote_qpn, uint32_t rkey);
/* A CABLE_MAP_REP came. */
int direct_reply(struct cable *c, const struct cable_msg *msg,
		 struct cable_fds *fds) MUST_CHECK;
void direct_table_release(struct cable *c);

/* Env operations; -EFAULT: revoked. */
int direct_copy(struct env *env, enum env_direct_op op, void *far, void *near,
		size_t len_bytes);
int direct_atomic(struct env *env, const struct atomic_op *op, void *far,
		  uint64_t *original);

#endif
