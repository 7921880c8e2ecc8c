/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces: one client's translation table, and what it holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/plant.h"
#include "pframe_priv.h"

uint64_t pframe_space_bytes(const struct pframe_space_options *o)
{
	uint64_t each = sizeof(_Atomic uint64_t) + PFRAME_QUEUE_BYTES;

	if (o->is_pieces && !o->is_sparse)
		each += sizeof(struct ibv_mr *);
	return align_up(o->entries * each, 4096);
}

int pframe_space_create(struct pframe_pool *pool,
			const struct pframe_space_options *o,
			struct pframe_space **out)
{
	struct pframe_space *s;
	void *table;

	if (!o->entries || o->entries > PFRAME_ENTRIES_MAX || !o->depth ||
	    o->depth > PFRAME_DEPTH_MAX)
		return error_set(-EINVAL,
				 "a space has 1 to %d pages and 1 to %d "
				 "messages under way",
				 PFRAME_ENTRIES_MAX, PFRAME_DEPTH_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, "no memory for a space");
	s->pool = pool;
	s->pd = o->pd;
	s->entries = o->entries;
	s->budget = o->budget ? o->budget : o->entries;
	s->depth = o->depth;
	s->is_pieces = o->is_pieces || o->is_sparse;
	s->is_sparse = o->is_sparse;
	s->table_bytes = align_up(o->entries * sizeof(*s->table), 4096);
	table = mmap(NULL, s->table_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (table == MAP_FAILED) {
		free(s);
		return error_set(-ENOMEM, "no memory for a table");
	}
	s->table = table;
	list_init(&s->leaving);
	list_init(&s->waiting);
	if (o->is_sparse) {
		int err = pframe_sparse_create(s);

		if (err) {
			pframe_space_destroy(s);
			return err;
		}
	}
	*out = s;
	return 0;
}

/* Test-only damage. */
static COLD void keep_key(struct pframe_space *s, struct ibv_mr *mr)
{
	s->kept = realloc(s->kept, (s->kept_count + 1) * sizeof(*s->kept));
	ASSERT(s->kept);
	s->kept[s->kept_count++] = mr;
}

void pframe_space_end_key(struct pframe_space *s, uint64_t index)
{
	if (!s->piece || !s->piece[index])
		return;
	if (PLANTED(keys_stay))
		keep_key(s, s->piece[index]);
	else
		(void)ibv_dereg_mr(s->piece[index]);
	s->piece[index] = NULL;
}

void pframe_space_destroy(struct pframe_space *s)
{
	ASSERT(!s->guests); /* so nothing leaves any more, and no load runs */
	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		if (s->chain[i])
			pframe_chain_destroy(s->chain[i]);
	/* First what page frames stand for. */
	pframe_sparse_destroy(s);
	for (uint64_t i = 0; i < s->entries; i++) {
		uint64_t pframe = pframe_space_take(s, i);

		if (!pframe)
			continue;
		pframe_space_end_key(s, i);
		pframe_space_give(s, pframe);
	}
	while (s->kept_count)
		(void)ibv_dereg_mr(s->kept[--s->kept_count]);
	free(s->kept);
	if (s->piece)
		(void)munmap(s->piece, s->piece_bytes);
	(void)munmap(s->table, s->table_bytes);
	free(s);
}

bool pframe_space_is_over(const struct pframe_space *s)
{
	return pframe_space_used(s) > s->budget;
}

uint64_t pframe_space_find(const struct pframe_space *s, uint64_t index)
{
	uint64_t pframe;

	if (index >= s->entries)
		return 0;
	/* SPACE-1: a page frame that is found is the space's own already. */
	pframe = pframe_be64(
		atomic_load_explicit(&s->table[index], memory_order_acquire));
	return pframe_pool_has(s->pool, pframe) ? pframe : 0;
}

bool pframe_space_is_mapped(const struct pframe_space *s, uint64_t index)
{
	return pframe_space_find(s, index) != 0;
}

int pframe_space_map(struct pframe_space *s, uint64_t index, uint64_t *pframe)
{
	uint64_t f = pframe_space_find(s, index);

	if (!f) {
		if (index >= s->entries)
			return -EINVAL;
		if (s->used + s->past_used >= (int64_t)s->budget &&
		    !PLANTED(no_budget))
			return -EDQUOT;
		f = pframe_pool_pop(s->pool);
		if (!f)
			return -ENOSPC;
		s->used++;
		/* SPACE-1, with pframe_space_find, here and in chains. */
		atomic_store_explicit(&s->table[index], pframe_be64(f),
				      memory_order_release);
	}
	*pframe = f;
	return 0;
}

uint64_t pframe_space_take(struct pframe_space *s, uint64_t index)
{
	uint64_t pframe;

	/* Looks first: reading leaves what nobody touched without memory. */
	if (!pframe_space_find(s, index))
		return 0;
	/* SPACE-1, and one instruction, so a page frame never leaves twice. */
	pframe = pframe_be64(atomic_exchange_explicit(&s->table[index], 0,
						      memory_order_acq_rel));
	return pframe_pool_has(s->pool, pframe) ? pframe : 0;
}

void pframe_space_give(struct pframe_space *s, uint64_t pframe)
{
	/* Of one that stands for sparse memory nothing was ever used. */
	if (!s->is_sparse && !PLANTED(not_cleared))
		memset((void *)(uintptr_t)pframe, 0, s->pool->pframe_bytes);
	s->used--;
	pframe_pool_push(s->pool, pframe);
}
