/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who moves the frames, and when. The numbers behind it: waking a thread on
 * another core costs the waker 11 us and happens 30 us later, a turn of polling
 * 0.1 us, a sched_yield 0.2 us alone and a scheduler slice (4 ms) beside a
 * thread that spins.
 *
 *  - An application thread that waits for completions moves the frames itself
 *    (nic_thread_drive). After a few drives it takes the bell over: peers need
 *    not wake anybody, and the NIC thread only looks every millisecond whether
 *    the application still drives.
 *  - Otherwise the NIC thread polls, yielding between turns. When nothing came
 *    for some hundred turns, or yielding turns out to cost slices, it sleeps,
 *    says so on the bell, and is woken by the next frame.
 *  - An application that drives now and then but also waits on memory or
 *    computes is found out when frames lie there unread: a peer nudges, or the
 *    NIC thread's look finds them. Then the host is `eager`: the NIC thread
 *    polls, and each leave() gives the bell back to it at once. That costs a
 *    driver dearly that was only kept from its core for a while, so it ends
 *    when the application has driven without a pause for a time of probation;
 *    the time doubles when it is found out again soon.
 *  - Fewer cores than pollers: a NIC thread that finds itself on the core of
 *    the thread that drives works off what is there and sleeps, and whoever
 *    waits for a peer that polls on its own core (bell.h) yields at once.
 *  - A wait of LONG_WAIT_NS says that the peer has no core to answer on, and a
 *    yield does not give it ours: that is for threads of this core only. Then
 *    drivers doze, too.
 *  - Strangers on the core make a yield cost one of their slices, 3 ms since
 *    Linux 6.18 whatever their priority: then the NIC thread and drivers doze
 *    until the peer's next frame (doze.h), or, where they cannot, the NIC
 *    thread sleeps and drivers nap (relax.h).
 */
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/relax.h"
#include "base/thread.h"
#include "cable.h"
#include "os_priv.h"
#include "slice.h"

enum {
	EVENT_MAX = 64,
	DRIVES_TO_TAKE = 4,   /* then the application has the bell */
	DRIVES_PER_LOOK = 16, /* at the clock */
	DRIVES_PER_SOCKETS = 256,
	CROWDED_IDLES = 64, /* empty turns before the sleep, then: some us */
	EMPTIES_PER_NUDGE = 64,
	EMPTIES_TO_YIELD = 400, /* some 6 us: longer than a round trip */
	/* Who shall answer needs this core; or there are two of them, a switch
	 * and a peer. */
	EMPTIES_TO_YIELD_SHARED = 4,
	EMPTIES_TO_NAP = 4000, /* some 60 us */
	IDLES_PER_NUDGE = 256,
	HELD_MESSAGES = 8, /* that an acknowledgement is held back for */
	HELD_TURNS = 64,   /* and for how long: some 3 us */
};

/*
 * Between two yields of a polling NIC thread. A yield costs 0.2 us even when
 * nobody else wants the core, and a frame that comes meanwhile waits for it.
 */
#define YIELD_EVERY_NS 2000ull
/* While walks are under way, whose memory comes while others run: a yield, a
 * system call, takes as long as one of them. Who waits for this core has
 * others' work before its own. */
#define WALKS_YIELD_NS 100000ull
/* After traffic on a socket no yield at all: an answer that comes meanwhile
 * must not wait for one. */
#define NET_FREE_NS 10000ull

/* These bound what a lost wake-up costs. A driver may poll more than the NIC,
 * so it dozes no longer than a nap would take. */
