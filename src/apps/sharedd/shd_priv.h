/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cache server is made of. One thread does everything that touches
 * pages: it moves events between the userfaultfds of programs, the connections
 * to the switch and the cache of coherence/cache.h, and does what that says.
 * The lead is asked by a thread of its own (lead.h).
 */
#ifndef AQ_SHD_PRIV_H
#define AQ_SHD_PRIV_H

#include <poll.h>

#include "base/counter.h"
#include "base/rack_socket.h"
#include "base/relax.h"
#include "coherence/cache.h"
#include "coherent/channel.h"
#include "hold.h"
#include "keeper.h"
#include "lead.h"
#include "mem.h"
#include "nic.h"
#include "sharedd.h"

enum {
	SHD_LEAVES = 8,
	SHD_WAITS = 4096,    /* threads that wait for pages */
	SHD_PROGRAMS = 1024, /* mappings of programs */
	SHD_FAULTS = 64,     /* read at once */
	SHD_EVICTS = 16,     /* in one turn */
	SHD_PLACEHOLDERS = 16384,
	SHD_WAITERS = 4096,
	SHD_LISTENERS = 1024, /* programs that hand futex calls over */
};

#define SHD_CACHE_BYTES (512ull << 20)

#define SHD_COUNTERS(X)                                             \
	X(faults, "page faults of programs")                        \
	X(gets_read, "pages asked for to read")                     \
	X(gets_write, "pages asked for to write")                   \
	X(ahead, "pages asked for before they were touched")        \
	X(pages, "pages that have come")                            \
	X(refused, "gets that were refused")                        \
	X(invals, "invalidations of the switch")                    \
	X(held, "invalidations that waited for a thread to run")    \
	X(gives, "pages given back")                                \
	X(evictions, "pages given up for others")                   \
	X(leaves, "regions left")                                   \
	X(sleeps, "threads that slept on a word of shared memory")  \
	X(wakes, "threads that were woken, or whose word changed")  \
	X(terms, "connections to a switch that had been restarted") \
	X(hidden, "times that the lease was nearly over")           \
	X(strange, "messages of the switch that made no sense")

enum shd_counter {
#define SHD_ENUM(name, help) SHD_C_##name,
	SHD_COUNTERS(SHD_ENUM)
#undef SHD_ENUM
	SHD_COUNTER_COUNT
};

struct shd_segment {
	struct list node;
	uint64_t id;
	uint64_t page; /* its first one */
	struct shd_mem mem;
	unsigned users;
	uint64_t faults, gets, invals, gives;
};

/* A segment that programs know as an object: open at the lead while somebody
 * here uses it. */
struct shd_object {
	struct list node;
	uint64_t id;
	unsigned users; /* programs, and placeholders */
	/* As the lead told it last; it only grows. */
	uint64_t length_bytes;
	bool is_measured; /* the lead is asked for it again */
};

/* By the number of its watch. */
struct shd_placeholder {
	int watch;
	struct shd_object *object;
};

struct shd_program;

enum shd_watch_kind {
	SHD_WATCH_LISTEN,
	SHD_WATCH_SOCKET,
	SHD_WATCH_UFFD,
	SHD_WATCH_NIC,
	SHD_WATCH_LEAD,
	SHD_WATCH_SIGNAL,
	SHD_WATCH_OBJECTS,
	SHD_WATCH_LISTENER,
};

struct shd_watch {
	enum shd_watch_kind kind;
	struct shd_program *program;
};

/* A program's connection, and its mapping. */
struct shd_program {
	struct list node;
	int sock; /* -1: its mapping stays without it */
	uint64_t serial;
	pid_t pid;
	clockid_t clock; /* of the processor time that it uses; 0: none */
	bool has_view;
	bool stays;
	bool is_asking; /* the lead */
	bool is_bare;	/* and wants no placeholder */
	bool is_flushing;
	bool is_ended;
	struct shd_object *object; /* that it uses, or NULL */
	struct shd_view view;
	struct shd_segment *segment; /* NULL: nothing is open */
	struct shd_watch on_sock, on_uffd;
	/* Pages of a flush: before `sent` they are given, before `done` the
	 * memory node has them. */
	uint64_t flush_from, flush_sent, flush_done, flush_end;
	/* Pages that it wants ahead, from the next one on. */
	uint64_t fetch_at, fetch_end;
	uint8_t fetch_right; /* enum coh_right */
	/* Faults to read: which one goes on with the row, how many did, and how
	 * many pages before that one were asked for ahead. */
	uint64_t stream_next;
	uint32_t stream_streak, stream_ahead;
};

