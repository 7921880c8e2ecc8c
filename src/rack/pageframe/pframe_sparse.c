/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one client's own, for the direct port: as large as its table, page
 * by page at the same index, and sparse. The client may map it and nothing
 * else, so the pool is not exposed. Each page that it may use has a page frame
 * in the table, taken from the queue like any other: the page frame is what is
 * charged, its own memory stays empty. A client that touches what it was not
 * given is found out by what its memory takes, see memnode.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/node_bind.h"
#include "pframe_priv.h"

static uint64_t bytes_of(const struct pframe_space *s)
{
	return s->entries * s->pool->pframe_bytes;
}

/* Where the machine makes huge pages of shared memory whatever we say, one
 * page costs as much as 512, and an honest client would be found greedy. */
static int check_grain(struct pframe_space *s)
{
	uint64_t bytes = 0;

	*s->sparse = 1;
	bytes = pframe_space_touched_bytes(s);
	pframe_sparse_drop(s, 0);
	if (bytes > s->pool->pframe_bytes)
		return error_set(-EOPNOTSUPP,
				 "shared memory is given in pieces of %llu "
				 "bytes here: see shmem_enabled of "
				 "transparent huge pages",
				 (unsigned long long)bytes);
	return 0;
}

int pframe_sparse_create(struct pframe_space *s)
{
	void *memory;
	int err;

	if (s->pool->pframe_bytes % (uint32_t)sysconf(_SC_PAGESIZE))
		return error_set(-EINVAL, "sparse pages are whole pages of "
					  "the machine");
	err = aqdv_alloc(s->pd->context, bytes_of(s), AQDV_ALLOC_SPARSE,
			 &memory);
	if (err)
		return error_set(err, "the NIC gives no sparse memory");
	s->sparse = memory;
	if (s->pool->is_bound)
		err = node_bind_memory(memory, bytes_of(s), s->pool->node);
	if (err) {
		pframe_sparse_destroy(s);
		return error_set(err, "sparse memory cannot be on NUMA node %u",
				 s->pool->node);
	}
	/* A mapping has all rights, so the key has them, too. */
	s->sparse_mr = ibv_reg_mr(
		s->pd, memory, bytes_of(s),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	err = s->sparse_mr
		      ? check_grain(s)
		      : error_set(-errno, "no key for sparse memory is left");
	if (err)
		pframe_sparse_destroy(s);
	return err;
}

void pframe_sparse_destroy(struct pframe_space *s)
{
	if (s->sparse_mr)
		(void)ibv_dereg_mr(s->sparse_mr);
	if (s->sparse)
		(void)aqdv_free(s->pd->context, s->sparse);
	s->sparse_mr = NULL;
	s->sparse = NULL;
}

uint64_t pframe_sparse_at(const struct pframe_space *s, uint64_t index)
{
	return (uintptr_t)s->sparse + index * s->pool->pframe_bytes;
}

/* What cannot be given back counts as touched, and the client pays. */
void pframe_sparse_drop(const struct pframe_space *s, uint64_t index)
{
	if (index < s->entries)
		(void)madvise((void *)pframe_sparse_at(s, index),
			      s->pool->pframe_bytes, MADV_REMOVE);
}

void pframe_sparse_take(const struct pframe_space *s, uint64_t pframe)
{
	(void)madvise((void *)(uintptr_t)pframe, s->pool->pframe_bytes,
		      MADV_DONTNEED);
}

uint64_t pframe_space_touched_bytes(const struct pframe_space *s)
{
	uint64_t bytes = 0;

	if (s->sparse)
		(void)aqdv_alloc_used(s->pd->context, s->sparse, &bytes);
	return bytes;
}
