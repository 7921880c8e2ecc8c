/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bell: how a NIC that sleeps is woken, and how one that does not is left
 * alone. Every process has one bell page, which its peers map, with one flag:
 * asleep. A producer looks at the flag after each frame; only when it is set
 * does it pay for a write to the sleeper's eventfd.
 *
 * Nothing is lost because of this pair:
 *  B0 (producer) publishes a record, then reads `asleep`.
 *  B1 (sleeper)  sets `asleep`, then looks into its rings again.
 * At least one of the two must see the other's store. A locked instruction in
 * B0 would guarantee it, but costs 35 ns for every frame, because it waits for
 * the record's cache line. Sleeping is rare, so the sleeper pays instead:
 * between its store and its look, membarrier(2) makes every running thread of
 * every registered process execute a full barrier (8.5 us, 0.5 us while the
 * other cores are idle). Where membarrier is refused, producers publish with a
 * sequentially consistent exchange; each side says in its introduction what it
 * can do.
 */
#ifndef AQ_BELL_H
#define AQ_BELL_H

#include <stdatomic.h>

#include "base.h"

enum {
	BELL_PAGE_BYTES = 4096,
};

struct bell_page {
	_Atomic uint32_t asleep; /* 1: ring; set by its owner only */
	/* The processor that its owner polls on, plus 1; 0: not said. */
	_Atomic uint32_t place;
	uint8_t pad[56];
};
STATIC_ASSERT(sizeof(struct bell_page) == 64, "layout of struct bell_page");

/* One's own bell. */
struct bell {
	struct bell_page *page;
	int page_fd;
	int event_fd;
	bool has_barrier; /* membarrier works here */
};

/* Somebody else's bell. */
struct bell_peer {
	struct bell_page *page; /* NULL: not known yet */
	int event_fd;
};

int bell_init(struct bell *b) MUST_CHECK;
void bell_release(struct bell *b);

/* Checks and maps what a peer sent; both descriptors stay the caller's on
 * failure. On success page_fd is closed, event_fd belongs to the bell. */
int bell_peer_init(struct bell_peer *p, int page_fd, int event_fd) MUST_CHECK;
void bell_peer_release(struct bell_peer *p);

/* Wakes unconditionally. */
void bell_kick(int event_fd);
/* Empties one's own eventfd. */
void bell_drain(struct bell *b);

/* Second half of B0. True: the peer slept and was woken. */
bool bell_ring_slow(struct bell_peer *p);

static inline bool bell_ring(struct bell_peer *p)
{
	/* The compiler must not move the load above the record's store; the
	 * processor may, and B1's barrier repairs that. */
	atomic_signal_fence(memory_order_seq_cst);
	if (LIKELY(atomic_load_explicit(&p->page->asleep,
					memory_order_relaxed) != 1))
		return false;
	return bell_ring_slow(p);
}

/* First half of B1. The caller looks into its rings afterwards. Without
 * `barrier` a frame published in the same instant may be missed; only for a
 * caller that looks again soon by itself. */
void bell_sleep(struct bell *b, bool barrier);

static inline bool bell_is_asleep(const struct bell *b)
{
	return atomic_load_explicit(&b->page->asleep, memory_order_relaxed) ==
	       1;
}

/* The owner polls on this processor. */
static inline void bell_set_place(struct bell *b, uint32_t place)
{
	/* Peers have the line in their caches: no store without news. */
	if (atomic_load_explicit(&b->page->place, memory_order_relaxed) !=
	    place)
		atomic_store_explicit(&b->page->place, place,
				      memory_order_relaxed);
}

/* Whether the peer polls on this processor, as far as is known. */
static inline bool bell_is_at(const struct bell_peer *p, uint32_t place)
{
	return p->page &&
	       atomic_load_explicit(&p->page->place, memory_order_relaxed) ==
		       place &&
	       atomic_load_explicit(&p->page->asleep, memory_order_relaxed) !=
		       1;
}

/* Somebody polls again. */
static inline void bell_wake(struct bell *b)
{
	atomic_store_explicit(&b->page->asleep, 0, memory_order_relaxed);
}

#endif
