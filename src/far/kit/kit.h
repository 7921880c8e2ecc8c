/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every client of a structure in far memory needs: a connection with
 * registered memory, batches of one-sided requests, its slot in the structure,
 * and the words that say which client owns which chunk of memory. A client
 * belongs to one thread at a time.
 *
 * A *batch* is requests that are posted together and executed in their order;
 * only the last one is waited for, so one batch is one round trip. Each request
 * names a *point* of the structure's own numbering, at which a test may stop
 * the client: it then posts what comes before that request, and nothing any
 * more, as if its machine had died there.
 */
#ifndef AQ_KIT_H
#define AQ_KIT_H

#include <aquifer/aqdv.h>
#include <errno.h>

#include "base/rng.h"
#include "remote.h"

enum {
	KIT_WR_MAX = 520,     /* requests of one batch */
	KIT_PARTS_MAX = 8,    /* of a client's memory */
	KIT_RECONNECTS = 8,   /* of one operation */
	KIT_WATCH_LOOKS = 24, /* the fewest looks before something is late */
	KIT_STAGE_BYTES = 64 << 10,
	KIT_LARGE_BYTES = 1 << 20, /* one READ or WRITE of something large */
};

/* A request of a batch. */
struct kit_wr {
	bool is_masked;
	struct ibv_sge sge;
	union {
		struct ibv_send_wr ib;
		struct aqdv_masked_wr masked;
	};
};

/* The points of the kit's own requests, and of all READs. */
struct kit_points {
	int read;
	int claim; /* a slot is claimed or named */
	int fence; /* another client's slot changes its state */
	int leave; /* a slot becomes free again */
};

/* The client slots of a structure: `count` of them, each with a struct kit_slot
 * at its beginning. */
struct kit_slots {
	uint64_t at; /* the first one's offset */
	uint32_t count;
	uint32_t slot_bytes;
	uint64_t epoch_mask; /* the bits of an epoch that others remember */
};

struct kit_config {
	const char *what; /* in messages: "the index" */
	struct kit_points points;
	struct kit_slots slots; /* .count is 0: a client without a slot */
	uint32_t failure_ms;
	bool (*crash)(void *ctx, int point); /* NULL: never */
	void *crash_ctx;
};

/* A part of the client's registered memory. */
struct kit_part {
	void *to; /* address of the pointer that is set */
	size_t bytes;
};

struct kit_client;

/* One of the structure's regions, as this client accesses it. */
struct kit_space {
	struct kit_client *client;
	uint64_t addr;
	uint32_t rkey;
};

struct kit_client {
	struct kit_remote remote;
	struct kit_config config;
	const struct client_clock *clock; /* also while there is no link */
	struct kit_space main, locks;
	struct rng rng;
	uint64_t failure_ns;
	uint64_t start_ns;    /* of the operation that runs */
	uint64_t deadline_ns; /* its end at the latest */
	bool is_broken;	      /* the connection carries nothing any more */
	bool is_crashed;      /* by a test */

	/* The slot that is this client's. */
	uint32_t slot;
	uint32_t epoch;
	bool has_slot;

	/* Called when a batch of kit_post is done, with its wr_id. A structure
	 * that calls kit_post sets it. */
	void (*completed)(struct kit_client *k, uint64_t wr_id);
	/* Called after kit_run with the time that it took; may be NULL. */
	void (*ran)(struct kit_client *k, uint64_t ns);
	uint64_t polled_ns; /* the time of the last completions */
	bool has_answered;  /* the node, on this connection */
	/* How many there were: round trips, requests of each kind, and clients
	 * that this one has fenced. */
	uint64_t trips, reads, writes, atomics, fenced;

	/* Registered memory: the structure's parts and what the kit needs. */
	uint8_t *arena;
	size_t arena_bytes;
	struct ibv_mr *mr;
	/* KIT_STAGE_BYTES of scratch memory for the current request; the kit
	 * uses it for slots and words of chunks. */
	uint8_t *stage;
	struct kit_slot *who; /* the slot of another client, when it is read */
	uint64_t *answer;     /* the word that kit_cas_now gets */
	/* Memory for what fits nowhere else, see kit_big_reserve. */
	uint8_t *big;
	size_t big_bytes;
	struct ibv_mr *big_mr;

	unsigned wr_count;
	struct kit_wr wr[KIT_WR_MAX];
};

