/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pager's objects. Two threads work on them, under one lock: the first
 * serves faults on the core where they happen, the reclaim thread takes pages
 * out on another, if one is free; else the first does that too. What is shared
 * with a process is its channel and the bytes of its own buffers (share.h).
 * Only the first makes and destroys spaces, so it may drop the lock and still
 * have them.
 *
 * page_table.h has a page's way out and back. A page that cannot leave, because
 * a device may write to it or the program locked it, is held: it stays
 * RESIDENT, is not counted against the limit, and is tried again now and then.
 *
 * Pages that the kernel does not move (it moves none that are read-only, and
 * none at all before Linux 6.8) are write-protected while they leave, copied
 * and dropped. The kernel's asynchronous protection with a scan for written
 * pages is not used, because a write between scan and drop would be lost. A
 * thread that writes to a protected page waits until the page is gone, and then
 * gets it back. Whether a page is dirty is told by its hash, so loading maps it
 * writable and no first write costs a fault.
 */
#ifndef AQ_RUN_PAGER_PRIV_H
#define AQ_RUN_PAGER_PRIV_H

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "far.h"
#include "overflow.h"
#include "page_table.h"
#include "pager_threads.h"
#include "place.h"
#include "policy.h"
#include "run.h"
#include "run_channel.h"
#include "run_limits.h"
#include "share.h"
#include "trend.h"

struct pager;
struct space;

/* ---- buffers ------------------------------------------------------------- */

enum wb_state {
	WB_FREE,
	WB_FILLING, /* an agent fills it */
	WB_HELD,    /* some pages are not stored */
	WB_STORING,
	WB_CLEAN, /* all are stored: may be taken for others */
};

struct wb_page {
	struct space *space; /* NULL: its space has ended */
	uint64_t page;
	bool is_dirty;
	struct run_hash hash;
};

struct wb_buffer {
	struct far_user user;
	enum wb_state state;
	struct share *share; /* where its bytes are; NULL: nowhere */
	unsigned live;	     /* pages with a space */
	struct wb_page page[RUN_BATCH_PAGES];
	/* Stores under way: their slots, and whose they are. `sent` of them
	 * have been started. */
	unsigned op_count, sent;
	uint32_t slot[RUN_BATCH_PAGES];
	uint8_t place[RUN_BATCH_PAGES];
	uint64_t is_new;   /* bit by place: its slot was empty */
	bool is_returning; /* HELD: no room for its dirty pages */
	struct page_op op[RUN_BATCH_PAGES];
};

struct writeback {
	struct wb_buffer *buffer;
	uint32_t count;
	uint32_t head;				    /* the oldest, taken next */
	struct wb_buffer *storing[RUN_STORING_MAX]; /* all that are STORING */
	unsigned storing_count;
	unsigned returning; /* buffers with is_returning */
};

/* ---- spaces -------------------------------------------------------------- */

/* A batch under way, as posted to the agent. */
struct leaving {
	uint32_t buffer;
	uint32_t count;
	uint32_t stretch_count;
	uint64_t guarded;	    /* bit i: page[i] is protected */
	uint64_t guarded_stretches; /* bit i: stretch[i] is */
	bool is_probe;		    /* of pages that were held */
	uint64_t page[RUN_BATCH_PAGES];
	struct run_stretch stretch[RUN_BATCH_PAGES];
};

/* Events of a space that are not handled yet: they are handled in order, when
 * no batch is under way. */
struct events {
	struct uffd_msg *msg;
	unsigned count, room;
};

