/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bell: how a NIC that sleeps is woken, and how one that does not is left
 * alone. Every process has one bell page, which it alone can write and its
 * peers map read-only, with the number of its sleeps: odd while it sleeps. A
 * producer looks at it after each frame; only when it is odd, and the producer
 * did not ring for this very sleep yet, does it pay for a message on the
 * cable's socket, which the sleeper's epoll set watches.
 *
 * The page also counts its owner's turns, so that a peer which waits for an
 * answer can tell an owner that does not run (a busy machine, SIGSTOP) from one
 * that runs and does not answer.
 *
 * Nothing is lost because of the pair BELL-1:
 *  The producer publishes a record, then reads `sleeps`.
 *  The sleeper makes `sleeps` odd, then looks into its rings again.
 * At least one of the two must see the other's store. A locked instruction in
 * the producer would guarantee it, but costs 35 ns for every frame, because it
 * waits for the record's cache line. Sleeping is rare, so the sleeper pays
 * instead: between its store and its look, membarrier(2) makes every running
 * thread of every registered process execute a full barrier (8.5 us, 0.5 us
 * while the other cores are idle). Where membarrier is refused, producers
 * publish with a sequentially consistent exchange; each side says in its
 * introduction what it can do.
 *
 * A producer that remembers the sleep it rang for rings again for the next one,
 * whose number is another, so ringing once per sleep loses nothing either.
 *
 * Threads of the owner may doze instead (doze.h). The page has their number and
 * how many dozes there were, by which a producer rouses once for each.
 *
 * Trust: a NIC writes to no descriptor and no memory that a peer chose. The
 * send never waits and raises no signal. If the peer's queue is full, its
 * socket is readable: the peer is awake, or does not want to be woken.
 */
#ifndef AQ_BELL_H
#define AQ_BELL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

enum {
	BELL_PAGE_BYTES = 4096,
	/* After this many turns an owner that is awake has answered what it
	 * read, because it holds acknowledgements back for some turns
	 * (HELD_TURNS in nic_thread.c). An owner that sleeps holds nothing
	 * back; the first of its turns may have been under way already. */
	BELL_TURNS_TO_ANSWER = 128,
	BELL_TURNS_TO_SLEEP = 2,
	BELL_LIFE_DIED = 1 << 30, /* FUTEX_OWNER_DIED */
};

struct bell_page {
	_Atomic uint64_t sleeps; /* odd: asleep */
	/* The processor that its owner polls on, plus 1; 0: not said. */
	_Atomic uint32_t place;
	uint8_t pad[4];
	/* Lower half: threads that doze; upper half: dozes so far. */
	_Atomic uint64_t dozes;
	uint8_t pad1[40];
	/* Turns of moving frames so far, plus 1. On a line of its own: peers
	 * read the one above after each frame and this one hardly ever. */
	_Atomic uint64_t turns;
	uint8_t pad2[56];
	/* Reaching (reach.h): the epoch of what the owner gives away, never 0,
	 * and a mutex that its NIC thread holds as long as it lives. */
	_Atomic uint32_t epoch;
	uint8_t pad3[4];
	pthread_mutex_t life;
	uint8_t pad4[56 - sizeof(pthread_mutex_t)];
	/* Odd while a thread of the owner reaches. */
	_Atomic uint64_t reaches;
	uint8_t pad5[56];
};
STATIC_ASSERT(sizeof(struct bell_page) == 256, "layout of struct bell_page");

/* A process's own bell. Its writers exclude each other: they hold the host's
 * lock, or there is only one thread. */
struct bell {
	struct bell_page *page;
	int page_fd;	  /* read-only, for peers */
	bool has_barrier; /* membarrier works here */
	bool has_life;	  /* the page says whether the NIC thread lives */
};

/* A peer's bell. */
struct bell_peer {
	const struct bell_page *page; /* NULL: not known yet */
	uint64_t rang_for;	      /* the last sleep that was rung for */
	uint32_t roused_for;	      /* the last doze that was ended */
	bool is_rung;		      /* since bell_settle */
	bool is_owed;		      /* one more ring, in bell_settle */
};

int bell_init(struct bell *b) MUST_CHECK;
void bell_release(struct bell *b);

/* Checks and maps what a peer sent; page_fd stays the caller's. */
int bell_peer_init(struct bell_peer *p, int page_fd) MUST_CHECK;
void bell_peer_release(struct bell_peer *p);

/* Wakes the peer at the other end of a cable's socket unconditionally. */
void bell_send(int sock);

/* The producer's second half of BELL-1: whether there is a sleep to ring for;
 * it then counts as rung for. */
static inline bool bell_must_ring(struct bell_peer *p)
{
	uint64_t sleeps;

	/* BELL-1: the compiler must not move the load above the record's store;
	 * the processor may, and the sleeper's barrier repairs that. */
	atomic_signal_fence(memory_order_seq_cst);
	sleeps = atomic_load_explicit(&p->page->sleeps, memory_order_relaxed);
	if (LIKELY(!(sleeps & 1)) || sleeps == p->rang_for)
		return false;
	p->rang_for = sleeps;
	return true;
}

/* Whether somebody dozes who was not roused yet; it then counts as roused. The
 * caller has looked with bell_must_ring before, which keeps the compiler from
 * moving this load above the record's store (BELL-2). */
static inline bool bell_must_rouse(struct bell_peer *p)
{
	uint64_t dozes =
		atomic_load_explicit(&p->page->dozes, memory_order_relaxed);

	if (LIKELY((uint32_t)dozes == 0) || dozes >> 32 == p->roused_for)
		return false;
	p->roused_for = (uint32_t)(dozes >> 32);
	return true;
}