static inline uint64_t kit_now_ns(const struct kit_client *k)
{
	return client_clock_now_ns(k->clock);
}

/* An operation begins. */
static inline void kit_set_deadline(struct kit_client *k, uint64_t ms)
{
	k->start_ns = kit_now_ns(k);
	k->deadline_ns = k->start_ns + ms * 1000000;
}

/* It goes on, with as much time again. */
static inline void kit_move_deadline(struct kit_client *k, uint64_t ms)
{
	k->deadline_ns = kit_now_ns(k) + ms * 1000000;
}

/* How long it took until its last answer, without another look at the clock. */
static inline uint64_t kit_took_ns(const struct kit_client *k)
{
	return k->polled_ns > k->start_ns ? k->polled_ns - k->start_ns : 0;
}

static inline bool kit_is_late(const struct kit_client *k)
{
	return kit_now_ns(k) > k->deadline_ns;
}

/* How long something has not changed. It is late when the time is over and it
 * was looked at often enough since: when the whole machine stalls, no client
 * counts as silent. */
struct kit_watch {
	uint64_t since_ns;
	unsigned looks;
};

static inline void kit_watch_start(const struct kit_client *k,
				   struct kit_watch *w)
{
	*w = (struct kit_watch){.since_ns = kit_now_ns(k)};
}

static inline bool kit_watch_is_late(const struct kit_client *k,
				     struct kit_watch *w, uint64_t ns)
{
	return ++w->looks > KIT_WATCH_LOOKS && kit_now_ns(k) - w->since_ns > ns;
}

/* Whether a request would not be posted: -ESTALE, -ESHUTDOWN, or 0. */
static inline int kit_stopped(const struct kit_client *k)
{
	return k->is_broken ? -ESTALE : k->is_crashed ? -ESHUTDOWN : 0;
}

/* ---- client.c: memory and connection ------------------------------------ */

/* Makes the memory and registers it; the pointers to its parts are set. After
 * an error there is nothing to release. */
int kit_client_init(struct kit_client *k, const struct kit_remote *remote,
		    const struct kit_config *config,
		    const struct kit_part *parts, unsigned count) MUST_CHECK;
/* Leaves the slot, if there is one and the client was not stopped, and closes
 * the remote, if that has a close function. */
void kit_client_close(struct kit_client *k);
/* Leaves the remote open, as if the client's process had ended. */
void kit_client_release(struct kit_client *k);
/* A client without a slot and parts, for code that makes a structure. The
 * remote stays the caller's. */
int kit_plain_create(const struct kit_remote *remote,
		     struct kit_client **out) MUST_CHECK;
void kit_plain_destroy(struct kit_client *k);
/* Reads the first bytes of the region, which say what structure it is, by such
 * a client. */
int kit_head_read(const struct kit_remote *remote, void *head,
		  size_t bytes) MUST_CHECK;
/* Makes another connection; all state of the old one is void. After an error
 * the client is broken. */
int kit_renew(struct kit_client *k) MUST_CHECK;
/* The same with another slot; the old one is left. */
int kit_reconnect(struct kit_client *k) MUST_CHECK;
/* Room for that many bytes in k->big. */
int kit_big_reserve(struct kit_client *k, uint64_t bytes) MUST_CHECK;

/* Room for that many items in an array of local memory, which may move: `array`
 * is the address of the pointer to it. */
int kit_grow(void *array, uint32_t *room, uint32_t count,
	     size_t item_bytes) MUST_CHECK;

/* ---- batch.c: requests -------------------------------------------------- */

void kit_begin(struct kit_client *k);
/* A READ after an atomic sees the atomic's effect. */
void kit_read(const struct kit_space *s, uint64_t offset, void *to,
	      uint64_t len_bytes);
void kit_write(const struct kit_space *s, int point, uint64_t offset,
	       const void *from, uint64_t len_bytes);
void kit_cas(const struct kit_space *s, int point, uint64_t offset,
	     uint64_t compare, uint64_t swap, uint64_t *answer);
/* If all bits of compare_mask are 0 in the word, replaces the bits of swap_mask
 * by those of `swap`. */
void kit_masked_cas(const struct kit_space *s, int point, uint64_t offset,
		    uint64_t compare_mask, uint64_t swap, uint64_t swap_mask,
		    uint64_t *answer);
