/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilding: a lost node's backend is given to a node that answers, and pages
 * that lack a copy are loaded from the others and stored again. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "page_priv.h"

static bool is_used(const struct page_store *s, uint32_t node,
		    const struct page_backend *except)
{
	for (uint32_t i = 0; i < s->backend_count; i++)
		if (&s->backend[i] != except && s->backend[i].node == node)
			return true;
	return false;
}

/* What the backend had is gone, whatever becomes of it. */
static void forget_copies(struct page_store *s,
			  const struct page_backend *backend)
{
	uint64_t page;
	unsigned i, bits;

	for (page = 0; page < s->o.pages; page++) {
		bits = page_ledger_get(&s->ledger, page);
		for (i = 0; bits & LEDGER_COPIES && i < s->o.copies; i++)
			if (page_copy_backend(s, page, i) == backend)
				bits &= ~(1u << i);
		/* The last copy went with it. */
		if (bits & LEDGER_STORED && !(bits & LEDGER_COPIES))
			bits |= LEDGER_LOST;
		page_ledger_set(&s->ledger, page, bits);
	}
}

static int reopen(struct page_store *s, struct page_backend *backend)
{
	uint32_t node, there = s->wiring.node_count(s->wiring.ctx);
	uint32_t old = backend->node;
	int err;

	page_backend_close(backend);
	err = page_backend_open(backend, old);
	for (node = 0; err && node < there; node++)
		if (node != old && !is_used(s, node, backend))
			err = page_backend_open(backend, node);
	if (err) {
		backend->is_lost = true;
		return error_prefix(-EHOSTDOWN,
				    "no node takes the pages of a lost one: ");
	}
	forget_copies(s, backend);
	s->rebuild_at = 0;
	log_info("page", "node %s takes the pages of a lost one",
		 backend->grant.node_name);
	return 0;
}

static int rebuild_page(struct page_store *s, uint64_t page, void *buf)
{
	uint64_t stores = s->stats.stores, loads = s->stats.loads;
	unsigned before = page_ledger_get(&s->ledger, page) & LEDGER_COPIES;
	unsigned after;
	int err = page_get(s, page, buf);

	if (!err)
		err = page_put(s, page, buf);
	s->stats.stores = stores;
	s->stats.loads = loads;
	after = page_ledger_get(&s->ledger, page) & LEDGER_COPIES;
	s->stats.rebuilt += (unsigned)__builtin_popcount(after & ~before);
	return err;
}

static bool lacks(const struct page_store *s, uint64_t page)
{
	unsigned bits = page_ledger_get(&s->ledger, page);

	return bits & LEDGER_STORED && !(bits & LEDGER_LOST) &&
	       (bits & LEDGER_COPIES) != (1u << s->o.copies) - 1;
}

int64_t page_rebuild(struct page_store *s, uint64_t max_pages)
{
	uint64_t page, left = 0;
	uint8_t *buf;
	int err = 0;

	if (s->pending)
		return -EBUSY;
	for (uint32_t i = 0; i < s->backend_count; i++)
		if (s->backend[i].is_lost && reopen(s, &s->backend[i]))
			return -EHOSTDOWN;
	buf = malloc(s->o.page_bytes);
	if (!buf)
		return -ENOMEM;
	for (page = s->rebuild_at; page < s->o.pages && !err; page++) {
		if (!lacks(s, page))
			continue;
		if (max_pages-- == 0)
			break;
		err = rebuild_page(s, page, buf);
	}
	s->rebuild_at = err ? page - 1 : page;
	for (page = s->rebuild_at; page < s->o.pages; page++)
		left += lacks(s, page);
	free(buf);
	return err ? err : (int64_t)left;
}
