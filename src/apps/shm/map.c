/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of objects, and that children have them, too. */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coherent/map.h"
#include "shm.h"

enum {
	MAPPINGS = 4096,
	PAGE = COHERENCE_PAGE_BYTES,
};

#define ARENA_BYTES (1ull << COHERENCE_NODE_SHIFT)

/* What this process has mapped. A child made by fork does not inherit it
 * (MADV_DONTFORK), and maps it again from this table. */
static struct {
	pthread_mutex_t lock;
	unsigned count;
	struct coherent_range range[MAPPINGS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int remember(const struct coherent_range *r)
{
	if (all.count == MAPPINGS)
		return -ENOMEM;
	all.range[all.count++] = *r;
	return 0;
}

/* Takes what is in [from, to) out of the table: an entry becomes none, one or
 * two. */
static void cut(uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < all.count;) {
		struct coherent_range r = all.range[i], rest = r;
		uint64_t end = r.at + r.size_bytes;

		if (end <= from || r.at >= to) {
			i++;
			continue;
		}
		all.range[i] = all.range[--all.count];
		if (r.at < from) {
			rest.size_bytes = from - r.at;
			(void)remember(&rest); /* there is room for one */
		}
		if (end > to) {
			rest = r;
			rest.at = to;
			rest.offset += to - r.at;
			rest.size_bytes = end - to;
			if (remember(&rest))
				shm_complain("a child will not have a part of "
					     "its shared memory",
					     -ENOMEM);
		}
		i = 0;
	}
}

void shm_forget(const void *addr, size_t len)
{
	struct coherent_ask ask = {.kind = COHERENT_UNMAP,
				   .va = (uint64_t)(uintptr_t)addr,
				   .size_bytes = align_up(len, PAGE)};
	struct coherent_answer a;
	unsigned count;
	int saved = errno, sock;

	(void)pthread_mutex_lock(&all.lock);
	cut(ask.va, ask.va + ask.size_bytes);
	(void)pthread_mutex_unlock(&all.lock);
	/* A server that is gone has nothing to forget. */
	sock = shm_connect();
	if (sock >= 0) {
		(void)!coherent_question(sock, &ask, -1, &a, NULL, 0, &count);
		(void)close(sock);
	}
	errno = saved;
}

uint64_t shm_size_at(const void *addr)
{
	uint64_t size_bytes = 0;

	(void)pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.count; i++)
		if (all.range[i].at == (uint64_t)(uintptr_t)addr)
			size_bytes = all.range[i].size_bytes;
	(void)pthread_mutex_unlock(&all.lock);
	return size_bytes;
}

unsigned shm_count(uint64_t id)
{
	unsigned count = 0;

	(void)pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.count; i++)
		count += all.range[i].id == id;
	(void)pthread_mutex_unlock(&all.lock);
	return count;
}

/* ---- mapping ------------------------------------------------------------- */

/* Takes a place of the window for these pages of the object. */
static int choose(struct coherent_range *r, void *addr)
{
	uint64_t first = r->va + r->offset;

	r->is_fixed = true;
	if (addr) {
		r->at = (uint64_t)(uintptr_t)addr;
		/* Anywhere else nobody could sleep on its words. */
		return shm_owns(addr) && (r->at - first) % ARENA_BYTES == 0
			       ? 0
			       : -EOPNOTSUPP;
	}
	for (r->at = first; shm_owns((void *)(uintptr_t)r->at);
	     r->at += ARENA_BYTES)
		if (syscall(SYS_mmap, r->at, r->size_bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
				    MAP_FIXED_NOREPLACE,
			    -1, 0) != -1)
			return 0;
	return -ENOMEM;
}

static int map_range(struct coherent_range *r, void *addr)
{
	struct shm_object o;
	int sock = shm_connect(), err;

	if (sock < 0)
		return sock;
	err = shm_find(sock, NULL, r->id, 0, &o, NULL);
	if (!err && (!o.length_bytes || r->size_bytes > o.reserved_bytes ||
		     r->offset > o.reserved_bytes - r->size_bytes))
		err = -EINVAL;
	if (!err) {
		r->va = o.va;
		r->reserved_bytes = o.reserved_bytes;
		err = choose(r, addr);
	}
	if (!err) {
		err = coherent_map(sock, r);
		if (err && !addr)
			(void)syscall(SYS_munmap, r->at, r->size_bytes);
	}
	(void)close(sock);
	return err;
}

long shm_map(uint64_t id, void *addr, uint64_t offset, uint64_t size_bytes,
	     int prot)
{
	struct coherent_range r = {.id = id,
				   .offset = offset,
				   .size_bytes = align_up(size_bytes, PAGE),
				   .prot = prot,
				   .stays = true};
	int err;

	if (!size_bytes || offset % PAGE || size_bytes > INT64_MAX / 2)
		return -EINVAL;
	(void)pthread_mutex_lock(&all.lock);
	err = all.count == MAPPINGS ? -ENOMEM : map_range(&r, addr);
	if (!err) {
		if (addr)
			cut(r.at, r.at + r.size_bytes);
		err = remember(&r);
	}
	(void)pthread_mutex_unlock(&all.lock);
	return err ? err : (long)r.at;
}

int shm_flush(const void *addr, size_t len)
{
	uint64_t at = (uint64_t)(uintptr_t)addr;
	struct coherent_range r = {0};
	struct coherent_ask ask;
	struct coherent_answer a;
	unsigned count = 0;
	int sock, fd[2], err;

	(void)pthread_mutex_lock(&all.lock);
	for (unsigned i = 0; i < all.count && !r.id; i++)
		if (at - all.range[i].at < all.range[i].size_bytes)
			r = all.range[i];
	(void)pthread_mutex_unlock(&all.lock);
	if (!r.id || len > r.size_bytes - (at - r.at))
		return -ENOMEM;
	sock = shm_connect();
	if (sock < 0)
		return sock;
	ask = (struct coherent_ask){.kind = COHERENT_OPEN,
				    .va = r.va,
				    .size_bytes = r.reserved_bytes,
				    .id = r.id};
	err = coherent_question(sock, &ask, -1, &a, fd, 2, &count);
	for (unsigned i = 0; i < count && i < 2; i++)
		(void)close(fd[i]);
	ask = (struct coherent_ask){.kind = COHERENT_FLUSH,
				    .va = r.va + r.offset + (at - r.at),
				    .size_bytes = len};
	if (!err)
		err = coherent_question(sock, &ask, -1, &a, NULL, 0, &count);
	(void)close(sock);
	return err;
}

/* ---- fork ---------------------------------------------------------------- */

static void fork_prepare(void)
{
	(void)pthread_mutex_lock(&all.lock);
}

static void fork_parent(void)
{
	(void)pthread_mutex_unlock(&all.lock);
}

/* What cannot be mapped is not there: SIGSEGV, never other bytes. */
static void fork_child(void)
{
	int saved = errno;

	for (unsigned i = 0; i < all.count; i++) {
		struct coherent_range r = all.range[i];
		int err = map_range(&r, (void *)(uintptr_t)r.at);

		if (err)
			shm_complain("a child does not have its parent's "
				     "shared memory",
				     err);
	}
	(void)pthread_mutex_unlock(&all.lock);
	errno = saved;
}

__attribute__((constructor)) static void constructor(void)
{
	if (shm_is_on())
		(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}
