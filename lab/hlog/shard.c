/* SPDX-License-Identifier: Apache-2.0 */
/* The log of one shard: its tail, and how pages leave memory. */
#include <errno.h>

#include "hlog_priv.h"

static uint32_t pframe_of(const struct hlog_shard *sh, uint64_t page)
{
	return (uint32_t)(page % sh->pframe_count);
}

/* Pages before `end` become read-only. */
static void seal_until(struct hlog *h, struct hlog_shard *sh, uint64_t end)
{
	for (; sh->ro_page < end; sh->ro_page++) {
		struct hlog_page_id id = {.store = h->id,
					  .number = sh->ro_page,
					  .shard = sh->number,
					  .generation = h->generation};
		uint32_t f = pframe_of(sh, sh->ro_page);

		if (sh->ro_page == sh->tail_page) {
			sh->used[f] = sh->tail_used;
			sh->tail_used = h->page_bytes; /* no more */
		}
		hlog_page_seal(sh->memory + (uint64_t)f * h->page_bytes,
			       sh->used[f], &id);
		sh->state[f] = PFRAME_SEALED;
	}
}

void hlog_shard_seal(struct hlog *h, struct hlog_shard *sh)
{
	if (!sh->is_begun || sh->ro_page > sh->tail_page)
		return;
	seal_until(h, sh, sh->tail_page + 1);
}

void hlog_shard_write(struct hlog_session *s, struct hlog_shard *sh)
{
	struct hlog *h = s->store;

	while (sh->write_page < sh->ro_page && s->writing < HLOG_WRITES_MAX) {
		uint32_t f = pframe_of(sh, sh->write_page);
		uint32_t i = hlog_pend_get(s);
		struct hlog_pend *p;
		int rc;

		if (i == HLOG_PEND_NONE)
			return;
		p = &s->pend[i];
		p->kind = PEND_WRITE;
		p->shard = sh;
		p->page = sh->write_page;
		rc = h->device->ops->write(
			s->queue,
			hlog_far_offset(h, sh, p->page * h->page_bytes),
			sh->memory + (uint64_t)f * h->page_bytes, sh->used[f],
			i);
		if (rc < 0) {
			hlog_pend_put(s, i);
			if (rc != -EAGAIN)
				hlog_shard_written(h, sh, sh->write_page, rc);
			return;
		}
		sh->state[f] = PFRAME_WRITING;
		sh->write_page++;
		s->writing++;
		s->stats.pages_written++;
	}
}

void hlog_shard_written(struct hlog *h, struct hlog_shard *sh, uint64_t page,
			int err)
{
	int none = 0;

	if (err == 0) {
		sh->state[pframe_of(sh, page)] = PFRAME_CLEAN;
		return;
	}
	/* F1, pairs with F0: the page stays in memory and can be read, but
	 * nothing can be appended for long. Carries no other data: relaxed. */
	(void)atomic_compare_exchange_strong_explicit(&h->failed, &none, err,
						      memory_order_relaxed,
						      memory_order_relaxed);
}

bool hlog_shard_is_written(const struct hlog_shard *sh, uint64_t end)
{
	for (uint64_t page = sh->head_page; page < end; page++)
		if (sh->state[pframe_of(sh, page)] != PFRAME_CLEAN)
			return false;
	return true;
}

/* Opens the page after the tail. */
static int open_page(struct hlog_session *s, struct hlog_shard *sh)
{
	struct hlog *h = s->store;
	uint64_t page = sh->is_begun ? sh->tail_page + 1 : sh->tail_page;
	uint32_t f = pframe_of(sh, page);
	int failed = atomic_load_explicit(&h->failed, memory_order_relaxed);

	if (page >= h->page_max)
		return -ENOSPC;
	if (sh->is_begun && sh->ro_page <= sh->tail_page)
		sh->used[pframe_of(sh, sh->tail_page)] = sh->tail_used;
	/* Before the page frame is asked for: it may wait for just these
	 * pages. */
	if (page >= sh->ro_page + sh->mutable_count)
		seal_until(h, sh, page - sh->mutable_count + 1);
	hlog_shard_write(s, sh);
	if (sh->state[f] != PFRAME_FREE && sh->state[f] != PFRAME_CLEAN)
		return failed ? failed : -EAGAIN;
	if (page >= sh->head_page + sh->pframe_count)
		sh->head_page = page - sh->pframe_count + 1;
	sh->state[f] = PFRAME_OPEN;
	sh->tail_page = page;
	sh->tail_used = sizeof(struct hlog_page);
	sh->is_begun = true;
	return 0;
}

int hlog_shard_append(struct hlog_session *s, struct hlog_shard *sh,
		      uint32_t size_bytes, uint32_t tag, uint64_t *ref,
		      struct hlog_record **record)
{
	struct hlog *h = s->store;
	uint32_t f;

	if (!sh->is_begun || sh->tail_used + size_bytes > h->page_bytes) {
		int rc = open_page(s, sh);

		if (rc < 0)
			return rc;
	}
	f = pframe_of(sh, sh->tail_page);
	*ref = hlog_ref_make(sh->tail_page * h->page_bytes + sh->tail_used,
			     size_bytes, tag);
	*record = (struct hlog_record *)(sh->memory +
					 (uint64_t)f * h->page_bytes +
					 sh->tail_used);
	sh->tail_used += size_bytes;
	s->stats.appends++;
	return 0;
}