#define DRIVER_DOZE_NS 80000ull
#define DOZE_NS	       500000ull
/* Waking a peer up that sleeps on a free core takes some 65 us at most. */
#define LONG_WAIT_NS	 100000ull
#define DOZES_MIN_NS	 20000000ull /* after such a wait: no yields */
#define DOZES_MAX_NS	 1000000000ull
#define DOZY_NS		 2000000ull /* after traffic; then it sleeps */
#define EAGER_NS	 1000000000ull
#define PROBATION_MIN_NS 20000ull
#define PROBATION_MAX_NS 100000000ull
#define DRIVER_GONE_NS	 2000000ull
#define DRIVE_PAUSE_NS	 10000ull /* longer: it does something else */
#define CROWDED_MIN_NS	 50000000ull
#define CROWDED_MAX_NS	 1000000000ull
#define LATE_OK_NS	 10000000ull /* for timers, when nobody polls */

/* ---- one turn ----------------------------------------------------------- */

/* Acknowledgements that nobody waits for leave together, behind what is sent
 * anyway, or when there is nothing else to do. */
static void release_acks(struct os_host *h, uint32_t held, bool again)
{
	struct nic_thread *t = &h->nic_thread;

	if (again && held < HELD_MESSAGES && ++t->held_turns < HELD_TURNS &&
	    !host_tx_pending(h))
		return;
	t->held_turns = 0;
	nic_release_acks(h->base.nic);
}

/* Moves a batch, runs timers if told the time. Returns frames received.
 * `again`: there will soon be another turn. */
HOT static unsigned turn(struct os_host *h, unsigned budget, uint64_t now_ns,
			 bool again)
{
	struct nic *nic = h->base.nic;
	uint32_t held = nic_held_acks(nic);
	bool ticked = false;
	unsigned n;

	h->in_turn = true;
	if (held)
		release_acks(h, held, again);
	nic_hold_acks(nic, again);
	host_tx_flush(h);
	n = host_poll(h, budget);
	/* What came must be seen before a timer says that nothing came. */
	if (now_ns && n < budget && now_ns >= nic_next_deadline_ns(nic)) {
		nic_tick(nic);
		ticked = true;
	}
	/* A post may have met a full path since; datagrams get no answer that
	 * would bring us here. */
	if (n || ticked || nic_has_ready(nic))
		(void)nic_flush(nic); /* what is left stays ready */
	h->in_turn = false;
	if (UNLIKELY(h->has_woken))
		cable_settle(h);
	bell_turn(&h->bell);
	return n;
}

void nic_thread_kick(struct os_host *h)
{
	static const uint64_t one = 1;
	/* It can only fail because the counter is full: awake already. */
	ssize_t n = write(h->nic_thread.kick_fd, &one, sizeof(one));

	(void)n;
}

/* What kicked it was heard. */
static void nic_thread_drain(struct os_host *h)
{
	uint64_t count;
	ssize_t n = read(h->nic_thread.kick_fd, &count, sizeof(count));

	(void)n; /* nothing in it is fine */
}

/* ---- sockets ------------------------------------------------------------ */

/* Connections, introductions, messages; the lock is held. Returns whether this
 * process kicked its NIC thread: it stays so, for the NIC thread to hear.
 * Cables that ended are left for the NIC thread to reap: it may hold events
 * that point to them. */
static bool handle_events(struct os_host *h, const struct epoll_event *ev,
			  int count)
{
	bool kicked = false;

	lock_assert_held(&h->base.lock);
	for (int i = 0; i < count; i++) {
		if (ev[i].data.ptr == &h->nic_thread) {
			kicked = true;
		} else if (ev[i].data.ptr == &h->listen_fd) {
			cable_accept_all(h);
		} else if (host_event(h, ev[i].data.ptr)) {
			continue;
		} else {
			cable_event(ev[i].data.ptr);
		}
	}
	return kicked;
}

/* ---- the application's part --------------------------------------------- */

/* The NIC thread sleeps and its bell is armed, but the application polls:
 * disarm it. The NIC thread must not sleep long beside an application that may
 * stop. */
static void take_bell_now(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;

	bell_wake(&h->bell);
	host_arm(h, false);
	t->taken = true;
	if (t->wake_ns > host_now(h) + 2 * OS_TICK_NS)
		nic_thread_kick(h);
}

