/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is lost: regions whose only copies died with a machine, noted here so
 * that the next switch knows, too; and whole segments, when a machine died
 * together with the switch and nobody knows what it had.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "shared_priv.h"

static int by_page(const void *a, const void *b)
{
	const struct coh_range *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

static bool is_noted(const struct mem_shared *s, const struct coh_range *r)
{
	return bsearch(r, s->lost, s->lost_count, sizeof(*r), by_page);
}

/* The pages of its place. */
static bool is_in(const struct mem_segment *g, uint64_t page)
{
	uint64_t va = page << COHERENCE_PAGE_SHIFT;

	return va - segment_va(g) < g->part.bytes;
}

static struct mem_segment *segment_at(const struct mem_shared *s, uint64_t page)
{
	for (unsigned i = 0; i < MEM_SEGMENT_MAX; i++)
		if (s->segments[i] && is_in(s->segments[i], page))
			return s->segments[i];
	return NULL;
}

static void blame(struct mem_segment *g, const char *by)
{
	if (by)
		snprintf(g->lost_by, sizeof(g->lost_by), "%s", by);
}

static void say_lost(const struct mem_shared *s, const struct coh_range *r,
		     const char *by)
{
	struct mem_segment *g = segment_at(s, r->page);

	if (!g)
		return;
	blame(g, by);
	log_warn("memnode",
		 "segment %s of %s: %u pages at 0x%" PRIx64
		 " are lost with machine %s, until 'aquifer shared repair'",
		 g->name, g->tenant->name, r->count,
		 r->page << COHERENCE_PAGE_SHIFT, by ? by : "?");
}

int lost_note(struct mem_shared *s, const json_t *show, const char *by)
{
	const json_t *rows = json_object_get(show, "lost"), *row;
	unsigned count = 0, most = (unsigned)json_array_size(rows);
	struct coh_range *list = calloc(MEM_LOST_MAX, sizeof(*list));
	size_t i;

	if (!list)
		return error_set(-ENOMEM, "no memory left");
	json_array_foreach(rows, i, row)
	{
		struct coh_range r = {
			(uint64_t)json_integer_value(
				json_object_get(row, "va")) >>
				COHERENCE_PAGE_SHIFT,
			(uint32_t)(json_integer_value(
					   json_object_get(row, "size")) >>
				   COHERENCE_PAGE_SHIFT)};

		if (count == MEM_LOST_MAX)
			break;
		list[count++] = r;
		if (!is_noted(s, &r))
			say_lost(s, &r, by);
	}
	qsort(list, count, sizeof(*list), by_page);
	free(s->lost);
	s->lost = list;
	s->lost_count = count;
	/* There may be more than it shows. */
	s->all_lost |= json_is_true(json_object_get(show, "all_lost")) ||
		       most >= MEM_LOST_MAX;
	return 0;
}

uint64_t lost_bytes(const struct mem_shared *s, const struct mem_segment *g)
{
	uint64_t bytes = 0;

	if (g->is_lost || s->all_lost)
		return g->size_bytes;
	for (unsigned i = 0; i < s->lost_count; i++)
		if (is_in(g, s->lost[i].page))
			bytes += (uint64_t)s->lost[i].count *
				 COHERENCE_PAGE_BYTES;
	return u64_min(bytes, g->size_bytes);
}

void lost_forget(struct mem_shared *s, const struct mem_segment *g)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->lost_count; i++)
		if (!is_in(g, s->lost[i].page))
			s->lost[kept++] = s->lost[i];
	s->lost_count = kept;
}

void lost_whole(struct mem_segment *g, const char *by, const char *why)
{
	if (!g->is_lost)
		log_warn("memnode",
			 "segment %s of %s is lost: %s; 'aquifer shared "
			 "repair' goes on with the bytes of memory",
			 g->name, g->tenant->name, why);
	g->is_lost = true;
	blame(g, by);
}

/* The switch refuses all gets then, and repairs all at once; people repair
 * segment by segment. So each segment is without rights until its turn comes,
 * and the switch goes on. */
int lost_spread(struct mem_node *node, const char *by)
{
	struct mem_shared *s = node->shared;
	int err = 0;

	for (unsigned i = 0; !err && i < MEM_SEGMENT_MAX; i++) {
		struct mem_segment *g = s->segments[i];

		if (!g || g->is_leaving)
			continue;
		/* What the machine gave back last one node may have, and the
		 * other one not. */
		shared_copy_drop(node, g);
		if (g->goes_on) {
			log_warn("memnode",
				 "segment %s of %s goes on with the bytes of "
				 "memory: a machine died together with the "
				 "switch",
				 g->name, g->tenant->name);
			continue;
		}
		lost_whole(g, by, "a machine died together with the switch");
		err = segment_withdraw(node, g);
	}
	if (!err)
		err = shared_tell(node, "repair va=%llu size=%d",
				  (unsigned long long)COHERENCE_BASE,
				  COHERENCE_PAGE_BYTES);
	if (!err)
		s->all_lost = false;
	return err;
}

int lost_repair(struct mem_node *node, struct mem_segment *g)
{
	struct mem_shared *s = node->shared;
	unsigned kept = 0;
	int err = 0;

	if (s->all_lost)
		return error_set(-EBUSY, "machines are still being cleaned up "
					 "after the switch was restarted");
	if (!s->nodes[g->where].is_here)
		return error_set(-EHOSTDOWN,
				 "memory node %s, which has segment %s, does "
				 "not answer",
				 s->nodes[g->where].name, g->name);
	for (unsigned i = 0; i < s->lost_count; i++) {
		const struct coh_range r = s->lost[i];

		if (!err && is_in(g, r.page)) {
			err = shared_tell(
				node, "repair va=%" PRIu64 " size=%" PRIu64,
				r.page << COHERENCE_PAGE_SHIFT,
				(uint64_t)r.count << COHERENCE_PAGE_SHIFT);
			if (!err)
				continue;
		}
		s->lost[kept++] = r;
	}
	s->lost_count = kept;
	if (!err && g->is_lost) {
		g->is_lost = false;
		err = segment_declare(node, g);
		g->is_lost = err != 0;
	}
	return err;
}
