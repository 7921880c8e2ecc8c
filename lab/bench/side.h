/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One measured process. A subject (something that is measured) is two of them:
 * a client on one core that measures and a server on another; or three, with a
 * forwarder between these. All wait on a
 * socket to the conductor between rounds, so that subjects can take turns
 * without disturbing each other. Used by the aquifer binary and by the helper
 * programs alike.
 */
#ifndef AQ_BENCH_SIDE_H
#define AQ_BENCH_SIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ticks.h"

enum side_role {
	SIDE_CLIENT,
	SIDE_SERVER,
	SIDE_FORWARDER, /* between the two; few subjects have one */
	SIDE_ROLES,
};

enum {
	SIDE_SHARED_BYTES = 1 << 20,
	SIDE_PAGE_BYTES = 4096,
	SIDE_SAMPLES_MAX = 1 << 18,
	SIDE_SERIES_MAX = 2,
	SIDE_MORE_MAX = 16,
	SIDE_WHY_BYTES = 120,
	SIDE_BUFFER_BYTES_64 =
		256 << 10, /* touched lines fit a second-level cache */
	SIDE_BUFFER_BYTES_4K = 1 << 20,
};

/* Places in side_result.more. */
enum {
	SIDE_MORE_COMM,	 /* share of the time inside the library */
	SIDE_MORE_EMPTY, /* share of that in empty polls */
	SIDE_MORE_FAR,	 /* share of operations that went far */
	SIDE_MORE_OWN,	 /* whatever the subject says */
	/* Millions of operations per second of the switch's processor time. */
	SIDE_MORE_PER_CORE,
};

/* The first page of the memory that both sides and the conductor share. */
struct side_page {
	atomic_uint stop; /* P0: set by the conductor, read by a spinning
			     server; carries no other data: relaxed */
};

/* Times of single operations: what the client sampled in one round. */
struct side_series {
	uint64_t count;
	double p50_ns;
	double p99_ns;
	double p999_ns;
};

struct side_result {
	int32_t status;	 /* 0 or -errno */
	uint32_t shield; /* enum shield_kind of this process */
	uint64_t ops;
	uint64_t ops_all; /* the warm-up too */
	uint64_t elapsed_ns;
	struct side_series series[SIDE_SERIES_MAX];
	/* Other numbers of the round; what they are is up to the subject. */
	double more[SIDE_MORE_MAX];
	char why[SIDE_WHY_BYTES]; /* what failed, in words */
};

/* Samples of the last SIDE_SAMPLES_MAX operations, in ticks. */
struct side_samples {
	uint32_t *ticks;
	uint64_t count;
};

struct side {
	enum side_role role;
	int ctl_fd;  /* to the conductor */
	int peer_fd; /* stream to the other side, for set-up */
	struct side_page *page;
	uint8_t *shared; /* SIDE_SHARED_BYTES after the page */
	double ticks_per_ns;
	double tick_step;
	struct side_samples samples[SIDE_SERIES_MAX];
	const void *param;
	void *state;
	char why[SIDE_WHY_BYTES];
};

struct side_ops {
	/* Called on both sides at the same time; they talk over peer_fd. */
	int (*setup)(struct side *s);
	/* The server's part of a round: until page->stop. NULL: it sleeps. */
	int (*serve)(struct side *s);
	/* The same for the forwarder. NULL: there is none. */
	int (*forward)(struct side *s);
	/* The client's part. Fills ops and samples. */
	int (*measure)(struct side *s, uint64_t window_ns,
		       struct side_result *out);
	void (*teardown)(struct side *s);
	/* More processes than these two take part: other threads that set-up
	 * starts run on the server's core, with those processes. */
	bool is_shared;
};

static inline bool side_stopped(const struct side *s)
{
	return atomic_load_explicit(&s->page->stop, memory_order_relaxed) != 0;
}

static inline void side_sample(struct side *s, unsigned series, uint64_t ticks)
{
	struct side_samples *v = &s->samples[series];

	v->ticks[v->count++ % SIDE_SAMPLES_MAX] =
		ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

/* Where operation i of a run touches a buffer: visits every block once per
 * cycle in an order that a prefetcher does not follow. Sizes: powers of two. */
static inline uint64_t side_offset(uint64_t i, uint32_t block, uint32_t buffer)
{
	return (i * 0x9e3779b1u) % (buffer / block) * block;
}

/* The buffer that a server offers, and the test that a block came from it. */
static inline uint32_t side_buffer_bytes(uint32_t block)
{
	return block > 64 ? SIDE_BUFFER_BYTES_4K : SIDE_BUFFER_BYTES_64;
}

void side_buffer_fill(uint8_t *buf, uint32_t block);

static inline bool side_block_ok(const uint8_t *got, uint64_t offset)
{
	uint64_t word;

	__builtin_memcpy(&word, got, sizeof(word));
	return word == ~offset;
}

/* The clock at the end of a window that begins now. */
static inline uint64_t side_end_ticks(const struct side *s, uint64_t window_ns)
{
	return bench_ticks() + (uint64_t)((double)window_ns * s->ticks_per_ns);
}

/* For sides that have nothing to set up. */
int side_no_setup(struct side *s);
void side_no_teardown(struct side *s);

/* Remembers why a step failed and returns rc. */
int side_fail(struct side *s, int rc, const char *what);

/* Whole messages on a stream. 0 or -errno; -EPIPE: the other end has closed. */
int side_send(int fd, const void *buf, size_t len_bytes)
	__attribute__((warn_unused_result));
int side_recv(int fd, void *buf, size_t len_bytes)
	__attribute__((warn_unused_result));
/* The same with the other side of the subject, in both directions. */
int side_exchange(struct side *s, const void *mine, void *peer,
		  size_t len_bytes) __attribute__((warn_unused_result));
/* Goes on when the other side is here, too. */
int side_meet(struct side *s) __attribute__((warn_unused_result));

/* A command of the conductor. */
struct side_command {
	uint32_t run; /* 0: leave */
	uint32_t reserved;
	uint64_t window_ns;
};

/* The life of one side, on fds that the conductor made: shield, core, set-up,
 * rounds, end. page_fd is the shared memory. `is_plain`: it has neither a core
 * nor a priority of its own. Returns an exit code. */
int side_main(const struct side_ops *ops, const void *param,
	      enum side_role role, int ctl_fd, int peer_fd, int page_fd,
	      bool is_plain);

#endif
