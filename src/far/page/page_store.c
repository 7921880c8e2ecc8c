/* SPDX-License-Identifier: Apache-2.0 */
/* Page stores: their life, their memory, their numbers. */
#include "page_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/log.h"
#include "client/verbs_api.h"
#include "page_priv.h"

enum {
	DEADLINE_MS = 5000,
	STAGE = PAGE_BUFFERS_MAX, /* its place among the buffers */
};

static const char *const mode_names[PAGE_MODE_COUNT] = {
	[PAGE_STATIC] = "static",
	[PAGE_DYNAMIC_1M] = "dynamic-1m",
	[PAGE_DYNAMIC_4K] = "dynamic-4k",
	[PAGE_TWO_SIDED] = "two-sided",
	[PAGE_CHAIN] = "chain",
	[PAGE_SPARSE] = "sparse",
	[PAGE_AUTO] = "auto",
};

const char *page_mode_name(enum page_mode mode)
{
	return mode < PAGE_MODE_COUNT ? mode_names[mode] : "?";
}

int page_mode_parse(const char *text, enum page_mode *out)
{
	for (unsigned i = 0; i < PAGE_MODE_COUNT; i++) {
		if (strcmp(mode_names[i], text) == 0) {
			*out = (enum page_mode)i;
			return 0;
		}
	}
	return error_set(-EINVAL,
			 "a mode is auto, static, dynamic-1m, dynamic-4k, "
			 "two-sided, chain or sparse, not '%.40s'",
			 text);
}

/* ---- options ------------------------------------------------------------ */

static bool is_power(uint32_t v)
{
	return v && !(v & (v - 1));
}

static int check(const struct page_store_options *o)
{
	if (!is_power(o->page_bytes) || o->page_bytes < PAGE_BYTES_MIN ||
	    o->page_bytes > PAGE_BYTES_MAX)
		return error_set(-EINVAL,
				 "a page has %d to %d bytes, a power of two",
				 PAGE_BYTES_MIN, PAGE_BYTES_MAX);
	if (!o->pages || o->pages > (1ull << 48) / o->page_bytes)
		return error_set(-EINVAL, "a store has 1 page to 2^48 bytes");
	if (o->copies > PAGE_COPIES_MAX)
		return error_set(-EINVAL, "a page has %d copies at most",
				 PAGE_COPIES_MAX);
	if (o->depth > PAGE_DEPTH_MAX || (unsigned)o->mode >= PAGE_MODE_COUNT ||
	    o->nodes > PAGE_NODES_MAX)
		return error_set(-EINVAL,
				 "at most %d operations under way and %d nodes",
				 PAGE_DEPTH_MAX, PAGE_NODES_MAX);
	if (o->nodes && o->nodes < o->copies)
		return error_set(-EINVAL, "%u copies need as many nodes",
				 o->copies);
	return 0;
}

static void fill_in(struct page_store_options *o)
{
	if (!o->page_bytes)
		o->page_bytes = PAGE_BYTES;
	if (!o->copies)
		o->copies = 1;
	if (!o->depth)
		o->depth = PAGE_DEPTH;
	if (!o->deadline_ms)
		o->deadline_ms = DEADLINE_MS;
}

/* ---- memory ------------------------------------------------------------- */

static int make_slots(struct page_store *s)
{
	uint32_t i, buckets;

	s->slot_count = s->o.depth + 1;
	s->slot = calloc(s->slot_count, sizeof(*s->slot));
	buckets = u32_pow2_ceil(2 * s->slot_count);
	s->hash_mask = buckets - 1;
	s->hash = calloc(buckets, sizeof(*s->hash));
	if (!s->slot || !s->hash)
		return error_set(-ENOMEM, "no memory for a page store");
	for (i = s->slot_count; i-- > 0;) {
		s->slot[i].next = s->free_slots;
		s->free_slots = &s->slot[i];
	}
	return 0;
}

static int register_range(struct page_store *s, struct page_buffer *b,
			  void *addr, size_t bytes)
{
	/* Nodes write what is loaded, where they are not read from. */
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (s->o.mode == PAGE_TWO_SIDED || s->o.mode == PAGE_CHAIN)
		access |= IBV_ACCESS_REMOTE_WRITE;
	b->mr = s->verbs->reg_mr(s->pd, addr, bytes, access);
	if (!b->mr)
		return error_set(-ENOMEM, "the NIC registers no memory");
	b->addr = addr;
	b->bytes = bytes;
	return 0;
}

static int make_stage(struct page_store *s)
{
	s->stage_bytes = (size_t)s->o.page_bytes * s->slot_count;
	s->stage = mmap(NULL, s->stage_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->stage == MAP_FAILED) {
		s->stage = NULL;
		return error_set(-ENOMEM, "no memory for a page store");
	}
	for (uint32_t i = 0; i < s->slot_count; i++)
		s->slot[i].stage = s->stage + (size_t)i * s->o.page_bytes;
	return register_range(s, &s->buffer[STAGE], s->stage, s->stage_bytes);
}

