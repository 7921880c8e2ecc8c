/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one client's own, for the direct port: as large as its table, page
 * by page at the same index, and sparse. The client may map it and nothing
 * else, so the pool is not exposed. Each page that it may use has a frame in
 * the table, taken from the queue like any other: the frame is what is charged,
 * its own memory stays empty. A client that touches what it was not given is
 * found out by what its memory takes, see memnode.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "error.h"
#include "frame_priv.h"

static uint64_t bytes_of(const struct frame_space *s)
{
	return s->entries * s->pool->frame_bytes;
}

int frame_sparse_create(struct frame_space *s)
{
	void *memory;
	int err;

	if (s->pool->frame_bytes % (uint32_t)sysconf(_SC_PAGESIZE))
		return error_set(-EINVAL, "sparse pages are whole pages of "
					  "the machine");
	err = aqdv_alloc(s->pd->context, bytes_of(s), AQDV_ALLOC_SPARSE,
			 &memory);
	if (err)
		return error_set(err, "the NIC gives no sparse memory");
	s->sparse = memory;
	/* A mapping has all rights, so the key has them, too. */
	s->sparse_mr = ibv_reg_mr(
		s->pd, memory, bytes_of(s),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	if (!s->sparse_mr) {
		err = -errno;
		frame_sparse_destroy(s);
		return error_set(err, "no key for sparse memory is left");
	}
	return 0;
}

void frame_sparse_destroy(struct frame_space *s)
{
	if (s->sparse_mr)
		(void)ibv_dereg_mr(s->sparse_mr);
	if (s->sparse)
		(void)aqdv_free(s->pd->context, s->sparse);
	s->sparse_mr = NULL;
	s->sparse = NULL;
}

uint64_t frame_sparse_at(const struct frame_space *s, uint64_t index)
{
	return (uintptr_t)s->sparse + index * s->pool->frame_bytes;
}

/* What cannot be given back counts as touched, and the client pays. */
void frame_sparse_drop(const struct frame_space *s, uint64_t index)
{
	if (index < s->entries)
		(void)madvise((void *)frame_sparse_at(s, index),
			      s->pool->frame_bytes, MADV_REMOVE);
}

void frame_sparse_take(const struct frame_space *s, uint64_t frame)
{
	(void)madvise((void *)(uintptr_t)frame, s->pool->frame_bytes,
		      MADV_DONTNEED);
}

uint64_t frame_space_touched_bytes(const struct frame_space *s)
{
	uint64_t bytes = 0;

	if (s->sparse)
		(void)aqdv_alloc_used(s->pd->context, s->sparse, &bytes);
	return bytes;
}
