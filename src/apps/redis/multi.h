/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has begun with MULTI and WATCH: commands that wait for EXEC,
 * and keys as they were when it looked. Both are bounded.
 */
#ifndef AQ_REDIS_MULTI_H
#define AQ_REDIS_MULTI_H

#include <aquifer/kv.h>

#include "resp.h"

enum {
	MULTI_COMMANDS_MAX = 16384,
	MULTI_WATCH_MAX = AQ_KV_UNIT_KEYS,
};

struct command;

/* A command with its arguments. */
struct queued {
	const struct command *command;
	uint32_t argc;
	char *bytes; /* that the spans point into */
	struct resp_span span[];
};

/* A key as it was when it was watched. */
struct watched {
	char *key;
	size_t key_len;
	char *value; /* NULL: there was none */
	size_t value_len;
	uint64_t expire_at_ms;
};

/* Zero-initialised, and freed with multi_release. */
struct multi {
	bool is_on;
	bool is_aborted; /* a command was refused: EXEC will be, too */
	uint32_t count, capacity;
	struct queued **command;
	uint32_t watch_count;
	struct watched *watch; /* MULTI_WATCH_MAX of them, or NULL */
	uint64_t bytes;	       /* of both, with what they need here */
};

void multi_release(struct multi *m);
/* Ends the transaction; watched keys stay. */
void multi_discard(struct multi *m);
void multi_unwatch(struct multi *m);

/* A copy of the command to the queue, unless it would have more than
 * bytes_max. -E2BIG, -ENOMEM. */
int multi_queue(struct multi *m, const struct command *command, uint32_t argc,
		const struct resp_span *span, const char *buf,
		uint64_t bytes_max) MUST_CHECK;

bool multi_is_watched(const struct multi *m, struct resp_str key);
/* Notes a key and what there is of it. -E2BIG, -ENOMEM. */
int multi_watch(struct multi *m, struct resp_str key,
		const struct aq_kv_change *now, uint64_t bytes_max) MUST_CHECK;
/* Whether the key is still as it was. */
bool watched_is_same(const struct watched *w, const struct aq_kv_change *now);

/* All keys of the queue and the watched ones, each once: those that are watched
 * first, in their order. -E2BIG: more than `max`. Keys that no table can have
 * are left out; their commands will say so. */
int multi_keys(const struct multi *m, struct aq_kv_key *keys, uint32_t max,
	       uint32_t *count) MUST_CHECK;

#endif
