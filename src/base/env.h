/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything a room needs from the outside world: clock, randomness, frames,
 * memory, and what to do while waiting. os/ implements it on Linux, sim/ on a
 * virtual clock, so the simulator runs the shipped code.
 */
#ifndef AQ_ENV_H
#define AQ_ENV_H

#include "base.h"

/* An Ethernet/IP address of a NIC. IPv4 is held as an IPv4-mapped address. */
struct env_addr {
	uint8_t ip[16];
	uint8_t mac[6];
};

/* A path to one peer NIC; opaque, made and owned by the env. */
struct env_path;

/*
 * A peer's memory mapped into this process (the direct port). Loads and stores
 * reach it after the checks that a responder would make; see os/direct.c.
 */
struct env_direct {
	uint8_t *base;	 /* where iova is mapped here; NULL: see reach_copy */
	uint64_t iova;	 /* first address the key covers */
	uint64_t length; /* bytes */
	uint32_t access; /* IBV_ACCESS_REMOTE_* bits of the key */
};

enum env_direct_op {
	ENV_DIRECT_READ,  /* far -> near */
	ENV_DIRECT_WRITE, /* near -> far */
};

/* What is known of a path's peer other than its answers. */
enum env_peer {
	ENV_PEER_UNKNOWN, /* nothing */
	ENV_PEER_STALLED, /* it lives, but had no time to answer yet */
	ENV_PEER_RUNS,	  /* it had the time to answer, or is gone */
};

/* A part of the memory of this process. */
struct env_piece {
	void *addr;
	size_t len_bytes;
};

struct atomic_op;
struct env;

struct env_ops {
	/* Monotonic nanoseconds; never 0. */
	uint64_t (*now_ns)(struct env *env);
	/* Unpredictable bytes: the kernel's CSPRNG, or the seed in sim/. */
	void (*random)(struct env *env, void *buf, size_t len_bytes);
	/* Called by every loop that waits, on a CQ or on memory. */
	void (*relax)(struct env *env);

	/* Whole zeroed pages for queues; NULL when there are none left. */
	void *(*pages_alloc)(struct env *env, size_t len_bytes);
	void (*pages_free)(struct env *env, void *pages, size_t len_bytes);

	/*
	 * A path to the NIC that owns queue pair `qpn` at `dst`. May connect in
	 * the background: frames sent before the peer answers are kept or lost
	 * as on any network. Paths are counted; close what you opened.
	 */
	int (*path_open)(struct env *env, const struct env_addr *dst,
			 uint32_t qpn, struct env_path **path);
	void (*path_close)(struct env *env, struct env_path *path);

	/*
	 * A buffer for one frame of at most max_bytes, to be filled and sent
	 * by tx_end with its true length (0 gives the buffer back unsent). One
	 * frame is open at a time. NULL: the path is full, try again after the
	 * next input; a path that is down swallows frames instead.
	 */
	uint8_t *(*tx_begin)(struct env *env, struct env_path *path,
			     size_t max_bytes);
	void (*tx_end)(struct env *env, struct env_path *path,
		       size_t len_bytes);
	/*
	 * tx_begin for a frame of exactly len_bytes. Each byte is written once
	 * and never read back, because the peer may be able to see the buffer.
	 * NULL where tx_begin is as good.
	 */
	uint8_t *(*tx_begin_exact)(struct env *env, struct env_path *path,
				   size_t len_bytes);
	/*
	 * Frames may be collected since tx_end: send them. With `more`, the
	 * caller may soon have others, and the env may wait for them. NULL
	 * where frames are never collected.
	 */
	void (*tx_flush)(struct env *env, bool more);
	/* 0: the path loses nothing. Else frames may be lost or marked, and no
	 * more than this should be on the way: the NIC watches round trips and
	 * its window. NULL: no path loses anything. */
	uint32_t (*path_window_bytes)(struct env *env, struct env_path *path);

	/* The UDP source port that frames on the path must have, where the env
	 * cannot choose; 0, or NULL for all paths: any, one per flow. */
	uint16_t (*path_src_port)(struct env *env, struct env_path *path);

	/* The largest payload of a packet that reaches an address in one piece,
	 * as far as is known now; 0, or NULL for all addresses: any does. */
	uint32_t (*addr_payload_bytes)(struct env *env,
				       const struct env_addr *dst);

	/* The origin (enum nic_from) of frames that the peer of this path
	 * sends. NULL: all frames come from a network. */
	uint32_t (*path_from)(struct env *env, struct env_path *path);

	/*
	 * path_turns: how many turns the peer of this path has had so far; 0:
	 * not known. path_peer: whether it had the time to answer since it had
	 * since_turns, which tells a peer that does not run from one that does
	 * not answer. The second may start to find out; a caller that waits
	 * asks again. Both are NULL where this cannot be known.
	 */
	uint64_t (*path_turns)(struct env *env, struct env_path *path);
	enum env_peer (*path_peer)(struct env *env, struct env_path *path,
				   uint64_t since_turns);

	/*
	 * The direct port, NULL in an env without one. direct_find returns the
	 * mapping of `rkey` for the connection local qpn -> remote qpn, or NULL
	 * when there is none (yet): the frame path must be used. It may start
	 * to set a mapping up. direct_copy and direct_atomic return -EFAULT
	 * when the owner has revoked the memory, -EINPROGRESS when it did so
	 * while the memory was changed, -EADDRNOTAVAIL when `near` is not
	 * mapped any more.
	 */
	const struct env_direct *(*direct_find)(struct env *env,
						struct env_path *path,
						uint32_t local_qpn,
						uint32_t remote_qpn,
						uint32_t rkey);
	int (*direct_copy)(struct env *env, enum env_direct_op op, void *far,
			   void *near, size_t len_bytes);
	int (*direct_atomic)(struct env *env, const struct atomic_op *op,
			     void *far, uint64_t *original);
	/* A key of this process is gone: peers' mappings of it end. */
	void (*direct_revoke)(struct env *env, uint32_t rkey);

	/*
	 * Memory that direct_find has found but not mapped is copied by the
	 * system, which takes longer than a copy and less than a peer that must
	 * wake up. reach_is_wanted: whether that is better now than frames.
	 * reach_copy: offset is from d->iova; 0, or -EAGAIN: a part may be
	 * done, and frames must do it. reach_revoke: a connection ends, or may
	 * do less: returns when no peer copies any more. NULL where direct_find
	 * finds none such.
	 */
	bool (*reach_is_wanted)(struct env *env, uint32_t len_bytes);
	int (*reach_copy)(struct env *env, const struct env_direct *d,
			  enum env_direct_op op, uint64_t offset,
			  const struct env_piece *near, unsigned count);
	void (*reach_revoke)(struct env *env);
};

struct env {
	const struct env_ops *ops;
};

static inline uint64_t env_now_ns(struct env *env)
{
	return env->ops->now_ns(env);
}

static inline void env_random(struct env *env, void *buf, size_t len_bytes)
{
	env->ops->random(env, buf, len_bytes);
}

static inline void env_relax(struct env *env)
{
	env->ops->relax(env);
}

#endif
