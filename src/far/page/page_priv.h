/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this room's files share.
 *
 * An operation takes a slot and is split into jobs, one per copy of its page. A
 * backend is what the store has at one node; a job goes to the backend of the
 * node that has the copy. Backends know how a node keeps pages (enum
 * page_mode), slots know what makes an operation complete.
 */
#ifndef AQ_PAGE_PRIV_H
#define AQ_PAGE_PRIV_H

#include <infiniband/verbs.h>

#include "base/tally.h"
#include "page_wiring.h"

struct client_clock;
struct client_verbs;
struct page_backend;

/* ---- page_ledger.c: what is stored, and what it must look like ---------- */

enum {
	LEDGER_COPIES = (1 << PAGE_COPIES_MAX) - 1, /* which have the page */
	LEDGER_LOST = 1 << 14,	 /* a store failed: no copy is whole */
	LEDGER_STORED = 1 << 15, /* stored, and not invalidated since */
};

struct page_ledger {
	uint64_t pages;
	uint64_t stored; /* pages with LEDGER_STORED */
	uint16_t *bits;
	uint32_t *sums; /* NULL: no checksums */
};

int page_ledger_init(struct page_ledger *l, uint64_t pages,
		     bool has_sums) MUST_CHECK;
void page_ledger_release(struct page_ledger *l);
void page_ledger_set(struct page_ledger *l, uint64_t page, unsigned bits);

static inline unsigned page_ledger_get(const struct page_ledger *l,
				       uint64_t page)
{
	return l->bits[page];
}

/* ---- backends ----------------------------------------------------------- */

struct page_job {
	enum page_kind kind;
	uint32_t tag;	/* which slot, which copy */
	uint64_t index; /* of the copy at the node */
	uint8_t *buf;	/* page_bytes, registered */
	uint32_t lkey;
	uint32_t rkey;
};

enum {
	JOB_COPY_BITS = 4,
};

/* Calls beside one for each job. */
enum {
	PAGE_CALLS_AHEAD = 2,
};

/* How a mode uses its grant. */
struct page_backend_ops {
	size_t own_bytes; /* of backend->own, which `start` finds zeroed */
	int (*start)(struct page_backend *backend);
	/* Called after `stop`, when nothing was started, or after `start` has
	 * failed. */
	void (*release)(struct page_backend *backend);
	/* 0: under way, 1: done already; else the backend is lost. Never more
	 * than one job per index. */
	int (*post)(struct page_backend *backend, const struct page_job *job);
	/* Looks once and calls page_job_end; else the backend is lost. */
	int (*poll)(struct page_backend *backend);
	/* Called when a job waits long or a link seems lost: finds out, and
	 * repairs what can be repaired; an error means that the backend is
	 * lost. May block. NULL: the backend is lost. */
	int (*check)(struct page_backend *backend);
	uint64_t (*allocated_bytes)(struct page_backend *backend);
};

struct page_backend {
	struct page_store *store;
	const struct page_backend_ops *ops;
	enum page_mode mode; /* never PAGE_AUTO */
	uint32_t node;	     /* index in the rack */
	bool has_grant;
	bool is_lost;
	bool is_failing; /* lost at the next sweep */
	const char *why; /* of is_failing; NULL: already logged */
	uint32_t busy;	 /* jobs */
	uint64_t checked_ns;
	struct page_grant grant;
	void *own; /* the mode's */
};

extern const struct page_backend_ops page_backend_static;
extern const struct page_backend_ops page_backend_dynamic;
extern const struct page_backend_ops page_backend_two_sided;
extern const struct page_backend_ops page_backend_chain;

/* page_static.c: ends the jobs whose READ or WRITE is complete. */
int page_rdma_poll(struct page_backend *backend) MUST_CHECK;
/* One READ or WRITE; 0 or -errno. */
int page_rdma_post(struct client_link *link, const struct page_job *job,
		   uint64_t remote_addr, uint32_t rkey,
		   uint32_t bytes) MUST_CHECK;

