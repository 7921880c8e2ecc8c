/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: a process that shares the server's descriptors and waits for its
 * end. A userfaultfd that nobody has any more lets its program read zeros; so
 * while the keeper lives they stay, and before it goes it cuts the files of all
 * segments: SIGBUS, never zeros, and never pages that nobody keeps coherent. It
 * does the same when the server stands still and its lease is nearly over:
 * programs that run on would use pages that others have by then.
 *
 * It also reads words of programs for the server, which is confined and may not
 * (landlock): the timeouts of calls that the server holds.
 */
#ifndef AQ_SHD_KEEPER_H
#define AQ_SHD_KEEPER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"

enum {
	SHD_KEEPER_FILES = 4096, /* segments of a machine */
};

/* Shared by both processes. */
struct shd_keeper {
	_Atomic uint64_t sent_ns; /* of the last beat that was answered, or 0 */
	_Atomic bool is_hidden;	  /* nobody can touch anything */
	int ask[2], reply[2];	  /* pipes */
	uint64_t serial;	  /* of the last question; the server's */
	_Atomic int file[SHD_KEEPER_FILES]; /* descriptor + 1; 0: none */
};

/* Starts it; no thread may exist yet. *out is mapped until the process ends.
 * -errno with words. */
int shd_keeper_start(struct shd_keeper **out, pid_t *pid) MUST_CHECK;
/* 16 bytes of a process's memory. -errno. */
int shd_keeper_read(struct shd_keeper *k, pid_t pid, uint64_t addr,
		    uint64_t out[2]) MUST_CHECK;
/* Adds a file before anybody maps it. -ENOSPC. */
int shd_keeper_add(struct shd_keeper *k, int file) MUST_CHECK;
/* Before it is closed. */
void shd_keeper_remove(struct shd_keeper *k, int file);

#endif