/* A thread that waits for a page. */
struct shd_wait {
	uint64_t page;
	struct shd_program *program;
	uint8_t right; /* enum coh_right */
	bool is_missing;
	bool is_lost; /* it was refused, and is here to read: it goes first */
	bool is_past; /* it lies behind what is known of its object */
};

struct shd {
	struct shd_options opt;
	struct daemon *daemon;
	struct shd_keeper *keeper;
	pid_t keeper_pid;
	int device; /* of userfaultfds, or -1 */
	int own_uffd;
	int epoll;
	struct rack_sockets sockets;
	char socket[COHERENT_SOCKET_MAX];
	int listen;
	struct shd_watch on_listen, on_nic, on_lead, on_signal;
	struct shd_lead *lead;
	struct shd_nic nic;
	struct shd_ends ends;
	bool is_asking; /* the lead, for ends of the switch */
	bool is_member;
	bool is_armed;
	bool is_draining;
	bool is_drained;    /* nothing is left that could be given back */
	bool is_over;	    /* no member any more, or broken */
	bool is_table_full; /* not all of shared memory fits into the table */
	int lead_err;
	uint64_t broken_ns; /* since when a connection is broken; 0: none */
	uint64_t said_ns;   /* when a refusal was told last */
	uint32_t term;
	uint64_t sent_ns; /* of the last beat that was answered */
	uint64_t used_ns; /* when there was a program */
	struct counter_file *counters;
	uint64_t *c; /* SHD_COUNTER_COUNT */
	uint64_t *cached_bytes;

	struct coh_cache cache;
	struct coh_cache_out out;
	struct coh_cache_lane lanes[COHERENCE_LANES];
	struct coh_cache_job jobs[COH_CACHE_JOBS_MAX];
	struct coh_cache_leave leaves[SHD_LEAVES];
	bool lane_lost[COHERENCE_LANES];
	uint8_t lane_why[COHERENCE_LANES];
	struct shd_hold *holds; /* of the arena's pages */
	/* Of the largest regions: we asked for something there and have not
	 * left it since. */
	bool *touched;
	/* When the last INVAL and the last fault came, and until when the next
	 * one is expected. */
	uint64_t inval_ns, fault_ns, soon_ns;
	struct coh_inval held[COH_CACHE_JOBS_MAX];
	unsigned held_count;
	uint64_t held_ns; /* when the first may go; 0: not known */

	struct list segments;
	struct list objects;
	int inotify; /* of placeholders */
	struct shd_watch on_objects;
	uint32_t placeholder_count;
	struct shd_placeholder *placeholders; /* SHD_PLACEHOLDERS */
	/* Futex calls that are held. */
	struct list listeners;
	unsigned listener_count;
	struct shd_waiter *waiters; /* SHD_WAITERS */
	unsigned waiter_count;
	uint64_t futex_ns; /* when one wants a look; 0: none */
	struct list programs, ended;
	uint64_t last_serial;
	unsigned program_count;
	uint64_t page_count; /* cached */
	uint64_t page_max;
	struct list *hand; /* the clock's segment, or NULL */
	uint32_t hand_page;
	unsigned wait_count;
	struct shd_wait waits[SHD_WAITS];
};

static inline void shd_count(struct shd *s, enum shd_counter which)
{
	s->c[which]++;
}

static inline uint32_t shd_us(uint64_t ns)
{
	return (uint32_t)(ns / 1000);
}

/* ---- act.c: what the cache says ------------------------------------------ */

