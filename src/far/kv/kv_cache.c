/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's copy of some rows. It serves inserts: what it says is a guess,
 * except for rows that were read under a lock that is still held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kv_priv.h"

int kv_cache_init(struct kv_replica *c)
{
	uint32_t i;

	c->line = calloc(c->line_count, sizeof(c->line[0]));
	if (!c->line)
		return error_set(-ENOMEM, "no memory for a client");
	for (i = 0; i < c->line_count; i++) {
		c->line[i].first = KV_NO_ROW;
		c->line[i].rows =
			c->lines + (size_t)i * c->line_rows * c->g.row_bytes;
	}
	return 0;
}

static uint64_t first_of(const struct kv_replica *c, uint64_t row)
{
	return row & ~(uint64_t)(c->line_rows - 1);
}

struct kv_line *kv_line_find(struct kv_replica *c, uint64_t row)
{
	uint64_t first = first_of(c, row);
	uint32_t i;

	for (i = 0; i < c->line_count; i++)
		if (c->line[i].first == first)
			return &c->line[i];
	return NULL;
}

struct kv_line *kv_line_pin(struct kv_replica *c, uint64_t row)
{
	struct kv_line *l = kv_line_find(c, row);
	uint32_t i;

	if (!l) {
		for (i = 0; i < c->line_count; i++)
			if (!c->line[i].is_pinned &&
			    (!l || c->line[i].used < l->used))
				l = &c->line[i];
		ASSERT(l); /* there are more than an operation's rows */
		l->first = first_of(c, row);
		l->known = l->synced = l->checked = 0;
	}
	l->is_pinned = true;
	l->used = ++c->line_tick;
	return l;
}

void kv_cache_unpin(struct kv_replica *c)
{
	uint32_t i;

	for (i = 0; i < c->line_count; i++) {
		c->line[i].is_pinned = false;
		c->line[i].synced = c->line[i].checked = 0;
	}
}

void kv_cache_forget(struct kv_replica *c)
{
	uint32_t i;

	for (i = 0; i < c->line_count; i++)
		c->line[i].known = c->line[i].synced = c->line[i].checked = 0;
}

uint8_t *kv_line_row(const struct kv_replica *c, const struct kv_line *l,
		     uint64_t row)
{
	return l->rows + (row - l->first) * c->g.row_bytes;
}

/* Whether what was read of the row is a row. */
static bool is_good(struct kv_replica *c, struct kv_line *l, uint64_t row)
{
	uint64_t bit = 1ull << (row - l->first);

	if (l->checked & bit)
		return true;
	if (!kv_row_is_whole(&c->g, kv_line_row(c, l, row))) {
		l->known &= ~bit;
		l->synced &= ~bit;
		return false;
	}
	l->checked |= bit;
	return true;
}

static const uint8_t *row_known(void *ctx, uint64_t row, bool *usable)
{
	struct kv_replica *c = ctx;
	struct kv_line *l = kv_line_find(c, row);

	*usable = true;
	if (!l || !(l->known & 1ull << (row - l->first)) || !is_good(c, l, row))
		return NULL;
	return kv_line_row(c, l, row);
}

static const uint8_t *row_synced(void *ctx, uint64_t row, bool *usable)
{
	struct kv_replica *c = ctx;
	struct kv_line *l = kv_line_find(c, row);

	*usable = l && (l->synced & 1ull << (row - l->first)) &&
		  is_good(c, l, row);
	return *usable ? kv_line_row(c, l, row) : NULL;
}

struct kv_view kv_cache_view(struct kv_replica *c, bool only_synced)
{
	return (struct kv_view){only_synced ? row_synced : row_known, c};
}