/* Whether a tag that came from a node is of a job on this backend. */
bool page_job_is_waiting(const struct page_backend *backend, uint32_t tag);
/* Ends one job: 0 or why it failed. */
void page_job_end(struct page_store *store, uint32_t tag, int err);

/* page_backend.c. The backend is given up at the next sweep. */
static inline void page_backend_fail(struct page_backend *backend,
				     const char *why)
{
	if (!backend->is_failing)
		backend->why = why;
	backend->is_failing = true;
}

int page_backend_open(struct page_backend *backend, uint32_t node) MUST_CHECK;
void page_backend_close(struct page_backend *backend);
/* Makes sure that none of its requests reaches a buffer any more, then ends its
 * jobs with -EHOSTDOWN. */
void page_backend_lose(struct page_backend *backend);
/* Asks the node how many bytes it holds for the backend. */
uint64_t page_backend_asked_bytes(struct page_backend *backend);
/* Whether the node or a heartbeat says that the backend is lost. */
bool page_backend_seems_lost(const struct page_backend *backend);

/* ---- slots and the store ------------------------------------------------ */

struct page_slot {
	struct page_op *op;
	struct page_op *follow; /* operations on the same page, in order */
	struct page_op *follow_last;
	struct page_slot *next; /* free, or of the same hash */
	uint8_t *stage;		/* a page */
	uint8_t *data;		/* the page: the caller's buffer or the stage */
	uint32_t lkey;
	uint32_t rkey;
	uint16_t tried; /* copies, bit by bit */
	uint16_t waiting;
	uint16_t got;
	bool is_ready; /* its operation shall begin */
	bool is_timed; /* its operation is the probe's */
	int err;
	uint64_t start_ns;
};

struct page_buffer {
	uint8_t *addr;
	size_t bytes;
	struct ibv_mr *mr;
};

struct page_store {
	struct page_store_options o;
	char name[64];
	struct page_wiring wiring;
	const struct client_clock *clock;
	const struct client_verbs *verbs;
	struct ibv_pd *pd; /* of all links */
	uint64_t per_node; /* pages whose first copy is on one node */
	struct page_ledger ledger;

	uint32_t backend_count;
	struct page_backend backend[PAGE_NODES_MAX];

	uint32_t slot_count; /* one more than depth, for synchronous calls */
	struct page_slot *slot;
	struct page_slot *free_slots;
	struct page_slot **hash; /* busy pages */
	uint32_t hash_mask;
	unsigned pending;
	unsigned active; /* slots */
	unsigned ready;	 /* active slots with is_ready */
	struct page_op *ended;
	struct page_op *ended_last;
	struct page_op *sync; /* the synchronous call's */

	uint8_t *stage;
	size_t stage_bytes;
	unsigned buffer_count;
	struct page_buffer buffer[PAGE_BUFFERS_MAX + 1]; /* the last: stage */

	uint64_t now_ns;     /* when it was last looked at */
	uint32_t looks;	     /* since then; vain ones count more */
	uint64_t rebuild_at; /* pages before it have all copies */
	struct page_stats stats;
	struct tally *tally; /* or NULL */
	struct tally_probe probe;
};

/* The node and place of one copy of a page. */
static inline struct page_backend *page_copy_backend(struct page_store *s,
						     uint64_t page,
						     unsigned copy)
{
	/* A division takes longer than everything else about it. */
	return &s->backend[s->backend_count == 1
				   ? 0
				   : (page + copy) % s->backend_count];
}

static inline uint64_t page_copy_index(const struct page_store *s,
				       uint64_t page, unsigned copy)
{
	return copy * s->per_node +
	       (s->backend_count == 1 ? page : page / s->backend_count);
}

/* page_work.c: begins the slot's operation; it may end at once. */
void page_work_start(struct page_store *s, struct page_slot *slot);

/* page_queue.c: the slot's operation is over. */
void page_slot_end(struct page_store *s, struct page_slot *slot, int result);
/* Polls all backends once, and gives up those that are lost. */
void page_harvest(struct page_store *s);

/* page_store.c. Where the buffer's key is; NULL: not registered. */
const struct page_buffer *page_buffer_find(const struct page_store *s,
					   const void *buf);

#endif