int page_register(struct page_store *s, void *addr, size_t bytes)
{
	int err;

	if (s->buffer_count == PAGE_BUFFERS_MAX)
		return error_set(-ENOSPC, "a page store has %d buffers at most",
				 PAGE_BUFFERS_MAX);
	err = register_range(s, &s->buffer[s->buffer_count], addr, bytes);
	if (!err)
		s->buffer_count++;
	return err;
}

const struct page_buffer *page_buffer_find(const struct page_store *s,
					   const void *buf)
{
	const uint8_t *p = buf;

	for (unsigned i = 0; i < s->buffer_count; i++) {
		const struct page_buffer *b = &s->buffer[i];

		if (p >= b->addr && p < b->addr + b->bytes &&
		    (size_t)(b->addr + b->bytes - p) >= s->o.page_bytes)
			return b;
	}
	return NULL;
}

/* ---- life --------------------------------------------------------------- */

/* Pages are spread by their number, so the number of nodes must be known
 * before the first is asked for room. */
static int count_backends(struct page_store *s)
{
	uint32_t there = s->wiring.node_count(s->wiring.ctx);
	uint32_t want =
		s->o.nodes ? s->o.nodes : u32_min(there, PAGE_NODES_MAX);

	if (want < s->o.copies || there < want)
		return error_set(-ENOSPC,
				 "%u memory nodes are needed, the rack has %u",
				 u32_max(want, s->o.copies), there);
	s->backend_count = want;
	s->per_node = (s->o.pages + want - 1) / want;
	return 0;
}

static int open_backends(struct page_store *s)
{
	uint32_t there = s->wiring.node_count(s->wiring.ctx);
	uint32_t node, n = 0;
	int err = 0, first = 0;

	for (node = 0; node < there && n < s->backend_count; node++) {
		s->backend[n].store = s;
		err = page_backend_open(&s->backend[n], node);
		if (!err)
			n++;
		else if (!first)
			first = err;
		/* Another node may have room. */
		if (err && err != -EHOSTDOWN && err != -ENOSPC)
			break;
	}
	if (n == s->backend_count)
		return 0;
	/* error_last() is of the last that failed, which will do. */
	return err ? err : first;
}

static int build(struct page_store *s)
{
	int err =
		page_ledger_init(&s->ledger, s->o.pages, !s->o.has_no_checksum);
	if (!err)
		err = count_backends(s);
	if (!err)
		err = make_slots(s);
	if (!err)
		err = open_backends(s);
	if (!err)
		err = make_stage(s);
	return err;
}

int page_store_create(const char *name, const struct page_store_options *o,
		      const struct page_wiring *wiring, struct page_store **out)
{
	struct page_store *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		wiring->close(wiring->ctx, NULL);
		return error_set(-ENOMEM, "no memory for a page store");
	}
	s->wiring = *wiring;
	s->o = *o;
	snprintf(s->name, sizeof(s->name), "%s", name);
	fill_in(&s->o);
	err = check(&s->o);
	if (!err)
		err = build(s);
	if (err) {
		page_store_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void page_store_close(struct page_store *s)
{
	if (!s)
		return;
	/* Links first: nothing shall arrive in memory that is gone. */
	for (uint32_t i = 0; i < s->backend_count; i++)
		page_backend_close(&s->backend[i]);
	for (unsigned i = 0; i <= PAGE_BUFFERS_MAX; i++)
		if (s->buffer[i].mr)
			(void)s->verbs->dereg_mr(s->buffer[i].mr);
	if (s->stage)
		(void)munmap(s->stage, s->stage_bytes);
	page_ledger_release(&s->ledger);
	s->wiring.close(s->wiring.ctx, NULL);
	free(s->slot);
	free(s->hash);
	free(s);
}

/* ---- state -------------------------------------------------------------- */

const struct page_store_options *page_store_options(const struct page_store *s)
{
	return &s->o;
}

bool page_is_stored(const struct page_store *s, uint64_t page)
{
	return page < s->o.pages &&
	       page_ledger_get(&s->ledger, page) & LEDGER_STORED;
}

bool page_is_there(struct page_store *s, uint64_t page)
{
	unsigned bits;

	if (!page_is_stored(s, page))
		return false;
	bits = page_ledger_get(&s->ledger, page);
	if (bits & LEDGER_LOST)
		return false;
	for (unsigned i = 0; i < s->o.copies; i++) {
		const struct page_backend *l = page_copy_backend(s, page, i);

		if (bits & 1u << i && !l->is_lost && !l->is_failing)
			return true;
	}
	return false;
}

void page_store_stats(struct page_store *s, struct page_stats *out)
{
	*out = s->stats;
	out->used_pages = s->ledger.stored;
	out->nodes = s->backend_count;
	out->nodes_lost = 0;
	for (uint32_t i = 0; i < s->backend_count; i++) {
		struct page_backend *backend = &s->backend[i];

		out->nodes_lost += backend->is_lost;
		if (!backend->is_lost)
			out->allocated_bytes +=
				backend->ops->allocated_bytes(backend);
	}
}

const char *page_lost_node(const struct page_store *s)
{
	for (uint32_t i = 0; i < s->backend_count; i++)
		if (s->backend[i].is_lost)
			return s->backend[i].grant.node_name;
	return NULL;
}
