/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a region and its registration.
 *
 * Scrubbing: memory that is given back is truncated (aqdv_free) or unmapped, so
 * its pages return to the kernel, which clears every page before anybody gets
 * it again; the pool counts it as free only afterwards. A peer that had it
 * mapped holds an empty file from then on.
 */
#include "memory_priv.h"

#include <aquifer/aqdv.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/node_bind.h"
#include "base/size.h"
#include "spill.h"

enum {
	REGION_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			IBV_ACCESS_MW_BIND,
	READABLE_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
	DEVICE_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC |
			IBV_ACCESS_ZERO_BASED,
};

int memory_register(struct ibv_pd *pd, const struct memory *m, bool only_read,
		    struct ibv_mr **out)
{
	int take =
		only_read
			? ~(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
			: ~0;
	struct ibv_mr *mr =
		m->dm ? ibv_reg_dm_mr(pd, m->dm, 0,
				      align_up(m->size_bytes, DEVICE_ALIGN),
				      (unsigned)((DEVICE_ACCESS |
						  IBV_ACCESS_MW_BIND) &
						 take))
		      : ibv_reg_mr(pd, m->addr, m->size_bytes,
				   REGION_ACCESS & take);

	if (!mr)
		return error_set(-errno, "cannot register %s: %s",
				 SIZE_TEXT(m->size_bytes), strerror(errno));
	*out = mr;
	return 0;
}

void memory_settle(const struct memory *m)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	if (!m->from_aqdv || m->dm)
		return;
	/* A peer stores, and then looks whether it still may (os/direct.c);
	 * nothing keeps its processor from looking before others see what it
	 * stored. The kernel has every processor pass a barrier instead, so
	 * that operations need none. Without that call it takes an interrupt
	 * of theirs, which is not long. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		(void)nanosleep(&pause, NULL);
}

void memory_close(struct memory *m)
{
	int err = ibv_dereg_mr(m->mr);

	ASSERT(err == 0); /* its windows are gone */
	m->mr = NULL;
}

void memory_free(struct mem_node *node, struct memory *m)
{
	int err;

	if (m->mr)
		memory_close(m);
	if (m->dm) {
		err = ibv_free_dm(m->dm);
		ASSERT(err == 0);
		return;
	}
	if (m->is_spilled) {
		spill_give(node->spill, m->addr, m->size_bytes);
		return;
	}
	err = m->from_aqdv ? aqdv_free(node->context, m->addr)
			   : munmap(m->addr, region_pages(m->size_bytes));
	ASSERT(err == 0);
}

/* Pages for a region. Those that exist from the start come from the node that
 * this thread takes memory from; the rest, wherever it is touched first, and
 * what comes back after a hole, from the one that the memory is bound to. */
