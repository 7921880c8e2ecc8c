/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library inside a program under `aquifer run`. It owns a range of
 * addresses that the pager serves, gives it out as heap (mimalloc) and as
 * anonymous mappings. Its agent, a process that shares the program's memory and
 * nothing else, copies pages out and drops them.
 *
 * It lives in the program's process: it has no thread, no child and no open
 * descriptor there, and allocates nothing before the allocator is ready. Where
 * it cannot attach, the program runs on with local memory.
 */
#ifndef AQ_PRELOAD_H
#define AQ_PRELOAD_H

#include "run/run_channel.h"

/* The process's one range; malloc has no argument that could carry it. */
struct preload {
	_Atomic int state;   /* enum preload_state */
	_Atomic int is_busy; /* the lock of calls */
	uint8_t *range;
	/* Shared with the pager only: a forked child does not have them. */
	struct run_channel *channel;
	uint8_t *buffers;
	/* A page that holds 1, but 0 in a child made by fork (by any call)
	 * until the child has attached itself. */
	_Atomic uint32_t *is_attached;
	uint64_t buffer_bytes;
	uint64_t min_bytes;
	bool is_strict; /* without far memory the process ends */
	char socket_path[108];
	uint8_t token[RUN_TOKEN_BYTES];
	_Atomic int maps_lock;
	uint64_t *maps_used; /* a bit per page of the mappings' part */
	uint64_t maps_next;  /* where the search starts */
	/* Whether there are advice, rights or locks that outlive the pages. */
	_Atomic int has_oddities;
	/* The kernel locks what is mapped from now on: no far memory. */
	_Atomic int locks_future;
	/* The last mapping that was not at the wished address, and how often in
	 * a row such a mapping was given back at once. */
	_Atomic uintptr_t unwanted;
	_Atomic uint32_t unwanted_count;
	/* The user that the agent becomes, (uid_t)-1: the same user; and a
	 * futex: 1 once the agent has given up its rights, 2 if it could
	 * not. */
	uint32_t agent_uid, agent_gid;
	_Atomic uint32_t agent_is_bare;
	/* The process that makes the agent, by a number valid for both; and the
	 * result of making it, 0 or more on success. */
	long agent_maker, agent_made;
	uint8_t *agent_stack_top, *agent_tls;
	/* Where the agent puts pages that it moves; for the agent only. */
	uint8_t *agent_staging;
};

enum preload_state {
	PRELOAD_NEW,
	PRELOAD_STARTING,
	PRELOAD_FAR,
	PRELOAD_LOCAL, /* no pager to attach to */
};

extern struct preload preload;

/* Once, before the first allocation; any thread. */
void preload_start(void);

static inline bool preload_is_far(void)
{
	/* RUN-S1 */
	return atomic_load_explicit(&preload.state, memory_order_acquire) ==
	       PRELOAD_FAR;
}

/* The pager says so where --overflow does not let local memory grow. */
static inline bool preload_is_full(void)
{
	return atomic_load_explicit(preload.is_attached,
				    memory_order_relaxed) &&
	       atomic_load_explicit(&preload.channel->is_full,
				    memory_order_relaxed);
}

/* Whether the address is in the range and the range is in use. */
static inline bool preload_owns(const void *addr)
{
	return preload_is_far() &&
	       (uintptr_t)addr - (uintptr_t)preload.range < RUN_RANGE_BYTES;
}

/* Whether pages given back may have special advice, rights or locks. */
static inline bool preload_has_oddities(void)
{
	return atomic_load_explicit(&preload.has_oddities,
				    memory_order_relaxed) ||
	       !atomic_load_explicit(preload.is_attached,
				     memory_order_relaxed) ||
	       atomic_load_explicit(&preload.channel->has_aliens,
				    memory_order_relaxed);
}

static inline void preload_set_oddities(void)
{
	atomic_store_explicit(&preload.has_oddities, 1, memory_order_relaxed);
}

/* Advice that all of the range has: small pages, and no part of core dumps. */
void preload_plain(void *start, size_t bytes);

/* The system calls themselves, since this library defines libc's names. */
void *preload_sys_mmap(void *addr, size_t len, int prot, int flags, int fd,
		       long offset);
int preload_sys_munmap(void *addr, size_t len);
/* Memory of our own, zeros, which is never far; NULL: there is none. */
void *preload_new(size_t bytes);
int preload_sys_madvise(void *addr, size_t len, int advice);

void preload_spin_lock(_Atomic int *lock);
void preload_spin_unlock(_Atomic int *lock);

/* Connects, makes range, userfaultfd and channel; 0 or -errno. */
int preload_attach(const char *env) MUST_CHECK;
/* In a forked child: makes channel and agent anew and waits for the pager's
 * acknowledgement. */
int preload_attach_forked(void) MUST_CHECK;

/* The main function of the process that makes the agent. It does not return. */
void preload_agent_make(void *arg);
/* Starts the agent, and returns when the agent has given up its rights. */
int preload_agent_start(struct preload *p) MUST_CHECK;

/* Finds libc's own open and fcntl. */
void preload_direct_start(void);

/* Rings the bell with a call and waits for its end. */
int preload_call(uint32_t kind, const void *start, size_t bytes);
/* A forked child identifies itself by touching the page that it was told. */
int preload_call_self(uint32_t bell_page);

/* Pages of the mappings' part; NULL when there is no room. */
void *preload_maps_alloc(size_t bytes);
/* Frees whole pages, whatever state they are in; 0 or -1 with errno. */
int preload_maps_free(void *start, size_t bytes);
/* Whether it is in that part at all. */
bool preload_maps_has(const void *addr);
/* Takes exactly these pages; false: they are not free. */
bool preload_maps_take(void *start, size_t bytes);
/* Marks pages as used that the program mapped there itself. */
void preload_maps_use(void *start, size_t bytes);
/* Maps plain far memory anew; false: not possible. */
bool preload_maps_renew(void *start, size_t bytes);
/* Extends [start, start + old) to `bytes` in place; false: not possible. */
bool preload_maps_grow(void *start, size_t old, size_t bytes);

/* The part of [addr, addr + len) that is in the range; false: none. */
bool preload_clip(const void *addr, size_t len, void **start, size_t *bytes);

/* Keeps pages near again: in a forked child, and when locks are released. */
void preload_robust_keep(void);

#endif
