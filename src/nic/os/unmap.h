/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learns from the kernel that registered memory was unmapped, by the program,
 * by its allocator, or by mmap over it. It needs userfaultfd, which any user
 * may have since Linux 5.11; without it nothing is watched.
 */
#ifndef AQ_OS_UNMAP_H
#define AQ_OS_UNMAP_H

#include <pthread.h>

#include "core/nic_host.h"

struct os_host;

/* A range that the kernel tells us about. */
struct unmap_range {
	uintptr_t start;
	uintptr_t end;
	uint64_t born; /* when it was first watched */
	uint32_t users;
};

struct unmap {
	/* Guards everything below; taken alone. */
	pthread_mutex_t mutex;
	bool tried; /* opening fd was tried */
	int fd;	    /* -1: not open */
	int stop_fd;
	pthread_t thread;
	struct unmap_range *ranges; /* by address, none overlap */
	uint32_t count;
	uint64_t births;
};

void unmap_init(struct unmap *u);
/* Ends the thread and the watching. */
void unmap_release(struct unmap *u);
/* In a forked child: the thread and what it knows are the parent's. */
void unmap_forget(struct unmap *u);

/* See nic_host_ops; no lock is held. */
uint64_t unmap_watch(struct nic_host *host, const void *addr, size_t len_bytes);
void unmap_unwatch(struct nic_host *host, const void *addr, size_t len_bytes,
		   uint64_t since);

#endif
