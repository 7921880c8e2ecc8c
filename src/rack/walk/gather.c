/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers in the order in which they came, some places of the first in each
 * turn. */
#include "gather.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clamp.h"
#include "base/error.h"
#include "base/landing.h"
#include "base/list.h"
#include "base/live.h"
#include "wire/gather_wire.h"

struct gather {
	struct list link; /* in order, or free */
	void *handle;	  /* NULL: free */
	uint8_t *pad;
	uint32_t count; /* of places */
	uint32_t next;	/* place that is fetched next */
	uint32_t found; /* behind the last one whose address is known */
	uint32_t out;	/* bytes of the answer so far */
	struct gather_place place[GATHER_WIRE_PLACES];
	const uint8_t *from[GATHER_WIRE_PLACES]; /* until the turn ends */
};

struct walk_gathers {
	struct walk_host host;
	struct list order;
	struct list free;
	uint32_t busy;
	struct gather gather[WALK_GATHERS];
};

int walk_gathers_open(const struct walk_host *host, struct walk_gathers **out)
{
	struct walk_gathers *g = calloc(1, sizeof(*g));

	if (!g)
		return error_set(-ENOMEM, "no memory for gathering");
	g->host = *host;
	list_init(&g->order);
	list_init(&g->free);
	for (unsigned i = 0; i < WALK_GATHERS; i++) {
		list_init(&g->gather[i].link);
		list_append(&g->free, &g->gather[i].link);
	}
	*out = g;
	return 0;
}

void walk_gathers_close(struct walk_gathers *g)
{
	free(g);
}

uint32_t walk_gathers_busy(const struct walk_gathers *g)
{
	return g->busy;
}

/* The list lies where the answer will. */
static int take_list(struct gather *t, const uint8_t *list, uint32_t bytes,
		     uint32_t room_bytes, uint32_t *answer_bytes)
{
	uint64_t total = 0;

	if (bytes == 0 || bytes % sizeof(le64) ||
	    bytes / sizeof(le64) > GATHER_WIRE_PLACES)
		return -EINVAL;
	t->count = (uint32_t)(bytes / sizeof(le64));
	for (uint32_t i = 0; i < t->count; i++) {
		le64 word;

		memcpy(&word, list + i * sizeof(word), sizeof(word));
		t->place[i] = gather_place_get(word);
		if (t->place[i].len_bytes == 0)
			return -EINVAL;
		total += gather_place_room(t->place[i].len_bytes);
	}
	if (total > room_bytes || total > *answer_bytes)
		return -EINVAL;
	*answer_bytes = (uint32_t)total;
	return 0;
}

int walk_gathers_start(struct walk_gathers *g, void *handle, uint8_t *pad,
		       uint32_t list_bytes, uint32_t room_bytes,
		       uint32_t *answer_bytes)
{
	struct gather *t;
	int err;

	if (list_is_empty(&g->free))
		return -EAGAIN;
	t = container_of(g->free.next, struct gather, link);
	err = list_bytes <= room_bytes
		      ? take_list(t, pad, list_bytes, room_bytes, answer_bytes)
		      : -EINVAL;
	if (err)
		return err;
	t->handle = handle;
	t->pad = pad;
	t->next = t->out = 0;
	list_remove(&t->link);
	list_append(&g->order, &t->link);
	g->busy++;
	return 0;
}

static void leave(struct walk_gathers *g, struct gather *t)
{
	t->handle = NULL;
	list_remove(&t->link);
	list_append(&g->free, &t->link);
	g->busy--;
}

bool walk_gathers_forget(struct walk_gathers *g, const void *handle)
{
	for (unsigned i = 0; i < WALK_GATHERS; i++)
		if (g->gather[i].handle && g->gather[i].handle == handle) {
			leave(g, &g->gather[i]);
			return true;
		}
	return false;
}

/* The host may start another one in `done`, perhaps in this place. */
static void finish(struct walk_gathers *g, struct gather *t,
		   enum walk_status status)
{
	const uint64_t at = t->next < t->count ? t->place[t->next].at : 0;
	const uint32_t took = t->next, left = t->count - t->next;
	void *handle = t->handle;

	leave(g, t);
	g->host.done(g->host.ctx, handle, status, at, left, took);
}

/* Where the next places are, up to `end`, and fetches their lines. The verdict
 * on the first that has no address ends the row. */
static enum walk_reach find(struct walk_gathers *g, struct gather *t,
			    uint32_t end)
{
	struct walk_span span = {.bytes = NULL};
	enum walk_reach verdict;

	for (t->found = t->next; t->found < end; t->found++) {
		const struct gather_place *p = &t->place[t->found];
		uint64_t offset = p->at - span.from;
		const uint8_t *from;

		if (offset > span.len || p->len_bytes > span.len - offset) {
			verdict = g->host.reach(g->host.ctx, t->handle, p->at,
						p->len_bytes, false, &span);
			if (verdict != WALK_REACH_HERE)
				return verdict;
			offset = p->at - span.from;
		}
		/* Also a processor that guesses wrong stays in the span. */
		from = span.bytes +
		       clamp_offset(offset, p->len_bytes, span.len);
		t->from[t->found] = from;
		for (uint32_t i = 0; i < p->len_bytes; i += CACHE_LINE)
			PREFETCH(from + i);
		PREFETCH(from + p->len_bytes - 1);
	}
	return WALK_REACH_HERE;
}

/* Words of a record that others write are fetched whole, as by a READ. The
 * memory may be gone although nobody said so: then this is left. */
static size_t fetch(void *gather, const void *unused, uintptr_t none)
{
	struct gather *t = gather;

	for (; t->next < t->found; t->next++) {
		const uint32_t len = t->place[t->next].len_bytes;
		const uint8_t *from = t->from[t->next];

		landing_move(from, len);
		live_move(t->pad + t->out, from, len);
		t->out += gather_place_room(len);
	}
	return 1;
}

static enum walk_status status_of(enum walk_reach verdict)
{
	if (verdict == WALK_REACH_ELSEWHERE)
		return WALK_ELSEWHERE;
	return verdict == WALK_REACH_NO_RIGHT ? WALK_NO_RIGHT : WALK_FAULT;
}

uint32_t walk_gathers_turn(struct walk_gathers *g, uint32_t places_max)
{
	uint32_t looked = 0;

	while (looked < places_max && !list_is_empty(&g->order)) {
		struct gather *t =
			container_of(g->order.next, struct gather, link);
		uint32_t end =
			u32_min(t->count, t->next + (places_max - looked));
		enum walk_reach verdict = find(g, t, end);
		bool is_there;

		looked += end - t->next;
		is_there = t->found == t->next ||
			   landing_call(t, NULL, 0, fetch,
					(uintptr_t)t->from[t->next],
					(uintptr_t)t->from[t->next] +
						t->place[t->next].len_bytes);
		if (UNLIKELY(!is_there))
			finish(g, t, WALK_FAULT);
		else if (UNLIKELY(verdict != WALK_REACH_HERE))
			finish(g, t, status_of(verdict));
		else if (t->next == t->count)
			finish(g, t, WALK_DONE);
	}
	return looked;
}