/* Posts the batch and waits for all of it. -ESTALE: the connection is broken;
 * -ESHUTDOWN: a test stopped the client. */
int kit_run(struct kit_client *k) MUST_CHECK;
/* Posts the batch; k->completed gets its wr_id, which has 32 bits. A failure
 * also breaks the connection, so callers may ignore the result. */
int kit_post(struct kit_client *k, uint32_t wr_id);
/* Polls once, and rests where nothing has completed. */
int kit_poll(struct kit_client *k, bool *batch_done) MUST_CHECK;
/* Single requests that wait for their completion; large READs are split. */
int kit_read_now(const struct kit_space *s, uint64_t offset, void *to,
		 uint64_t len_bytes) MUST_CHECK;
int kit_write_now(const struct kit_space *s, int point, uint64_t offset,
		  const void *from, uint64_t len_bytes) MUST_CHECK;
int kit_cas_now(const struct kit_space *s, int point, uint64_t offset,
		uint64_t compare, uint64_t swap, uint64_t *old) MUST_CHECK;
/* The same; -EAGAIN: another word than `from` was there. */
int kit_swap_now(const struct kit_space *s, int point, uint64_t offset,
		 uint64_t from, uint64_t to) MUST_CHECK;
void kit_pause(struct kit_client *k, uint64_t ns);

/* Counts the words, `stride` bytes apart, that have one of these bits, and adds
 * the number to *used. */
int kit_count_words(const struct kit_space *s, uint64_t at, uint64_t count,
		    uint32_t stride, uint64_t mask, uint64_t *used) MUST_CHECK;

/* ---- client_slot.c ------------------------------------------------------ */

/* Claims a free slot, or that of a client that is gone. -EAGAIN: none. */
int kit_slot_claim(struct kit_client *k) MUST_CHECK;
/* Claims this slot, which was FREE. -EAGAIN: another client has it. */
int kit_slot_take(struct kit_client *k, uint32_t slot,
		  const struct kit_slot *seen) MUST_CHECK;
/* Names another connection, or two, in the slot that this client has. */
int kit_slot_rename(struct kit_client *k, const char *conn) MUST_CHECK;
/* Leaves a slot that is this client's, or was in an earlier epoch. If this
 * fails, the next client that needs the slot finds out by itself. */
int kit_slot_leave(struct kit_client *k, uint32_t slot, uint32_t epoch);
/* Changes the state by one compare-and-swap; `from` was read there. -EAGAIN:
 * the state has changed since. */
int kit_slot_move(struct kit_client *k, int point, uint32_t slot, uint64_t from,
		  enum kit_slot_state to) MUST_CHECK;
/* Makes sure that no request of this client will be executed any more. */
int kit_slot_fence(struct kit_client *k, uint32_t slot,
		   uint32_t epoch) MUST_CHECK;
/* Whether a client has left, was fenced, or has no connection. */
int kit_slot_is_gone(struct kit_client *k, uint32_t slot, uint32_t epoch,
		     bool *gone) MUST_CHECK;

static inline uint64_t kit_slot_at(const struct kit_client *k, uint32_t slot)
{
	return k->config.slots.at + (uint64_t)slot * k->config.slots.slot_bytes;
}

/* ---- chunk.c: memory that clients take for themselves -------------------- */

/* The word of a chunk that a client has: which slot, of which epoch. */
static inline uint64_t kit_owner_word(uint32_t slot, uint32_t epoch)
{
	return (uint64_t)slot + 1 + ((uint64_t)epoch << 32);
}

static inline uint64_t kit_own_word(const struct kit_client *k)
{
	return kit_owner_word(k->slot, k->epoch);
}

/* Whether the owner in such a word, which is not this client, is gone. */
int kit_owner_is_gone(struct kit_client *k, uint64_t word,
		      bool *gone) MUST_CHECK;

/* Calls `each` with the words of all chunks until it returns other than 0,
 * which is returned. With a hint it begins at the hint, or at a random chunk,
 * so that clients that start together want different ones; else at the
 * first. */
typedef int (*kit_chunk_fn)(void *user, uint64_t chunk, uint64_t word);
int kit_chunks_each(struct kit_client *k, uint64_t words_at, uint64_t count,
		    uint64_t *hint, kit_chunk_fn each, void *user) MUST_CHECK;

#endif
