/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Redis server over a table in far memory: what `aquifer redis` runs. The
 * table holds everything; a gateway has no state, so any number of them may
 * serve one table.
 */
#ifndef AQ_REDIS_H
#define AQ_REDIS_H

#include "base/base.h"

struct aq_kv;

enum {
	REDIS_PASSWORD_MAX = 128,
	REDIS_CLIENTS_DEFAULT = 10000,
	/* One value of 64 MiB, and as much again. */
	REDIS_QUERY_BYTES_DEFAULT = 128 << 20,
	REDIS_OUTPUT_BYTES_DEFAULT = 256 << 20,
};

#define REDIS_CLIENTS_BYTES_DEFAULT (UINT64_C(1) << 30)

struct redis_options {
	struct aq_kv *kv;
	const char *table;	 /* its name, for INFO */
	const char *bind;	 /* NULL: 127.0.0.1 */
	int32_t port;		 /* 0: any free one; -1: no TCP */
	const char *unix_path;	 /* NULL: none */
	const char *password;	 /* NULL: none is asked for */
	uint32_t clients_max;	 /* 0: REDIS_CLIENTS_DEFAULT */
	uint32_t idle_timeout_s; /* 0: never */
	/* Without a password also on addresses that others can reach. */
	bool is_open_to_all;
	/* Memory for what one client sends and was not answered yet, for
	 * answers that it does not take, and of all clients together. Who has
	 * more is ended, of all the one who has most. 0: the default. */
	uint64_t query_bytes_max;
	uint64_t output_bytes_max;
	uint64_t clients_bytes_max;
};

/* Called once the sockets accept. */
typedef void (*redis_ready_fn)(void *ctx, uint16_t port);

/* Serves until SIGTERM or SIGINT, which the caller has blocked in all threads.
 */
int redis_serve(const struct redis_options *o, redis_ready_fn ready,
		void *ctx) MUST_CHECK;

#endif