static void take_bell(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;
	bool eager = atomic_load_explicit(&t->eager, memory_order_relaxed);

	if (++t->drives >= DRIVES_TO_TAKE || eager)
		take_bell_now(h);
}

/*
 * A thread that drives looks at the sockets too. It may never let the NIC
 * thread run: with a real-time priority on the NIC thread's core it would wait
 * for a cable or a mapping that only the NIC thread could finish.
 */
static COLD void drive_sockets(struct os_host *h)
{
	struct epoll_event ev[EVENT_MAX];
	uint64_t now_ns = host_now(h);
	int n;

	if (now_ns < h->nic_thread.drive_sockets_ns)
		return;
	h->nic_thread.drive_sockets_ns = now_ns + OS_SOCKET_NS;
	n = epoll_wait(h->epoll_fd, ev, EVENT_MAX, 0);
	if (n <= 0)
		return;
	(void)handle_events(h, ev, n);
	/* The ring that was heard here was meant for the NIC thread. */
	if (h->nic_thread.rung && h->nic_thread.sleeping)
		nic_thread_kick(h);
}

/*
 * A program that polls in vain may be what keeps its peer from running: two
 * pollers on one core cost each other a slice per message, so it yields. Among
 * strangers, who make a yield cost their slices, it naps; but not before the
 * time that a peer on a free core takes to wake up and answer.
 */
static void rest(uint32_t empties)
{
	if (empties >= EMPTIES_TO_NAP || !relax_is_crowded())
		relax_briefly();
}

/*
 * Sleeps until a peer sends, at most for this long; the lock is held and is
 * dropped. False: that is not possible now, and the caller looks again, or
 * rests otherwise.
 */
static bool doze(struct os_host *h, uint64_t now_ns, uint64_t limit_ns)
{
	struct nic *nic = h->base.nic;
	uint64_t due = nic_next_deadline_ns(nic);
	struct doze_word words[DOZE_WORDS_MAX];
	unsigned count = 0;
	bool dozed;

	nic_release_acks(nic);
	host_tx_flush(h);
	if (due > now_ns && !nic_has_ready(nic) && !nic_has_chains(nic) &&
	    !nic_has_walks(nic)) {
		host_nudge(h, now_ns);
		bell_doze_begin(&h->bell);
		count = host_doze_words(h, words);
		if (!count)
			bell_doze_end(&h->bell);
		else
			h->stats->dozes++;
	}
	lock_drop(&h->base.lock);
	if (!count)
		return false;
	dozed = doze_wait(words, count, u64_min(due - now_ns, limit_ns));
	bell_doze_end(&h->bell);
	return dozed;
}

/* The application drives, and was not found to stop in between. */
static bool is_steady(const struct nic_thread *t)
{
	return t->taken &&
	       !atomic_load_explicit(&t->eager, memory_order_relaxed);
}

/* Whether a driver that is tired should sleep instead of yielding; the lock is
 * held. */
static bool wants_doze(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;
	uint64_t now_ns;
	bool again;

	/* Without anything outstanding it may wait for something else. */
	if (!nic_outstanding(h->base.nic)) {
		t->waits_ns = 0;
		return false;
	}
	if (relax_is_crowded())
		return true;
	/* There it cannot doze, and answers may take that long. */
	if (h->uplink ||
	    atomic_load_explicit(&h->has_net, memory_order_relaxed))
		return false;
	now_ns = host_now(h);
	if (now_ns < t->dozes_until_ns)
		return true;
	if (!t->waits_ns)
		t->waits_ns = now_ns;
	if (now_ns - t->waits_ns < LONG_WAIT_NS)
		return false;
	/* Longer each time it happens again soon. */
	again = now_ns < t->dozes_until_ns + 2 * t->dozes_span_ns;
	t->dozes_span_ns = again ? u64_min(4 * t->dozes_span_ns, DOZES_MAX_NS)
				 : DOZES_MIN_NS;
	t->dozes_until_ns = now_ns + t->dozes_span_ns;
	t->waits_ns = 0;
	return true;
}

