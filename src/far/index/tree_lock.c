/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks of nodes. A lock is a word in device memory that says who holds it; a
 * node's is found by its number, and several nodes share one. Nobody holds two,
 * so nobody waits in a circle.
 *
 * Clients of one process first take the lock at home. Who lets it go while
 * others wait there leaves the far one as it is, in its own name; the next one
 * puts its own name there by the same compare-and-swap that it would have
 * needed anyway, and which now nobody else can win. The name must be the right
 * one at any time, because who seems dead is fenced by it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/plant.h"
#include "tree_priv.h"

struct tree_local {
	/* Taken with acquire, let go with release: LOCAL-1; so the rest belongs
	 * to who has it. */
	_Atomic uint32_t busy;
	_Atomic uint32_t waiting; /* only a hint */
	uint32_t handed;
	uint64_t word; /* what is in the far lock, left for us; 0: nothing */
};

struct tree_locals {
	uint32_t count;
	struct tree_local lock[];
};

int tree_locals_create(const struct tree_geometry *g, struct tree_locals **out)
{
	struct tree_locals *l =
		calloc(1, sizeof(*l) + g->lock_count * sizeof(l->lock[0]));

	if (!l)
		return error_set(-ENOMEM, "no memory for the locks");
	l->count = g->lock_count;
	*out = l;
	return 0;
}

void tree_locals_destroy(struct tree_locals *l)
{
	free(l);
}

/* ---- at home ------------------------------------------------------------ */

static struct tree_local *local_of(struct tree_client *c, uint32_t lock)
{
	return c->config.locals ? &c->config.locals->lock[lock] : NULL;
}

static bool local_try(struct tree_local *l)
{
	uint32_t free_now = 0;

	/* LOCAL-1: what the last holder handed over is seen. */
	return atomic_compare_exchange_strong_explicit(&l->busy, &free_now, 1,
						       memory_order_acquire,
						       memory_order_relaxed);
}

static void local_leave(struct tree_local *l, uint64_t word)
{
	l->handed = word ? l->handed + 1 : 0;
	l->word = word;
	/* LOCAL-1, with local_try. */
	atomic_store_explicit(&l->busy, 0, memory_order_release);
}

/* What was left for somebody who does not wait any more. */
static int let_go(struct tree_client *c, struct tree_local *l, uint32_t lock)
{
	uint64_t word = l->word;
	int err = 0;

	if (word) {
		kit_begin(&c->kit);
		kit_cas(&c->kit.locks, TREE_POINT_UNLOCK, tree_lock_at(lock),
			word, 0, &c->atom[TREE_ATOM_OTHER]);
		err = kit_run(&c->kit);
	}
	local_leave(l, 0);
	return err;
}

static int local_enter(struct tree_client *c, uint32_t lock)
{
	struct tree_local *l = local_of(c, lock);
	uint32_t others;

	if (!l || local_try(l))
		return 0;
	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	while (!kit_is_late(&c->kit)) {
		client_clock_relax(c->kit.clock);
		if (!local_try(l))
			continue;
		atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
		return 0;
	}
	others = atomic_fetch_sub_explicit(&l->waiting, 1,
					   memory_order_relaxed) -
		 1;
	if (!others && local_try(l)) {
		int err = let_go(c, l, lock);

		if (err)
			return err;
	}
	return tree_late(c);
}

/* ---- the dead ----------------------------------------------------------- */

/* 0: nobody will write under this word any more. */
static int evict(struct tree_client *c, uint64_t word)
{
	uint32_t slot = tree_lock_slot(word), epoch = tree_lock_epoch(word);

	c->stats.taken_over++;
	/* Nobody's, or one that this client left to others here and nobody
	 * took. */
	if (slot >= c->g.client_count || PLANTED(tree_steal) ||
	    (slot == c->kit.slot && epoch == (c->kit.epoch & TREE_LOCK_EPOCHS)))
		return 0;
	return kit_slot_fence(&c->kit, slot, epoch);
}

/* ---- far ---------------------------------------------------------------- */

static int try_lock(struct tree_client *c, uint32_t lock, uint64_t expect,
		    uint64_t pointer, struct tree_node *n, uint64_t *answer)
{
	uint64_t mine =
		tree_lock_word(c->kit.slot, c->kit.epoch, ++c->lock_count);
	int err;

	kit_begin(&c->kit);
	kit_cas(&c->kit.locks, TREE_POINT_LOCK, tree_lock_at(lock), expect,
		mine, &c->atom[TREE_ATOM_LOCK]);
	kit_read(&c->kit.main, tree_node_at(&c->g, pointer), n,
		 c->g.node_bytes);
	err = kit_run(&c->kit);
	*answer = c->atom[TREE_ATOM_LOCK];
	if (!err && *answer == expect)
		c->hold = (struct tree_hold){
			.lock = lock, .word = mine, .is_held = true};
	return err;
}

