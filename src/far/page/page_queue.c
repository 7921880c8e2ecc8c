/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of operations: one slot per page that is worked on. An operation on
 * a page that has a slot already waits behind it, because nodes execute what
 * reaches them on different ways in any order.
 */
#include <errno.h>

#include "base/error.h"
#include "client/link.h"
#include "page_priv.h"

enum {
	IDLE_LOOKS = 64,	/* without result, between looks at the clock */
	LOOKS_PER_CLOCK = 4096, /* with one */
	CHECK_NS = 100000000,
};

static struct page_slot **bucket(struct page_store *s, uint64_t page)
{
	uint64_t h = page * 0x9e3779b97f4a7c15ull;

	return &s->hash[(h >> 40) & s->hash_mask];
}

static struct page_slot *find(struct page_store *s, uint64_t page)
{
	struct page_slot *slot = *bucket(s, page);

	while (slot && slot->op->page != page)
		slot = slot->next;
	return slot;
}

static struct page_slot *take_slot(struct page_store *s, uint64_t page)
{
	struct page_slot *slot = s->free_slots, **b = bucket(s, page);

	ASSERT(slot != NULL); /* there are as many as operations */
	s->free_slots = slot->next;
	slot->next = *b;
	*b = slot;
	s->active++;
	return slot;
}

static void free_slot(struct page_store *s, struct page_slot *slot,
		      uint64_t page)
{
	struct page_slot **at = bucket(s, page);

	while (*at != slot)
		at = &(*at)->next;
	*at = slot->next;
	slot->next = s->free_slots;
	s->free_slots = slot;
	s->active--;
}

static void count(struct page_store *s, const struct page_op *op)
{
	static const enum tally_count counts[] = {[PAGE_LOAD] = TALLY_READS,
						  [PAGE_STORE] = TALLY_WRITES,
						  [PAGE_INVALIDATE] =
							  TALLY_DELETES};

	s->probe.ended++;
	/* That a page was never stored is an answer. */
	if (op->result && op->result != -ENODATA)
		tally_done(s->tally, TALLY_ERRORS);
	else
		tally_done_bytes(s->tally, counts[op->kind],
				 op->result || op->kind == PAGE_INVALIDATE
					 ? 0
					 : s->o.page_bytes);
}

/* The caller has it from now on, unless it is the synchronous one. */
static void put_ended(struct page_store *s, struct page_op *op)
{
	op->next = NULL;
	s->stats.failed += op->result != 0;
	if (s->tally)
		count(s, op);
	if (op == s->sync) {
		s->sync = NULL;
		s->pending--;
		return;
	}
	if (s->ended)
		s->ended_last->next = op;
	else
		s->ended = op;
	s->ended_last = op;
}

static void end_probe(struct page_store *s, struct page_slot *slot)
{
	if (!slot->is_timed)
		return;
	slot->is_timed = false;
	tally_probe_end(&s->probe, s->tally, client_clock_now_ns(s->clock));
}

void page_slot_end(struct page_store *s, struct page_slot *slot, int result)
{
	struct page_op *op = slot->op;

	op->result = result;
	slot->op = slot->follow;
	if (slot->op) {
		slot->follow = slot->op->next;
		put_ended(s, op);
		end_probe(s, slot);
		/* Not from here: what ends at once would nest without end. */
		slot->is_ready = true;
		s->ready++;
		return;
	}
	slot->op = op; /* free_slot finds it by its page */
	free_slot(s, slot, op->page);
	slot->op = NULL;
	put_ended(s, op);
	end_probe(s, slot);
}

/* Operations whose predecessor has ended. */
static void start_ready(struct page_store *s)
{
	uint32_t i = 0;

	while (s->ready) {
		struct page_slot *slot = &s->slot[i];

		if (slot->is_ready) {
			slot->is_ready = false;
			s->ready--;
			slot->start_ns = s->now_ns;
			page_work_start(s, slot);
		}
		i = (i + 1) % s->slot_count;
	}
}

static void submit_one(struct page_store *s, struct page_op *op)
{
	struct page_slot *slot;
	bool is_timed;

	op->next = NULL;
	op->result = -EINPROGRESS;
	s->pending++;
	if (op->page >= s->o.pages) {
		op->result = -ERANGE;
		put_ended(s, op);
		return;
	}
	slot = s->active ? find(s, op->page) : NULL;
	if (slot) {
		if (slot->follow)
			slot->follow_last->next = op;
		else
			slot->follow = op;
		slot->follow_last = op;
		return;
	}
	is_timed = s->tally && tally_probe_is_idle(&s->probe);
	/* Waits are measured from here, so the clock must be right. */
	if (!s->active || is_timed)
		s->now_ns = client_clock_now_ns(s->clock);
	slot = take_slot(s, op->page);
	slot->op = op;
	slot->start_ns = s->now_ns;
	slot->is_timed = is_timed;
	if (is_timed)
		tally_probe_start(&s->probe, slot, s->now_ns);
	page_work_start(s, slot);
}