HOT void nic_thread_drive(struct nic_host *host)
{
	struct os_host *h = host_of(host);
	struct nic_thread *t = &h->nic_thread;
	uint64_t now_ns = 0;
	uint32_t empties;
	uint32_t limit;
	bool tired;

	if (!lock_try(&host->lock)) {
		relax_briefly(); /* the holder may wait for this core */
		return;
	}
	if (UNLIKELY(++t->drive_seq % DRIVES_PER_LOOK == 0)) {
		now_ns = host_now(h);
		t->drive_ns = now_ns;
		t->drive_cpu = sched_getcpu();
		t->beside = host_is_beside_peer(h);
	}
	if (turn(h, OS_DRIVE_BATCH, now_ns, is_steady(t))) {
		if (t->empties < EMPTIES_TO_YIELD)
			reach_note_prompt(&h->reach);
		t->empties = 0;
		t->waits_ns = 0;
	} else if (++t->empties % EMPTIES_PER_NUDGE == 0) {
		host_nudge(h, host_now(h));
	}
	if (UNLIKELY(t->sleeping && bell_is_asleep(&h->bell)))
		take_bell(h);
	if (UNLIKELY(t->drive_seq % DRIVES_PER_SOCKETS == 0))
		drive_sockets(h);
	empties = t->empties;
	limit = h->uplink || t->beside ? EMPTIES_TO_YIELD_SHARED
				       : EMPTIES_TO_YIELD;
	tired = empties > limit;
	/* Beside the peer, waiting gives it the core, which is what it needs.
	 */
	if (UNLIKELY(empties == limit + 1) && !t->beside &&
	    nic_outstanding(h->base.nic))
		reach_note_late(h, host_now(h));
	if (tired && wants_doze(h)) {
		if (doze(h, host_now(h), DRIVER_DOZE_NS))
			return;
	} else {
		lock_drop(&host->lock);
	}
	if (tired)
		rest(empties);
}

/* A timer set since the NIC thread went to sleep may be due before it wakes. */
static void kick_if_late(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;
	uint64_t due = nic_next_deadline_ns(h->base.nic);

	if (t->sleeping && nic_has_ready(h->base.nic))
		due = 0;
	if (t->sleeping && due < t->wake_ns && t->wake_ns - due > LATE_OK_NS)
		nic_thread_kick(h);
}

/* From here on the NIC thread hears what comes. `really`: no thread will drive
 * soon. */
static void give_bell(struct os_host *h, bool really)
{
	struct nic_thread *t = &h->nic_thread;

	lock_take(&h->base.lock);
	if (really) {
		t->drive_seen = t->drive_seq;
		t->drive_ns = 0;
	}
	nic_release_acks(h->base.nic);
	host_tx_flush(h);
	if (t->sleeping && t->taken) {
		t->taken = false;
		/* Without the barrier: a frame that crosses this store waits
		 * for the next look, at most a millisecond. */
		bell_sleep(&h->bell, false);
		host_arm(h, true);
		if (host_ready(h))
			nic_thread_kick(h);
	}
	kick_if_late(h);
	lock_drop(&h->base.lock);
}

void nic_thread_leave(struct nic_host *host)
{
	struct os_host *h = host_of(host);
	struct nic_thread *t = &h->nic_thread;

	/* Nothing outstanding: perhaps a program that does one READ after the
	 * other, which comes through here each time and must not pay. If it
	 * really goes, peers nudge and the NIC thread looks within a
	 * millisecond; that makes the host eager. */
	if (atomic_load_explicit(&t->eager, memory_order_relaxed) ||
	    nic_outstanding(h->base.nic) || nic_held_acks(h->base.nic))
		give_bell(h, false);
}

