/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program under `aquifer run` and its pager share: the messages by which
 * the preload library attaches, and the page of memory ("channel") through
 * which the pager's orders and the library's calls go.
 *
 * Attaching: the library connects to the pager's socket and sends a run_hello
 * with the token. Only then does it get anything: a run_welcome with the memory
 * that the two share (channel and buffers of this process only), and with the
 * userfaultfd device where there is one. A new process makes a userfaultfd,
 * sends it with a run_range, and waits for a run_welcome that says 0: the pager
 * sets it up, because events of fork are a privilege that the program need not
 * have. A child made by fork sends no more than the hello. The pager has its
 * userfaultfd already from the fork event, and learns which process it belongs
 * to when the child touches the page that the welcome named.
 *
 * Calls: the library writes `call` and touches the range's first page, which is
 * never there. The fault is the bell, and its end the answer. So a call needs
 * no descriptor that the program could close, and comes in order with faults.
 */
#ifndef AQ_RUN_CHANNEL_H
#define AQ_RUN_CHANNEL_H

#include <stdatomic.h>

#include "base/base.h"

#define RUN_AGENT_NAME "aquifer-agent"
#define RUN_ENV	       "AQUIFER_RUN" /* "<path of the socket> <token>[ strict]" */
#define RUN_ENV_STRICT "strict"	     /* end if attaching fails */

enum {
	RUN_PAGE_BYTES = 4096,
	RUN_PAGE_SHIFT = 12,
	RUN_BATCH_PAGES = 64, /* evicted together, and pages of one buffer */
	RUN_BATCHES = 4,      /* of one space under way; a power of two */
	RUN_TOKEN_BYTES = 16,
	RUN_MAGIC = 0x41515231, /* "AQR1" */
};

#define RUN_HINT_HERE (1u << 31)

/* A number that no thread has. */
#define RUN_AGENT_COMES UINT32_MAX

/* A space: pages that are bells, the first for calls, then the heap, then what
 * mmap gives out. */
#define RUN_RANGE_ALIGN (1ull << 30)
#define RUN_HEAP_OFFSET (1ull << 30) /* the allocator wants it aligned */
#define RUN_BELL_PAGES	(RUN_HEAP_OFFSET >> RUN_PAGE_SHIFT)
#define RUN_HEAP_BYTES	(512ull << 30)
#define RUN_MAPS_OFFSET (RUN_HEAP_OFFSET + RUN_HEAP_BYTES)
#define RUN_MAPS_BYTES	(512ull << 30)
#define RUN_RANGE_BYTES (RUN_MAPS_OFFSET + RUN_MAPS_BYTES)
#define RUN_RANGE_PAGES (RUN_RANGE_BYTES >> RUN_PAGE_SHIFT)

enum run_hello_kind {
	RUN_HELLO_NEW,
	RUN_HELLO_FORKED,
};

/* Sent without descriptors. */
struct run_hello {
	uint32_t magic;
	uint32_t kind; /* enum run_hello_kind */
	uint8_t token[RUN_TOKEN_BYTES];
};

/* Sent with one descriptor, the userfaultfd. */
struct run_range {
	uint32_t magic;
	uint32_t reserved;
	uint64_t start;
};

/* As an answer to a hello, err 0, with one or two descriptors: the shared
 * memory, which is the channel and then the buffers; the device. */
struct run_welcome {
	uint32_t magic;
	int32_t err;	       /* 0 or -errno */
	uint64_t buffer_bytes; /* of all buffers */
	uint64_t min_bytes;    /* smaller mappings stay local */
	uint32_t has_uffd_dev; /* the second descriptor is /dev/userfaultfd */
	uint32_t bell_page;    /* which a forked child touches, once */
};
STATIC_ASSERT(sizeof(struct run_hello) == 24, "layout");
STATIC_ASSERT(sizeof(struct run_range) == 16, "layout");
STATIC_ASSERT(sizeof(struct run_welcome) == 32, "layout");

struct run_hash {
	uint64_t word[2];
};

/* Consecutive pages of the program, all of whose present ones leave. */
struct run_stretch {
	uint64_t start;
	uint64_t bytes;
};

/* The outcome of a batch, bit i for page[i]: whether the page is still there,
 * and if so, why; whether it was zeros. */
struct run_outcome {
	uint64_t failed;
	uint64_t refused; /* only because it was not guarded */
	uint64_t spared;  /* only because the program changes its mappings */
	uint64_t locked;  /* because the program has locked it */
	uint64_t zero;
	uint64_t dropped;   /* by advice, of which the kernel tells the pager */
	uint32_t is_single; /* pages were dropped one by one, not stretches */
	uint32_t reserved;
};

