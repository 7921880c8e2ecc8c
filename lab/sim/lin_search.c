/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches for an order that explains one key's operations: depth first, after
 * Wing and Gong, with the visited pairs (operations done, value) remembered as
 * Lowe proposed. Four things keep it small:
 *
 * - An operation that only looks is taken at once where it fits. Any order
 *   that takes it later can take it now, because it changes nothing.
 * - A write whose value nobody meets is taken together with the next write,
 * right before it: any order with it later is one with it there, too.
 * - Operations without a known end are tried last; most never happened.
 * - A visited pair is kept as a 128-bit fingerprint, not as a bit set: the
 *   exclusive or of one random number per operation done. Two different pairs
 *   would have to agree in 128 bits to be mistaken for each other; with the
 *   2^32 pairs that fit in 64 GiB the chance is below 2^-64.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lin_priv.h"

#define NONE UINT32_MAX

struct print {
	uint64_t low, high;
};

struct frame {
	struct lin_value before; /* the value it met */
	uint32_t op;
	uint32_t with; /* frames below that were taken together with it */
	bool forced;   /* it only looks: no other choice needs a try */
};

struct cache {
	struct print *slot; /* both 0: free */
	uint64_t slots, count, slots_max;
};

struct lin_search {
	struct cache cache;
	/* Sized for the key at hand. */
	uint32_t room;
	struct frame *stack;
	/* Events of operations that ended: 2i is the call of i, 2i + 1 its
	 * return, 2n the head. */
	uint32_t *next, *prev;
	/* Calls that have no known end; n is the head. */
	uint32_t *open_next, *open_prev;

	const struct lin_op *const *op;
	const bool *is_unseen; /* or NULL */
	uint32_t count;
	uint32_t depth;
	uint32_t returns_left;
	uint32_t blocked; /* the furthest return that was met and not passed */
	struct lin_value now;
	struct print done;
	bool in_open;	 /* where the scan is: among those without an end */
	uint32_t cursor; /* and at which */
};

/* ---- fingerprints ------------------------------------------------------- */

static uint64_t mix(uint64_t v)
{
	v += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

static void print_flip(struct print *p, uint32_t op)
{
	p->low ^= mix(2 * (uint64_t)op);
	p->high ^= mix(2 * (uint64_t)op + 1);
}

static struct print print_with(struct print p, struct lin_value v)
{
	uint64_t m = mix(v.bits ^ mix(v.kind));

	p.low = mix(p.low ^ m);
	p.high = mix(p.high ^ mix(m));
	if (!p.low && !p.high)
		p.low = 1;
	return p;
}

/* ---- the cache ---------------------------------------------------------- */

static void cache_put(struct print *slot, uint64_t slots, struct print p)
{
	uint64_t at = p.low & (slots - 1);

	while (slot[at].low || slot[at].high)
		at = (at + 1) & (slots - 1);
	slot[at] = p;
}

static void cache_grow(struct cache *c)
{
	uint64_t slots = 2 * c->slots;
	struct print *slot;

	if (slots > c->slots_max)
		return;
	slot = calloc(slots, sizeof(*slot));
	if (!slot) { /* no reason to give up: go on with what there is */
		c->slots_max = c->slots;
		return;
	}
	for (uint64_t i = 0; i < c->slots; i++) {
		if (c->slot[i].low || c->slot[i].high)
			cache_put(slot, slots, c->slot[i]);
	}
	free(c->slot);
	c->slot = slot;
	c->slots = slots;
}

/* True when it was not there. A full cache remembers nothing more. */
static bool cache_add(struct cache *c, struct print p)
{
	uint64_t at = p.low & (c->slots - 1);

	for (; c->slot[at].low || c->slot[at].high;
	     at = (at + 1) & (c->slots - 1)) {
		if (c->slot[at].low == p.low && c->slot[at].high == p.high)
			return false;
	}
	if (4 * (c->count + 1) > 3 * c->slots) {
		cache_grow(c);
		if (4 * (c->count + 1) > 3 * c->slots)
			return true;
		cache_put(c->slot, c->slots, p);
	} else {
		c->slot[at] = p;
	}
	c->count++;
	return true;
}

static int cache_reset(struct cache *c)
{
	enum {
		SLOTS_FIRST = 1024
	};

	if (c->slots > SLOTS_FIRST || !c->slot) {
		free(c->slot);
		c->slots = SLOTS_FIRST;
		c->slot = calloc(c->slots, sizeof(*c->slot));
		if (!c->slot)
			return -ENOMEM;
	} else if (c->count) {
		memset(c->slot, 0, c->slots * sizeof(*c->slot));
	}
	c->count = 0;
	return 0;
}

/* ---- lists -------------------------------------------------------------- */

static void unlink_node(uint32_t *next, uint32_t *prev, uint32_t n)
{
	next[prev[n]] = next[n];
	prev[next[n]] = prev[n];
}

/* Undoes unlink_node; in the reverse order of the unlinking only. */
static void relink_node(uint32_t *next, uint32_t *prev, uint32_t n)
{
	next[prev[n]] = n;
	prev[next[n]] = n;
}

static void append_node(uint32_t *next, uint32_t *prev, uint32_t head,
			uint32_t n)
{
	prev[n] = prev[head];
	next[n] = head;
	next[prev[n]] = n;
	prev[head] = n;
}

static bool has_end(const struct lin_search *s, uint32_t op)
{
	return s->op[op]->return_pos != LIN_NEVER;
}

static int by_return(const void *x, const void *y, void *ctx)
{
	const struct lin_search *s = ctx;
	uint64_t a = s->op[*(const uint32_t *)x]->return_pos;
	uint64_t b = s->op[*(const uint32_t *)y]->return_pos;

	return a < b ? -1 : a > b;
}

/* The events in their order: calls are sorted already, returns are not. */
static int lists_build(struct lin_search *s)
{
	uint32_t *ret = malloc((s->count + (size_t)1) * sizeof(*ret));
	uint32_t head = 2 * s->count, r = 0;

	if (!ret)
		return -ENOMEM;
	s->next[head] = head;
	s->prev[head] = head;
	s->open_next[s->count] = s->count;
	s->open_prev[s->count] = s->count;
	s->returns_left = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		if (has_end(s, i))
			ret[s->returns_left++] = i;
		else
			append_node(s->open_next, s->open_prev, s->count, i);
	}
	qsort_r(ret, s->returns_left, sizeof(*ret), by_return, s);
	for (uint32_t i = 0; i < s->count; i++) {
		for (; r < s->returns_left &&
		       s->op[ret[r]]->return_pos < s->op[i]->invoke_pos;
		     r++)
			append_node(s->next, s->prev, head, 2 * ret[r] + 1);
		if (has_end(s, i))
			append_node(s->next, s->prev, head, 2 * i);
	}
	for (; r < s->returns_left; r++)
		append_node(s->next, s->prev, head, 2 * ret[r] + 1);
	free(ret);
	return 0;
}

