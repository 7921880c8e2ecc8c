/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two hosts with a connection that nothing happens to, and a second one where
 * one end has a region whose memory the test takes away.
 */
#ifndef AQ_TEST_OS_RIG_H
#define AQ_TEST_OS_RIG_H

#include <sys/mman.h>

#include "os_end.h"

enum {
	HOLE_BYTES = 16384,
	SMALL = 64,
	LARGE = 9000, /* several packets */
};

struct fixture {
	struct os_config cfg;
	struct nic_host *host[2];
	struct end end[2]; /* of a connection that nothing happens to */
	unsigned rigs;	   /* that have not ended */
};

/* A second connection, where one end has one more region. */
struct rig {
	struct fixture *fixture;
	struct end e[2];
	struct end *owner;
	uint8_t *mem;
	struct nic_mr *mr;
	uint64_t watched;
	struct end_card card; /* of the region, for the other end */
};

static inline int open_fixture(void **state, bool watch)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	test_config(&f->cfg);
	f->cfg.watch_unmap = watch;
	for (unsigned i = 0; i < 2; i++) {
		f->host[i] = test_host(&f->cfg);
		end_init(&f->end[i], f->host[i], END_PLAIN);
	}
	end_connect(&f->end[0], &f->end[1].card);
	end_connect(&f->end[1], &f->end[0].card);
	*state = f;
	return 0;
}

static inline void others_go_on(struct fixture *f)
{
	struct end *a = &f->end[0], *b = &f->end[1];

	assert_int_equal(end_do(a, &b->card, IBV_WR_RDMA_WRITE, 0, 64), 0);
	assert_int_equal(end_do(b, &a->card, IBV_WR_RDMA_READ, 64, 8), 0);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	/* An assertion has failed, and is shown only after this: hosts do not
	 * close under what it left behind. */
	if (f->rigs)
		return -1;
	others_go_on(f);
	for (unsigned i = 0; i < 2; i++) {
		end_release(&f->end[i]);
		f->host[i]->ops->close(f->host[i]);
	}
	free(f);
	return 0;
}

/*
 * Where the kernel puts nothing by itself: it looks from the top of the address
 * space, and finds room long before. The NIC's threads map pages of their peers
 * at any time; among those, a hole is filled before a request meets it, and a
 * test that maps again maps over somebody else.
 */
static inline void *lonely_place(void)
{
	static uintptr_t next = 0x7ea000000000;

	next += 2 * HOLE_BYTES;
	return (void *)next;
}

static inline void *map_pages(void *at)
{
	void *mem = mmap(
		at ? at : lonely_place(), HOLE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	assert_true(mem != MAP_FAILED);
	return mem;
}

static inline void rig_reg(struct rig *r, struct end *owner, void *mem)
{
	struct nic_mr_attr attr = {
		.addr = mem,
		.length = HOLE_BYTES,
		.iova = (uintptr_t)mem,
		.access = IBV_ACCESS_LOCAL_WRITE | END_REMOTE,
	};

	r->owner = owner;
	r->mem = mem;
	r->watched =
		owner->host->ops->memory_watch(owner->host, mem, HOLE_BYTES);
	lock_take(&owner->host->lock);
	assert_int_equal(nic_mr_reg(owner->pd, &attr, &r->mr), 0);
	lock_drop(&owner->host->lock);
	r->card = owner->card;
	r->card.rkey = nic_mr_key(r->mr);
	r->card.addr = (uintptr_t)mem;
}

/* The region belongs to end `side`. */
static inline void rig_make_with(struct rig *r, struct fixture *f,
				 unsigned side, enum end_memory memory)
{
	void *mem;

	r->fixture = f;
	f->rigs++;
	end_init(&r->e[0], f->host[0], END_PLAIN);
	end_init(&r->e[1], f->host[1], memory);
	end_connect(&r->e[0], &r->e[1].card);
	end_connect(&r->e[1], &r->e[0].card);
	mem = map_pages(NULL);
	memset(mem, 0x11, HOLE_BYTES);
	rig_reg(r, &r->e[side], mem);
}

static inline void rig_make(struct rig *r, struct fixture *f, unsigned side)
{
	rig_make_with(r, f, side, END_PLAIN);
}

static inline void rig_dereg(struct rig *r)
{
	struct nic_host *host = r->owner->host;

	lock_take(&host->lock);
	assert_int_equal(nic_mr_dereg(r->mr), 0);
	lock_drop(&host->lock);
	if (r->watched)
		host->ops->memory_unwatch(host, r->mem, HOLE_BYTES, r->watched);
}

static inline void rig_end_bare(struct rig *r)
{
	end_release(&r->e[0]);
	end_release(&r->e[1]);
	r->fixture->rigs--;
}

static inline void rig_end(struct rig *r)
{
	rig_dereg(r);
	rig_end_bare(r);
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t len;
} remote[] = {
	{IBV_WR_RDMA_WRITE, SMALL},	  {IBV_WR_RDMA_WRITE, LARGE},
	{IBV_WR_RDMA_READ, SMALL},	  {IBV_WR_RDMA_READ, LARGE},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8}, {IBV_WR_ATOMIC_CMP_AND_SWP, 8},
};

#endif