/* Does what is in s->out. `lane`: whose page has come, or -1. */
void shd_act(struct shd *s, int lane);
/* Everything is over: SIGBUS for all, and the server ends. */
void shd_fail(struct shd *s, const char *why);

/* ---- fault.c: threads that wait ------------------------------------------ */

void shd_fault_read(struct shd *s, struct shd_program *p);
/* Asks for what is waited for, where that can be done by now. */
void shd_fault_touch(struct shd *s);
/* The page is here with that right: its threads run. `bytes`: of a page that
 * was not here. */
void shd_fault_mapped(struct shd *s, struct shd_segment *g, uint64_t page,
		      enum coh_right right, const void *bytes);
/* The process of this clock runs from now on. */
void shd_hold_start(struct shd_hold *h, clockid_t clock);
/* SIGBUS for who waits for pages of the range. */
void shd_fault_lost(struct shd *s, const struct coh_range *r);
void shd_fault_forget(struct shd *s, const struct shd_program *p);
/* The object's length is known anew; `err`: it is not. */
void shd_fault_measured(struct shd *s, const struct shd_object *o, int err);

/* ---- attach.c: programs -------------------------------------------------- */

int shd_attach_open(struct shd *s) MUST_CHECK;
void shd_attach_accept(struct shd *s);
/* The name is free for the next server, and nobody else comes to this one. */
void shd_attach_stop(struct shd *s);
void shd_attach_read(struct shd *s, struct shd_program *p);
/* It is freed when no event can name it any more. */
void shd_attach_end(struct shd *s, struct shd_program *p);
void shd_attach_free(struct shd *s);
/* Its connection is of no use any more; a mapping that stays is served on. */
void shd_attach_broken(struct shd *s, struct shd_program *p);
/* Answers the program; `with` may be NULL. */
int shd_attach_answer(const struct shd_program *p, int err,
		      const struct coherent_answer *with, const int *fd,
		      unsigned count) MUST_CHECK;
/* ---- held.c -------------------------------------------------------------- */
/* What the cache has, for who compares it with the switch. */
int shd_held_answer(const struct shd *s,
		    const struct shd_program *p) MUST_CHECK;

/* The pages of a question about a range, which must be in the program's
 * segment; else -ERANGE. */
struct shd_range {
	uint64_t from, end;
};
int shd_program_range(const struct shd_program *p,
		      const struct coherent_ask *ask,
		      struct shd_range *out) MUST_CHECK;
/* Goes on with flushes; from_start: what was given did not arrive. */
void shd_flush_run(struct shd *s, bool from_start);
int shd_watch_add(struct shd *s, int fd, struct shd_watch *w) MUST_CHECK;

/* ---- fetch.c: pages ahead of need -----------------------------------------
 */

/* Notes what the program wants, instead of what it wanted before, and answers.
 */
int shd_fetch_ask(struct shd *s, struct shd_program *p,
		  const struct coherent_ask *ask) MUST_CHECK;
/* A thread of the program waits for the page, to read it. */
void shd_fetch_fault(struct shd *s, struct shd_program *p, uint64_t page);
/* Asks for some of what is wanted. */
void shd_fetch_run(struct shd *s);

/* ---- segment.c ----------------------------------------------------------- */

/* -EBUSY: the memory of another one is still in use there. */
int shd_segment_get(struct shd *s, uint64_t va, uint64_t size_bytes,
		    uint64_t id, struct shd_segment **out) MUST_CHECK;
void shd_segment_put(struct shd *s, struct shd_segment *g);
/* NULL: none has it. */
struct shd_segment *shd_segment_of(struct shd *s, uint64_t page);
void shd_segment_destroy(struct shd *s, struct shd_segment *g);

/* ---- table.c --------------------------------------------------------------
 */

/* Pages of so many bytes of shared memory; what is there stays. */
int shd_table_grow(struct shd *s, uint64_t size_bytes) MUST_CHECK;

/* ---- object.c: POSIX and System V shared memory ----------------------------
 */

