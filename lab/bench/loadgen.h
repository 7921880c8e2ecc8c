/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients over loopback or a unix socket, each with a kept connection and one
 * request under way at a time, by one thread: the same for a controller as for
 * a peer that speaks another protocol, so both are asked at the same cost.
 */
#ifndef AQ_BENCH_LOADGEN_H
#define AQ_BENCH_LOADGEN_H

#include "base/hist.h"

enum {
	LOADGEN_LINES_MAX = 64,
	LOADGEN_REPLY_MAX = 16 << 10,
};

/* How long the whole answer at the beginning of these bytes is; 0: some of it
 * is missing; -EPROTO: it is not the answer that was to come. */
typedef int (*loadgen_whole_fn)(const char *reply, unsigned reply_bytes);

/* "HTTP/1.1 200" with a Content-Length, and "+PONG". */
int loadgen_whole_http(const char *reply, unsigned reply_bytes);
int loadgen_whole_pong(const char *reply, unsigned reply_bytes);

struct loadgen {
	loadgen_whole_fn whole;
	unsigned count;
	int epoll_fd;
	struct loadgen_line {
		int fd;
		/* What it asks, each time; the caller's. */
		const char *request;
		size_t request_bytes;
		/* Digits in it that count the requests up, so that no two of a
		 * line are the same; NULL: they are. */
		char *digits;
		unsigned digit_count;
		unsigned reply_bytes; /* that have come */
		uint64_t since_ns;
		char reply[LOADGEN_REPLY_MAX];
	} line[LOADGEN_LINES_MAX];
};

struct loadgen_result {
	uint64_t answers;
	uint64_t elapsed_ns;
	struct hist latency_ns;
};

/* Connects `count` lines to a port, or to a unix socket; their requests are the
 * caller's to set. 0, or -errno with words in error_last(); loadgen_close in
 * any case. */
int loadgen_open(struct loadgen *g, uint16_t port, unsigned count,
		 loadgen_whole_fn whole) MUST_CHECK;
int loadgen_open_unix(struct loadgen *g, const char *path, unsigned count,
		      loadgen_whole_fn whole) MUST_CHECK;
void loadgen_close(struct loadgen *g);
/* All lines ask, again and again, until the time is over and what is under way
 * has been answered. */
int loadgen_run(struct loadgen *g, uint64_t window_ns,
		struct loadgen_result *out) MUST_CHECK;

#endif