/* One process's memory. */
struct space {
	struct space *next;
	int uffd;
	pid_t pid; /* 0: a child that did not say hello */
	uint64_t start;
	struct share *share;
	struct run_channel *channel; /* of it; NULL: nothing can leave */
	struct run_pages pages;
	struct events events;
	uint64_t resident_count; /* without held ones */
	uint64_t held_count;
	uint64_t kept_count;
	struct policy_space policy;
	uint64_t zero_next;
	unsigned zero_window;
	uint32_t posted, collected; /* batches */
	struct leaving leaving[RUN_BATCHES];
	struct trends trends;
	unsigned pid_place; /* in run_shared.pid; RUN_PIDS_MAX: none */
	int pidfd;	    /* -1: none, or it has ended */
	uint64_t stack;	    /* of its process's first thread */
	bool is_unwaited;   /* its agent takes too long to move pages */
	bool is_killed;	    /* by us, because its agent is gone */
	bool is_left;	    /* by its process: the agent is to end */
	bool is_dead;
	bool has_misrung; /* a false identity: it gets no channel */
	bool keeps_all;	  /* what is touched from now on is kept */
};

/* How a fault ends. */
enum fault_end {
	FAULT_MAPPED, /* the page is there, and its thread goes on */
	FAULT_WAITS,  /* it cannot be served yet */
	FAULT_OVER,   /* nothing to map, or the process is gone */
};

struct fault {
	struct space *space;
	uint64_t page;
	uint32_t tid;
	bool is_wp;
};

/* A process that is attaching. */
enum attach_state {
	ATTACH_NONE,
	ATTACH_SILENT, /* connected, without a hello */
	ATTACH_NEW,    /* has its share, makes its userfaultfd */
	ATTACH_FORKED, /* has its share, did not ring yet; no connection */
};

struct attachment {
	enum attach_state state;
	int fd;
	pid_t pid;
	uint64_t since_ns;
	struct share *share;
	uint32_t bell_page; /* ATTACH_FORKED: a shared secret */
};

/* The thread that takes pages out. */
struct reclaim_thread {
	pthread_t thread;
	bool is_started;
	_Atomic int ends;
	/* RUN-K1: a thread with work for the reclaim thread adds to it; the
	 * reclaim thread sleeps on it. */
	_Atomic uint32_t kicks;
	_Atomic uint32_t is_asleep;
	_Atomic pid_t tid;
};

/* The thread that makes lost copies anew. It has far.lock only. */
struct mender {
	pthread_t thread;
	bool is_started;
	_Atomic uint32_t ends; /* a futex */
};

enum {
	RUN_SCRATCH_BYTES = (RUN_PREFETCH_MAX + 1) * RUN_PAGE_BYTES,
};

struct pager {
	struct lock lock;
	struct reclaim_thread reclaim;
	struct mender mender;
	struct run_options options;
	struct run_shared *shared;
	struct run_stats *stats;
	struct far far;
	struct writeback writeback;
	uint8_t *scratch; /* what a fault loads */
	struct space *spaces;
	struct fault waiting[RUN_WAITING_MAX]; /* not served yet */
	unsigned waiting_count;
	struct attachment attachment[RUN_PENDING_HELLOS];
	bool is_attach_full; /* no room until an attachment has ended */
	const struct run_start *start;
	int epoll;
	int listen;
	struct policy policy;
	/* Pages that may be kept: half of those that may be here; the other
	 * half is for all other pages. */
	uint64_t keep_pages;
	uint64_t resident; /* pages, all spaces */
	uint64_t unplaced; /* resident pages without a slot */
	uint64_t held;	   /* resident pages that could not leave */
	uint64_t kept;	   /* pages that may not leave, resident or not */
	unsigned events;   /* not handled yet, all spaces */
	uint64_t touched;  /* pages, all spaces, wherever they are */
	uint64_t progress_ns;
	uint64_t sweep_ns;
	uint32_t follow_count;
	int cpu;	/* we are bound to; -1: none */
	cpu_set_t cpus; /* that we may use */
	struct pager_threads threads;
	uint64_t left_ns; /* when a process last left its space */
	unsigned sweeps;
	struct overflow overflow;
	bool has_complained; /* about lost pages */
	bool has_told_locked;
	bool has_failed_some; /* for want of room */
	bool has_said_full;
	uint64_t said_ns; /* when room was last logged */
	pid_t self;
	uint64_t near_ns; /* the next look at what is not far */
	bool is_stuck;	  /* waited for room in vain; no page left since */
};