static int take_pages(struct mem_node *node, unsigned flags, struct memory *m)
{
	int err = node->has_numa ? node_bind_thread(node->numa) : 0;

	if (err)
		return err;
	err = aqdv_alloc(node->context, m->size_bytes, flags, &m->addr);
	if (err == -EOPNOTSUPP) { /* an RNIC: nobody maps anything */
		m->from_aqdv = false;
		m->addr = mmap(NULL, region_pages(m->size_bytes),
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		err = m->addr == MAP_FAILED ? -errno : 0;
		if (!err)
			(void)madvise(m->addr, m->size_bytes, MADV_HUGEPAGE);
	}
	if (node->has_numa)
		node_bind_thread_end();
	if (err || !node->has_numa)
		return err;
	err = node_bind_memory(m->addr, region_pages(m->size_bytes),
			       node->numa);
	if (err)
		memory_free(node, m);
	return err;
}

/* Registers it, or gives it back. */
static int enter(struct mem_node *node, struct ibv_pd *pd, int access,
		 struct memory *m, struct memory *out)
{
	int err;

	m->mr = ibv_reg_mr(pd, m->addr, m->size_bytes, access);
	if (!m->mr) {
		err = -errno;
		memory_free(node, m);
		return error_set(err, "cannot register %s: %s",
				 SIZE_TEXT(m->size_bytes), strerror(-err));
	}
	*out = *m;
	return 0;
}

/* The machine has less than the pool was promised. */
static int no_memory(int err, uint64_t size_bytes)
{
	return error_set(err == -ENOMEM ? -ENOSPC : err,
			 "no memory on the node for %s: %s",
			 SIZE_TEXT(size_bytes), strerror(-err));
}

static int make(struct mem_node *node, struct ibv_pd *pd, uint64_t size_bytes,
		unsigned flags, int access, struct memory *out)
{
	struct memory m = {.size_bytes = size_bytes,
			   .from_aqdv = true,
			   .can_bind = access & IBV_ACCESS_MW_BIND};
	int err = take_pages(node, flags, &m);

	if (err)
		return no_memory(err, size_bytes);
	return enter(node, pd, access, &m, out);
}

int memory_make(struct mem_node *node, struct ibv_pd *pd, uint64_t size_bytes,
		struct memory *out)
{
	return make(node, pd, size_bytes, 0, REGION_ACCESS, out);
}

int memory_prepare(struct mem_node *node, uint64_t size_bytes,
		   struct memory *out)
{
	struct memory m = {.size_bytes = size_bytes, .from_aqdv = true};
	/* Peers map only what says so: decision 80. */
	int err = take_pages(node, AQDV_ALLOC_READ_ONLY, &m);

	if (err)
		return no_memory(err, size_bytes);
	/* Whoever writes there waits for no page to be cleared. */
	if (madvise(m.addr, size_bytes, MADV_POPULATE_WRITE))
		memset(m.addr, 0, size_bytes);
	*out = m;
	return 0;
}

int memory_enter_readable(struct mem_node *node, struct ibv_pd *pd,
			  struct memory *m, struct memory *out)
{
	return enter(node, pd, READABLE_ACCESS, m, out);
}

int memory_make_readable(struct mem_node *node, struct ibv_pd *pd,
			 uint64_t size_bytes, struct memory *out)
{
	struct memory m;
	int err = memory_prepare(node, size_bytes, &m);

	return err ? err : memory_enter_readable(node, pd, &m, out);
}

int memory_make_spilled(struct mem_node *node, struct ibv_pd *pd,
			uint64_t size_bytes, struct memory *out)
{
	struct memory m = {.size_bytes = size_bytes, .is_spilled = true};
	int err = spill_take(node->spill, size_bytes, &m.addr);

	if (err)
		return err;
	return enter(node, pd, READABLE_ACCESS, &m, out);
}

int memory_make_sparse(struct mem_node *node, struct ibv_pd *pd,
		       uint64_t size_bytes, struct memory *out)
{
	return make(node, pd, size_bytes, AQDV_ALLOC_SPARSE, REGION_ACCESS,
		    out);
}

void memory_scrub(const struct memory *m, uint64_t at, uint64_t bytes)
{
	void *from = (uint8_t *)m->addr + at;

	/* An adapter's own mapping would not notice that pages are replaced. */
	if (!m->from_aqdv || madvise(from, bytes, MADV_REMOVE))
		memset(from, 0, bytes);
}

int memory_make_device(struct mem_node *node, struct ibv_pd *pd,
		       uint64_t size_bytes, struct memory *out)
{
	struct ibv_alloc_dm_attr attr = {
		.length = align_up(size_bytes, DEVICE_ALIGN),
		.log_align_req = DEVICE_LOG_ALIGN};
	struct memory m = {.size_bytes = size_bytes,
			   .dm = ibv_alloc_dm(node->context, &attr)};
	int err;

	if (!m.dm)
		return error_set(errno == EOPNOTSUPP ? -EOPNOTSUPP : -ENOSPC,
				 "the NIC has no %" PRIu64
				 " bytes of its own memory left",
				 size_bytes);
	m.mr = ibv_reg_dm_mr(pd, m.dm, 0, attr.length,
			     DEVICE_ACCESS | IBV_ACCESS_MW_BIND);
	m.can_bind = m.mr != NULL;
	if (!m.mr) /* some NICs know no windows on their own memory */
		m.mr = ibv_reg_dm_mr(pd, m.dm, 0, attr.length, DEVICE_ACCESS);
	if (m.mr) {
		*out = m;
		return 0;
	}
	err = -errno;
	(void)ibv_free_dm(m.dm);
	return error_set(err, "cannot register device memory: %s",
			 strerror(-err));
}
