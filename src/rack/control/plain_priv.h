/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connections of a unix socket: a thread reads requests and hands them on,
 * and whoever has a reply writes it himself. So a request that waits for
 * something costs a read and a write, and wakes nobody. libmicrohttpd, which
 * does the same for all else, takes 17 calls of the system for it (decision
 * 141).
 *
 * A line is one connection. It has an owner at any time: its thread while
 * nothing or a part of a request has come (LINE_READS), and from then on who
 * makes the reply (LINE_SERVED). That one gives it back. If something has come
 * meanwhile (LINE_CALLED), or something is left to be written, its thread is
 * told; else nobody is.
 */
#ifndef AQ_CTL_PLAIN_PRIV_H
#define AQ_CTL_PLAIN_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "caller_priv.h"
#include "chunk_priv.h"
#include "ctl_server.h"
#include "exchange_priv.h"

enum {
	PLAIN_SCRATCH = 32 << 10, /* that are read at a time */
};

enum line_state {
	LINE_READS,
	LINE_SERVED,
	LINE_CALLED, /* its thread takes it from the list, for nothing else */
};

/* The thread of a listener. */
struct plain {
	struct listener *listener;
	bool has_thread;
	pthread_t thread;
	int epoll_fd, wake_fd;
	pthread_mutex_t lock; /* covers these */
	struct list lines;    /* all of them */
	struct list back;     /* those that were given back to the thread */
	bool ends;
	char scratch[PLAIN_SCRATCH]; /* the thread's */
};

struct line {
	struct plain *plain;
	struct caller *caller;
	int fd;
	struct list link, back; /* of plain */
	_Atomic(enum line_state) state;
	/* The owner's. */
	struct ctl_exchange *exchange; /* whose body comes, or that is served */
	uint64_t body_left;	       /* where it has a length */
	struct chunks chunks;
	bool is_chunked;
	/* What has come of the next request: less than its head, or nothing
	 * was looked at. */
	char *early;
	size_t early_bytes;
	bool is_part; /* of a head: more has to come */
	/* Of the reply, which the peer does not take. */
	char *late;
	size_t late_bytes, late_sent;
	bool is_patient;  /* its thread is told when it can be written */
	bool is_last;	  /* the request */
	bool closes;	  /* when the reply is written */
	bool reads_on;	  /* until nothing is left, or the end is seen */
	bool has_no_body; /* the reply: it was asked for by HEAD */
};

/* The thread. -errno; error_last() has the words. plain_close in any case. */
int plain_open(struct listener *listener, struct plain **out) MUST_CHECK;
/* Nobody has a request any more. */
void plain_close(struct plain *p);
/* A connection that was admitted. If it fails, both stay the caller's. */
int plain_add(struct plain *p, int fd, struct caller *caller) MUST_CHECK;
/* The exchange has its reply. From here on it may be gone. On any thread. */
void plain_finish(struct ctl_exchange *e);

/* The thread, which owns it, goes on with the others first. */
void plain_later(struct line *l);

/* ---- line.c: what its owner does ----------------------------------------- */

/* Something has come, or it was given back; on its thread, which owns it. It
 * may be gone afterwards. */
void line_go_on(struct line *l, bool reads_on);
/* Writes the reply of its exchange, and forgets that. */
void line_reply(struct line *l);
/* On its thread, which owns it. */
void line_end(struct line *l);

#endif
