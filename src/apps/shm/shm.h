/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library inside a program under `aquifer run --shared GROUP`: POSIX and
 * System V shared memory and named semaphores are objects of the rack, which
 * all programs of the group have in common, on whatever machine.
 *
 * It asks this machine's cache server (coherent/channel.h), over a connection
 * for each question: the program has no thread, no child and no descriptor of
 * ours but placeholders that it opened itself. All objects are mapped in one
 * window of addresses, first where they are everywhere, and a second mapping of
 * the same pages an arena higher: so an address tells its page without a table,
 * to the filter of futex calls and to the server.
 */
#ifndef AQ_SHM_H
#define AQ_SHM_H

#include <dlfcn.h>
#include <stdatomic.h>

#include "base/base.h"
#include "coherent/channel.h"
#include "wire/coherence_wire.h"

#define SHM_EXPORT __attribute__((visibility("default")))

enum shm_kind {
	SHM_FILE = 'f',	     /* POSIX shared memory */
	SHM_SEMAPHORE = 's', /* a named semaphore */
	SHM_KEY = 'k',	     /* System V */
};

struct shm_object {
	uint64_t id, va, length_bytes, reserved_bytes;
	bool is_new;
};

/* ---- link.c: the server ---------------------------------------------------
 */

/* Whether this program belongs to a group at all. */
bool shm_is_on(void);
/* The names of objects; -ENAMETOOLONG. */
int shm_name(enum shm_kind kind, const char *name,
	     char out[COHERENT_NAME_MAX]) MUST_CHECK;
/* A connection, on which the next questions are asked; -errno. */
int shm_connect(void) MUST_CHECK;
/* By name, or NULL and id. fd: NULL, without a placeholder. */
int shm_find(int sock, const char *name, uint64_t id, unsigned flags,
	     struct shm_object *out, int *fd) MUST_CHECK;
int shm_resize(uint64_t id, uint64_t length_bytes) MUST_CHECK;
int shm_unlink_object(const char *name, uint64_t id) MUST_CHECK;
/* What became of it, by id, over a connection of its own. */
int shm_look(uint64_t id, struct shm_object *out) MUST_CHECK;
/* The same, until it has a length: who makes it gives it one at once. */
int shm_await(uint64_t id, struct shm_object *out) MUST_CHECK;
/* On the program's stderr, once for each cause. */
void shm_complain(const char *what, int err);
/* Sets errno; returns -1. */
int shm_fail(int err);

/* ---- file.c: descriptors --------------------------------------------------
 */

/* The object of a descriptor; 0: it is one of something else. */
uint64_t shm_id_of(int fd);

/* ---- map.c: mappings ------------------------------------------------------
 */

/* Maps a part of an object. `addr`: NULL, or where it must be. Returns the
 * address, or -errno. */
long shm_map(uint64_t id, void *addr, uint64_t offset, uint64_t size_bytes,
	     int prot) MUST_CHECK;
/* What the program has unmapped, or mapped something else over. */
void shm_forget(const void *addr, size_t len);
/* The size of the mapping that begins there; 0: none does. */
uint64_t shm_size_at(const void *addr);
/* How many mappings of an object this process has. */
unsigned shm_count(uint64_t id);
/* Until the memory node has what this machine stored. */
int shm_flush(const void *addr, size_t len) MUST_CHECK;

/* Whether an address is in the window. */
static inline bool shm_owns(const void *addr)
{
	return (uint64_t)(uintptr_t)addr - COHERENCE_BASE < COHERENCE_WINDOW;
}

/* The function that would be called without us, found once. */
static inline void *shm_next(_Atomic(void *) *known, const char *name)
{
	void *f = atomic_load_explicit(known, memory_order_relaxed);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, f, memory_order_relaxed);
	}
	return f;
}

/* A variable `f` of the type of `function`. */
#define SHM_NEXT(f, function, name)       \
	static _Atomic(void *) f##_known; \
	__typeof__(function) *f;          \
	*(void **)&(f) = shm_next(&f##_known, name)

#endif