/* Whoever is woken by the frame itself, and not by the NIC thread, which has to
 * be woken before, has it a wake-up sooner. */
bool nic_thread_doze_driver(struct nic_host *host, uint64_t max_ns)
{
	struct os_host *h = host_of(host);
	struct nic_thread *t = &h->nic_thread;
	uint64_t now_ns;

	if (!max_ns) {
		give_bell(h, true);
		return true;
	}
	if (!lock_try(&host->lock))
		return false;
	now_ns = host_now(h);
	t->drive_seq++;
	t->drive_ns = now_ns;
	t->drive_cpu = sched_getcpu();
	if (turn(h, OS_DRIVE_BATCH, now_ns, false)) {
		t->empties = 0;
		lock_drop(&host->lock);
		return true;
	}
	if (t->sleeping && bell_is_asleep(&h->bell))
		take_bell_now(h);
	return doze(h, now_ns, max_ns);
}

/* ---- the NIC thread ----------------------------------------------------- */

/* A look at the sockets while polling. */
static void look_at_sockets(struct os_host *h, uint64_t now_ns)
{
	struct epoll_event ev[EVENT_MAX];
	int n;

	h->nic_thread.sockets_ns = now_ns + OS_SOCKET_NS;
	n = epoll_wait(h->epoll_fd, ev, EVENT_MAX, 0);
	if (n <= 0)
		return;
	lock_take(&h->base.lock);
	if (handle_events(h, ev, n))
		nic_thread_drain(h);
	cable_reap(h);
	lock_drop(&h->base.lock);
}

static void set_eager(struct nic_thread *t, uint64_t now_ns)
{
	/* Found out again within a second of the last time. */
	if (now_ns < t->eager_until_ns)
		t->probation_ns =
			u64_min(2 * t->probation_ns, PROBATION_MAX_NS);
	else
		t->probation_ns = PROBATION_MIN_NS;
	t->eager_until_ns = now_ns + EAGER_NS;
	t->driving_since_ns = t->drive_seen_ns = now_ns;
	atomic_store_explicit(&t->eager, true, memory_order_relaxed);
}

/* Whether the application has driven long enough without a pause. */
static bool is_reformed(struct nic_thread *t, uint64_t now_ns)
{
	if (t->drive_seq != t->drive_seen) {
		t->drive_seen = t->drive_seq;
		t->drive_seen_ns = now_ns;
	} else if (now_ns - t->drive_seen_ns > DRIVE_PAUSE_NS) {
		t->driving_since_ns = t->drive_seen_ns = now_ns;
	}
	return t->drive_seen_ns - t->driving_since_ns > t->probation_ns;
}

/*
 * Whether the application cannot drive because we have its core: then there is
 * no other core free, or we would have been woken there. Not driving is no
 * fault then, and polling would only keep it from running.
 */
static bool has_drivers_core(const struct nic_thread *t, uint64_t now_ns)
{
	return now_ns - t->drive_ns < DRIVER_GONE_NS &&
	       t->drive_cpu == sched_getcpu();
}

/* Decides how to sleep; false: there is something to do after all. The lock is
 * held. */
static bool prepare_sleep(struct os_host *h, uint64_t now_ns)
{
	struct nic_thread *t = &h->nic_thread;
	bool driven =
		t->drive_seq != t->drive_seen || has_drivers_core(t, now_ns);
	bool eager = atomic_load_explicit(&t->eager, memory_order_relaxed);
	uint64_t due = nic_next_deadline_ns(h->base.nic);
	bool brief = driven || eager || nic_has_ready(h->base.nic);
	uint64_t limit = brief ? OS_TICK_NS : OS_SLEEP_MAX_NS;

	t->drive_seen = t->drive_seq;
	nic_release_acks(h->base.nic);
	host_tx_flush(h);
	if (due <= now_ns || nic_has_chains(h->base.nic) ||
	    nic_has_walks(h->base.nic))
		return false;
	if (!driven || eager) {
		/* BELL-1. A thread that waits on memory here may have to
		 * wait for us to leave its core: no barrier for a short
		 * sleep. */
		bell_sleep(&h->bell, !brief);
		host_arm(h, true);
		if (host_ready(h)) {
			bell_wake(&h->bell);
			return false;
		}
	}
	host_nudge(h, now_ns);
	t->taken = driven && !eager;
	if (t->taken)
		host_arm(h, false);
	t->drives = 0;
	t->rung = false;
	t->wake_ns = u64_min(due, now_ns + limit);
	t->sleeping = true;
	h->stats->engine_sleeps++;
	return true;
}