static int lock_far(struct tree_client *c, uint32_t lock, uint64_t pointer,
		    struct tree_node *n)
{
	struct tree_local *l = local_of(c, lock);
	uint64_t backoff_ns = TREE_BACKOFF_NS_MIN;
	uint64_t expect = l ? l->word : 0;
	struct kit_watch w = {0};
	uint64_t holder = 0;

	for (;;) {
		uint64_t answer = 0;
		int err = try_lock(c, lock, expect, pointer, n, &answer);

		if (err)
			return err;
		if (c->hold.is_held || PLANTED(tree_no_lock)) {
			c->hold.is_held = true;
			c->hold.lock = lock;
			c->stats.locks++;
			c->stats.handed += l && l->word;
			return 0;
		}
		expect = 0;
		if (l)
			l->word = 0;
		if (!answer)
			continue;
		c->stats.lock_fails++;
		if (kit_is_late(&c->kit))
			return tree_late(c);
		if (answer != holder)
			kit_watch_start(&c->kit, &w);
		holder = answer;
		if (kit_watch_is_late(&c->kit, &w, c->kit.failure_ns)) {
			err = evict(c, answer);
			if (err)
				return err;
			expect = answer;
			continue;
		}
		kit_pause(&c->kit, rng_below(&c->kit.rng, backoff_ns) + 1);
		backoff_ns = u64_min(2 * backoff_ns, TREE_BACKOFF_NS_MAX);
	}
}

/*
 * Torn under the lock: its last holder died over it. Or the memory has got
 * another use meanwhile, and a node that nobody knows yet is being written,
 * without a lock; then its head, which is written first, is another by now.
 */
static int settle(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		  enum tree_verdict *verdict)
{
	unsigned lost = 0;
	int err;

	*verdict = tree_node_judge(&c->g, n, pointer);
	if (*verdict != TREE_TORN)
		return 0;
	err = kit_read_now(&c->kit.main, tree_node_at(&c->g, pointer), n,
			   c->g.node_bytes);
	if (err)
		return err;
	*verdict = tree_node_judge(&c->g, n, pointer);
	if (*verdict != TREE_TORN)
		return 0;
	if (le64_get(n->self) != pointer) {
		*verdict = TREE_OTHER;
		return 0;
	}
	err = tree_node_mend(&c->g, n, pointer, &lost);
	if (err)
		return err;
	c->stats.mended++;
	c->stats.lost += lost;
	kit_begin(&c->kit);
	kit_write(&c->kit.main, TREE_POINT_NODE, tree_node_at(&c->g, pointer),
		  n, c->g.node_bytes);
	*verdict = TREE_WHOLE;
	return kit_run(&c->kit);
}

int tree_lock_read(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict)
{
	uint32_t lock = tree_lock_of(&c->g, pointer);
	int err = local_enter(c, lock);

	ASSERT(!c->hold.is_held);
	if (err)
		return err;
	err = lock_far(c, lock, pointer, n);
	if (err) {
		struct tree_local *l = local_of(c, lock);

		/* What was left here may still be there for the next one. */
		if (l)
			local_leave(l, l->word);
		return err;
	}
	err = settle(c, pointer, n, verdict);
	if (err)
		(void)!tree_unlock(c); /* the first reason is the one to tell */
	return err;
}

void tree_unlock_add(struct tree_client *c)
{
	struct tree_local *l = local_of(c, c->hold.lock);

	ASSERT(c->hold.is_held);
	c->hold.hands_on =
		l && l->handed < TREE_HANDED_MAX &&
		atomic_load_explicit(&l->waiting, memory_order_relaxed);
	if (!c->hold.hands_on)
		kit_write(&c->kit.locks, TREE_POINT_UNLOCK,
			  tree_lock_at(c->hold.lock), c->zero, 8);
}

int tree_unlock_run(struct tree_client *c)
{
	struct tree_local *l = local_of(c, c->hold.lock);
	int err = kit_run(&c->kit);

	ASSERT(c->hold.is_held);
	c->hold.is_held = false;
	if (!l)
		return err;
	local_leave(l, !err && c->hold.hands_on ? c->hold.word : 0);
	/* Who waited may have given up meanwhile, without a chance to see what
	 * was left for it. */
	if (!err && c->hold.hands_on &&
	    !atomic_load_explicit(&l->waiting, memory_order_relaxed) &&
	    local_try(l))
		(void)!let_go(c, l, c->hold.lock); /* the change is made */
	return err;
}

int tree_unlock(struct tree_client *c)
{
	kit_begin(&c->kit);
	tree_unlock_add(c);
	return tree_unlock_run(c);
}
