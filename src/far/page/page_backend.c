/* SPDX-License-Identifier: Apache-2.0 */
/* Backends: the life of a store's way to one node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "client/link.h"
#include "client/verbs_api.h"
#include "page_priv.h"

static const struct page_backend_ops *ops_of(enum page_mode mode)
{
	static const struct page_backend_ops *const ops[PAGE_MODE_COUNT] = {
		[PAGE_STATIC] = &page_backend_static,
		[PAGE_DYNAMIC_1M] = &page_backend_dynamic,
		[PAGE_DYNAMIC_4K] = &page_backend_dynamic,
		[PAGE_TWO_SIDED] = &page_backend_two_sided,
		[PAGE_CHAIN] = &page_backend_chain,
		[PAGE_SPARSE] = &page_backend_dynamic,
	};

	return ops[mode];
}

static void close_grant(struct page_backend *backend)
{
	struct page_wiring *w = &backend->store->wiring;

	if (backend->has_grant)
		w->close(w->ctx, &backend->grant);
	memset(&backend->grant, 0, sizeof(backend->grant));
	backend->has_grant = false;
}

int page_backend_open(struct page_backend *backend, uint32_t node)
{
	struct page_store *s = backend->store;
	/* Chains have rings of that many slots, and no more. */
	bool may_be_sparse = s->o.mode == PAGE_SPARSE || s->o.mode == PAGE_AUTO;
	struct page_wish wish = {
		.mode = s->o.mode,
		.index_count = s->per_node * s->o.copies,
		.page_bytes = s->o.page_bytes,
		.depth = s->slot_count + (may_be_sparse ? PAGE_CALLS_AHEAD : 0),
		.without = s->o.chain_without,
		.is_unmapped = s->o.is_unmapped,
		.patience_ms = s->o.patience_ms,
		.name = s->name,
	};
	int err;

	err = s->wiring.open(s->wiring.ctx, node, &wish, &backend->grant);
	if (err)
		return err;
	backend->mode =
		s->o.mode == PAGE_AUTO ? backend->grant.mode : s->o.mode;
	backend->ops = ops_of(backend->mode);
	backend->has_grant = true;
	backend->node = node;
	backend->busy = 0;
	backend->is_lost = backend->is_failing = false;
	s->clock = backend->grant.link[0]->clock;
	s->verbs = backend->grant.link[0]->verbs;
	s->pd = backend->grant.link[0]->pd;
	backend->own = calloc(1, u64_max(backend->ops->own_bytes, 1));
	if (!backend->own) {
		close_grant(backend);
		return error_set(-ENOMEM, "no memory for a backend");
	}
	err = backend->ops->start(backend);
	if (err)
		page_backend_close(backend);
	return err;
}

void page_backend_close(struct page_backend *backend)
{
	if (!backend->has_grant)
		return;
	backend->ops->release(backend);
	free(backend->own);
	backend->own = NULL;
	close_grant(backend);
}

/* In the error state nothing arrives any more. */
static void stop_links(struct page_backend *backend)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (unsigned i = 0; i < GRANT_LINKS_MAX; i++) {
		struct client_link *link = backend->grant.link[i];

		if (link)
			(void)link->verbs->modify_qp(link->qp, &attr,
						     IBV_QP_STATE);
	}
}

void page_backend_lose(struct page_backend *backend)
{
	struct page_store *s = backend->store;
	char hint[CLIENT_REACH_WORDS] = "";
	uint32_t i, copy;

	if (backend->why && backend->grant.link[0])
		client_link_hint(backend->grant.link[0], hint);
	if (backend->why)
		log_warn("page", "node %s is lost to %s: %s%s",
			 backend->grant.node_name, s->name, backend->why, hint);
	backend->is_failing = false;
	backend->is_lost = true;
	s->stats.nodes_lost++;
	stop_links(backend);
	for (i = 0; i < s->slot_count && backend->busy; i++) {
		for (copy = 0; copy < s->o.copies; copy++) {
			const struct page_slot *slot = &s->slot[i];

			if (slot->op && slot->waiting & 1u << copy &&
			    page_copy_backend(s, slot->op->page, copy) ==
				    backend)
				page_job_end(s, i << JOB_COPY_BITS | copy,
					     -EHOSTDOWN);
		}
	}
}

void page_notice(struct page_store *s)
{
	for (uint32_t i = 0; i < s->backend_count; i++) {
		struct page_backend *backend = &s->backend[i];

		if (backend->is_lost || !page_backend_seems_lost(backend))
			continue;
		backend->why = "it has ended the connection";
		page_backend_lose(backend);
	}
}

void page_lose_node(struct page_store *s, const char *node)
{
	for (uint32_t i = 0; i < s->backend_count; i++) {
		struct page_backend *backend = &s->backend[i];

		if (backend->is_lost ||
		    strcmp(backend->grant.node_name, node) != 0)
			continue;
		backend->why = NULL; /* it was said */
		page_backend_lose(backend);
	}
}

uint64_t page_backend_asked_bytes(struct page_backend *backend)
{
	const struct page_wiring *w = &backend->store->wiring;

	return w->used_bytes(w->ctx, &backend->grant);
}

bool page_backend_seems_lost(const struct page_backend *backend)
{
	const struct page_wiring *w = &backend->store->wiring;

	return w->is_lost && w->is_lost(w->ctx, &backend->grant);
}