/* ---- steps -------------------------------------------------------------- */

static void restart(struct lin_search *s)
{
	s->in_open = false;
	s->cursor = s->next[2 * s->count];
}

static void take(struct lin_search *s, uint32_t i, struct lin_value next,
		 uint32_t with)
{
	s->stack[s->depth++] = (struct frame){
		s->now, i, with, has_end(s, i) && lin_op_observes(s->op[i])};
	s->now = next;
	print_flip(&s->done, i);
	if (has_end(s, i)) {
		unlink_node(s->next, s->prev, 2 * i);
		unlink_node(s->next, s->prev, 2 * i + 1);
		s->returns_left--;
	} else {
		unlink_node(s->open_next, s->open_prev, i);
	}
}

/* Undoes the last one. */
static struct frame untake(struct lin_search *s)
{
	struct frame f = s->stack[--s->depth];

	s->now = f.before;
	print_flip(&s->done, f.op);
	if (has_end(s, f.op)) {
		relink_node(s->next, s->prev, 2 * f.op + 1);
		relink_node(s->next, s->prev, 2 * f.op);
		s->returns_left++;
	} else {
		relink_node(s->open_next, s->open_prev, f.op);
	}
	return f;
}

/* Undoes the last operation that had a choice beside it; false: none is left.
 * The scan goes on behind it. */
static bool back(struct lin_search *s)
{
	struct frame f;

	do {
		if (!s->depth)
			return false;
		f = untake(s);
		for (uint32_t i = 0; i < f.with; i++)
			(void)untake(s); /* they have no choice of their own */
	} while (f.forced);
	s->in_open = !has_end(s, f.op);
	s->cursor = s->in_open ? s->open_next[f.op] : s->next[2 * f.op];
	return true;
}

enum tried {
	TRIED_NO,
	TRIED_TAKEN,
	TRIED_DEAD, /* nothing from here can succeed */
};

/* The first node at or behind n that is the call of a write that nobody sees;
 * NONE when a return comes before. */
static uint32_t next_unseen(const struct lin_search *s, uint32_t n)
{
	for (; !(n & 1); n = s->next[n]) {
		if (s->is_unseen[n / 2])
			return n;
	}
	return NONE;
}

/* A write, with all that nobody sees right before it. */
static enum tried try_write(struct lin_search *s, uint32_t i)
{
	uint32_t first = s->next[2 * s->count], with = 0, n;
	struct print p = s->done;

