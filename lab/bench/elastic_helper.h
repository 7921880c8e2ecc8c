/* SPDX-License-Identifier: Apache-2.0 */
/* A second process of `bench elastic`, with a NIC of its own, on the client's
 * core: it listens, or fills a store until a block is split. */
#ifndef AQ_BENCH_ELASTIC_HELPER_H
#define AQ_BENCH_ELASTIC_HELPER_H

#include <sys/types.h>

#include "base/base.h"

enum {
	ELASTIC_EVENTS_MAX = 1 << 15,
	ELASTIC_LISTENERS_MAX = 64,
};

enum elastic_job {
	ELASTIC_WATCH,	   /* puts of a queue */
	ELASTIC_SUBSCRIBE, /* the channel "c" of redis-server */
	ELASTIC_SPLIT,	   /* puts until the longest one was a split */
	/* The first two, by many listeners of one process; what is noted is
	 * when the last of them has heard it. */
	ELASTIC_WATCH_MANY,
	ELASTIC_SUBSCRIBE_MANY,
};

/* What both processes see. */
struct elastic_shared {
	enum elastic_job job;
	char path[96];
	unsigned count; /* events to wait for */
	unsigned listeners;
	unsigned heard; /* and how many came */
	uint64_t lost;
	uint32_t ns[ELASTIC_EVENTS_MAX]; /* from sending to hearing */
	uint64_t split_start_ns, split_end_ns;
	char why[200]; /* "": all is well */
};

struct elastic_helper {
	pid_t pid;
	int to, from;
	struct elastic_shared *shared;
};

/* Before the process has threads. */
int elastic_helper_start(struct elastic_helper *h) MUST_CHECK;
void elastic_helper_end(struct elastic_helper *h);
/* Begins, and returns when the helper is ready for what comes. */
int elastic_helper_begin(struct elastic_helper *h) MUST_CHECK;
/* Whether it is: then elastic_helper_wait returns at once. */
bool elastic_helper_is_done(const struct elastic_helper *h);
/* In the helper: it is ready. */
void elastic_helper_say(int fd);
/* An event was heard whose data begin with the time at which it was sent. */
void elastic_helper_note(struct elastic_shared *s, const void *data);
/* The two kinds of many listeners (elastic_listeners.c). */
struct aq_rack;
int elastic_listen_watch(struct elastic_shared *s, struct aq_rack *rack,
			 int out) MUST_CHECK;
int elastic_listen_subscribe(struct elastic_shared *s, int out) MUST_CHECK;
/* Until it is done. */
int elastic_helper_wait(struct elastic_helper *h) MUST_CHECK;

#endif
