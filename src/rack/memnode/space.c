/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spaces: pages of clients, in page frames that all clients of one page size
 * share. Each client adds as many page frames as it may have pages, but half of
 * what the pool has left at most, and as many are withdrawn when it ends.
 * Tenants are charged for all that their clients could hold, and for the tables
 * and buffers that go with it. Tables and queues are walked without the node's
 * lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/size.h"
#include "ruled.h"
#include "stock.h"

/* ---- what is charged ---------------------------------------------------- */

static uint64_t left(const struct mem_node *node)
{
	return node->pool_bytes - node->used_bytes;
}

/* To the tenant, and what of it is not page frames to the pool. */
int space_charge(struct mem_node *node, struct mem_tenant *t,
		 uint64_t page_bytes, uint64_t own_bytes)
{
	uint64_t all = page_bytes + own_bytes;
	int err = ruled_charge(node, t, all);

	if (!err)
		err = page_bytes ? ruled_admit(node) : 0;
	if (err)
		return err;
	if (page_bytes > node->pool_bytes || own_bytes > left(node))
		return error_set(-ENOSPC,
				 "the pool of %s has %s, of which %s are left; "
				 "pages of %s and tables of %s do not fit",
				 node->name, SIZE_TEXT(node->pool_bytes),
				 SIZE_TEXT(left(node)), SIZE_TEXT(page_bytes),
				 SIZE_TEXT(own_bytes));
	t->page_bytes += all;
	node->used_bytes += own_bytes;
	mem_stock_yield(node->stock, 0);
	return 0;
}

void space_uncharge(struct mem_node *node, struct mem_tenant *t,
		    uint64_t page_bytes, uint64_t own_bytes)
{
	t->page_bytes -= page_bytes + own_bytes;
	node->used_bytes -= own_bytes;
}

/* ---- page frames -------------------------------------------------------- */

static int make_pframes(struct mem_node *node, uint32_t page_bytes,
			struct mem_pframes *f)
{
	/* An RNIC pins what is registered, so there it is half of what is
	 * left; else addresses cost nothing. */
	bool is_pinned = node->nic_caps == 0;
	uint64_t bytes = is_pinned ? left(node) / 2 : node->pool_bytes;
	uint64_t queue = node->pool_bytes / MEM_QUEUE_PART / PFRAME_QUEUE_BYTES;
	int err;

	bytes = u64_min(bytes, u64_max(queue, 1) * page_bytes);
	err = pframe_pool_reserve(bytes, page_bytes, is_pinned, &f->pool);
	if (!err && node->has_numa)
		err = pframe_pool_bind(f->pool, node->numa);
	if (err && f->pool) {
		pframe_pool_destroy(f->pool);
		f->pool = NULL;
	}
	return err;
}

static int find_pframes(struct mem_node *node, uint32_t page_bytes,
			struct mem_pframes **out)
{
	struct mem_pframes *unused = NULL;
	int err = 0;

	for (unsigned i = 0; i < MEM_PFRAME_SIZES; i++) {
		struct mem_pframes *f = &node->pframes[i];

		if (!f->pool) {
			unused = f;
		} else if (pframe_pool_each_bytes(f->pool) == page_bytes) {
			*out = f;
			return 0;
		}
	}
	if (!unused)
		return error_set(-EAGAIN, "pages of %d sizes are in use",
				 MEM_PFRAME_SIZES);
	err = make_pframes(node, page_bytes, unused);
	if (!err)
		*out = unused;
	return err;
}

/* Charges what is in circulation now. */
static void settle(struct mem_node *node, struct mem_pframes *f)
{
	uint64_t bytes =
		pframe_pool_count(f->pool) * pframe_pool_each_bytes(f->pool);

	node->used_bytes -= f->charged_bytes;
	f->charged_bytes = region_pages(bytes) + f->pending_bytes;
	node->used_bytes += f->charged_bytes;
	mem_stock_yield(node->stock, 0);
}

/* One less uses it; the last one ends it. Lets the lock go. */
static void put_pframes(struct mem_node *node, struct mem_pframes *f)
{
	struct pframe_pool *pool = f->pool;

	if (--f->space_count)
		return;
	node->used_bytes -= f->charged_bytes;
	node->bytes_scrubbed += f->charged_bytes;
	*f = (struct mem_pframes){0};
	pthread_mutex_unlock(&node->lock);
	pframe_pool_destroy(pool);
	pthread_mutex_lock(&node->lock);
}

/* Page frames for a space of so many pages, charged before they are there. */
static int reserve(struct mem_node *node, struct mem_space *s, uint64_t count)
{
	uint32_t bytes = pframe_pool_each_bytes(s->pframes->pool);

	s->added = u64_min(count, left(node) / 2 / bytes);
	if (!s->added && !s->pframes->charged_bytes)
		return error_set(-ENOSPC,
				 "the pool of %s has no room for a page",
				 node->name);
	s->pframes->pending_bytes += region_pages(s->added * bytes);
	settle(node, s->pframes);
	return 0;
}

/* ---- spaces ------------------------------------------------------------- */

/* Nobody works on it any more. Its memory stays until it is given back. */
static void end(struct mem_space *s)
{
	s->life.ended = true;
	list_append(&s->of->ended_spaces, &s->node);
}

/* What takes long: without the lock. */
static int make(struct mem_node *node, struct mem_space *s,
		const struct pframe_space_options *o)
{
	uint64_t want = s->added;
	uint32_t bytes = pframe_pool_each_bytes(s->pframes->pool);
	int err;

	pthread_mutex_unlock(&node->lock);
	err = pframe_space_create(s->pframes->pool, o, &s->space);
	s->added = err ? 0 : pframe_pool_add(s->pframes->pool, want);
	pthread_mutex_lock(&node->lock);
	s->pframes->pending_bytes -= region_pages(want * bytes);
	settle(node, s->pframes);
	return err;
}