	print_flip(&p, i);
	for (n = next_unseen(s, first); n != NONE;
	     n = next_unseen(s, s->next[n])) {
		if (n / 2 != i)
			print_flip(&p, n / 2);
	}
	if (!cache_add(&s->cache, print_with(p, s->op[i]->a)))
		return TRIED_NO;
	for (n = next_unseen(s, first); n != NONE;) {
		uint32_t after = s->next[n];

		if (n / 2 != i) {
			/* Its return may be what follows. */
			if (after == n + 1)
				after = s->next[after];
			take(s, n / 2, s->op[n / 2]->a, 0);
			with++;
		}
		n = next_unseen(s, after);
	}
	take(s, i, s->op[i]->a, with);
	return TRIED_TAKEN;
}

static enum tried try_take(struct lin_search *s, uint32_t i)
{
	bool observes = lin_op_observes(s->op[i]);
	struct lin_value next;
	struct print p = s->done;

	if (!lin_op_apply(s->op[i], s->now, &next))
		return TRIED_NO;
	/* Without an end and without an effect: it need not happen. */
	if (!has_end(s, i) && lin_value_equal(next, s->now))
		return TRIED_NO;
	if (s->is_unseen && s->op[i]->call == LIN_WRITE)
		return try_write(s, i);
	print_flip(&p, i);
	if (!cache_add(&s->cache, print_with(p, next)))
		return observes ? TRIED_DEAD : TRIED_NO;
	take(s, i, next, 0);
	return TRIED_TAKEN;
}

/* The next operation to try, or NONE: go back. */
static uint32_t candidate(struct lin_search *s)
{
	uint32_t first_return;

	if (!s->in_open) {
		if (!(s->cursor & 1)) {
			uint32_t i = s->cursor / 2;

			s->cursor = s->next[s->cursor];
			return i;
		}
		first_return = s->cursor / 2;
		if (s->blocked == NONE || s->op[first_return]->return_pos >
						  s->op[s->blocked]->return_pos)
			s->blocked = first_return;
		s->in_open = true;
		s->cursor = s->open_next[s->count];
	}
	if (s->cursor != s->count) {
		uint32_t i = s->cursor;
		uint32_t n = s->next[2 * s->count];

		/* Calls of the scan's round stand before the first return. */
		while (!(n & 1))
			n = s->next[n];
		s->cursor = s->open_next[i];
		if (s->op[i]->invoke_pos < s->op[n / 2]->return_pos)
			return i;
	}
	return NONE;
}

static enum lin_verdict search(struct lin_search *s, uint64_t *steps_left)
{
	restart(s);
	while (s->returns_left) {
		uint32_t i;
		enum tried t;

		if (!*steps_left)
			return LIN_UNKNOWN;
		--*steps_left;
		i = candidate(s);
		t = i == NONE ? TRIED_DEAD : try_take(s, i);
		if (t == TRIED_TAKEN)
			restart(s);
		else if (t == TRIED_DEAD && !back(s))
			return LIN_VIOLATED;
	}
	return LIN_LINEARIZABLE;
}

/* ---- one key ------------------------------------------------------------ */

int lin_search_create(uint64_t cache_bytes, struct lin_search **out)
{
	struct lin_search *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cache.slots_max = cache_bytes / sizeof(struct print);
	*out = s;
	return 0;
}

static void arrays_free(struct lin_search *s)
{
	free(s->stack);
	free(s->next);
	free(s->prev);
	free(s->open_next);
	free(s->open_prev);
	s->stack = NULL;
	s->next = s->prev = s->open_next = s->open_prev = NULL;
	s->room = 0;
}

void lin_search_destroy(struct lin_search *s)
{
	if (!s)
		return;
	arrays_free(s);
	free(s->cache.slot);
	free(s);
}

static int arrays_size(struct lin_search *s, uint32_t count)
{
	size_t nodes = 2 * ((size_t)count + 1);

	if (s->room >= count + 1)
		return 0;
	arrays_free(s);
	s->stack = malloc((count + (size_t)1) * sizeof(*s->stack));
	s->next = malloc(nodes * sizeof(*s->next));
	s->prev = malloc(nodes * sizeof(*s->prev));
	s->open_next = malloc(nodes * sizeof(*s->open_next));
	s->open_prev = malloc(nodes * sizeof(*s->open_prev));
	if (!s->stack || !s->next || !s->prev || !s->open_next || !s->open_prev)
		return -ENOMEM;
	s->room = count + 1;
	return 0;
}

int lin_search_run(struct lin_search *s, const struct lin_op *const *op,
		   const bool *is_unseen, uint32_t count,
		   struct lin_value initial, uint64_t *steps_left,
		   enum lin_verdict *verdict, uint32_t *blocked)
{
	int err = arrays_size(s, count);

	if (!err)
		err = cache_reset(&s->cache);
	if (err)
		return err;
	s->op = op;
	s->is_unseen = is_unseen;
	s->count = count;
	s->depth = 0;
	s->blocked = NONE;
	s->now = initial;
	s->done = (struct print){0, 0};
	err = lists_build(s);
	if (err)
		return err;
	*verdict = search(s, steps_left);
	*blocked = s->blocked == NONE ? 0 : s->blocked;
	return 0;
}