/*
 * Move page[i] to place buffer_page + i of the buffers. A page that the kernel
 * does not move is copied and dropped if it is guarded, that is, if the pager
 * keeps writers away from it. Where nothing is moved, all pages are guarded,
 * and the stretches are dropped as a whole. The agent also looks at the bytes,
 * since it has them in its cache. Neither hash nor buffer is checked again: no
 * other process can write them, so a program that changes them harms only
 * itself.
 *
 * With to_node the pages stay mapped, and the kernel moves their memory to NUMA
 * node to_node - 1. `refused` then says that it moves nothing at all for this
 * process.
 */
struct run_batch {
	uint32_t buffer_page;
	uint32_t page_count;
	uint32_t stretch_count;
	uint32_t to_node; /* not 0: see above */
	uint64_t guarded; /* bit i: page[i] */
	struct run_outcome out;
	struct run_hash hash[RUN_BATCH_PAGES]; /* out, but of zeros */
	uint64_t page[RUN_BATCH_PAGES];
	struct run_stretch stretch[RUN_BATCH_PAGES];
};

/* How the agent takes pages out. */
enum run_way {
	RUN_WAY_NONE, /* not yet */
	RUN_WAY_MOVE,
	RUN_WAY_COPY, /* guarded pages only */
};

enum run_call_kind {
	RUN_CALL_NONE,
	RUN_CALL_SELF, /* a forked child shows which space it is */
	/* Something else will be mapped at [start, start + bytes). Answered
	 * when no agent drops pages there any more. */
	RUN_CALL_LEAVE,
	RUN_CALL_TAKE,	 /* mapped anew: far memory from now on */
	RUN_CALL_KEEP,	 /* must not leave; -ENOMEM: too much */
	RUN_CALL_UNKEEP, /* may leave */
	/* Keeps all touched pages; with `bytes` also, or only, later ones. */
	RUN_CALL_KEEP_ALL,
	RUN_CALL_KEEP_LATER,
	/* As madvise has it; see enum run_mark. */
	RUN_CALL_WIPE,
	RUN_CALL_UNWIPE,
	RUN_CALL_WITHHOLD,
	RUN_CALL_UNWITHHOLD,
};

/* RUN-B1: written before the program rings, read by the pager after. */
struct run_call {
	uint32_t kind;
	int32_t err; /* out */
	uint64_t start;
	uint64_t bytes;
};

/*
 * The two ends of each pair are in run/ (the pager) and preload/ (the agent):
 *
 *	RUN-P1	An agent that sees a new number never sees half of a batch.
 *	RUN-P2	Of a wish (posted, quits) and is_asleep, pager and agent do not
 *		both miss the other's: no agent sleeps over a wish.
 *	RUN-D1	A pager that sees a new number never sees half of a result, nor
 *		a buffer that is not full.
 *	RUN-W1	A pager that sees the way never posts to an agent that still
 *		has rights or no place for pages.
 *	RUN-M1	Of is_changing and is_moving, pager and agent do not both miss
 *		the other's: no page is moved from where something else may
 *		have been mapped.
 *	RUN-M2	A pager that sees no move sees the pages gone that were moved.
 */
struct run_channel {
	/* RUN-P1: batches, ever. The futex on which the agent sleeps. */
	_Atomic uint32_t posted;
	_Atomic uint32_t done;	    /* RUN-D1: of these, with results */
	_Atomic uint32_t is_asleep; /* RUN-P2: the agent wants FUTEX_WAKE */
	/* One more than the core that faults come from. The agent keeps away
	 * from it; with RUN_HINT_HERE, it runs on no other. */
	_Atomic uint32_t core_hint;
	/* RUN_AGENT_COMES before there is one; the kernel writes the number as
	 * the agent starts, and 0 when it ends. */
	_Atomic uint32_t agent_tid;
	/* RUN-P2: the pager wants the agent to end: its process has ended or
	 * executed something else, and the agent alone keeps the memory. */
	_Atomic uint32_t quits;
	/* The pager adds to it now and then, as long as it lives. */
	_Atomic uint32_t heartbeats;
	_Atomic uint32_t had_agent; /* written by the agent when it is ready */
	uint32_t may_move; /* written by the pager before there is an agent */
	_Atomic uint32_t way; /* RUN-W1: enum run_way, once it is known */
	_Atomic uint32_t has_aliens; /* some of the range is not far: a hint */
	/* RUN-M1: the program changes its mappings, nothing may be taken now;
	 * the agent moves pages. */
	_Atomic uint32_t is_changing;
	_Atomic uint32_t is_moving;
	/* 1: far memory and what may be local are full: no more mappings. */
	_Atomic uint32_t is_full;
	struct run_call call;
	struct run_batch batch[RUN_BATCHES];
};
STATIC_ASSERT(sizeof(struct run_call) == 24, "layout");
STATIC_ASSERT(offsetof(struct run_channel, batch) == 80, "layout");
#define RUN_CHANNEL_BYTES 12288
STATIC_ASSERT(sizeof(struct run_channel) <= RUN_CHANNEL_BYTES, "three pages");

#endif