/* Charged, and with page frames of that size. */
static int begin(struct mem_node *node, struct mem_tenant *t,
		 uint32_t page_bytes, const struct pframe_space_options *o,
		 struct mem_space **out)
{
	struct mem_space *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, "no memory for pages");
	s->of = node;
	s->tenant = t;
	s->page_bytes = o->entries * page_bytes;
	s->own_bytes = region_pages(pframe_space_bytes(o));
	err = space_charge(node, t, s->page_bytes, s->own_bytes);
	if (!err) {
		err = find_pframes(node, page_bytes, &s->pframes);
		if (err)
			space_uncharge(node, t, s->page_bytes, s->own_bytes);
	}
	if (err) {
		free(s);
		return err;
	}
	s->pframes->space_count++;
	t->space_count++;
	*out = s;
	return 0;
}

int space_create(struct mem_node *node, struct mem_conn *owner,
		 uint64_t page_count, uint32_t page_bytes, uint32_t depth,
		 enum space_kind kind)
{
	lock_assert_mutex_held(&node->lock);
	/* Chains take page frames without asking. But none is in two entries,
	 * and no entry has two, so who has room for all of them has enough. */
	struct pframe_space_options o = {
		.pd = owner->tenant->pd,
		.entries = page_count,
		.budget = page_count,
		.depth = depth,
		.is_pieces = kind == SPACE_PIECES,
		.is_sparse = kind == SPACE_SPARSE,
	};
	struct mem_space *s = NULL;
	int err;

	if (owner->space || owner->role != MEM_ROLE_PLAIN)
		return error_set(-EEXIST, "the connection has pages already");
	err = begin(node, owner->tenant, page_bytes, &o, &s);
	if (err)
		return err;
	err = reserve(node, s, page_count);
	if (!err)
		err = make(node, s, &o);
	else
		s->added = 0;
	/* The lock was let go. */
	if (!err && owner->life.ended)
		err = error_set(-ESTALE, "the connection ended; connect again");
	if (!err && owner->space)
		err = error_set(-EEXIST, "the connection has pages already");
	if (err) {
		end(s);
		return err;
	}
	owner->space = s;
	owner->owns_space = true;
	return 0;
}

void space_end(struct mem_node *node, struct mem_conn *owner)
{
	struct mem_space *s = owner->space;

	for (unsigned i = 0; i < MEM_CONN_MAX; i++)
		if (node->conns[i] && node->conns[i]->space == s)
			conn_end(node, node->conns[i], MEM_END_CLOSED);
	log_info("memnode", "%" PRIu64 " pages of tenant %s come back",
		 pframe_space_used(s->space), owner->tenant->name);
	end(s);
}

/* It is on no list any more. */
static void give_back(struct mem_node *node, struct mem_space *s)
{
	struct mem_pframes *f = s->pframes;

	pthread_mutex_unlock(&node->lock);
	if (s->space)
		pframe_space_destroy(s->space);
	/* Even if it was the last one: another may come meanwhile. */
	pframe_pool_withdraw(f->pool, s->added);
	pthread_mutex_lock(&node->lock);
	s->space = NULL;
	settle(node, f);
	space_uncharge(node, s->tenant, s->page_bytes,
		       s->own_bytes + s->chain_bytes);
	put_pframes(node, f);
	s->tenant->space_count--;
	life_bury(node, &s->life);
}

void space_reap(struct mem_node *node)
{
	while (!list_is_empty(&node->ended_spaces)) {
		struct mem_space *s = container_of(node->ended_spaces.next,
						   struct mem_space, node);

		list_remove(&s->node);
		give_back(node, s);
	}
}

/*
 * Whether a client with memory of its own uses more than it was given. It may
 * be given more, or give some back, while we count, so it must be so twice.
 */
static bool is_greedy(struct mem_space *s)
{
	uint32_t page_bytes = pframe_pool_each_bytes(s->pframes->pool);
	uint64_t before = pframe_space_used(s->space);
	uint64_t touched = pframe_space_touched_bytes(s->space);
	uint64_t after = pframe_space_used(s->space);

	if (touched > u64_max(before, after) * page_bytes + MEM_SPARSE_SLACK)
		s->over++;
	else
		s->over = 0;
	return s->over > 1;
}

/* Page frames that were in use when their space ended. */
static void withdraw_more(struct mem_node *node, struct mem_pframes *f)
{
	if (!f->pool || !pframe_pool_owed(f->pool))
		return;
	f->space_count++; /* so that it stays */
	pthread_mutex_unlock(&node->lock);
	pframe_pool_withdraw(f->pool, 0);
	pthread_mutex_lock(&node->lock);
	settle(node, f);
	put_pframes(node, f);
}

void space_tick(struct mem_node *node)
{
	for (unsigned i = 0; i < MEM_PFRAME_SIZES; i++)
		if (node->pframes[i].pool)
			(void)pframe_pool_mend(node->pframes[i].pool);
	/* It cannot have too many; who has nevertheless loses the chain that
	 * takes them, or, with memory of its own, all of it. */
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		struct mem_conn *c = node->conns[i];

		if (c && ((c->role == MEM_ROLE_CHAIN + PAGE_CHAIN_UNMAPPED &&
			   pframe_space_is_over(c->space->space)) ||
			  (c->owns_space && is_greedy(c->space))))
			conn_end(node, c, MEM_END_BUDGET);
	}
	for (unsigned i = 0; i < MEM_PFRAME_SIZES; i++)
		withdraw_more(node, &node->pframes[i]);
}