/* The same, and rings. True: the peer slept and was woken. */
static inline bool bell_ring(struct bell_peer *p, int sock)
{
	if (LIKELY(!bell_must_ring(p)))
		return false;
	bell_send(sock);
	return true;
}

/*
 * For a sleep that there is to ring for, the first time until bell_settle;
 * false: it is put off to that. What a peer's page says is the peer's to
 * choose: one that says that it has slept again at every look must not cost a
 * system call for every frame.
 */
static inline bool bell_ring_once(struct bell_peer *p, int sock)
{
	if (p->is_rung) {
		p->is_owed = true;
		return false;
	}
	p->is_rung = true;
	bell_send(sock);
	return true;
}

/* Rings if that was put off and the peer still sleeps; true: it did. */
static inline bool bell_settle(struct bell_peer *p, int sock)
{
	bool is_owed = p->is_owed;

	p->is_rung = p->is_owed = false;
	if (!is_owed)
		return false;
	p->rang_for = 0; /* it was not */
	return bell_ring(p, sock);
}

/* The sleeper's first half of BELL-1. The caller looks into its rings
 * afterwards. Without `barrier` a frame published in the same instant may be
 * missed; only for a caller that looks again soon by itself. */
void bell_sleep(struct bell *b, bool barrier);

/* A thread of the owner is about to doze, looks into its rings afterwards, and
 * has dozed. Several may at once; no lock is needed. */
static inline void bell_doze_begin(struct bell *b)
{
	/* BELL-2, with bell_must_rouse, which looks after the record's store:
	 * that store is seen here, or the doze is seen there. */
	atomic_fetch_add_explicit(&b->page->dozes, (1ull << 32) + 1,
				  memory_order_seq_cst);
}

static inline void bell_doze_end(struct bell *b)
{
	atomic_fetch_sub_explicit(&b->page->dozes, 1, memory_order_relaxed);
}

static inline bool bell_page_is_asleep(const struct bell_page *page)
{
	return atomic_load_explicit(&page->sleeps, memory_order_relaxed) & 1;
}

static inline bool bell_is_asleep(const struct bell *b)
{
	return bell_page_is_asleep(b->page);
}

/* The owner polls on this processor. */
static inline void bell_set_place(struct bell *b, uint32_t place)
{
	/* Peers cache the line, so an unchanged value is not stored. */
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
	       !bell_page_is_asleep(p->page);
}

/* The owner has moved what there was to move. */
static inline void bell_turn(struct bell *b)
{
	uint64_t turns =
		atomic_load_explicit(&b->page->turns, memory_order_relaxed);

	atomic_store_explicit(&b->page->turns, turns + 1, memory_order_relaxed);
}

/* 0: not known. */
static inline uint64_t bell_peer_turns(const struct bell_peer *p)
{
	return p->page ? atomic_load_explicit(&p->page->turns,
					      memory_order_relaxed)
		       : 0;
}

/* Whether a peer had the time to answer what was sent when it had made this
 * many turns. A peer that has read everything and sleeps owes nothing. */
static inline bool bell_had_time(const struct bell_peer *p, uint64_t since,
				 bool has_read)
{
	uint64_t turns = bell_peer_turns(p) - since;

	if (bell_page_is_asleep(p->page))
		return has_read || turns >= BELL_TURNS_TO_SLEEP;
	return turns >= BELL_TURNS_TO_ANSWER;
}

/* The calling thread, the NIC thread, lives from now on; false: it cannot tell
 * peers. It must call bell_die before it returns. */
bool bell_live(struct bell *b);
void bell_die(struct bell *b);

/* The word that the kernel changes when the thread ends; 0: it did not begin.
 */
static inline const void *bell_page_life_word(const struct bell_page *page)
{
	return &page->life.__data.__lock;
}

static inline uint32_t bell_page_life(const struct bell_page *page)
{
	return atomic_load_explicit(
		(const _Atomic uint32_t *)bell_page_life_word(page),
		memory_order_relaxed);
}

static inline uint32_t bell_page_epoch(const struct bell_page *page)
{
	return atomic_load_explicit(&page->epoch, memory_order_relaxed);
}

/* Everything given away before ends; users that have begun are seen by
 * bell_page_reaches. */
static inline void bell_next_epoch(struct bell *b)
{
	/* REACH-1: the owner's first half. There is no epoch 0. */
	if (atomic_fetch_add_explicit(&b->page->epoch, 1,
				      memory_order_seq_cst) == UINT32_MAX)
		atomic_fetch_add_explicit(&b->page->epoch, 1,
					  memory_order_relaxed);
}

static inline uint64_t bell_page_reaches(const struct bell_page *page)
{
	/* REACH-1: the owner's second half: a user that saw the old epoch is
	 * seen; and what it has done is before what the owner does next. */
	return atomic_load_explicit(&page->reaches, memory_order_seq_cst);
}

static inline void bell_reach_begin(struct bell *b)
{
	uint64_t n =
		atomic_load_explicit(&b->page->reaches, memory_order_relaxed);

	/* REACH-1: the user's first half; the look at the epoch must not be
	 * before it. */
	atomic_exchange_explicit(&b->page->reaches, n + 1,
				 memory_order_seq_cst);
}

static inline void bell_reach_end(struct bell *b)
{
	uint64_t n =
		atomic_load_explicit(&b->page->reaches, memory_order_relaxed);

	/* REACH-1: who sees the end finds the memory as it was left. */
	atomic_store_explicit(&b->page->reaches, n + 1, memory_order_release);
}

/* A thread of the owner polls again. */
static inline void bell_wake(struct bell *b)
{
	uint64_t sleeps =
		atomic_load_explicit(&b->page->sleeps, memory_order_relaxed);

	if (sleeps & 1)
		atomic_store_explicit(&b->page->sleeps, sleeps + 1,
				      memory_order_relaxed);
}

#endif
