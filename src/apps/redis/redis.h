/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis server over a table in far memory: what `aquifer redis` runs. The
 * table holds everything; a gateway has no state, so any number of them may
 * serve one table.
 */
#ifndef AQ_REDIS_H
#define AQ_REDIS_H

#include "base/base.h"
#include "daemon/daemon.h"

enum {
	REDIS_PASSWORD_MAX = 128,
	REDIS_THREADS_MAX = 64,
	REDIS_CLIENTS_DEFAULT = 10000,
	/* One value of 64 MiB, and as much again. */
	REDIS_QUERY_BYTES_DEFAULT = 128 << 20,
	REDIS_OUTPUT_BYTES_DEFAULT = 256 << 20,
};

#define REDIS_CLIENTS_BYTES_DEFAULT (UINT64_C(1) << 30)

/* What d->self of a struct daemon points to. */
struct redis_options {
	const char *table;	 /* its name */
	uint64_t capacity;	 /* of a table that is not there yet */
	uint64_t extent_bytes;	 /* for its larger values */
	const char *bind;	 /* NULL: 127.0.0.1 */
	int32_t port;		 /* 0: any free one; -1: no TCP */
	const char *unix_path;	 /* NULL: none */
	const char *password;	 /* NULL: none is asked for */
	uint32_t clients_max;	 /* 0: REDIS_CLIENTS_DEFAULT */
	uint32_t threads;	 /* that clients are spread over; 0: one */
	uint32_t idle_timeout_s; /* 0: never */
	/* ADDRESS:PORT or a path of a unix socket for /health and /metrics;
	 * NULL: none. */
	const char *http;
	bool ends_when_lost; /* the table; else it is looked for, or made */
	/* Needs no password on addresses that other hosts can reach. */
	bool is_open_to_all;
	/* Memory for what one client has sent and was not answered yet, for
	 * answers that it does not read, and for both of all clients together.
	 * A client that has more is ended; if all together have more, the one
	 * with most. 0: the default. */
	uint64_t query_bytes_max;
	uint64_t output_bytes_max;
	uint64_t clients_bytes_max;
};

/* A gateway until a signal; see daemon/daemon.h. When it is ready, `port` of
 * its options is the one that it listens on. */
extern const struct daemon_kind redis_daemon;

#endif