static inline void count(_Atomic uint64_t *c, uint64_t n)
{
	/* One writer: the pager. */
	atomic_store_explicit(c,
			      atomic_load_explicit(c, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void show(_Atomic uint64_t *c, uint64_t value)
{
	atomic_store_explicit(c, value, memory_order_relaxed);
}

static inline void show_peak(_Atomic uint64_t *c, uint64_t value)
{
	if (atomic_load_explicit(c, memory_order_relaxed) < value)
		show(c, value);
}

static inline uint64_t run_space_addr(const struct space *s, uint64_t page)
{
	return s->start + (page << RUN_PAGE_SHIFT);
}

static inline bool run_space_is_leaving(const struct space *s)
{
	return s->posted != s->collected;
}

/* What the supervisor gives the pager. */
struct run_start {
	const struct run_options *options;
	struct run_shared *shared;
	struct run_place place;
	uint8_t token[RUN_TOKEN_BYTES];
	pid_t supervisor;
	int uffd_dev;  /* -1: none */
	bool can_move; /* the kernel moves pages, and may */
};

/* writeback.c */
int run_writeback_open(struct pager *p, uint32_t count) MUST_CHECK;
void run_writeback_close(struct pager *p);
/* The next buffer, empty, in the space's share; -EAGAIN: it is still being
 * stored. */
int run_writeback_take(struct pager *p, const struct space *s) MUST_CHECK;
bool run_writeback_is_ready(const struct pager *p);
/* No agent will fill it. */
void run_writeback_give_up(struct pager *p, uint32_t buffer);
/* The space ends: its buffers' bytes go, but for those on their way. */
void run_writeback_leave(struct pager *p, const struct space *s);
uint8_t *run_writeback_bytes(const struct pager *p, uint32_t buffer_page);
/* The agent has filled it: sorts pages, but those that failed, into zero, clean
 * and dirty. */
void run_writeback_filled(struct pager *p, struct space *s,
			  const struct leaving *l,
			  const struct run_hash hash_of[], uint64_t zero,
			  uint64_t failed);
/* The page went back, or is not needed any more. */
void run_writeback_forget(struct pager *p, uint32_t buffer_page);
/* Its space has it at another address. */
void run_writeback_moved(struct pager *p, uint32_t buffer_page, uint64_t page);
/* Starts a few stores of buffers that will be needed soon, for which it drops
 * the lock, and handles stores that have ended; false: nothing to do. */
bool run_writeback_store(struct pager *p);
/* Whether the oldest buffers wait for far memory. */
bool run_writeback_is_storing(const struct pager *p);
/* Gives pages that found no place back to their program; true: some went back.
 * Only the thread that reads events may call it: a page that is mapped between
 * a fork and its event would be missing in the child. */
bool run_writeback_return(struct pager *p);
/* Whether only the buffer has the page's bytes. */
bool run_writeback_is_dirty(const struct pager *p, uint32_t buffer_page);
/* All of the space's pages in buffers are stored when it returns, but those
 * that found no place. */
void run_writeback_flush(struct pager *p, const struct space *s);

/* space.c */
int run_space_create(struct pager *p, int uffd, uint64_t start,
		     struct space **out) MUST_CHECK;
/* Gives everything back; the caller has taken it off the list. */
void run_space_destroy(struct pager *p, struct space *s);
/* The child's view of its parent's pages at the moment of fork. */
int run_space_fork(struct pager *p, struct space *parent, int uffd) MUST_CHECK;
/* The process says hello: from now on pages can leave. Takes a reference. */
void run_space_set_share(struct pager *p, struct space *s, struct share *share,
			 pid_t pid);
void run_space_set_resident(struct pager *p, struct space *s, uint64_t page);
/* The page is not here any more; the caller sets its state. */
void run_space_set_gone(struct pager *p, struct space *s, uint64_t page);
/* It has no memory anywhere: as if it had never been touched. */
void run_space_set_untouched(struct pager *p, struct space *s, uint64_t page);
/* The page is here and cannot leave; and may be tried again. */
void run_space_hold(struct pager *p, struct space *s, uint64_t page,
		    bool holds);
/* The program gives [page, page + pages) up; pages that are here may stay for a
 * moment longer. */
void run_space_discard(struct pager *p, struct space *s, uint64_t page,
		       uint64_t pages);
/* The kernel has no far memory there any more. */
void run_space_forget(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages);
/* Call it after pages became alien, or far again. */
void run_space_show_aliens(struct space *s);
/* Frees spaces whose memory is gone; `only_left`: looks only at spaces whose
 * processes have left them. */
void run_spaces_sweep(struct pager *p, bool only_left);

/* reclaim.c */
int run_reclaim_start(struct pager *p) MUST_CHECK;
void run_reclaim_stop(struct pager *p);
/* There is something to do: too much is resident. */
void run_reclaim_kick(struct pager *p);
/* Begins or collects batches and starts to store a few pages, for which it
 * drops the lock; false: nothing could be done. */
bool run_reclaim_turn(struct pager *p);
/* Whether turns are needed although there are no faults. */
bool run_reclaim_is_busy(const struct pager *p);
/* Sets the cores of the reclaim thread and the agents; call it after `cpu` or
 * the number of threads has changed. */
void run_reclaim_place(struct pager *p);

/* Faults come faster than pages leave: gives the agents time. */
void run_reclaim_wait(struct pager *p);

/* mend.c */
int run_mender_start(struct pager *p) MUST_CHECK;
void run_mender_stop(struct pager *p);

/* evict.c */
/* Collects and, where too much is resident, begins batches; true: something was
 * done. */
bool run_evict_step(struct pager *p);
/* Far memory was full, and too much is local: finds out whether it is still
 * full, even without faults, and not more often than it helps. */
void run_evict_try(struct pager *p);
/* Takes the results of ended batches; true if there were any. */
bool run_evict_collect(struct pager *p, struct space *s);

/* batch.c */
/* The stretches of the pages that were picked. Between two pages that leave
 * there may be others in one stretch only if dropping it loses nothing. */
void run_batch_build(const struct space *s, struct leaving *l, bool can_move);
/* Whether a batch under way may drop the page. */
bool run_batch_covers(const struct space *s, uint64_t page);
/* The same, and *end is no further than where that changes. */
bool run_batch_span(const struct space *s, uint64_t page, uint64_t *end);
/* Pages in batches under way. */
uint64_t run_batches_pages(const struct pager *p);

/* room.c: what far memory does not take. */
/* At the beginning: a line if there is little room. */
void run_room_say(struct pager *p);
/* How many pages that need a new place may leave now. */
uint64_t run_room_budget(struct pager *p);
/* Results of stores: how many got a new place, and how many failed. */
void run_room_result(struct pager *p, uint64_t placed, uint64_t refused,
		     int err);
/* Tells the programs whether they may have more. */
void run_room_tell(struct pager *p);
/* Call it from time to time. */
void run_room_settle(struct pager *p);
void run_room_put_slot(struct pager *p, uint32_t slot);
/* Pages of the buffer that were not stored go back; false: some cannot yet. */
bool run_room_return(struct pager *p, struct wb_buffer *t);
/* A forked child's copy of a page that is in its parent's buffer only. */
void run_room_copy(struct pager *p, struct space *child, uint64_t page,
		   uint32_t buffer_page);
bool run_room_is_spent(const struct pager *p);
/* Logs that there is no room anywhere for a page that was never touched. */
void run_room_complain(struct pager *p, const struct space *s);

/* prefetch.c */
/* The pages that a fault brings; the wanted page is the first. */
struct fetch {
	uint64_t far[RUN_PREFETCH_MAX + 1];
	unsigned far_count;
	uint64_t staged[RUN_PREFETCH_MAX + 1];
	unsigned staged_count;
};

void run_prefetch_choose(const struct pager *p, const struct fault *f,
			 struct fetch *c);

/* fault.c */
void run_fault_serve(struct pager *p, const struct fault *f);
void run_fault_retry(struct pager *p);
void run_fault_later(struct pager *p, const struct fault *f);
/* Brings a page that has left, if it has. */
void run_fault_bring(struct pager *p, struct space *s, uint64_t page);
/* Whether an agent waits for it; it is then served at once. */
bool run_fault_is_agents(const struct fault *f);
/* Interprets the result of an ioctl that maps a page which the table does not
 * know; `err` may also be a number of pages. */
enum fault_end run_fault_answered(const struct space *s, uint64_t page,
				  int err);

/* owner.c */
/* The space is that process's from now on. */
void run_owner_set(struct pager *p, struct space *s, pid_t pid);
/* The process has ended: tells the agent, the last user of the memory. */
void run_owner_ended(struct pager *p, struct space *s);
/* Now and then: whether the process has executed something else, and whether
 * its agent is there. */
void run_owner_look(struct pager *p, struct space *s, bool is_thorough);
void run_owner_release(struct pager *p, struct space *s);
/* Wakes the agent, if it sleeps, after a request to it. */
void run_owner_wake(struct run_channel *c);
/* The epoll mark for the process of a space, beside that of the space. */
static inline void *run_owner_who(struct space *s)
{
	return (char *)s + 1;
}
static inline struct space *run_owner_space(void *who)
{
	return (uintptr_t)who & 1 ? (struct space *)((char *)who - 1) : NULL;
}

/* event.c */
/* Reads the events of a userfaultfd. All but faults are handled or, in order,
 * kept until they can be; then w[] gets the faults. Returns how many, or -1:
 * there was no event. Only the first thread calls it. */
int run_events_read(struct pager *p, struct space *s,
		    struct fault w[RUN_EVENTS]);
/* Only reads and keeps events, for a caller that got EAGAIN from the kernel. */
void run_events_note(struct pager *p, struct space *s);
/* The same for all spaces with working agents, for a caller that waits for
 * agents, because agents wait until events are read. */
void run_events_meanwhile(struct pager *p);
/* Handles the events that can be handled by now; false: some are left. */
bool run_events_settle(struct pager *p, struct space *s);
/* The space ends: handles its events regardless of its batches. */
void run_events_end(struct pager *p, struct space *s);

/* move.c */
/* The program moved memory: entries of pages that are not here move along;
 * pages that leave the range are brought. */
void run_move(struct pager *p, struct space *s, uint64_t from, uint64_t to,
	      uint64_t bytes);

/* call.c */
/* A touch of a bell page, which carries a call. */
enum fault_end run_call_answer(struct pager *p, const struct fault *f);

/* marks.c */
/* Pages that must not leave; -ENOMEM: more than may be kept. */
int run_marks_keep(struct pager *p, struct space *s, uint64_t page,
		   uint64_t pages) MUST_CHECK;
void run_marks_unkeep(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages);
/* All that is touched, and brings it; with `later`, also what will be. */
int run_marks_keep_all(struct pager *p, struct space *s, bool later) MUST_CHECK;
/* The program has locked pages past libc, so many as the mask has bits: says so
 * once. */
void run_marks_locked(struct pager *p, const struct space *s, uint64_t mask);
/* Clears the marks of a mapping that ends. */
void run_marks_clear(struct pager *p, struct space *s, uint64_t page,
		     uint64_t pages);

/* attach.c */
int run_attach_open(struct pager *p) MUST_CHECK;
void run_attach_accept(struct pager *p);
void run_attach_read(struct pager *p, struct attachment *c);
/* Ends attachments that take too long, if other processes wait to attach. */
void run_attach_sweep(struct pager *p);
/* A forked child shows its space by touching the page that it was told. */
int run_attach_bind(struct pager *p, struct space *s,
		    uint64_t bell_page) MUST_CHECK;

/* pager.c */
int run_pager_run(const struct run_start *start) MUST_CHECK;
int run_pager_watch(struct pager *p, int fd, void *who) MUST_CHECK;
void run_pager_complain(struct pager *p, const struct space *s);

#endif
