/* SPDX-License-Identifier: Apache-2.0 */
/* Stores: how large they are, on how many nodes, and what room there is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aquifer/aquifer.h"
#include "base/error.h"
#include "base/tally.h"
#include "client/link.h"
#include "far.h"

static int grow_list(uint32_t **list, uint32_t slots)
{
	uint32_t *more = realloc(*list, slots * sizeof(*more));

	if (!more)
		return -ENOMEM;
	*list = more;
	return 0;
}

int run_far_tables(struct far *f, uint32_t slots)
{
	uint16_t *refs = realloc(f->refs, slots * sizeof(*refs));

	if (!refs)
		return -ENOMEM;
	f->refs = refs;
	memset(refs + f->slots, 0, (slots - f->slots) * sizeof(*refs));
	if (grow_list(&f->free, slots) || grow_list(&f->aside, slots) ||
	    grow_list(&f->drops.slot, slots))
		return -ENOMEM;
	return 0;
}

static int open_store(struct far *f, uint32_t pages, uint32_t nodes)
{
	struct far_store *store = &f->store[f->store_count];
	struct page_store_options o = {.pages = pages,
				       .mode = f->mode,
				       .nodes = nodes,
				       .is_unmapped = f->is_unmapped,
				       .deadline_ms = f->patience_ms,
				       .patience_ms = f->patience_ms,
				       .copies = f->copies,
				       .counted_as = TALLY_RUN,
				       .counted_name = f->name};
	char name[40];
	int err = run_far_tables(f, f->slots + pages);

	if (err)
		return err;
	if (f->store_count)
		o.counts_with = f->store[0].handle;
	(void)snprintf(name, sizeof(name), "%s-%u", f->name, f->store_count);
	err = page_store_open(f->rack, name, &o, &store->handle);
	if (err)
		return err;
	err = page_register(store->handle, f->buffer, f->buffer_bytes);
	if (err) {
		page_store_close(store->handle);
		return err;
	}
	store->first = f->slots;
	store->pages = pages;
	f->store_count++;
	/* Low numbers first: neighbours leave together and lie together. */
	for (uint32_t i = pages; i > 0; i--)
		f->free[f->free_count++] = store->first + i - 1;
	f->slots += pages;
	return 0;
}

uint64_t run_far_store_pages(uint64_t have)
{
	uint64_t want = u64_max(have / RUN_STORE_PART, RUN_STORE_PAGES);

	return u64_min(align_up(want, RUN_STORE_PAGES_MIN),
		       RUN_STORE_PAGES_MAX);
}

static int more_room_first(const void *a, const void *b)
{
	const struct client_host *x = a, *y = b;

	return x->free_bytes < y->free_bytes   ? 1
	       : x->free_bytes > y->free_bytes ? -1
					       : 0;
}

uint64_t run_far_fit(struct client_host *host, unsigned count, unsigned copies,
		     uint64_t want, uint32_t *nodes)
{
	qsort(host, count, sizeof(*host), more_room_first);
	/* On as many nodes as possible, each with the same part. */
	for (unsigned k = count; k >= copies && k > 0; k--) {
		uint64_t each = host[k - 1].free_bytes / RUN_PAGE_BYTES;
		uint64_t fit = each * k / copies / RUN_STORE_PAGES_MIN *
			       RUN_STORE_PAGES_MIN;

		if (fit >= RUN_STORE_PAGES_MIN) {
			*nodes = k;
			return u64_min(want, fit);
		}
	}
	return 0;
}

int run_far_grow(struct far *f)
{
	struct client_host host[PAGE_NODES_MAX];
	unsigned copies = f->copies ? f->copies : 1;
	uint64_t pages = run_far_store_pages(f->slots);
	uint32_t nodes = 0;
	int err = -ENOSPC, n;

	if (f->store_count == RUN_STORES_MAX)
		return -ENOSPC;
	n = client_hosts(f->rack, host, PAGE_NODES_MAX);
	if (n < 0)
		return n;
	/* Who gives pages out one by one gives no more than half of what it
	 * has left to anybody who comes. */
	for (int i = 0; i < n && f->mode != PAGE_STATIC; i++)
		host[i].free_bytes /= 2;
	pages = run_far_fit(host, (unsigned)n, copies, pages, &nodes);
	if (!pages)
		return error_set(-ENOSPC,
				 "the memory nodes of the rack are full");
	/* Others may be quicker, or a quota smaller. */
	for (; pages >= RUN_STORE_PAGES_MIN; pages /= 2) {
		err = open_store(f, (uint32_t)pages, nodes);
		if (err != -ENOSPC && err != -EDQUOT)
			break;
	}
	return err;
}

int64_t run_far_room(struct far *f)
{
	struct client_host host[PAGE_NODES_MAX];
	uint64_t bytes = 0;
	int n = client_hosts(f->rack, host, PAGE_NODES_MAX);

	for (int i = 0; i < n; i++)
		bytes += host[i].free_bytes;
	bytes += (uint64_t)f->free_count * RUN_PAGE_BYTES *
		 (f->copies ? f->copies : 1);
	return n < 0 ? n : (int64_t)(bytes / (f->copies ? f->copies : 1));
}
