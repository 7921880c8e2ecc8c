/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that machines share as processes of one machine do: plain loads,
 * stores and atomics, at the same address everywhere.
 *
 *	struct aq_rack *rack;
 *	struct aq_shared *shared;
 *	_Atomic long *counter;
 *
 *	if (aq_rack_open(NULL, &rack) ||
 *	    aq_shared_open(rack, "hits", 0, &shared))
 *		fprintf(stderr, "%s\n", aq_last_error());
 *	counter = aq_shared_addr(shared);
 *	atomic_fetch_add(counter, 1);
 *
 * The rack needs a memory node with shared memory and a switch with the program
 * coherence. Each machine has a cache server (`aquifer shared serve`), through
 * whose NIC its pages come; the first program that opens a segment starts it.
 * What the processor promises on one machine (x86: TSO) holds across machines.
 * docs/mind.md says how.
 *
 * Errors: 0 or a negative errno, as in <aquifer/aquifer.h>. Memory that is lost
 * (a machine died with the only copy of its stores, the segment was deleted,
 * this machine was cut off for more than its lease, its cache server was
 * killed) is SIGBUS for who touches it, and EFAULT for system calls; never
 * zeros, never old bytes.
 *
 * fork: the child does not have the memory; it opens the segment itself. Memory
 * that devices write (O_DIRECT, registered regions, io_uring buffers) must not
 * be shared memory. Sleeping on a word (futex, and so mutexes that sleep and
 * condition variables) works across machines for programs that are started by
 * `aquifer run --shared`, and else among threads of one machine only.
 *
 * Threads: any, but aq_shared_flush, aq_shared_fetch and aq_shared_stat of one
 * handle one at a time, and nothing after aq_shared_close.
 */
#ifndef AQUIFER_SHARED_H
#define AQUIFER_SHARED_H

#include <aquifer/aquifer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct aq_shared;

enum {
	AQ_SHARED_NAME_MAX = 63, /* letters, digits, '-', '_' and '.' */
};

enum aq_shared_flags {
	AQ_SHARED_READ_ONLY = 1 << 0, /* stores are SIGSEGV */
};

enum aq_shared_right {
	AQ_SHARED_NONE,
	AQ_SHARED_READ,
	AQ_SHARED_WRITE, /* and read */
};

struct aq_shared_info {
	uint64_t size_bytes;
	uint64_t lost_bytes; /* until `aquifer shared repair`; 0: all is well */
	/* Of this machine: pages of the segment that its cache has, faults of
	 * its programs, pages that it asked for, had to give up and gave back.
	 */
	uint64_t cached_bytes;
	uint64_t faults;
	uint64_t gets;
	uint64_t invalidations;
	uint64_t given_back;
};

/*
 * Makes a segment of zeros; the size is rounded up to pages of 4 KiB. -EEXIST:
 * there is one of that name; -ENOSPC: no room; -EOPNOTSUPP: the rack has no
 * shared memory. Segments live until they are deleted.
 */
AQ_API int aq_shared_create(struct aq_rack *rack, const char *name,
			    uint64_t size_bytes);

enum aq_shared_create_flags {
	/* When a machine dies with the only copy of stores, all go on with what
	 * the memory node has, and the switch counts it. Without it that part
	 * is lost until `aquifer shared repair`. */
	AQ_SHARED_LAST = 1 << 0,
};

/* Zero-initialise it; unset members have their default. */
struct aq_shared_options {
	uint32_t flags; /* enum aq_shared_create_flags */
	/* Memory nodes that have all of it, 1 or 2; 0: one. With two, what was
	 * given back is in both, and the death of one of them loses nothing.
	 * -ENOSPC: no second node has room. */
	uint32_t copies;
	uint64_t reserved_more[4];
};

/* The same; `options` may be NULL. */
AQ_API int aq_shared_create_with(struct aq_rack *rack, const char *name,
				 uint64_t size_bytes,
				 const struct aq_shared_options *options);
/* At once, also for those who use it. */
AQ_API int aq_shared_delete(struct aq_rack *rack, const char *name);
/* What another tenant may do with the segment. */
AQ_API int aq_shared_allow(struct aq_rack *rack, const char *name,
			   const char *tenant, enum aq_shared_right right);
/* The same of a part. Parts begin and end at multiples of 2 MiB, or at the
 * segment's end; length 0: all that follows. -EINVAL. */
AQ_API int aq_shared_allow_part(struct aq_rack *rack, const char *name,
				const char *tenant, uint64_t offset,
				uint64_t length, enum aq_shared_right right);

/*
 * Maps a segment at the address that it has everywhere; "TENANT/NAME" is one of
 * another tenant. -EHOSTDOWN: this machine's cache server cannot be started;
 * -EACCES: no right, or no right to use userfaultfd; -EEXIST: something else is
 * at that address, for example the same segment. The caller owns *shared, and
 * the rack must stay open as long as anything but aq_shared_close is called.
 */
AQ_API int aq_shared_open(struct aq_rack *rack, const char *name,
			  unsigned flags, struct aq_shared **shared);
/* Unmaps it. What was stored stays: the cache server has it. NULL is allowed.
 */
AQ_API void aq_shared_close(struct aq_shared *shared);

AQ_API void *aq_shared_addr(const struct aq_shared *shared);
AQ_API uint64_t aq_shared_size(const struct aq_shared *shared);

/*
 * Returns when all that this machine's programs have stored to the range until
 * now is in the memory node, so that the death of this machine loses none of
 * it. Waits as long as the switch is away.
 */
AQ_API int aq_shared_flush(struct aq_shared *shared, uint64_t offset,
			   uint64_t length);
/*
 * The range will be read, or written (AQ_SHARED_READ, AQ_SHARED_WRITE): its
 * pages come while the caller does something else, up to half of the machine's
 * cache. Returns at once; a page that is touched before it has come is waited
 * for as always, and one that cannot be had is SIGBUS when it is touched, not
 * here. The next call takes the place of one that has not finished. -ERANGE;
 * -EACCES: to write what is open for reading.
 */
AQ_API int aq_shared_fetch(struct aq_shared *shared, uint64_t offset,
			   uint64_t length, enum aq_shared_right right);
AQ_API int aq_shared_stat(struct aq_shared *shared,
			  struct aq_shared_info *info);

#ifdef __cplusplus
}
#endif

#endif