int page_submit(struct page_store *s, struct page_op *const ops[], unsigned n)
{
	unsigned i;

	for (i = 0; i < n && s->pending < s->o.depth; i++)
		submit_one(s, ops[i]);
	if (s->ready)
		start_ready(s);
	return i || !n ? (int)i : -EAGAIN;
}

static uint64_t oldest_ns(const struct page_store *s,
			  const struct page_backend *backend)
{
	uint64_t oldest = UINT64_MAX;
	uint32_t i, copy;

	for (i = 0; i < s->slot_count; i++) {
		const struct page_slot *slot = &s->slot[i];

		for (copy = 0; slot->op && copy < s->o.copies; copy++)
			if (slot->waiting & 1u << copy &&
			    page_copy_backend((struct page_store *)s,
					      slot->op->page, copy) == backend)
				oldest = u64_min(oldest, slot->start_ns);
	}
	return oldest;
}

const char *page_silent_node(struct page_store *s, uint32_t ms)
{
	uint64_t now_ns = client_clock_now_ns(s->clock);

	for (uint32_t i = 0; i < s->backend_count; i++) {
		const struct page_backend *backend = &s->backend[i];
		uint64_t oldest;

		if (backend->is_lost || !backend->busy)
			continue;
		oldest = oldest_ns(s, backend);
		if (oldest < now_ns && now_ns - oldest > ms * 1000000ull)
			return backend->grant.node_name;
	}
	return NULL;
}

static void check(struct page_backend *backend)
{
	backend->checked_ns = backend->store->now_ns;
	/* The heartbeat says so only of what is certain. */
	if (page_backend_seems_lost(backend) ||
	    (backend->ops->check && backend->ops->check(backend) != 0))
		page_backend_fail(backend, "it has ended the connection");
}

/* Nothing came for a while: is there still somebody? */
static void look_around(struct page_store *s)
{
	uint64_t patience_ns = s->o.deadline_ms * 1000000ull;
	uint32_t i;

	s->now_ns = client_clock_now_ns(s->clock);
	for (i = 0; i < s->backend_count; i++) {
		struct page_backend *backend = &s->backend[i];
		uint64_t oldest;

		if (backend->is_lost || !backend->busy)
			continue;
		oldest = oldest_ns(s, backend);
		if (oldest > s->now_ns)
			continue;
		if (s->now_ns - oldest > patience_ns)
			page_backend_fail(backend, "it does not answer");
		else if (page_backend_seems_lost(backend))
			check(backend);
		else if (s->now_ns - oldest > CHECK_NS &&
			 s->now_ns - backend->checked_ns > CHECK_NS)
			check(backend);
	}
}

void page_harvest(struct page_store *s)
{
	unsigned before = s->active;
	uint32_t i;

	for (i = 0; i < s->backend_count; i++) {
		struct page_backend *backend = &s->backend[i];

		if (backend->busy && !backend->is_lost &&
		    !backend->is_failing && backend->ops->poll(backend))
			page_backend_fail(backend, "the connection broke");
	}
	/* Soon when nothing comes, and now and then when something does: one
	 * node may be silent while others answer. */
	s->looks += s->active == before ? LOOKS_PER_CLOCK / IDLE_LOOKS : 1;
	if (s->looks >= LOOKS_PER_CLOCK) {
		s->looks = 0;
		look_around(s);
	}
	for (i = 0; i < s->backend_count; i++)
		if (s->backend[i].is_failing)
			page_backend_lose(&s->backend[i]);
	if (s->ready)
		start_ready(s);
}

int page_poll(struct page_store *s, struct page_op *done[], unsigned max)
{
	unsigned n = 0;

	if (s->active)
		page_harvest(s);
	while (n < max && s->ended) {
		struct page_op *op = s->ended;

		s->ended = op->next;
		op->next = NULL;
		done[n++] = op;
		s->pending--;
	}
	return (int)n;
}

unsigned page_pending(const struct page_store *s)
{
	return s->pending;
}

/* ---- synchronous -------------------------------------------------------- */

/* Every operation ends by itself: its backends answer or are given up. */
static int run(struct page_store *s, struct page_op *op)
{
	s->sync = op;
	submit_one(s, op);
	while (s->sync) {
		page_harvest(s);
		if (s->sync)
			client_clock_relax(s->clock);
	}
	return op->result;
}

int page_get(struct page_store *s, uint64_t page, void *buf)
{
	struct page_op op = {.kind = PAGE_LOAD, .page = page, .buf = buf};

	return run(s, &op);
}

int page_put(struct page_store *s, uint64_t page, const void *buf)
{
	struct page_op op = {
		.kind = PAGE_STORE, .page = page, .buf = (void *)buf};

	return run(s, &op);
}

int page_drop(struct page_store *s, uint64_t page)
{
	struct page_op op = {.kind = PAGE_INVALIDATE, .page = page};

	return run(s, &op);
}