/* Returns whether there was a reason to wake up, other than the time. */
static bool nic_thread_sleep(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;
	struct epoll_event ev[EVENT_MAX];
	struct timespec timeout;
	uint64_t now_ns, wait_ns, seq;
	int n;

	lock_take(&h->base.lock);
	now_ns = host_now(h);
	if (!prepare_sleep(h, now_ns)) {
		lock_drop(&h->base.lock);
		return true;
	}
	wait_ns = t->wake_ns - now_ns;
	seq = t->drive_seq;
	lock_drop(&h->base.lock);

	timeout.tv_sec = (time_t)(wait_ns / 1000000000ull);
	timeout.tv_nsec = (long)(wait_ns % 1000000000ull);
	slice_set(&t->has_short_slice, true);
	n = epoll_pwait2(h->epoll_fd, ev, EVENT_MAX, &timeout, NULL);

	lock_take(&h->base.lock);
	t->sleeping = false;
	bell_wake(&h->bell);
	host_arm(h, false);
	now_ns = host_now(h);
	t->sockets_ns = now_ns + OS_SOCKET_NS;
	if (handle_events(h, ev, n > 0 ? n : 0))
		nic_thread_drain(h);
	cable_reap(h);
	/* The application had the bell, yet frames lie here. */
	if (t->taken && (t->rung || t->drive_seq == seq) &&
	    !has_drivers_core(t, now_ns) &&
	    (host_ready(h) || host_tx_pending(h)))
		set_eager(t, now_ns);
	lock_drop(&h->base.lock);
	return n > 0;
}

/* Lets others run. Finds out when they want the core more than we do. */
static void give_way(struct nic_thread *t, const struct os_clock *clock,
		     uint64_t now_ns)
{
	uint64_t after_ns;
	bool again;

	sched_yield();
	after_ns = os_clock_ns(clock);
	if (LIKELY(after_ns - now_ns < OS_YIELD_LONG_NS))
		return;
	again = now_ns < t->crowded_until_ns + 2 * t->crowded_span_ns;
	/* Longer each time it happens again soon. Now and then it is the host's
	 * doing, which takes guests' cores away for as long: that is soon over,
	 * and it costs little to doze meanwhile. */
	t->crowded_span_ns =
		again ? u64_min(2 * t->crowded_span_ns, CROWDED_MAX_NS)
		      : CROWDED_MIN_NS;
	t->crowded_until_ns = after_ns + t->crowded_span_ns;
}

/* Whether the NIC thread should stop polling: an application drives, and it is
 * not one that leaves frames unread. */
static bool is_driven(struct os_host *h, uint64_t now_ns)
{
	struct nic_thread *t = &h->nic_thread;

	if (!atomic_load_explicit(&t->eager, memory_order_relaxed))
		return t->drive_seq != t->drive_seen;
	if (now_ns < t->eager_until_ns && !is_reformed(t, now_ns))
		return false;
	atomic_store_explicit(&t->eager, false, memory_order_relaxed);
	t->drive_seen = t->drive_seq - 1; /* it drives */
	return true;
}

static bool wants_yield(const struct os_host *h, uint64_t now_ns,
			uint64_t busy_ns, uint64_t yield_ns, bool walks)
{
	if (now_ns - yield_ns < (walks ? WALKS_YIELD_NS : YIELD_EVERY_NS))
		return false;
	return now_ns - busy_ns >= NET_FREE_NS ||
	       !atomic_load_explicit(&h->has_net, memory_order_relaxed);
}