int shd_object_start(struct shd *s) MUST_CHECK;
void shd_object_stop(struct shd *s);
/* Asks the lead for the program; an error ends it. */
int shd_object_ask(struct shd *s, struct shd_program *p,
		   const struct coherent_ask *ask) MUST_CHECK;
/* Takes what the lead has answered. */
void shd_object_got(struct shd *s);
/* Placeholders that nobody has any more. */
void shd_object_read(struct shd *s);
void shd_object_put(struct shd *s, struct shd_object *o);
/* The end of the pages that the program may touch, as far as is known here.
 * The switch knows only the place, which has room behind the object. */
uint64_t shd_object_end(const struct shd_program *p);
/* Asks the lead how long the object is by now, unless that is under way. What
 * cannot be asked now is asked the next time. */
void shd_object_measure(struct shd *s, struct shd_object *o);

/* ---- deadline.c: when a held call ends ------------------------------------
 */

struct seccomp_notif;

struct shd_deadline {
	uint64_t ns; /* of our clock; 0: never, or not known yet */
	uint64_t addr;
	uint64_t page; /* is_awaited: the one that is not here */
	bool is_absolute, is_real;
	bool is_awaited; /* it lies in shared memory and was not read yet */
};

/* An address of a program: whether it is where groups have shared memory. */
bool shd_is_shared(uint64_t addr);
/* Reads shared memory from copies that are here. -EFAULT: nobody uses it here;
 * -EAGAIN: the page *missing is elsewhere. */
int shd_shared_read(struct shd *s, uint64_t addr, void *out, size_t len_bytes,
		    uint64_t *missing) MUST_CHECK;
int shd_deadline_find(struct shd *s, const struct seccomp_notif *n,
		      struct shd_deadline *out) MUST_CHECK;
/* One that is awaited. -EAGAIN: its page is not here. */
int shd_deadline_read(struct shd *s, struct shd_deadline *d) MUST_CHECK;

/* ---- futex.c: threads that sleep on a word --------------------------------
 */

int shd_futex_start(struct shd *s) MUST_CHECK;
void shd_futex_stop(struct shd *s);
/* Takes a listener, which is ours from here on. `addr`: of a word of the
 * program, which must be readable. */
int shd_futex_listen(struct shd *s, pid_t pid, uint64_t addr,
		     int fd) MUST_CHECK;
/* After its descriptor was ready, in that way. */
void shd_futex_read(struct shd *s, struct shd_watch *w, uint32_t events);
/* Pages have come, or go. */
void shd_futex_came(struct shd *s, uint64_t page);
void shd_futex_left(struct shd *s, const struct coh_range *r);
/* They cannot be had. */
void shd_futex_lost(struct shd *s, const struct coh_range *r);
void shd_futex_run(struct shd *s, uint64_t now_ns);
/* Drops those whose thread has gone on, for a signal. */
void shd_futex_look(struct shd *s);

/* ---- evict.c: a bounded cache -------------------------------------------- */

/* Gives up pages where there are too many, and of segments that nobody uses. */
void shd_evict(struct shd *s);

/* ---- member.c: the switch, terms and leases ------------------------------ */

/* Waits until it is a member; -errno with words. */
int shd_member_start(struct shd *s) MUST_CHECK;
void shd_member_news(struct shd *s);
/* A connection to the switch has failed. */
void shd_member_broken(struct shd *s);
/* Hides all when the lease is nearly over, and shows it again. */
void shd_member_lease(struct shd *s, uint64_t now_ns);
/* Gives everything back; false: in vain. */
bool shd_member_drain(struct shd *s);

/* ---- turn.c: the loop ---------------------------------------------------- */

/* An INVAL or a fault has come, the last one of its kind at *last_ns: another
 * one may come as soon. */
void shd_expect(struct shd *s, uint64_t *last_ns, uint64_t now_ns);

/* Works once; returns whether there was something to do. */
bool shd_turn(struct shd *s);
/* Sleeps until something happens, at most that long. */
void shd_sleep(struct shd *s, uint64_t most_ns);

#endif
