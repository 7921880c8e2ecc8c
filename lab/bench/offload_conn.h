/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair between the two sides of a subject, for messages. */
#ifndef AQ_BENCH_OFFLOAD_CONN_H
#define AQ_BENCH_OFFLOAD_CONN_H

#include "client/link.h"
#include "side.h"

enum {
	CONN_DEPTH = 256,
	CONN_RECEIVES = 32,
};

/* Both sides, at the same time, over s->peer_fd. The server offers its memory;
 * the client passes NULL. On failure s->why says what happened. */
int conn_open(struct side *s, void *memory, size_t memory_bytes,
	      struct client_link **out) __attribute__((warn_unused_result));
void conn_close(struct client_link *link);

#endif