/* On a crowded core, while there is traffic: not to be woken through a socket
 * for each frame. What else there is to hear of is heard afterwards. */
static bool nic_thread_doze(struct os_host *h)
{
	struct nic_thread *t = &h->nic_thread;

	if (!lock_try(&h->base.lock))
		return false;
	slice_set(&t->has_short_slice, true);
	return doze(h, host_now(h), DOZE_NS);
}

static void *nic_thread_main(void *arg)
{
	struct os_host *h = arg;
	struct nic_thread *t = &h->nic_thread;
	uint64_t patience_ns = h->cfg.idle_turns * OS_IDLE_TURN_NS;
	uint64_t busy_ns = host_now(h); /* when there was something to do */
	uint64_t yield_ns = 0;
	uint32_t idle = 0;  /* turns since */
	uint32_t turns = 0; /* since the last look at the sockets */

	/* By itself: another's name is a file, which a confined process may
	 * not write. */
	(void)pthread_setname_np(pthread_self(), "aq-nic");
	lock_take(&h->base.lock);
	reach_life_begin(h);
	lock_drop(&h->base.lock);
	/* STOP-1: what was done before the NIC thread was told to end is
	 * seen. */
	while (!atomic_load_explicit(&t->stop, memory_order_acquire)) {
		uint64_t now_ns = host_now(h);
		bool crowded = now_ns < t->crowded_until_ns;
		bool driven = false, guest = false, beside = false;
		bool walks = false;

		if (lock_try(&h->base.lock)) {
			idle = turn(h, OS_THREAD_BATCH, now_ns, true)
				       ? 0
				       : idle + 1;
			/* Walks are work, whether frames come or not. */
			walks = nic_has_walks(h->base.nic);
			if (walks)
				idle = 0;
			driven = is_driven(h, now_ns);
			guest = has_drivers_core(t, now_ns);
			beside = idle && host_is_beside_peer(h);
			if (idle && idle % IDLES_PER_NUDGE == 0)
				host_nudge(h, now_ns);
			lock_drop(&h->base.lock);
		} else {
			idle++; /* somebody else does the work */
		}
		if (!idle) {
			busy_ns = now_ns;
			if (!crowded)
				slice_set(&t->has_short_slice, false);
		}
		if (crowded && idle > CROWDED_IDLES && !driven && !guest &&
		    now_ns - busy_ns < DOZY_NS && nic_thread_doze(h)) {
			turns = OS_SOCKET_TURNS;
			idle = 0;
			continue;
		}
		if (guest ||
		    (idle && (driven || now_ns - busy_ns > patience_ns ||
			      (crowded && idle > CROWDED_IDLES)))) {
			/* One turn, for timers, and back to sleep: a process
			 * without traffic must cost nothing. */
			busy_ns = nic_thread_sleep(h) ? host_now(h) : 0;
			idle = 0;
			continue;
		}
		if (++turns >= OS_SOCKET_TURNS && now_ns >= t->sockets_ns) {
			look_at_sockets(h, now_ns);
			turns = 0;
		}
		if (!crowded && (beside || wants_yield(h, now_ns, busy_ns,
						       yield_ns, walks))) {
			give_way(t, &h->clock, now_ns);
			yield_ns = now_ns;
		}
	}
	reach_life_end(h);
	return NULL;
}

int nic_thread_start(struct os_host *h)
{
	return thread_start(&h->nic_thread.thread, nic_thread_main, h);
}

void nic_thread_stop(struct os_host *h)
{
	/* STOP-1, with nic_thread_main. */
	atomic_store_explicit(&h->nic_thread.stop, true, memory_order_release);
	nic_thread_kick(h);
	pthread_join(h->nic_thread.thread, NULL);
}
